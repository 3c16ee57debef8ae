//! The state shared by the data path and the gateway's process: the layout of the maps' keys and values.
//!
//! Only the data path writes `flows` and `unvalidated`, only the process writes `clamps` and `control`, so neither
//! overwrites the other's data. Times are CLOCK_MONOTONIC in nanoseconds; sequence numbers and windows are those of RFC
//! 9293.

use paceline_path::access_point::Law;
use paceline_units::Span;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Types for which any bytes are a valid value, and which have no padding.
///
/// # Safety
/// The type must be `repr(C)` or a number, and have no padding, no pointers and no invalid bit patterns.
pub unsafe trait Plain: Copy + Default {}

// SAFETY: numbers.
unsafe impl Plain for u32 {}
// SAFETY: numbers.
unsafe impl Plain for u64 {}
// SAFETY: numbers without padding: 40 bytes.
unsafe impl Plain for Key {}
// SAFETY: numbers without padding: the fields' sizes sum to that of the type, which a test asserts.
unsafe impl Plain for FlowState {}
// SAFETY: numbers without padding.
unsafe impl Plain for Control {}

/// A connection: addresses and ports as on the LAN interface. IPv4 addresses are in the first four bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(C)]
pub struct Key {
    /// The station's address.
    pub lan: [u8; 16],
    /// The remote address.
    pub remote: [u8; 16],
    /// The station's port, in network order.
    pub lan_port: [u8; 2],
    /// The remote port, in network order.
    pub remote_port: [u8; 2],
    /// 4 or 6.
    pub family: u8,
    /// Zeros.
    pub rest: [u8; 3],
}

impl Key {
    /// The station's end and the remote end.
    #[must_use]
    pub fn ends(&self) -> [SocketAddr; 2] {
        let address = |bytes: [u8; 16]| -> IpAddr {
            match (self.family, bytes) {
                (4, [a, b, c, d, ..]) => Ipv4Addr::new(a, b, c, d).into(),
                _ => Ipv6Addr::from(bytes).into(),
            }
        };
        let port = u16::from_be_bytes;
        [
            SocketAddr::new(address(self.lan), port(self.lan_port)),
            SocketAddr::new(address(self.remote), port(self.remote_port)),
        ]
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lan, remote] = self.ends();
        write!(f, "{lan} < {remote}")
    }
}

/// What was seen of a connection, as bits of [`FlowState::flags`].
pub mod flag {
    /// The station's SYN.
    pub const LAN_SYN: u32 = 1 << 0;
    /// The remote SYN.
    pub const REMOTE_SYN: u32 = 1 << 1;
    /// The station's SYN offers window scaling (RFC 7323 section 2.2).
    pub const LAN_SCALE: u32 = 1 << 2;
    /// The remote SYN offers it.
    pub const REMOTE_SCALE: u32 = 1 << 3;
    /// `highest` is known.
    pub const DATA: u32 = 1 << 4;
    /// `ack` is known.
    pub const ACK: u32 = 1 << 5;
    /// The station's FIN.
    pub const LAN_FIN: u32 = 1 << 6;
    /// The remote FIN.
    pub const REMOTE_FIN: u32 = 1 << 7;
    /// A RST from either end.
    pub const RST: u32 = 1 << 8;
    /// A SYN's options are damaged, too many to parse, or differ from an earlier SYN's (so the scale is unknown); or
    /// all segments carry a digest: the windows must not be changed.
    pub const UNMODIFIABLE: u32 = 1 << 9;
    /// The station has acknowledged data that passed here: a spoofer who sees one direction alone could not have done
    /// so.
    pub const VALIDATED: u32 = 1 << 10;
    /// The flags that end a connection.
    pub const ENDED: u32 = LAN_FIN | REMOTE_FIN | RST;
    /// Both SYNs.
    pub const BOTH: u32 = LAN_SYN | REMOTE_SYN;
    /// Both ends offer window scaling, so the station's windows are scaled.
    pub const SCALED: u32 = LAN_SCALE | REMOTE_SCALE;
}

/// The data path's state of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct FlowState {
    /// Time of its last packet.
    pub seen: u64,
    /// Payload towards the station, retransmissions included (bytes).
    pub bytes: u64,
    /// Time of the station's SYN, until the remote end's next packet; otherwise 0.
    pub handshake: u64,
    /// Time of the segment whose acknowledgement is awaited; otherwise 0.
    pub probe: u64,
    /// ACKs whose window was lowered (with [`Control::DRY`]: would have been lowered).
    pub lowered: u64,
    /// [`flag`]s.
    pub flags: u32,
    /// The end of the highest data from the remote end.
    pub highest: u32,
    /// The highest acknowledgement from the station.
    pub ack: u32,
    /// The window that the station last advertised (bytes).
    pub window: u32,
    /// The end of the segment whose acknowledgement is awaited.
    pub probe_end: u32,
    /// The station's initial sequence number.
    pub lan_isn: u32,
    /// The remote end's initial sequence number.
    pub remote_isn: u32,
    /// The station's window scale.
    pub shift: u32,
    /// The station's MSS option (bytes); 0 without.
    pub mss: u32,
    /// Maximum payload of the remote end's segments so far (bytes).
    pub segment: u32,
    /// From the station's SYN to the remote answer (microseconds): the round-trip time beyond the gateway; 0 if
    /// unknown.
    pub wan_rtt: u32,
    /// Last time from data to their acknowledgement on the LAN's side (microseconds); 0 if unknown.
    pub lan_rtt: u32,
    /// Minimum of these times.
    pub lan_rtt_min: u32,
    /// Maximum of these times per interval, for even and odd intervals.
    pub longest: [u32; 2],
    /// The numbers of those intervals.
    pub interval: [u32; 2],
    /// Zero.
    pub rest: u32,
}

impl FlowState {
    /// The window scale; `None` if the data path did not see both SYNs or could not parse them, or if they carry a
    /// digest.
    #[must_use]
    pub fn scale(&self) -> Option<u32> {
        if self.flags & flag::BOTH != flag::BOTH || self.flags & flag::UNMODIFIABLE != 0 {
            return None;
        }
        Some(if self.flags & flag::SCALED == flag::SCALED { self.shift } else { 0 })
    }

    /// Data that passed and are not acknowledged yet (bytes).
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        let both = flag::DATA | flag::ACK;
        let ahead = self.highest.wrapping_sub(self.ack) as i32;
        if self.flags & both == both { ahead.max(0) as u32 } else { 0 }
    }

    /// Maximum data-to-ACK time in this interval; `None` without a sample in it.
    #[must_use]
    pub fn longest_in(&self, interval: u32) -> Option<Span> {
        let place = (interval & 1) as usize;
        (self.interval[place] == interval).then_some(Span::from_micros(u64::from(self.longest[place])))
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let fins = flag::LAN_FIN | flag::REMOTE_FIN;
        self.flags & fins == fins || self.flags & flag::RST != 0
    }

    /// Segment size (bytes) for the minimum window, which is two segments.
    #[must_use]
    pub fn min_segment(&self) -> u32 {
        let offered = if self.mss == 0 { SEGMENT } else { self.mss.min(LARGEST) };
        self.segment.max(offered)
    }
}

/// Default MSS of a connection without the option (RFC 9293, section 3.7.1), bytes.
pub const SEGMENT: u32 = 536;
/// Maximum value used of a station's MSS option before a segment was seen: Ethernet's (bytes).
pub const LARGEST: u32 = 1460;

/// The process's settings for the data path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Control {
    /// Windows are lowered until this time.
    pub deadline: u64,
    /// A window for all connections without an entry in `clamps` (bytes); 0: none.
    pub window: u32,
    /// Number of the current interval, for [`FlowState::longest`].
    pub interval: u32,
    /// [`Control::DRY`] or 0.
    pub mode: u32,
    /// Zero.
    pub rest: u32,
}

impl Control {
    /// Only count the windows that would be lowered.
    pub const DRY: u32 = 1;
    /// How long windows are lowered after the deadline was renewed (nanoseconds).
    pub const ALIVE: u64 = 1_000_000_000;

    /// Settings for the first interval, with the deadline not set yet; with the law's window if it has one for all
    /// connections.
    #[must_use]
    pub fn of(law: &Law) -> Control {
        let window = match law {
            Law::Fixed(window) => u32::try_from(*window).unwrap_or(u32::MAX),
            Law::Voap(_) | Law::SapLaw(_) => 0,
        };
        Control { window, interval: 1, ..Control::default() }
    }
}

/// Length of an Ethernet header, included in UDP's byte count.
const ETHERNET: u64 = 14;

/// Bytes of UDP so far, in both directions with Ethernet headers, from counters in the order of [`Counter::ALL`].
#[must_use]
pub fn udp_bytes(counts: &[u64]) -> u64 {
    let count = |counter: Counter| counts[counter as usize];
    let packets = count(Counter::UdpDown) + count(Counter::UdpUp);
    count(Counter::UdpDownBytes) + count(Counter::UdpUpBytes) + ETHERNET * packets
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The data path's counters: an array with one number for each, per processor.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(i32)]
        pub enum Counter {
            $($(#[$doc])* $name,)*
        }

        impl Counter {
            /// All counters.
            pub const ALL: &[Counter] = &[$(Counter::$name),*];
        }
    };
}

counters! {
    /// TCP packets towards stations.
    Down,
    /// TCP packets from stations.
    Up,
    /// UDP datagrams towards stations.
    UdpDown,
    /// Their bytes with IP headers.
    UdpDownBytes,
    /// UDP datagrams from stations.
    UdpUp,
    /// Their bytes with IP headers.
    UdpUpBytes,
    /// Packets that are neither, truncated packets, and fragments of TCP.
    Other,
    /// ACKs whose window was lowered (with [`Control::DRY`]: would have been lowered).
    Lowered,
    /// ACKs of connections with an unknown scale, and ACKs with a digest.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_no_padding() {
        assert_eq!(size_of::<Key>(), 40);
        assert_eq!(size_of::<FlowState>(), 5 * 8 + 18 * 4);
        assert_eq!(size_of::<Control>(), 24);
    }

    #[test]
    fn a_scale_needs_both_syns() {
        let mut state = FlowState { shift: 7, flags: flag::LAN_SYN | flag::LAN_SCALE, ..FlowState::default() };
        assert_eq!(state.scale(), None);
        state.flags |= flag::REMOTE_SYN;
        assert_eq!(state.scale(), Some(0), "the remote end does not scale, so nobody does");
        state.flags |= flag::REMOTE_SCALE;
        assert_eq!(state.scale(), Some(7));
        state.flags |= flag::UNMODIFIABLE;
        assert_eq!(state.scale(), None);
    }

    #[test]
    fn keys_are_read_as_addresses() {
        let mut key = Key { family: 4, lan_port: 80_u16.to_be_bytes(), ..Key::default() };
        key.lan[..4].copy_from_slice(&[10, 0, 0, 1]);
        assert_eq!(format!("{key:?}"), "10.0.0.1:80 < 0.0.0.0:0");
        key.family = 6;
        key.lan = Ipv6Addr::LOCALHOST.octets();
        assert_eq!(key.ends()[0].to_string(), "[::1]:80");
    }
}

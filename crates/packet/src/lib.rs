//! The packet as the simulator moves it: 32 bytes by value, with rare fields in a side record.
//!
//! Contents: [`Packet`], its [`Flags`], the side records ([`Extra`]) and the wire codecs ([`wire`]). The crate uses
//! units. A packet in flight is copied from inbox to inbox; its path through the network is compiled (see `cursor`),
//! never looked up. Start with [`Packet`].

mod extra;
mod ntp;
pub mod quic;
pub mod rtcp;
pub mod rtp;
mod transit;
pub mod wire;

pub use extra::{
    Block, Extra, ExtraId, Extras, FramePart, LastHole, Ns2Data, Subflow, TcpOptions, TfrcData, TfrcMore, TfrcReport,
};
pub use ntp::{Ntp, NtpMiddle, NtpSpan};
use paceline_units::{Span, Time};
pub use transit::Transit;

/// Index of a flow in the run: one sender and its receiver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct FlowId(pub u32);

/// A sender's clock in a packet, which its acknowledgement echoes: units of 256 ns, modulo 2^32 (18 minutes, far beyond
/// any round-trip time; for packets that may be older see [`Transit`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Stamp(pub u32);

impl Stamp {
    /// Ticks per second.
    pub const HZ: u32 = 3_906_250;
    /// The number of nanosecond bits in a tick of 256 ns.
    const TICK_BITS: u32 = 8;

    /// The stamp for `now`.
    #[inline]
    #[must_use]
    pub const fn at(now: Time) -> Stamp {
        Stamp((now.0 >> Stamp::TICK_BITS) as u32)
    }

    /// The time from this stamp to `now`, with a resolution of 256 ns.
    #[inline]
    #[must_use]
    pub const fn elapsed(self, now: Time) -> Span {
        Span((Stamp::at(now).0.wrapping_sub(self.0) as u64) << Stamp::TICK_BITS)
    }
}

/// Header bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Flags(pub u16);

impl Flags {
    /// No flags.
    pub const NONE: Flags = Flags(0);
    /// From receiver to sender: an acknowledgement or a report.
    pub const ACK: Flags = Flags(1);
    /// Opens a connection; with `ACK`, acknowledges the opening.
    pub const SYN: Flags = Flags(1 << 1);
    /// ECN-capable transport (RFC 3168): ECT(0) alone, ECT(1) with `L4S`.
    pub const ECT: Flags = Flags(1 << 2);
    /// Congestion experienced (RFC 3168).
    pub const CE: Flags = Flags(1 << 3);
    /// ECN echo: the receiver reports a mark to the sender (RFC 3168).
    pub const ECE: Flags = Flags(1 << 4);
    /// Congestion window reduced: the sender responds to the echo (RFC 3168).
    pub const CWR: Flags = Flags(1 << 5);
    /// A retransmission. No header has this bit; it is for counters.
    pub const RETRANSMISSION: Flags = Flags(1 << 6);
    /// Damaged in transit: the receiving host's checksum will reject it.
    pub const CORRUPT: Flags = Flags(1 << 7);
    /// A copy made by an impairment.
    pub const DUPLICATE: Flags = Flags(1 << 8);
    /// The last segment of an application's write (TCP's PSH).
    pub const PUSH: Flags = Flags(1 << 9);
    /// ECT(1) rather than ECT(0), always together with `ECT`: the sender is scalable (L4S, RFC 9331 section 4.1). It
    /// stays set with `CE`, so that counters can distinguish the classes; in an IP header, a mark hides it (RFC 3168
    /// section 5).
    pub const L4S: Flags = Flags(1 << 10);

    /// The third bit of accurate ECN's count of marks, beside `CWR` and `ECE` (RFC 9768).
    pub const AE: Flags = Flags(1 << 11);
    /// Belongs to the half of a TCP connection that carries requests: `ACK` gives its direction, and its data go in the
    /// reverse direction. No header has this bit: a TCP segment belongs to both halves.
    pub const REQUESTS: Flags = Flags(1 << 12);

    /// An acknowledgement's count of marked segments, modulo 8 (RFC 9768 section 3.2.2: ACE, of AE, CWR and ECE).
    #[must_use]
    pub const fn ace(self) -> u32 {
        (self.has(Flags::AE) as u32) << 2 | (self.has(Flags::CWR) as u32) << 1 | self.has(Flags::ECE) as u32
    }

    /// Sets the three bits to this count.
    #[must_use]
    pub const fn with_ace(self, count: u32) -> Flags {
        const OF: [u16; 8] = {
            let (e, c, a) = (Flags::ECE.0, Flags::CWR.0, Flags::AE.0);
            [0, e, c, c | e, a, a | e, a | c, a | c | e]
        };
        self.with(Flags(OF[count as usize & 7]))
    }

    /// Whether all bits of `other` are set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets the bits of `other`.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Clears the bits of `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

impl core::fmt::Debug for Flags {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        const NAMES: [&str; 13] =
            ["ACK", "SYN", "ECT", "CE", "ECE", "CWR", "RETX", "CORRUPT", "DUP", "PUSH", "L4S", "AE", "REQ"];
        let set: Vec<&str> = (0..NAMES.len()).filter(|i| self.0 >> i & 1 == 1).map(|i| NAMES[i]).collect();
        f.write_str(&set.join("|"))
    }
}

/// The initial value of accurate ECN's count, so that a peer that clears the bits does not look like one that counts
/// (RFC 9768 section 3.2.2.1).
pub const ACE_OFFSET: u32 = 5;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet {
    /// When it is (or will be) at its current place.
    pub time: Time,
    /// Its next step: an index into the run's compiled paths.
    pub cursor: u32,
    /// Bytes on the wire.
    pub size: u16,
    /// Header bits. Fields from here on do not change in transit and are copied as one piece.
    pub flags: Flags,
    /// Its flow.
    pub flow: FlowId,
    /// Data: the segment's number. Acknowledgement: the next segment expected (cumulative).
    pub seq: u32,
    /// Data: the sender's clock. Acknowledgement: the echo of the data packet's stamp.
    pub stamp: Stamp,
    /// The side record, for fields that few packets carry.
    pub extra: ExtraId,
}

/// Bytes of the IPv4 (without options) and UDP headers.
pub const UDP_IPV4: usize = 28;

impl Packet {
    /// The cursor of a packet that goes no further.
    pub const NOWHERE: u32 = u32::MAX;
}

const _: () = assert!(size_of::<Packet>() == 32, "a packet must stay two to a cache line");

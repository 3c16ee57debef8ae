//! What the kernel says of a TCP connection: `struct tcp_info` (`TCP_INFO`), the congestion control's name
//! (`TCP_CONGESTION`) and its own state (`TCP_CC_INFO`).
//!
//! The structure has grown with the kernel and only at its end: the kernel says how many bytes it filled in, and a field
//! that lies beyond them is `None`, not zero. Any bytes of any length are read without an error.

use super::wire::{u8_at, u16_at, u32_at, u64_at};
use paceline_units::{Rate, Size, Span};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The length of the longest `struct tcp_info` that is asked for; today's is 280 bytes.
const LONGEST: usize = 512;

/// `TCP_INFINITE_SSTHRESH`: the threshold of a connection that has seen no loss.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The state of a connection (RFC 9293, 3.3.2), by the kernel's numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "the names are RFC 9293's")]
pub enum State {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    Closed,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    /// A connection that is not established yet, as the kernel lists it (`TCP_NEW_SYN_RECV`).
    Request,
}

impl State {
    /// All, in the order of the kernel's numbers, which begin with 1.
    pub const ALL: [State; 12] = [
        State::Established,
        State::SynSent,
        State::SynReceived,
        State::FinWait1,
        State::FinWait2,
        State::TimeWait,
        State::Closed,
        State::CloseWait,
        State::LastAck,
        State::Listen,
        State::Closing,
        State::Request,
    ];

    /// The state with the kernel's number.
    #[must_use]
    pub fn of(number: u8) -> Option<State> {
        State::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The kernel's number.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Its name, in lower case with hyphens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::Established => "established",
            State::SynSent => "syn-sent",
            State::SynReceived => "syn-received",
            State::FinWait1 => "fin-wait-1",
            State::FinWait2 => "fin-wait-2",
            State::TimeWait => "time-wait",
            State::Closed => "closed",
            State::CloseWait => "close-wait",
            State::LastAck => "last-ack",
            State::Listen => "listen",
            State::Closing => "closing",
            State::Request => "request",
        }
    }
}

/// A reading of `struct tcp_info`. `None`: this kernel does not say, or there is no such value yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// The connection's state.
    pub state: Option<State>,
    /// What the congestion control is at: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss (`enum tcp_ca_state`).
    pub ca_state: Option<u8>,
    /// Expiries of the retransmission timer in a row, without an answer.
    pub backoff: Option<u8>,
    /// Whether the latest delivery rate was limited by the application.
    pub app_limited: Option<bool>,
    /// The retransmission timeout.
    pub rto: Option<Span>,
    /// Payload of a segment that is sent.
    pub snd_mss: Option<Size>,
    /// Payload of a segment that is received, as guessed.
    pub rcv_mss: Option<Size>,
    /// Segments sent and not acknowledged.
    pub unacked_packets: Option<u32>,
    /// Of these, acknowledged selectively.
    pub sacked_packets: Option<u32>,
    /// Of these, taken as lost at present. Not a count over time: see `retransmitted_packets`.
    pub lost_packets: Option<u32>,
    /// Of these, retransmitted and not acknowledged yet.
    pub retrans_packets: Option<u32>,
    /// Path MTU.
    pub pmtu: Option<Size>,
    /// Smoothed round-trip time (RFC 6298).
    pub srtt: Option<Span>,
    /// Its mean deviation, as the kernel keeps it.
    pub rttvar: Option<Span>,
    /// Least round-trip time over the last minutes (`tcp_min_rtt_wlen`).
    pub min_rtt: Option<Span>,
    /// Slow-start threshold; none before a first loss.
    pub ssthresh_packets: Option<u32>,
    /// Congestion window.
    pub cwnd_packets: Option<u32>,
    /// Reordering that is allowed for.
    pub reordering_packets: Option<u32>,
    /// Round-trip time as the receiving side sees it; none before it has one.
    pub rcv_rtt: Option<Span>,
    /// Segments retransmitted in all.
    pub retransmitted_packets: Option<u32>,
    /// The rate at which segments are paced out; none: unlimited.
    pub pacing_rate: Option<Rate>,
    /// Bytes acknowledged in all, the SYN's and the FIN's one each included (RFC 4898, tcpEStatsAppHCThruOctetsAcked).
    pub bytes_acked: Option<u64>,
    /// Bytes received in order in all; the SYN and the FIN count as one byte each.
    pub bytes_received: Option<u64>,
    /// Segments sent in all, ACKs and retransmissions included.
    pub segs_out: Option<u32>,
    /// Segments received in all.
    pub segs_in: Option<u32>,
    /// Bytes written by the application and never sent yet.
    pub notsent: Option<Size>,
    /// Segments with payload received.
    pub data_segs_in: Option<u32>,
    /// Segments with payload sent, retransmissions included.
    pub data_segs_out: Option<u32>,
    /// The latest sample of the rate at which the peer gets data; none before the first.
    pub delivery_rate: Option<Rate>,
    /// Time with data to send.
    pub busy: Option<Span>,
    /// Of it, held back by the receiver's window.
    pub rwnd_limited: Option<Span>,
    /// Of it, held back by the send buffer.
    pub sndbuf_limited: Option<Span>,
    /// Segments delivered in all, the SYN and copies included.
    pub delivered_packets: Option<u32>,
    /// Of these, with congestion experienced (RFC 3168).
    pub delivered_ce_packets: Option<u32>,
    /// Payload sent in all, retransmissions included.
    pub bytes_sent: Option<u64>,
    /// Payload retransmitted in all.
    pub bytes_retransmitted: Option<u64>,
    /// Copies that the receiver told of (RFC 2883).
    pub dsack_dups: Option<u32>,
    /// Times at which reordering was seen.
    pub reord_seen: Option<u32>,
    /// Segments received out of order.
    pub rcv_ooopack: Option<u32>,
    /// The peer's receive window.
    pub snd_wnd: Option<Size>,
    /// Expiries of the retransmission timer in all.
    pub timeouts: Option<u16>,
    /// Series of such expiries in all (a first one and its backed-off ones are one).
    pub timeout_series: Option<u16>,
}

impl TcpInfo {
    /// Reads as much as there is.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> TcpInfo {
        let micros = |at| u32_at(bytes, at).map(|n| Span::from_micros(u64::from(n)));
        let long_micros = |at| u64_at(bytes, at).map(|n| Span(n.saturating_mul(1000)));
        let size = |at| u32_at(bytes, at).map(|n| Size::from_bytes(u64::from(n)));
        let count = |at| u32_at(bytes, at);
        TcpInfo {
            state: u8_at(bytes, 0).and_then(State::of),
            ca_state: u8_at(bytes, 1),
            backoff: u8_at(bytes, 4),
            // the lowest bit of the byte of bit fields after the window scales
            app_limited: bit(bytes, 7),
            rto: micros(8),
            snd_mss: size(16),
            rcv_mss: size(20),
            unacked_packets: count(24),
            sacked_packets: count(28),
            lost_packets: count(32),
            retrans_packets: count(36),
            pmtu: size(60),
            srtt: micros(68).filter(|srtt| srtt.0 > 0),
            rttvar: micros(72).filter(|_| u32_at(bytes, 68) != Some(0)),
            ssthresh_packets: count(76).filter(|&n| n < INFINITE_SSTHRESH),
            cwnd_packets: count(80),
            reordering_packets: count(88),
            rcv_rtt: micros(92).filter(|rtt| rtt.0 > 0),
            retransmitted_packets: count(100),
            pacing_rate: u64_at(bytes, 104).and_then(bytes_a_second),
            bytes_acked: u64_at(bytes, 120),
            bytes_received: u64_at(bytes, 128),
            segs_out: count(136),
            segs_in: count(140),
            notsent: size(144),
            // all ones before a first sample
            min_rtt: u32_at(bytes, 148).filter(|&n| n != u32::MAX).map(|n| Span::from_micros(u64::from(n))),
            data_segs_in: count(152),
            data_segs_out: count(156),
            delivery_rate: u64_at(bytes, 160).filter(|&n| n > 0).and_then(bytes_a_second),
            busy: long_micros(168),
            rwnd_limited: long_micros(176),
            sndbuf_limited: long_micros(184),
            delivered_packets: count(192),
            delivered_ce_packets: count(196),
            bytes_sent: u64_at(bytes, 200),
            bytes_retransmitted: u64_at(bytes, 208),
            dsack_dups: count(216),
            reord_seen: count(220),
            rcv_ooopack: count(224),
            snd_wnd: size(228),
            timeouts: u16_at(bytes, 240),
            timeout_series: u16_at(bytes, 242),
        }
    }

    /// Reads a TCP socket's (`getsockopt(2)`, `TCP_INFO`; 2 to 6 microseconds).
    ///
    /// # Errors
    /// The system's: ENOPROTOOPT or EOPNOTSUPP if it is no TCP socket.
    pub fn read(socket: impl AsFd) -> io::Result<TcpInfo> {
        let mut bytes = [0; LONGEST];
        let len = option(socket, libc::TCP_INFO, &mut bytes)?;
        Ok(TcpInfo::parse(&bytes[..len]))
    }
}

fn bit(bytes: &[u8], at: usize) -> Option<bool> {
    // Bit fields begin at the lowest bit on little-endian machines, at the highest on the others.
    let mask = if cfg!(target_endian = "little") { 0x01 } else { 0x80 };
    u8_at(bytes, at).map(|byte| byte & mask != 0)
}

/// All ones mean no limit.
fn bytes_a_second(n: u64) -> Option<Rate> {
    (n != u64::MAX).then(|| Rate::from_bps(n.saturating_mul(8)))
}

/// What a congestion control says of itself (`union tcp_cc_info`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CcInfo {
    /// Vegas and its kin.
    Vegas {
        /// Whether it is on.
        enabled: bool,
        /// Round-trip times measured in this round.
        samples: u32,
        /// The least of them; none before a first one.
        rtt: Option<Span>,
        /// The least of all; none before a first one.
        base_rtt: Option<Span>,
    },
    /// BBR.
    Bbr {
        /// The bottleneck's estimated rate.
        bandwidth: Rate,
        /// The least round-trip time.
        min_rtt: Span,
        /// Pacing rate by bandwidth.
        pacing_gain: f64,
        /// Window by bandwidth-delay product.
        cwnd_gain: f64,
    },
}

impl CcInfo {
    /// Reads what the congestion control of that name has filled in; `None` for others, and if it is too short.
    #[must_use]
    pub fn parse(name: &str, bytes: &[u8]) -> Option<CcInfo> {
        // struct tcpvegas_info; all ones before a first round-trip time
        let rtt = |at| Some(u32_at(bytes, at)?).map(|n| (n < u32::MAX / 2).then(|| Span::from_micros(n.into())));
        // struct tcp_bbr_info; gains in 1/256
        let gain = |at| u32_at(bytes, at).map(|n| f64::from(n) / 256.0);
        match name {
            "vegas" | "yeah" | "illinois" | "nv" => Some(CcInfo::Vegas {
                enabled: u32_at(bytes, 0)? != 0,
                samples: u32_at(bytes, 4)?,
                rtt: rtt(8)?,
                base_rtt: rtt(12)?,
            }),
            "bbr" => Some(CcInfo::Bbr {
                bandwidth: {
                    let n = u64::from(u32_at(bytes, 0)?) | u64::from(u32_at(bytes, 4)?) << 32;
                    Rate::from_bps(n.saturating_mul(8))
                },
                min_rtt: Span::from_micros(u32_at(bytes, 8)?.into()),
                pacing_gain: gain(12)?,
                cwnd_gain: gain(16)?,
            }),
            _ => None,
        }
    }

    /// Reads that of a TCP socket whose congestion control has this name; `None` of those that have none.
    ///
    /// # Errors
    /// The system's.
    pub fn of(socket: impl AsFd, name: &str) -> io::Result<Option<CcInfo>> {
        // Without a question to the kernel for those that say nothing.
        if CcInfo::parse(name, &[0; 64]).is_none() {
            return Ok(None);
        }
        let mut bytes = [0; 64];
        let len = option(socket, libc::TCP_CC_INFO, &mut bytes)?;
        Ok(CcInfo::parse(name, &bytes[..len]))
    }
}

/// The name of a TCP socket's congestion control (`TCP_CONGESTION`).
///
/// # Errors
/// The system's.
pub fn congestion_control(socket: impl AsFd) -> io::Result<String> {
    Ok(rustix::net::sockopt::tcp_congestion(socket)?)
}

/// The congestion controls that a socket can be given here (`/proc/sys/net/ipv4/tcp_available_congestion_control`).
///
/// # Errors
/// If the file cannot be read.
pub fn available() -> io::Result<Vec<String>> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Fills `bytes` with an option of level TCP; gives how many the kernel wrote.
fn option(socket: impl AsFd, name: libc::c_int, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = bytes.len() as libc::socklen_t;
    // SAFETY: `bytes` is writable for `len` bytes, which is how many the kernel writes at most; the descriptor is borrowed,
    // hence open.
    let done = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), libc::IPPROTO_TCP, name, bytes.as_mut_ptr().cast(), &raw mut len)
    };
    if done == 0 { Ok((len as usize).min(bytes.len())) } else { Err(io::Error::last_os_error()) }
}

/// Has a TCP socket called writable only while fewer bytes than this are unsent (`TCP_NOTSENT_LOWAT`).
pub(super) fn set_unsent(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// Bounds the segments of a connection that is yet to be opened, both ways (`TCP_MAXSEG`): payload and TCP's options together.
pub(crate) fn set_most_segment(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes)
}

/// Bounds the window that a TCP socket advertises, in bytes (`TCP_WINDOW_CLAMP`). What it has advertised before still holds.
pub(crate) fn set_most_window(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

/// Has a socket reset its connection when it is closed (`SO_LINGER` of zero).
pub(super) fn reset_on_close(socket: impl AsFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, libc::linger { l_onoff: 1, l_linger: 0 })
}

fn set_option<T: Copy>(socket: impl AsFd, level: libc::c_int, name: libc::c_int, value: T) -> io::Result<()> {
    // SAFETY: `value` is readable for its size, which is the length given; the descriptor is borrowed, hence open.
    let done = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_and_a_shorter_reading_agrees_with_a_longer(
            bytes in prop::collection::vec(any::<u8>(), 0..400), cut in 0usize..400
        ) {
            let whole = TcpInfo::parse(&bytes);
            let short = TcpInfo::parse(&bytes[..cut.min(bytes.len())]);
            if cut >= 104 && bytes.len() >= 104 {
                prop_assert_eq!(short.cwnd_packets, whole.cwnd_packets);
                prop_assert_eq!(short.srtt, whole.srtt);
            }
            if cut < 136 { prop_assert_eq!(short.bytes_received, None); }
            if cut < 244 { prop_assert_eq!(short.timeout_series, None); }
            for name in ["vegas", "bbr", "reno", ""] {
                let _ = CcInfo::parse(name, &bytes);
            }
        }
    }

    #[test]
    fn an_old_kernels_104_bytes_have_what_they_had() {
        let mut bytes = [0u8; 104];
        bytes[0] = 1;
        bytes[68..72].copy_from_slice(&25_000u32.to_ne_bytes());
        bytes[76..80].copy_from_slice(&INFINITE_SSTHRESH.to_ne_bytes());
        bytes[80..84].copy_from_slice(&10u32.to_ne_bytes());
        bytes[100..104].copy_from_slice(&3u32.to_ne_bytes());
        let info = TcpInfo::parse(&bytes);
        assert_eq!(info.state, Some(State::Established));
        assert_eq!(info.srtt, Some(Span::from_millis(25)));
        assert_eq!((info.cwnd_packets, info.ssthresh_packets), (Some(10), None));
        assert_eq!(info.retransmitted_packets, Some(3));
        assert_eq!((info.bytes_acked, info.pacing_rate, info.min_rtt), (None, None, None));
    }

    #[test]
    fn bbrs_numbers() {
        let mut bytes = Vec::new();
        for n in [1_250_000u32, 0, 50_000, 739, 512] {
            bytes.extend_from_slice(&n.to_ne_bytes());
        }
        let found = CcInfo::parse("bbr", &bytes);
        let Some(CcInfo::Bbr { bandwidth, min_rtt, pacing_gain, cwnd_gain }) = found else { panic!("{found:?}") };
        assert_eq!((bandwidth, min_rtt), (Rate::from_bps(10_000_000), Span::from_millis(50)));
        assert_eq!((pacing_gain, cwnd_gain), (739.0 / 256.0, 2.0));
        assert_eq!(CcInfo::parse("bbr", &bytes[..19]), None);
        assert_eq!(CcInfo::parse("cubic", &bytes), None);
    }
}

//! What the kernel reports about a TCP connection: `struct tcp_info` (`TCP_INFO`), the congestion control's name
//! (`TCP_CONGESTION`) and its own state (`TCP_CC_INFO`).
//!
//! Newer kernels append fields to the structure. The kernel returns how many bytes it filled in; a field beyond them is
//! `None`, not zero. Input of any length and content is parsed without an error.

use crate::netlink::{u8_at, u16_at, u32_at, u64_at};
use paceline_units::{Rate, Size, Span};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Buffer size for `struct tcp_info`; today's structure has 280 bytes.
const LONGEST: usize = 512;

/// `TCP_INFINITE_SSTHRESH`: the slow-start threshold of a connection without a loss so far.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The state of a connection (RFC 9293, 3.3.2), with the kernel's numbers.
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
    /// All states, in the order of the kernel's numbers, which begin with 1.
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

    /// The state with this kernel number.
    #[must_use]
    pub fn of(number: u8) -> Option<State> {
        State::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The kernel's number.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The state's name, in lower case with hyphens.
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

/// A reading of `struct tcp_info`. `None`: this kernel does not report the field, or there is no such value yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpInfo {
    /// The connection's state.
    pub state: Option<State>,
    /// State of the congestion control: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss (`enum tcp_ca_state`).
    pub ca_state: Option<u8>,
    /// Consecutive expiries of the retransmission timer, without an answer.
    pub backoff: Option<u8>,
    /// Whether the latest delivery rate was limited by the application.
    pub app_limited: Option<bool>,
    /// The retransmission timeout.
    pub rto: Option<Span>,
    /// Payload of a sent segment.
    pub snd_mss: Option<Size>,
    /// Payload of a received segment, as the kernel estimates it.
    pub rcv_mss: Option<Size>,
    /// Segments sent and not acknowledged.
    pub unacked_packets: Option<u32>,
    /// Of these, selectively acknowledged segments.
    pub sacked_packets: Option<u32>,
    /// Of these, segments currently considered lost. Not a count over time: see `retransmitted_packets`.
    pub lost_packets: Option<u32>,
    /// Of these, segments retransmitted and not acknowledged yet.
    pub retrans_packets: Option<u32>,
    /// Path MTU.
    pub pmtu: Option<Size>,
    /// Smoothed round-trip time (RFC 6298).
    pub srtt: Option<Span>,
    /// Mean deviation of the round-trip time, as the kernel keeps it.
    pub rttvar: Option<Span>,
    /// Minimum round-trip time over the last minutes (`tcp_min_rtt_wlen`).
    pub min_rtt: Option<Span>,
    /// Slow-start threshold; `None` before a first loss.
    pub ssthresh_packets: Option<u32>,
    /// Congestion window.
    pub cwnd_packets: Option<u32>,
    /// Reordering that the sender tolerates.
    pub reordering_packets: Option<u32>,
    /// Round-trip time as estimated by the receiving side; `None` before its first estimate.
    pub rcv_rtt: Option<Span>,
    /// Total number of retransmitted segments.
    pub retransmitted_packets: Option<u32>,
    /// Pacing rate; `None`: unlimited.
    pub pacing_rate: Option<Rate>,
    /// Total bytes acknowledged, including one each for the SYN and the FIN (RFC 4898, tcpEStatsAppHCThruOctetsAcked).
    pub bytes_acked: Option<u64>,
    /// Total bytes received in order, including one each for the SYN and the FIN.
    pub bytes_received: Option<u64>,
    /// Total segments sent, ACKs and retransmissions included.
    pub segs_out: Option<u32>,
    /// Total segments received.
    pub segs_in: Option<u32>,
    /// Bytes that the application has written and that have never been sent.
    pub notsent: Option<Size>,
    /// Segments with payload received.
    pub data_segs_in: Option<u32>,
    /// Segments with payload sent, retransmissions included.
    pub data_segs_out: Option<u32>,
    /// Latest sample of the delivery rate; `None` before the first.
    pub delivery_rate: Option<Rate>,
    /// Time with data to send.
    pub busy: Option<Span>,
    /// Of it, time limited by the receive window.
    pub rwnd_limited: Option<Span>,
    /// Of it, time limited by the send buffer.
    pub sndbuf_limited: Option<Span>,
    /// Total segments delivered, the SYN and duplicates included.
    pub delivered_packets: Option<u32>,
    /// Of these, segments with congestion experienced (RFC 3168).
    pub delivered_ce_packets: Option<u32>,
    /// Total payload sent, retransmissions included.
    pub bytes_sent: Option<u64>,
    /// Total payload retransmitted.
    pub bytes_retransmitted: Option<u64>,
    /// Duplicates that the receiver reported (D-SACK, RFC 2883).
    pub dsack_dups: Option<u32>,
    /// Number of times that reordering was seen.
    pub reord_seen: Option<u32>,
    /// Segments received out of order.
    pub rcv_ooopack: Option<u32>,
    /// The peer's receive window.
    pub snd_wnd: Option<Size>,
    /// Total expiries of the retransmission timer.
    pub timeouts: Option<u16>,
    /// Total series of such expiries (an expiry and its backed-off successors are one series).
    pub timeout_series: Option<u16>,
}

impl TcpInfo {
    /// Parses as many fields as `bytes` holds.
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
            // all ones before the first sample
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

    /// Reads a TCP socket's `tcp_info` (`getsockopt(2)`, `TCP_INFO`; takes 2 to 6 microseconds).
    ///
    /// # Errors
    /// The system's: ENOPROTOOPT or EOPNOTSUPP if it is not a TCP socket.
    pub fn read(socket: impl AsFd) -> io::Result<TcpInfo> {
        let mut bytes = [0; LONGEST];
        let len = option(socket, libc::TCP_INFO, &mut bytes)?;
        Ok(TcpInfo::parse(&bytes[..len]))
    }
}

fn bit(bytes: &[u8], at: usize) -> Option<bool> {
    // Bit fields begin at the lowest bit on little-endian machines, at the highest on big-endian ones.
    let mask = if cfg!(target_endian = "little") { 0x01 } else { 0x80 };
    u8_at(bytes, at).map(|byte| byte & mask != 0)
}

/// All ones mean no limit.
fn bytes_a_second(n: u64) -> Option<Rate> {
    (n != u64::MAX).then(|| Rate::from_bps(n.saturating_mul(8)))
}

/// A congestion control's report about itself (`union tcp_cc_info`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CcInfo {
    /// Vegas and its relatives.
    Vegas {
        /// Whether it is on.
        enabled: bool,
        /// Round-trip times measured in this round.
        samples: u32,
        /// The minimum of them; `None` before the first.
        rtt: Option<Span>,
        /// The minimum of all; `None` before the first.
        base_rtt: Option<Span>,
    },
    /// BBR.
    Bbr {
        /// Estimated rate of the bottleneck.
        bandwidth: Rate,
        /// Minimum round-trip time.
        min_rtt: Span,
        /// Pacing rate relative to the bandwidth.
        pacing_gain: f64,
        /// Window relative to the bandwidth-delay product.
        cwnd_gain: f64,
    },
}

impl CcInfo {
    /// Parses what the congestion control of that name has filled in; `None` for other names, and if `bytes` is too
    /// short.
    #[must_use]
    pub fn parse(name: &str, bytes: &[u8]) -> Option<CcInfo> {
        // struct tcpvegas_info; all ones before the first round-trip time
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

    /// Reads the report of a TCP socket whose congestion control has this name; `None` for controls without a report.
    ///
    /// # Errors
    /// The system's.
    pub fn of(socket: impl AsFd, name: &str) -> io::Result<Option<CcInfo>> {
        // No system call for controls that have no report.
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

/// The congestion controls available to a socket (`/proc/sys/net/ipv4/tcp_available_congestion_control`).
///
/// # Errors
/// If the file cannot be read.
pub fn available() -> io::Result<Vec<String>> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(text.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Reads a socket option of level TCP into `bytes`; returns how many bytes the kernel wrote.
fn option(socket: impl AsFd, name: libc::c_int, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = bytes.len() as libc::socklen_t;
    // SAFETY: `bytes` is writable for `len` bytes, and the kernel writes at most that many; the descriptor is borrowed,
    // hence open.
    let done = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), libc::IPPROTO_TCP, name, bytes.as_mut_ptr().cast(), &raw mut len)
    };
    if done == 0 { Ok((len as usize).min(bytes.len())) } else { Err(io::Error::last_os_error()) }
}

/// Makes the kernel report a TCP socket as writable only while fewer than `bytes` bytes are unsent
/// (`TCP_NOTSENT_LOWAT`).
pub(super) fn set_unsent(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

/// Limits the segments of a connection that is not yet open, in both directions (`TCP_MAXSEG`): payload plus TCP
/// options.
pub(crate) fn set_max_segment(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, bytes)
}

/// Limits the window that a TCP socket advertises, in bytes (`TCP_WINDOW_CLAMP`). A window advertised before still
/// holds.
pub(crate) fn set_window_clamp(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

/// Makes a socket reset its connection on close (`SO_LINGER` of zero).
pub(super) fn reset_on_close(socket: impl AsFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, libc::linger { l_onoff: 1, l_linger: 0 })
}

fn set_option<T: Copy>(socket: impl AsFd, level: libc::c_int, name: libc::c_int, value: T) -> io::Result<()> {
    // SAFETY: `value` is readable for its size, which is the length passed; the descriptor is borrowed, hence open.
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

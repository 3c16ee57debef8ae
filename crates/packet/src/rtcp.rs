//! The content of RTCP compound packets (RFC 3550 section 6, RFC 8888, RFC 6679, RFC 4585, RFC 5506), as plain values;
//! [`crate::wire::rtcp`] writes and reads them.

mod ecn;
mod nack_pli;
mod twcc;

pub use ecn::{EcnCounts, EcnFeedback, EcnSummary};
pub use nack_pli::{Nack, Repair};
pub use twcc::{ArrivalDelta, ReferenceTime, TransportFeedback};

use crate::ntp::{Ntp, NtpMiddle, NtpSpan};
use crate::rtp::Ssrc;
use crate::wire::rtcp::transport_len;
use paceline_units::{Rate, Ratio, Span};
use std::sync::Arc;

/// A compound packet (RFC 3550 section 6.1), or one of reduced size (RFC 5506), from one participant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compound {
    /// The reporting participant.
    pub ssrc: Ssrc,
    /// A sender's information on its own stream, which makes this a sender report (SR); without it, a receiver report
    /// (RR).
    pub sender: Option<SenderInfo>,
    /// A block for each source received since the last report. The first packet holds 31; the rest go into further
    /// receiver reports.
    pub reports: Vec<ReportBlock>,
    /// The canonical name, which every compound packet carries (SDES CNAME, section 6.5.1): at most 255 bytes. Empty in
    /// one that was read without it.
    pub cname: Arc<str>,
    /// Application-defined packets (APP, section 6.7).
    pub apps: Vec<App>,
    /// Arrivals of individual packets (RFC 8888).
    pub arrivals: Option<ArrivalFeedback>,
    /// Arrivals by transport-wide sequence numbers, in the order of sending.
    pub transport: Vec<TransportFeedback>,
    /// The participant's ECN counts of sources, as immediate feedback (RFC 6679 section 5.1).
    pub ecn: Vec<EcnFeedback>,
    /// The ECN counts that accompany its report blocks (section 5.2).
    pub ecn_summary: Vec<EcnSummary>,
    /// Requests for retransmissions or key frames (RFC 4585).
    pub repair: Vec<Repair>,
    /// The participant leaves (BYE, section 6.6).
    pub bye: Option<Bye>,
    /// Whether feedback is sent alone, without a report and a CNAME (RFC 5506 section 4.1); then there is nothing else
    /// but `ssrc`.
    pub reduced: bool,
}

/// A sender's information on its own stream (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderInfo {
    /// When the report was sent.
    pub ntp: Ntp,
    /// The same instant, on the clock of its data's timestamps.
    pub rtp: u32,
    /// Data packets sent so far, modulo 2^32.
    pub packets: u32,
    /// Payload bytes sent so far, modulo 2^32.
    pub octets: u32,
}

/// A receiver's report on one source (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReportBlock {
    /// The source.
    pub ssrc: Ssrc,
    /// The fraction lost of the packets expected since the last report, in units of 1/256, rounded down.
    pub fraction_lost: u8,
    /// Packets expected less packets received, from the start; negative if there were more duplicates than losses. The
    /// field has 24 bits: values out of range are clamped ([`ReportBlock::CUMULATIVE_MIN`],
    /// [`ReportBlock::CUMULATIVE_MAX`]).
    pub cumulative_lost: i32,
    /// The highest sequence number received, with the number of its cycles in the upper 16 bits.
    pub extended_highest: u32,
    /// Interarrival jitter in ticks of the data's timestamps (section 6.4.1 and appendix A.8).
    pub jitter: u32,
    /// LSR: the middle of the NTP timestamp of the last sender report; [`NtpMiddle::NONE`] if none has arrived.
    pub lsr: NtpMiddle,
    /// DLSR: from the arrival of that sender report to this report; zero if none has arrived.
    pub dlsr: NtpSpan,
}

impl ReportBlock {
    /// The minimum cumulative loss that the field holds.
    pub const CUMULATIVE_MIN: i32 = -0x80_0000;
    /// The maximum.
    pub const CUMULATIVE_MAX: i32 = 0x7f_ffff;

    /// The fraction lost in the field's units, rounded down (RFC 3550 appendix A.3), from the packets expected and
    /// received since the last report: zero without a loss; a loss of all, which would be 256, is sent as 255.
    #[must_use]
    pub const fn fraction_of(expected: u32, received: u32) -> u8 {
        (Loss::fraction_of(expected, received) >> 24) as u8
    }

    /// The fraction lost.
    #[must_use]
    pub fn fraction(&self) -> Ratio {
        Ratio(f64::from(self.fraction_lost) / 256.0)
    }

    /// The round-trip time from a block that the source it reports on receives at `now`: now - LSR - DLSR (section
    /// 6.4.1); `None` if the receiver had no sender report. Rounding of the fields can cause an error of up to 30 us;
    /// the result is never negative.
    #[must_use]
    pub const fn round_trip(&self, now: Ntp) -> Option<Span> {
        if self.lsr.0 == NtpMiddle::NONE.0 {
            return None;
        }
        let echoed = NtpMiddle(self.lsr.0.wrapping_add(self.dlsr.0));
        Some(now.middle().since(echoed).span())
    }
}

/// An APP packet (RFC 3550 section 6.7). Paceline's have the name [`App::NAME`] and differ by subtype;
/// `docs/wire/rtcp.md` shows their formats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum App {
    /// Sender to receiver: which packets form a probe.
    Probe(Probe),
    /// Receiver to sender: the bottleneck's rate.
    Bottleneck(Bottleneck),
    /// Receiver to sender: the loss, in finer units than the report block's.
    Loss(Loss),
    /// Another application's packet.
    Other(OtherApp),
}

impl App {
    /// The name of Paceline's packets.
    pub const NAME: [u8; 4] = *b"PCLN";
}

/// A burst of back-to-back data packets, which a packet-pair estimator measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The sequence number of the burst's first packet.
    pub first: u16,
    /// The number of packets.
    pub count: u16,
}

/// A receiver's estimate of the bottleneck rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bottleneck {
    /// The source whose packets were measured.
    pub ssrc: Ssrc,
    /// The estimated rate.
    pub rate: Rate,
}

/// The fraction of packets lost since the last report in units of 2^-32; a report block has units of 1/256.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// The source.
    pub ssrc: Ssrc,
    /// The fraction, rounded down.
    pub fraction: u32,
}

impl Loss {
    /// The fraction in the field's units, rounded down, from the packets expected and received since the last report:
    /// zero without a loss; a loss of all, which would be 2^32, is sent as one less.
    #[must_use]
    pub const fn fraction_of(expected: u32, received: u32) -> u32 {
        if expected <= received {
            return 0;
        }
        let fraction = ((expected - received) as u64 * (1 << 32)) / expected as u64;
        if fraction > u32::MAX as u64 { u32::MAX } else { fraction as u32 }
    }

    /// The fraction lost.
    #[must_use]
    pub fn fraction(&self) -> Ratio {
        Ratio(f64::from(self.fraction) / 4_294_967_296.0)
    }
}

/// An APP packet that is not Paceline's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherApp {
    /// Its name: ASCII letters, upper and lower case distinct.
    pub name: [u8; 4],
    /// Its subtype: 0 to 31.
    pub subtype: u8,
    /// Its data: a multiple of four bytes.
    pub data: Box<[u8]>,
}

/// Sources that leave (RFC 3550 section 6.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bye {
    /// The sources that leave: at most 31.
    pub sources: Vec<Ssrc>,
    /// The reason, at most 255 bytes.
    pub reason: Option<Arc<str>>,
}

/// Arrival times of individual packets (RFC 8888 section 3.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrivalFeedback {
    /// When the report was made; the offsets count back from it.
    pub reported: NtpMiddle,
    /// The arrivals of each source.
    pub streams: Vec<StreamArrivals>,
}

/// Arrivals of one source's packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamArrivals {
    /// The source.
    pub ssrc: Ssrc,
    /// The sequence number of the first packet reported on.
    pub begin: u16,
    /// That packet and those after it: at most [`StreamArrivals::MAX`].
    pub packets: Vec<Arrival>,
}

impl StreamArrivals {
    /// The maximum number of packets in a report on one source (RFC 8888 section 3.1).
    pub const MAX: usize = 16_384;
}

/// The arrival of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It has not arrived yet.
    Missing,
    /// It has arrived. Of duplicates, the first counts, except for the mark: CE if any copy had it.
    Received {
        /// The ECN field of its IP header.
        ecn: Ecn,
        /// How long before the report it arrived.
        offset: ArrivalOffset,
    },
}

/// The ECN field of an IP header (RFC 3168 section 5), by its bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    NotEct = 0b00,
    /// ECN-capable; in L4S the identifier of its flows (RFC 9331).
    Ect1 = 0b01,
    /// ECN-capable.
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

/// How long before the report a packet arrived (RFC 8888 section 3.1): 13 bits, units of 1/1024 s.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct ArrivalOffset(u16);

impl ArrivalOffset {
    /// Longer ago than the field can hold: more than 8189/1024 s.
    pub const TOO_LONG: ArrivalOffset = ArrivalOffset(0x1ffe);
    /// Not measured, or after the report's timestamp.
    pub const UNAVAILABLE: ArrivalOffset = ArrivalOffset(0x1fff);

    /// An offset from the field's 13 bits; higher bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u16) -> ArrivalOffset {
        ArrivalOffset(bits & 0x1fff)
    }

    /// The field.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The nearest offset for a packet that arrived this long before the report.
    #[must_use]
    pub const fn nearest(ago: Span) -> ArrivalOffset {
        let units = (ago.0 as u128 * 1024 + 500_000_000) / 1_000_000_000;
        if units >= ArrivalOffset::TOO_LONG.0 as u128 { ArrivalOffset::TOO_LONG } else { ArrivalOffset(units as u16) }
    }

    /// How long before the report; `None` for the two special values.
    #[must_use]
    pub const fn span(self) -> Option<Span> {
        if self.0 >= ArrivalOffset::TOO_LONG.0 {
            None
        } else {
            Some(Span((self.0 as u64 * 1_000_000_000 + 512) / 1024))
        }
    }
}

impl Compound {
    /// Whether it has no CNAME although it is not of reduced size, against RFC 3550 section 6.1. Its reports and feedback
    /// are as valid as others'.
    #[must_use]
    pub fn lacks_cname(&self) -> bool {
        !self.reduced && self.cname.is_empty()
    }

    /// Bytes of the compound packet as encoded, without UDP and IP headers.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        let padded = |bytes: usize| bytes.next_multiple_of(4);
        let more = self.reports.len().saturating_sub(31).div_ceil(31);
        let report = 8 + 20 * usize::from(self.sender.is_some()) + 24 * self.reports.len() + 8 * more;
        // one chunk: SSRC, item header, text, and at least one zero byte up to a multiple of four (section 6.5)
        let sdes = 4 + padded(4 + 2 + self.cname.len() + 1);
        let head = if self.reduced { 0 } else { report + sdes };
        let apps = self.apps.iter().map(|app| {
            12 + match app {
                App::Probe(_) => 4,
                App::Bottleneck(_) => 12,
                App::Loss(_) => 8,
                App::Other(other) => other.data.len(),
            }
        });
        let arrivals = self
            .arrivals
            .as_ref()
            .map_or(0, |a| 12 + a.streams.iter().map(|stream| 8 + padded(2 * stream.packets.len())).sum::<usize>());
        let transport = self.transport.iter().map(|feedback| padded(8 + transport_len(feedback)));
        let ecn = EcnFeedback::WIRE_LEN * self.ecn.len();
        let summary = match self.ecn_summary.len() {
            0 => 0,
            // its packet's header and source, and the block's header
            count => 12 + EcnSummary::WIRE_LEN * count,
        };
        let repair = self.repair.iter().map(Repair::wire_len);
        let bye = self
            .bye
            .as_ref()
            .map_or(0, |bye| 4 + 4 * bye.sources.len() + bye.reason.as_ref().map_or(0, |text| padded(1 + text.len())));
        head + summary + apps.sum::<usize>() + arrivals + transport.sum::<usize>() + ecn + repair.sum::<usize>() + bye
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::Time;

    #[test]
    fn loss_is_rounded_down_in_both_units() {
        // a loss of 0.002, the paper's Fig. 11: zero in 8 bits, 1/500 in 32
        assert_eq!(ReportBlock::fraction_of(1000, 998), 0);
        assert_eq!(Loss::fraction_of(1000, 998), 8_589_934);
        assert_eq!(ReportBlock::fraction_of(256, 255), 1);
        assert_eq!(ReportBlock::fraction_of(100, 75), 64);
        for (expected, received) in [(0, 0), (10, 10), (10, 12), (0, 3)] {
            assert_eq!(Loss::fraction_of(expected, received), 0);
        }
        assert_eq!(Loss::fraction_of(7, 0), u32::MAX);
        assert_eq!(ReportBlock::fraction_of(7, 0), 255);
    }

    #[test]
    fn the_round_trip_of_rfc_3550_figure_2() {
        let block = ReportBlock {
            ssrc: Ssrc(1),
            fraction_lost: 0,
            cumulative_lost: 0,
            extended_highest: 0,
            jitter: 0,
            lsr: NtpMiddle(0xb705_2000),
            dlsr: NtpSpan(0x0005_4000),
        };
        let now = Ntp(0xb710_8000 << 16);
        assert_eq!(block.round_trip(now), Some(Span::from_millis(6_125)));
        assert_eq!(ReportBlock { lsr: NtpMiddle::NONE, ..block }.round_trip(now), None);
        assert_eq!(block.round_trip(Ntp(0xb700_0000 << 16)), Some(Span::ZERO));
    }

    #[test]
    fn a_round_trip_at_the_start_of_a_run_is_told_from_none() {
        let block = ReportBlock {
            ssrc: Ssrc(1),
            fraction_lost: 0,
            cumulative_lost: 0,
            extended_highest: 0,
            jitter: 0,
            lsr: NtpMiddle::at(Time::ZERO),
            dlsr: NtpSpan(0),
        };
        let sample = block.round_trip(Ntp::at(Time::from_secs_f64(0.2))).unwrap();
        assert!(sample.0.abs_diff(200_000_000) <= 15_259, "{sample:?}");
    }

    #[test]
    fn offsets_of_arrivals() {
        assert_eq!(ArrivalOffset::nearest(Span::from_secs(1)).bits(), 1024);
        assert_eq!(ArrivalOffset::nearest(Span::from_secs(1)).span(), Some(Span::from_secs(1)));
        assert_eq!(ArrivalOffset::nearest(Span::from_secs_f64(8189.0 / 1024.0)).bits(), 8189);
        assert_eq!(ArrivalOffset::nearest(Span::from_secs(8)), ArrivalOffset::TOO_LONG);
        // to the nearest 1/1024 s, and back to the nearest nanosecond
        assert_eq!(
            (ArrivalOffset::nearest(Span(488_281)).bits(), ArrivalOffset::nearest(Span(488_282)).bits()),
            (0, 1)
        );
        assert_eq!(ArrivalOffset::from_bits(3).span(), Some(Span(2_929_688)));
        assert_eq!(ArrivalOffset::TOO_LONG.span(), None);
        assert_eq!(ArrivalOffset::UNAVAILABLE.span(), None);
    }
}

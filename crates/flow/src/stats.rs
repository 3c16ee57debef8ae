//! Counters of senders and receivers, common to all machines.

use paceline_units::{Histogram, Span, Time};

/// Cumulative counters of a sender; use [`SenderStats::since`] to exclude a warm-up.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct SenderStats {
    /// Segments sent, including retransmissions and SYNs.
    pub packets_sent: u64,
    /// Integral of the congestion window over time: segments times seconds.
    pub window_integral: f64,
    /// The end of [`SenderStats::window_integral`].
    pub until: Time,
    /// Sum of round-trip time samples.
    pub rtt_sum: Span,
    /// Number of round-trip time samples: one for each acknowledgement of new data.
    pub rtt_count: u64,
    /// The minimum since the measurement began, or since the flow's start; `Span::MAX` without a sample.
    rtt_min: Span,
    /// The maximum over the same time.
    pub rtt_max: Span,
    /// Payload bytes acknowledged; for a machine without retransmission, sent.
    pub bytes_acked: u64,
    /// Distribution of the round-trip time samples.
    pub rtt: Histogram,
    /// The number of samples when the measurement began, and their minimum and maximum.
    measured_from: u64,
    rtt_before: (Span, Span),
    /// Segments retransmitted.
    pub retransmitted: u64,
    /// Expirations of the retransmission timer with data outstanding.
    pub timeouts: u64,
    /// Fast retransmits, triggered by duplicate ACKs, SACKs, or Vegas' fine-grained timer.
    pub fast_retransmits: u64,
    /// Window reductions by losses, marks and timeouts.
    pub window_cuts: u64,
    /// Window reductions by marks; included above.
    pub ecn_cuts: u64,
    /// When counting began.
    pub from: Time,
    /// Bytes of a full segment on the wire, and the total number of bytes by which sent segments were smaller. Full
    /// segments so cost nothing to count.
    pub(crate) full: u16,
    pub(crate) smaller: i64,
    /// Maximum congestion window in segments since the flow's start; zero without a window.
    pub window_max: f64,
    /// Timeouts without backoff: the first of a series.
    pub first_timeouts: u64,
    /// Sum of the lengths of these timeouts.
    pub first_timeout_sum: Span,
    /// The number of losses at which the controller had a base round-trip time, and the sum of these times in seconds.
    pub(crate) bases: u64,
    pub(crate) base_sum: f64,
    /// The number of reported loss event rates, and their sum (RFC 5348 section 3.2.2).
    pub(crate) loss_reports: u64,
    pub(crate) loss_event_rates: f64,
    /// Frames that the application wrote, if the machine has frames (QUIC).
    pub frames: u64,
    /// Frames given up at their deadline: not acknowledged by then, or, as datagrams, not sent.
    pub frames_reset: u64,
    /// Frames that a relay dropped because its queue was full, or that an RTP sender dropped because they had waited
    /// too long.
    pub frames_dropped: u64,
}

impl SenderStats {
    /// Creates counters at zero; a full segment has `full` bytes on the wire.
    #[must_use]
    pub fn new(full: u16) -> SenderStats {
        SenderStats {
            packets_sent: 0,
            window_integral: 0.0,
            until: Time::ZERO,
            rtt_sum: Span::ZERO,
            rtt_count: 0,
            rtt_min: Span::MAX,
            rtt_max: Span::ZERO,
            bytes_acked: 0,
            rtt: Histogram::default(),
            measured_from: 0,
            rtt_before: (Span::MAX, Span::ZERO),
            retransmitted: 0,
            timeouts: 0,
            fast_retransmits: 0,
            window_cuts: 0,
            ecn_cuts: 0,
            from: Time::ZERO,
            full,
            smaller: 0,
            window_max: 0.0,
            first_timeouts: 0,
            first_timeout_sum: Span::ZERO,
            bases: 0,
            base_sum: 0.0,
            loss_reports: 0,
            loss_event_rates: 0.0,
            frames: 0,
            frames_reset: 0,
            frames_dropped: 0,
        }
    }

    /// Counts a loss event rate that the receiver reported.
    pub(crate) fn loss_event_rate(&mut self, p: f64) {
        self.loss_reports += 1;
        self.loss_event_rates += p;
    }

    /// Mean of the reported loss event rates; `None` without one.
    #[must_use]
    pub fn mean_loss_event_rate(&self) -> Option<f64> {
        (self.loss_reports > 0).then(|| self.loss_event_rates / self.loss_reports as f64)
    }

    /// Counts a segment of `size` bytes on the wire.
    #[inline]
    pub fn sent(&mut self, size: u16) {
        self.packets_sent += 1;
        self.smaller += i64::from(self.full) - i64::from(size);
    }

    /// Bytes on the wire sent, retransmissions included.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        (self.packets_sent * u64::from(self.full)).saturating_add_signed(-self.smaller)
    }

    /// Counts a round-trip time sample.
    #[inline]
    pub fn round_trip(&mut self, rtt: Span) {
        self.rtt_sum += rtt;
        self.rtt_count += 1;
        if rtt > self.rtt_max {
            self.rtt_max = rtt;
        }
        if rtt < self.rtt_min {
            self.rtt_min = rtt;
        }
        self.rtt.count(rtt);
    }

    /// The flow starts or restarts; counters run from its first start.
    pub fn begin(&mut self, now: Time) {
        if self.packets_sent == 0 {
            self.until = now;
            self.from = now;
        }
    }

    /// Integrates the window, which was `window` up to `now`.
    #[inline]
    pub fn advance(&mut self, now: Time, window: f64) {
        self.window_integral += window * (now.since(self.until).0 as i64 as f64 * 1e-9);
        self.until = now;
    }

    /// Restarts the minimum and maximum of the round-trip time.
    pub(crate) fn begin_measuring(&mut self) {
        self.rtt_before = (self.lifetime_min_rtt(), self.rtt_before.1.max(self.rtt_max));
        (self.rtt_min, self.rtt_max) = (Span::MAX, Span::ZERO);
        self.measured_from = self.rtt_count;
    }

    /// The minimum round-trip time since the flow's start; `Span::MAX` without a sample.
    #[inline]
    pub(crate) fn lifetime_min_rtt(&self) -> Span {
        self.rtt_min.min(self.rtt_before.0)
    }

    /// The counters since `earlier`, a previous copy. Minimum and maximum of the round-trip time are exact if the copy
    /// was made when the measurement began. Otherwise they are bounds from the distribution, to its resolution (0.2 %
    /// or 1 us): no sample lies outside them.
    #[must_use]
    pub fn since(&self, earlier: &SenderStats) -> SenderStats {
        let rtt = self.rtt.since(&earlier.rtt);
        let (min, greatest) = if earlier.rtt_count == self.measured_from {
            (self.rtt_min, self.rtt_max)
        } else {
            let (min, greatest) = rtt.bounds().unwrap_or((Span::MAX, Span::ZERO));
            (min.max(self.lifetime_min_rtt()), greatest.min(self.rtt_max.max(self.rtt_before.1)))
        };
        SenderStats {
            packets_sent: self.packets_sent - earlier.packets_sent,
            window_integral: self.window_integral - earlier.window_integral,
            until: self.until,
            rtt_sum: self.rtt_sum - earlier.rtt_sum,
            rtt_count: self.rtt_count - earlier.rtt_count,
            rtt_min: min,
            rtt_max: greatest,
            rtt,
            measured_from: 0,
            rtt_before: (Span::MAX, Span::ZERO),
            retransmitted: self.retransmitted - earlier.retransmitted,
            timeouts: self.timeouts - earlier.timeouts,
            fast_retransmits: self.fast_retransmits - earlier.fast_retransmits,
            window_cuts: self.window_cuts - earlier.window_cuts,
            ecn_cuts: self.ecn_cuts - earlier.ecn_cuts,
            bytes_acked: self.bytes_acked - earlier.bytes_acked,
            // a flow that began after the warm-up counts from its start
            from: earlier.until.max(self.from),
            full: self.full,
            smaller: self.smaller - earlier.smaller,
            window_max: self.window_max,
            first_timeouts: self.first_timeouts - earlier.first_timeouts,
            first_timeout_sum: self.first_timeout_sum - earlier.first_timeout_sum,
            bases: self.bases - earlier.bases,
            base_sum: self.base_sum - earlier.base_sum,
            loss_reports: self.loss_reports - earlier.loss_reports,
            loss_event_rates: self.loss_event_rates - earlier.loss_event_rates,
            frames: self.frames - earlier.frames,
            frames_reset: self.frames_reset - earlier.frames_reset,
            frames_dropped: self.frames_dropped - earlier.frames_dropped,
        }
    }

    /// Mean congestion window in segments; `None` if no time has passed.
    #[must_use]
    pub fn mean_window(&self) -> Option<f64> {
        let seconds = self.until.since(self.from).as_secs_f64();
        (seconds > 0.0).then(|| self.window_integral / seconds)
    }

    /// Mean length of timeouts without backoff, T_0 of Padhye et al. (1998); `None` without one.
    #[must_use]
    pub fn mean_timeout(&self) -> Option<Span> {
        (self.first_timeouts > 0).then(|| self.first_timeout_sum / self.first_timeouts)
    }

    /// Mean of the controller's base round-trip times at losses by duplicate ACKs or timeout, in seconds; `None`
    /// without one.
    #[must_use]
    pub fn mean_base_rtt(&self) -> Option<f64> {
        (self.bases > 0).then(|| self.base_sum / self.bases as f64)
    }

    /// The number of losses at which the controller had a base round-trip time, and the sum of these times in seconds.
    #[must_use]
    pub fn base_rtts(&self) -> (u64, f64) {
        (self.bases, self.base_sum)
    }

    /// Minimum round-trip time; `None` without a sample.
    #[must_use]
    pub fn rtt_min(&self) -> Option<Span> {
        (self.rtt_count > 0).then_some(self.lifetime_min_rtt())
    }

    /// Mean round-trip time; `None` without a sample.
    #[must_use]
    pub fn mean_rtt(&self) -> Option<Span> {
        (self.rtt_count > 0).then(|| self.rtt_sum / self.rtt_count)
    }

    /// The round-trip time that the share `q` (0 to 1) of the samples does not exceed, to 0.2 %, clamped to minimum and
    /// maximum.
    #[must_use]
    pub fn rtt_quantile(&self, q: f64) -> Option<Span> {
        self.rtt.quantile(q, (self.lifetime_min_rtt(), self.rtt_max.max(self.rtt_before.1)))
    }
}

/// A copy of some counters of an inner sender, taken before and after a call that processes at most one report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    window_integral: f64,
    rtt_sum: Span,
    rtt_count: u64,
    timeouts: u64,
    window_cuts: u64,
    loss_reports: u64,
}

impl Counted {
    pub(crate) fn of(stats: &SenderStats) -> Counted {
        Counted {
            window_integral: stats.window_integral,
            rtt_sum: stats.rtt_sum,
            rtt_count: stats.rtt_count,
            timeouts: stats.timeouts,
            window_cuts: stats.window_cuts,
            loss_reports: stats.loss_reports,
        }
    }
}

impl SenderStats {
    /// Adds what an inner sender has counted; `p` is the loss event rate last reported to it. Returns its new
    /// round-trip time sample, if any.
    pub(crate) fn add(&mut self, before: &Counted, after: &Counted, p: f64) -> Option<Span> {
        self.window_integral += after.window_integral - before.window_integral;
        self.timeouts += after.timeouts - before.timeouts;
        self.window_cuts += after.window_cuts - before.window_cuts;
        if after.loss_reports > before.loss_reports {
            self.loss_event_rate(p);
        }
        let rtt = (after.rtt_count > before.rtt_count).then(|| after.rtt_sum - before.rtt_sum);
        if let Some(rtt) = rtt {
            self.round_trip(rtt);
        }
        rtt
    }
}

/// Cumulative counters of a receiver.
// Fields that change with every segment are not adjacent: the compiler would vectorize their increments, which costs
// more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct ReceiverStats {
    /// Segments received, duplicates included.
    pub packets: u64,
    /// Duplicate segments received.
    pub duplicates: u64,
    /// Bytes on the wire received.
    pub wire_bytes: u64,
    /// Segments that arrived marked (RFC 3168).
    pub marks: u64,
    /// Payload bytes delivered to the application: by TCP in order, by others as they arrive.
    pub bytes: u64,
    /// When the last segment arrived; zero before the first.
    pub last: Time,
    /// Acknowledgements sent.
    pub acks: u64,
}

impl ReceiverStats {
    /// Counts a received packet of `size` bytes on the wire.
    #[inline(always)]
    pub(crate) fn on_received(&mut self, now: Time, size: u16) {
        self.packets += 1;
        self.wire_bytes += u64::from(size);
        self.last = now;
    }

    /// The counters since `earlier`, a previous copy.
    #[must_use]
    pub fn since(&self, earlier: &ReceiverStats) -> ReceiverStats {
        ReceiverStats {
            packets: self.packets - earlier.packets,
            wire_bytes: self.wire_bytes - earlier.wire_bytes,
            bytes: self.bytes - earlier.bytes,
            duplicates: self.duplicates - earlier.duplicates,
            acks: self.acks - earlier.acks,
            marks: self.marks - earlier.marks,
            last: self.last,
        }
    }
}

/// What an arriving segment delivered to the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrived {
    /// Payload bytes.
    pub bytes: u64,
    /// Number of segments, excluding a SYN without payload.
    pub segments: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_exact_from_where_a_measurement_begins() {
        let ms = Span::from_micros;
        let mut stats = SenderStats::new(1500);
        stats.round_trip(ms(700_000));
        stats.begin_measuring();
        let before = stats.clone();
        assert_eq!(stats.since(&before).rtt_min(), None);
        stats.round_trip(ms(546_677));
        stats.round_trip(ms(546_999));
        let after = stats.since(&before);
        assert_eq!((after.rtt_min(), after.rtt_max), (Some(ms(546_677)), ms(546_999)));
        assert_eq!(stats.lifetime_min_rtt(), ms(546_677), "the controller's is of all");
        stats.round_trip(ms(800_000));
        stats.begin_measuring();
        let before = stats.clone();
        stats.round_trip(ms(600_000));
        assert_eq!((stats.since(&before).rtt_min(), stats.lifetime_min_rtt()), (Some(ms(600_000)), ms(546_677)));
    }

    #[test]
    fn no_percentile_exceeds_the_greatest() {
        let (mut stats, span) = (SenderStats::new(1500), Span(100_000_123));
        for _ in 0..100 {
            stats.round_trip(span);
        }
        let all = |stats: &SenderStats| [0.01, 0.5, 0.95, 0.99].map(|q| stats.rtt_quantile(q));
        assert_eq!(all(&stats), [Some(span); 4]);
        stats.begin_measuring();
        let before = stats.clone();
        assert_eq!((all(&stats), all(&stats.since(&before))), ([Some(span); 4], [None; 4]));
        stats.round_trip(span * 2);
        assert_eq!(all(&stats.since(&before)), [Some(span * 2); 4]);
    }

    #[test]
    fn extremes_from_elsewhere_on_enclose_the_mean() {
        let mut stats = SenderStats::new(1500);
        stats.round_trip(Span::from_micros(700_000));
        let before = stats.clone();
        stats.round_trip(Span::from_micros(546_677));
        let after = stats.since(&before);
        let mean = after.mean_rtt().unwrap();
        assert_eq!(mean, Span::from_micros(546_677));
        assert!(after.rtt_min().unwrap() <= mean && mean <= after.rtt_max, "{:?} {:?}", after.rtt_min(), after.rtt_max);
        assert!(after.rtt_max < Span::from_micros(548_000));
    }
}

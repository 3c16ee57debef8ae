//! Pacing of TFRC's packets (RFC 5348 sections 4.6 and 8.3), and of other senders without a window.
//!
//! The nominal time of packet i + 1 is that of packet i plus s / X_inst. Nominal times include fractions of a
//! nanosecond, so that the mean rate is exact.

use paceline_random::Sequence;
use paceline_units::{Span, Time};

/// The nominal times of the last and of the next packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    last: Time,
    /// A fraction of a nanosecond to add to `last`.
    fraction: f64,
    due: Time,
    due_fraction: f64,
    draws: Sequence,
    jitter: f64,
    /// The current gap is multiplied by `stretch` and extended by `extra` nanoseconds.
    stretch: f64,
    extra: f64,
    /// In nanoseconds.
    overhead: f64,
}

/// The maximum number of packets sent in one call. A report can contain any rate; without a limit, the other end could
/// keep the caller busy and fill its memory. 16,384 packets are a round trip of 100 ms at 2 Gbit/s.
pub(crate) const MAX_PACKETS_PER_CALL: u32 = 1 << 14;

/// A gap of s / X_inst with X_inst = `rate`, in nanoseconds; at least one, so that loops end at absurd rates.
fn gap(segment: f64, rate: f64) -> f64 {
    (segment * 1e9 / rate).max(1.0)
}

impl Pacer {
    pub(crate) fn new(jitter: f64, draws: Sequence) -> Pacer {
        Pacer {
            last: Time::ZERO,
            fraction: 0.0,
            due: Time::NEVER,
            due_fraction: 0.0,
            draws,
            jitter,
            stretch: 1.0,
            extra: 0.0,
            overhead: 0.0,
        }
    }

    /// Extends each gap by a random time from 0 to `overhead`.
    pub(crate) fn with_overhead(self, overhead: Span) -> Pacer {
        Pacer { overhead: overhead.0 as f64, ..self }
    }

    /// The nominal time of the last packet.
    #[inline]
    pub(crate) fn last(&self) -> Time {
        self.last
    }

    /// The nominal time of the next packet.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Allows the first packet now.
    pub(crate) fn start(&mut self, now: Time) {
        self.due = now;
        self.due_fraction = 0.0;
        self.last = now;
        self.fraction = 0.0;
    }

    /// No packet has waited until now, so the time that has passed gives no credit.
    #[inline]
    pub(crate) fn idle(&mut self, now: Time) {
        if self.due < now {
            self.due = now;
            self.due_fraction = 0.0;
        }
    }

    /// Charges a sent packet, and schedules the next one at `rate`. Unused times older than `credit` expire.
    #[inline]
    pub(crate) fn sent(&mut self, now: Time, credit: Span, segment: f64, rate: f64) {
        let oldest = now - credit;
        if self.due < oldest {
            self.due = oldest;
            self.due_fraction = 0.0;
        }
        self.last = self.due;
        self.fraction = self.due_fraction;
        if self.jitter > 0.0 {
            self.stretch = 1.0 + self.jitter * (2.0 * self.draws.unit() - 1.0);
        }
        if self.overhead > 0.0 {
            self.extra = self.overhead * self.draws.unit();
        }
        self.follow(segment, rate);
    }

    /// Schedules the next packet a gap after now, regardless of earlier ones (ns-2's timer).
    #[inline]
    pub(crate) fn restart(&mut self, now: Time, segment: f64, rate: f64) {
        self.due = now;
        self.due_fraction = 0.0;
        self.sent(now, Span::ZERO, segment, rate);
    }

    #[inline]
    fn follow(&mut self, segment: f64, rate: f64) {
        let nanos = gap(segment, rate) * self.stretch + self.extra + self.fraction;
        let whole = nanos as u64;
        self.due = self.last + Span(whole);
        self.due_fraction = nanos - whole as f64;
    }

    /// Makes the next packet due after `time` at the earliest, without credit: this call has sent enough packets, or
    /// the host's interface is full.
    #[cold]
    pub(crate) fn enough(&mut self, time: Time) {
        self.due = self.due.max(time + Span(1));
        self.due_fraction = 0.0;
    }

    /// Applies a new rate: a waiting packet is due a gap at the new rate after the last one, but not before now. A
    /// higher rate gives no credit for the past.
    pub(crate) fn repace(&mut self, now: Time, segment: f64, rate: f64) {
        if self.due <= now || self.due == Time::NEVER {
            return;
        }
        self.follow(segment, rate);
        if self.due < now {
            self.due = now;
            self.due_fraction = 0.0;
        }
    }

    /// Moves the due time, in steps of a gap at `rate`, to the first time after now (ns-2's timer keeps running while
    /// there is nothing to send).
    pub(crate) fn skip(&mut self, now: Time, segment: f64, rate: f64) {
        let gap = gap(segment, rate) as u64;
        let behind = now.since(self.due).0;
        self.due += Span((behind / gap + 1).saturating_mul(gap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_random::Stream;

    fn pacer(jitter: f64) -> Pacer {
        let mut pacer = Pacer::new(jitter, Sequence::new(Stream::new(1, "pacer")));
        pacer.start(Time::ZERO);
        pacer
    }

    #[test]
    fn section_4_6_the_rate_is_exact() {
        let mut pacer = pacer(0.0);
        for _ in 0..3_000_000 {
            pacer.sent(pacer.due(), Span::ZERO, 1000.0, 3e9);
        }
        // 3 million packets, one each 333.3 ns
        assert!(pacer.due().0.abs_diff(1_000_000_000) <= 1, "{:?}", pacer.due());
    }

    #[test]
    fn section_4_6_credit_for_a_round_trip_at_most() {
        let mut pacer = pacer(0.0);
        pacer.sent(Time::ZERO, Span::ZERO, 1000.0, 1e5); // a packet every 10 ms
        let now = Time::from_secs_f64(10.0);
        let mut sent = 0;
        while pacer.due() <= now {
            pacer.sent(now, Span::from_millis(50), 1000.0, 1e5);
            sent += 1;
        }
        assert_eq!(sent, 6); // at 9.95 s, ..., 10 s
        assert_eq!(pacer.due(), now + Span::from_millis(10));
    }

    #[test]
    fn a_higher_rate_counts_from_the_last_packet_and_makes_no_burst() {
        let mut pacer = pacer(0.0);
        pacer.sent(Time::ZERO, Span::ZERO, 1000.0, 1000.0);
        assert_eq!(pacer.due(), Time::from_secs_f64(1.0));
        pacer.repace(Time(50_000_000), 1000.0, 1e4);
        assert_eq!(pacer.due(), Time::from_secs_f64(0.1));
        pacer.repace(Time(50_000_000), 1000.0, 1e6);
        assert_eq!(pacer.due(), Time(50_000_000));
    }

    #[test]
    fn what_is_idle_begins_anew() {
        let mut pacer = pacer(0.0);
        pacer.sent(Time::ZERO, Span::ZERO, 1000.0, 1e6);
        pacer.idle(Time(500_000));
        assert_eq!(pacer.due(), Time(1_000_000), "the gap runs on");
        pacer.idle(Time(50_000_000));
        pacer.sent(Time(50_000_000), Span::from_millis(10), 1000.0, 1e6);
        assert_eq!(pacer.due(), Time(51_000_000));
    }

    #[test]
    fn jitter_keeps_the_mean() {
        let mut pacer = pacer(0.5);
        let (mut min, mut max) = (f64::MAX, 0.0_f64);
        for _ in 0..100_000 {
            let before = pacer.due();
            pacer.sent(before, Span::ZERO, 1000.0, 1e6);
            let gap = pacer.due().since(before).as_secs_f64() * 1e3;
            (min, max) = (min.min(gap), max.max(gap));
        }
        assert!((pacer.due().as_secs_f64() - 100.0).abs() < 0.3);
        assert!((0.499..0.502).contains(&min) && (1.498..1.501).contains(&max), "{min} {max}");
    }

    #[test]
    fn overhead_is_added_to_gaps_of_any_rate() {
        let mut pacer = pacer(0.0).with_overhead(Span::from_millis(4));
        let (mut min, mut max, mut sum) = (f64::MAX, 0.0_f64, 0.0);
        for i in 0..100_000 {
            let before = pacer.due();
            let rate = if i % 2 == 0 { 1e6 } else { 1e5 }; // 1 or 10 ms
            pacer.sent(before, Span::ZERO, 1000.0, rate);
            // the draw is kept when the rate changes
            pacer.repace(before, 1000.0, 1e6);
            let gap = pacer.due().since(before).as_secs_f64() * 1e3;
            (min, max, sum) = (min.min(gap), max.max(gap), sum + gap);
        }
        assert!((1.0..1.001).contains(&min) && (4.999..5.000001).contains(&max), "{min} {max}");
        assert!((sum / 1e5 - 3.0).abs() < 0.01, "{sum}"); // four standard errors: 4 / sqrt(12) / sqrt(1e5) * 4 = 0.015
    }
}

//! Whether the sender was data-limited in the interval that a report covers (RFC 5348 section 8.2.1).

use paceline_control::Interval;
use paceline_packet::Stamp;
use paceline_units::{Span, Time};

/// A time of the sender's clock, in the resolution of the echoed timestamps.
fn at(time: Time) -> i64 {
    (time.0 >> 8 << 8) as i64
}

/// Two times at which the sender had sent everything allowed: one for this report, one for the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// In the interval that the next report will cover, if there is one.
    this: i64,
    /// After the end of that interval.
    next: i64,
    /// When the newest packet of the last report was sent (t_new), and when that report arrived (t_next).
    reported: i64,
    arrived: i64,
}

impl Limits {
    pub(super) fn new() -> Limits {
        Limits { this: i64::MIN, next: i64::MIN, reported: -1, arrived: -1 }
    }

    /// Records that the sender has just sent everything allowed.
    #[inline]
    pub(super) fn sent_all(&mut self, now: Time) {
        if self.this <= self.reported {
            self.this = at(now);
        } else if self.next <= self.arrived {
            self.next = at(now);
        }
    }

    /// Evaluates a report whose newest packet was sent at `stamp`, for the round-trip time before that.
    pub(super) fn report(&mut self, stamp: Stamp, rtt: Span, now: Time) -> Interval {
        self.reported = at(now - stamp.elapsed(now));
        self.arrived = at(now);
        let from = self.reported.saturating_sub(i64::try_from(rtt.0).unwrap_or(i64::MAX));
        let within = |time: i64| from < time && time <= self.reported;
        let interval = if within(self.this) || within(self.next) { Interval::Used } else { Interval::DataLimited };
        if self.this <= self.reported && self.next > self.reported {
            self.this = self.next;
        }
        interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    #[test]
    fn section_8_2_1() {
        let mut limits = Limits::new();
        // busy from 0 to 300 ms, then too little data until 700 ms; each report covers what was sent a round trip ago
        let mut seen = Vec::new();
        for t in (0..1100).step_by(10) {
            if t % 100 == 0 && t > 0 {
                seen.push(limits.report(Stamp::at(ms(t - 100)), RTT, ms(t)));
            }
            if t <= 300 || t >= 700 {
                limits.sent_all(ms(t));
            }
        }
        use Interval::{DataLimited as L, Used as U};
        assert_eq!(seen, [U, U, U, U, L, L, L, U, U, U]);
    }

    #[test]
    fn one_busy_instant_counts_for_its_interval_alone() {
        let mut limits = Limits::new();
        limits.sent_all(ms(150));
        assert_eq!(limits.report(Stamp::at(ms(100)), RTT, ms(200)), Interval::DataLimited);
        assert_eq!(limits.report(Stamp::at(ms(200)), RTT, ms(300)), Interval::Used);
        assert_eq!(limits.report(Stamp::at(ms(300)), RTT, ms(400)), Interval::DataLimited);
    }
}

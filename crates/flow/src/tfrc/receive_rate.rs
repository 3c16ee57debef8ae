//! X_recv: the rate at which data arrives (RFC 5348 section 6.2).

use paceline_units::{Span, Time};

/// Number of expiries of the feedback timer kept.
const EXPIRIES: usize = 8;

/// The bytes received, in total and at the last expiries of the feedback timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveRate {
    bytes: u64,
    /// Sorted, the most recent last.
    expiries: [(Time, u64); EXPIRIES],
    count: usize,
}

impl ReceiveRate {
    pub(super) fn new() -> ReceiveRate {
        ReceiveRate { bytes: 0, expiries: [(Time::ZERO, 0); EXPIRIES], count: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Records that the feedback timer has expired, on time or early.
    pub(super) fn expired(&mut self, at: Time) {
        if self.count == EXPIRIES {
            self.expiries.copy_within(1.., 0);
            self.count -= 1;
        }
        self.expiries[self.count] = (at, self.bytes);
        self.count += 1;
    }

    /// Records that the timer has expired every `rtt` since `from` with nothing to report, until a packet arrives now.
    pub(super) fn lapsed(&mut self, from: Time, rtt: Span, now: Time) {
        if rtt == Span::ZERO {
            return;
        }
        // the last expiry at least a round-trip time ago
        let whole = now.since(from).0 / rtt.0;
        self.expired(from + rtt * whole.saturating_sub(1));
    }

    /// Bytes per second since the last expiry at least `span` ago; 0 before the first expiry.
    pub(super) fn rate(&self, now: Time, span: Span) -> f64 {
        let known = &self.expiries[..self.count];
        let Some(&(at, bytes)) = known.iter().rev().find(|e| now.since(e.0) >= span).or(known.first()) else {
            return 0.0;
        };
        let seconds = now.since(at).as_secs_f64();
        if seconds > 0.0 { (self.bytes - bytes) as f64 / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    #[test]
    fn section_6_2() {
        let rtt = Span::from_millis(100);
        let mut rate = ReceiveRate::new();
        rate.add(1000);
        assert_eq!(rate.rate(ms(0), Span::ZERO), 0.0);
        rate.expired(ms(0));
        rate.add(5000);
        assert_eq!(rate.rate(ms(100), Span::ZERO), 50_000.0);
        rate.expired(ms(100));
        // early, at 130 ms: measured since the last expiry at least a round trip ago
        rate.add(1000);
        assert!((rate.rate(ms(130), rtt) - 6000.0 / 0.13).abs() < 1e-6);
        // a packet after a pause of 4.3 round trips: measured over 1.3 of them
        rate.expired(ms(130));
        rate.lapsed(ms(230), rtt, ms(560));
        rate.add(1000);
        assert!((rate.rate(ms(560), rtt) - 1000.0 / 0.13).abs() < 1e-6);
    }
}

//! A token bucket: unused pacing allowance is kept, up to a burst.
//!
//! Source: RFC 9002 section 7.7. With a window clocked by acknowledgements, the bucket rarely runs empty, so that no
//! timer is needed.

use paceline_units::{Span, Time};

/// The level is stored as the time at which the bucket is full again, so that nothing must be computed between packets.
/// Initially it is full, with an unlimited rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    full_at: Time,
    /// Nanoseconds per byte.
    per_byte: f64,
    /// How long before the bucket is full a packet may be sent.
    slack: Span,
}

impl Bucket {
    /// Sets the rate in bytes per second from now on, and the capacity: `burst` packets of `bytes` each.
    #[inline]
    pub(super) fn set_rate(&mut self, rate: f64, bytes: u32, burst: u32) {
        self.per_byte = 1e9 / rate;
        self.slack = span(f64::from((burst - 1) * bytes) * self.per_byte);
    }

    /// When a full packet may be sent; a time not after now means at once.
    #[inline]
    pub(super) fn due(&self) -> Time {
        Time(self.full_at.0.saturating_sub(self.slack.0))
    }

    /// Charges a packet, even if it was sent early, as probes are.
    #[inline]
    pub(super) fn take(&mut self, now: Time, bytes: u16) {
        self.full_at = self.full_at.max(now) + span(f64::from(bytes) * self.per_byte);
    }
}

/// Converts nanoseconds, below 292 years; through i64, which takes one instruction.
#[inline]
fn span(nanos: f64) -> Span {
    Span(nanos as i64 as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate_then_a_burst_after_a_pause() {
        let mut bucket = Bucket::default();
        (0..9).for_each(|_| bucket.take(Time::ZERO, 1000));
        assert_eq!(bucket.due(), Time::ZERO, "without a rate");
        bucket.set_rate(1e6, 1000, 3);
        let mut now = Time::ZERO;
        let mut times = Vec::new();
        for _ in 0..8 {
            now = bucket.due().max(now);
            bucket.take(now, 1000);
            times.push(now.0 / 1_000_000);
        }
        assert_eq!(times, [0, 0, 0, 1, 2, 3, 4, 5]);
        let later = Time(60_000_000);
        let free = (0..4).take_while(|_| {
            let at_once = bucket.due() <= later;
            bucket.take(later, 1000);
            at_once
        });
        assert_eq!(free.count(), 3, "no more than a burst is kept");
    }
}

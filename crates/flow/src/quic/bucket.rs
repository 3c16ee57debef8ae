//! A bucket of tokens: what pacing has not used is kept, up to a burst.
//!
//! Source: RFC 9002 section 7.7. A window that acknowledgements clock mostly finds the bucket full enough, so that no timer is needed.

use paceline_units::{Span, Time};

/// Bytes that may leave at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    tokens: f64,
    at: Option<Time>,
}

impl Bucket {
    /// When a packet of `bytes` may leave, the bucket filling at `rate` bytes a second up to `burst`; at first it is full.
    #[inline]
    pub(super) fn due(&mut self, now: Time, bytes: u32, burst: u32, rate: impl Fn() -> f64) -> Time {
        let burst = f64::from(burst);
        match self.at {
            Some(at) if at == now => {}
            Some(at) => {
                let filled = self.tokens + rate() * super::rtt::between(at, now).as_secs_f64();
                (self.tokens, self.at) = (if filled < burst { filled } else { burst }, Some(now));
            }
            None => (self.tokens, self.at) = (self.tokens + burst, Some(now)),
        }
        let missing = f64::from(bytes) - self.tokens;
        if missing <= 0.0 {
            return now;
        }
        // a nanosecond more, lest rounding find it still short
        now + Span((missing * 1e9 / rate()).min(1e18) as u64 + 1)
    }

    /// A packet leaves; a probe may without asking.
    #[inline]
    pub(super) fn take(&mut self, bytes: u16) {
        self.tokens -= f64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate_then_a_burst_after_a_pause() {
        let mut bucket = Bucket::default();
        let mut now = Time::ZERO;
        let mut times = Vec::new();
        for _ in 0..8 {
            now = bucket.due(now, 1000, 3000, || 1e6).max(now);
            bucket.take(1000);
            times.push(now.0 / 1_000_000);
        }
        assert_eq!(times, [0, 0, 0, 1, 2, 3, 4, 5]);
        let later = Time(60_000_000);
        let free = (0..4).take_while(|_| {
            let at_once = bucket.due(later, 1000, 3000, || 1e6) <= later;
            bucket.take(1000);
            at_once
        });
        assert_eq!(free.count(), 3, "no more than a burst is kept");
    }
}

//! A token bucket that limits the rate of a receiver over the kernel's TCP.

use paceline_units::Time;

/// Maximum burst, which a receiver accepts after a pause in excess of its rate: this many bytes, plus this many seconds
/// of its rate.
const AT_ONCE: (f64, f64) = (256e3, 10.0);

/// Limits a receiver to a rate.
pub(super) struct Bucket {
    rate: f64,
    tokens: f64,
    at: Time,
}

impl Bucket {
    /// A bucket that starts with the burst's constant part, in bytes.
    pub(super) fn new(rate: u32, now: Time) -> Bucket {
        Bucket { rate: rate.into(), tokens: AT_ONCE.0, at: now }
    }

    /// Bytes that may be received now.
    pub(super) fn tokens(&mut self, now: Time) -> usize {
        let max = AT_ONCE.0 + AT_ONCE.1 * self.rate;
        self.tokens = (self.tokens + now.since(self.at).as_secs_f64() * self.rate).min(max);
        self.at = self.at.max(now);
        self.tokens as usize
    }

    /// Records received bytes.
    pub(super) fn take(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::Span;

    #[test]
    fn a_bucket_keeps_the_rate_and_forgives_a_pause() {
        let second = Span::from_secs(1);
        let mut bucket = Bucket::new(100_000, Time::ZERO);
        let mut taken = 0;
        // a receiver that takes all that is allowed, 100 times a second
        for tick in 0..1000u64 {
            let tokens = bucket.tokens(Time(tick * 10_000_000));
            bucket.take(tokens);
            taken += tokens;
        }
        assert!((256_000 + 990_000..=256_000 + 1_000_000).contains(&taken), "{taken}");
        // after a long pause: ten seconds' worth, and no more
        assert_eq!(bucket.tokens(Time::ZERO + second * 1000), 256_000 + 1_000_000);
        bucket.take(1_256_000);
        assert_eq!(bucket.tokens(Time::ZERO + second * 1000), 0);
        assert_eq!(bucket.tokens(Time::ZERO + second * 999), 0, "time does not run back");
    }
}

//! A bucket of tokens, which holds a receiver of the kernel's TCP to a rate.

use paceline_units::Time;

/// What a receiver takes at once of a sender that has been held up, beyond its rate: this many bytes, and what the rate has in
/// so many seconds.
const AT_ONCE: (f64, f64) = (256e3, 10.0);

/// Holds a receiver to a rate.
pub(super) struct Bucket {
    rate: f64,
    room: f64,
    at: Time,
}

impl Bucket {
    /// A bucket that has what it forgives.
    pub(super) fn new(rate: u32, now: Time) -> Bucket {
        Bucket { rate: rate.into(), room: AT_ONCE.0, at: now }
    }

    /// Bytes that may be taken now.
    pub(super) fn room(&mut self, now: Time) -> usize {
        let most = AT_ONCE.0 + AT_ONCE.1 * self.rate;
        self.room = (self.room + now.since(self.at).as_secs_f64() * self.rate).min(most);
        self.at = self.at.max(now);
        self.room as usize
    }

    /// So many have been taken.
    pub(super) fn take(&mut self, bytes: usize) {
        self.room -= bytes as f64;
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
        // somebody who takes all there is, 100 times a second
        for tick in 0..1000u64 {
            let room = bucket.room(Time(tick * 10_000_000));
            bucket.take(room);
            taken += room;
        }
        assert!((256_000 + 990_000..=256_000 + 1_000_000).contains(&taken), "{taken}");
        // after a long pause ten seconds' worth, and no more
        assert_eq!(bucket.room(Time::ZERO + second * 1000), 256_000 + 1_000_000);
        bucket.take(1_256_000);
        assert_eq!(bucket.room(Time::ZERO + second * 1000), 0);
        assert_eq!(bucket.room(Time::ZERO + second * 999), 0, "time does not run back");
    }
}

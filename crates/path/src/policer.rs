//! A token-bucket policer: drops packets above its rate, beyond a burst.
//!
//! Source: RFC 2697's bucket of one rate without colours (a "single token bucket"), on whole packet sizes. The bucket
//! starts full. A packet that finds fewer tokens than its size is dropped and takes none. Arithmetic is on integers,
//! hence exact.

use paceline_units::{Rate, Size};

/// A policer's parameters, as plain data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolicerModel {
    /// The rate at which tokens arrive, one per bit.
    pub rate: Rate,
    /// The capacity of the bucket.
    pub burst: Size,
}

/// Token units per bit: the rate in bit/s times nanoseconds.
const BIT: u128 = 1_000_000_000;

/// A policer's state.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    rate: u128,
    burst: u128,
    tokens: u128,
    last: u64,
}

impl Policer {
    pub(crate) fn new(model: &PolicerModel) -> Policer {
        let burst = u128::from(model.burst.0) * 8 * BIT;
        Policer { rate: u128::from(model.rate.0), burst, tokens: burst, last: 0 }
    }

    /// Whether a packet of `size` bytes may pass at `now`; calls must come in order of time.
    pub(crate) fn passes(&mut self, now: u64, size: u16) -> bool {
        self.tokens = (self.tokens + u128::from(now - self.last) * self.rate).min(self.burst);
        self.last = now;
        let needs = u128::from(size) * 8 * BIT;
        if self.tokens < needs {
            return false;
        }
        self.tokens -= needs;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 1 Mbit/s is 125 bytes a millisecond; the bucket holds 3000 bytes.
    #[test]
    fn tokens_by_hand() {
        let mut policer = Policer::new(&PolicerModel { rate: Rate(1_000_000), burst: Size(3000) });
        for (ms, size, passes) in [
            (0, 1500, true), // 1500 left
            (0, 1500, true), // none
            (0, 1, false),
            (1, 126, false), // 125
            (1, 125, true),
            (12, 1376, false), // 1375
            (12, 1375, true),
            (1000, 1500, true), // full: 3000, the maximum
            (1000, 1501, false),
            (1000, 1500, true),
            (1000, 1, false),
        ] {
            assert_eq!(policer.passes(ms * MS, size), passes, "{size} bytes at {ms} ms");
        }
    }

    /// A packet short of a token can pass at the exact nanosecond at which the token arrives: 8 bits at 1 Mbit/s take 8
    /// us.
    #[test]
    fn nothing_is_rounded() {
        let mut policer = Policer::new(&PolicerModel { rate: Rate(1_000_000), burst: Size(100) });
        assert!(policer.passes(0, 100));
        assert!(!policer.passes(7_999, 1) && policer.passes(8_000, 1));
        assert!(!policer.passes(15_999, 1) && policer.passes(16_000, 1));
        // and no token is lost over a long time: tokens for 10 packets, then for 69,999 * 0.7 more
        let mut policer = Policer::new(&PolicerModel { rate: Rate(1_000_000_000), burst: Size(12_500) });
        let passed = (0..70_000).filter(|n| policer.passes(n * 7_000, 1250)).count();
        assert_eq!(passed, 49_009);
    }
}

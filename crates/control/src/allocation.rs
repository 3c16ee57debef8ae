//! Divides a rate among the streams of one sender as libwebrtc does (`call/bitrate_allocator.cc`).
//!
//! Each stream gets its minimum, even if the sum exceeds the rate: libwebrtc pauses a stream only if it may
//! (`enforce_min_bitrate`). The rest is divided by priority until a stream reaches its maximum; what it leaves goes to
//! the others in the same way. Not modelled: libwebrtc gives up to twice the maximum, for protection.

/// A stream's constraints; rates in bits per second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Claim {
    /// The rate that it always gets.
    pub min_rate: f64,
    /// The highest rate that it can use.
    pub max_rate: f64,
    /// Its weight in the division of the rest. Above zero.
    pub priority: f64,
}

/// Divides `rate`; the results are in the order of the claims.
#[must_use]
pub fn allocate(rate: f64, claims: &[Claim]) -> Vec<f64> {
    let mut parts: Vec<f64> = claims.iter().map(|claim| claim.min_rate).collect();
    let mut left = rate - parts.iter().sum::<f64>();
    let mut priorities: f64 = claims.iter().map(|claim| claim.priority).sum();
    let room = |claim: &Claim| (claim.max_rate - claim.min_rate).max(0.0);
    // claims that reach their maximum first come first
    let mut order: Vec<usize> = (0..claims.len()).collect();
    let full_at = |at: usize| room(&claims[at]) / claims[at].priority;
    order.sort_by(|one, other| full_at(*one).total_cmp(&full_at(*other)));
    for at in order {
        if left <= 0.0 {
            break;
        }
        let more = (left * claims[at].priority / priorities).min(room(&claims[at]));
        parts[at] += more;
        left -= more;
        priorities -= claims[at].priority;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(min: f64, max: f64, priority: f64) -> Claim {
        Claim { min_rate: min, max_rate: max, priority }
    }

    #[test]
    fn by_priority_above_the_least_until_one_is_full() {
        let two = [claim(100e3, 2e6, 1.0), claim(200e3, 2e6, 2.0)];
        assert_eq!(allocate(900e3, &two), [300e3, 600e3], "600 kbit/s lie above both least rates");
        // the second reaches its maximum with 1.8 Mbit/s more, at 2.7 Mbit/s above the minimum rates
        assert_eq!(allocate(3e6, &two), [1e6, 2e6]);
        assert_eq!(allocate(3.6e6, &two), [1.6e6, 2e6], "and the rest is the other's");
        assert_eq!(allocate(9e6, &two), [2e6, 2e6], "nobody has more than his most");
        assert_eq!(allocate(250e3, &two), [100e3, 200e3], "the least is there in any case");
    }

    #[test]
    fn sound_of_one_rate_has_it() {
        let call = [claim(50e3, 50e3, 1.0), claim(150e3, 3e6, 1.0)];
        assert_eq!(allocate(1e6, &call), [50e3, 950e3]);
        assert_eq!(allocate(120e3, &call), [50e3, 150e3]);
        assert!(allocate(1e6, &[]).is_empty());
    }

    proptest! {
        /// Every part is within its bounds; the whole rate is given unless all are full; the others are served by
        /// priority.
        #[test]
        fn nothing_is_left_over_and_priorities_hold(
            rate in 0.0..1e7f64,
            claims in prop::collection::vec((0.0..1e6f64, 0.0..5e6f64, 0.1..10.0f64), 1..6),
        ) {
            let claims: Vec<Claim> =
                claims.into_iter().map(|(min, room, priority)| claim(min, min + room, priority)).collect();
            let parts = allocate(rate, &claims);
            let (min, max): (f64, f64) =
                claims.iter().fold((0.0, 0.0), |(min, max), claim| (min + claim.min_rate, max + claim.max_rate));
            let all: f64 = parts.iter().sum();
            prop_assert!((all - rate.clamp(min, max)).abs() < 1e-3, "{} of {}", all, rate);
            let mut level = 0.0f64;
            for (part, claim) in parts.iter().zip(&claims) {
                prop_assert!(*part >= claim.min_rate && *part <= claim.max_rate + 1e-6);
                level = level.max((part - claim.min_rate) / claim.priority);
            }
            for (part, claim) in parts.iter().zip(&claims) {
                let full = *part >= claim.max_rate - 1e-6;
                prop_assert!(full || ((part - claim.min_rate) / claim.priority - level).abs() < 1e-3);
            }
        }
    }
}

//! Delay that varies from packet to packet, with draws keyed by arrival index.
//!
//! The bad Wi-Fi model is from draft-huitema-ccwg-c4-test, "Handling of High Jitter Environments": measurements in
//! networks that interfere with each other. The draft's picoquic differs from its text: it has 84 ms for 90 ms and
//! subtracts a draw of up to 7.5 ms from long waits. Paceline follows the text. Both deliver in order. The Gaussian is
//! RFC 8868's, section 4.5.

use crate::{DelayVariation, LinkModel};
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// A wait for other stations on the air, and a wait for a frame's retransmission.
const SHORT: Span = Span::from_millis(1);
const LONG: Span = Span::from_micros(7_500);
/// Means of their Poisson-distributed counts.
const SHORT_MEAN: f64 = 1.0;
const LONG_MEAN: f64 = 12.0;
/// The mean, less [`SHORT`], from which on every packet has long waits: 12 times 7.5 ms.
const ALL_LONG: Span = Span::from_millis(90);

/// A link's delay variations over time. All draw from one stream, one draw per packet.
#[derive(Clone, Debug)]
pub(crate) struct Variations {
    first: Option<Variation>,
    steps: Vec<(Time, Option<Variation>)>,
}

impl Variations {
    /// The variations of this link, if there are any.
    ///
    /// # Panics
    /// If the steps are not in order.
    pub(crate) fn new(model: &LinkModel, stream: Stream) -> Option<Variations> {
        let (first, steps) = (model.delay_variation, &model.variation_steps);
        assert!(steps.windows(2).all(|w| w[0].0 < w[1].0), "steps of a delay variation must be in order");
        let made = |of: Option<DelayVariation>| of.map(|of| Variation::new(of, stream));
        (first.is_some() || !steps.is_empty()).then(|| Variations {
            first: made(first),
            steps: steps.iter().map(|&(at, variation)| (at, made(variation))).collect(),
        })
    }

    /// The extra delay of the packet with arrival index `index`, sent at `sent`.
    #[inline]
    pub(crate) fn of(&self, index: u64, sent: Time) -> Span {
        let begun = self.steps.partition_point(|(at, _)| *at <= sent);
        let now = begun.checked_sub(1).map_or(&self.first, |last| &self.steps[last].1);
        now.as_ref().map_or(Span::ZERO, |variation| variation.of(index))
    }
}

/// A delay variation with its random streams.
#[derive(Clone, Debug)]
pub(crate) enum Variation {
    Uniform { max: u64, stream: Stream },
    BadWifi { long_share: f64, streams: [Stream; 4] },
    Gaussian { deviation: f64, max: f64, streams: [Stream; 2] },
}

impl Variation {
    pub(crate) fn new(model: DelayVariation, stream: Stream) -> Variation {
        match model {
            DelayVariation::Uniform(max) => Variation::Uniform { max: max.0, stream },
            DelayVariation::Gaussian { deviation, bound } => {
                let deviation = deviation.0 as f64;
                Variation::Gaussian { deviation, max: bound * deviation, streams: [0, 1].map(|n| stream.fork(n)) }
            }
            DelayVariation::BadWifi(mean) => {
                let above = mean.0.saturating_sub(SHORT.0) as f64;
                let long_share = (above / ALL_LONG.0 as f64).min(1.0);
                Variation::BadWifi { long_share, streams: [0, 1, 2, 3].map(|n| stream.fork(n)) }
            }
        }
    }

    /// The extra delay of the packet with arrival index `index`.
    pub(crate) fn of(&self, index: u64) -> Span {
        match self {
            Variation::Uniform { max, stream } => {
                Span(((u128::from(stream.bits(index)) * (u128::from(*max) + 1)) >> 64) as u64)
            }
            Variation::BadWifi { long_share, streams: [short, smooth, long, number] } => {
                let waits = poisson(SHORT_MEAN, short.unit(index));
                let mut extra = SHORT * waits;
                if waits >= 1 {
                    extra = Span(extra.0 - (smooth.unit(index) * SHORT.0 as f64) as u64);
                }
                if long.unit(index) < *long_share {
                    extra += LONG * poisson(LONG_MEAN, number.unit(index));
                }
                extra
            }
            // Box-Muller transform (1958), one of its two values
            Variation::Gaussian { deviation, max, streams: [radius, angle] } => {
                let normal =
                    (2.0 * radius.exponential(index)).sqrt() * libm::cos(core::f64::consts::TAU * angle.unit(index));
                Span((deviation * normal).abs().min(*max) as u64)
            }
        }
    }
}

/// Inverts the Poisson distribution of this mean: the smallest number whose cumulative probability exceeds `unit`.
fn poisson(mean: f64, unit: f64) -> u64 {
    let mut share = libm::exp(-mean);
    let (mut below, mut number) = (share, 0);
    // once the remaining terms are below the sum's resolution, stop
    while unit >= below && below + share > below {
        number += 1;
        share *= mean / number as f64;
        below += share;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Poisson cumulative probabilities to five digits: mean 1: 0.36788, 0.73576, 0.91970; mean 12: 0.57597 at 12.
    #[test]
    fn poisson_by_hand() {
        for (mean, unit, number) in [
            (1.0, 0.0, 0),
            (1.0, 0.36787, 0),
            (1.0, 0.36788, 1),
            (1.0, 0.73575, 1),
            (1.0, 0.73576, 2),
            (1.0, 0.91970, 3),
            (12.0, 0.000_006, 0),
            (12.0, 0.000_007, 1),
            (12.0, 0.57596, 12),
            (12.0, 0.57597, 13),
        ] {
            assert_eq!(poisson(mean, unit), number, "{mean} {unit}");
        }
        assert!(poisson(12.0, 1.0 - f64::EPSILON / 2.0) < 60);
    }

    /// The mean is N1 (1 ms), plus 12 x 7.5 ms with probability x, less half a millisecond where N1 >= 1.
    #[test]
    fn bad_wifi_s_mean_and_shares() {
        let (less, n) = (0.5 * (1.0 - libm::exp(-1.0)), 200_000);
        for (average, share) in [(0, 0.0), (1, 0.0), (7, 6.0 / 90.0), (46, 0.5), (91, 1.0), (500, 1.0)] {
            let variation = Variation::new(DelayVariation::BadWifi(Span::from_millis(average)), Stream::new(1, "wifi"));
            let draws: Vec<f64> = (0..n).map(|i| variation.of(i).0 as f64 / 1e6).collect();
            let mean = draws.iter().sum::<f64>() / n as f64;
            let expected = 1.0 + 90.0 * share - less;
            assert!((mean - expected).abs() < 0.015 * expected.max(5.0), "{average}: {mean}, expected {expected} ms");
            // N1 = 0 and no long wait: no extra delay
            let none = draws.iter().filter(|d| **d == 0.0).count() as f64 / n as f64;
            assert!((none - 0.36788 * (1.0 - share)).abs() < 0.005, "{average}: {none}");
            let long = draws.iter().filter(|d| **d > 20.0).count() as f64 / n as f64;
            assert!((long - share).abs() < 0.005, "{average}: {long}"); // 3 long waits or more: 0.9995 of them
        }
    }

    /// The mean of |N| is sqrt(2 / pi); 68.27 % lie within one deviation, 4.55 % beyond two, where this one is cut off.
    #[test]
    fn a_gaussian_s_mean_shares_and_end() {
        let (deviation, n) = (Span::from_millis(5), 200_000);
        let variation = Variation::new(DelayVariation::Gaussian { deviation, bound: 2.0 }, Stream::new(1, "g"));
        let draws: Vec<f64> = (0..n).map(|i| variation.of(i).0 as f64 / 5e6).collect();
        let share = |of: &dyn Fn(f64) -> bool| draws.iter().filter(|d| of(**d)).count() as f64 / n as f64;
        assert!((share(&|d| d < 1.0) - 0.6827).abs() < 0.004);
        assert!((share(&|d| d >= 2.0) - 0.0455).abs() < 0.002 && share(&|d| d > 2.0) == 0.0);
        let mean = draws.iter().sum::<f64>() / n as f64;
        // sqrt(2 / pi) (1 - exp(-2)) + 2 (1 - 0.9545)
        assert!((mean - 0.7809).abs() < 0.005, "{mean}");
    }

    #[test]
    fn uniform_to_its_end() {
        let variation = Variation::new(DelayVariation::Uniform(Span(9)), Stream::new(1, "u"));
        let mut seen = [0; 10];
        (0..10_000).for_each(|i| seen[variation.of(i).0 as usize] += 1);
        assert!(seen.iter().all(|n| (900..1100).contains(n)), "{seen:?}");
    }
}

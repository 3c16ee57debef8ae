//! A value for each instance of a flow: one for all, listed, evenly spaced, or drawn.

use paceline_random::{Sequence, Stream};
use paceline_units::{Rate, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// A value, or how each instance of a flow comes by its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Draw{T}")]
pub enum Draw<T> {
    /// The same for all.
    Fixed(T),
    /// One for each instance, in their order.
    Each(Vec<T>),
    /// At equal distances.
    Spaced(Spaced<T>),
    /// Drawn between two values.
    Uniform(Uniform<T>),
    /// Drawn from an exponential law.
    Exponential(Exponential<T>),
    /// Drawn from a normal law.
    Normal(Normal<T>),
    /// Drawn from a log-normal law.
    LogNormal(LogNormal<T>),
}

/// From the first instance's value to the last one's in equal steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Spaced{T}")]
pub struct Spaced<T> {
    /// The first instance's value.
    pub from: T,
    /// The last instance's value.
    pub to: T,
}

/// The bounds of a uniform draw.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Uniform{T}")]
pub struct Uniform<T> {
    /// Least and greatest value.
    pub uniform: [T; 2],
}

/// An exponential law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Exponential{T}")]
pub struct Exponential<T> {
    /// Its mean.
    pub exponential: T,
    /// Least and greatest value; a draw outside is drawn anew.
    pub within: [T; 2],
}

/// A normal law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Normal{T}")]
pub struct Normal<T> {
    /// Its mean and standard deviation.
    pub normal: [T; 2],
    /// Least and greatest value; a draw outside is drawn anew.
    pub within: [T; 2],
}

/// A law whose logarithm is normal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LogNormal{T}")]
pub struct LogNormal<T> {
    /// Its median.
    pub lognormal: T,
    /// The standard deviation of its natural logarithm.
    #[schemars(range(min = 0.001, max = 10.0))]
    pub sigma: f64,
    /// Least and greatest value; a draw outside is drawn anew.
    pub within: [T; 2],
}

/// A quantity that can be spaced and drawn.
pub trait Value: Copy + PartialOrd + Display {
    /// The number, in its unit.
    fn number(self) -> f64;
    /// The value nearest to a number, which must not be negative.
    fn nearest(number: f64) -> Self;
    /// The value at this share of the distance from `self` to `to`.
    fn toward(self, to: Self, share: f64) -> Self {
        Self::nearest(self.number() + (to.number() - self.number()) * share)
    }
}

impl Value for Span {
    fn number(self) -> f64 {
        self.0 as f64
    }
    fn nearest(number: f64) -> Span {
        Span((number + 0.5) as u64)
    }
    fn toward(self, to: Span, share: f64) -> Span {
        if to < self { self - (self - to).mul_f64(share) } else { self + (to - self).mul_f64(share) }
    }
}

impl Value for Rate {
    fn number(self) -> f64 {
        self.bps()
    }
    fn nearest(number: f64) -> Rate {
        Rate((number + 0.5) as u64)
    }
}

impl Value for Ratio {
    fn number(self) -> f64 {
        self.0
    }
    fn nearest(number: f64) -> Ratio {
        Ratio(number)
    }
}

/// Maximum number of draws for one value. If [`MIN_MASS`] of the distribution lies within the bounds, one value in
/// e^100 needs more.
const MAX_TRIES: u32 = 10_000;

/// Minimum share of the distribution within the bounds.
pub const MIN_MASS: f64 = 0.01;

impl<T: Value> Draw<T> {
    /// The minimum of its possible values.
    #[must_use]
    pub fn minimum(&self) -> Option<T> {
        self.first_by(|a, b| a < b)
    }

    /// The maximum of its possible values.
    #[must_use]
    pub fn maximum(&self) -> Option<T> {
        self.first_by(|a, b| a > b)
    }

    /// The first value by this order; `None` for an empty list.
    fn first_by(&self, before: impl Fn(T, T) -> bool) -> Option<T> {
        let all: &[T] = match self {
            Draw::Fixed(value) => std::slice::from_ref(value),
            Draw::Each(values) => values,
            Draw::Spaced(Spaced { from, to }) => &[*from, *to],
            Draw::Uniform(Uniform { uniform: within })
            | Draw::Exponential(Exponential { within, .. })
            | Draw::Normal(Normal { within, .. })
            | Draw::LogNormal(LogNormal { within, .. }) => within,
        };
        all.iter().copied().reduce(|a, b| if before(b, a) { b } else { a })
    }

    /// Whether the value is random.
    #[must_use]
    pub const fn is_drawn(&self) -> bool {
        !matches!(self, Draw::Fixed(_) | Draw::Each(_) | Draw::Spaced(_))
    }

    /// The key of its distribution, and the bounds of its draws.
    #[must_use]
    pub const fn bounds(&self) -> Option<(&'static str, [T; 2])> {
        match self {
            Draw::Fixed(_) | Draw::Each(_) | Draw::Spaced(_) => None,
            Draw::Uniform(Uniform { uniform }) => Some(("uniform", *uniform)),
            Draw::Exponential(Exponential { within, .. })
            | Draw::Normal(Normal { within, .. })
            | Draw::LogNormal(LogNormal { within, .. }) => Some(("within", *within)),
        }
    }

    /// The share of its distribution within the bounds; zero for an invalid one (a median of zero).
    #[must_use]
    pub fn mass(&self) -> f64 {
        // P(Z <= z) of a standard normal Z (Abramowitz and Stegun 26.2.29)
        let phi = |z: f64| 0.5 * libm::erfc(-z / core::f64::consts::SQRT_2);
        let share = match self {
            Draw::Fixed(_) | Draw::Each(_) | Draw::Spaced(_) | Draw::Uniform(_) => 1.0,
            Draw::Exponential(Exponential { exponential: mean, within }) => {
                let beyond = |value: T| libm::exp(-value.number() / mean.number());
                beyond(within[0]) - beyond(within[1])
            }
            Draw::Normal(Normal { normal: [mean, deviation], within }) => {
                let below = |value: T| phi((value.number() - mean.number()) / deviation.number());
                below(within[1]) - below(within[0])
            }
            Draw::LogNormal(LogNormal { lognormal: median, sigma, within }) => {
                let below = |value: T| phi(libm::log(value.number() / median.number()) / sigma);
                below(within[1]) - below(within[0])
            }
        };
        // Also turns NaN into zero.
        share.max(0.0)
    }

    /// The value of one of `count` instances; random values are drawn from `stream`.
    #[must_use]
    pub fn of(&self, instance: u32, count: u32, stream: Stream) -> T {
        let mut draws = Sequence::new(stream);
        match self {
            Draw::Fixed(value) => *value,
            Draw::Each(values) => values[instance as usize],
            Draw::Spaced(Spaced { from, to }) => {
                if count < 2 {
                    return *from;
                }
                from.toward(*to, f64::from(instance) / f64::from(count - 1))
            }
            Draw::Uniform(Uniform { uniform: [low, high] }) => low.toward(*high, draws.unit()),
            Draw::Exponential(Exponential { exponential: mean, within }) => {
                drawn(*within, || mean.number() * draws.exponential())
            }
            Draw::Normal(Normal { normal: [mean, deviation], within }) => {
                drawn(*within, || mean.number() + deviation.number() * draws.normal())
            }
            Draw::LogNormal(LogNormal { lognormal: median, sigma, within }) => {
                drawn(*within, || median.number() * libm::exp(sigma * draws.normal()))
            }
        }
    }
}

/// The first draw within the bounds.
fn drawn<T: Value>([min, max]: [T; 2], mut draw: impl FnMut() -> f64) -> T {
    let inside = |number: f64| (min.number()..=max.number()).contains(&number);
    let found = (0..MAX_TRIES).map(|_| draw()).find(|&number| inside(number));
    found.map_or(min, T::nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u32 = 20_000;

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    fn values(draw: &Draw<Span>) -> Vec<f64> {
        (0..COUNT).map(|i| draw.of(i, COUNT, Stream::new(1, &format!("rtt x[{i}]"))).as_secs_f64()).collect()
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt())
    }

    /// With bounds so wide that they cut nothing, means and deviations are the distributions', within four standard
    /// errors.
    #[test]
    fn laws_have_their_moments() {
        let wide = [Span::ZERO, Span::from_secs(100)];
        let laws = [
            (Draw::Uniform(Uniform { uniform: [ms(20), ms(440)] }), 0.23, 0.42 / 12f64.sqrt()),
            (Draw::Exponential(Exponential { exponential: ms(50), within: wide }), 0.05, 0.05),
            (Draw::Normal(Normal { normal: [ms(100), ms(10)], within: wide }), 0.1, 0.01),
            // exp(sigma^2 / 2), and sqrt(exp(sigma^2) - 1) times that.
            (Draw::LogNormal(LogNormal { lognormal: ms(80), sigma: 0.5, within: wide }), 0.090_65, 0.048_31),
        ];
        for (law, mean, deviation) in laws {
            let (got_mean, got_deviation) = moments(&values(&law));
            assert!((got_mean - mean).abs() < 4.0 * deviation / f64::from(COUNT).sqrt(), "{law:?}: {got_mean}");
            assert!((got_deviation / deviation - 1.0).abs() < 0.05, "{law:?}: {got_deviation}");
            assert!((law.mass() - 1.0).abs() < 1e-9, "{law:?}: {}", law.mass());
        }
    }

    /// The share of draws within narrow bounds is that of `mass`, and no draw lies outside.
    #[test]
    fn bounds_cut_what_mass_says() {
        let laws: [&dyn Fn([Span; 2]) -> Draw<Span>; 3] = [
            &|within| Draw::Exponential(Exponential { exponential: ms(50), within }),
            &|within| Draw::Normal(Normal { normal: [ms(100), ms(40)], within }),
            &|within| Draw::LogNormal(LogNormal { lognormal: ms(80), sigma: 0.5, within }),
        ];
        let (narrow, wide) = ([ms(60), ms(130)], [Span::ZERO, Span::from_secs(1000)]);
        for law in laws {
            let inside = |x: &&f64| (0.06..=0.13).contains(*x);
            let free = values(&law(wide));
            let share = free.iter().filter(inside).count() as f64 / f64::from(COUNT);
            // For a normal distribution, what lies below zero is left out.
            let mass = law(narrow).mass() / law(wide).mass();
            assert!((share - mass).abs() < 4.0 * (mass * (1.0 - mass) / f64::from(COUNT)).sqrt(), "{share} {mass}");
            assert!(values(&law(narrow)).iter().all(|x| inside(&x)));
        }
    }

    #[test]
    fn lists_and_steps() {
        let of = |draw: &Draw<Span>, count| -> Vec<u64> {
            (0..count).map(|i| draw.of(i, count, Stream::new(1, "x")).0 / 1_000_000).collect()
        };
        assert_eq!(of(&Draw::Each(vec![ms(3), ms(1), ms(2)]), 3), [3, 1, 2]);
        assert_eq!(of(&Draw::Spaced(Spaced { from: ms(40), to: ms(44) }), 5), [40, 41, 42, 43, 44]);
        assert_eq!(of(&Draw::Spaced(Spaced { from: ms(44), to: ms(40) }), 3), [44, 42, 40]);
        assert_eq!(of(&Draw::Spaced(Spaced { from: ms(40), to: ms(44) }), 1), [40]);
        let shares = Draw::Spaced(Spaced { from: Ratio(0.0), to: Ratio(0.1) });
        assert_eq!(shares.of(1, 3, Stream::new(1, "x")), Ratio(0.05));
        assert_eq!(shares.maximum(), Some(Ratio(0.1)));
        assert_eq!(Draw::<Span>::Each(vec![]).minimum(), None);
    }
}

//! Random streams without shared state: a draw is a function of (seed, stream, index).
//!
//! Each element has its own streams, named by the run's seed and the element's name. So adding an element does not
//! change the draws of others, and a draw does not depend on earlier draws. Uses no other crate of Paceline. Start with
//! [`Stream`].

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
#[inline]
#[must_use]
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// One named stream of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// The stream of this name under this seed.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Stream {
        let mut key = mix(seed.wrapping_add(GAMMA));
        for byte in name.bytes() {
            key = mix(key.wrapping_add(u64::from(byte)).wrapping_add(GAMMA));
        }
        Stream { key: mix(key.wrapping_add(name.len() as u64)) }
    }

    /// A stream derived from this one, for the `n`th of several similar users.
    #[must_use]
    pub const fn fork(self, n: u64) -> Stream {
        Stream { key: mix(self.key ^ mix(n.wrapping_add(GAMMA))) }
    }

    /// The draw number `index`: 64 random bits.
    #[inline]
    #[must_use]
    pub const fn bits(self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_mul(GAMMA)))
    }

    /// The draw number `index`, uniform in [0, 1).
    #[inline]
    #[must_use]
    pub const fn unit(self, index: u64) -> f64 {
        (self.bits(index) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The draw number `index`, exponential with mean 1.
    #[must_use]
    pub fn exponential(self, index: u64) -> f64 {
        -libm::log1p(-self.unit(index))
    }

    /// The draw number `index`, Pareto with this shape and a minimum of 1.
    #[must_use]
    pub fn pareto(self, index: u64, shape: f64) -> f64 {
        libm::pow(1.0 - self.unit(index), -1.0 / shape)
    }
}

/// A stream with a position: each draw takes the next index.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    stream: Stream,
    next: u64,
}

impl Sequence {
    /// Starts at the beginning of `stream`.
    #[must_use]
    pub const fn new(stream: Stream) -> Sequence {
        Sequence { stream, next: 0 }
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.next += 1;
        self.stream.unit(self.next - 1)
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        self.next += 1;
        self.stream.exponential(self.next - 1)
    }

    /// Standard normal (Box and Muller 1958; only one of the pair is used).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }

    /// Pareto with this shape and a minimum of 1.
    pub fn pareto(&mut self, shape: f64) -> f64 {
        self.next += 1;
        self.stream.pareto(self.next - 1, shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_and_independent_enough() {
        let n = 100_000;
        let (a, b) = (Stream::new(1, "a"), Stream::new(1, "b"));
        let mean = |f: &dyn Fn(u64) -> f64| (0..n).map(f).sum::<f64>() / n as f64;
        assert!((mean(&|i| a.unit(i)) - 0.5).abs() < 0.005);
        assert!((mean(&|i| (a.unit(i) - 0.5) * (b.unit(i) - 0.5))).abs() < 0.001);
        assert!((mean(&|i| (a.unit(i) - 0.5) * (a.unit(i + 1) - 0.5))).abs() < 0.001);
        assert!((mean(&|i| a.exponential(i)) - 1.0).abs() < 0.02);
        assert_ne!(Stream::new(1, "a"), Stream::new(2, "a"));
    }
}

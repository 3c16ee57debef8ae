//! Loss models: what takes a packet after it has used the link.

use paceline_engine::random::Stream;
use paceline_packet::Flags;
use paceline_units::Ratio;

/// A loss model.
#[derive(Clone, Debug)]
pub enum Loss {
    /// Each packet is lost with the same probability, independently of all others.
    Uniform {
        /// The probability.
        rate: Ratio,
        /// Which packets it applies to; the others pass.
        on: On,
    },
}

/// Which packets a loss model applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum On {
    /// Those that are not acknowledgements.
    Data,
    /// Acknowledgements (`Flags::ACK`).
    Acks,
    /// Every packet.
    #[default]
    All,
}

impl On {
    #[inline]
    fn covers(self, flags: Flags) -> bool {
        match self {
            On::All => true,
            On::Data => !flags.has(Flags::ACK),
            On::Acks => flags.has(Flags::ACK),
        }
    }
}

/// An event of given probability, decided by 53 random bits: 0 never happens, 1 always does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// # Panics
    /// If the ratio lies outside [0, 1].
    pub(crate) fn new(ratio: Ratio) -> Chance {
        assert!((0.0..=1.0).contains(&ratio.0), "a probability must lie between 0 and 1, not {}", ratio.0);
        Chance((ratio.0 * (1u64 << 53) as f64 + 0.5) as u64)
    }

    #[inline]
    pub(crate) fn happens(self, bits: u64) -> bool {
        bits >> 11 < self.0
    }
}

/// A loss model at work, with the stream it draws from.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    state: LossState,
    stream: Stream,
}

#[derive(Clone, Debug)]
enum LossState {
    Uniform { chance: Chance, on: On },
}

impl Losses {
    pub(crate) fn new(loss: &Loss, stream: Stream) -> Losses {
        let state = match *loss {
            Loss::Uniform { rate, on } => LossState::Uniform { chance: Chance::new(rate), on },
        };
        Losses { state, stream }
    }

    /// Whether the packet that arrived as number `index` is lost.
    #[inline]
    pub(crate) fn take(&mut self, index: u64, flags: Flags) -> bool {
        match self.state {
            LossState::Uniform { chance, on } => on.covers(flags) && chance.happens(self.stream.bits(index)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certain_and_impossible() {
        let stream = Stream::new(1, "loss");
        let count = |p| (0..100_000).filter(|&i| Chance::new(Ratio(p)).happens(stream.bits(i))).count();
        assert_eq!(count(0.0), 0);
        assert_eq!(count(1.0), 100_000);
        // Four standard deviations of a binomial of 100,000 draws at 1 %: 126.
        assert!(count(0.01).abs_diff(1000) < 126);
    }

    #[test]
    fn only_on_what_it_covers() {
        let stream = Stream::new(1, "loss");
        for (on, data, acks) in [(On::All, true, true), (On::Data, true, false), (On::Acks, false, true)] {
            let mut loss = Losses::new(&Loss::Uniform { rate: Ratio::ONE, on }, stream);
            assert_eq!(loss.take(0, Flags::NONE), data);
            assert_eq!(loss.take(0, Flags::ACK.with(Flags::ECE)), acks);
        }
    }
}

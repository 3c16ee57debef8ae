//! Loss models: random or periodic loss of packets after they have used the link.

use paceline_packet::{Flags, FlowId, Packet};
use paceline_random::Stream;
use paceline_units::{Ratio, Span, Time};

/// A loss model.
#[derive(Clone, Debug)]
pub enum Loss {
    /// Each packet is lost with the same probability, independently of all others: the gaps between losses are
    /// geometric.
    Uniform {
        /// The probability.
        rate: Ratio,
        /// Which packets it applies to; the others pass.
        on: On,
    },
    /// Bursts of losses counted in packets: a two-state Markov chain that steps with each packet it applies to.
    GilbertElliott(GilbertElliott),
    /// Bursts of losses counted in time: two states, each of which lasts for whole periods.
    TwoState(TwoState),
    /// A fixed number of losses after a fixed number of passed packets, without random draws.
    Periodic(Periodic),
}

/// Periodic losses, as in ns-2's periodic error model (`errmodel.cc`: `period_`, `burstlen_`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Periodic {
    /// The number of packets that pass,
    pub pass: u32,
    /// and then the number lost in a row; not zero.
    pub lose: u32,
    /// Limits a burst's losses to packets that leave the queue within this time of its first one.
    pub within: Option<Span>,
    /// Which packets it applies to and counts; the others pass.
    pub on: On,
}

/// The chain of Gilbert (BSTJ 39, 1960) and Elliott (BSTJ 42, 1963). The initial state is drawn from the stationary
/// distribution; to_bad / (to_bad + to_good) is the probability of bad. Each packet is subject to the current state,
/// then the chain steps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GilbertElliott {
    /// Probability of loss in the good state.
    pub good_rate: Ratio,
    /// Probability of loss in the bad state.
    pub bad_rate: Ratio,
    /// Probability of a step from good to bad, per packet.
    pub to_bad: Ratio,
    /// Probability of a step from bad to good, per packet.
    pub to_good: Ratio,
    /// Which packets it applies to and steps with; the others pass.
    pub on: On,
}

/// Losses of a link whose quality changes with time, as in the TFRC Veno paper. The state is a function of time alone;
/// traffic does not affect it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TwoState {
    /// Probability of loss in the good state.
    pub good_rate: Ratio,
    /// Probability of loss in the bad state.
    pub bad_rate: Ratio,
    /// Length of a period in the good state; above zero.
    pub good_time: Span,
    /// Length of a period in the bad state; above zero.
    pub bad_time: Span,
    /// Probability that the state changes at the end of a period.
    pub change: Ratio,
    /// The initial state.
    pub start: Start,
    /// Which packets it applies to; the others pass.
    pub on: On,
}

/// The initial state of a [`TwoState`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Start {
    /// A good period begins at time zero.
    #[default]
    Good,
    /// A random point within a period; each state's probability is proportional to its length. Links of one model then
    /// differ.
    Anywhere,
}

/// Which packets a loss model applies to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum On {
    /// Packets that are not acknowledgements.
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

/// A set of flows, by number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowSet(Box<[u64]>);

impl FlowSet {
    /// Whether the set contains the flow.
    #[inline]
    #[must_use]
    pub fn has(&self, flow: FlowId) -> bool {
        self.0.get(flow.0 as usize / 64).is_some_and(|word| word >> (flow.0 % 64) & 1 == 1)
    }
}

impl FromIterator<FlowId> for FlowSet {
    fn from_iter<I: IntoIterator<Item = FlowId>>(flows: I) -> FlowSet {
        let mut words = Vec::new();
        for FlowId(flow) in flows {
            let word = flow as usize / 64;
            words.resize(words.len().max(word + 1), 0);
            words[word] |= 1 << (flow % 64);
        }
        FlowSet(words.into())
    }
}

/// An event of given probability, decided by 53 random bits: probability 0 never happens, 1 always does.
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

/// The state of a loss model, with its random stream.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    state: LossState,
    on: On,
    /// The flows that it applies to; `None`: all.
    of: Option<FlowSet>,
    stream: Stream,
}

#[derive(Clone, Debug)]
enum LossState {
    Uniform(Chance),
    Chain(Box<Chain>),
    Periods(Box<Periods>),
    Counted(Box<Counted>),
    During(Box<During>),
}

#[derive(Clone, Debug)]
struct Counted {
    model: Periodic,
    /// Packets passed since the last burst began.
    passed: u32,
    /// Losses left in the current burst, which ends at `until`.
    left: u32,
    until: u64,
}

/// A model that applies only during some intervals.
#[derive(Clone, Debug)]
struct During {
    model: LossState,
    times: Vec<(Time, Time)>,
    /// The first interval that is not over.
    next: usize,
    /// Whether it has begun.
    begun: bool,
}

/// Probabilities by state, good first.
#[derive(Clone, Debug)]
struct Chain {
    bad: bool,
    steps: u64,
    loss: [Chance; 2],
    leave: [Chance; 2],
    turns: Stream,
}

#[derive(Clone, Debug)]
struct Periods {
    bad: bool,
    /// The end of the current period.
    until: u64,
    period: u64,
    loss: [Chance; 2],
    length: [u64; 2],
    change: Chance,
    turns: Stream,
}

impl Losses {
    /// # Panics
    /// If a probability lies outside [0, 1].
    pub(crate) fn new(loss: &Loss, of: Option<FlowSet>, stream: Stream) -> Losses {
        let turns = stream.fork(1);
        let (state, on) = match *loss {
            Loss::Uniform { rate, on } => (LossState::Uniform(Chance::new(rate)), on),
            Loss::GilbertElliott(GilbertElliott { good_rate, bad_rate, to_bad, to_good, on }) => {
                let sum = to_bad.0 + to_good.0;
                let share = if sum > 0.0 { to_bad.0 / sum } else { 0.0 };
                let chain = Chain {
                    bad: stream.fork(2).unit(0) < share,
                    steps: 0,
                    loss: [good_rate, bad_rate].map(Chance::new),
                    leave: [to_bad, to_good].map(Chance::new),
                    turns,
                };
                (LossState::Chain(Box::new(chain)), on)
            }
            Loss::TwoState(TwoState { good_rate, bad_rate, good_time, bad_time, change, start, on }) => {
                let length = [good_time.0.max(1), bad_time.0.max(1)];
                // its position in one good period followed by one bad period
                let place = match start {
                    Start::Good => 0,
                    Start::Anywhere => (stream.fork(2).unit(0) * (length[0] as f64 + length[1] as f64)) as u64,
                };
                let periods = Periods {
                    bad: place >= length[0],
                    until: if place < length[0] {
                        length[0] - place
                    } else {
                        length[0].saturating_add(length[1]) - place
                    },
                    period: 0,
                    loss: [good_rate, bad_rate].map(Chance::new),
                    length,
                    change: Chance::new(change),
                    turns,
                };
                (LossState::Periods(Box::new(periods)), on)
            }
            Loss::Periodic(model) => {
                (LossState::Counted(Box::new(Counted { model, passed: 0, left: 0, until: 0 })), model.on)
            }
        };
        Losses { state, on, of, stream }
    }

    /// Restricts the model to the intervals `times`, `[from, to)` each; if there are none, it always applies.
    ///
    /// # Panics
    /// If the intervals are not in order and disjoint.
    pub(crate) fn during(self, times: &[(Time, Time)]) -> Losses {
        assert!(
            times.iter().all(|(from, to)| from <= to) && times.windows(2).all(|w| w[0].1 <= w[1].0),
            "times of loss must be in order and apart"
        );
        if times.is_empty() {
            return self;
        }
        let during = During { model: self.state, times: times.to_vec(), next: 0, begun: false };
        Losses { state: LossState::During(Box::new(during)), ..self }
    }

    /// Whether the packet with arrival index `index` is lost. It leaves the queue at `start`, which must not decrease.
    #[inline]
    pub(crate) fn take(&mut self, index: u64, start: u64, packet: &Packet) -> bool {
        if !self.on.covers(packet.flags) || self.of.as_ref().is_some_and(|of| !of.has(packet.flow)) {
            return false;
        }
        self.state.takes(index, start, self.stream)
    }
}

impl LossState {
    /// See [`Losses::take`], for a packet that the model applies to.
    #[inline]
    fn takes(&mut self, index: u64, start: u64, stream: Stream) -> bool {
        match self {
            LossState::Uniform(chance) => chance.happens(stream.bits(index)),
            LossState::Chain(chain) => {
                let state = usize::from(chain.bad);
                let draw = chain.turns.bits(chain.steps);
                chain.steps += 1;
                chain.bad ^= chain.leave[state].happens(draw);
                chain.loss[state].happens(stream.bits(index))
            }
            LossState::Periods(periods) => {
                if start >= periods.until {
                    periods.advance(start);
                }
                periods.loss[usize::from(periods.bad)].happens(stream.bits(index))
            }
            LossState::Counted(counted) => counted.takes(start),
            LossState::During(during) => during.takes(index, start, stream),
        }
    }
}

impl Counted {
    #[inline(never)]
    fn takes(&mut self, start: u64) -> bool {
        if self.left > 0 && start <= self.until {
            self.left -= 1;
            return true;
        }
        self.left = 0;
        if self.passed < self.model.pass {
            self.passed += 1;
            return false;
        }
        (self.passed, self.left) = (0, self.model.lose - 1);
        self.until = self.model.within.map_or(u64::MAX, |within| start.saturating_add(within.0));
        true
    }
}

impl During {
    #[inline(never)]
    fn takes(&mut self, index: u64, start: u64, stream: Stream) -> bool {
        while self.times.get(self.next).is_some_and(|(_, to)| to.0 <= start) {
            (self.next, self.begun) = (self.next + 1, false);
        }
        if self.times.get(self.next).is_none_or(|(from, _)| start < from.0) {
            return false;
        }
        if !self.begun {
            self.begun = true;
            // a periodic model starts counting again in each interval
            if let LossState::Counted(counted) = &mut self.model {
                (counted.passed, counted.left) = (0, 0);
            }
        }
        self.model.takes(index, start, stream)
    }
}

impl Periods {
    /// Steps through the period ends up to `now`.
    #[cold]
    fn advance(&mut self, now: u64) {
        while now >= self.until {
            self.bad ^= self.change.happens(self.turns.bits(self.period));
            self.period += 1;
            self.until = self.until.saturating_add(self.length[usize::from(self.bad)]);
            if self.until == u64::MAX {
                return; // beyond the end of time
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::tests::packet;

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
            let mut loss = Losses::new(&Loss::Uniform { rate: Ratio::ONE, on }, None, stream);
            assert_eq!(loss.take(0, 0, &of(0, Flags::NONE)), data);
            assert_eq!(loss.take(0, 0, &of(0, Flags::ACK.with(Flags::ECE))), acks);
        }
    }

    fn of(flow: u32, flags: Flags) -> Packet {
        Packet { flow: FlowId(flow), flags, ..packet(0, 1000) }
    }

    #[test]
    fn only_of_the_flows_it_applies_to_and_a_chain_steps_with_them_alone() {
        let set: FlowSet = [3, 64, 200].into_iter().map(FlowId).collect();
        let inside: Vec<u32> = (0..300).filter(|&flow| set.has(FlowId(flow))).collect();
        assert_eq!(inside, [3, 64, 200]);
        assert!(!FlowSet::default().has(FlowId(0)));
        let stream = Stream::new(1, "loss");
        let mut all = Losses::new(&Loss::GilbertElliott(GE), None, stream);
        let mut some = Losses::new(&Loss::GilbertElliott(GE), Some(set), stream);
        let mut lost = 0;
        for index in 0..10_000 {
            // its own packets have the same fates as without the others
            let own = some.take(index, 0, &of(64, Flags::NONE));
            assert_eq!(own, all.take(index, 0, &of(64, Flags::NONE)));
            assert!(!some.take(index, 0, &of(65, Flags::NONE)));
            lost += u64::from(own);
        }
        assert!(lost.abs_diff(1360) < 200, "{lost}");
    }

    /// The lost ones of 40 packets sent a millisecond apart.
    fn lost(model: Periodic, times: &[(u64, u64)]) -> Vec<u64> {
        let ms = |ms: u64| Time(ms * 1_000_000);
        let times: Vec<_> = times.iter().map(|&(from, to)| (ms(from), ms(to))).collect();
        let mut losses = Losses::new(&Loss::Periodic(model), None, Stream::new(1, "loss")).during(&times);
        (0..40).filter(|&i| losses.take(i, ms(i).0, &of(0, Flags::NONE))).collect()
    }

    #[test]
    fn counts_out() {
        let model = Periodic { pass: 9, lose: 1, within: None, on: On::All };
        assert_eq!(lost(model, &[]), [9, 19, 29, 39]);
        assert_eq!(lost(Periodic { pass: 8, lose: 3, ..model }, &[]), [8, 9, 10, 19, 20, 21, 30, 31, 32]);
        // only two of three are within a millisecond; the third counts as passed
        let within = Some(Span::from_millis(1));
        assert_eq!(lost(Periodic { pass: 8, lose: 3, within, ..model }, &[]), [8, 9, 18, 19, 28, 29, 38, 39]);
        assert_eq!(lost(Periodic { pass: 0, lose: 1, ..model }, &[]).len(), 40);
        // acknowledgements are neither counted nor lost
        let mut data = Losses::new(&Loss::Periodic(Periodic { on: On::Data, ..model }), None, Stream::new(1, "loss"));
        let both = (0..40).flat_map(|i| [(i, Flags::NONE), (i, Flags::ACK)]);
        let gone: Vec<_> = both.filter(|&(i, flags)| data.take(i, i, &of(0, flags))).collect();
        assert_eq!(gone, [9, 19, 29, 39].map(|i| (i, Flags::NONE)));
    }

    #[test]
    fn at_its_times_alone() {
        let model = Periodic { pass: 2, lose: 2, within: None, on: On::All };
        // counted from the beginning of each interval; half-open; a burst does not continue into the next
        assert_eq!(lost(model, &[(5, 10), (20, 23), (23, 26)]), [7, 8, 22, 25]);
        assert!(lost(model, &[(3, 3), (38, 99)]).is_empty());
        let uniform = Loss::Uniform { rate: Ratio::ONE, on: On::All };
        let mut sure = Losses::new(&uniform, None, Stream::new(1, "loss")).during(&[(Time(3), Time(5))]);
        assert_eq!((0..9).filter(|&i| sure.take(i, i, &of(0, Flags::NONE))).collect::<Vec<_>>(), [3, 4]);
        // a model that is a function of time keeps running outside the intervals
        let states = Loss::TwoState(TwoState { good_rate: Ratio::ZERO, bad_rate: Ratio::ONE, ..PAPER });
        let second = 1_000_000_000;
        let mut always = Losses::new(&states, None, Stream::new(5, "loss"));
        let mut at_times = Losses::new(&states, None, Stream::new(5, "loss"))
            .during(&[(Time(10 * second), Time(20 * second)), (Time(300 * second), Time(400 * second))]);
        for i in 0..500 {
            let now = (10..20).contains(&i) || (300..400).contains(&i);
            let lost = always.take(i, i * second, &of(0, Flags::NONE));
            assert_eq!(at_times.take(i, i * second, &of(0, Flags::NONE)), lost && now, "{i}");
        }
    }

    const GE: GilbertElliott = GilbertElliott {
        good_rate: Ratio(0.02),
        bad_rate: Ratio(0.6),
        to_bad: Ratio(0.05),
        to_good: Ratio(0.2),
        on: On::All,
    };

    fn losses(model: Loss, seed: u64, n: u64, gap: u64) -> Vec<f64> {
        let mut losses = Losses::new(&model, None, Stream::new(seed, "loss"));
        (0..n).map(|i| f64::from(u8::from(losses.take(i, i * gap, &of(0, Flags::NONE))))).collect()
    }

    fn mean(x: &[f64]) -> f64 {
        x.iter().sum::<f64>() / x.len() as f64
    }

    /// Mean and correlations of the chain: with stationary probabilities g and b of the states, loss rates k and h, and
    /// s = 1 - to_bad - to_good, the mean is g k + b h and the covariance of packets n apart g b (h - k)^2 s^n.
    #[test]
    fn moments_of_gilbert_elliott() {
        let n = 4_000_000;
        let x = losses(Loss::GilbertElliott(GE), 1, n, 1);
        let (good, bad, s) = (0.8, 0.2, 0.75);
        let expected = good * 0.02 + bad * 0.6;
        assert!((mean(&x) - expected).abs() < 0.002, "{} {expected}", mean(&x));
        let mut power = 1.0;
        for lag in 1..=6 {
            power *= s;
            let theory = good * bad * (0.6 - 0.02) * (0.6 - 0.02) * power;
            let got = mean(&x.iter().zip(&x[lag..]).map(|(a, b)| (a - expected) * (b - expected)).collect::<Vec<_>>());
            assert!((got - theory).abs() < 0.001, "{lag}: {got} {theory}");
        }
    }

    /// Gilbert's chain with losses in the bad state only: runs of losses are geometric, with mean 1 / to_good.
    #[test]
    fn runs_of_gilbert() {
        let model = GilbertElliott { good_rate: Ratio::ZERO, bad_rate: Ratio::ONE, ..GE };
        let x = losses(Loss::GilbertElliott(model), 2, 2_000_000, 1);
        let runs: Vec<usize> = x.split(|v| *v == 0.0).map(<[f64]>::len).filter(|n| *n > 0).collect();
        assert!((mean(&x) - 0.2).abs() < 0.003);
        for k in 1..12 {
            let got = runs.iter().filter(|n| **n >= k).count() as f64 / runs.len() as f64;
            let p = libm::pow(0.8, f64::from(k as u8 - 1));
            assert!((got - p).abs() < 4.0 * (p * (1.0 - p) / runs.len() as f64).sqrt() + 1e-12, "{k}: {got} {p}");
        }
        let began: usize = (0..2000).filter(|&seed| losses(Loss::GilbertElliott(model), seed, 1, 1)[0] > 0.0).count();
        assert!(began.abs_diff(400) < 72, "{began} of 2000 begin in the bad state, expected a fifth");
    }

    const PAPER: TwoState = TwoState {
        good_rate: Ratio(0.00001),
        bad_rate: Ratio(0.1),
        good_time: Span::from_secs(8),
        bad_time: Span::from_secs(4),
        change: Ratio(0.95),
        start: Start::Good,
        on: On::All,
    };

    /// A third of the time is bad, so the loss rate is (2 good + bad) / 3; with 95 % a state lasts for one period only.
    #[test]
    fn moments_of_two_states() {
        let second = 1_000_000_000;
        for start in [Start::Good, Start::Anywhere] {
            let x = losses(Loss::TwoState(TwoState { start, ..PAPER }), 3, 4_000_000, second / 10);
            let expected = (2.0 * 0.00001 + 0.1) / 3.0;
            // 33,333 cycles of 12.6 s: the fraction of bad time is accurate to 0.3 %
            assert!((mean(&x) / expected - 1.0).abs() < 0.015, "{start:?}: {} {expected}", mean(&x));
        }
        let states = TwoState { good_rate: Ratio::ZERO, bad_rate: Ratio::ONE, ..PAPER };
        let x = losses(Loss::TwoState(states), 4, 1_000_000, second);
        assert_eq!(x[..8], [0.0; 8]);
        for (value, length) in [(1.0, 4), (0.0, 8)] {
            let runs: Vec<usize> = x[8..].split(|v| *v != value).map(<[f64]>::len).filter(|n| *n > 0).collect();
            let (whole, _) = runs.split_at(runs.len() - 1); // the end of the run cuts the last one
            assert!(whole.iter().all(|n| n % length == 0), "periods are whole");
            let single = whole.iter().filter(|n| **n == length).count() as f64 / whole.len() as f64;
            assert!((single - 0.95).abs() < 4.0 * (0.95 * 0.05 / whole.len() as f64).sqrt(), "{value}: {single}");
        }
    }

    /// The state at an instant does not depend on the packets before it.
    #[test]
    fn two_states_are_a_function_of_time() {
        for start in [Start::Good, Start::Anywhere] {
            let model = Loss::TwoState(TwoState { good_rate: Ratio::ZERO, bad_rate: Ratio::ONE, start, ..PAPER });
            let second = 1_000_000_000;
            let often = losses(model.clone(), 5, 100_000, second);
            let seldom = losses(model, 5, 1000, 100 * second);
            assert!(seldom.iter().enumerate().all(|(i, x)| *x == often[100 * i]));
        }
    }

    #[test]
    fn links_that_start_anywhere_differ() {
        let model = TwoState { good_rate: Ratio::ZERO, bad_rate: Ratio::ONE, start: Start::Anywhere, ..PAPER };
        let bad = (0..3000).filter(|&seed| losses(Loss::TwoState(model), seed, 1, 1)[0] > 0.0).count();
        assert!(bad.abs_diff(1000) < 104, "{bad} of 3000 begin in the bad state, expected a third");
    }
}

//! Links against a model that does everything the long way round: every instant from the definition of the rate,
//! every queue length by looking at all packets, every mean by adding up the events.

use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::{
    DropReason, Fate, Limit, Link, LinkModel, LinkReport, Measure, Opportunities, Queue, RateModel, Schedule,
};
use paceline_random::Stream;
use paceline_units::{Rate, Size, Span, Time};
use proptest::prelude::*;

fn packet(time: u64, size: u16) -> Packet {
    let (flow, seq, stamp, cursor, extra) = (FlowId(0), 0, Stamp(0), 0, ExtraId::NONE);
    Packet { time: Time(time), flow, seq, stamp, cursor, extra, size, flags: Flags::NONE }
}

/// When a packet arrived, left the queue, and had been sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    arrival: u64,
    start: u64,
    end: u64,
    size: u16,
}

/// The naive server: given those before it (in order), when a packet starts and ends.
trait Naive {
    fn serve(&self, before: &[Sent], arrival: u64, size: u16) -> (u64, u64);
}

/// A rate in steps, as the integral of the rate. Units: 10^-9 bit.
struct Steps {
    steps: Vec<(u64, u64)>,
    period: Option<u64>,
}

impl Steps {
    fn carried(&self, time: u64) -> u128 {
        let one = |time: u64| -> u128 {
            let ends = self.steps.iter().skip(1).map(|s| s.0).chain([u64::MAX]);
            let parts = self.steps.iter().zip(ends);
            parts.map(|(&(at, rate), end)| u128::from(time.min(end).saturating_sub(at)) * u128::from(rate)).sum()
        };
        match self.period {
            None => one(time),
            Some(p) => u128::from(time / p) * one(p) + one(time % p),
        }
    }

    /// The first instant, rounded down, at which `work` has been carried.
    fn inverse(&self, work: u128) -> u64 {
        let far = 1 << 60;
        if self.carried(far) < work {
            return u64::MAX;
        }
        let (mut low, mut high) = (0, far); // carried(high) >= work
        while low < high {
            let middle = (low + high) / 2;
            if self.carried(middle) >= work { high = middle } else { low = middle + 1 }
        }
        if self.carried(high) > work { high - 1 } else { high }
    }
}

impl Naive for Steps {
    fn serve(&self, before: &[Sent], arrival: u64, size: u16) -> (u64, u64) {
        let work = |size: u16| u128::from(size) * 8_000_000_000;
        let mut done = 0;
        for sent in before {
            done = self.carried(sent.arrival).max(done) + work(sent.size);
        }
        let start = if done > self.carried(arrival) { self.inverse(done) } else { arrival };
        if start == u64::MAX {
            return (start, start);
        }
        (start, self.inverse(self.carried(arrival).max(done) + work(size)))
    }
}

/// Opportunities, one by one: each takes what is there from the front of the queue.
struct Slots {
    times: Vec<u64>,
    period: u64,
}

impl Naive for Slots {
    fn serve(&self, before: &[Sent], arrival: u64, size: u16) -> (u64, u64) {
        let mut all: Vec<(u64, u64)> = before.iter().map(|s| (s.arrival, u64::from(s.size))).collect();
        all.push((arrival, u64::from(size)));
        let (mut first, mut front) = (None, 0);
        for round in 0.. {
            for at in self.times.iter().map(|t| t + round * self.period) {
                let mut left = 1500;
                while left > 0 && front < all.len() && all[front].0 < at {
                    if front == all.len() - 1 {
                        first = first.or(Some(at));
                    }
                    let taken = all[front].1.min(left);
                    all[front].1 -= taken;
                    left -= taken;
                    if all[front].1 == 0 {
                        front += 1;
                    }
                }
                if let (Some(first), true) = (first, front == all.len()) {
                    return (first, at);
                }
            }
        }
        unreachable!()
    }
}

#[derive(Default, Debug)]
struct Expected {
    arrivals: u64,
    departures: u64,
    departed_bytes: u64,
    overflow: u64,
    max: u32,
    mean: [f64; 2],
    sd: [f64; 2],
    /// Nanoseconds at each tenth of the limit.
    tenths: [u64; 10],
}

/// What the meter should say, from the list of what was sent and when something was dropped.
fn expected(sent: &[Sent], dropped: &[u64], window: Measure, queue: &Queue) -> Expected {
    let (from, to) = (window.from.0, window.to.0);
    let within = |t: u64| (from..to).contains(&t);
    let mut result =
        Expected { overflow: dropped.iter().filter(|&&t| within(t)).count() as u64, ..Expected::default() };
    result.arrivals = result.overflow + sent.iter().filter(|s| within(s.arrival)).count() as u64;
    let left: Vec<_> = sent.iter().filter(|s| within(s.start)).collect();
    result.departures = left.len() as u64;
    result.departed_bytes = left.iter().map(|s| u64::from(s.size)).sum();
    let mut instants: Vec<u64> = sent.iter().flat_map(|s| [s.arrival, s.start]).chain([from, to]).collect();
    instants.retain(|&t| (from..=to).contains(&t));
    instants.sort_unstable();
    instants.dedup();
    let (mut sums, mut squares) = ([0.0; 2], [0.0; 2]);
    for pair in instants.windows(2) {
        let waiting: Vec<_> = sent.iter().filter(|s| s.arrival <= pair[0] && s.start > pair[0]).collect();
        let bytes: f64 = waiting.iter().map(|s| f64::from(s.size)).sum();
        result.max = result.max.max(waiting.len() as u32);
        let tenth = match queue {
            Queue::DropTail(Limit::Packets(limit)) => 10 * waiting.len() as u64 / u64::from((*limit).max(1)),
            Queue::DropTail(Limit::Bytes(limit)) => 10 * bytes as u64 / limit.0.max(1),
            _ => 0,
        };
        result.tenths[tenth.min(9) as usize] += pair[1] - pair[0];
        for (i, level) in [waiting.len() as f64, bytes].into_iter().enumerate() {
            sums[i] += level * (pair[1] - pair[0]) as f64;
            squares[i] += level * level * (pair[1] - pair[0]) as f64;
        }
    }
    for i in 0..2 {
        result.mean[i] = sums[i] / (to - from) as f64;
        result.sd[i] = (squares[i] / (to - from) as f64 - result.mean[i] * result.mean[i]).max(0.0).sqrt();
    }
    result
}

fn compare(
    model: &LinkModel,
    naive: &dyn Naive,
    arrivals: &[(u64, u16)],
    window: (u64, u64),
) -> Result<(), TestCaseError> {
    let window = Measure { from: Time(window.0), to: Time(window.1) };
    for occupancy in [false, true] {
        compare_link(&LinkModel { occupancy, ..model.clone() }, naive, arrivals, window)?;
    }
    Ok(())
}

fn compare_link(
    model: &LinkModel,
    naive: &dyn Naive,
    arrivals: &[(u64, u16)],
    window: Measure,
) -> Result<(), TestCaseError> {
    let mut link = Link::new(model, window, Stream::new(1, "link"));
    link.record(Span(777_777));
    let (mut sent, mut dropped): (Vec<Sent>, Vec<u64>) = (vec![], vec![]);
    let opportunities = matches!(model.rate, RateModel::Opportunities(_));
    for &(arrival, size) in arrivals {
        let mut p = packet(arrival, size);
        let fate = link.admit(&mut p);
        let waiting: Vec<u64> = sent.iter().filter(|s| s.start > arrival).map(|s| u64::from(s.size)).collect();
        let (start, end) = naive.serve(&sent, arrival, size);
        let full = match model.queue {
            Queue::DropTail(Limit::Packets(limit)) => waiting.len() >= limit as usize,
            Queue::DropTail(Limit::Bytes(limit)) => waiting.iter().sum::<u64>() + u64::from(size) > limit.0,
            _ => false,
        };
        if full && (start > arrival || opportunities) {
            prop_assert_eq!(fate, Fate::Drop(DropReason::Overflow), "at {}", arrival);
            dropped.push(arrival);
        } else {
            let held = end == u64::MAX;
            prop_assert_eq!(fate, if held { Fate::Held } else { Fate::Pass }, "at {}", arrival);
            prop_assert_eq!(p.time, Time(end) + model.propagation, "at {} {}", arrival, size);
            sent.push(Sent { arrival, start, end, size });
        }
    }
    prop_assert!(sent.windows(2).all(|w| w[0].end <= w[1].end));
    let end = arrivals.last().map_or(0, |a| a.0).max(window.to.0) + 1;
    let LinkReport {
        mean_packets,
        mean_bytes,
        sd_packets,
        sd_bytes,
        max_packets,
        arrivals: arrived,
        departures,
        departed_bytes,
        drops,
        occupancy,
        ..
    } = link.finish(Time(end));
    let want = expected(&sent, &dropped, window, &model.queue);
    let requested = model.occupancy && !matches!(model.queue, Queue::Unlimited);
    let tenths = want.tenths.map(|time| time as f64 / window.to.since(window.from).0 as f64);
    prop_assert_eq!(occupancy, requested.then_some(tenths));
    prop_assert_eq!(
        (arrived, departures, departed_bytes.0, drops[DropReason::Overflow], max_packets),
        (want.arrivals, want.departures, want.departed_bytes, want.overflow, want.max)
    );
    let got =
        [(mean_packets, want.mean[0]), (mean_bytes, want.mean[1]), (sd_packets, want.sd[0]), (sd_bytes, want.sd[1])];
    let want_mean = |i: usize| want.mean[i - 2];
    for (i, (got, want)) in got.into_iter().enumerate() {
        // A deviation is the root of a difference of squares near the mean's: half the digits.
        let tolerance = if i < 2 { 1e-12 * want.max(1.0) } else { 1e-6 * (want + want_mean(i)).max(1.0) };
        prop_assert!((got - want).abs() <= tolerance, "moment {}: {} against {}", i, got, want);
    }
    let series = link.take_series();
    prop_assert_eq!(series.time.len() as u64, end / 777_777 + 1);
    for ((at, packets), bytes) in series.time.iter().zip(series.packets).zip(series.bytes) {
        let waiting: Vec<_> = sent.iter().filter(|s| s.arrival < at.0 && s.start > at.0).collect();
        prop_assert_eq!(packets as usize, waiting.len(), "at {}", at);
        prop_assert_eq!(bytes, waiting.iter().map(|s| u64::from(s.size)).sum::<u64>());
    }
    Ok(())
}

/// Arrivals with many ties and round numbers.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u16)>> {
    let gap = prop_oneof![Just(0u64), Just(800_000), Just(1_000_000), 0..3_000_000u64, Just(50_000_000)];
    let size = prop_oneof![Just(1000u16), Just(40), Just(1500), 1..=3000u16];
    prop::collection::vec((gap, size), 1..60).prop_map(|gaps| {
        let mut now = 0;
        let advance = |(gap, size)| {
            now += gap;
            (now, size)
        };
        gaps.into_iter().map(advance).collect()
    })
}

fn queue() -> impl Strategy<Value = Queue> {
    prop_oneof![
        Just(Queue::Unlimited),
        (0..20u32).prop_map(|n| Queue::DropTail(Limit::Packets(n))),
        (0..20_000u64).prop_map(|n| Queue::DropTail(Limit::Bytes(Size(n)))),
    ]
}

fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![Just(10_000_000u64), Just(8_000_000), Just(3_700_000), 1_000_000..20_000_000u64]
}

fn window() -> impl Strategy<Value = (u64, u64)> {
    (0..60_000_000u64, 1..60_000_000u64).prop_map(|(from, length)| (from, from + length))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn constant_rate(rate in rate(), queue in queue(), arrivals in arrivals(), window in window()) {
        let model = LinkModel::new(Rate(rate), Span(5), queue);
        compare(&model, &Steps { steps: vec![(0, rate)], period: None }, &arrivals, window)?;
    }

    #[test]
    fn schedules(
        lengths in prop::collection::vec((1..6u64, prop_oneof![Just(0), rate()]), 1..6),
        repeats: bool, queue in queue(), arrivals in arrivals(), window in window(),
    ) {
        let mut at = 0;
        let mut steps = vec![];
        for (length, rate) in lengths {
            steps.push((at, rate));
            at += length * 1_000_000;
        }
        prop_assume!(!repeats || steps.iter().any(|s| s.1 > 0));
        let period = repeats.then_some(at);
        let typed: Vec<_> = steps.iter().map(|&(at, rate)| (Time(at), Rate(rate))).collect();
        let mut model = LinkModel::new(Rate(1), Span(5), queue);
        model.rate = RateModel::Schedule(Schedule::new(&typed, period.map(Span)).unwrap());
        compare(&model, &Steps { steps, period }, &arrivals, window)?;
    }

    #[test]
    fn opportunities(
        gaps in prop::collection::vec(prop_oneof![Just(0u64), 0..5u64, Just(40)], 1..20),
        queue in queue(), arrivals in arrivals(), window in window(),
    ) {
        let mut at = 0;
        let times: Vec<u64> = gaps.iter().map(|gap| { at += gap * 1_000_000; at }).collect();
        prop_assume!(at > 0);
        let all = Opportunities::new(times.iter().map(|&t| Time(t)), Opportunities::BYTES).unwrap();
        let mut model = LinkModel::new(Rate(1), Span(5), queue);
        model.rate = RateModel::Opportunities(all);
        compare(&model, &Slots { times, period: at }, &arrivals, window)?;
    }
}

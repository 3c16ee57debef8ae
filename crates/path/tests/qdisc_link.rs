//! A link that decides at departure, with a queue that need not, does what the link does that is evaluated ahead: the same
//! arrivals at the far end, the same drops, the same measures, and the same recording.

use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::{
    CakeModel, Fate, Hosts, Isolation, Keys, Limit, Link, LinkModel, LinkRecovery, LinkReport, Measure, Opportunities,
    PolicerModel, QdiscLink, Queue, RateModel, Schedule, Series,
};
use paceline_random::Stream;
use paceline_units::{Rate, Ratio, Size, Span, Time};
use proptest::prelude::*;

fn packet(time: u64, seq: u32, size: u16) -> Packet {
    let (flow, stamp, cursor, extra) = (FlowId(0), Stamp(0), 0, ExtraId::NONE);
    Packet { time: Time(time), flow, seq, stamp, cursor, extra, size, flags: Flags::NONE }
}

/// What became of each packet, by its number: when it arrives, or nothing; in both links nothing is lost elsewhere.
type Outcome = (Vec<Option<Time>>, LinkReport, Series);

const WINDOW: Measure = Measure { from: Time(7_000_000), to: Time(40_000_000) };
const EVERY: Span = Span(777_777);

fn ahead(model: &LinkModel, arrivals: &[(u64, u16)], end: Time) -> Outcome {
    let mut link = Link::new(model, WINDOW, Stream::new(1, "link"));
    link.record(EVERY);
    let sent = arrivals.iter().zip(0..).map(|(&(at, size), seq)| {
        let mut packet = packet(at, seq, size);
        (link.admit(&mut packet) == Fate::Pass).then_some(packet.time)
    });
    let sent = sent.collect();
    (sent, link.finish(end), link.take_series())
}

fn one_by_one(model: &LinkModel, arrivals: &[(u64, u16)], end: Time) -> Outcome {
    let mut link = QdiscLink::new(model, WINDOW, Keys::Flow, Stream::new(1, "link"));
    link.record(EVERY);
    let mut sent = vec![None; arrivals.len()];
    let mut last = Time::ZERO;
    let mut onward = |fate: Fate, packet: Packet, at: Time| {
        assert!(at >= last, "in order of time");
        last = at;
        if fate == Fate::Pass {
            sent[packet.seq as usize] = Some(packet.time);
        }
    };
    for (&(at, size), seq) in arrivals.iter().zip(0..) {
        link.advance(Time(at + 1), &mut onward);
        link.arrive(packet(at, seq, size), &mut onward);
    }
    link.advance(end, &mut onward);
    // What leaves after the end of the books still arrives at the far end, as it does where it is known ahead.
    let mut rest = link.clone();
    let (report, series) = (link.finish(end), link.take_series());
    rest.advance(Time(end.0 + 1_000_000_000_000), &mut onward);
    (sent, report, series)
}

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

fn rates() -> impl Strategy<Value = RateModel> {
    let rate = || prop_oneof![Just(8_000_000u64), Just(3_700_000), 1_000_000..20_000_000u64];
    let schedule = (rate(), rate()).prop_map(|(a, b)| {
        let steps = [(0, a), (5, 0), (9, b)].map(|(ms, rate)| (Time(ms * 1_000_000), Rate(rate)));
        RateModel::Schedule(Schedule::new(&steps, Some(Span::from_millis(20))).unwrap())
    });
    let slots = prop::collection::vec(prop_oneof![Just(0u64), 1..5u64], 1..12).prop_map(|gaps| {
        let mut at = 1;
        let times: Vec<Time> = gaps
            .iter()
            .map(|gap| {
                at += gap;
                Time(at * 1_000_000)
            })
            .collect();
        RateModel::Opportunities(Opportunities::new(times, Opportunities::BYTES).unwrap())
    });
    prop_oneof![rate().prop_map(|rate| RateModel::Constant(Rate(rate))), schedule, slots]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn both_do_the_same(
        rate in rates(),
        queue in prop_oneof![
            Just(Queue::Unlimited),
            (1..20u32).prop_map(|n| Queue::DropTail(Limit::Packets(n))),
            (3000..20_000u64).prop_map(|n| Queue::DropTail(Limit::Bytes(Size(n)))),
        ],
        recovers: bool, occupancy: bool, arrivals in arrivals(),
        policer in prop::option::of((500_000..20_000_000u64, 1..6000u64)),
    ) {
        let mut model = LinkModel::new(Rate(1), Span(5), queue);
        model.rate = rate;
        // Draws go by the arrival in one and by the departure in the other: a block that is always whole, or never.
        let recovery = LinkRecovery {
            block_time: Span::from_millis(1),
            block_error: Ratio(0.0),
            delay: Span::from_millis(3),
            retransmissions: 2,
        };
        model.recovery = recovers.then_some(recovery);
        model.occupancy = occupancy;
        model.policer = policer.map(|(rate, burst)| PolicerModel { rate: Rate(rate), burst: Size(burst) });
        // A run's windows are half-open: what comes at the end is no part of it.
        let end = Time(arrivals.last().map_or(0, |last| last.0 + 1).max(60_000_000));
        let (sent, report, series) = ahead(&model, &arrivals, end);
        let (other_sent, other, other_series) = one_by_one(&model, &arrivals, end);
        prop_assert_eq!(sent, other_sent);
        prop_assert_eq!(series, other_series);
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
        prop_assert!(close(report.mean_packets, other.mean_packets) && close(report.mean_bytes, other.mean_bytes));
        prop_assert!((report.sd_bytes - other.sd_bytes).abs() <= 1e-5 * report.sd_bytes.max(1.0));
        prop_assert!(close(report.utilisation.0, other.utilisation.0));
        let exact = |it: &LinkReport| {
            (it.max_packets, it.arrivals, it.departures, it.departed_bytes, it.drops, it.totals, it.measured)
        };
        prop_assert_eq!(exact(&report), exact(&other));
        prop_assert_eq!(report.occupancy.is_some(), other.occupancy.is_some());
        for (a, b) in report.occupancy.iter().flatten().zip(other.occupancy.iter().flatten()) {
            prop_assert!(close(*a, *b));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// CAKE's shaper before a link that is fast: a packet leaves when one of the shaper's rate would begin with it.
    #[test]
    fn a_shaper_is_a_link_before_the_link(us in prop_oneof![Just(1u64), Just(4), Just(5), Just(20)], arrivals in arrivals()) {
        // whole microseconds a byte, which both count alike
        let rate = Rate(8_000_000 / us);
        let queue = CakeModel { isolation: Isolation::FlowBlind, overhead: Size(0), rtt: Span::from_secs(60), ..CakeModel::new(Some(rate)) };
        let fast = LinkModel::new(Rate(1_000_000_000_000), Span::ZERO, Queue::Cake(queue));
        let slow = LinkModel::new(rate, Span::ZERO, Queue::Unlimited);
        let end = Time(10_000_000_000);
        let [shaped, plain] = [fast, slow].map(|model| one_by_one(&model, &arrivals, end).0);
        for ((shaped, plain), (_, size)) in shaped.iter().zip(&plain).zip(&arrivals) {
            let (size, shaped, plain) = (u64::from(*size), shaped.expect("it arrives").0, plain.expect("it arrives").0);
            prop_assert_eq!(shaped - size * 8 / 1000, plain - size * us * 1000);
        }
    }

    /// Before any link nothing is lost count of (`finish` asserts it), all that is not dropped leaves, none before it came, and all
    /// before a packet no faster than at the bandwidth.
    #[test]
    fn a_shaper_stands_before_any_link(
        rate in rates(), mbps in 1..20u64, recovers: bool, ingress: bool, mut arrivals in arrivals(),
    ) {
        let bandwidth = Rate(mbps * 1_000_000);
        let queue = CakeModel { ingress, overhead: Size(0), limit: Limit::Packets(9), hosts: Hosts::Stamped, ..CakeModel::new(Some(bandwidth)) };
        let mut model = LinkModel::new(Rate(1), Span::ZERO, Queue::Cake(queue));
        model.rate = rate;
        let recovery = LinkRecovery {
            block_time: Span::from_millis(1),
            block_error: Ratio(0.0),
            delay: Span::from_millis(3),
            retransmissions: 2,
        };
        model.recovery = recovers.then_some(recovery);
        // what comes at one instant again and again
        let again = arrivals.clone();
        let last = arrivals.last().map_or(0, |last| last.0);
        arrivals.extend(again.iter().map(|(_, size)| (last + 1, *size)));
        let mut link = QdiscLink::new(&model, WINDOW, Keys::Flow, Stream::new(1, "link"));
        let (mut left, mut dropped) = (Vec::new(), 0);
        let mut onward = |fate: Fate, packet: Packet, at: Time| match fate {
            Fate::Pass => left.push((at.0, u64::from(packet.size), arrivals[packet.seq as usize].0)),
            _ => dropped += 1,
        };
        for (&(at, size), seq) in arrivals.iter().zip(0..) {
            link.advance(Time(at + 1), &mut onward);
            link.arrive(packet(at, seq, size), &mut onward);
        }
        link.advance(Time(last + 100_000_000_000), &mut onward);
        let report = link.finish(Time(last + 100_000_000_000));
        prop_assert_eq!(report.totals.waiting, 0, "all leaves some day");
        prop_assert_eq!(left.len() + dropped, arrivals.len());
        let (mut sent, first) = (0, arrivals[0].0);
        for (number, (at, size, arrived_at)) in (0..).zip(&left) {
            prop_assert!(at >= arrived_at);
            // each packet's time is whole nanoseconds
            prop_assert!(sent * 8_000 / mbps <= at - first + number, "{} B by {}", sent, at);
            sent += size;
        }
    }
}

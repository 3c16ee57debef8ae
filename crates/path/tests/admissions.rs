//! A packet is admitted to a link in one of three ways: by itself, in a batch, or by the way that knows every server, discipline
//! and impairment, which a recording chooses; a link without a limit that nobody measures is a pipe. All are one.

use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::{Fate, Limit, Link, LinkModel, Loss, Measure, On, Pipe, Queue};
use paceline_random::Stream;
use paceline_units::{Rate, Ratio, Span, Time};
use proptest::prelude::*;

fn packet((time, size): (u64, u16)) -> Packet {
    let (flow, seq, stamp, cursor, extra) = (FlowId(0), 0, Stamp(0), 0, ExtraId::NONE);
    Packet { time: Time(time), flow, seq, stamp, cursor, extra, size, flags: Flags::NONE }
}

/// What became of a packet: when it arrives at the far end, or why it does not.
fn outcome(fate: Fate, packet: &Packet) -> Result<Time, Fate> {
    if fate == Fate::Pass { Ok(packet.time) } else { Err(fate) }
}

fn one_by_one(link: &mut Link, arrivals: &[(u64, u16)]) -> Vec<Result<Time, Fate>> {
    let admit = |&arrival| {
        let mut packet = packet(arrival);
        let fate = link.admit(&mut packet);
        outcome(fate, &packet)
    };
    arrivals.iter().map(admit).collect()
}

fn in_batches(link: &mut Link, arrivals: &[(u64, u16)], sizes: &[usize]) -> Vec<Result<Time, Fate>> {
    let (mut outcomes, mut rest, mut sizes) = (Vec::new(), arrivals, sizes.iter().cycle());
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(*sizes.next().unwrap_or(&1)));
        let mut batch: Vec<Packet> = now.iter().copied().map(packet).collect();
        let mut reasons = Vec::new();
        assert!(link.admit_all(&mut batch, |_, reason| reasons.push(reason)), "a plain link takes batches");
        let mut reasons = reasons.into_iter();
        outcomes.extend(batch.iter().map(|packet| match packet.cursor {
            Packet::NOWHERE => Err(reasons.next().map_or(Fate::Held, Fate::Drop)),
            _ => Ok(packet.time),
        }));
        rest = later;
    }
    outcomes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_ways_into_a_link_are_one(
        gaps in prop::collection::vec(
            (prop_oneof![Just(0u64), Just(800_000), 0..3_000_000u64], prop_oneof![Just(1000u16), 40..=1500u16]),
            1..200,
        ),
        rate in prop_oneof![Just(10_000_000u64), 1_000_000..20_000_000u64],
        limit in prop_oneof![Just(None), (0..20u32).prop_map(Some)],
        sizes in prop::collection::vec(1..20usize, 1..8),
        (from, length) in (0..100_000_000u64, 1..100_000_000u64),
        lossy: bool,
    ) {
        let mut now = 0;
        let arrivals: Vec<(u64, u16)> = gaps.into_iter().map(|(gap, size)| { now += gap; (now, size) }).collect();
        let queue = limit.map_or(Queue::Unlimited, |limit| Queue::DropTail(Limit::Packets(limit)));
        let mut model = LinkModel::new(Rate(rate), Span(5_000_000), queue);
        if lossy {
            model.loss = Some(Loss::Uniform { rate: Ratio(0.2), on: On::All });
        }
        let window = Measure { from: Time(from), to: Time(from + length) };
        let new = || Link::new(&model, window, Stream::new(1, "link"));
        let (mut plain, mut batched, mut general) = (new(), new(), new());
        general.record(Span(777_777));
        let outcomes = one_by_one(&mut plain, &arrivals);
        prop_assert_eq!(&one_by_one(&mut general, &arrivals), &outcomes);
        if !lossy && limit.is_none() {
            let mut pipe = Pipe::new(Rate(rate), Span(5_000_000));
            let times: Vec<_> = arrivals.iter().map(|&arrival| {
                let mut packet = packet(arrival);
                pipe.admit(&mut packet);
                Ok(packet.time)
            }).collect();
            prop_assert_eq!(&times, &outcomes);
        }
        let end = Time(now.max(from + length) + 1);
        let report = plain.finish(end);
        prop_assert_eq!(&general.finish(end), &report);
        if !lossy {
            prop_assert_eq!(&in_batches(&mut batched, &arrivals, &sizes), &outcomes);
            prop_assert_eq!(&batched.finish(end), &report);
        }
    }

    /// Nothing waits behind a link of the same rate, unless for a greater packet that came before it: at a host behind a
    /// bottleneck of its own link's rate the queue needs no account.
    #[test]
    fn packets_wait_behind_a_link_of_the_same_rate_for_a_greater_one_alone(
        gaps in prop::collection::vec((prop_oneof![Just(0u64), 0..300_000u64], 40..=1500u16), 1..200),
        rate in prop_oneof![Just(100_000_000u64), 1_000_000..10_000_000_000u64],
        propagation in 0..10_000_000u64,
        alike: bool,
    ) {
        let queue = Queue::DropTail(Limit::Packets(100));
        let mut first = Link::new(&LinkModel::new(Rate(rate), Span(propagation), queue.clone()), Measure::ALL, Stream::new(1, "a"));
        let mut second = Link::new(&LinkModel::new(Rate(rate), Span(0), queue), Measure::ALL, Stream::new(1, "b"));
        let mut now = 0;
        let time = |size: u16| u64::from(size) * 8_000_000_000 / rate;
        for (gap, size) in gaps {
            now += gap;
            let size = if alike { 1000 } else { size };
            let mut packet = packet((now, size));
            if first.admit(&mut packet) == Fate::Pass {
                let arrived_at = packet.time.0;
                prop_assert_eq!(second.admit(&mut packet), Fate::Pass);
                prop_assert!(packet.time.0 - arrived_at <= time(1500) + 2);
            }
        }
        let report = second.finish(Time(u64::MAX / 2));
        prop_assert!(!alike || report.max_packets == 0);
    }
}

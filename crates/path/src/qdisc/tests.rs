//! Disciplines by hand: the RFCs' control laws, and invariants of all disciplines for any traffic.

use super::*;
use crate::RedModel;
use paceline_packet::{ExtraId, FlowId, Stamp};
use paceline_units::{Ratio, Size};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const MANY: Limit = Limit::Packets(100_000);

fn packet(flow: u32, seq: u32, size: u16) -> Packet {
    let (time, flags) = (Time::ZERO, Flags::NONE);
    Packet { time, flow: FlowId(flow), seq, stamp: Stamp(0), cursor: 0, extra: ExtraId::NONE, size, flags }
}

fn capable(packet: Packet) -> Packet {
    Packet { flags: packet.flags.with(Flags::ECT), ..packet }
}

fn scalable(packet: Packet) -> Packet {
    Packet { flags: packet.flags.with(Flags::ECT).with(Flags::L4S), ..packet }
}

fn discipline(queue: &Queue) -> Discipline {
    let interface =
        Interface { rate: Rate::from_mbps(8.0), propagation: Span::from_millis(10), keys: Keys::FlowAndDirection };
    Discipline::new(queue, interface, Stream::new(1, "queue"))
}

fn codel(change: impl FnOnce(&mut CoDelModel)) -> Discipline {
    let mut model = CoDelModel::new(MANY);
    change(&mut model);
    discipline(&Queue::CoDel(model))
}

fn put(queue: &mut Discipline, at: u64, packet: Packet) -> Vec<(u32, DropReason)> {
    let mut dropped = Vec::new();
    queue.enqueue(Time(at), packet, |packet, reason| dropped.push((packet.seq, reason)));
    dropped
}

/// The packet dequeued at `at`, and the packets dropped.
fn take(queue: &mut Discipline, at: u64) -> (Option<Packet>, Vec<(u32, DropReason)>) {
    let mut dropped = Vec::new();
    let packet = queue.dequeue(Time(at), |packet, reason| dropped.push((packet.seq, reason)));
    (packet, dropped)
}

/// The milliseconds in `span` with a drop, when one packet is dequeued per millisecond.
fn drops_each_ms(queue: &mut Discipline, span: core::ops::Range<u64>) -> Vec<u64> {
    span.filter(|ms| {
        let (packet, dropped) = take(queue, ms * MS);
        assert!(packet.is_some() && dropped.iter().all(|(_, reason)| *reason == DropReason::Delay));
        assert!(dropped.len() <= 1, "one at a time at this rate");
        !dropped.is_empty()
    })
    .collect()
}

/// RFC 8289 section 5.4: the first drop comes an interval after the delay exceeds the target, each later one after an
/// interval over the square root of the count.
#[test]
fn codel_drops_by_its_control_law() {
    let mut queue = codel(|_| {});
    for seq in 0..5000 {
        put(&mut queue, 0, packet(0, seq, 1000));
    }
    let drops = drops_each_ms(&mut queue, 0..2000);
    // Above the target from 5 ms on; each time is rounded up to the next whole millisecond.
    let (mut due, mut expected) = (105.0f64, Vec::new());
    for count in 1u32.. {
        if due >= 2000.0 {
            break;
        }
        expected.push(due.ceil() as u64);
        due += 100.0 / f64::from(count).sqrt();
    }
    assert_eq!(drops, expected);
    assert!(drops.len() > 80, "{}", drops.len());
}

/// RFC 8289 section 5.5: if CoDel re-enters the dropping state soon after leaving it, it resumes near its old rate;
/// later, it starts afresh.
#[test]
fn codel_remembers_how_often_it_dropped() {
    for (pause, first_gap) in [(200, None), (5000, Some(100))] {
        let mut queue = codel(|_| {});
        for seq in 0..1000 {
            put(&mut queue, 0, packet(0, seq, 1000));
        }
        let before = drops_each_ms(&mut queue, 0..700).len() as u32;
        // The queue empties, which ends the dropping state.
        while take(&mut queue, 700 * MS).0.is_some() {}
        let again = 700 + pause;
        for seq in 0..1000 {
            put(&mut queue, again * MS, packet(0, seq, 1000));
        }
        let drops = drops_each_ms(&mut queue, again..again + 400);
        assert_eq!(drops[0], again + 105);
        // All drops of that cycle except the first, plus those while the queue emptied at one instant.
        let gap = drops[1] - drops[0];
        match first_gap {
            Some(expected) => assert_eq!(gap, expected),
            None => {
                let expected = (100.0 / f64::from(before - 1).sqrt()).ceil() as u64;
                assert!(gap <= expected && gap > expected / 2, "{gap} {expected}");
            }
        }
    }
}

/// RFC 8289 section 5: no drop while no more than an MTU waits, whatever its sojourn time.
#[test]
fn codel_leaves_the_last_packets() {
    let mut queue = codel(|_| {});
    let mut seq = 0;
    for ms in 0..5000 {
        // One packet waits for 50 ms at a time, with another one behind it.
        if ms % 50 == 0 {
            put(&mut queue, ms * MS, packet(0, seq, 1500));
            put(&mut queue, ms * MS, packet(0, seq + 1, 1500));
            seq += 2;
            let (_, dropped) = take(&mut queue, (ms + 49) * MS);
            assert_eq!(dropped, [], "at {ms}");
            let (_, dropped) = take(&mut queue, (ms + 49) * MS);
            assert_eq!(dropped, [], "at {ms}");
        }
    }
}

#[test]
fn codel_marks_instead() {
    let mut queue = codel(|model| model.ecn = true);
    for seq in 0..1000 {
        let packet = packet(0, seq, 1000);
        put(&mut queue, 0, if seq < 500 { capable(packet) } else { packet });
    }
    let marked: Vec<u64> = (0..500u64)
        .filter(|ms| {
            let (packet, dropped) = take(&mut queue, ms * MS);
            assert_eq!(dropped, []);
            packet.is_some_and(|packet| packet.flags.has(Flags::CE))
        })
        .collect();
    assert_eq!(marked[..4], [105, 205, 276, 334]);
    assert_eq!(queue.marks(), marked.len() as u64);
    assert!(!drops_each_ms(&mut queue, 500..700).is_empty(), "who cannot hear a mark is dropped");
    let mut queue = codel(|model| model.mark_above = Some(Span::from_millis(2)));
    for seq in 0..5 {
        put(&mut queue, 0, capable(packet(0, seq, 1000)));
    }
    let marked = (0..5).map(|ms| take(&mut queue, ms * MS).0.is_some_and(|packet| packet.flags.has(Flags::CE)));
    assert_eq!(marked.collect::<Vec<_>>(), [false, false, false, true, true]);
}

/// Linux' `ce_threshold_selector 0x01/0x03`: the step marks only ECT(1), CoDel's own marks apply to all. A packet that
/// is already marked is not counted again.
#[test]
fn a_step_for_one_class() {
    let kinds = [Flags::NONE, Flags::ECT, Flags::ECT.with(Flags::L4S), Flags::ECT.with(Flags::L4S).with(Flags::CE)];
    for (class, marked) in [(StepFor::Ect, [false, true, true, true]), (StepFor::Ect1, [false, false, true, true])] {
        for fair in [false, true] {
            let codel =
                CoDelModel { mark_above: Some(Span::from_millis(1)), mark_above_for: class, ..CoDelModel::new(MANY) };
            let fq = FqCoDelModel { codel, ..FqCoDelModel::new(MANY) };
            let mut queue = discipline(&if fair { Queue::FqCoDel(fq) } else { Queue::CoDel(codel) });
            for (seq, flags) in (0..).zip(kinds) {
                put(&mut queue, 0, Packet { flags, ..packet(0, seq, 1000) });
            }
            let got = kinds.map(|_| take(&mut queue, 2 * MS).0.unwrap().flags);
            assert_eq!(got.map(|flags| flags.has(Flags::CE)), marked, "{class:?}, fair: {fair}");
            assert_eq!(got.map(|flags| flags.has(Flags::L4S)), [false, false, true, true], "the class stays");
            assert_eq!(queue.marks(), u64::from(class == StepFor::Ect) + 1);
        }
    }
    // After an interval above the target, CoDel marks ECT(0) too.
    let mut queue = codel(|model| {
        (model.ecn, model.mark_above, model.mark_above_for) = (true, Some(Span::from_millis(1)), StepFor::Ect1);
    });
    for seq in 0..1000 {
        put(&mut queue, 0, capable(packet(0, seq, 1000)));
    }
    let marked = (0..150).filter(|ms| take(&mut queue, ms * MS).0.unwrap().flags.has(Flags::CE));
    assert_eq!(marked.collect::<Vec<_>>(), [105]);
}

/// A packet that arrives marked passes where an unmarked one is marked, and does not count as this queue's mark (RFC
/// 3168, section 5.3).
#[test]
fn a_mark_of_another_queue_is_not_counted() {
    let red = RedModel { weight: Some(1.0), wait: false, ecn: true, mark_below: None, ..RedModel::new(MANY) };
    let pie = PieModel { mark_below: Some(Ratio(1.0)), ..PieModel::new(MANY) };
    let codel = CoDelModel { ecn: true, ..CoDelModel::new(MANY) };
    let kinds = [
        Queue::Red(red),
        Queue::Pie(pie),
        Queue::FqPie(FqPieModel { pie, ..FqPieModel::new(MANY) }),
        Queue::CoDel(codel),
        Queue::FqCoDel(FqCoDelModel { codel, ..FqCoDelModel::new(MANY) }),
    ];
    for kind in kinds {
        let counted = [Flags::NONE, Flags::CE].map(|before| {
            let (mut queue, mut passed) = (discipline(&kind), 0);
            for ms in 0..3000 {
                for seq in 0..2 {
                    let capable = capable(packet(0, 2 * ms as u32 + seq, 1000));
                    put(&mut queue, ms * MS, Packet { flags: capable.flags.with(before), ..capable });
                }
                passed += u64::from(take(&mut queue, ms * MS).0.is_some());
            }
            (queue.marks(), passed)
        });
        assert!(counted[0].0 > 0, "{kind:?} marks");
        assert_eq!(counted[1], (0, counted[0].1), "{kind:?}: what came marked passes alike");
    }
}

fn fair(change: impl FnOnce(&mut FqCoDelModel)) -> Discipline {
    let mut model = FqCoDelModel::new(MANY);
    change(&mut model);
    discipline(&Queue::FqCoDel(model))
}

/// RFC 8290 section 4.2: a flow with an empty queue goes before the others once; then it waits for its turn.
#[test]
fn fq_codel_serves_the_sparse_first_and_the_others_in_turn() {
    let mut queue = fair(|_| {});
    for seq in 0..20 {
        put(&mut queue, 0, packet(1, seq, 1500));
        put(&mut queue, 0, packet(2, seq, 500));
    }
    let flows = |queue: &mut Discipline, n: usize| -> Vec<u32> {
        (0..n).map(|_| take(queue, MS).0.map_or(9, |packet| packet.flow.0)).collect()
    };
    // 1514 bytes each: two of 1500, as the first leaves 14 credits; four of 500.
    assert_eq!(flows(&mut queue, 6), [1, 1, 2, 2, 2, 2]);
    put(&mut queue, MS, packet(3, 0, 100));
    assert_eq!(flows(&mut queue, 2), [3, 1], "the newcomer first");
    // Its queue is in the old list now, empty, and is served again after the others have had their turn.
    put(&mut queue, MS, packet(3, 1, 100));
    let order = flows(&mut queue, 6);
    assert!(order[0] != 3 && order.contains(&3), "{order:?}");
}

#[test]
fn fq_codel_takes_from_the_fattest() {
    let mut queue = fair(|model| model.codel.limit = Limit::Packets(100));
    for seq in 0..10 {
        put(&mut queue, 0, packet(2, seq, 100));
    }
    for seq in 0..90 {
        assert_eq!(put(&mut queue, 0, packet(1, seq, 1000)), []);
    }
    // One too many, from the thin flow: the fat flow loses half of its bytes, from its head.
    let dropped = put(&mut queue, 0, packet(2, 10, 100));
    let expected: Vec<_> = (0..45).map(|seq| (seq, DropReason::Overflow)).collect();
    assert_eq!(dropped, expected);
    assert_eq!((queue.packets(), queue.bytes()), (56, 45 * 1000 + 11 * 100));
    let mut queue = fair(|model| (model.codel.limit, model.batch) = (Limit::Bytes(Size(200_000)), 8));
    let lost = (0..201).map(|seq| put(&mut queue, 0, packet(1, seq, 1000)).len());
    assert_eq!(lost.collect::<Vec<_>>()[199..], [0, 8]);
}

/// A queue that has used up its credits exactly waits for its turn; one that was empty for a whole round counts as new
/// again, with a full quantum.
#[test]
fn fq_codel_gives_each_turn_one_quantum() {
    let mut queue = fair(|model| model.quantum = Size(1000));
    for seq in 0..6 {
        put(&mut queue, 0, packet(1, seq, 1000));
        put(&mut queue, 0, packet(2, seq, 500));
    }
    let flows = |queue: &mut Discipline, n: usize| -> Vec<u32> {
        (0..n).map(|_| take(queue, MS).0.map_or(9, |packet| packet.flow.0)).collect()
    };
    assert_eq!(flows(&mut queue, 9), [1, 2, 2, 1, 2, 2, 1, 2, 2]);
    put(&mut queue, MS, packet(3, 0, 1000));
    assert_eq!(flows(&mut queue, 5), [3, 1, 1, 1, 9]);
    // The queue is found empty, and the rest of its quantum is discarded: three packets of 400 bytes fit into one turn.
    put(&mut queue, MS, packet(4, 0, 300));
    assert_eq!(flows(&mut queue, 2), [4, 9]);
    (6..8).for_each(|seq| assert_eq!(put(&mut queue, MS, packet(1, seq, 1000)), []));
    (1..4).for_each(|seq| assert_eq!(put(&mut queue, MS, packet(4, seq, 400)), []));
    assert_eq!(flows(&mut queue, 5), [1, 4, 4, 4, 1]);
}

/// Overflow drops add to the queue's CoDel count, so that later drops come sooner; but not before its first dropping
/// state, even near time zero.
#[test]
fn fq_codel_counts_what_it_lost() {
    let fill = |queue: &mut Discipline, ms: u64, count| -> usize {
        (0..count).map(|seq| put(queue, ms * MS, packet(1, seq, 1500)).len()).sum()
    };
    for (count, lost, second) in [(399, 0, 405), (400, 64, 318)] {
        let mut queue = fair(|model| model.codel.limit = Limit::Packets(399));
        assert_eq!(fill(&mut queue, 0, count), lost);
        assert_eq!(drops_each_ms(&mut queue, 0..206), [105, 205]);
        while take(&mut queue, 206 * MS).0.is_some() {}
        assert_eq!(fill(&mut queue, 200 + 100, count), lost);
        // One interval after the first drop, or about an eighth of one.
        let again = drops_each_ms(&mut queue, 300..506);
        assert_eq!(again[..2], [405, second + 100]);
    }
}

/// A flow and the acknowledgements in the other direction are two flows, unless the flow number implies the direction.
#[test]
fn directions_are_flows_of_their_own() {
    for (keys, first) in [(Keys::FlowAndDirection, 100), (Keys::Flow, 101)] {
        let interface = Interface { rate: Rate::from_mbps(8.0), propagation: Span::ZERO, keys };
        let queue = Queue::FqCoDel(FqCoDelModel::new(MANY));
        let mut queue = Discipline::new(&queue, interface, Stream::new(1, "queue"));
        for seq in 0..5 {
            put(&mut queue, 0, packet(1, seq, 1500));
        }
        put(&mut queue, 0, Packet { flags: Flags::ACK, ..packet(1, 100, 40) });
        let order: Vec<u32> = (0..6).filter_map(|_| take(&mut queue, MS).0).map(|packet| packet.seq).collect();
        let place = order.iter().position(|seq| *seq == 100);
        assert_eq!(place, Some(if first == 100 { 2 } else { 5 }), "{order:?}");
    }
}

/// The fraction that PIE drops over the seconds of `span`, with one packet per millisecond and a constant delay of
/// `delay_ms`.
fn pie_share(model: PieModel, delay_ms: u64, span: core::ops::Range<u64>) -> f64 {
    let mut queue = discipline(&Queue::Pie(model));
    let (mut arrived, mut lost) = (0u32, 0u32);
    for ms in 0..span.end * 1000 {
        let dropped = put(&mut queue, ms * MS, packet(0, ms as u32, 1000));
        if ms >= span.start * 1000 {
            arrived += 1;
            lost += dropped.len() as u32;
        }
        // Dequeue packets that have waited long enough.
        while u64::from(queue.packets()) > delay_ms {
            take(&mut queue, ms * MS);
        }
    }
    f64::from(lost) / f64::from(arrived)
}

/// While the delay stays above the target, the drop rate keeps growing; below half of it nothing is dropped.
#[test]
fn pie_grows_while_the_delay_stands_above_its_target() {
    let model = PieModel::new(MANY);
    assert_eq!(pie_share(model, 5, 0..20), 0.0);
    let (early, middle, late) = (pie_share(model, 40, 0..1), pie_share(model, 40, 2..3), pie_share(model, 40, 8..10));
    assert!(early < 0.05 && middle > 3.0 * early && middle < 0.7 && late > 0.95, "{early} {middle} {late}");
    let rate = PieModel { estimate: DelayEstimate::DepartureRate, ..model };
    let by_rate = pie_share(rate, 40, 2..3);
    assert!((by_rate / middle - 1.0).abs() < 0.4, "{by_rate} {middle}");
}

/// RFC 8033 section 4.4: a burst after an idle time passes without drops.
#[test]
fn pie_lets_a_burst_pass() {
    for (burst, passes) in [(150, true), (0, false)] {
        let mut queue = discipline(&Queue::Pie(PieModel { burst: Span::from_millis(burst), ..PieModel::new(MANY) }));
        let mut lost = 0;
        for ms in 1000..1140u64 {
            for n in 0..20 {
                lost += put(&mut queue, ms * MS, packet(0, n, 1500)).len();
            }
            take(&mut queue, ms * MS);
        }
        assert_eq!(lost == 0, passes, "{lost}");
    }
}

#[test]
fn pie_marks_while_the_probability_is_low() {
    let marking = |below| {
        let model = PieModel { mark_below: Some(Ratio(below)), ..PieModel::new(MANY) };
        let mut queue = discipline(&Queue::Pie(model));
        let mut lost = 0;
        for ms in 0..4000u64 {
            lost += put(&mut queue, ms * MS, capable(packet(0, 0, 1000))).len();
            while queue.packets() > 40 {
                take(&mut queue, ms * MS);
            }
        }
        (queue.marks(), lost)
    };
    let ((all, none), (some, rest)) = (marking(1.0), marking(0.1));
    assert!(all > 100 && none == 0, "{all} {none}");
    assert!(some > 10 && some < all && rest > 10, "{some} {rest}");
}

/// Scheduling is FQ-CoDel's, and with one queue the fates match PIE's, draw by draw.
#[test]
fn fq_pie_is_pie_in_turns() {
    let mut queue = discipline(&Queue::FqPie(FqPieModel::new(MANY)));
    for seq in 0..20 {
        put(&mut queue, 0, packet(1, seq, 1500));
        put(&mut queue, 0, packet(2, seq, 500));
    }
    let flows: Vec<u32> = (0..6).map(|_| take(&mut queue, MS).0.unwrap().flow.0).collect();
    assert_eq!(flows, [1, 1, 2, 2, 2, 2]);
    put(&mut queue, MS, packet(3, 0, 100));
    assert_eq!(take(&mut queue, MS).0.unwrap().flow.0, 3, "the newcomer first");

    let pie = PieModel { derandomize: true, mark_below: Some(Ratio(0.5)), ..PieModel::new(Limit::Packets(300)) };
    for estimate in [DelayEstimate::Timestamps, DelayEstimate::DepartureRate] {
        let pie = PieModel { estimate, ..pie };
        let draws = Stream::new(1, "one");
        let mut fair = FqPie::new(&FqPieModel { pie, queues: 1, quantum: Size(1514) }, Keys::Flow, draws);
        let mut plain = Pie::new(&pie, draws.fork(1));
        let (mut marks, mut fates, mut early) = ([0, 0], [Vec::new(), Vec::new()], 0);
        for n in 0..20_000u32 {
            let at = u64::from(n) * MS / 2 + u64::from(n / 5000) * 400 * MS;
            let packet = Packet { time: Time(at), ..capable(packet(n % 7, n, 1000)) };
            let packet = if n % 3 == 0 { Packet { flags: Flags::NONE, ..packet } } else { packet };
            fair.enqueue(packet, &mut marks[0], |packet, reason| fates[0].push((packet.seq, Some(reason), false)));
            plain.enqueue(packet, &mut marks[1], |packet, reason| fates[1].push((packet.seq, Some(reason), false)));
            // departures at 8 Mbit/s, then 16
            if n % 2 == 0 || n > 15_000 {
                let sent = |packet: Packet| (packet.seq, None, packet.flags.has(Flags::CE));
                fates[0].extend(fair.dequeue(at).map(sent));
                fates[1].extend(plain.dequeue(at).map(sent));
            }
            early = fates[0].iter().filter(|(_, reason, _)| *reason == Some(DropReason::Early)).count();
        }
        assert_eq!((marks[0], &fates[0]), (marks[1], &fates[1]));
        assert!(marks[0] > 5 && early > 100, "{} {early}", marks[0]);
    }
}

/// A flow that fills its queue loses only its own packets; one with little to send loses nothing and does not wait.
/// When all queues together are full, any arrival is dropped.
#[test]
fn fq_pie_keeps_flows_apart() {
    let mut queue = discipline(&Queue::FqPie(FqPieModel::new(MANY)));
    let (mut lost, mut longest) = ([0, 0], 0);
    for ms in 0..4000u64 {
        for n in 0..2 {
            lost[0] += put(&mut queue, ms * MS, packet(1, n, 1000)).len();
        }
        if ms % 10 == 0 {
            lost[1] += put(&mut queue, ms * MS, packet(2, 9, 200)).len();
        }
        let (packet, _) = take(&mut queue, ms * MS + 1);
        let packet = packet.unwrap();
        if packet.flow.0 == 2 {
            longest = longest.max(ms * MS + 1 - packet.time.0);
        }
    }
    assert!(lost[0] > 1000 && lost[1] == 0 && longest < 3 * MS, "{lost:?} {longest}");
    let mut full = discipline(&Queue::FqPie(FqPieModel::new(Limit::Packets(5))));
    (0..5).for_each(|seq| assert_eq!(put(&mut full, 0, packet(1, seq, 1000)), []));
    assert_eq!(put(&mut full, 0, packet(2, 7, 100)), [(7, DropReason::Overflow)]);
}

fn queues() -> impl Strategy<Value = Queue> {
    let limit = prop_oneof![
        (1..30u32).prop_map(Limit::Packets),
        (1..30_000u64).prop_map(|bytes| Limit::Bytes(Size(bytes))),
        Just(MANY)
    ];
    let spans = (0..20u64, 1..50u64).prop_map(|(target, interval)| (Span(target * MS), Span(interval * MS)));
    (limit, spans, 0..12u8, any::<bool>(), 1..40u32).prop_map(|(limit, (target, interval), kind, ecn, n)| {
        let codel = CoDelModel { target, interval, ecn, ..CoDelModel::new(limit) };
        let estimate = if ecn { DelayEstimate::DepartureRate } else { DelayEstimate::Timestamps };
        match kind {
            0 => Queue::Unlimited,
            1 => Queue::DropTail(limit),
            2 => Queue::Red(RedModel { ecn, min_threshold: Some(2.0), weight: Some(0.1), ..RedModel::new(limit) }),
            3 | 4 => Queue::CoDel(codel),
            5 => Queue::FqCoDel(FqCoDelModel { codel, queues: n, quantum: Size(300), batch: n }),
            6 | 7 => {
                let base = if ecn { DualPi2Model::linux(limit) } else { DualPi2Model::rfc9332(limit) };
                let scheduler = if n % 3 == 0 { DualScheduler::TimeShifted(interval) } else { base.scheduler };
                let native_packets = n % 4;
                Queue::DualPi2(DualPi2Model { target, update: interval, scheduler, native_packets, ..base })
            }
            8 | 9 => {
                let pie = PieModel {
                    target,
                    burst: Span(interval.0 * u64::from(n % 3)),
                    estimate,
                    derandomize: n % 2 == 0,
                    mark_below: ecn.then_some(Ratio(0.1)),
                    ..PieModel::new(limit)
                };
                if kind == 8 {
                    Queue::Pie(pie)
                } else {
                    Queue::FqPie(FqPieModel { pie, queues: n, quantum: Size(300) })
                }
            }
            10 | 11 => Queue::Cake(CakeModel {
                limit,
                rtt: Span(interval.0 * 20),
                ingress: ecn,
                isolation: [Isolation::Triple, Isolation::Flows, Isolation::SrcHost, Isolation::FlowBlind]
                    [n as usize % 4],
                overhead: Size(u64::from(n)),
                ..CakeModel::new((kind == 11).then_some(Rate(u64::from(n) * 1_000_000)))
            }),
            _ => unreachable!("there are twelve kinds"),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// For any traffic: no packet vanishes, counts match the waiting packets, no flow is reordered, and only
    /// ECN-capable packets are marked. If packets wait, at least one leaves, unless a shaper holds them back (the RFC's
    /// DualPI2 may drop even the last one).
    #[test]
    fn what_holds_of_every_discipline(
        queue in queues(),
        steps in prop::collection::vec((0..8u64, 0..5u32, 40..1500u16, any::<bool>(), 0..4u8), 1..300),
    ) {
        let (mut it, mut now, mut sent) = (discipline(&queue), 0, 0u64);
        let mut waits: Vec<Packet> = Vec::new();
        let mut last: Vec<Option<u32>> = vec![None; 5];
        for (seq, (gap, flow, size, ecn, takes)) in (0u32..).zip(steps) {
            now += gap * MS / 2;
            let packet = packet(flow, seq, size);
            // a flow has one class, or its packets would overtake each other
            let packet = match flow {
                0 | 1 => scalable(packet),
                _ if ecn => capable(packet),
                _ => packet,
            };
            waits.push(Packet { time: Time(now), ..packet });
            for (seq, _) in put(&mut it, now, packet) {
                waits.retain(|packet| packet.seq != seq);
            }
            prop_assert_eq!(it.packets() as usize, waits.len());
            prop_assert_eq!(it.bytes(), waits.iter().map(|packet| u64::from(packet.size)).sum::<u64>());
            for _ in 0..takes {
                let any = !waits.is_empty();
                let (packet, dropped) = take(&mut it, now);
                for (seq, _) in dropped {
                    waits.retain(|packet| packet.seq != seq);
                }
                let all_dropped = matches!(queue, Queue::DualPi2(_)) && waits.is_empty();
                let held = packet.is_none() && it.next_release().0 > now;
                let shapes = matches!(&queue, Queue::Cake(cake) if cake.bandwidth.is_some());
                prop_assert!(shapes || !held);
                prop_assert!(packet.is_some() == any || any && (all_dropped || held), "what waits is not all dropped");
                let Some(packet) = packet else { continue };
                let before = waits.iter().find(|other| other.seq == packet.seq).copied();
                let Some(before) = before else { return Err(TestCaseError::fail("it was not there")) };
                prop_assert_eq!((before.time, before.size, before.flow), (packet.time, packet.size, packet.flow));
                prop_assert!(!packet.flags.has(Flags::CE) || packet.flags.has(Flags::ECT));
                prop_assert_eq!(packet.flags.has(Flags::L4S), packet.flow.0 < 2, "the class stays");
                waits.retain(|other| other.seq != packet.seq);
                let flow = &mut last[packet.flow.0 as usize];
                prop_assert!(flow.is_none_or(|before| before < packet.seq), "reordered within a flow");
                *flow = Some(packet.seq);
                sent += 1;
            }
        }
        if let Some(classes) = it.classes() {
            prop_assert_eq!(classes.iter().map(|class| class.departures).sum::<u64>(), sent);
            prop_assert_eq!(classes.iter().map(|class| class.marks).sum::<u64>(), it.marks());
        }
        prop_assert!(sent + waits.len() as u64 <= 300);
    }
}

//! CAKE by hand: COBALT's law, the shaper's clock, hashes, scheduling, hosts, and which queue drops at the limit.

use super::cobalt::{Cobalt, Settings, Verdict};
use super::*;
use paceline_packet::{ExtraId, FlowId, Stamp};
use paceline_units::{Rate, Size, Span, Time};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
const US: u64 = 1000;
const MARK: Verdict = Verdict { mark: true, drop: None };
const DROP: Verdict = Verdict { mark: false, drop: Some(DropReason::Delay) };
const PASS: Verdict = Verdict { mark: false, drop: None };

fn packet(flow: u32, seq: u32, size: u16) -> Packet {
    let (time, flags) = (Time::ZERO, Flags::NONE);
    Packet { time, flow: FlowId(flow), seq, stamp: Stamp(0), cursor: 0, extra: ExtraId::NONE, size, flags }
}

fn cake(change: impl FnOnce(&mut CakeModel)) -> Cake {
    let mut model = CakeModel { limit: Limit::Packets(1_000_000), overhead: Size(0), ..CakeModel::new(None) };
    change(&mut model);
    Cake::new(&model, Keys::Flow, Stream::new(1, "cake"))
}

fn put(cake: &mut Cake, at: u64, packet: Packet) -> Vec<u32> {
    let mut dropped = Vec::new();
    cake.enqueue(Packet { time: Time(at), ..packet }, |packet, reason| {
        assert_eq!(reason, DropReason::Overflow);
        dropped.push(packet.seq);
    });
    dropped
}

fn take(cake: &mut Cake, at: u64) -> Option<Packet> {
    cake.dequeue(at, &mut 0, |_, _| {})
}

/// The bytes of each flow in the next `packets` departures, none of which has waited long.
fn served(cake: &mut Cake, packets: u32) -> BTreeMap<u32, u64> {
    let mut bytes = BTreeMap::new();
    for _ in 0..packets {
        let packet = take(cake, 0).expect("enough waits");
        *bytes.entry(packet.flow.0).or_default() += u64::from(packet.size);
    }
    bytes
}

/// `sch_cake`'s `cake_set_rate`: 1514 bytes and no scaling without a bandwidth. At 1 Mbit/s a packet of 1514 bytes
/// takes 12.112 ms, so the target is 18.168 ms and the interval grows by as much. At 100 kbit/s the interval is twice
/// the target.
#[test]
fn settings_scale_with_the_bandwidth_and_the_round_trip() {
    let of = |kbps: u64, rtt: u64| {
        let bandwidth = (kbps > 0).then_some(Rate(kbps * 1000));
        let Settings { target, interval, mtu_time } =
            Settings::new(&CakeModel { rtt: Span::from_millis(rtt), ..CakeModel::new(bandwidth) });
        [target, interval, mtu_time].map(|ns| ns / US)
    };
    assert_eq!(of(0, 100), [5_000, 100_000, 0]);
    assert_eq!(of(10_000, 100), [5_000, 100_000, 1_211]);
    assert_eq!(of(1_000, 100), [18_168, 113_168, 12_112]);
    assert_eq!(of(100, 100), [181_680, 363_360, 121_120]);
    assert_eq!(of(10_000, 10), [1_816, 11_316, 1_211]);
    assert_eq!(of(1_000_000, 1), [50, 1_000, 12]);
    for (kbps, quantum) in [(0, 1514), (1_000, 300), (10_000, 305), (20_000, 610), (49_610, 1513), (1_000_000, 1514)] {
        let bandwidth = (kbps > 0).then_some(Rate(kbps * 1000));
        assert_eq!(cake(|model| model.bandwidth = bandwidth).quantum, quantum, "{kbps} kbit/s");
    }
}

/// One packet per millisecond, each with a wait of 10 ms. The first signal comes an interval after the delay exceeds
/// the target, the nth 100 ms / sqrt(n) after the one before, rounded up to the next packet: 1170.7, 1228.4, 1278.4,
/// 1323.2, 1364.0.
#[test]
fn codel_signals_ever_faster_and_forgets_by_the_same_law() {
    let settings = Settings::new(&CakeModel::new(None));
    let mut signals = [Vec::new(), Vec::new()];
    for (capable, signals) in [false, true].into_iter().zip(&mut signals) {
        let mut cobalt = Cobalt::default();
        for ms in 1000..1350 {
            match cobalt.should_drop(&settings, ms * MS, 10 * MS, 0, capable, || unreachable!("BLUE is at rest")) {
                PASS => {}
                verdict => {
                    assert_eq!(verdict, if capable { MARK } else { DROP });
                    signals.push(ms);
                }
            }
        }
        // the sixth signal would be at 1364.0; with the delay good by then, the count falls by one at that time, and
        // again at 1408.7, 1458.7, 1516.5, 1587.2 and 1687.2
        assert!(!cobalt.queue_empty(&settings, 1350 * MS), "it remembers");
        let after = |ms: u64| {
            let mut cobalt = cobalt;
            assert_eq!(cobalt.should_drop(&settings, ms * MS, MS, 0, capable, || 0), PASS);
            cobalt.count()
        };
        assert_eq!([1350, 1363, 1365, 1408, 1409, 1459, 1517, 1588, 1688].map(after), [6, 6, 5, 5, 4, 3, 2, 1, 0]);
    }
    assert_eq!(signals[0], [1100, 1171, 1229, 1279, 1324]);
    assert_eq!(signals[0], signals[1]);
}

/// A wait of exactly the target is not too long, nor is that of four packets at the bandwidth; in ingress mode, nor is
/// that of two packets per bulk flow.
#[test]
fn what_a_delay_is() {
    let settings = Settings::new(&CakeModel::new(None));
    let slow = Settings { mtu_time: 3 * MS, ..settings };
    let signals = |settings: &Settings, waited: u64, bulk_flows: u64| {
        let mut cobalt = Cobalt::default();
        (0..200).any(|ms| cobalt.should_drop(settings, (1000 + ms) * MS, waited, bulk_flows, true, || 0) == MARK)
    };
    assert!(!signals(&settings, 5 * MS, 0) && signals(&settings, 5 * MS + 1, 0));
    assert!(!signals(&slow, 12 * MS, 0) && signals(&slow, 12 * MS + 1, 2));
    assert!(!signals(&slow, 18 * MS, 3) && signals(&slow, 18 * MS + 1, 3));
}

/// BLUE: 1/256 more for an overflow and 1/4096 less for an empty queue, each at most once per target; it also drops
/// packets that could be marked.
#[test]
fn blue_rises_with_overflows_and_falls_with_idleness() {
    let settings = Settings::new(&CakeModel::new(None));
    let mut cobalt = Cobalt::default();
    for ms in 1000..1060 {
        cobalt.queue_full(&settings, ms * MS);
    }
    // at 1000, 1006, ... 1054 ms
    assert_eq!(cobalt.blue(), 10 << 24);
    let drops = (0..10_000u32).filter(|draw| {
        let mut cobalt = cobalt;
        let draw = || draw * (u32::MAX / 10_000);
        let verdict = cobalt.should_drop(&settings, 1060 * MS, MS, 0, true, draw);
        assert!(!verdict.mark);
        verdict.drop == Some(DropReason::Early)
    });
    assert_eq!(drops.count(), 10_000 * 10 / 256 + 1);
    for ms in 1060..1120 {
        assert!(!cobalt.queue_empty(&settings, ms * MS));
    }
    assert_eq!(cobalt.blue(), (10 << 24) - (10 << 20));
    let mut cobalt = Cobalt::default();
    (1..2000).for_each(|n| cobalt.queue_full(&settings, n * 6 * MS));
    assert_eq!(cobalt.blue(), u32::MAX, "no more than always");
    (2000..8000).for_each(|n| _ = cobalt.queue_empty(&settings, n * 6 * MS));
    assert!(cobalt.blue() == 0 && cobalt.queue_empty(&settings, 60_000 * MS));
}

/// 40 bytes and 10 of overhead fill two ATM cells; 100 bytes take two of PTM's blocks and 102 bytes.
#[test]
fn what_a_packet_counts_as() {
    let counted = |overhead: u64, mpu: u64, framing: Framing, size: u16| {
        let model = CakeModel { overhead: Size(overhead), mpu: Size(mpu), framing, ..CakeModel::new(None) };
        Shaper::new(&model).counted(size)
    };
    assert_eq!([40, 1500].map(|size| counted(0, 0, Framing::None, size)), [40, 1500]);
    assert_eq!([40, 1500].map(|size| counted(18, 64, Framing::None, size)), [64, 1518]);
    assert_eq!([38, 39, 40, 1500].map(|size| counted(10, 0, Framing::Atm, size)), [53, 106, 106, 1696]);
    assert_eq!([64, 65, 100].map(|size| counted(0, 0, Framing::Ptm, size)), [65, 67, 102]);
    assert_eq!(counted(8, 48, Framing::Atm, 1), 53);
}

/// At 8 Mbit/s, 1 us a byte, packets are spaced by the counted size of the one before, whatever the arrivals; after an
/// idle time the next one leaves at once.
#[test]
fn the_shaper_is_a_clock() {
    let mut cake = cake(|model| (model.bandwidth, model.overhead) = (Some(Rate(8_000_000)), Size(20)));
    for seq in 0..3 {
        put(&mut cake, 7 * US, packet(0, seq, 980));
    }
    let mut left = Vec::new();
    for us in 0..10_000 {
        if us == 2_500 {
            put(&mut cake, us * US, packet(1, 3, 480));
            assert_eq!(cake.next_release(), 3_007 * US, "the third is not over");
        }
        if us == 9_000 {
            put(&mut cake, us * US, packet(1, 4, 480));
        }
        while take(&mut cake, us * US).is_some() {
            left.push(us);
        }
    }
    assert_eq!(left, [7, 1_007, 2_007, 3_007, 9_000]);
}

/// Charging drops reduces the sending rate by the drops, but never below two thirds of what it would be.
#[test]
fn a_shaper_of_arrivals_charges_drops() {
    let shares = |ingress: bool| {
        let mut cake = cake(|model| {
            (model.bandwidth, model.ingress) = (Some(Rate(80_000_000)), ingress);
            model.limit = Limit::Packets(100);
        });
        let (mut sent, mut dropped, mut seq) = (0u32, 0u32, 0);
        // twice the bandwidth: a packet of 1000 bytes every 50 us
        for us in 0..10_000_000 {
            if us % 50 == 0 {
                seq += 1;
                cake.enqueue(Packet { time: Time(us * US), ..packet(0, seq, 1000) }, |_, _| dropped += 1);
            }
            while cake.dequeue(us * US, &mut 0, |_, _| dropped += 1).is_some() {
                sent += 1;
            }
        }
        (f64::from(sent) / 100_000.0, f64::from(dropped) / 200_000.0)
    };
    let (sent, dropped) = shares(false);
    assert!((sent - 1.0).abs() < 0.01 && (dropped - 0.5).abs() < 0.01, "{sent} {dropped}");
    let (sent, dropped) = shares(true);
    assert!((sent - 2.0 / 3.0).abs() < 0.01 && (dropped - 2.0 / 3.0).abs() < 0.01, "{sent} {dropped}");
}

/// Flows share a queue only when all eight of a set are taken, and a flow keeps its queue while it is active.
#[test]
fn eight_ways() {
    let mut cake = cake(|model| model.isolation = Isolation::Flows);
    let home = |cake: &Cake, flow: u32| (cake.hashes[0].bits(u64::from(flow) << 1) >> 32) as usize % QUEUES;
    let set = |number: usize| number / 8;
    let flows: Vec<u32> = (0..100_000).filter(|flow| set(home(&cake, *flow)) == 5).take(9).collect();
    let queues: Vec<usize> = flows
        .iter()
        .map(|flow| {
            put(&mut cake, 0, packet(*flow, 0, 1000));
            cake.flows
                .iter()
                .position(|queue| queue.fifo.first().is_some_and(|first| first.flow.0 == *flow))
                .unwrap_or(0)
        })
        .collect();
    let mut own = queues[..8].to_vec();
    own.sort_unstable();
    assert_eq!(own, (40..48).collect::<Vec<_>>());
    let shared = home(&cake, flows[8]);
    assert_eq!(cake.flows[shared].fifo.packets(), 2, "the ninth shares its home");
    // flows with their own queue find it again, except the one whose home is shared
    for (flow, queue) in flows.iter().zip(queues).take(8) {
        assert!(cake.classify(&packet(*flow, 1, 1000)) == queue || queue == shared);
    }
}

/// The bytes of the host with one flow over those of the host with ten, and the maximum over the mean of the ten flows.
/// The hosts are senders with `from`, otherwise receivers.
fn rates(isolation: Isolation, from: bool) -> (f64, f64) {
    let hosts = (0..11).map(|flow| {
        let (few, many) = (u32::from(flow == 10), 7 + flow);
        if from { [few, many] } else { [many, few] }
    });
    let mut cake = cake(|model| (model.isolation, model.hosts) = (isolation, Hosts::Of(hosts.collect())));
    for seq in 0..4000 {
        for flow in 0..11 {
            put(&mut cake, 0, packet(flow, seq, 1000));
        }
    }
    served(&mut cake, 2000);
    let bytes = served(&mut cake, 2000);
    let of_first = bytes.range(..10).map(|(_, bytes)| bytes).sum::<u64>();
    let max_bytes = bytes.range(..10).map(|(_, bytes)| bytes).max().copied().unwrap_or(0);
    (bytes.get(&10).copied().unwrap_or(0) as f64 / of_first as f64, max_bytes as f64 * 10.0 / of_first as f64)
}

/// If hosts share in that direction, a host with one flow gets as much as one with ten; if only flows do, an eleventh.
/// The ten flows share equally.
#[test]
fn hosts_share_alike() {
    for (isolation, from, one) in [
        (Isolation::Triple, true, 1.0),
        (Isolation::Triple, false, 1.0),
        (Isolation::DualSrcHost, true, 1.0),
        (Isolation::DualSrcHost, false, 0.1),
        (Isolation::DualDstHost, true, 0.1),
        (Isolation::DualDstHost, false, 1.0),
        (Isolation::Flows, true, 0.1),
        (Isolation::SrcHost, true, 1.0),
        (Isolation::DstHost, false, 1.0),
        (Isolation::Hosts, true, 0.1),
    ] {
        let (share, max_share) = rates(isolation, from);
        assert!((share / one - 1.0).abs() < 0.02, "{isolation:?}, from {from}: {share}");
        // one host's queue keeps its flows in order of arrival
        assert!((max_share - 1.0).abs() < 0.05, "{isolation:?}, from {from}: {max_share}");
    }
    let mut blind = cake(|model| model.isolation = Isolation::FlowBlind);
    (0..50).for_each(|seq| _ = put(&mut blind, 0, packet(seq % 7, seq, 100)));
    let order: Vec<u32> = (0..50).filter_map(|_| take(&mut blind, 0)).map(|packet| packet.seq).collect();
    assert_eq!(order, (0..50).collect::<Vec<_>>());
}

/// At the end, no host has a bulk flow and every queue is inactive: each increment of the counts was undone. Many flows
/// share queues and slots here.
#[test]
fn busy_flows_are_counted_back() {
    let hosts: Vec<[u32; 2]> = (0..4000).map(|flow| [flow % 1500, flow / 7]).collect();
    let mut cake = cake(|model| (model.hosts, model.limit) = (Hosts::Of(hosts.into()), Limit::Packets(3000)));
    let mut now = 0;
    for seq in 0..40_000u32 {
        now += 20 * US;
        let flow = seq.wrapping_mul(2_654_435_761) % 4000;
        put(&mut cake, now, packet(flow, seq, 200 + (seq % 13) as u16 * 100));
        if seq % 3 > 0 {
            take(&mut cake, now);
        }
    }
    let bulk_flow_counts = |cake: &Cake| {
        cake.places
            .iter()
            .map(|host| u32::from(host.bulk_flow_count[0]) + u32::from(host.bulk_flow_count[1]))
            .sum::<u32>()
    };
    let bulk = cake.flows.iter().filter(|flow| flow.state == FlowState::Bulk).count() as u32;
    assert!(bulk > 100 && cake.bulk == bulk && bulk_flow_counts(&cake) == 2 * bulk, "{bulk}");
    // an occasional packet, so that scheduling continues
    for seq in 0..200_000u32 {
        now += MS;
        if cake.packets() < 2 {
            put(&mut cake, now, packet(1, seq, 100));
        }
        take(&mut cake, now);
    }
    assert!(cake.flows.iter().filter(|flow| flow.state != FlowState::None).count() <= 2);
    assert!(bulk_flow_counts(&cake) <= 2 && cake.bulk <= 1);
}

/// A packet of a flow that has just become active goes next, before a thousand that wait.
#[test]
fn the_sparse_goes_first() {
    let mut cake = cake(|_| {});
    for seq in 0..1000 {
        put(&mut cake, 0, packet(seq % 4, seq, 1500));
    }
    served(&mut cake, 100);
    for round in 0..50 {
        put(&mut cake, round * MS, packet(9, round as u32, 200));
        assert_eq!(take(&mut cake, round * MS).map(|packet| packet.flow.0), Some(9));
        // its queue is found empty, and it becomes new again
        assert_ne!(take(&mut cake, round * MS).map(|packet| packet.flow.0), Some(9));
    }
}

/// Overflow drops come from the head of the queue with the most bytes, one packet at a time, as in `sch_cake`.
#[test]
fn the_fattest_pays() {
    let mut cake = cake(|model| model.limit = Limit::Bytes(Size(10_000)));
    let mut lost = Vec::new();
    for seq in 0..9 {
        lost.extend(put(&mut cake, 0, packet(1, seq, 1000)));
    }
    lost.extend(put(&mut cake, 0, packet(2, 100, 1000)));
    assert_eq!((lost.as_slice(), cake.bytes()), ([].as_slice(), 10_000));
    assert_eq!(put(&mut cake, 0, packet(2, 101, 1500)), [0, 1]);
    for seq in 0..20 {
        put(&mut cake, 0, packet(3, 200 + seq, 1500));
        let queues = || cake.flows.iter().map(|flow| flow.fifo.bytes());
        assert!(cake.bytes() <= 10_000 && queues().sum::<u64>() == cake.bytes());
    }
    let of = |flow: u32| cake.flows.iter().filter(move |queue| queue.fifo.first().is_some_and(|p| p.flow.0 == flow));
    assert!(of(2).count() == 1 && of(2).all(|queue| queue.fifo.bytes() == 2_500), "who had least lost nothing");
    let mut one = super::tests::cake(|model| model.limit = Limit::Bytes(Size(10)));
    assert!(put(&mut one, 0, packet(1, 0, 1000)).is_empty(), "one packet may always wait");
    assert_eq!(put(&mut one, 0, packet(1, 1, 1000)), [0]);
}

/// On an emulated path, the stamp names the hosts.
#[test]
fn hosts_in_the_stamp() {
    let mut cake = cake(|model| (model.hosts, model.isolation) = (Hosts::Stamped, Isolation::SrcHost));
    let of = |from: u32, to: u32, flow: u32| Packet { stamp: Stamp(from << 16 | to), ..packet(flow, 0, 100) };
    put(&mut cake, 0, of(3, 4, 1));
    let one = cake.classify(&of(3, 4, 1));
    assert_eq!(cake.classify(&of(3, 5, 2)), one);
    assert_ne!(cake.classify(&of(4, 4, 1)), one);
}

/// A flow that sends one packet per two departures and never has two waiting, beside nine backlogged flows. If its
/// packet uses up the whole quantum, it takes turns with the others; if it is smaller, some of the quantum remains, and
/// the flow goes first each time (as in Linux).
#[test]
fn a_whole_turn_ends_it() {
    let share = |size: u16| {
        let mut cake = cake(|model| model.isolation = Isolation::Flows);
        (0..9000).for_each(|seq| _ = put(&mut cake, 0, packet(seq % 9, seq, size)));
        let mut own = 0;
        for round in 0..500 {
            if cake.flows.iter().all(|flow| flow.fifo.first().is_none_or(|first| first.flow.0 != 9)) {
                put(&mut cake, 0, packet(9, 10_000 + round, size));
            }
            own += (0..2).filter_map(|_| take(&mut cake, 0)).filter(|left| left.flow.0 == 9).count();
        }
        own
    };
    // at first the nine have just become active, too
    let [whole, less] = [1514, 1500].map(share);
    assert!(whole == 100 && less > 480, "{whole} {less}");
}

/// A queue is found empty only while other packets wait: a lone flow keeps its BLUE state (as in Linux).
#[test]
fn blue_of_a_flow_alone_stays() {
    let mut cake = cake(|model| (model.isolation, model.limit) = (Isolation::Flows, Limit::Packets(10)));
    (0..20).for_each(|seq| _ = put(&mut cake, 100 * MS, packet(1, seq, 1514)));
    while take(&mut cake, 100 * MS).is_some() {}
    let own = cake.flows.iter().position(|flow| flow.cobalt.blue() > 0).expect("it has overflown");
    let blue = cake.flows[own].cobalt.blue();
    for ms in 200..1200 {
        put(&mut cake, ms * MS, packet(1, 100, 1514));
        while take(&mut cake, ms * MS).is_some() {}
    }
    assert_eq!((blue, cake.flows[own].cobalt.blue()), (1 << 24, 1 << 24));
    for ms in 1200..2200 {
        put(&mut cake, ms * MS, packet(1, 100, 1514));
        put(&mut cake, ms * MS, packet(2, 100, 1514));
        put(&mut cake, ms * MS, packet(2, 101, 1514));
        while take(&mut cake, ms * MS).is_some() {}
    }
    assert_eq!(cake.flows[own].cobalt.blue(), 0);
}

/// The probability that at least `many` of `n` hashes fall into one given set of `sets`: the tail of a binomial
/// distribution.
fn at_least(many: u32, n: u32, sets: f64) -> f64 {
    let p = 1.0 / sets;
    let mut none: f64 = (0..n).map(|_| 1.0 - p).product();
    let mut fewer = 0.0;
    for k in 0..many {
        fewer += none;
        none *= f64::from(n - k) / f64::from(k + 1) * p / (1.0 - p);
    }
    1.0 - fewer
}

/// How often a new flow beside `n` active ones shares a queue, with sets of eight and in a plain table of the same
/// size.
fn collisions(n: u32) -> [f64; 2] {
    const SEEDS: u64 = 150;
    const NEW: u32 = 100;
    let mut shared = [0u32; 2];
    for seed in 0..SEEDS {
        let model = CakeModel { isolation: Isolation::Flows, ..CakeModel::new(None) };
        let mut cake = Cake::new(&model, Keys::Flow, Stream::new(seed, "cake"));
        let home = |cake: &Cake, flow: u32| (cake.hashes[0].bits(u64::from(flow) << 1) >> 32) as usize % QUEUES;
        let mut plain = vec![false; QUEUES];
        for flow in 0..n {
            put(&mut cake, 0, packet(flow, 0, 100));
            plain[home(&cake, flow)] = true;
        }
        for flow in n..n + NEW {
            shared[1] += u32::from(plain[home(&cake, flow)]);
            let queue = cake.classify(&packet(flow, 0, 100));
            shared[0] += u32::from(cake.flows[queue].state != FlowState::None);
        }
    }
    shared.map(|shared| f64::from(shared) / (SEEDS as f64 * f64::from(NEW)))
}

/// The paper's collision probability as a formula: in a plain table of 1024 queues a new flow shares one with any of n;
/// with sets of eight, when eight of them are in its set. At 256 flows that is 22 % and 0.1 %, at 500 39 % and 4.5 %.
#[test]
fn sets_of_eight_beat_plain_hashing() {
    for (n, sets, plain) in [(100, 0.0, 0.093), (256, 0.001, 0.221), (500, 0.045, 0.386), (768, 0.255, 0.528)] {
        let said = [at_least(8, n, (QUEUES / 8) as f64), at_least(1, n, QUEUES as f64)];
        assert!((said[0] - sets).abs() < 5e-4 && (said[1] - plain).abs() < 5e-4, "{n}: {said:?}");
        let found = collisions(n);
        for (found, said) in found.into_iter().zip(said) {
            assert!((found - said).abs() < 0.002 + 0.06 * said, "{n} flows: {found}, not {said}");
        }
    }
}

/// Hosts are uniform over the 128 sets and the 1024 slots, in both roles: chi-squared with 127 and 1023 degrees of
/// freedom, within four standard deviations.
#[test]
fn hosts_spread() {
    let model = CakeModel { hosts: Hosts::Stamped, ..CakeModel::new(None) };
    let cake = Cake::new(&model, Keys::Flow, Stream::new(1, "cake"));
    // consecutive host numbers, like addresses of one network
    let hosts = 16_384u32;
    for role in [hashing::SOURCE, hashing::DESTINATION] {
        for cells in [QUEUES / 8, QUEUES] {
            let mut counts = vec![0u32; cells];
            for host in 0..hosts {
                let stamp = Stamp(if role == hashing::SOURCE { host << 16 } else { host });
                let hash = cake.hash_of_hosts(&Packet { stamp, ..packet(0, 0, 100) })[role];
                counts[hash as usize % QUEUES / (QUEUES / cells)] += 1;
            }
            let mean = f64::from(hosts) / cells as f64;
            let chi: f64 = counts.iter().map(|&count| f64::from(count) - mean).map(|off| off * off / mean).sum();
            let freedom = (cells - 1) as f64;
            assert!((chi - freedom).abs() < 4.0 * (2.0 * freedom).sqrt(), "role {role}, {cells} cells: {chi}");
        }
    }
}

/// A host's hash depends only on the seed, the host and its role: not on earlier packets, the isolation mode, the flow
/// or the other host.
#[test]
fn hosts_stay_where_they_are() {
    let make = |seed: u64, isolation: Isolation| {
        let model = CakeModel { hosts: Hosts::Stamped, isolation, ..CakeModel::new(None) };
        Cake::new(&model, Keys::Flow, Stream::new(seed, "cake"))
    };
    let of = |cake: &Cake, flow: u32, from: u32, to: u32| {
        cake.hash_of_hosts(&Packet { stamp: Stamp(from << 16 | to), ..packet(flow, 0, 100) })
    };
    let mut used = make(1, Isolation::DualSrcHost);
    (0..3000).for_each(|seq| _ = put(&mut used, 0, Packet { stamp: Stamp(seq << 16 | 7), ..packet(seq, seq, 100) }));
    let [fresh, other] = [make(1, Isolation::Triple), make(2, Isolation::Triple)];
    for host in 0..200 {
        let [from, to] = of(&fresh, 1, host, 9);
        assert_eq!(of(&used, 77, host, 9), [from, to]);
        assert_eq!(of(&fresh, 2, host, host + 1)[hashing::SOURCE], from);
        assert_ne!(of(&fresh, 1, host, host)[hashing::DESTINATION], from);
        assert_ne!(of(&other, 1, host, 9), [from, to]);
        assert_eq!(to, of(&fresh, 3, host + 5, 9)[hashing::DESTINATION]);
    }
}

/// More hosts than a set has slots: a ninth busy host takes over its home slot and counts its own flow there.
#[test]
fn nine_busy_hosts_in_a_set() {
    let model = CakeModel { hosts: Hosts::Stamped, isolation: Isolation::DualSrcHost, ..CakeModel::new(None) };
    let mut cake = Cake::new(&model, Keys::Flow, Stream::new(1, "cake"));
    let of = |host: u32, flow: u32, seq: u32| Packet { stamp: Stamp(host << 16), ..packet(flow, seq, 1514) };
    let home = |cake: &Cake, host: u32| cake.hash_of_hosts(&of(host, 0, 0))[hashing::SOURCE] as usize % QUEUES;
    let crowd: Vec<u32> = (0..60_000).filter(|&host| home(&cake, host) / 8 == 3).take(9).collect();
    // one after the other, because a slot is free until its host has a bulk flow: after a quantum, with packets left
    for (flow, &host) in (0..).zip(&crowd[..8]) {
        (0..5).for_each(|seq| _ = put(&mut cake, 0, of(host, flow, seq)));
        (0..2).for_each(|_| _ = take(&mut cake, 0));
    }
    let bulk_flow_counts = |cake: &Cake| {
        cake.places[24..32].iter().map(|place| place.bulk_flow_count[hashing::SOURCE]).collect::<Vec<_>>()
    };
    assert_eq!(bulk_flow_counts(&cake), [1; 8], "each its own place");
    (0..3).for_each(|seq| _ = put(&mut cake, 0, of(crowd[8], 8, seq)));
    (0..2).for_each(|_| _ = take(&mut cake, 0));
    let number = cake.classify(&of(crowd[8], 8, 3));
    assert_eq!(usize::from(cake.flows[number].hosts[hashing::SOURCE]), home(&cake, crowd[8]));
    assert_eq!(bulk_flow_counts(&cake).iter().sum::<u16>(), 9);
}

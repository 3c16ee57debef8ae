//! Links as a whole: queueing theory, impairments, RED and ECN on a link, conservation.

use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::{
    Aggregation, DelaySpike, DelayStep, DelayVariation, DropReason, DualPi2Model, Fate, GilbertElliott, Keys, Limit,
    Link, LinkModel, Loss, Measure, On, Periodic, PolicerModel, QdiscLink, Queue, RedMode, RedModel, Reorder, Start,
    TwoState,
};
use paceline_random::Stream;
use paceline_units::{Rate, Ratio, Size, Span, Time};
use proptest::prelude::*;

fn packet(time: u64, size: u16, flags: Flags) -> Packet {
    let (flow, seq, stamp, cursor, extra) = (FlowId(0), 0, Stamp(0), 0, ExtraId::NONE);
    Packet { time: Time(time), flow, seq, stamp, cursor, extra, size, flags }
}

fn plain(queue: Queue) -> LinkModel {
    LinkModel::new(Rate::from_mbps(8.0), Span::from_millis(10), queue)
}

/// Packets of 1000 bytes (1 ms each) at Poisson instants with this mean gap; calls `see` with each and its fate.
fn poisson(link: &mut Link, gap: f64, count: u64, flags: Flags, mut see: impl FnMut(u64, &Packet, Fate)) -> Time {
    let (draws, mut now) = (Stream::new(7, "poisson"), 0.0);
    for i in 0..count {
        now += draws.exponential(i) * gap;
        let mut p = packet(now as u64, 1000, flags);
        let fate = link.admit(&mut p);
        see(now as u64, &p, fate);
    }
    Time(now as u64)
}

#[test]
fn the_mean_queue_of_an_m_d_1_system() {
    let mut link = Link::new(&plain(Queue::Unlimited), Measure::ALL, Stream::new(1, "link"));
    let end = poisson(&mut link, 1e6 / 0.8, 2_000_000, Flags::NONE, |_, _, _| ());
    let report = link.finish(end);
    // Pollaczek-Khinchine: rho^2 / (2 (1 - rho)) wait. Some 0.5 % of standard error.
    assert!((report.mean_packets / 1.6 - 1.0).abs() < 0.02, "{}", report.mean_packets);
    assert!((report.mean_bytes / report.mean_packets / 1000.0 - 1.0).abs() < 1e-9);
    assert!((report.utilisation.0 - 0.8).abs() < 0.003, "{}", report.utilisation);
}

/// Eleven packets of 1 ms at once into a queue of ten: the first is sent, ten wait, and then one less each millisecond.
#[test]
fn occupancy_of_a_burst_by_hand() {
    let red = |mode| {
        let never = RedModel {
            min_threshold: Some(50.0),
            max_threshold: Some(60.0),
            weight: Some(0.002),
            ..RedModel::new(Limit::Packets(10))
        };
        Queue::Red(RedModel { mode, mean_packet: Size(1000), ..never })
    };
    for queue in [
        Queue::DropTail(Limit::Packets(10)),
        Queue::DropTail(Limit::Bytes(Size(10_000))),
        red(RedMode::Packets),
        red(RedMode::Bytes),
    ] {
        let measure = Measure { from: Time(500_000), to: Time(20_500_000) };
        let mut link =
            Link::new(&LinkModel { occupancy: true, ..plain(queue.clone()) }, measure, Stream::new(1, "link"));
        for _ in 0..11 {
            assert_eq!(link.admit(&mut packet(0, 1000, Flags::NONE)), Fate::Pass);
        }
        let report = link.finish(Time(30_000_000));
        // Ten wait for the half millisecond that is measured, nine for one: both in the last tenth. From 10 ms on none.
        let tenths = [0.525, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.075];
        assert_eq!(report.occupancy, Some(tenths), "{queue:?}");
    }
    let mut idle = Link::new(&plain(Queue::DropTail(Limit::Packets(10))), Measure::ALL, Stream::new(1, "link"));
    assert_eq!(idle.finish(Time(1)).occupancy, None, "nobody asked");
}

#[test]
fn red_on_a_link_keeps_the_queue_short_and_marks_instead_of_dropping() {
    let red = RedModel {
        min_threshold: Some(5.0),
        max_threshold: Some(15.0),
        weight: Some(0.02),
        mode: RedMode::Packets,
        mean_packet: Size(1000),
        mark_below: None,
        ..RedModel::new(Limit::Packets(100))
    };
    let run = |ecn: bool, flags: Flags| {
        let mut link = Link::new(
            &plain(Queue::Red(RedModel { ecn, ..red.clone() })),
            Measure { from: Time(1_000_000_000), to: Time::NEVER },
            Stream::new(1, "link"),
        );
        let mut marked = 0;
        let end = poisson(&mut link, 1e6 / 1.1, 100_000, flags, |at, p, fate| {
            marked += u64::from(at >= 1_000_000_000 && p.flags.has(Flags::CE) && fate == Fate::Pass);
        });
        let report = link.finish(end);
        assert_eq!(report.marks, marked);
        report
    };
    let dropping = run(false, Flags::ECT);
    // 10 % too much: the drop probability settles where the rest fits, below twice the maximum threshold.
    assert!((12.0..25.0).contains(&dropping.mean_packets), "{}", dropping.mean_packets);
    assert!(dropping.drops[DropReason::Early] > 8_000 && dropping.drops[DropReason::Overflow] == 0);
    assert_eq!(dropping.marks, 0);
    let marking = run(true, Flags::ECT);
    // Nobody slows down for a mark, so the average reaches twice the threshold, and there RED must drop.
    assert!(marking.marks > 20_000 && marking.drops[DropReason::Early] == 0, "{marking:?}");
    assert!(marking.drops[DropReason::Forced] > 8_000);
    assert_eq!(run(true, Flags::NONE), dropping);
}

/// Poisson arrivals of 1000 bytes at a link of 8 Mbit/s and 10 ms for 200 s, measured from 10 s, beside ns-2.35 (Debian
/// 2.35+dfsg-5; means of seeds 1 to 3, whose standard errors are about 0.5 % of the queue and 1 % of the drops).
#[test]
fn queues_as_ns_2_has_them() {
    let packets = RedModel {
        min_threshold: Some(5.0),
        max_threshold: Some(15.0),
        weight: Some(0.002),
        mode: RedMode::Packets,
        mean_packet: Size(1000),
        ..RedModel::new(Limit::Packets(50))
    };
    let bytes = RedModel { mode: RedMode::Bytes, ..packets.clone() };
    let automatic = RedModel { mean_packet: Size(1000), ..RedModel::new(Limit::Packets(50)) };
    let abrupt = RedModel { gentle: false, ..packets.clone() };
    let eager = RedModel { wait: false, ..packets.clone() };
    let cases = [
        ("defaults, load 1.1", 1.1, Queue::Red(packets.clone()), 15.22, 0.1011),
        ("defaults, load 0.95", 0.95, Queue::Red(packets), 6.79, 0.00874),
        ("bytes", 1.1, Queue::Red(bytes), 15.17, 0.1024),
        ("automatic", 1.1, Queue::Red(automatic), 15.64, 0.1035),
        ("not gentle", 1.3, Queue::Red(abrupt), 14.57, 0.2340),
        ("no wait", 1.1, Queue::Red(eager), 10.97, 0.1074),
        // ns-2's limit of 50 lets 49 wait.
        ("drop-tail", 1.1, Queue::DropTail(Limit::Packets(49)), 43.99, 0.0933),
    ];
    for (name, load, queue, mean, drops) in cases {
        let window = Measure { from: Time(10_000_000_000), to: Time(200_000_000_000) };
        let mut link = Link::new(&plain(queue), window, Stream::new(1, "link"));
        poisson(&mut link, 1e6 / load, (200e3 * load) as u64, Flags::NONE, |_, _, _| ());
        let report = link.finish(Time(200_000_000_000));
        let share = report.drops.total() as f64 / report.arrivals as f64;
        assert!((report.mean_packets / mean - 1.0).abs() < 0.04, "{name}: {} for {mean}", report.mean_packets);
        assert!((share / drops - 1.0).abs() < 0.08, "{name}: {share} for {drops}");
    }
}

#[test]
fn impairments_meet_the_share_they_should() {
    let mut model = plain(Queue::Unlimited);
    model.loss = Some(Loss::Uniform { rate: Ratio(0.02), on: On::All });
    model.reorder = Some(Reorder { rate: Ratio(0.05), extra: Span::from_millis(20) });
    model.duplicate = Some(Ratio(0.1));
    model.corrupt = Some(Ratio(0.2));
    let mut link = Link::new(&model, Measure::ALL, Stream::new(1, "link"));
    assert!(!link.keeps_order());
    assert_eq!(link.delay_floor(), Span::from_millis(10));
    let (mut twice, mut damaged, mut overtaken, mut latest) = (0, 0, 0, Time::ZERO);
    let end = poisson(&mut link, 2e6, 100_000, Flags::NONE, |_, p, fate| {
        twice += u64::from(fate == Fate::Twice(p.time));
        damaged += u64::from(p.flags.has(Flags::CORRUPT));
        overtaken += u64::from(!matches!(fate, Fate::Drop(_)) && p.time < latest);
        latest = latest.max(p.time);
    });
    let report = link.finish(end);
    let (totals, n) = (report.totals, report.departures as f64);
    assert_eq!((totals.duplicated, totals.corrupted), (twice, damaged));
    let shares = [(totals.drops[DropReason::Loss] as f64 / 1e5, 0.02), (totals.reordered as f64 / n, 0.05)];
    let more = [(twice as f64 / n, 0.1), (damaged as f64 / n, 0.2)];
    for (got, want) in shares.into_iter().chain(more) {
        assert!((got - want).abs() < 4.0 * (want / 1e5f64).sqrt(), "{got} {want}");
    }
    assert!(overtaken > 10_000);
}

#[test]
fn an_outage_loses_what_leaves_the_queue_in_it() {
    let mut model = plain(Queue::DropTail(Limit::Packets(10)));
    let ms = |n: u64| Time(n * 1_000_000);
    model.outages = vec![(ms(2), ms(4)), (ms(7), ms(8))];
    let mut link = Link::new(&model, Measure::ALL, Stream::new(1, "link"));
    let fates: Vec<bool> = (0..10).map(|_| link.admit(&mut packet(0, 1000, Flags::NONE)) == Fate::Pass).collect();
    // They leave the queue at 0, 1, ... 9 ms.
    assert_eq!(fates, [true, true, false, false, true, true, true, false, true, true]);
    let report = link.finish(ms(20));
    assert_eq!((report.drops[DropReason::Outage], report.departures), (3, 7));
    assert_eq!(report.utilisation, Ratio(0.5));
}

/// 1000 bytes a millisecond are 8 Mbit/s; a policer of 4 lets half of them pass once its bucket of four packets is empty, and what it
/// drops neither waits nor uses the link.
#[test]
fn a_policer_drops_before_the_queue() {
    let mut model = plain(Queue::DropTail(Limit::Packets(10)));
    model.policer = Some(PolicerModel { rate: Rate(4_000_000), burst: Size(4000) });
    model.loss = Some(Loss::Uniform { rate: Ratio(0.0), on: On::All });
    let mut link = Link::new(&model, Measure::ALL, Stream::new(1, "link"));
    let fates: Vec<Fate> = (0..1000).map(|i| link.admit(&mut packet(i * 1_000_000, 1000, Flags::NONE))).collect();
    // 4 packets of tokens, and half a one a packet: the first seven pass, then every other
    assert!(fates[..7].iter().all(|fate| *fate == Fate::Pass));
    for (i, fate) in fates.iter().enumerate().skip(7) {
        let expected = if i % 2 == 1 { Fate::Drop(DropReason::Policed) } else { Fate::Pass };
        assert_eq!(*fate, expected, "{i}");
    }
    let report = link.finish(Time(1_000_000_000));
    assert_eq!((report.arrivals, report.departures, report.drops[DropReason::Policed]), (1000, 503, 497));
    assert_eq!((report.max_packets, report.drops.total()), (0, 497));
    assert!((report.utilisation.0 - 0.503).abs() < 1e-9, "{}", report.utilisation);
}

/// Bad Wi-Fi holds packets back and lets them go in order: what waits behind a long one arrives with it.
#[test]
fn bad_wifi_keeps_order() {
    let mut model = plain(Queue::DropTail(Limit::Packets(10)));
    model.delay_variation = Some(DelayVariation::BadWifi(Span::from_millis(7)));
    let mut link = Link::new(&model, Measure::ALL, Stream::new(1, "link"));
    let (mut latest, mut together, mut longest) = (Time::ZERO, 0, Span::ZERO);
    for i in 0..10_000 {
        let mut p = packet(i * 2_000_000, 1000, Flags::NONE);
        assert_eq!(link.admit(&mut p), Fate::Pass);
        assert!(p.time >= latest && p.time >= Time(i * 2_000_000) + link.delay_floor());
        together += u64::from(p.time == latest);
        longest = longest.max(p.time.since(Time(i * 2_000_000)));
        latest = p.time;
    }
    // one in fifteen waits for 90 ms, in which 45 more come
    assert!(together > 8000 && longest > Span::from_millis(120), "{together} {longest:?}");
}

#[test]
fn draws_depend_on_the_number_of_the_arrival_alone() {
    let mut model = plain(Queue::DropTail(Limit::Packets(5)));
    model.loss = Some(Loss::Uniform { rate: Ratio(0.3), on: On::Data });
    let lost = |gap: u64, flags: Flags| -> Vec<bool> {
        let mut link = Link::new(&model, Measure::ALL, Stream::new(1, "link"));
        let mut one = |i| link.admit(&mut packet(i * gap, 1000, flags)) == Fate::Drop(DropReason::Loss);
        (0..200).map(&mut one).collect()
    };
    assert_eq!(lost(2_000_000, Flags::NONE), lost(1_000_000, Flags::NONE));
    assert!(lost(2_000_000, Flags::ACK).iter().all(|lost| !lost));
}

proptest! {
    #[test]
    fn whatever_the_link_nothing_vanishes(
        gaps in prop::collection::vec((0..2_000_000u64, 1..2000u16, any::<bool>()), 1..200),
        (limit, red) in (1..20u32, any::<bool>()),
        (loss, kind) in (0.0..1.0f64, 0..4u8),
        steps in prop::option::of((0..50_000_000u64, 0..9_000_000u64, any::<bool>())),
        (duplicate, reorder) in (prop::option::of(0.0..1.0f64), prop::option::of(0.0..1.0f64)),
        (variation, outage) in (prop::option::of(0..20_000_000u64), prop::option::of(0..50_000_000u64)),
        policer in prop::option::of((500_000..20_000_000u64, 1..6000u64)),
        (wifi, spike, lumps) in (any::<bool>(), prop::option::of(0..50_000_000u64), prop::option::of(1..9_000_000u64)),
        seed: u64,
    ) {
        let limit = Limit::Packets(limit);
        let mut model = plain(if red { Queue::Red(RedModel::new(limit)) } else { Queue::DropTail(limit) });
        let (good_rate, bad_rate, on) = (Ratio(loss / 10.0), Ratio(loss), On::Data);
        let (to_bad, to_good) = (Ratio(0.1), Ratio(0.3));
        let (good_time, bad_time) = (Span::from_millis(5), Span::from_micros(700));
        let (change, start) = (Ratio(0.95), Start::Anywhere);
        model.loss = Some(match kind {
            0 => Loss::Uniform { rate: Ratio(loss), on },
            1 => Loss::GilbertElliott(GilbertElliott { good_rate, bad_rate, to_bad, to_good, on }),
            2 => Loss::TwoState(TwoState { good_rate, bad_rate, good_time, bad_time, change, start, on }),
            _ => Loss::Periodic(Periodic { pass: 7, lose: 3, within: Some(good_time), on }),
        });
        if wifi {
            model.loss_during = vec![(Time(1_000_000), Time(9_000_000)), (Time(20_000_000), Time(90_000_000))];
            model.variation_steps = vec![(Time(3_000_000), Some(DelayVariation::Uniform(bad_time))), (Time(40_000_000), None)];
        }
        model.delay_steps = steps
            .map(|(at, by, overtakes)| DelayStep { at: Time(at), extra: Span(by), overtakes })
            .into_iter()
            .collect();
        model.duplicate = duplicate.map(Ratio);
        model.reorder = reorder.map(|rate| Reorder { rate: Ratio(rate), extra: Span::from_millis(3) });
        model.policer = policer.map(|(rate, burst)| PolicerModel { rate: Rate(rate), burst: Size(burst) });
        let kind = if wifi { DelayVariation::BadWifi } else { DelayVariation::Uniform };
        model.delay_variation = variation.map(|span| kind(Span(span)));
        model.outages = outage.map(|at| (Time(at), Time(at + 20_000_000))).into_iter().collect();
        let to = |at: u64| Time(at + 10_000_000);
        model.delay_spikes = spike
            .map(|at| DelaySpike { from: Time(at), to: to(at), extra: Span::from_millis(7) })
            .into_iter()
            .collect();
        model.aggregation = lumps.map(|every| Aggregation { interval: Span(every), from: Time(every / 3), to: to(every * 3) });
        let mut link = Link::new(&model, Measure::ALL, Stream::new(seed, "link"));
        let (mut now, mut passed, mut dropped, mut latest) = (0, 0, [0u64; DropReason::COUNT], Time::ZERO);
        for (gap, size, ack) in gaps.iter().copied() {
            now += gap;
            let mut p = packet(now, size, if ack { Flags::ACK } else { Flags::NONE });
            match link.admit(&mut p) {
                Fate::Drop(reason) => {
                    prop_assert_eq!(p.time, Time(now));
                    dropped[reason.index()] += 1;
                }
                Fate::Held => prop_assert!(false, "the rate is never zero"),
                Fate::Pass | Fate::Twice(_) => {
                    prop_assert!(p.time >= Time(now) + link.delay_floor());
                    prop_assert!(!link.keeps_order() || p.time >= latest);
                    latest = p.time;
                    passed += 1;
                }
            }
        }
        let report = link.finish(Time(now + 10_000_000_000));
        prop_assert_eq!(report.totals.waiting, 0);
        prop_assert_eq!((report.arrivals, report.departures), (gaps.len() as u64, passed));
        for reason in DropReason::ALL {
            prop_assert_eq!(report.drops[reason], dropped[reason.index()], "{}", reason.name());
        }
    }
}

/// 1000 bytes take 1 ms; what is sent within a turn of 5 ms arrives at its end, that of its end too, and in the rest of the time each
/// packet by itself. A turn that `to` cuts short ends there.
#[test]
fn aggregation_hands_over_together() {
    let mut model = plain(Queue::DropTail(Limit::Packets(100)));
    let ms = |n: u64| Time(n * 1_000_000);
    model.aggregation = Some(Aggregation { interval: Span::from_millis(5), from: ms(3), to: ms(16) });
    let mut link = Link::new(&model, Measure::ALL, Stream::new(1, "link"));
    let floor = link.delay_floor();
    let arrivals: Vec<u64> = (0..18)
        .map(|_| {
            let mut p = packet(0, 1000, Flags::NONE);
            assert_eq!(link.admit(&mut p), Fate::Pass);
            (p.time - floor).0 / 1_000_000
        })
        .collect();
    assert_eq!(arrivals, [1, 2, 3, 8, 8, 8, 8, 8, 13, 13, 13, 13, 13, 16, 16, 16, 17, 18]);
    assert!(link.keeps_order() && !model.is_steady() && !model.is_pipe());
}

/// The queue sees what came, marks it or keeps it among its own class, and counts the mark; what arrives has no ECN field set.
#[test]
fn a_link_bleaches_ecn_after_its_queue() {
    let red = RedModel {
        ecn: true,
        mark_below: None,
        weight: Some(1.0),
        min_threshold: Some(1.0),
        max_threshold: Some(60.0),
        max_p: Ratio(1.0),
        ..RedModel::new(Limit::Packets(90))
    };
    let capable = [Flags::ECT, Flags::ECT.with(Flags::L4S), Flags::ECT.with(Flags::CE), Flags::NONE];
    let ecn = |flags: Flags| flags.0 & Flags::ECT.with(Flags::L4S).with(Flags::CE).0;
    for bleaches in [true, false] {
        let mut model = plain(Queue::Red(red.clone()));
        model.bleaches_ecn = bleaches;
        assert!(model.is_steady() && model.keeps_order());
        let mut link = Link::new(&model, Measure::ALL, Stream::new(1, "link"));
        let mut left = 0;
        for i in 0..64 {
            let mut p = packet(0, 1000, capable[i % 4].with(Flags::PUSH));
            if link.admit(&mut p) == Fate::Pass {
                assert!(p.flags.has(Flags::PUSH));
                left |= ecn(p.flags);
            }
        }
        let marks = link.finish(Time::ZERO + Span::from_secs(1)).marks;
        assert!(marks > 5, "{marks}");
        assert_eq!(left, if bleaches { 0 } else { ecn(Flags(u16::MAX)) });
        let mut model = plain(Queue::DualPi2(DualPi2Model::rfc9332(Limit::Packets(90))));
        model.bleaches_ecn = bleaches;
        let mut link = QdiscLink::new(&model, Measure::ALL, Keys::Flow, Stream::new(1, "link"));
        let (mut order, mut left) = (Vec::new(), 0);
        for i in 0..16 {
            link.arrive(Packet { seq: i, ..packet(0, 1000, capable[i as usize % 4]) }, &mut |_, _, _| ());
        }
        link.advance(Time::ZERO + Span::from_secs(1), &mut |fate, p, _| {
            assert_eq!(fate, Fate::Pass);
            order.push(p.seq % 4);
            left |= ecn(p.flags);
        });
        assert_eq!(left, if bleaches { 0 } else { ecn(Flags(u16::MAX)) });
        assert!(order[1..7].iter().all(|class| [1, 2].contains(class)), "ECT(1) and CE go first: {order:?}");
    }
}

/// What is sent in a spike takes longer; what is sent after it waits for the last of these, and arrives with it.
#[test]
fn a_delay_spike_holds_up_what_follows() {
    let mut model = plain(Queue::DropTail(Limit::Packets(100)));
    let ms = |n: u64| Time(n * 1_000_000);
    let spike = |from, to, extra| DelaySpike { from: ms(from), to: ms(to), extra: Span::from_millis(extra) };
    model.delay_spikes = vec![spike(3, 5, 4), spike(12, 13, 1)];
    let mut link = Link::new(&model, Measure::ALL, Stream::new(1, "link"));
    let floor = link.delay_floor();
    let arrivals: Vec<u64> = (0..14)
        .map(|_| {
            let mut p = packet(0, 1000, Flags::NONE);
            assert_eq!(link.admit(&mut p), Fate::Pass);
            (p.time - floor).0 / 1_000_000
        })
        .collect();
    assert_eq!(arrivals, [1, 2, 7, 8, 8, 8, 8, 8, 9, 10, 11, 13, 13, 14]);
    assert!(link.keeps_order() && !model.is_steady() && !model.is_pipe());
}

/// When each of packets of 1 ms that are all there at 0 arrives, in ms beyond the least delay.
fn arrivals<const N: usize>(model: &LinkModel) -> [u64; N] {
    let mut link = Link::new(model, Measure::ALL, Stream::new(1, "link"));
    let floor = link.delay_floor();
    core::array::from_fn(|_| {
        let mut p = packet(0, 1000, Flags::NONE);
        assert_eq!(link.admit(&mut p), Fate::Pass);
        (p.time - floor).0 / 1_000_000
    })
}

/// What has been sent at a step's instant takes the new delay. On a rise there is a gap; on a fall what follows waits for what is on
/// its way, unless it may overtake it.
#[test]
fn a_delay_that_steps() {
    let mut model = plain(Queue::DropTail(Limit::Packets(100)));
    let ms = |n: u64| Time(n * 1_000_000);
    let step = |at, extra, overtakes| DelayStep { at: ms(at), extra: Span::from_millis(extra), overtakes };
    model.delay_steps = vec![step(3, 5, false), step(6, 1, false)];
    assert_eq!(arrivals(&model), [1, 2, 8, 9, 10, 10, 10, 10, 10, 11, 12]);
    assert!(model.keeps_order() && !model.is_steady() && !model.is_pipe());
    model.delay_steps = vec![step(0, 0, false), step(3, 5, false), step(6, 1, true), step(9, 0, false)];
    assert_eq!(arrivals(&model), [1, 2, 8, 9, 10, 7, 8, 9, 9, 10, 11]);
    assert!(!model.keeps_order());
    assert!(!Link::new(&model, Measure::ALL, Stream::new(1, "link")).keeps_order());
    // a step that nothing saw overtakes all the same
    model.delay_steps = vec![step(3, 9, false), step(5, 9, true), step(6, 0, false)];
    let mut link = Link::new(&model, Measure::ALL, Stream::new(1, "link"));
    let floor = link.delay_floor();
    let times = [3, 7].map(|at| {
        let mut p = packet(ms(at).0, 1000, Flags::NONE);
        assert_eq!(link.admit(&mut p), Fate::Pass);
        (p.time - floor).0 / 1_000_000
    });
    assert_eq!(times, [13, 8]);
}

/// A variation that begins and ends; what is drawn of a packet goes by its number, so before and after nothing moves.
#[test]
fn a_delay_variation_that_begins_and_ends() {
    let mut model = plain(Queue::DropTail(Limit::Packets(100)));
    let ms = |n: u64| Time(n * 1_000_000);
    let uniform = |ms| Some(DelayVariation::Uniform(Span::from_millis(ms)));
    model.variation_steps = vec![(ms(10), uniform(6)), (ms(30), None)];
    let stepped: [u64; 50] = arrivals(&model);
    assert!((1..10).all(|i| stepped[i - 1] == i as u64), "{stepped:?}");
    assert!((40..50).all(|i| stepped[i - 1] == i as u64), "{stepped:?}");
    let late = (10..30).filter(|&i| stepped[i - 1] > i as u64).count();
    assert!(late > 15, "{stepped:?}");
    assert!(!model.is_steady() && !model.is_pipe() && model.keeps_order());
    (model.delay_variation, model.variation_steps) = (uniform(6), Vec::new());
    let always: [u64; 50] = arrivals(&model);
    (model.delay_variation, model.variation_steps) = (uniform(1), vec![(ms(0), uniform(6))]);
    assert_eq!(arrivals::<50>(&model), always);
}

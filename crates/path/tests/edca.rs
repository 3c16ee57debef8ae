//! Access categories: windows against Bianchi's model with a class for each, spaces, internal collisions and transmission
//! opportunities against timelines worked by hand (IEEE Std 802.11-2012, clause 9.19.2).
//!
//! Of 802.11g with short slots: a slot has 9 us, SIFS 10, DIFS 28; a QoS data frame with a packet of 1500 B lasts 258 us at
//! 54 Mbit/s, its ACK 34 us at 24 Mbit/s.

use paceline_engine::{RouteStep, Routes};
use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::wifi::{
    Access, Category, Cell, CellModel, Edca, GuardInterval, Ht, InterfaceReport, Limits, Output, Phy, Preamble,
    Protection, Rules, Slot, StationModel, Waveform, Width,
};
use paceline_path::{Measure, Queue};
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};

const STATION: StationModel = StationModel {
    rate: Rate(54_000_000),
    ht: None,
    frame_error: None,
    power: None,
    cw_min: None,
    queue: Queue::Unlimited,
};

/// A category that sends as soon as it may, `aifsn` slots after SIFS.
fn at_once(category: Category, aifsn: u32, txop: Span) -> (Category, Access) {
    (category, Access { with_qos: true, aifsn, cw_min: 0, cw_max: 1, txop })
}

fn model(stations: Vec<StationModel>, categories: Vec<(Category, Access)>, of_flow: Vec<u8>) -> CellModel {
    CellModel {
        phy: Phy::g(Slot::Short, Preamble::Long),
        rules: Rules::Ieee,
        limits: Limits::STANDARD,
        protection: Protection::None,
        protection_rate: Rate(11_000_000),
        basic_rates: [1, 2, 6, 12, 24].map(|mbps| Rate(mbps * 1_000_000)).to_vec(),
        rts_threshold: None,
        edca: Some(Edca { categories, of_flow }),
        overhead: 36,
        queue: Queue::Unlimited,
        stations,
    }
}

/// Flow i goes over port `ports[i]`, and has `backlog` packets of `size` at first; with `endless` one more for each that
/// arrives. Gives the arrivals up to `end` in microseconds, by flow, and what the interfaces did.
fn run(
    model: &CellModel,
    ports: &[u32],
    (backlog, size, endless): (u32, u16, bool),
    end: Time,
) -> (Vec<(u32, f64)>, Vec<InterfaceReport>) {
    let mut ways = Routes::default();
    let cursors: Vec<u32> = ports.iter().map(|port| ways.add(0, &[RouteStep::element(0, *port)]) + 1).collect();
    let interfaces = (1 + model.stations.len()) * model.categories();
    let streams: Vec<Stream> = (0..interfaces).map(|i| Stream::new(7, &format!("interface {i}"))).collect();
    let mut cell = Cell::new(model, 0, Measure::ALL, &streams);
    let packet = |time, flow: u32| Packet {
        time,
        cursor: cursors[flow as usize],
        size,
        flags: Flags::NONE,
        flow: FlowId(flow),
        seq: 0,
        stamp: Stamp(0),
        extra: ExtraId::NONE,
    };
    for _ in 0..backlog {
        (0..ports.len() as u32).for_each(|flow| cell.arrive(packet(Time::ZERO, flow), &ways));
    }
    let mut arrived = Vec::new();
    while cell.next_wake() < end {
        let now = cell.next_wake();
        cell.step(&ways);
        while let Some(output) = cell.take_output() {
            if let Output::Forward(packet_) = output {
                arrived.push((packet_.flow.0, packet_.time.0 as f64 / 1e3));
                if endless {
                    cell.arrive(packet(now, packet_.flow.0), &ways);
                }
            }
        }
    }
    (arrived, cell.finish(end))
}

fn times(arrived: &[(u32, f64)], flow: u32) -> Vec<f64> {
    arrived.iter().filter(|(of, _)| *of == flow).map(|(_, at)| *at).collect()
}

#[test]
fn table_8_105() {
    let of = |category, windows, dsss| {
        let Access { aifsn, cw_min, cw_max, txop, .. } = Access::standard(category, windows, dsss);
        (aifsn, cw_min, cw_max, txop.0 / 1000)
    };
    assert_eq!(
        Category::ALL.map(|category| of(category, (15, 1023), false)),
        [(2, 3, 7, 1504), (2, 7, 15, 3008), (3, 15, 1023, 0), (7, 15, 1023, 0)]
    );
    assert_eq!(of(Category::Voice, (31, 1023), true), (2, 7, 15, 3264));
    assert_eq!(of(Category::Video, (31, 1023), true), (2, 15, 31, 6016));
    assert_eq!(of(Category::Voice, (0, 0), false).1, 0);
}

/// Of two stations that wait for the end of a frame the one with the shorter space always goes first: 258 + 10 + 34, then AIFS.
#[test]
fn a_shorter_space_goes_first() {
    let categories = vec![at_once(Category::Voice, 2, Span::ZERO), at_once(Category::BestEffort, 4, Span::ZERO)];
    // flow 0: best effort up from station 0, flow 1: voice up from station 1
    let cell = model(vec![STATION; 2], categories, vec![1, 0]);
    let (arrived, reports) = run(&cell, &[1, 3], (4, 1500, false), Time::from_secs_f64(1.0));
    // both have counted nothing at first: voice at the first border after 0
    let voice = times(&arrived, 1);
    assert_eq!(voice.len(), 4);
    let gaps: Vec<f64> = voice.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.iter().all(|gap| *gap == 10.0 + 34.0 + 28.0 + 258.0), "{gaps:?}");
    let others = times(&arrived, 0);
    // best effort had drawn 0 or 1 as it came to a busy medium; two slots more than DIFS
    let first = others[0] - voice[3] - (10.0 + 34.0 + 10.0 + 4.0 * 9.0 + 258.0);
    assert!(first == 0.0 || first == 9.0, "{first}");
    // at the very first both found the medium idle
    assert_eq!(reports.iter().map(|report| report.counts.collisions).sum::<u64>(), 2);
}

/// In one device the less urgent category gives way without a frame on the air, and draws from a wider window.
#[test]
fn an_internal_collision_puts_nothing_on_the_air() {
    let categories = vec![at_once(Category::Voice, 2, Span::ZERO), at_once(Category::BestEffort, 2, Span::ZERO)];
    let cell = model(vec![STATION], categories.clone(), vec![0, 1]);
    let (arrived, reports) = run(&cell, &[1, 1], (50, 1500, false), Time::from_secs_f64(1.0));
    assert_eq!((times(&arrived, 0).len(), times(&arrived, 1).len()), (50, 50));
    assert_eq!(reports.iter().map(|report| report.counts.collisions).sum::<u64>(), 0);
    // in two devices the same collides
    let cell = model(vec![STATION; 2], categories, vec![0, 1]);
    let (_, reports) = run(&cell, &[1, 3], (50, 1500, false), Time::from_secs_f64(1.0));
    let collisions = reports.iter().map(|report| report.counts.collisions).sum::<u64>();
    assert!(collisions > 2, "{collisions}");
    // voice goes first where both could go
    let voice_first = |seed_flow: u32| arrived.iter().take(60).filter(|(flow, _)| *flow == seed_flow).count();
    assert!(voice_first(0) > voice_first(1), "{} {}", voice_first(0), voice_first(1));
}

/// In 3008 us nine exchanges of 258 + 10 + 34 fit with a SIFS between them: the ninth ends at 8 * 312 + 302 = 2798.
#[test]
fn a_transmission_opportunity_is_used_up_to_its_end() {
    let categories = vec![at_once(Category::Video, 2, Span::from_micros(3008))];
    let mut cell = model(vec![STATION], categories, vec![0]);
    let (arrived, reports) = run(&cell, &[1], (20, 1500, false), Time::from_secs_f64(1.0));
    let gaps: Vec<f64> = times(&arrived, 0).windows(2).map(|w| w[1] - w[0]).collect();
    let within: Vec<bool> = gaps.iter().map(|gap| *gap == 34.0 + 10.0 + 10.0 + 258.0).collect();
    let expected: Vec<bool> = (1..20).map(|i| i % 9 != 0).collect();
    assert_eq!(within, expected, "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap >= 34.0 + 10.0 + 10.0 + 258.0));
    assert_eq!(reports[1].counts.attempts, 20);
    // of a frame that fails the opportunity is over: a backoff follows
    cell.stations[0].frame_error = Some(paceline_units::Ratio(0.3));
    let (arrived, reports) = run(&cell, &[1], (2000, 1500, false), Time::from_secs_f64(2.0));
    let counts = reports[1].counts;
    assert_eq!(counts.attempts - counts.frame_errors, arrived.len() as u64);
    assert!((counts.frame_errors as f64 / counts.attempts as f64 - 0.3).abs() < 0.04, "{counts:?}");
}

/// An A-MPDU and its BlockAck stay within the opportunity.
#[test]
fn aggregates_are_cut_by_the_opportunity() {
    let ht = Ht::new(7, Width::Mhz20, GuardInterval::Long).unwrap();
    let station = StationModel { rate: ht.rate(), ht: Some(ht), ..STATION };
    for (txop, max_us) in [(1504u64, 1504.0), (3008, 3008.0)] {
        let cell = model(vec![station.clone()], vec![at_once(Category::Voice, 2, Span::from_micros(txop))], vec![0]);
        let (arrived, reports) = run(&cell, &[1], (400, 1500, false), Time::from_secs_f64(2.0));
        assert_eq!(arrived.len(), 400);
        // what is handed on at one instant came in one frame: all but the first and the last are as long as may be
        let mut frames: Vec<u32> = vec![0];
        let mut last = arrived[0].1;
        for (_, at) in &arrived {
            if *at != last {
                frames.push(0);
                last = *at;
            }
            *frames.last_mut().unwrap() += 1;
        }
        let full = frames[1];
        assert!(frames[1..frames.len() - 1].iter().all(|n| *n <= full), "{frames:?}");
        // subframes of 1544 B at 65 Mbit/s: 260 bits in 4 us; preamble and extension within 50 us, SIFS and a BlockAck of 32 B at 24 Mbit/s
        let subframe = 1544.0 * 8.0 / 260.0 * 4.0;
        let spent = f64::from(full) * subframe + 50.0 + 10.0 + 44.0;
        assert!(spent <= max_us + 20.0 && spent + subframe > max_us - 20.0, "{full} of {subframe} us in {max_us}");
        let counts = reports[1].counts;
        assert!(counts.airtime.as_secs_f64() * 1e6 / counts.attempts as f64 <= max_us, "{counts:?}");
    }
}

/// Throughput shares and collision probabilities of two classes of saturated stations that differ in their windows: the
/// equations of Bianchi (JSAC 18(3), 2000) with a class for each, under his rules.
#[test]
fn windows_share_the_channel_as_in_bianchis_model() {
    let tau = |p: f64, w: f64, m: i32| {
        let sum: f64 = (0..m).map(|i| libm::pow(2.0 * p, f64::from(i))).sum();
        2.0 / (w + 1.0 + p * w * sum)
    };
    for (n, w, m) in [([5.0, 5.0], [32.0, 128.0], 3), ([2.0, 8.0], [64.0, 256.0], 2), ([10.0, 10.0], [64.0, 128.0], 3)]
    {
        let mut taus = [0.02, 0.01];
        let mut p = [0.0; 2];
        for _ in 0..10_000 {
            let idle = libm::pow(1.0 - taus[0], n[0]) * libm::pow(1.0 - taus[1], n[1]);
            for k in 0..2 {
                p[k] = 1.0 - idle / (1.0 - taus[k]);
                taus[k] = 0.5 * (taus[k] + tau(p[k], w[k], m));
            }
        }
        let success = [0, 1].map(|k| n[k] * taus[k] * (1.0 - p[k]));
        let share = success[0] / (success[0] + success[1]);

        let access = |w: f64| {
            let (cw_min, cw_max) = (w as u32 - 1, ((w as u32) << m) - 1);
            Access { with_qos: true, aifsn: 2, cw_min, cw_max, txop: Span::ZERO }
        };
        let categories = vec![(Category::Voice, access(w[0])), (Category::BestEffort, access(w[1]))];
        let stations = (n[0] + n[1]) as u32;
        let of_flow: Vec<u8> = (0..stations).map(|i| u8::from(f64::from(i) >= n[0])).collect();
        let phy = Phy { waveform: Waveform::Plain { header: Span::from_micros(128) }, ..Phy::b(Preamble::Long) };
        let cell = CellModel {
            phy,
            rules: Rules::Bianchi,
            limits: Limits::NONE,
            basic_rates: vec![Rate(1_000_000)],
            ..model(
                vec![StationModel { rate: Rate(1_000_000), ..STATION }; stations as usize],
                categories,
                of_flow.clone(),
            )
        };
        let ports: Vec<u32> = (0..stations).map(|i| 2 * i + 1).collect();
        let (arrived, reports) = run(&cell, &ports, (2, 500, true), Time::from_secs_f64(2000.0));
        let of_first = arrived.iter().filter(|(flow, _)| of_flow[*flow as usize] == 0).count() as f64;
        let got = of_first / arrived.len() as f64;
        assert!((got / share - 1.0).abs() < 0.01, "{n:?} {w:?}: share {got} where the model has {share}");
        for (k, p) in p.into_iter().enumerate() {
            // interfaces: the access point's two, then each station's
            let own = reports.iter().skip(2).enumerate().filter(|(i, _)| i % 2 == k).map(|(_, report)| report.counts);
            let (collisions, attempts) = own.fold((0, 0), |sum, c| (sum.0 + c.collisions, sum.1 + c.attempts));
            let rate = collisions as f64 / attempts as f64;
            assert!((rate / p - 1.0).abs() < 0.02, "{n:?} {w:?} {k}: collisions {rate} where the model has {}", p);
        }
    }
}

/// Countdowns of two saturated stations, slot by slot: at each border after AIFS one counts, also at that at which the other
/// begins. Gives what the first got across for each that the second did, and the share of collisions.
fn by_slots(access: [Access; 2], rounds: u32) -> (f64, f64) {
    let mut draws = paceline_random::Sequence::new(Stream::new(1, "slots"));
    let mut draw = |window: u32| (draws.unit() * f64::from(window + 1)) as u32;
    let mut windows = access.map(|access| access.cw_min);
    let mut left = windows.map(&mut draw);
    let (mut success, mut collisions) = ([0u32; 2], 0);
    for _ in 0..rounds {
        let due = [0, 1].map(|i| access[i].aifsn + left[i]);
        if due[0] == due[1] {
            collisions += 1;
            for i in 0..2 {
                windows[i] = (2 * windows[i] + 1).min(access[i].cw_max);
                left[i] = draw(windows[i]);
            }
            continue;
        }
        let (first, other) = if due[0] < due[1] { (0, 1) } else { (1, 0) };
        success[first] += 1;
        windows[first] = access[first].cw_min;
        // borders from the other's AIFS up to the one at which the first begins
        left[other] -= (due[first] + 1).saturating_sub(access[other].aifsn);
        left[first] = draw(windows[first]);
    }
    let all = f64::from(success[0] + success[1] + collisions);
    (f64::from(success[0]) / f64::from(success[1]), f64::from(collisions) / all)
}

/// Frames of one length, so that who collided waits alike.
#[test]
fn two_stations_share_the_channel_as_their_countdowns_say() {
    use Category::{BestEffort, Video, Voice};
    for pair in [[Voice, Video], [Video, BestEffort], [Voice, BestEffort], [BestEffort, Category::Background]] {
        let access = pair.map(|of| Access { txop: Span::ZERO, ..Access::standard(of, (15, 1023), false) });
        let categories = vec![(pair[0], access[0]), (pair[1], access[1])];
        let cell = CellModel { limits: Limits::NONE, ..model(vec![STATION; 2], categories, vec![0, 1]) };
        let (_, reports) = run(&cell, &[1, 3], (2, 1500, true), Time::from_secs_f64(1000.0));
        // the access point's two interfaces, and of each station the one that its flow has
        let [first, second] = [2, 5].map(|i| reports[i].counts);
        let got = (first.attempts - first.collisions) as f64 / (second.attempts - second.collisions) as f64;
        let (wanted, colliding) = by_slots(access, 10_000_000);
        assert!((got / wanted - 1.0).abs() < 0.04, "{pair:?}: {got}, by slots {wanted}");
        let all = first.attempts + second.attempts - second.collisions;
        let rate = second.collisions as f64 / all as f64;
        assert!((rate / colliding - 1.0).abs() < 0.03, "{pair:?}: collisions {rate}, by slots {colliding}");
    }
}

//! Saturation throughput of a cell against Bianchi's model: G. Bianchi, "Performance Analysis of the IEEE 802.11
//! Distributed Coordination Function", IEEE JSAC 18(3), 2000, solved here; parameters are those of his Table II.
//!
//! The largest difference over 80 points is 0.6 %.
//! His assumptions are a mode of the cell: [`Rules::Bianchi`], no retry limit, frames of one length, no frame errors.

use paceline_engine::{RouteStep, Routes};
use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::wifi::{Cell, CellModel, Limits, Output, Phy, Preamble, Protection, Rules, StationModel, Waveform};
use paceline_path::{Measure, Queue};
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};

/// 1 Mbit/s: a bit lasts a microsecond.
const RATE: Rate = Rate(1_000_000);
const PAYLOAD: u16 = 1023; // 8184 bits
const MAC_HEADER: u32 = 34; // 272 bits
const PHY_HEADER: f64 = 128.0;
const SLOT: f64 = 50.0;
const SIFS: f64 = 28.0;
const DIFS: f64 = 128.0;
const DELAY: f64 = 1.0;

#[derive(Clone, Copy, Debug)]
enum Access {
    Basic,
    Rts,
}

/// Normalised throughput of n stations with windows from w to 2^m w, and the probability that an attempt collides:
/// equations 7, 9, 10, 11, 13, 14 and 17.
fn model(n: u32, w: u32, m: u32, access: Access) -> (f64, f64) {
    let (n, window) = (f64::from(n), f64::from(w));
    let tau = |p: f64| {
        // (1 - (2p)^m) / (1 - 2p) as a sum, which has no pole at p = 1/2
        let sum: f64 = (0..m).map(|i| libm::pow(2.0 * p, f64::from(i))).sum();
        2.0 / (window + 1.0 + p * window * sum)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let p = 0.5 * (low + high);
        if 1.0 - libm::pow(1.0 - tau(p), n - 1.0) > p { low = p } else { high = p }
    }
    let tau = tau(low);
    let busy = 1.0 - libm::pow(1.0 - tau, n);
    let alone = n * tau * libm::pow(1.0 - tau, n - 1.0) / busy;
    let payload = f64::from(PAYLOAD) * 8.0;
    let data = PHY_HEADER + f64::from(MAC_HEADER) * 8.0 + payload;
    let (ack, rts, cts) = (PHY_HEADER + 112.0, PHY_HEADER + 160.0, PHY_HEADER + 112.0);
    let basic = data + SIFS + DELAY + ack + DIFS + DELAY;
    let (success, collision) = match access {
        Access::Basic => (basic, data + DIFS + DELAY),
        Access::Rts => (rts + SIFS + DELAY + cts + SIFS + DELAY + basic, rts + DIFS + DELAY),
    };
    let mean = (1.0 - busy) * SLOT + busy * alone * success + busy * (1.0 - alone) * collision;
    (alone * busy * payload / mean, low)
}

/// Normalised throughput of the cell, and the share of attempts that collided.
fn cell(rules: Rules, n: u32, (w, m): (u32, u32), access: Access, seconds: u64) -> (f64, f64) {
    let station =
        StationModel { rate: RATE, ht: None, frame_error: None, power: None, cw_min: None, queue: Queue::Unlimited };
    let phy = Phy {
        slot: Span::from_micros(50),
        sifs: Span::from_micros(28),
        cw_min: w - 1,
        cw_max: (w << m) - 1,
        waveform: Waveform::Plain { header: Span::from_micros(128) },
        propagation: Span::from_micros(1),
        ..Phy::b(Preamble::Long)
    };
    let model = CellModel {
        phy,
        rules,
        limits: Limits::NONE,
        protection: Protection::None,
        protection_rate: RATE,
        basic_rates: vec![RATE],
        rts_threshold: match access {
            Access::Basic => None,
            Access::Rts => Some(0),
        },
        edca: None,
        overhead: MAC_HEADER,
        queue: Queue::Unlimited,
        stations: vec![station; n as usize],
    };
    let mut ways = Routes::default();
    let cursors: Vec<u32> = (0..n).map(|i| ways.add(0, &[RouteStep::element(0, 2 * i + 1)]) + 1).collect();
    let streams: Vec<Stream> = (0..=n).map(|i| Stream::new(1, &format!("interface {i}"))).collect();
    let mut cell = Cell::new(&model, 0, Measure::ALL, &streams);
    let packet = |time, station: u32| Packet {
        time,
        cursor: cursors[station as usize],
        size: PAYLOAD,
        flags: Flags::NONE,
        flow: FlowId(station),
        seq: 0,
        stamp: Stamp(0),
        extra: ExtraId::NONE,
    };
    for i in 0..2 * n {
        cell.arrive(packet(Time::ZERO, i % n), &ways);
    }
    let (end, mut delivered) = (Time::ZERO + Span::from_secs(seconds), 0u64);
    while cell.next_wake() < end {
        let now = cell.next_wake();
        cell.step(&ways);
        while let Some(output) = cell.take_output() {
            let Output::Forward(arrived) = output else { panic!("{output:?}") };
            delivered += 1;
            cell.arrive(packet(now, arrived.flow.0), &ways);
        }
    }
    let counts: Vec<_> = cell.finish(end).into_iter().map(|report| report.counts).collect();
    let sum = |of: fn(&paceline_path::wifi::InterfaceCounts) -> u64| counts.iter().map(of).sum::<u64>() as f64;
    let throughput = delivered as f64 * f64::from(PAYLOAD) * 8.0 / (seconds as f64 * 1e6);
    (throughput, sum(|c| c.collisions) / sum(|c| c.attempts))
}

/// One station never collides: a backoff of (W - 1) / 2 slots on average, and the exchange.
#[test]
fn the_model_of_one_station_is_plain() {
    let exchange = PHY_HEADER + 272.0 + 8184.0 + SIFS + DELAY + PHY_HEADER + 112.0 + DIFS + DELAY;
    let (model, _) = model(1, 32, 3, Access::Basic);
    assert!((model - 8184.0 / (exchange + 15.5 * SLOT)).abs() < 1e-9, "{model}");
}

#[test]
fn saturation_throughput() {
    let mut worst: f64 = 0.0;
    for (w, m, access) in
        [(32, 3, Access::Basic), (32, 5, Access::Basic), (128, 3, Access::Basic), (32, 3, Access::Rts)]
    {
        for n in 1..=20 {
            let (got, collided) = cell(Rules::Bianchi, n, (w, m), access, 200);
            let (expected, collides) = model(n, w, m, access);
            let off = got / expected - 1.0;
            worst = worst.max(off.abs());
            assert!((collided - collides).abs() < 0.02, "{n} stations, W {w}, m {m}: {collided:.3}, not {collides:.3}");
            assert!(off.abs() < 0.01, "{n} stations, W {w}, m {m}, {access:?}: {got:.4}, the model {expected:.4}");
        }
    }
    println!("largest difference {:.2} %", worst * 100.0);
}

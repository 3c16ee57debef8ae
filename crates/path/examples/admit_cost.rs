//! What a packet costs: nanoseconds per `admit` for a pipe and for links of several kinds.
//!
//! `cargo run --release -p paceline-path --example admit_cost`
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]

use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_path::{
    DelayVariation, Fate, GilbertElliott, Limit, Link, LinkModel, Loss, Measure, On, Pipe, Queue, RedModel, Start,
    TwoState,
};
use paceline_random::Stream;
use paceline_units::{Rate, Ratio, Span, Time};
use std::hint::black_box;
use std::time::Instant;

const PACKETS: usize = 1 << 12;
const ROUNDS: u64 = 2000;

/// Arrivals at 95 % of 10 Mbit/s, data of 1000 bytes, every eighth packet an ACK of 40: Poisson, which no branch
/// predictor foresees, or in bursts of eight, which it does.
fn arrivals(bursts: bool) -> (Vec<Packet>, u64) {
    let draws = Stream::new(1, "arrivals");
    let mut now = 0;
    let packets = (0..PACKETS as u64).map(|i| {
        now += match bursts {
            false => (draws.exponential(i) * 744_000.0) as u64,
            true if i % 8 == 0 => 8 * 744_000,
            true => 0,
        };
        let (size, flags) = if i % 8 == 7 { (40, Flags::ACK) } else { (1000, Flags::NONE) };
        let (flow, seq, stamp, cursor, extra) = (FlowId(0), i as u32, Stamp(0), 0, ExtraId::NONE);
        Packet { time: Time(now), flow, seq, stamp, cursor, extra, size, flags }
    });
    let packets = packets.collect();
    (packets, now)
}

/// The least time per packet of several rounds over the same arrivals, each later than the one before.
fn measure(name: &str, mut admit: impl FnMut(&mut Packet) -> bool) {
    let (mut best, mut passed, mut start) = ([f64::INFINITY; 2], 0u64, 0);
    for (bursts, best) in [false, true].into_iter().zip(&mut best) {
        let (packets, period) = arrivals(bursts);
        for _ in 0..ROUNDS {
            let mut batch = packets.clone();
            for packet in &mut batch {
                packet.time.0 += start;
            }
            let begin = Instant::now();
            for packet in &mut batch {
                passed += u64::from(admit(packet));
            }
            *best = best.min(begin.elapsed().as_nanos() as f64 / PACKETS as f64);
            black_box(&batch);
            start += period;
        }
    }
    let share = 100.0 * passed as f64 / (2 * ROUNDS * PACKETS as u64) as f64;
    println!("{name:28} Poisson {:6.2} ns   bursts {:6.2} ns   {share:5.1} % pass", best[0], best[1]);
}

fn link(name: &str, change: impl FnOnce(&mut LinkModel)) {
    let queue = Queue::DropTail(Limit::Packets(50));
    let mut model = LinkModel::new(Rate::from_mbps(10.0), Span::from_millis(25), queue);
    change(&mut model);
    let mut link = Link::new(&model, Measure { from: Time(1), to: Time::NEVER }, Stream::new(1, name));
    measure(name, |packet| link.admit(packet) == Fate::Pass);
}

fn main() {
    let mut pipe = Pipe::new(Rate::from_mbps(10.0), Span::from_millis(25));
    measure("nothing", |packet| black_box(packet).size > 0);
    measure("pipe", |packet| {
        pipe.admit(packet);
        true
    });
    link("drop-tail", |_| {});
    link("drop-tail, never waits", |m| m.rate = paceline_path::RateModel::Constant(Rate::from_mbps(1e5)));
    link("drop-tail, overloaded", |m| m.rate = paceline_path::RateModel::Constant(Rate::from_mbps(7.0)));
    link("drop-tail by bytes", |m| m.queue = Queue::DropTail(Limit::Bytes(paceline_units::Size(50_000))));
    link("RED", |m| m.queue = Queue::Red(RedModel::new(Limit::Packets(50))));
    link("drop-tail, loss 1 %", |m| m.loss = Some(Loss::Uniform { rate: Ratio(0.01), on: On::All }));
    let (good_rate, on) = (Ratio(0.00001), On::All);
    let chain = GilbertElliott { good_rate, bad_rate: Ratio(0.1), to_bad: Ratio(0.01), to_good: Ratio(0.1), on };
    link("drop-tail, Gilbert-Elliott", |m| m.loss = Some(Loss::GilbertElliott(chain)));
    let (good_time, bad_time) = (Span::from_secs(8), Span::from_secs(4));
    let (bad_rate, change, start) = (Ratio(0.1), Ratio(0.95), Start::Good);
    let states = TwoState { good_rate, bad_rate, good_time, bad_time, change, start, on };
    link("drop-tail, two-state", |m| m.loss = Some(Loss::TwoState(states)));
    link("drop-tail, delay variation", |m| m.delay_variation = Some(DelayVariation::Uniform(Span::from_millis(5))));
}

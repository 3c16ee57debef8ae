//! SCReAM v2's law of its authors' code in a closed loop, beside that code in the same loop: means over 20 seeds.
//!
//! The loop is the reference's, to the nanosecond: one FIFO of 300 ms for all flows, marks where service begins, losses where it
//! ends, propagation each way, an encoder of 30 frames a second whose sizes are drawn within 20 % of their mean, and its receiver's
//! feedback: after 16 packets, a marker or 40 ms. The draws are the reference's own, so that what is left are digits: it computes
//! with the same precision, but discards what waits for more than 0.2 s, and its histogram of frames is not known to the bin.
//! Its numbers are of EricssonResearch/scream @c8f84c3, as this table has them.

use paceline_control::scream::ericsson::{Faults, Law, SECOND, Settings, Told};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Marsaglia's xorshift of 32 bits, as the reference's loop draws.
struct Xorshift(u32);

impl Xorshift {
    fn new(seed: u32) -> Xorshift {
        let mut draws = Xorshift(seed);
        for _ in 0..16 {
            draws.next();
        }
        draws
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

const MS: u64 = 1_000_000;
const FPS: u64 = 30;

/// What a queue marks with.
#[derive(Clone, Copy, PartialEq)]
enum Marks {
    None,
    /// Above so many nanoseconds of wait; the sender takes them for those of classic ECN.
    Classic(u64),
    /// The same, for a scalable sender.
    L4s(u64),
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// From when (s) the link has what capacity (Mbit/s).
    capacity: &'static [(u64, f64)],
    /// When flows start (ms), and their one-way delays (ms).
    flows: &'static [(u64, u64)],
    /// Least and greatest rate.
    rates: (f32, f32),
    marks: Marks,
    /// The share of packets lost.
    loss: f64,
    /// Whether RTP timestamps are the frames'.
    stamps: bool,
    /// Whether frames vary.
    varied: bool,
}

#[derive(Clone, Copy)]
struct Sent {
    flow: usize,
    number: u32,
    size: u32,
    ends: bool,
    arrived: u64,
}

enum Event {
    Frame(usize, u64),
    Poll(usize),
    Pace(usize),
    Served(Sent),
    Arrived(Sent, bool),
    Watch(usize),
    Feedback(usize, u32, Vec<(u32, u32, bool)>),
}

struct Flow {
    law: Law,
    start: u64,
    delay: u64,
    queue: VecDeque<(u32, bool)>,
    next: u32,
    number: u32,
    rate: f64,
    draws: Xorshift,
    fresh: Vec<(u32, u32, bool)>,
    told: u64,
    heard: bool,
}

impl Flow {
    /// Its clock, which begins with a millisecond.
    fn ticks(&self, now: u64) -> u32 {
        (65 + u128::from(now - self.start) * u128::from(SECOND) / 1_000_000_000) as u32
    }
}

/// One packet's service: when it began, of which flow, its wait, its size, whether it was marked.
type Service = (u64, usize, u64, u32, bool);

struct Loop {
    case: Case,
    flows: Vec<Flow>,
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Option<Event>>,
    link: VecDeque<Sent>,
    waiting: u64,
    free: u64,
    losses: Xorshift,
    services: Vec<Service>,
    /// When, of which flow, how much.
    arrivals: Vec<(u64, usize, u32)>,
    offered: Vec<(u64, bool)>,
}

impl Loop {
    fn new(case: Case, seed: u32) -> Loop {
        let flow = |(i, &(start, delay)): (usize, &(u64, u64))| {
            let (min_rate, max_rate) = case.rates;
            let settings = Settings {
                window: (f64::from(min_rate) * 0.1 / 8.0) as i32,
                least_window: 2400,
                min_rate,
                start_rate: min_rate,
                max_rate,
                l4s: matches!(case.marks, Marks::L4s(_)),
                faults: Faults { media_time: case.stamps, ..Faults::RECORDED },
                ..Settings::default()
            };
            let seed = if seed == 0 { 123_456_789 + i as u32 } else { 1000 * seed + i as u32 };
            Flow {
                law: Law::new(settings),
                start: start * MS,
                delay: delay * MS,
                queue: VecDeque::new(),
                next: 0,
                number: 0,
                rate: min_rate.into(),
                draws: Xorshift::new(seed),
                fresh: Vec::new(),
                told: start * MS,
                heard: false,
            }
        };
        let flows: Vec<Flow> = case.flows.iter().enumerate().map(flow).collect();
        let losses = Xorshift::new(if seed == 0 { 2_463_534_242 } else { seed });
        let mut new = Loop {
            case,
            flows,
            heap: BinaryHeap::new(),
            events: Vec::new(),
            link: VecDeque::new(),
            waiting: 0,
            free: 0,
            losses,
            services: Vec::new(),
            arrivals: Vec::new(),
            offered: Vec::new(),
        };
        for i in 0..new.flows.len() {
            let start = new.flows[i].start;
            new.at(start, Event::Frame(i, 0));
            new.at(start + MS, Event::Poll(i));
            new.at(start + MS, Event::Watch(i));
        }
        new
    }

    fn at(&mut self, time: u64, event: Event) {
        self.heap.push(Reverse((time, self.events.len() as u64, self.events.len())));
        self.events.push(Some(event));
    }

    fn capacity(&self, now: u64) -> f64 {
        let step = self.case.capacity.iter().rev().find(|step| step.0 * 1000 * MS <= now).unwrap();
        step.1 * 1e6
    }

    fn run(&mut self, end: u64) {
        while let Some(Reverse((now, _, id))) = self.heap.pop() {
            if now > end {
                break;
            }
            match self.events[id].take().unwrap() {
                Event::Frame(i, k) => self.frame(now, i, k),
                Event::Poll(i) => {
                    self.send(now, i);
                    self.at(now + MS, Event::Poll(i));
                }
                Event::Pace(i) => self.send(now, i),
                Event::Served(packet) => self.served(now, packet),
                Event::Arrived(packet, marked) => self.arrived(now, packet, marked),
                Event::Watch(i) => {
                    if now - self.flows[i].told > 40 * MS && !self.flows[i].fresh.is_empty() {
                        self.report(now, i);
                    }
                    self.at(now + MS, Event::Watch(i));
                }
                Event::Feedback(i, report, fresh) => {
                    let flow = &mut self.flows[i];
                    let told: Vec<Told> = fresh
                        .iter()
                        .map(|&(number, came, marked)| {
                            let offset = (report.wrapping_sub(came) / 64) << 6;
                            Told { number, at: report.wrapping_sub(offset), marked }
                        })
                        .collect();
                    let ticks = flow.ticks(now);
                    flow.law.feedback(ticks, &told, flow.heard);
                    flow.heard = true;
                    self.send(now, i);
                }
            }
        }
    }

    fn frame(&mut self, now: u64, i: usize, k: u64) {
        let varied = self.case.varied;
        let flow = &mut self.flows[i];
        let ticks = flow.ticks(now);
        flow.rate = flow.law.encoder_rate(ticks).into();
        let by = if varied { 1.0 + 0.2 * (2.0 * f64::from(flow.draws.next()) / 4_294_967_296.0 - 1.0) } else { 1.0 };
        let bytes = ((flow.rate / (8.0 * FPS as f64) * by) as u32).max(1);
        let rest = (bytes % 1200 > 0).then_some(bytes % 1200);
        let sizes: Vec<u32> = std::iter::repeat_n(1200, (bytes / 1200) as usize).chain(rest).collect();
        let count = sizes.len();
        flow.queue.extend(sizes.iter().enumerate().map(|(n, &size)| (size, n + 1 == count)));
        flow.law.frame(ticks, sizes);
        let next = flow.start + (k + 1) * 1_000_000_000 / FPS;
        self.send(now, i);
        self.at(next, Event::Frame(i, k + 1));
    }

    fn send(&mut self, now: u64, i: usize) {
        loop {
            let flow = &mut self.flows[i];
            let ticks = flow.ticks(now);
            flow.law.poll(ticks);
            let Some(&(size, ends)) = flow.queue.front() else { return };
            if (flow.law.in_flight() + size as i32) as f32 > flow.law.allowed() {
                return;
            }
            if flow.next > ticks {
                let wait = f64::from(flow.next - ticks) / 65536.0 * 1e9;
                self.at(now + wait.ceil() as u64, Event::Pace(i));
                return;
            }
            flow.queue.pop_front();
            let number = flow.number;
            flow.number += 1;
            flow.law.sent(ticks, number, size, ends);
            flow.next = ticks + (flow.law.pace * 65536.0) as u32;
            self.hand(now, Sent { flow: i, number, size, ends, arrived: now });
        }
    }

    /// A packet comes to the link.
    fn hand(&mut self, now: u64, packet: Sent) {
        let capacity = self.capacity(now);
        let wait = self.free.saturating_sub(now) as f64 + self.waiting as f64 * 8e9 / capacity;
        let lost = wait > (300 * MS) as f64;
        self.offered.push((now, lost));
        if lost {
            return;
        }
        if self.free <= now && self.link.is_empty() {
            self.serve(now, packet);
        } else {
            self.waiting += u64::from(packet.size);
            self.link.push_back(packet);
        }
    }

    fn serve(&mut self, now: u64, packet: Sent) {
        let wait = now - packet.arrived;
        let marked = match self.case.marks {
            Marks::None => false,
            Marks::Classic(above) | Marks::L4s(above) => wait > above,
        };
        self.services.push((now, packet.flow, wait, packet.size, marked));
        self.free = now + (f64::from(packet.size) * 8e9 / self.capacity(now)) as u64;
        self.at(self.free, Event::Served(packet));
    }

    fn served(&mut self, now: u64, packet: Sent) {
        let marked = self.services.last().is_some_and(|service| service.4);
        let lost = self.case.loss > 0.0 && f64::from(self.losses.next()) < (self.case.loss * 4_294_967_296.0).floor();
        if !lost {
            self.arrivals.push((now, packet.flow, packet.size));
            let delay = self.flows[packet.flow].delay;
            self.at(now + delay, Event::Arrived(packet, marked));
        }
        if let Some(next) = self.link.pop_front() {
            self.waiting -= u64::from(next.size);
            self.serve(now, next);
        }
    }

    fn arrived(&mut self, now: u64, packet: Sent, marked: bool) {
        let flow = &mut self.flows[packet.flow];
        let came = flow.ticks(now);
        flow.fresh.push((packet.number, came, marked));
        if flow.fresh.len() >= 16 || packet.ends {
            self.report(now, packet.flow);
        }
    }

    fn report(&mut self, now: u64, i: usize) {
        let flow = &mut self.flows[i];
        let report = flow.ticks(now);
        let fresh = std::mem::take(&mut flow.fresh);
        flow.told = now;
        let delay = flow.delay;
        self.at(now + delay, Event::Feedback(i, report, fresh));
    }

    /// Of a window of time (s) and of one flow or all: kbit/s received, mean and 95 % of the waits (ms), and the shares
    /// of offered packets that the queue or the path lost and that it marked (%).
    fn measures(&self, from: u64, to: u64, flow: Option<usize>) -> [f64; 4] {
        let within = |time: u64| (from * 1000 * MS..to * 1000 * MS).contains(&time);
        let of = |f: usize| flow.is_none_or(|flow| flow == f);
        let bytes: u64 = self.arrivals.iter().filter(|a| within(a.0) && of(a.1)).map(|a| u64::from(a.2)).sum();
        let mut waits: Vec<u64> = self.services.iter().filter(|s| within(s.0) && of(s.1)).map(|s| s.2).collect();
        waits.sort_unstable();
        let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64 / 1e6;
        let high = waits[(waits.len() as f64 * 0.95) as usize] as f64 / 1e6;
        let marked = self.services.iter().filter(|s| within(s.0) && of(s.1) && s.4).count();
        let rate = bytes as f64 * 8.0 / 1000.0 / (to - from) as f64;
        [rate, mean, high, 100.0 * marked as f64 / waits.len() as f64]
    }
}

const A: Case = Case {
    name: "a",
    capacity: &[(0, 2.0)],
    flows: &[(0, 50)],
    rates: (150e3, 3e6),
    marks: Marks::None,
    loss: 0.0,
    stamps: true,
    varied: true,
};

#[test]
fn scratch() {
    for (case, windows) in [
        (Case { varied: false, ..A }, vec![(20, 60), (60, 120)]),
    ] {
        let mut run = Loop::new(case, 0);
        run.run(120_000 * MS);
        for (from, to) in windows {
            println!("{} {from} {to} {:?}", case.name, run.measures(from, to, None));
        }
    }
    let mut all = Vec::new();
    for seed in 1..=20 {
        let mut run = Loop::new(A, seed);
        run.run(120_000 * MS);
        all.push(run.measures(60, 120, None));
    }
    for i in 0..4 {
        let v: Vec<f64> = all.iter().map(|m| m[i]).collect();
        let mean = v.iter().sum::<f64>() / 20.0;
        let sd = (v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 19.0).sqrt();
        println!("{i}: {mean} {sd}");
    }
}

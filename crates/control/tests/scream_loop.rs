//! SCReAM v2's law of its authors' code in a closed loop, beside that code in the same loop: means over 20 seeds.
//!
//! The loop is the reference's, to the nanosecond: one FIFO of 300 ms for all flows, marks where service begins, losses where it
//! ends, propagation each way, an encoder of 30 frames a second whose sizes are drawn within 20 % of their mean, and its receiver's
//! feedback: after 16 packets, a marker or 40 ms. The draws are the reference's own. Its numbers are of EricssonResearch/scream
//! @c8f84c3 with the settings of its simulator, over 20 seeds.

#[path = "scream_loop/bands.rs"]
mod bands;
#[path = "scream_loop/cases.rs"]
#[allow(dead_code, reason = "the simulator's test has two cases more")]
mod cases;

use cases::{Case, Marks};
use paceline_control::scream::ericsson::{AckedPacket, Faults, Law, SECOND, Settings};
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

#[derive(Clone, Copy)]
struct Sent {
    flow: usize,
    number: u32,
    size: u32,
    ends: bool,
    arrived: u64,
    /// Its place among all that came to the link.
    place: usize,
}

enum Event {
    Frame(usize, u64),
    Poll(usize),
    Pace(usize),
    Served(Sent),
    Arrived(Sent, bool),
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
    last_feedback: u64,
    has_feedback: bool,
}

impl Flow {
    /// Its clock, which begins with a millisecond.
    fn ticks(&self, now: u64) -> u32 {
        (65 + u128::from(now - self.start) * u128::from(SECOND) / 1_000_000_000) as u32
    }

    /// The law may have thrown away what waits.
    fn discard(&mut self) {
        if self.law.take_discard() {
            self.queue.clear();
        }
    }
}

/// One packet's service: when it began, of which flow, its wait, its size, whether it was marked.
type Service = (u64, usize, u64, u32, bool);

struct Loop {
    case: Case,
    flows: Vec<Flow>,
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Option<Event>>,
    /// The places of `events` that are free, and how many there have been.
    vacant: Vec<usize>,
    order: u64,
    link: VecDeque<Sent>,
    waiting: u64,
    free: u64,
    losses: Xorshift,
    services: Vec<Service>,
    /// What came to the link: when, of which flow, whether it was lost.
    offered: Vec<(u64, usize, bool)>,
    /// When, of which flow, how much.
    arrivals: Vec<(u64, usize, u32)>,
}

impl Loop {
    fn new(case: Case, seed: u32) -> Loop {
        let flow = |(i, &(start, delay)): (usize, &(u64, u64))| {
            let (min_rate, max_rate) = case.rates;
            let settings = Settings {
                window: (min_rate * 0.1 / 8.0) as i32,
                min_ref_wnd: 2400,
                min_rate: min_rate as f32,
                start_rate: min_rate as f32,
                max_rate: max_rate as f32,
                l4s: case.marks.is_some_and(|marks| marks.scalable),
                faults: Faults { media_time: case.media_time, ..Faults::RECORDED },
                ..Settings::default()
            };
            let seed = 1000 * seed + i as u32;
            Flow {
                law: Law::new(settings),
                start: start * MS,
                delay: delay * MS,
                queue: VecDeque::new(),
                next: 0,
                number: 0,
                rate: min_rate,
                draws: Xorshift::new(seed),
                fresh: Vec::new(),
                last_feedback: start * MS,
                has_feedback: false,
            }
        };
        let flows: Vec<Flow> = case.flows.iter().enumerate().map(flow).collect();
        let losses = Xorshift::new(seed);
        let mut new = Loop {
            case,
            flows,
            heap: BinaryHeap::new(),
            events: Vec::new(),
            vacant: Vec::new(),
            order: 0,
            link: VecDeque::new(),
            waiting: 0,
            free: 0,
            losses,
            services: Vec::new(),
            offered: Vec::new(),
            arrivals: Vec::new(),
        };
        for i in 0..new.flows.len() {
            let start = new.flows[i].start;
            new.at(start, Event::Frame(i, 0));
            new.at(start + MS, Event::Poll(i));
        }
        new
    }

    fn at(&mut self, time: u64, event: Event) {
        let id = self.vacant.pop().unwrap_or(self.events.len());
        self.events.resize_with(self.events.len().max(id + 1), || None);
        self.events[id] = Some(event);
        self.order += 1;
        self.heap.push(Reverse((time, self.order, id)));
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
            self.vacant.push(id);
            match self.events[id].take().unwrap() {
                Event::Frame(i, k) => self.frame(now, i, k),
                Event::Poll(i) => {
                    self.send(now, i);
                    if now - self.flows[i].last_feedback > 40 * MS && !self.flows[i].fresh.is_empty() {
                        self.report(now, i);
                    }
                    self.at(now + MS, Event::Poll(i));
                }
                Event::Pace(i) => self.send(now, i),
                Event::Served(packet) => self.served(now, packet),
                Event::Arrived(packet, marked) => self.arrived(now, packet, marked),
                Event::Feedback(i, report, fresh) => {
                    let flow = &mut self.flows[i];
                    let acked: Vec<AckedPacket> = fresh
                        .iter()
                        .map(|&(number, arrival, marked)| {
                            let offset = (report.wrapping_sub(arrival) / 64) << 6;
                            AckedPacket { number, at: report.wrapping_sub(offset), marked }
                        })
                        .collect();
                    let ticks = flow.ticks(now);
                    flow.law.feedback(ticks, &acked, flow.has_feedback);
                    flow.has_feedback = true;
                    flow.discard();
                    self.send(now, i);
                }
            }
        }
    }

    fn frame(&mut self, now: u64, i: usize, k: u64) {
        let flow = &mut self.flows[i];
        let ticks = flow.ticks(now);
        flow.rate = flow.law.encoder_rate(ticks).into();
        let by = 1.0 + self.case.varied as f64 / 100.0 * (2.0 * f64::from(flow.draws.next()) / 4_294_967_296.0 - 1.0);
        let bytes = ((flow.rate / (8.0 * FPS as f64) * by) as u32).max(1);
        let rest = Some(bytes % 1200).filter(|rest| *rest > 0);
        let sizes: Vec<u32> = std::iter::repeat_n(1200, (bytes / 1200) as usize).chain(rest).collect();
        let count = sizes.len();
        flow.queue.extend(sizes.iter().enumerate().map(|(n, &size)| (size, n + 1 == count)));
        flow.law.frame(ticks, sizes);
        flow.discard();
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
            let place = self.offered.len();
            self.offered.push((now, i, false));
            self.hand(now, Sent { flow: i, number, size, ends, arrived: now, place });
        }
    }

    /// A packet comes to the link.
    fn hand(&mut self, now: u64, packet: Sent) {
        let capacity = self.capacity(now);
        let wait = self.free.saturating_sub(now) as f64 + self.waiting as f64 * 8e9 / capacity;
        let lost = wait > (300 * MS) as f64;
        if lost {
            self.offered[packet.place].2 = true;
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
        let marked = self.case.marks.is_some_and(|Marks { above, .. }| wait > above * MS);
        self.services.push((now, packet.flow, wait, packet.size, marked));
        self.free = now + (f64::from(packet.size) * 8e9 / self.capacity(now)) as u64;
        self.at(self.free, Event::Served(packet));
    }

    fn served(&mut self, now: u64, packet: Sent) {
        let marked = self.services.last().is_some_and(|service| service.4);
        let share = self.case.loss / 100.0;
        let lost = share > 0.0 && f64::from(self.losses.next()) < (share * 4_294_967_296.0).floor();
        self.offered[packet.place].2 = lost;
        if !lost {
            let delay = self.flows[packet.flow].delay;
            self.arrivals.push((now + delay, packet.flow, packet.size));
            self.at(now + delay, Event::Arrived(packet, marked));
        }
        if let Some(next) = self.link.pop_front() {
            self.waiting -= u64::from(next.size);
            self.serve(now, next);
        }
    }

    fn arrived(&mut self, now: u64, packet: Sent, marked: bool) {
        let flow = &mut self.flows[packet.flow];
        let arrival = flow.ticks(now);
        flow.fresh.push((packet.number, arrival, marked));
        if flow.fresh.len() >= 16 || packet.ends {
            self.report(now, packet.flow);
        }
    }

    fn report(&mut self, now: u64, i: usize) {
        let flow = &mut self.flows[i];
        let report = flow.ticks(now);
        let fresh = std::mem::take(&mut flow.fresh);
        flow.last_feedback = now;
        let delay = flow.delay;
        self.at(now + delay, Event::Feedback(i, report, fresh));
    }

    /// Of a window of time (s) and of one flow or all: kbit/s received, mean and 95 % of the waits (ms), and the shares of packets
    /// that were lost and marked (%).
    fn measures(&self, from: u64, to: u64, flow: Option<usize>) -> [f64; 5] {
        let within = |time: u64| (from * 1000 * MS..to * 1000 * MS).contains(&time);
        let of = |f: usize| flow.is_none_or(|flow| flow == f);
        let bytes: u64 = self.arrivals.iter().filter(|a| within(a.0) && of(a.1)).map(|a| u64::from(a.2)).sum();
        let mut waits: Vec<u64> = self.services.iter().filter(|s| within(s.0) && of(s.1)).map(|s| s.2).collect();
        waits.sort_unstable();
        let mean = waits.iter().sum::<u64>() as f64 / waits.len() as f64 / 1e6;
        let high = waits[(waits.len() as f64 * 0.95) as usize] as f64 / 1e6;
        let marked = self.services.iter().filter(|s| within(s.0) && of(s.1) && s.4).count();
        let offered = || self.offered.iter().filter(|o| within(o.0) && of(o.1));
        let lost = offered().filter(|o| o.2).count() as f64 / offered().count() as f64;
        let rate = bytes as f64 * 8.0 / 1000.0 / (to - from) as f64;
        [rate, mean, high, 100.0 * lost, 100.0 * marked as f64 / waits.len() as f64]
    }
}

/// So many of the reference's 20 seeds are run.
const SEEDS: u32 = 10;

/// Each mean lies within four standard errors of the reference's.
fn check(case: Case) {
    let end = case.rows.iter().map(|row| row.2).max().unwrap_or(0);
    let run = |seed| {
        let mut run = Loop::new(case, seed);
        run.run(end * 1000 * MS);
        run
    };
    let runs: Vec<Loop> = (1..=SEEDS).map(run).collect();
    let mut wrong = Vec::new();
    for &(flow, from, to, theirs) in case.rows {
        for (i, (their_mean, their_sd)) in theirs.into_iter().enumerate() {
            let ours: Vec<f64> = runs.iter().map(|run| run.measures(from, to, flow)[i]).collect();
            let n = f64::from(SEEDS);
            let mean = ours.iter().sum::<f64>() / n;
            let variance = ours.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
            let error = (variance / n + their_sd * their_sd / 20.0).sqrt();
            // what is printed of the reference's has three or four digits
            if (mean - their_mean).abs() > 4.0 * error + 0.005 * their_mean + 0.005 {
                let what = ["kbit/s", "mean wait", "95 % of waits", "lost", "marked"][i];
                wrong.push(format!("{flow:?} {from} {to} {what}: {mean:.3}, not {their_mean} +- {error:.3}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", case.name);
}

#[test]
fn alone_on_2_mbit_s() {
    check(cases::A);
}

#[test]
fn capacity_that_changes() {
    check(cases::B);
}

#[test]
fn capacity_that_falls_to_a_quarter() {
    check(cases::B_STUCK);
}

#[test]
fn two_on_a_capacity_that_changes() {
    check(cases::C);
}

#[test]
fn three_that_join() {
    check(cases::D);
}

#[test]
fn five_round_trips() {
    check(cases::G);
}

#[test]
fn queues_that_mark_for_scalable_senders() {
    check(cases::E_L4S_10M_5MS);
    check(cases::E_L4S_10M_1MS);
    check(cases::E_L4S_50M_1MS);
}

#[test]
fn queues_that_mark_as_of_old() {
    check(cases::E_CLS_10M_5MS);
    check(cases::E_CLS_10M_1MS);
    check(cases::E_CLS_50M_5MS);
}

#[test]
fn one_in_a_hundred_lost() {
    check(cases::F_LOSS01);
    check(cases::F_LOSS01_TS0);
}

#[test]
fn one_in_twenty_lost() {
    check(cases::F_LOSS05);
    check(cases::F_LOSS05_TS0);
}

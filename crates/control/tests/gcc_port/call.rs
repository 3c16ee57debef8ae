//! One call in a loop of its own: an encoder, a pacer, a drop-tail link that also loses at random, and feedback. Whoever decides
//! the rates is told the same, so that what differs is the decision.

use super::controller::{Decides, Feedback, MS, Order, PacketResult, SECOND, Sent};
use crate::media::draw;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The loop's clock begins here: libwebrtc takes zero for no time.
const BEGIN: u64 = 1000 * SECOND;
const PROPAGATION: u64 = 50 * MS;
const FEEDBACK: u64 = 50 * MS;
const PROCESS: u64 = 25 * MS;
const FRAME: u64 = SECOND / 30;
/// What the pacer may send at once, and the headers of a packet.
const BURST: u64 = 40 * MS;
const HEADERS: u64 = 58;
const PAYLOAD: u64 = 1200;

/// The path and the encoder.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// From when (s) the link has which rate (bits a second).
    pub rates: &'a [(u64, f64)],
    /// The share of packets lost at random.
    pub loss: f64,
    /// The encoder's greatest rate.
    pub max_rate: f64,
    pub seconds: u64,
}

enum Event {
    Frame,
    Process,
    Pace,
    Collect,
    Feedback(Vec<PacketResult>, u64),
}

struct Cluster {
    order: Order,
    next: u64,
    bytes: u64,
    packets: u32,
}

pub struct Call<'a> {
    case: Case<'a>,
    decides: &'a mut dyn Decides,
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    events: Vec<Option<Event>>,
    draws: u64,
    /// When the link is free, and what waits at most.
    free: u64,
    limit: f64,
    queue: VecDeque<u64>,
    clusters: VecDeque<Cluster>,
    /// When the pacer has paid for what has left.
    paid: u64,
    padded: u64,
    /// Packets of which nothing has been told yet, with their arrivals.
    under_way: VecDeque<PacketResult>,
    covered: Option<u32>,
    number: u32,
    flying: VecDeque<(u32, u64)>,
    /// Arrivals: when, and how much.
    pub arrivals: Vec<(u64, u64)>,
}

impl<'a> Call<'a> {
    pub fn new(case: Case<'a>, seed: u64, decides: &'a mut dyn Decides) -> Call<'a> {
        let mut call = Call {
            case,
            decides,
            heap: BinaryHeap::new(),
            events: Vec::new(),
            draws: seed,
            free: BEGIN,
            limit: case.rates[0].1 * 0.3 / 8.0,
            queue: VecDeque::new(),
            clusters: VecDeque::new(),
            paid: BEGIN,
            padded: BEGIN,
            under_way: VecDeque::new(),
            covered: None,
            number: 0,
            flying: VecDeque::new(),
            arrivals: Vec::new(),
        };
        call.at(BEGIN, Event::Frame);
        call.at(BEGIN + PROCESS, Event::Process);
        call.at(BEGIN + FEEDBACK, Event::Collect);
        call
    }

    fn at(&mut self, time: u64, event: Event) {
        self.heap.push(Reverse((time, self.events.len() as u64)));
        self.events.push(Some(event));
    }

    /// The mean rate that came through from one second to another, in kbit/s.
    pub fn through(&self, from: u64, to: u64) -> f64 {
        let within = |at: u64| (BEGIN + from * SECOND..BEGIN + to * SECOND).contains(&at);
        let bytes: u64 = self.arrivals.iter().filter(|(at, _)| within(*at)).map(|(_, size)| size).sum();
        bytes as f64 * 8e-3 / (to - from) as f64
    }

    pub fn run(&mut self) {
        self.decides.start(BEGIN);
        while let Some(Reverse((now, id))) = self.heap.pop() {
            if now > BEGIN + self.case.seconds * SECOND {
                break;
            }
            match self.events[id as usize].take().unwrap() {
                Event::Frame => {
                    let rate = self.decides.rates().encoder.min(self.case.max_rate).max(30e3);
                    let mut left = (rate / 8.0 / 30.0) as u64;
                    let pieces = left.div_ceil(PAYLOAD + HEADERS).max(1);
                    for i in 0..pieces {
                        let size = left / (pieces - i);
                        left -= size;
                        self.queue.push_back(size);
                    }
                    self.at(now + FRAME, Event::Frame);
                }
                Event::Process => {
                    self.decides.process(now);
                    self.at(now + PROCESS, Event::Process);
                }
                Event::Pace => {}
                Event::Collect => self.collect(now),
                Event::Feedback(results, made) => self.on_feedback(results, made, now),
            }
            self.send(now);
        }
    }

    /// What the receiver knows: everything up to the newest that has come is there or lost.
    fn collect(&mut self, now: u64) {
        self.at(now + FEEDBACK, Event::Collect);
        let known = self.under_way.iter().rposition(|p| p.arrived.is_some_and(|at| at <= now));
        if let Some(last) = known {
            let results: Vec<PacketResult> = self.under_way.drain(..=last).collect();
            self.at(now + PROPAGATION, Event::Feedback(results, now));
        }
    }

    fn on_feedback(&mut self, mut results: Vec<PacketResult>, made: u64, now: u64) {
        let last = *results.last().unwrap();
        let rtt = now - last.sent.at - (made - last.arrived.unwrap());
        self.covered = Some(last.sent.number);
        while self.flying.front().is_some_and(|(number, _)| *number <= last.sent.number) {
            self.flying.pop_front();
        }
        for packet in &mut results {
            packet.arrived = packet.arrived.map(|at| at / (MS / 4) * (MS / 4));
        }
        let feedback = Feedback { packets: results, rtt, in_flight: self.in_flight() };
        self.decides.feedback(&feedback, now);
    }

    fn in_flight(&self) -> u64 {
        self.flying.iter().map(|(_, size)| size).sum()
    }

    /// Probes first, then what the encoder wrote, then padding.
    fn send(&mut self, now: u64) {
        loop {
            while let Some(order) = self.decides.order() {
                self.clusters.push_back(Cluster { order, next: now, bytes: 0, packets: 0 });
            }
            let rates = self.decides.rates();
            let next = if let Some(cluster) = self.clusters.front_mut() {
                if cluster.next <= now {
                    let size = self.queue.pop_front().unwrap_or(PAYLOAD + HEADERS);
                    cluster.next = cluster.next.max(now) + (size as f64 * 8e9 / cluster.order.rate) as u64;
                    cluster.bytes += size;
                    cluster.packets += 1;
                    let id = cluster.order.id;
                    if cluster.bytes >= cluster.order.bytes && cluster.packets >= cluster.order.packets {
                        self.clusters.pop_front();
                    }
                    self.leave(size, Some(id), now);
                    continue;
                }
                cluster.next
            } else if let Some(&size) = self.queue.front() {
                let due = self.paid.saturating_sub(BURST);
                if due <= now {
                    self.queue.pop_front();
                    self.paid = self.paid.max(now) + (size as f64 * 8e9 / rates.pacer) as u64;
                    self.leave(size, None, now);
                    continue;
                }
                due
            } else if rates.padding > 0.0 {
                let due = self.padded.max(self.paid);
                if due <= now {
                    self.padded = now + ((PAYLOAD + HEADERS) as f64 * 8e9 / rates.padding) as u64;
                    self.leave(PAYLOAD + HEADERS, None, now);
                    continue;
                }
                due
            } else {
                return;
            };
            self.at(next.max(now + 1), Event::Pace);
            return;
        }
    }

    fn leave(&mut self, size: u64, cluster: Option<u32>, now: u64) {
        let sent = Sent { number: self.number, at: now, size, cluster };
        self.number += 1;
        // what is written before counts against what may be padded
        self.padded = self.padded.max(now);
        let arrived = self.link(size, now);
        if let Some(at) = arrived {
            self.arrivals.push((at, size));
        }
        self.under_way.push_back(PacketResult { sent, arrived });
        self.flying.push_back((sent.number, size));
        let in_flight = self.in_flight();
        self.decides.sent(&sent, in_flight);
    }

    fn link(&mut self, size: u64, now: u64) -> Option<u64> {
        let rate = self.case.rates.iter().rev().find(|step| BEGIN + step.0 * SECOND <= now).unwrap().1;
        let waiting = self.free.saturating_sub(now) as f64 * rate / 8e9;
        if waiting + size as f64 > self.limit {
            return None;
        }
        self.free = self.free.max(now) + (size as f64 * 8e9 / rate) as u64;
        (draw(&mut self.draws) >= self.case.loss).then_some(self.free + PROPAGATION)
    }
}

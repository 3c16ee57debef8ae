//! An ideal path for tests: 100 Mbit/s without delay at the edges, one bottleneck with a drop-tail queue, a heap.

#![allow(missing_docs)]

use crate::segments::packet;
use paceline_control::TcpController;
use paceline_flow::tcp::{TcpConfig, TcpReceiver, TcpSender};
use paceline_flow::{Segment, Transmit};
use paceline_packet::{Extra, Flags, Packet};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The path and the run.
#[derive(Clone)]
pub struct Path {
    pub rtt: Span,
    pub loss: f64,
    pub seed: u64,
    pub duration: Time,
    pub warmup: Time,
    pub start: Time,
    /// Packets that may wait, the one in transmission left out.
    pub waiting: usize,
    /// Retransmissions are spared random loss: each loss is repaired at the first attempt.
    pub spared: bool,
    /// So many packets at the beginning are lost.
    pub lost_first: u64,
}

impl Path {
    /// The set-up of ns-2's single-flow grid: 10 Mbit/s, 50 packets (ns-2 drops the one that would be the 50th to
    /// wait), 120 s of which the first 20 s do not count.
    pub fn grid(rtt_ms: u64, loss: f64, seed: u64) -> Path {
        let start = if loss > 0.0 { Time::from_secs_f64(Stream::new(seed, "start").unit(0)) } else { Time::ZERO };
        Path {
            rtt: Span::from_millis(rtt_ms),
            loss,
            seed,
            duration: Time::from_secs_f64(120.0),
            warmup: Time::from_secs_f64(20.0),
            start,
            waiting: 49,
            spared: false,
            lost_first: 0,
        }
    }
}

/// What came out, warm-up left out.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    pub goodput_mbps: f64,
    pub loss_rate: f64,
    pub mean_queue: f64,
    pub mean_window: f64,
    pub retransmitted: u64,
    pub timeouts: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    SenderTimer,
    ReceiverTimer,
    Router,
    Receiver,
    BackRouter,
    Sender,
}

struct Line {
    free: u64,
    ns_per_byte: u64,
}

impl Line {
    fn pass(&mut self, now: u64, size: u16) -> u64 {
        self.free = self.free.max(now) + u64::from(size) * self.ns_per_byte;
        self.free
    }
}

struct Net {
    heap: BinaryHeap<Reverse<(u64, u64, Place, usize)>>,
    slab: Vec<(Packet, Option<Extra>)>,
    order: u64,
    lines: [Line; 4],
}

impl Net {
    fn put(&mut self, at: u64, place: Place, item: usize) {
        self.order += 1;
        self.heap.push(Reverse((at, self.order, place, item)));
    }
}

struct Port<'a> {
    net: &'a mut Net,
    now: u64,
    data: bool,
}

impl Transmit for Port<'_> {
    fn transmit(&mut self, s: Segment) {
        let packet = packet(Time(self.now), &s);
        self.net.slab.push((packet, s.extra));
        let item = self.net.slab.len() - 1;
        let at = self.net.lines[if self.data { 0 } else { 2 }].pass(self.now, s.size);
        self.net.put(at, if self.data { Place::Router } else { Place::BackRouter }, item);
    }
}

/// Runs one flow that always has data.
pub fn run(config: &TcpConfig, controller: TcpController, path: &Path) -> Outcome {
    let mut sender = TcpSender::new(config, controller, Stream::new(path.seed, "sender"));
    let mut receiver = TcpReceiver::new(config);
    let line = |ns_per_byte| Line { free: 0, ns_per_byte };
    // access, bottleneck, and the same back
    let mut net =
        Net { heap: BinaryHeap::new(), slab: Vec::new(), order: 0, lines: [line(80), line(800), line(80), line(800)] };
    let loss = Stream::new(path.seed, "loss");
    let half = path.rtt.0 / 2;
    let (mut arrivals, mut drops) = (0u64, 0u64);
    let mut departures: std::collections::VecDeque<u64> = Default::default();
    let (mut queue_integral, mut since) = (0.0, path.warmup.0);
    let mut before = None;
    net.put(path.start.0, Place::SenderTimer, 1);
    let (mut sender_wake, mut receiver_wake) = (u64::MAX, u64::MAX);
    while let Some(Reverse((now, _, place, item))) = net.heap.pop() {
        if now > path.duration.0 {
            break;
        }
        let time = Time(now);
        if now >= path.warmup.0 && before.is_none() {
            sender.account(path.warmup);
            before = Some((sender.stats().clone(), arrivals, drops));
        }
        let drain = |departures: &mut std::collections::VecDeque<u64>, since: &mut u64, integral: &mut f64, to: u64| {
            while let Some(&t) = departures.front().filter(|t| **t <= to) {
                if t > *since {
                    *integral += departures.len() as f64 * (t - *since) as f64;
                    *since = t;
                }
                departures.pop_front();
            }
            if to > *since {
                *integral += departures.len() as f64 * (to - *since) as f64;
                *since = to;
            }
        };
        match place {
            Place::SenderTimer => {
                let mut port = Port { net: &mut net, now, data: true };
                if item == 1 {
                    sender.supply_endless(time, &mut port);
                    sender.start(time, &mut port);
                } else {
                    sender_wake = u64::MAX;
                    sender.on_timer(time, &mut port);
                }
            }
            Place::ReceiverTimer => {
                receiver_wake = u64::MAX;
                receiver.on_timer(time, &mut Port { net: &mut net, now, data: false });
            }
            Place::Router => {
                drain(&mut departures, &mut since, &mut queue_integral, now);
                arrivals += 1;
                if departures.len() >= path.waiting {
                    drops += 1;
                } else {
                    let begin = net.lines[1].free.max(now);
                    if begin > now {
                        departures.push_back(begin);
                    }
                    let end = net.lines[1].pass(now, net.slab[item].0.size);
                    let spared = path.spared && net.slab[item].0.flags.has(Flags::RETRANSMISSION);
                    let random = path.loss > 0.0 && loss.unit(arrivals) < path.loss && !spared;
                    if random || arrivals <= path.lost_first {
                        drops += 1;
                    } else {
                        // the last hop: 100 Mbit/s again
                        let at = end + half + u64::from(net.slab[item].0.size) * 80;
                        net.put(at, Place::Receiver, item);
                    }
                }
            }
            Place::BackRouter => {
                let size = net.slab[item].0.size;
                let at = net.lines[3].pass(now, size) + half + u64::from(size) * 80;
                net.put(at, Place::Sender, item);
            }
            Place::Receiver => {
                let packet = net.slab[item].0;
                receiver.on_data(time, &packet, &mut Port { net: &mut net, now, data: false });
            }
            Place::Sender => {
                let (packet, extra) = net.slab[item].clone();
                sender.on_ack(
                    time,
                    &packet,
                    extra.as_ref().and_then(Extra::tcp),
                    &mut Port { net: &mut net, now, data: true },
                );
            }
        }
        // one lazy entry a machine
        if sender.next_wake().0 < sender_wake {
            sender_wake = sender.next_wake().0;
            net.put(sender_wake, Place::SenderTimer, 0);
        }
        if receiver.next_wake().0 < receiver_wake {
            receiver_wake = receiver.next_wake().0;
            net.put(receiver_wake, Place::ReceiverTimer, 0);
        }
    }
    sender.account(path.duration);
    let (stats, arrivals0, drops0) = before.expect("the run is longer than the warm-up");
    let stats = sender.stats().since(&stats);
    let seconds = path.duration.since(path.warmup).as_secs_f64();
    Outcome {
        goodput_mbps: stats.bytes_acked as f64 * 8.0 / seconds / 1e6,
        loss_rate: (drops - drops0) as f64 / (arrivals - arrivals0).max(1) as f64,
        mean_queue: queue_integral / (seconds * 1e9),
        mean_window: stats.mean_window().unwrap_or(0.0),
        retransmitted: stats.retransmitted,
        timeouts: stats.timeouts,
    }
}

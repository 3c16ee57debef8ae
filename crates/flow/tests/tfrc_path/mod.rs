//! One TFRC flow over an ideal path: edges of 100 Mbit/s without delay, one bottleneck with a drop-tail queue, losses
//! behind it.

#![allow(missing_docs, dead_code)]

use crate::segments::packet;
use paceline_control::{Profile, RateController, TfrcController, registry};
use paceline_flow::tfrc::TfrcConfig;
use paceline_flow::{Receiver, Segment, Sender, Transmit, Transport};
use paceline_packet::{Extra, Flags, Packet};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What happens to the packets behind the queue.
#[derive(Clone, Copy)]
pub enum Loss {
    /// Nothing.
    None,
    /// Each is lost with this probability.
    Random(f64),
    /// Every so-manieth is lost.
    Each(u32),
    /// Every so-manieth is marked.
    Marks(u32),
}

/// The path and the run.
#[derive(Clone)]
pub struct Path {
    pub rtt: Span,
    pub loss: Loss,
    pub seed: u64,
    pub duration: Time,
    pub warmup: Time,
    pub start: Time,
    /// Nanoseconds a byte at the bottleneck.
    pub ns_per_byte: u64,
    /// Packets that may wait.
    pub waiting: usize,
    /// What the application writes: bytes each so often; nothing: it never runs dry.
    pub writes: Option<(u64, Span)>,
}

impl Path {
    /// ns-2's single-flow grid: 10 Mbit/s, 50 packets, 120 s of which the first 20 s do not count.
    pub fn grid(rtt_ms: u64, loss: f64, seed: u64) -> Path {
        let start = if loss > 0.0 { Time::from_secs_f64(Stream::new(seed, "start").unit(0)) } else { Time::ZERO };
        Path {
            rtt: Span::from_millis(rtt_ms),
            loss: if loss > 0.0 { Loss::Random(loss) } else { Loss::None },
            seed,
            duration: Time::from_secs_f64(120.0),
            warmup: Time::from_secs_f64(20.0),
            start,
            ns_per_byte: 800,
            waiting: 49,
            writes: None,
        }
    }
}

/// What came out, warm-up left out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Bytes a second that arrived.
    pub goodput: f64,
    /// Bytes a second sent.
    pub sent: f64,
    pub loss_rate: f64,
    pub mean_queue: f64,
    /// p at the end; of several connections, their mean.
    pub p: f64,
    pub srtt: f64,
    /// How many are open at the end.
    pub connections: usize,
    /// Bytes that arrived, each half second from the start on.
    pub halves: Halves,
    pub timeouts: u64,
}

/// A long list that messages leave out.
#[derive(Clone, PartialEq)]
pub struct Halves(pub Vec<u64>);

impl std::fmt::Debug for Halves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of them", self.0.len())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    SenderTimer,
    ReceiverTimer,
    Write,
    Router,
    Receiver,
    BackRouter,
    Sender,
}

struct Net {
    heap: BinaryHeap<Reverse<(u64, u64, Place, usize)>>,
    slab: Vec<(Packet, Option<Extra>)>,
    order: u64,
    /// Until when each line is busy, and nanoseconds a byte.
    lines: [(u64, u64); 4],
}

impl Net {
    fn put(&mut self, at: u64, place: Place, item: usize) {
        self.order += 1;
        self.heap.push(Reverse((at, self.order, place, item)));
    }

    fn pass(&mut self, line: usize, now: u64, size: u16) -> u64 {
        let (free, per_byte) = &mut self.lines[line];
        *free = (*free).max(now) + u64::from(size) * *per_byte;
        *free
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
        let at = self.net.pass(if self.data { 0 } else { 2 }, self.now, s.size);
        self.net.put(at, if self.data { Place::Router } else { Place::BackRouter }, item);
    }
}

/// Settings and controller of `scheme` under `profile`.
pub fn flow(scheme: &str, profile: Profile, given: &[(&str, f64)]) -> (TfrcConfig, TfrcController) {
    let controller = TfrcController::new(registry::scheme(scheme).unwrap(), profile, given).unwrap();
    (TfrcConfig::new(profile, controller.settings()), controller)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn loss_event_rate(receiver: &Receiver) -> f64 {
    match receiver {
        Receiver::Tfrc(tfrc) => tfrc.loss_event_rate(),
        Receiver::Multfrc(multfrc) => mean(multfrc.loss_event_rates()),
        _ => panic!("not TFRC's"),
    }
}

fn srtt(sender: &Sender) -> f64 {
    match sender {
        Sender::Tfrc(tfrc) => tfrc.srtt().as_secs_f64(),
        Sender::Multfrc(multfrc) => mean(multfrc.connections().map(|tfrc| tfrc.srtt().as_secs_f64())),
        _ => panic!("not TFRC's"),
    }
}

/// Runs one flow.
pub fn run(config: &TfrcConfig, controller: TfrcController, path: &Path) -> Outcome {
    let transport = Transport::Tfrc { config: config.clone(), controller };
    let mut sender = transport.sender(Stream::new(path.seed, "sender"));
    let mut receiver = transport.receiver(Stream::new(1, "receiver"));
    let mut started = false;
    let lines = [(0, 80), (0, path.ns_per_byte), (0, 80), (0, path.ns_per_byte)];
    let mut net = Net { heap: BinaryHeap::new(), slab: Vec::new(), order: 0, lines };
    let loss = Stream::new(path.seed, "loss");
    let half = path.rtt.0 / 2;
    let (mut arrivals, mut drops, mut through) = (0u64, 0u64, 0u32);
    let mut departures: VecDeque<u64> = VecDeque::new();
    let (mut queue_integral, mut since) = (0.0, path.warmup.0);
    let mut before = None;
    let mut halves = vec![0u64; (path.duration.0 / 500_000_000) as usize + 1];
    net.put(path.start.0, Place::Write, 0);
    let (mut sender_wake, mut receiver_wake) = (u64::MAX, u64::MAX);
    while let Some(Reverse((now, _, place, item))) = net.heap.pop() {
        if now > path.duration.0 {
            break;
        }
        let time = Time(now);
        if now >= path.warmup.0 && before.is_none() {
            before = Some((sender.stats().clone(), *receiver.stats(), arrivals, drops));
        }
        match place {
            // superseded by an earlier call
            Place::SenderTimer if now < sender_wake => continue,
            Place::ReceiverTimer if now < receiver_wake => continue,
            Place::Write => {
                let mut port = Port { net: &mut net, now, data: true };
                match path.writes {
                    None => sender.supply_endless(time, &mut port),
                    Some((bytes, _)) => sender.supply(bytes, time, &mut port),
                }
                if !std::mem::replace(&mut started, true) {
                    sender.start(time, &mut port);
                }
                if let Some((_, every)) = path.writes {
                    net.put(now + every.0, Place::Write, 0);
                }
            }
            Place::SenderTimer => {
                sender_wake = u64::MAX;
                sender.on_timer(time, &mut Port { net: &mut net, now, data: true });
            }
            Place::ReceiverTimer => {
                receiver_wake = u64::MAX;
                receiver.on_timer(time, &mut Port { net: &mut net, now, data: false });
            }
            Place::Router => {
                while departures.front().is_some_and(|&t| t <= now) {
                    let t = departures[0];
                    if t > since {
                        queue_integral += departures.len() as f64 * (t - since) as f64;
                        since = t;
                    }
                    departures.pop_front();
                }
                if now > since {
                    queue_integral += departures.len() as f64 * (now - since) as f64;
                    since = now;
                }
                arrivals += 1;
                if departures.len() >= path.waiting {
                    drops += 1;
                } else {
                    let begin = net.lines[1].0.max(now);
                    if begin > now {
                        departures.push_back(begin);
                    }
                    let size = net.slab[item].0.size;
                    let end = net.pass(1, now, size);
                    through += 1;
                    let lost = match path.loss {
                        Loss::None | Loss::Marks(_) => false,
                        Loss::Random(p) => loss.unit(u64::from(through)) < p,
                        Loss::Each(n) => through % n == 0,
                    };
                    if lost {
                        drops += 1;
                    } else {
                        if matches!(path.loss, Loss::Marks(n) if through % n == 0) {
                            let flags = &mut net.slab[item].0.flags;
                            assert!(flags.has(Flags::ECT));
                            *flags = flags.with(Flags::CE);
                        }
                        net.put(end + half + u64::from(size) * 80, Place::Receiver, item);
                    }
                }
            }
            Place::BackRouter => {
                let size = net.slab[item].0.size;
                let at = net.pass(3, now, size) + half + u64::from(size) * 80;
                net.put(at, Place::Sender, item);
            }
            Place::Receiver => {
                let (packet, extra) = net.slab[item].clone();
                let mut port = Port { net: &mut net, now, data: false };
                let before = receiver.stats().bytes;
                receiver.on_data(time, &packet, extra.as_ref(), &mut port);
                halves[(now / 500_000_000) as usize] += receiver.stats().bytes - before;
            }
            Place::Sender => {
                let (packet, extra) = net.slab[item].clone();
                sender.on_ack(time, &packet, extra.as_ref(), &mut Port { net: &mut net, now, data: true });
            }
        }
        if sender.next_wake().0 < sender_wake {
            sender_wake = sender.next_wake().0.max(now);
            net.put(sender_wake, Place::SenderTimer, 0);
        }
        if receiver.next_wake().0 < receiver_wake {
            receiver_wake = receiver.next_wake().0.max(now);
            net.put(receiver_wake, Place::ReceiverTimer, 0);
        }
    }
    let (sent, received, arrivals0, drops0) = before.expect("the run is longer than the warm-up");
    let seconds = path.duration.since(path.warmup).as_secs_f64();
    let sent = sender.stats().since(&sent);
    Outcome {
        goodput: receiver.stats().since(&received).bytes as f64 / seconds,
        sent: sent.bytes_acked as f64 / seconds,
        loss_rate: (drops - drops0) as f64 / (arrivals - arrivals0).max(1) as f64,
        mean_queue: queue_integral / (seconds * 1e9),
        p: loss_event_rate(&receiver),
        srtt: srtt(&sender),
        connections: match &sender {
            Sender::Multfrc(multfrc) => multfrc.connections().len(),
            _ => 1,
        },
        halves: Halves(halves),
        timeouts: sent.timeouts,
    }
}

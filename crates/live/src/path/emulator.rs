//! The emulator without its devices: frames enter at a given time, and leave at the time that the path's links
//! determine.
//!
//! Each link is the simulator's ([`paceline_path::Link`]) with the same random draws, so a path treats packets in real
//! time as a simulated path would at the same times. Start with [`Emulator::arrive`] and [`Emulator::poll`].

use super::connections::Connections;
use super::flow_delays::OwnDelays;
use super::flow_losses::FlowLosses;
use super::frame::{Shape, damage, set_ecn};
use super::frames::Frames;
use super::spec::PathSpec;
use crate::session::EcnBits;
use paceline_packet::{Flags, FlowId, Packet, Stamp};
use paceline_path::{
    DropReason, Drops, Fate, Hosts, Keys, Limit, Link, LinkReport, Measure, QdiscLink, Queue, Series, Waits,
};
use paceline_random::Stream;
use paceline_scenario::model::LinkDirection;
use paceline_units::{Size, Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// An end of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end of the program under test.
    Near,
    /// The end of its peer.
    Far,
}

impl Side {
    /// Both ends.
    pub const BOTH: [Side; 2] = [Side::Near, Side::Far];

    /// The other end.
    #[must_use]
    pub const fn other(self) -> Side {
        match self {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        }
    }

    /// `near` or `far`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Side::Near => "near",
            Side::Far => "far",
        }
    }
}

/// A frame that has crossed the path.
#[derive(Debug)]
pub struct Release<'a> {
    /// The end at which it leaves.
    pub side: Side,
    /// When it entered.
    pub entered: Time,
    /// When it was due to leave.
    pub due: Time,
    /// The IP packet.
    pub frame: &'a [u8],
}

/// Counts of the frames that entered at one end: entered + duplicated = delivered + dropped + in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames that entered.
    pub entered: u64,
    /// Their bytes.
    pub entered_bytes: u64,
    /// Copies made by impairments.
    pub duplicated: u64,
    /// Frames that left at the other end.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Frames dropped by links. `Corrupt`: damaged frames without a payload whose checksum would reveal the damage.
    pub links: Drops,
    /// Frames that are not a complete IP packet.
    pub malformed: u64,
    /// Frames for which the emulator had no memory.
    pub memory: u64,
    /// Frames that the device at the other end did not accept.
    pub device: u64,
    /// Frames on the path.
    pub in_flight: u64,
}

impl Counts {
    /// Number of dropped frames.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.links.total() + self.malformed + self.memory + self.device
    }

    /// Number of dropped frames by reason: those of links, `malformed`, `memory`, `device`.
    #[must_use]
    pub fn by_reason(&self) -> BTreeMap<&'static str, u64> {
        let links = DropReason::ALL.into_iter().map(|reason| (reason.name(), self.links[reason]));
        links.chain([("malformed", self.malformed), ("memory", self.memory), ("device", self.device)]).collect()
    }

    fn check(&self) {
        assert_eq!(
            self.entered + self.duplicated,
            self.delivered + self.dropped() + self.in_flight,
            "frames vanished: {self:?}"
        );
    }
}

/// Counts of a direction and its links.
#[derive(Debug)]
pub struct DirectionResult {
    /// The end at which its frames enter.
    pub from: Side,
    /// Counts of its frames.
    pub counts: Counts,
    /// Its links in order.
    pub links: Vec<LinkResult>,
}

/// Measurements of a link in one direction.
#[derive(Debug)]
pub struct LinkResult {
    /// The link.
    pub model: LinkDirection,
    /// Its counts, and the mean queue over the whole time.
    pub report: LinkReport,
    /// Waiting times in the queue.
    pub waits: Waits,
    /// The queue over time, if it was recorded.
    pub series: Series,
}

/// A link of the path.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "they lie in one vector, a few to a path")]
enum AnyLink {
    Plain(Link),
    /// A link whose packets' times are known only when they leave: sequence numbers carry their frames' places.
    Qdisc(Box<QdiscLink>),
}

/// One direction of the path.
#[derive(Debug)]
struct Direction {
    models: Vec<LinkDirection>,
    links: Vec<AnyLink>,
    counts: Counts,
    damage: Stream,
    damaged: u64,
}

/// A frame's arrival at a link or, with `link` beyond the last one, at the other end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Event {
    time: u64,
    number: u64,
    direction: u8,
    link: u16,
    size: u16,
    flags: u16,
    frame: u32,
    /// A hash of the 5-tuple.
    flow: u32,
    /// A hash of each address.
    hosts: u32,
}

/// A path and the frames on it. Calls must be in order of time; an earlier time counts as the latest so far.
#[derive(Debug)]
pub struct Emulator {
    directions: [Direction; 2],
    own: OwnDelays,
    /// Which flows share a connection.
    connections: Connections,
    lost: FlowLosses,
    events: BinaryHeap<Reverse<Event>>,
    /// Events beyond the last link that are due, in order of time.
    out: VecDeque<Event>,
    frames: Frames,
    number: u64,
    latest: u64,
    /// The frame of the last release, until the next poll.
    released: Option<u32>,
    /// Whether that frame is damaged.
    spoilt: bool,
}

impl Emulator {
    /// Maximum memory for frames on the path: more than 2 s at 1 Gbit/s.
    pub const MEMORY: Size = Size::from_bytes(256 << 20);

    /// A path at time zero. `record`: the interval at which queues are recorded. Frames on it use at most `memory`; a
    /// queue without a limit is limited to that number of bytes.
    #[must_use]
    pub fn new(spec: &PathSpec, record: Option<Span>, memory: Size) -> Emulator {
        let direction = |models: &Vec<LinkDirection>, side: Side| Direction {
            links: models.iter().map(|model| link(model, spec.seed, record, memory)).collect(),
            models: models.clone(),
            counts: Counts::default(),
            damage: Stream::new(spec.seed, &format!("damage {}", side.name())),
            damaged: 0,
        };
        Emulator {
            directions: [direction(&spec.there, Side::Near), direction(&spec.back, Side::Far)],
            own: spec.own.clone(),
            connections: spec.connections.clone(),
            lost: FlowLosses::of(spec.ports.clone()),
            events: BinaryHeap::new(),
            out: VecDeque::new(),
            frames: Frames::new(memory),
            number: 0,
            latest: 0,
            released: None,
            spoilt: false,
        }
    }

    /// A frame enters at `side`.
    pub fn arrive(&mut self, side: Side, now: Time, frame: &[u8]) {
        let now = self.advance(now);
        let direction = &mut self.directions[side as usize];
        direction.counts.entered += 1;
        direction.counts.entered_bytes += frame.len() as u64;
        let Some(shape) = Shape::of(frame) else {
            direction.counts.malformed += 1;
            return;
        };
        let Some(slot) = self.frames.keep(&frame[..usize::from(shape.size)], now) else {
            direction.counts.memory += 1;
            self.lost.dropped(side, frame, Time(now));
            return;
        };
        direction.counts.in_flight += 1;
        let before = self.own.before(side, frame);
        let event = Event {
            time: now + before.0,
            number: 0,
            direction: side as u8,
            link: 0,
            size: shape.size,
            flags: shape.flags.0,
            frame: slot,
            flow: self.connections.flow(side, frame, &shape),
            hosts: shape.hosts,
        };
        if before == Span::ZERO {
            self.cross(event);
        } else {
            self.send(event);
        }
    }

    /// The next frame that leaves by `now`, in order of time.
    pub fn poll(&mut self, now: Time) -> Option<Release<'_>> {
        if let Some(slot) = self.released.take() {
            self.frames.release(slot);
        }
        self.advance(now);
        while let Some(event) = self.out.pop_front() {
            let direction = &mut self.directions[usize::from(event.direction)];
            direction.counts.in_flight -= 1;
            let packet = self.frames.bytes(event.frame);
            let Some(shape) = Shape::of(packet) else { unreachable!("it was a packet when it came in") };
            let flags = Flags(event.flags);
            self.spoilt = flags.has(Flags::CORRUPT);
            if self.spoilt {
                direction.damaged += 1;
                // its checksum is wrong, so no receiver accepts it
                self.lost.dropped(Side::BOTH[usize::from(event.direction)], packet, Time(event.time));
                if !damage(packet, shape.header, direction.damage.bits(direction.damaged)) {
                    direction.counts.links[DropReason::Corrupt] += 1;
                    self.frames.release(event.frame);
                    continue;
                }
            }
            let ecn = EcnBits::of_flags(flags);
            if ecn != EcnBits::of_flags(shape.flags) {
                set_ecn(packet, ecn);
            }
            direction.counts.delivered += 1;
            direction.counts.delivered_bytes += u64::from(event.size);
            self.released = Some(event.frame);
            return Some(Release {
                side: Side::BOTH[usize::from(event.direction)].other(),
                entered: Time(self.frames.entered(event.frame)),
                due: Time(event.time),
                frame: self.frames.bytes(event.frame),
            });
        }
        None
    }

    /// The device at `side` did not accept the frame that [`Emulator::poll`] returned last.
    pub fn not_taken(&mut self, side: Side) {
        let Some(slot) = self.released.take() else { return };
        if !self.spoilt {
            self.lost.dropped(side.other(), self.frames.bytes(slot), Time(self.latest));
        }
        let counts = &mut self.directions[side.other() as usize].counts;
        counts.delivered -= 1;
        counts.delivered_bytes -= self.frames.bytes(slot).len() as u64;
        counts.device += 1;
        self.frames.release(slot);
    }

    /// When [`Emulator::poll`] has something to do next; [`Time::NEVER`] if no frame is on its way.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        if let Some(event) = self.out.front() {
            return Time(event.time);
        }
        let next = self.events.peek().map_or(Time::NEVER, |Reverse(event)| Time(event.time));
        self.departure().map_or(next, |(time, ..)| next.min(time))
    }

    /// Counts of the frames that entered at `side`.
    #[must_use]
    pub fn counts(&self, side: Side) -> Counts {
        self.directions[side as usize].counts
    }

    /// Takes the record of flows' losses so far.
    #[must_use]
    pub fn take_lost(&mut self) -> FlowLosses {
        std::mem::take(&mut self.lost)
    }

    /// Ends the measurement at `end`; returns both directions, first that from the near end.
    ///
    /// # Panics
    /// If a frame vanished.
    #[must_use]
    pub fn finish(mut self, end: Time) -> [DirectionResult; 2] {
        let end = Time(self.advance(end));
        let mut sides = Side::BOTH.into_iter();
        self.directions.map(|direction| {
            direction.counts.check();
            let links = direction.models.into_iter().zip(direction.links).map(|(model, mut link)| {
                let (report, waits, series) = match &mut link {
                    AnyLink::Plain(link) => (link.finish(end), link.waits(), link.take_series()),
                    AnyLink::Qdisc(link) => (link.finish(end), link.waits(), link.take_series()),
                };
                LinkResult { model, report, waits, series }
            });
            let from = sides.next().unwrap_or(Side::Near);
            DirectionResult { from, counts: direction.counts, links: links.collect() }
        })
    }

    /// The next departure from a link that decides at departure: its time, direction and link.
    fn departure(&self) -> Option<(Time, usize, usize)> {
        let all = self.directions.iter().enumerate().flat_map(|(direction, it)| {
            it.links.iter().enumerate().filter_map(move |(link, it)| match it {
                AnyLink::Plain(_) => None,
                AnyLink::Qdisc(managed) => Some((managed.next_wake(), direction, link)),
            })
        });
        all.min().filter(|(time, ..)| *time < Time::NEVER)
    }

    /// Processes everything up to `now`, at links and beyond the last one. At equal times departures come first.
    fn advance(&mut self, now: Time) -> u64 {
        let now = now.0.max(self.latest);
        loop {
            let event = self.events.peek().map(|Reverse(event)| event.time).filter(|time| *time <= now);
            if let Some((time, direction, link)) = self.departure()
                && time.0 <= event.unwrap_or(now)
            {
                self.depart(direction, link, time);
                continue;
            }
            if event.is_none() {
                break;
            }
            let Some(Reverse(event)) = self.events.pop() else { break };
            if usize::from(event.link) < self.directions[usize::from(event.direction)].links.len() {
                self.cross(event);
            } else {
                self.out.push_back(event);
            }
        }
        self.latest = now;
        now
    }

    /// Processes the packets that leave a link at `time`.
    fn depart(&mut self, direction: usize, link: usize, time: Time) {
        let mut settled = Vec::new();
        if let AnyLink::Qdisc(managed) = &mut self.directions[direction].links[link] {
            managed.advance(Time(time.0 + 1), &mut |fate, packet, _| settled.push((fate, packet)));
        }
        for (fate, packet) in settled {
            self.settle(fate, packet, direction, link, time);
        }
    }

    /// Processes a frame's arrival at a link.
    fn cross(&mut self, event: Event) {
        let (direction, link) = (usize::from(event.direction), usize::from(event.link));
        let (mut packet, at) = (packet(event), Time(event.time));
        match &mut self.directions[direction].links[link] {
            AnyLink::Plain(plain) => {
                let fate = plain.admit(&mut packet);
                self.settle(fate, packet, direction, link, at);
            }
            AnyLink::Qdisc(managed) => {
                let mut settled = Vec::new();
                managed.arrive(packet, &mut |fate, packet, _| settled.push((fate, packet)));
                for (fate, packet) in settled {
                    self.settle(fate, packet, direction, link, at);
                }
            }
        }
    }

    /// Processes a link's decision about a frame, made at time `at`.
    fn settle(&mut self, fate: Fate, packet: Packet, direction: usize, link: usize, at: Time) {
        let onward = Event {
            time: packet.time.0,
            number: 0,
            direction: direction as u8,
            link: link as u16 + 1,
            size: packet.size,
            flags: packet.flags.0,
            frame: packet.seq,
            flow: packet.flow.0,
            hosts: packet.stamp.0,
        };
        let (side, direction) = (Side::BOTH[direction], &mut self.directions[direction]);
        match fate {
            Fate::Pass => self.send(onward),
            Fate::Drop(reason) => {
                direction.counts.links[reason] += 1;
                direction.counts.in_flight -= 1;
                self.lost.dropped(side, self.frames.bytes(onward.frame), at);
                self.frames.release(onward.frame);
            }
            Fate::Twice(time) => {
                direction.counts.duplicated += 1;
                match self.frames.copy(onward.frame) {
                    Some(frame) => {
                        direction.counts.in_flight += 1;
                        let flags = packet.flags.with(Flags::DUPLICATE).0;
                        self.send(Event { time: time.0, flags, frame, ..onward });
                    }
                    None => {
                        direction.counts.memory += 1;
                        self.lost.dropped(side, self.frames.bytes(onward.frame), at);
                    }
                }
                self.send(onward);
            }
            // stays in flight forever
            Fate::Held => drop(self.frames.hold(onward.frame)),
        }
    }

    /// Sends a frame to the next link, or to the other end.
    fn send(&mut self, mut event: Event) {
        let direction = usize::from(event.direction);
        if usize::from(event.link) == self.directions[direction].links.len() {
            event.time += self.own.after(Side::BOTH[direction], self.frames.bytes(event.frame)).0;
        }
        self.number += 1;
        self.events.push(Reverse(Event { number: self.number, ..event }));
    }
}

fn packet(event: Event) -> Packet {
    Packet {
        time: Time(event.time),
        cursor: 0,
        size: event.size,
        flags: Flags(event.flags),
        flow: FlowId(event.flow),
        seq: event.frame,
        stamp: Stamp(event.hosts), // nothing on the path uses a stamp
        extra: paceline_packet::ExtraId::NONE,
    }
}

fn link(direction: &LinkDirection, seed: u64, record: Option<Span>, memory: Size) -> AnyLink {
    let mut model = direction.model.clone();
    if matches!(model.queue, Queue::Unlimited) {
        model.queue = Queue::DropTail(Limit::Bytes(memory));
    }
    model.queue.set_hosts(&Hosts::Stamped);
    let stream = direction.stream(seed);
    if model.queue.decides_at_departure() {
        let mut link = QdiscLink::new(&model, Measure::ALL, Keys::Flow, stream);
        if let Some(every) = record {
            link.record(every);
        }
        return AnyLink::Qdisc(Box::new(link));
    }
    let mut link = Link::new(&model, Measure::ALL, stream);
    link.record_waits();
    if let Some(every) = record {
        link.record(every);
    }
    AnyLink::Plain(link)
}

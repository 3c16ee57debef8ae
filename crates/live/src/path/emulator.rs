//! The emulator without its devices: frames go in at an instant, and come out at the instant that the path's links say.
//!
//! Each link is the simulator's ([`paceline_path::Link`]) and draws what it would draw there, so a path does in real time
//! what a simulated one does with the same packets at the same instants. Look first at [`Emulator::arrive`] and
//! [`Emulator::poll`].

use super::connections::Connections;
use super::frame::{Shape, damage, set_ecn};
use super::frames::Frames;
use super::lost::Lost;
use super::own::OwnDelays;
use super::spec::PathSpec;
use crate::session::EcnBits;
use paceline_packet::{Flags, FlowId, Packet, Stamp};
use paceline_path::{
    DropReason, Drops, Fate, Hosts, Keys, Limit, Link, LinkReport, ManagedLink, Measure, Queue, Series, Waits,
};
use paceline_random::Stream;
use paceline_sim::model::LinkDirection;
use paceline_units::{Size, Span, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// An end of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Where the program under test is.
    Near,
    /// Where its peer is.
    Far,
}

impl Side {
    /// Both.
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
    /// Where it comes out.
    pub side: Side,
    /// When it came in.
    pub entered: Time,
    /// When it was to come out.
    pub due: Time,
    /// The IP packet.
    pub frame: &'a [u8],
}

/// What happened to the frames that came in at one end.
/// entered + duplicated = delivered + dropped + in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames that came in.
    pub entered: u64,
    /// Their bytes.
    pub entered_bytes: u64,
    /// Copies that impairments made.
    pub duplicated: u64,
    /// Frames that came out at the other end.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Frames that links dropped. `Corrupt`: damaged ones without a payload whose checksum would show it.
    pub links: Drops,
    /// Frames that are no whole IP packet.
    pub malformed: u64,
    /// Frames for which the emulator had no memory left.
    pub memory: u64,
    /// Frames that the device at the other end did not take.
    pub device: u64,
    /// Frames on the path.
    pub in_flight: u64,
}

impl Counts {
    /// All that were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.links.total() + self.malformed + self.memory + self.device
    }

    /// All that were dropped, by reason: those of links, `malformed`, `memory`, `device`.
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

/// What a direction and its links have counted.
#[derive(Debug)]
pub struct WayResult {
    /// Where its frames come in.
    pub from: Side,
    /// What became of them.
    pub counts: Counts,
    /// Its links in order.
    pub links: Vec<LinkResult>,
}

/// What a link of a direction has measured.
#[derive(Debug)]
pub struct LinkResult {
    /// The link.
    pub model: LinkDirection,
    /// Its counts, and the queue over the whole time.
    pub report: LinkReport,
    /// How long packets waited in the queue.
    pub waits: Waits,
    /// The queue over time, if it was recorded.
    pub series: Series,
}

/// A link of the path.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "they lie in one vector, a few to a path")]
enum AnyLink {
    Plain(Link),
    /// Its packets leave when they leave: their frames' places travel as sequence numbers.
    Managed(Box<ManagedLink>),
}

/// One direction of the path.
#[derive(Debug)]
struct Way {
    models: Vec<LinkDirection>,
    links: Vec<AnyLink>,
    counts: Counts,
    damage: Stream,
    damaged: u64,
}

/// A frame on its way to a link, or with `link` beyond the last one to the other end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Event {
    time: u64,
    number: u64,
    way: u8,
    link: u16,
    size: u16,
    flags: u16,
    frame: u32,
    /// A hash of what makes it one of a flow.
    flow: u32,
    /// And one of either address.
    hosts: u32,
}

/// A path with what is on it. Calls must come in order of time; an earlier time than before is taken as that.
#[derive(Debug)]
pub struct Emulator {
    ways: [Way; 2],
    own: OwnDelays,
    /// Whose connections flows share.
    connections: Connections,
    lost: Lost,
    events: BinaryHeap<Reverse<Event>>,
    /// Events beyond the last link whose time has come, in order of time.
    out: VecDeque<Event>,
    frames: Frames,
    number: u64,
    latest: u64,
    /// The frame of the last release, until the next poll.
    released: Option<u32>,
    /// Whether that is damaged.
    spoilt: bool,
}

impl Emulator {
    /// The memory that frames on the path may take: more than 2 s at 1 Gbit/s.
    pub const MEMORY: Size = Size::from_bytes(256 << 20);

    /// A path at time zero. `record`: how often the queues are recorded. Frames on it take at most `memory`; a queue
    /// without a limit is one of that many bytes.
    #[must_use]
    pub fn new(spec: &PathSpec, record: Option<Span>, memory: Size) -> Emulator {
        let way = |models: &Vec<LinkDirection>, side: Side| Way {
            links: models.iter().map(|model| link(model, spec.seed, record, memory)).collect(),
            models: models.clone(),
            counts: Counts::default(),
            damage: Stream::new(spec.seed, &format!("damage {}", side.name())),
            damaged: 0,
        };
        Emulator {
            ways: [way(&spec.there, Side::Near), way(&spec.back, Side::Far)],
            own: spec.own.clone(),
            connections: spec.connections.clone(),
            lost: Lost::of(spec.ports.clone()),
            events: BinaryHeap::new(),
            out: VecDeque::new(),
            frames: Frames::new(memory),
            number: 0,
            latest: 0,
            released: None,
            spoilt: false,
        }
    }

    /// A frame comes in at `side`.
    pub fn arrive(&mut self, side: Side, now: Time, frame: &[u8]) {
        let now = self.advance(now);
        let way = &mut self.ways[side as usize];
        way.counts.entered += 1;
        way.counts.entered_bytes += frame.len() as u64;
        let Some(shape) = Shape::of(frame) else {
            way.counts.malformed += 1;
            return;
        };
        let Some(slot) = self.frames.keep(&frame[..usize::from(shape.size)], now) else {
            way.counts.memory += 1;
            self.lost.dropped(side, frame, Time(now));
            return;
        };
        way.counts.in_flight += 1;
        let before = self.own.before(side, frame);
        let event = Event {
            time: now + before.0,
            number: 0,
            way: side as u8,
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

    /// The next frame that comes out by `now`; in order of time.
    pub fn poll(&mut self, now: Time) -> Option<Release<'_>> {
        if let Some(slot) = self.released.take() {
            self.frames.release(slot);
        }
        self.advance(now);
        while let Some(event) = self.out.pop_front() {
            let way = &mut self.ways[usize::from(event.way)];
            way.counts.in_flight -= 1;
            let packet = self.frames.bytes(event.frame);
            let Some(shape) = Shape::of(packet) else { unreachable!("it was a packet when it came in") };
            let flags = Flags(event.flags);
            self.spoilt = flags.has(Flags::CORRUPT);
            if self.spoilt {
                way.damaged += 1;
                // its checksum is wrong, wherever it goes: nobody gets it
                self.lost.dropped(Side::BOTH[usize::from(event.way)], packet, Time(event.time));
                if !damage(packet, shape.header, way.damage.bits(way.damaged)) {
                    way.counts.links[DropReason::Corrupt] += 1;
                    self.frames.release(event.frame);
                    continue;
                }
            }
            let ecn = EcnBits::of_flags(flags);
            if ecn != EcnBits::of_flags(shape.flags) {
                set_ecn(packet, ecn);
            }
            way.counts.delivered += 1;
            way.counts.delivered_bytes += u64::from(event.size);
            self.released = Some(event.frame);
            return Some(Release {
                side: Side::BOTH[usize::from(event.way)].other(),
                entered: Time(self.frames.entered(event.frame)),
                due: Time(event.time),
                frame: self.frames.bytes(event.frame),
            });
        }
        None
    }

    /// The frame that [`Emulator::poll`] gave last, which came out at `side`, was not taken there.
    pub fn not_taken(&mut self, side: Side) {
        let Some(slot) = self.released.take() else { return };
        if !self.spoilt {
            self.lost.dropped(side.other(), self.frames.bytes(slot), Time(self.latest));
        }
        let counts = &mut self.ways[side.other() as usize].counts;
        counts.delivered -= 1;
        counts.delivered_bytes -= self.frames.bytes(slot).len() as u64;
        counts.device += 1;
        self.frames.release(slot);
    }

    /// When [`Emulator::poll`] has something to do next; [`Time::NEVER`] if nothing is on its way.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        if let Some(event) = self.out.front() {
            return Time(event.time);
        }
        let next = self.events.peek().map_or(Time::NEVER, |Reverse(event)| Time(event.time));
        self.departure().map_or(next, |(time, ..)| next.min(time))
    }

    /// What has happened to the frames that came in at `side`.
    #[must_use]
    pub fn counts(&self, side: Side) -> Counts {
        self.ways[side as usize].counts
    }

    /// What flows have lost so far, which is forgotten here.
    #[must_use]
    pub fn take_lost(&mut self) -> Lost {
        std::mem::take(&mut self.lost)
    }

    /// Closes the books at `end`: both directions, that from the near end first.
    ///
    /// # Panics
    /// If a frame vanished.
    #[must_use]
    pub fn finish(mut self, end: Time) -> [WayResult; 2] {
        let end = Time(self.advance(end));
        let mut sides = Side::BOTH.into_iter();
        self.ways.map(|way| {
            way.counts.check();
            let links = way.models.into_iter().zip(way.links).map(|(model, mut link)| {
                let (report, waits, series) = match &mut link {
                    AnyLink::Plain(link) => (link.finish(end), link.waits(), link.take_series()),
                    AnyLink::Managed(link) => (link.finish(end), link.waits(), link.take_series()),
                };
                LinkResult { model, report, waits, series }
            });
            let from = sides.next().unwrap_or(Side::Near);
            WayResult { from, counts: way.counts, links: links.collect() }
        })
    }

    /// The next departure from a link that decides at departure: when, on which way, and from which link.
    fn departure(&self) -> Option<(Time, usize, usize)> {
        let all = self.ways.iter().enumerate().flat_map(|(way, it)| {
            it.links.iter().enumerate().filter_map(move |(link, it)| match it {
                AnyLink::Plain(_) => None,
                AnyLink::Managed(managed) => Some((managed.next_wake(), way, link)),
            })
        });
        all.min().filter(|(time, ..)| *time < Time::NEVER)
    }

    /// Everything up to `now`, at links and beyond the last one. At one instant departures come first.
    fn advance(&mut self, now: Time) -> u64 {
        let now = now.0.max(self.latest);
        loop {
            let event = self.events.peek().map(|Reverse(event)| event.time).filter(|time| *time <= now);
            if let Some((time, way, link)) = self.departure()
                && time.0 <= event.unwrap_or(now)
            {
                self.depart(way, link, time);
                continue;
            }
            if event.is_none() {
                break;
            }
            let Some(Reverse(event)) = self.events.pop() else { break };
            if usize::from(event.link) < self.ways[usize::from(event.way)].links.len() {
                self.cross(event);
            } else {
                self.out.push_back(event);
            }
        }
        self.latest = now;
        now
    }

    /// A link lets go of what leaves at `time`.
    fn depart(&mut self, way: usize, link: usize, time: Time) {
        let mut settled = Vec::new();
        if let AnyLink::Managed(managed) = &mut self.ways[way].links[link] {
            managed.advance(Time(time.0 + 1), &mut |fate, packet, _| settled.push((fate, packet)));
        }
        for (fate, packet) in settled {
            self.settle(fate, packet, way, link, time);
        }
    }

    /// A frame reaches a link.
    fn cross(&mut self, event: Event) {
        let (way, link) = (usize::from(event.way), usize::from(event.link));
        let (mut packet, at) = (packet(event), Time(event.time));
        match &mut self.ways[way].links[link] {
            AnyLink::Plain(plain) => {
                let fate = plain.admit(&mut packet);
                self.settle(fate, packet, way, link, at);
            }
            AnyLink::Managed(managed) => {
                let mut settled = Vec::new();
                managed.arrive(packet, &mut |fate, packet, _| settled.push((fate, packet)));
                for (fate, packet) in settled {
                    self.settle(fate, packet, way, link, at);
                }
            }
        }
    }

    /// What a link says of a frame `at` that time.
    fn settle(&mut self, fate: Fate, packet: Packet, way: usize, link: usize, at: Time) {
        let onward = Event {
            time: packet.time.0,
            number: 0,
            way: way as u8,
            link: link as u16 + 1,
            size: packet.size,
            flags: packet.flags.0,
            frame: packet.seq,
            flow: packet.flow.0,
            hosts: packet.stamp.0,
        };
        let (side, way) = (Side::BOTH[way], &mut self.ways[way]);
        match fate {
            Fate::Pass => self.send(onward),
            Fate::Drop(reason) => {
                way.counts.links[reason] += 1;
                way.counts.in_flight -= 1;
                self.lost.dropped(side, self.frames.bytes(onward.frame), at);
                self.frames.release(onward.frame);
            }
            Fate::Twice(time) => {
                way.counts.duplicated += 1;
                match self.frames.copy(onward.frame) {
                    Some(frame) => {
                        way.counts.in_flight += 1;
                        let flags = packet.flags.with(Flags::DUPLICATE).0;
                        self.send(Event { time: time.0, flags, frame, ..onward });
                    }
                    None => {
                        way.counts.memory += 1;
                        self.lost.dropped(side, self.frames.bytes(onward.frame), at);
                    }
                }
                self.send(onward);
            }
            // In flight for ever.
            Fate::Held => drop(self.frames.hold(onward.frame)),
        }
    }

    /// A frame goes on to a link, or to the other end.
    fn send(&mut self, mut event: Event) {
        let way = usize::from(event.way);
        if usize::from(event.link) == self.ways[way].links.len() {
            event.time += self.own.after(Side::BOTH[way], self.frames.bytes(event.frame)).0;
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
        stamp: Stamp(event.hosts), // nothing on the path has a use for a time
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
        let mut link = ManagedLink::new(&model, Measure::ALL, Keys::Flow, stream);
        if let Some(every) = record {
            link.record(every);
        }
        return AnyLink::Managed(Box::new(link));
    }
    let mut link = Link::new(&model, Measure::ALL, stream);
    link.record_waits();
    if let Some(every) = record {
        link.record(every);
    }
    AnyLink::Plain(link)
}

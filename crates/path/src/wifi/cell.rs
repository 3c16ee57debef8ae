//! The cell: who sends when, and with what result.
//!
//! Time advances from event to event: a packet arrives, a transmission begins, an exchange ends. The result of an
//! exchange is decided when it begins, since all stations hear each other; its packets are forwarded at once, with
//! their arrival time. So the cell looks ahead by the shortest frame, and a loop through it needs no other delay.

use super::counters::{InterfaceReport, Samples};
use super::exchange::{Frames, Kind, Outcome};
use super::interface::{Interface, PendingFrame};
use super::model::{CellModel, StationModel};
use super::session::Session;
use crate::DropReason;
use crate::meter::Measure;
use crate::qdisc::Keys;
use paceline_engine::Routes;
use paceline_packet::Packet;
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// An 802.11 cell. Its ports are numbered from its first one: 2i is the direction from the access point to station i,
/// 2i + 1 that from the station to the access point. [`Routes::endpoint`] gives a packet's port.
#[derive(Clone, Debug)]
pub struct Cell {
    pub(super) model: CellModel,
    lowest: Rate,
    /// EIFS: how long a station waits after a damaged frame.
    eifs: Span,
    first_port: u32,
    /// The access point's interfaces, then the stations'.
    pub(super) interfaces: Vec<Interface>,
    /// The number of interfaces per device.
    pub(super) categories: usize,
    /// By port and category, if there is an 802.11n station.
    pub(super) sessions: Vec<Session>,
    /// Whether an exchange is on the air. `next` is its end, otherwise the next start of a transmission; `senders` are
    /// its senders.
    on_air: bool,
    next: Time,
    senders: Vec<Attempt>,
    /// From when the devices outside the current or last exchange count slots.
    others: Time,
    /// The other device of an exchange, and from when it counts slots.
    peer: Option<(usize, Time)>,
    /// Packets from one station to another, on their way to the access point's queue.
    relayed: VecDeque<Packet>,
    pub(super) outputs: VecDeque<Output>,
    /// Whether waits in the access point's queue are reported.
    watched: bool,
    /// The next instant at which the meters must act.
    boundary: u64,
}

/// An output of a cell.
#[derive(Clone, Copy, Debug)]
pub enum Output {
    /// The packet arrives at the other end of the air at its time, which is in the future.
    Forward(Packet),
    /// It has left the access point's queue for the transmitter after this wait; only if the cell is watched.
    Waited(Packet, Span),
    /// It is dropped here, at this time.
    Drop(Packet, DropReason, Time),
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    interface: usize,
    outcome: Outcome,
    /// When it starts to send; after the exchange, from when its sender counts slots.
    own: Time,
    airtime: Span,
}

/// The access point's device number; also its only interface if there are no categories.
pub(super) const ACCESS_POINT: usize = 0;

impl Cell {
    /// A cell of this model, measured in `measure`, with ports from `first_port` on. Its interfaces draw from
    /// `streams`, the access point's first. With categories, each device has one interface per category.
    #[must_use]
    pub fn new(model: &CellModel, first_port: u32, measure: Measure, streams: &[Stream]) -> Cell {
        let fastest = model.stations.iter().map(StationModel::data_rate).max().unwrap_or(Rate(1_000_000));
        let stations = model.stations.iter().map(|station| (&station.queue, station.data_rate()));
        let devices = std::iter::once((&model.queue, fastest)).chain(stations).enumerate();
        let transmitters = devices
            .flat_map(|(device, queue)| model.access(device).into_iter().map(move |access| (queue, device, access)));
        let interfaces: Vec<Interface> = transmitters
            .zip(streams)
            .map(|((queue, device, access), stream)| {
                Interface::new(queue, device, (access, model.phy.slot), measure, *stream)
            })
            .collect();
        let aggregates = model.stations.iter().any(|station| station.ht.is_some());
        let categories = model.categories();
        let ports = if aggregates { 2 * model.stations.len() } else { 0 };
        let boundary = interfaces.first().map_or(u64::MAX, |interface| interface.counters.meter.next());
        let lowest = model.lowest_rate();
        Cell {
            lowest,
            eifs: model.rules.after_collision(&model.phy, lowest),
            model: model.clone(),
            first_port,
            interfaces,
            categories,
            sessions: vec![Session::default(); ports * categories],
            on_air: false,
            next: Time::NEVER,
            senders: Vec::new(),
            others: Time::ZERO,
            peer: None,
            relayed: VecDeque::new(),
            outputs: VecDeque::new(),
            watched: false,
            boundary,
        }
    }

    /// Samples all interfaces every `every`, from time zero. Call it before the first packet.
    pub fn record(&mut self, every: Span) {
        self.interfaces.iter_mut().for_each(|interface| interface.counters.meter.record(every));
        self.boundary = 0;
    }

    /// Reports each packet that leaves the access point's queue for the transmitter. Call it before the first packet.
    pub fn watch(&mut self) {
        self.watched = true;
    }

    /// Sets what defines a flow for the queues of its interfaces. Call it before the first packet.
    pub fn set_flow_keys(&mut self, keys: &Keys) {
        self.interfaces.iter_mut().for_each(|interface| interface.queue.set_flow_keys(keys));
    }

    /// Whether a packet that the cell forwards or receives is on its way to a station.
    #[must_use]
    pub fn is_downward(&self, packet: &Packet, ways: &Routes) -> bool {
        (ways.endpoint(packet) - self.first_port).is_multiple_of(2)
    }

    /// The time of its next event.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.relayed.front().map_or(self.next, |packet| packet.time.min(self.next))
    }

    /// The next output of the last step; call it after each step until it returns `None`.
    pub fn take_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Packets in queues, pending at a transmitter and not yet arrived, at a receiver waiting for earlier ones, or
    /// being relayed.
    #[must_use]
    pub fn holding(&self) -> u64 {
        let arrived = |interface: &Interface| {
            let one = interface.pending.is_some_and(|pending| pending.delivered);
            u64::from(one) + interface.held.iter().filter(|mpdu| mpdu.arrived).count() as u64
        };
        let held: u64 = self.interfaces.iter().map(Interface::holding).sum();
        let early: u64 = self.sessions.iter().map(Session::waiting).sum();
        held + early + self.relayed.len() as u64 - self.interfaces.iter().map(arrived).sum::<u64>()
    }

    /// Takes back a packet that the cell has forwarded: one station has sent it to another.
    pub fn relay(&mut self, packet: Packet) {
        self.relayed.push_back(packet);
    }

    /// Runs the event that is due at [`Cell::next_wake`].
    pub fn step(&mut self, ways: &Routes) {
        let now = self.next_wake();
        self.cross(now);
        if self.next > now {
            if let Some(packet) = self.relayed.pop_front() {
                self.arrive(packet, ways);
            }
        } else if self.on_air {
            self.end(now, ways);
        } else {
            self.begin(now, ways);
        }
    }

    /// A packet reaches the queue of its interface at its time.
    pub fn arrive(&mut self, packet: Packet, ways: &Routes) {
        let now = packet.time;
        self.cross(now);
        let (number, _) = self.port(&packet, ways);
        let interface = &mut self.interfaces[number];
        let outputs = &mut self.outputs;
        interface.queue.arrive(packet, |packet, reason| outputs.push_back(Output::Drop(packet, reason, now)));
        if interface.pending.is_some() {
            interface.queue.update_max();
            return;
        }
        self.prepare_frame(number, now, ways);
        let (rules, phy) = (self.model.rules, &self.model.phy);
        let interface = &mut self.interfaces[number];
        if interface.pending.is_none() {
            return;
        }
        if self.on_air {
            interface.contend_later(rules);
            return;
        }
        if interface.is_reserved(phy, now) {
            interface.contend_later(rules);
        } else {
            interface.contend(rules, phy, now);
        }
        self.next = self.next.min(interface.expiry(phy));
    }

    /// The interface and the station of a packet.
    pub(super) fn port(&self, packet: &Packet, ways: &Routes) -> (usize, usize) {
        let port = (ways.endpoint(packet) - self.first_port) as usize;
        let device = if port.is_multiple_of(2) { ACCESS_POINT } else { 1 + port / 2 };
        let place = match &self.model.edca {
            Some(edca) => edca.of_flow.get(packet.flow.0 as usize).map_or(0, |place| usize::from(*place)),
            None => 0,
        };
        (device * self.categories + place, port / 2)
    }

    /// The transmitter takes the next packet from its queue.
    fn prepare_frame(&mut self, number: usize, now: Time, ways: &Routes) {
        if !self.sessions.is_empty() {
            self.take_next(number, now, ways);
            return;
        }
        let Some(packet) = self.dequeue(number, now) else { return };
        let (_, station) = self.port(&packet, ways);
        let octets = self.model.octets(&self.model.stations[station], packet.size.into());
        let frames = Frames::new(&self.model, station, octets);
        self.interfaces[number].pending = Some(PendingFrame::of_one(packet, frames));
    }

    /// Dequeues the next packet of an interface.
    pub(super) fn dequeue(&mut self, number: usize, now: Time) -> Option<Packet> {
        let (interface, outputs) = (&mut self.interfaces[number], &mut self.outputs);
        let next = interface.queue.next(now, |packet, reason| outputs.push_back(Output::Drop(packet, reason, now)));
        let (packet, wait) = next?;
        interface.counters.meter.waited(wait.0);
        if self.watched && self.interfaces[number].device == ACCESS_POINT {
            outputs.push_back(Output::Waited(packet, wait));
        }
        Some(packet)
    }

    /// Begins a transmission.
    fn begin(&mut self, now: Time, ways: &Routes) {
        let (rules, phy) = (self.model.rules, &self.model.phy);
        let noticed = now + rules.notice(phy);
        self.senders.clear();
        // the device of the last sender: a device's interfaces are adjacent, most urgent category first
        let mut ahead = None;
        for (number, interface) in self.interfaces.iter_mut().enumerate() {
            if interface.expiry(phy) < noticed {
                if self.categories > 1 && ahead == Some(interface.device) {
                    interface.give_way(rules);
                    continue;
                }
                let own = interface.expiry(phy);
                if self.categories > 1 {
                    ahead = Some(interface.device);
                }
                self.senders.push(Attempt { interface: number, outcome: Outcome::NoAck, own, airtime: Span::ZERO });
            } else {
                interface.freeze(rules, phy, now);
            }
        }
        self.on_air = true;
        if self.model.edca.is_some() {
            self.senders.iter().for_each(|sender| self.interfaces[sender.interface].begin_txop(sender.own));
        }
        if !self.sessions.is_empty() {
            for i in 0..self.senders.len() {
                self.fill(self.senders[i].interface, self.senders[i].own, now, ways);
            }
        }
        for sender in &self.senders {
            self.interfaces[sender.interface].count_attempt();
        }
        if self.senders.len() == 1 { self.send_alone() } else { self.collide() }
    }

    #[inline(always)]
    fn send_alone(&mut self) {
        let (model, sender) = (&self.model, &mut self.senders[0]);
        let interface = &mut self.interfaces[sender.interface];
        let Some(mut pending) = interface.pending else { return };
        let start = sender.own;
        let mut held = std::mem::take(&mut interface.held);
        let fails = |probability| interface.fails(probability);
        let exchange = pending.frames.exchange(model, start, self.eifs, &mut held, fails);
        interface.held = held;
        interface.counts.frame_errors += u64::from(exchange.outcome != Outcome::Acknowledged);
        *sender =
            Attempt { outcome: exchange.outcome, own: exchange.own, airtime: exchange.end.since(start), ..*sender };
        if let (Some(time), Some(packet), false) = (exchange.delivered, pending.packet, pending.delivered) {
            pending.delivered = true;
            self.outputs.push_back(Output::Forward(Packet { time, ..packet }));
        }
        interface.pending = Some(pending);
        let interface_device = interface.device;
        self.next = exchange.end;
        self.others = exchange.others;
        let number = sender.interface;
        let peer = if interface_device == ACCESS_POINT { 1 + pending.frames.station } else { ACCESS_POINT };
        self.peer = Some((peer, exchange.peer));
        if let (Some(time), None) = (exchange.delivered, pending.packet) {
            let damaged = self.deliver(number, &pending.frames, time);
            let answered = exchange.outcome == Outcome::Acknowledged;
            self.interfaces[number].counts.frame_errors += u64::from(damaged && answered);
        }
    }

    fn collide(&mut self) {
        let (model, rules, phy) = (&self.model, self.model.rules, &self.model.phy);
        let mut end = Time::ZERO;
        // The end of the last frame, and the end of the last one before it: the longest sender does not hear the others
        // end.
        let mut before = Time::ZERO;
        for sender in &mut self.senders {
            let interface = &mut self.interfaces[sender.interface];
            interface.counts.collisions += 1;
            let Some(pending) = &interface.pending else { continue };
            let sent = sender.own + pending.frames.until_answer(model) + phy.propagation;
            sender.airtime = sent.since(sender.own);
            sender.outcome = if pending.frames.has_rts() { Outcome::NoCts } else { Outcome::NoAck };
            (before, end) = (before.max(sent.min(end)), end.max(sent));
        }
        self.others = end + self.eifs;
        for sender in &mut self.senders {
            let Some(pending) = &self.interfaces[sender.interface].pending else { continue };
            let sent = sender.own + sender.airtime;
            let known = sent + pending.frames.timeout(model);
            sender.own = if sent > before {
                rules.own_space(phy, end, known)
            } else {
                rules.outlasted_space(phy, self.lowest, end, known)
            };
        }
        self.next = end;
        self.peer = None;
    }

    /// Ends the exchange: the medium falls idle.
    fn end(&mut self, now: Time, ways: &Routes) {
        let (rules, limits, phy) = (self.model.rules, self.model.limits, self.model.phy);
        for interface in &mut self.interfaces {
            interface.from = self.others + interface.beyond_difs;
        }
        if let Some((peer, from)) = self.peer {
            self.count_from(peer, from);
        }
        self.on_air = false;
        for sender in std::mem::take(&mut self.senders) {
            self.count_from(self.interfaces[sender.interface].device, sender.own);
            let interface = &mut self.interfaces[sender.interface];
            interface.counts.airtime += sender.airtime;
            interface.not_before = Time::ZERO;
            if interface.pending.is_some_and(|pending| pending.frames.kind != Kind::Packet) {
                self.settle_parts(sender.interface, sender.outcome, now);
            } else if let Some(packet) = interface.settle(sender.outcome, rules, limits) {
                self.outputs.push_back(Output::Drop(packet, DropReason::Retries, now));
            }
            if self.interfaces[sender.interface].pending.is_none() {
                self.prepare_frame(sender.interface, now, ways);
            }
            if let Some(end) = self.interfaces[sender.interface].txop_end()
                && sender.outcome == Outcome::Acknowledged
                && self.continue_txop(sender.interface, end, now, ways)
            {
                return;
            }
        }
        let expiries = self.interfaces.iter().map(|interface| interface.expiry(&phy));
        self.next = expiries.min().unwrap_or(Time::NEVER);
    }

    /// Sets from when the interfaces of a device count slots.
    #[inline]
    fn count_from(&mut self, device: usize, from: Time) {
        if self.categories == 1 {
            let interface = &mut self.interfaces[device];
            interface.from = from + interface.beyond_difs;
            return;
        }
        for interface in &mut self.interfaces[device * self.categories..][..self.categories] {
            interface.from = from + interface.beyond_difs;
        }
    }

    /// Continues a TXOP: a SIFS after the exchange that has ended, its holder sends the next frame if it fits. All
    /// others know the TXOP's duration. Each exchange is announced separately.
    // Out of line, so that the common path of exchanges stays compact.
    #[cold]
    #[inline(never)]
    fn continue_txop(&mut self, number: usize, end: Time, now: Time, ways: &Routes) -> bool {
        let start = now + self.model.phy.sifs;
        let Some(pending) = &self.interfaces[number].pending else { return false };
        if start + pending.frames.lasts(&self.model) > end {
            return false;
        }
        if !self.sessions.is_empty() {
            self.fill(number, start, now, ways);
        }
        self.interfaces[number].count_attempt();
        self.on_air = true;
        let outcome = Outcome::NoAck;
        self.senders.push(Attempt { interface: number, outcome, own: start, airtime: Span::ZERO });
        self.send_alone();
        true
    }

    /// Runs the meters up to `now`, before other events at `now`.
    fn cross(&mut self, now: Time) {
        while self.boundary <= now.0 {
            let time = self.boundary;
            self.interfaces.iter_mut().for_each(|interface| interface.cross(time));
            self.boundary = self.interfaces.first().map_or(u64::MAX, |interface| interface.counters.meter.next());
        }
    }

    /// Closes the measurement of all interfaces at `end`, the access point's first. A measured interval that is still
    /// open ends there.
    ///
    /// # Panics
    /// If a packet vanished at an interface.
    pub fn finish(&mut self, end: Time) -> Vec<InterfaceReport> {
        self.cross(end);
        self.interfaces.iter_mut().map(|interface| interface.finish(end.0)).collect()
    }

    /// The series requested with [`Cell::record`], by interface.
    pub fn take_samples(&mut self) -> Vec<Samples> {
        self.interfaces.iter_mut().map(Interface::take_samples).collect()
    }
}

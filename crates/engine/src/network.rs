//! The network as elements see it: compiled paths, folded links, and the inboxes of other elements.

use crate::drops::{DropReason, Drops, Fate};
use crate::inbox::Inbox;
use crate::routes::Routes;
use crate::wake_queue::WakeQueue;
use paceline_packet::{Extras, Flags, FlowId, Packet};
use paceline_units::Time;

/// A link that a packet passes through.
pub trait Hop {
    /// A packet reaches the link at `packet.time`; `extras` has its side record.
    fn pass(&mut self, packet: &mut Packet, extras: &Extras) -> Fate;
}

/// Counts of a whole run, for the identity: sent + duplicated = delivered + dropped + in flight.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Packets emitted by hosts.
    pub sent: u64,
    /// Copies made by impairments.
    pub duplicated: u64,
    /// Packets handled by their destination host.
    pub delivered: u64,
    /// Packets dropped, by reason.
    pub dropped: Drops,
}

/// Losses of one flow, within the measured interval.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct FlowDrops {
    /// Data packets dropped.
    pub data: u64,
    /// Acknowledgements dropped.
    pub acks: u64,
}

/// The network between the elements.
#[derive(Debug)]
pub struct Network<H> {
    /// The inbox of each element.
    pub(crate) inboxes: Vec<Inbox>,
    /// The wake-up time of each element.
    pub(crate) wake_queue: WakeQueue,
    hops: Vec<H>,
    routes: Routes,
    /// Side records of packets in flight.
    pub extras: Extras,
    totals: Totals,
    drops: Vec<FlowDrops>,
    /// Drops before this instant do not count for their flow.
    measured_from: Time,
    /// The end of the run. Folded links are evaluated ahead of the clock; their events from then on do not count.
    end: Time,
    beyond: Beyond,
    /// Packets that wait at a link that never sends again.
    held: u64,
}

/// Counts of folded links after the end of the run.
#[derive(Clone, Copy, Default, Debug)]
struct Beyond {
    dropped: u64,
    duplicated: u64,
}

impl<H: Hop> Network<H> {
    /// A network with these inboxes (one per element), folded links and paths, for `flows` flows.
    #[must_use]
    pub fn new(inboxes: Vec<Inbox>, hops: Vec<H>, routes: Routes, flows: usize) -> Network<H> {
        Network {
            wake_queue: WakeQueue::new(inboxes.len()),
            inboxes,
            hops,
            routes,
            extras: Extras::default(),
            totals: Totals::default(),
            drops: vec![FlowDrops::default(); flows],
            measured_from: Time::ZERO,
            end: Time::NEVER,
            beyond: Beyond::default(),
            held: 0,
        }
    }

    /// Excludes events at links before `from` from [`Network::drops`], and events from `end` on from all counts.
    pub fn measure(&mut self, from: Time, end: Time) {
        self.measured_from = from;
        self.end = end;
    }

    /// Emits a packet from a host: it passes the folded links on its path and lands in the next inbox. Returns its
    /// arrival behind the first folded link that takes time; the packet's own time if there is none before the next
    /// element, or if that link does not simply pass it.
    #[inline(always)]
    pub fn emit(&mut self, packet: Packet) -> Time {
        self.totals.sent += 1;
        // Its fields are still in registers; write each one directly to its destination.
        self.send(&packet, |(time, cursor, flags), to| to.push(Packet { time, cursor, flags, ..packet }))
    }

    /// Sends a packet on along its path; one whose cursor is [`Packet::NOWHERE`] is discarded.
    #[inline(always)]
    pub fn forward(&mut self, packet: &Packet) {
        self.pass_on(packet);
    }

    #[inline(always)]
    fn pass_on(&mut self, packet: &Packet) -> Time {
        // Copied as a whole and then changed: this takes less than half the time of a copy field by field.
        self.send(packet, |changed, to| {
            to.push(*packet);
            if let Some(packet) = to.last_mut() {
                (packet.time, packet.cursor, packet.flags) = changed;
            }
        })
    }

    /// `put` puts the packet into the inbox at the end of its path, with the fields that changed. Returns what
    /// [`Network::emit`] does.
    #[inline(always)]
    fn send(&mut self, packet: &Packet, put: impl FnOnce((Time, u32, Flags), &mut Vec<Packet>)) -> Time {
        let Some(&step) = self.routes.steps.get(packet.cursor as usize) else { return packet.time };
        // Changed fields are kept apart, so that the packet is written once. It must not go through memory in between:
        // a wide read just after narrow writes would stall the processor.
        let (mut time, cursor, mut flags) = (packet.time, packet.cursor + 1, packet.flags);
        if let Some(hop) = self.hops.get_mut(step.hop as usize) {
            let mut passing = Packet { time, cursor, flags, ..*packet };
            let fate = hop.pass(&mut passing, &self.extras);
            let at = time;
            (time, flags) = (passing.time, passing.flags);
            if !matches!(fate, Fate::Pass) {
                self.settle_folded(fate, Packet { time, cursor, flags, ..*packet }, at);
                return at;
            }
        }
        match self.inboxes.get_mut(step.element as usize) {
            Some(inbox) => {
                if let Some(wake) = inbox.push(time, |to| put((time, cursor, flags), to)) {
                    self.wake_queue.wake(step.element as usize, wake);
                }
                time
            }
            None => {
                let behind = self.send_on(Packet { time, cursor, flags, ..*packet });
                // a tap takes no time
                if time > packet.time { time } else { behind }
            }
        }
    }

    /// Another folded link follows. Not a loop in [`Network::send`]: paths with one folded link between two elements
    /// are the most common, and faster without one.
    #[inline(never)]
    fn send_on(&mut self, packet: Packet) -> Time {
        self.pass_on(&packet)
    }

    /// Applies a link's verdict on a packet that reached it at `at`; what remains of the packet goes on.
    #[cold]
    #[inline(never)]
    pub fn settle(&mut self, fate: Fate, packet: Packet, at: Time) {
        self.carry_out(fate, packet, at, Network::forward);
    }

    /// The same for a folded link: what remains still has the second half of its step ahead.
    #[cold]
    #[inline(never)]
    fn settle_folded(&mut self, fate: Fate, packet: Packet, at: Time) {
        self.carry_out(fate, packet, at, |network, packet| {
            let element = network.routes.steps[packet.cursor as usize - 1].element;
            match network.inboxes.get_mut(element as usize) {
                Some(inbox) => {
                    if let Some(wake) = inbox.push(packet.time, |to| to.push(*packet)) {
                        network.wake_queue.wake(element as usize, wake);
                    }
                }
                None => network.forward(packet),
            }
        });
    }

    fn carry_out(&mut self, fate: Fate, packet: Packet, at: Time, onward: impl Fn(&mut Network<H>, &Packet)) {
        match fate {
            Fate::Pass => onward(self, &packet),
            Fate::Drop(reason) => self.drop(packet, reason, at),
            Fate::Twice(time) => {
                *if at >= self.end { &mut self.beyond.duplicated } else { &mut self.totals.duplicated } += 1;
                let extra = self.extras.duplicate(packet.extra);
                onward(self, &Packet { time, extra, flags: packet.flags.with(Flags::DUPLICATE), ..packet });
                onward(self, &packet);
            }
            Fate::Held => {
                self.held += 1;
                self.extras.take(packet.extra);
            }
        }
    }

    /// Drops a packet at `at`.
    #[cold]
    pub fn drop(&mut self, packet: Packet, reason: DropReason, at: Time) {
        self.extras.take(packet.extra);
        if at >= self.end {
            self.beyond.dropped += 1;
            return;
        }
        self.totals.dropped[reason] += 1;
        if at >= self.measured_from {
            let FlowId(flow) = packet.flow;
            let drops = &mut self.drops[flow as usize];
            if packet.flags.has(Flags::ACK) { drops.acks += 1 } else { drops.data += 1 }
        }
    }

    /// A host handles this number of packets.
    #[inline(always)]
    pub fn delivered(&mut self, packets: u64) {
        self.totals.delivered += packets;
    }

    /// One of the packets counted as delivered was damaged, and the host has refused it.
    #[cold]
    #[inline(never)]
    pub fn refuse(&mut self, packet: &Packet) {
        self.totals.delivered -= 1;
        self.drop(*packet, DropReason::Corrupt, packet.time);
    }

    /// The compiled paths.
    #[inline(always)]
    #[must_use]
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Counts of the run so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The losses of flow number `flow` in the measured interval.
    #[must_use]
    pub fn drops(&self, flow: usize) -> FlowDrops {
        self.drops[flow]
    }

    /// Packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let waiting: u64 = self.inboxes.iter().map(|inbox| inbox.len() as u64).sum();
        waiting + self.held + self.beyond.dropped - self.beyond.duplicated
    }

    /// The folded links.
    pub fn hops_mut(&mut self) -> &mut [H] {
        &mut self.hops
    }
}

//! What an element sees of the network: compiled paths, folded links, and the inboxes of the others.

use crate::fate::{DropReason, Drops, Fate};
use crate::inbox::Inbox;
use paceline_packet::{Extras, Flags, FlowId, Packet};
use paceline_units::Time;

/// A link as the engine sees it: something that a packet passes.
pub trait Hop {
    /// A packet reaches the link at `packet.time`.
    fn pass(&mut self, packet: &mut Packet) -> Fate;
}

/// One step of a compiled path.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// A folded link (with [`Way::FOLDED`]) or an element.
    place: u32,
    /// For a link its id in the scenario; for the host at the end, the endpoint there.
    id: u32,
}

impl Way {
    const FOLDED: u32 = 1 << 31;

    /// Through a folded link.
    #[must_use]
    pub const fn folded(index: u32, id: u32) -> Way {
        Way { place: index | Way::FOLDED, id }
    }

    /// Into an element.
    #[must_use]
    pub const fn element(index: u32, id: u32) -> Way {
        Way { place: index, id }
    }
}

/// All compiled paths of a run, one behind the other. Each is an origin (so that what a host sends has a "delivering
/// link" too), its links, and the element at its end.
#[derive(Default, Debug)]
pub struct Ways {
    ways: Vec<Way>,
}

impl Ways {
    /// Adds a path; returns the cursor with which packets start on it. `origin` takes part in the order of packets
    /// that arrive at one instant, as the ids of links do.
    pub fn add(&mut self, origin: u32, path: &[Way]) -> u32 {
        self.ways.push(Way::element(0, origin));
        let start = self.ways.len() as u32;
        self.ways.extend_from_slice(path);
        start
    }

    /// The id of the link that brought this packet to where it is.
    #[inline]
    #[must_use]
    pub fn delivered_by(&self, packet: &Packet) -> u32 {
        self.ways[packet.cursor as usize - 2].id
    }

    /// The endpoint that this packet, now at its last host, is for.
    #[inline]
    #[must_use]
    pub fn endpoint(&self, packet: &Packet) -> u32 {
        self.ways[packet.cursor as usize - 1].id
    }
}

/// Counts of a whole run, for the identity: sent + duplicated = delivered + dropped + in flight.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Emitted by hosts.
    pub sent: u64,
    /// Copies that impairments made.
    pub duplicated: u64,
    /// Handled by the host they were for.
    pub delivered: u64,
    /// Dropped, by reason.
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

/// Where packets for an element go in.
#[derive(Debug)]
pub(crate) struct Door {
    /// When the element next has something to do.
    pub(crate) next: Time,
    pub(crate) inbox: Inbox,
}

/// The network between the elements.
#[derive(Debug)]
pub struct Network<H> {
    pub(crate) doors: Vec<Door>,
    hops: Vec<H>,
    ways: Ways,
    /// Side records of packets in flight.
    pub extras: Extras,
    totals: Totals,
    drops: Vec<FlowDrops>,
    /// Drops before this instant are not counted for their flow.
    measured_from: Time,
    /// When the run ends. Folded links are evaluated ahead of the clock; what they do from then on does not count.
    end: Time,
    beyond: Beyond,
    /// Packets that wait at a link that never sends again.
    held: u64,
}

/// What folded links have done to packets after the end of the run.
#[derive(Clone, Copy, Default, Debug)]
struct Beyond {
    dropped: u64,
    duplicated: u64,
}

impl<H: Hop> Network<H> {
    /// A network of these inboxes (one an element), folded links and paths, for `flows` flows.
    #[must_use]
    pub fn new(inboxes: Vec<Inbox>, hops: Vec<H>, ways: Ways, flows: usize) -> Network<H> {
        Network {
            doors: inboxes.into_iter().map(|inbox| Door { next: Time::NEVER, inbox }).collect(),
            hops,
            ways,
            extras: Extras::default(),
            totals: Totals::default(),
            drops: vec![FlowDrops::default(); flows],
            measured_from: Time::ZERO,
            end: Time::NEVER,
            beyond: Beyond::default(),
            held: 0,
        }
    }

    /// Leaves out what happens at links before `from` in what [`Network::drops`] tells, and what happens there from
    /// `end` on in all counts.
    pub fn measure(&mut self, from: Time, end: Time) {
        self.measured_from = from;
        self.end = end;
    }

    /// A host emits a packet: it passes the folded links ahead of it and lands in the inbox behind them.
    #[inline(always)]
    pub fn emit(&mut self, packet: Packet) {
        self.totals.sent += 1;
        self.forward(packet);
    }

    /// Sends a packet on along its path.
    #[inline(always)]
    pub fn forward(&mut self, packet: Packet) {
        // What changes on the way is kept apart, so that the packet is written once, as a whole, into the inbox. Read
        // back in large pieces just after it was written in small ones, it would stall the processor each time.
        let Packet { mut time, mut cursor, mut flags, flow, seq, stamp, extra, size } = packet;
        loop {
            let way = self.ways.ways[cursor as usize];
            cursor += 1;
            if way.place & Way::FOLDED == 0 {
                let packet = Packet { time, flow, seq, stamp, cursor, extra, size, flags };
                return self.deliver(way.place as usize, packet);
            }
            let mut passing = Packet { time, flow, seq, stamp, cursor, extra, size, flags };
            let fate = self.hops[(way.place & !Way::FOLDED) as usize].pass(&mut passing);
            let at = time;
            (time, flags) = (passing.time, passing.flags);
            if fate != Fate::Pass {
                let packet = Packet { time, flow, seq, stamp, cursor, extra, size, flags };
                return self.settle(fate, packet, at);
            }
        }
    }

    /// Carries out a link's verdict on a packet that reached it `at` that time; what is left of it goes on.
    #[cold]
    #[inline(never)]
    pub fn settle(&mut self, fate: Fate, packet: Packet, at: Time) {
        match fate {
            Fate::Pass => self.forward(packet),
            Fate::Drop(reason) => self.drop(packet, reason, at),
            Fate::Twice(time) => {
                self.duplicate(packet, time, at);
                self.forward(packet);
            }
            Fate::Held => {
                self.held += 1;
                self.extras.take(packet.extra);
            }
        }
    }

    /// A packet ends `at` that time, undelivered.
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

    #[cold]
    fn duplicate(&mut self, packet: Packet, time: Time, at: Time) {
        *if at >= self.end { &mut self.beyond.duplicated } else { &mut self.totals.duplicated } += 1;
        let extra = self.extras.duplicate(packet.extra);
        self.forward(Packet { time, extra, flags: packet.flags.with(Flags::DUPLICATE), ..packet });
    }

    #[inline(always)]
    fn deliver(&mut self, element: usize, packet: Packet) {
        let door = &mut self.doors[element];
        door.next = door.next.min(packet.time);
        door.inbox.push(packet);
    }

    /// A host has handled a packet.
    #[inline(always)]
    pub fn delivered(&mut self) {
        self.totals.delivered += 1;
    }

    /// The compiled paths.
    #[inline(always)]
    #[must_use]
    pub fn ways(&self) -> &Ways {
        &self.ways
    }

    /// Counts of the run so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What flow number `flow` has lost in the measured interval.
    #[must_use]
    pub fn drops(&self, flow: usize) -> FlowDrops {
        self.drops[flow]
    }

    /// Packets on their way.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let waiting: u64 = self.doors.iter().map(|door| door.inbox.len() as u64).sum();
        waiting + self.held + self.beyond.dropped - self.beyond.duplicated
    }

    /// The folded links.
    pub fn hops_mut(&mut self) -> &mut [H] {
        &mut self.hops
    }
}

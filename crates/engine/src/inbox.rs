//! Inboxes: what has been sent to an element and not yet been handled.
//!
//! An element that one source feeds in order gets its packets as they are pushed ([`Inbox::InOrder`]). Fan-in needs
//! sorting ([`Fanin`]): by time, then by the scenario's id of the delivering link, then in order of emission.

use crate::network::Ways;
use paceline_packet::Packet;
use paceline_units::Time;

/// The packets on their way to one element; they may lie beyond the present window.
#[derive(Debug)]
pub enum Inbox {
    /// One source whose emissions never go back in time.
    InOrder(Queue),
    /// Several sources, or one that reorders.
    Fanin(Box<Fanin>),
}

impl Inbox {
    /// For one source in order.
    #[must_use]
    pub const fn in_order() -> Inbox {
        Inbox::InOrder(Queue { packets: Vec::new(), head: 0 })
    }

    /// For several sources; `window` is the expected length of a window and only matters for speed.
    #[must_use]
    pub fn fan_in(window: Time) -> Inbox {
        Inbox::Fanin(Box::new(Fanin::new(63 - window.0.max(2).leading_zeros())))
    }

    /// Adds a packet. In the in-order form, times must not go back.
    #[inline(always)]
    pub fn push(&mut self, packet: Packet) {
        match self {
            Inbox::InOrder(queue) => {
                debug_assert!(
                    queue.packets.last().is_none_or(|last| last.time <= packet.time),
                    "a source went back in time"
                );
                queue.packets.push(packet);
            }
            Inbox::Fanin(fanin) => fanin.push(packet),
        }
    }

    /// Takes everything before `until`, in order.
    #[inline(always)]
    pub fn take(&mut self, until: Time, ways: &Ways) -> &[Packet] {
        match self {
            Inbox::InOrder(queue) => queue.take(until),
            Inbox::Fanin(fanin) => {
                fanin.open(until, ways);
                &fanin.open
            }
        }
    }

    /// After [`Inbox::take`]: frees what was taken, and tells when the next packet comes (a lower bound).
    #[inline(always)]
    pub fn settle(&mut self) -> Time {
        match self {
            Inbox::InOrder(queue) => queue.settle(),
            Inbox::Fanin(fanin) => fanin.first(),
        }
    }

    /// How many packets wait here, not counting what was taken.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Inbox::InOrder(queue) => queue.packets.len() - queue.head,
            Inbox::Fanin(fanin) => fanin.in_slots + fanin.far.len(),
        }
    }

    /// Whether nothing waits here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Empties the inbox into `to`, in no particular order across sources but in order of emission within one.
    pub fn drain_into(&mut self, to: &mut Vec<Packet>) {
        match self {
            Inbox::InOrder(queue) => {
                to.extend_from_slice(&queue.packets[queue.head..]);
                queue.packets.clear();
                queue.head = 0;
            }
            Inbox::Fanin(fanin) => {
                for slot in &mut fanin.slots {
                    to.append(slot);
                }
                to.append(&mut fanin.far);
                fanin.far_first = Time::NEVER;
                fanin.in_slots = 0;
            }
        }
    }
}

/// A vector with a head: packets in the order of their times.
#[derive(Debug)]
pub struct Queue {
    packets: Vec<Packet>,
    head: usize,
}

impl Queue {
    #[inline(always)]
    fn take(&mut self, until: Time) -> &[Packet] {
        let from = self.head;
        let mut to = from;
        while to < self.packets.len() && self.packets[to].time < until {
            to += 1;
        }
        self.head = to;
        &self.packets[from..to]
    }

    #[inline(always)]
    fn settle(&mut self) -> Time {
        if self.head == self.packets.len() {
            self.packets.clear();
            self.head = 0;
            return Time::NEVER;
        }
        if self.head > 64 && self.head * 2 > self.packets.len() {
            self.packets.drain(..self.head);
            self.head = 0;
        }
        self.packets[self.head].time
    }
}

const SLOTS: u64 = 32;

/// Unsorted time slots of about a window each, sorted when opened, and a list for what lies beyond them.
#[derive(Debug)]
pub struct Fanin {
    slots: [Vec<Packet>; SLOTS as usize],
    /// Number of the first slot that may hold packets.
    current: u64,
    /// A slot is 2^shift nanoseconds.
    shift: u32,
    in_slots: usize,
    far: Vec<Packet>,
    far_first: Time,
    open: Vec<Packet>,
    scratch: Vec<Packet>,
    counts: Box<[u32; 2049]>,
}

impl Fanin {
    fn new(shift: u32) -> Fanin {
        Fanin {
            slots: [const { Vec::new() }; SLOTS as usize],
            current: 0,
            shift,
            in_slots: 0,
            far: Vec::new(),
            far_first: Time::NEVER,
            open: Vec::new(),
            scratch: Vec::new(),
            counts: Box::new([0; 2049]),
        }
    }

    #[inline(always)]
    fn push(&mut self, packet: Packet) {
        let slot = packet.time.0 >> self.shift;
        debug_assert!(slot >= self.current, "a packet for a window that is over");
        if slot - self.current < SLOTS {
            self.slots[(slot % SLOTS) as usize].push(packet);
            self.in_slots += 1;
        } else {
            // Not in a function of its own: that would take the packet's address, and keep it in memory for all.
            self.far_first = self.far_first.min(packet.time);
            self.far.push(packet);
        }
    }

    fn open(&mut self, until: Time, ways: &Ways) {
        self.open.clear();
        if until.0 == 0 {
            return;
        }
        let last = (until.0 - 1) >> self.shift;
        for number in self.current..=last.min(self.current + SLOTS - 1) {
            let slot = &mut self.slots[(number % SLOTS) as usize];
            if slot.is_empty() {
                continue;
            }
            let before = slot.len();
            if (number + 1) << self.shift <= until.0 {
                if self.open.is_empty() {
                    std::mem::swap(&mut self.open, slot);
                } else {
                    self.open.extend_from_slice(slot);
                    slot.clear();
                }
            } else {
                let open = &mut self.open;
                slot.retain(|packet| {
                    let now = packet.time < until;
                    if now {
                        open.push(*packet);
                    }
                    !now
                });
            }
            self.in_slots -= before - slot.len();
        }
        let from = self.current << self.shift;
        self.current = self.current.max(until.0 >> self.shift);
        if self.far_first != Time::NEVER
            && (self.far_first < until || (self.far_first.0 >> self.shift) - self.current < SLOTS)
        {
            self.far_first = Time::NEVER;
            for packet in std::mem::take(&mut self.far) {
                if packet.time < until { self.open.push(packet) } else { self.push(packet) }
            }
        }
        self.sort(from, until.0, ways);
    }

    /// Sorts what is open by (time, delivering link), stably: one counting pass over the leading bits of the time, then
    /// insertion. All times lie in [from, to).
    fn sort(&mut self, from: u64, to: u64, ways: &Ways) {
        let n = self.open.len();
        if n > 24 {
            let bits = (usize::BITS - n.leading_zeros()).min(11);
            let shift = (64 - (to - 1 - from).leading_zeros()).saturating_sub(bits);
            let bucket = |packet: &Packet| ((packet.time.0 - from) >> shift) as usize & ((1 << bits) - 1);
            let counts = &mut self.counts[..(1 << bits) + 1];
            counts.fill(0);
            for packet in &self.open {
                counts[bucket(packet)] += 1;
            }
            let mut place = 0;
            for count in counts.iter_mut() {
                place += std::mem::replace(count, place);
            }
            if self.scratch.len() < n {
                self.scratch.resize(n, self.open[0]);
            }
            let scratch = &mut self.scratch[..n];
            for packet in &self.open {
                let place = &mut counts[bucket(packet)];
                scratch[*place as usize] = *packet;
                *place += 1;
            }
            self.scratch.truncate(n);
            std::mem::swap(&mut self.open, &mut self.scratch);
        }
        insertion_sort(&mut self.open, ways);
    }

    /// When the first packet comes, or earlier.
    fn first(&self) -> Time {
        if self.in_slots == 0 {
            return self.far_first;
        }
        for number in self.current..self.current + SLOTS {
            let slot = &self.slots[(number % SLOTS) as usize];
            if let Some(first) = slot.iter().map(|packet| packet.time).min() {
                return first.min(self.far_first);
            }
        }
        unreachable!("in_slots counts what the slots hold")
    }
}

/// Stable, and cheap where little is out of place.
fn insertion_sort(packets: &mut [Packet], ways: &Ways) {
    let after =
        |a: &Packet, b: &Packet| a.time > b.time || (a.time == b.time && ways.delivered_by(a) > ways.delivered_by(b));
    for i in 1..packets.len() {
        if !after(&packets[i - 1], &packets[i]) {
            continue;
        }
        let packet = packets[i];
        let mut j = i;
        while j > 0 && after(&packets[j - 1], &packet) {
            packets[j] = packets[j - 1];
            j -= 1;
        }
        packets[j] = packet;
    }
}

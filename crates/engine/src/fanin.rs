//! Fan-in: sorts packets of an inbox with several sources, or with one that reorders.
//!
//! Sources run one after the other; each pushes its packets in order, for this window and for later ones. The inbox
//! itself holds the packets before the horizon, which is where the next window is expected to end. Later ones wait in
//! time slots of about a window, still later ones in blocks of slots, then in blocks of blocks, and so on. A packet
//! moves once per level, and each level reaches 32 times as far: a million windows ahead are five levels.
//!
//! While few packets wait this does not pay: all are in one vector, which is scanned for those that are due.

use crate::routes::Routes;
use crate::wheel::{BLOCK, BLOCK_BITS, Level, SLOTS, end_from};
use paceline_packet::Packet;
use paceline_units::Time;

/// The maximum number of buckets for sorting a batch.
const BUCKETS: usize = 4096;

/// A batch of up to this size is sorted by insertion alone; as many packets may be in the single vector.
const MAX_SMALL_BATCH: usize = 24;

/// After a window that took and left no more than this together, all packets go into the single vector.
const MAX_QUIET_PACKETS: usize = 4;

/// An inbox's extension for several sources: the packets beyond the horizon, and the sorting.
#[derive(Debug)]
pub(crate) struct Fanin {
    /// Everything before this instant has been taken.
    until: Time,
    /// The expected length of a window.
    window: u64,
    /// Whether all packets are in `ahead`, with no slot in use; and the horizon when that began.
    few: bool,
    slots_from: Time,
    /// The batch taken last, in order, and its length; the rest of the vector is unused.
    sorted: Vec<Packet>,
    taken: usize,
    /// Buffer for packets left over by a window that was cut short.
    later: Vec<Packet>,
    /// Slots of 2^shift nanoseconds, about a window; packets are unordered, except those of the same source.
    slots: [Vec<Packet>; SLOTS as usize],
    /// The number of the first slot that may hold packets, and of the first beyond all slots, a whole number of blocks.
    current: u64,
    end: u64,
    shift: u32,
    /// Which slots hold packets: bit `number % 64`.
    slots_held: u64,
    /// Packets beyond the slots that are not in blocks yet, and their earliest time.
    ahead: Vec<Packet>,
    ahead_first: Time,
    /// Packets of the slots from `end` on, by block of slots.
    blocks: Level,
    /// Packets beyond `blocks`, by block of blocks, and so on: as many levels as were needed.
    beyond: Vec<Level>,
    counts: Box<[u32; BUCKETS]>,
}

impl Fanin {
    /// A fan-in before its first window; `window` is the expected length of a window.
    pub(crate) fn new(window: Time) -> Fanin {
        let shift = 63 - window.0.max(2).leading_zeros();
        Fanin {
            until: Time::ZERO,
            window: window.0,
            few: true,
            slots_from: window,
            sorted: Vec::new(),
            taken: 0,
            later: Vec::new(),
            slots: [const { Vec::new() }; SLOTS as usize],
            current: window.0 >> shift,
            end: 0,
            shift,
            slots_held: 0,
            ahead: Vec::new(),
            ahead_first: Time::NEVER,
            blocks: Level::over(shift, SLOTS),
            beyond: Vec::new(),
            counts: Box::new([0; BUCKETS]),
        }
    }

    /// Everything before this instant has been taken.
    #[inline]
    pub(crate) fn taken_until(&self) -> Time {
        self.until
    }

    /// The batch taken last, in order of (time, delivering link, emission).
    #[inline]
    pub(crate) fn taken_packets(&mut self) -> &mut [Packet] {
        &mut self.sorted[..self.taken]
    }

    /// Adds a packet of this time, which is at the horizon or later.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: Time, put: impl FnOnce(&mut Vec<Packet>)) {
        let slot = time.0 >> self.shift;
        debug_assert!(self.few || slot >= self.current, "a packet for a window that is over");
        // Inline: a function call would take the packet's address, and so force it into memory on all paths.
        if slot < self.end {
            self.slots_held |= 1 << (slot % SLOTS);
            put(&mut self.slots[(slot % SLOTS) as usize]);
        } else {
            self.ahead_first = self.ahead_first.min(time);
            put(&mut self.ahead);
        }
    }

    /// Moves packets from `ahead` into blocks.
    fn place_ahead(&mut self) {
        let mut ahead = std::mem::take(&mut self.ahead);
        for packet in ahead.drain(..) {
            self.place_later(packet.time).push(packet);
        }
        (self.ahead, self.ahead_first) = (ahead, Time::NEVER);
    }

    /// The block for a packet of this time, which lies beyond the slots.
    fn place_later(&mut self, time: Time) -> &mut Vec<Packet> {
        if time.0 >> self.shift >> BLOCK_BITS < self.blocks.end {
            return self.blocks.place(time.0 >> self.shift >> BLOCK_BITS, time);
        }
        let covers = |blocks: &Level| time.0 >> blocks.shift < blocks.end;
        while !self.beyond.last().is_some_and(covers) {
            let below = self.beyond.last().unwrap_or(&self.blocks);
            self.beyond.push(Level::over(below.shift, below.end));
        }
        let at = self.beyond.partition_point(|blocks| !covers(blocks));
        let blocks = &mut self.beyond[at];
        blocks.place(time.0 >> blocks.shift, time)
    }

    /// The number of packets here.
    pub(crate) fn len(&self) -> usize {
        let blocks = std::iter::once(&self.blocks).chain(&self.beyond).flat_map(|blocks| &blocks.packets);
        self.slots.iter().chain(blocks).map(Vec::len).sum::<usize>() + self.ahead.len()
    }

    /// Takes everything before `until`. `due` holds the packets before `horizon`; afterwards, those before the next
    /// horizon, which is returned.
    #[inline]
    pub(crate) fn take(&mut self, until: Time, horizon: Time, due: &mut Vec<Packet>, routes: &Routes) -> Time {
        if self.few && self.ahead.len() <= MAX_SMALL_BATCH {
            self.take_of_few(until, routes);
            return horizon;
        }
        self.take_of_many(until, horizon, due, routes)
    }

    fn take_of_few(&mut self, until: Time, routes: &Routes) {
        self.sorted.clear();
        self.ahead_first = Time::NEVER;
        let mut kept = 0;
        for at in 0..self.ahead.len() {
            let packet = self.ahead[at];
            if packet.time < until {
                self.sorted.push(packet);
            } else {
                self.ahead_first = self.ahead_first.min(packet.time);
                self.ahead[kept] = packet;
                kept += 1;
            }
        }
        self.ahead.truncate(kept);
        (self.taken, self.until) = (self.sorted.len(), until);
        insertion_sort(&mut self.sorted, routes);
    }

    #[inline(never)]
    fn take_of_many(&mut self, until: Time, horizon: Time, due: &mut Vec<Packet>, routes: &Routes) -> Time {
        let horizon =
            if self.few { self.spread(until.max(self.slots_from), due) } else { self.collect(horizon, until, due) };
        if until < horizon {
            due.retain(|packet| {
                if packet.time >= until {
                    self.later.push(*packet);
                }
                packet.time < until
            });
        }
        self.sort(due, until, routes);
        self.until = until;
        due.clear();
        due.append(&mut self.later);
        let horizon = self.collect(horizon, Time(until.0.saturating_add(self.window)), due);
        if self.taken + due.len() <= MAX_QUIET_PACKETS && self.is_bare() {
            (self.few, self.slots_from, self.end) = (true, horizon, 0);
            self.ahead_first = due.iter().map(|packet| packet.time).min().unwrap_or(Time::NEVER);
            self.ahead.append(due);
            return Time::ZERO;
        }
        horizon
    }

    /// Switches to slots: moves packets before `horizon` to `due`, and returns it.
    fn spread(&mut self, horizon: Time, due: &mut Vec<Packet>) -> Time {
        self.few = false;
        self.current = horizon.0 >> self.shift;
        self.advance(horizon, due);
        let mut packets = std::mem::take(&mut self.ahead);
        self.ahead_first = Time::NEVER;
        for packet in packets.drain(..) {
            if packet.time < horizon { due.push(packet) } else { self.push(packet.time, |to| to.push(packet)) }
        }
        horizon
    }

    /// Whether nothing lies beyond the horizon.
    fn is_bare(&self) -> bool {
        self.slots_held == 0
            && self.blocks.occupied == 0
            && self.ahead.is_empty()
            && self.beyond.iter().all(|blocks| blocks.occupied == 0)
    }

    #[cfg(test)]
    pub(crate) fn keeps_few(&self) -> bool {
        self.few
    }

    /// Moves packets before `to` to `due`, if that is beyond the horizon; returns the new horizon.
    fn collect(&mut self, horizon: Time, to: Time, due: &mut Vec<Packet>) -> Time {
        if to <= horizon {
            return horizon;
        }
        if !self.ahead.is_empty() {
            self.place_ahead();
        }
        if self.slots_held != 0 {
            let many = (((to.0 - 1) >> self.shift) - self.current).min(SLOTS - 1);
            let mut held =
                self.slots_held.rotate_right((self.current % SLOTS) as u32) & (u64::MAX >> (SLOTS - 1 - many));
            while held != 0 {
                let number = self.current + u64::from(held.trailing_zeros());
                held &= held - 1;
                let slot = &mut self.slots[(number % SLOTS) as usize];
                if (number + 1) << self.shift <= to.0 {
                    due.append(slot);
                } else {
                    slot.retain(|packet| {
                        let now = packet.time < to;
                        if now {
                            due.push(*packet);
                        }
                        !now
                    });
                }
                if slot.is_empty() {
                    self.slots_held &= !(1 << (number % SLOTS));
                }
            }
        }
        self.current = to.0 >> self.shift;
        if self.current + BLOCK >= self.end {
            self.advance(to, due);
        }
        to
    }

    /// Fills the slots from the blocks that begin, those blocks from the level above, and so on. Packets of a slot are
    /// in one vector, so those of a source stay in order.
    fn advance(&mut self, to: Time, due: &mut Vec<Packet>) {
        self.end = end_from(self.current);
        let mut first = self.end >> BLOCK_BITS;
        for height in 0..=self.beyond.len() {
            let blocks = self.height(height);
            // Packets moved from here lie before `first`, so they go to lower levels, whose ends have advanced.
            let from = std::mem::replace(&mut blocks.first, first);
            if first + BLOCK < blocks.end {
                self.empty(height, from, to, due);
                break;
            }
            blocks.end = end_from(first);
            first = blocks.end >> BLOCK_BITS;
            self.empty(height, from, to, due);
        }
    }

    /// The level at this height: 0 is the blocks of slots.
    fn height(&mut self, height: usize) -> &mut Level {
        if height == 0 { &mut self.blocks } else { &mut self.beyond[height - 1] }
    }

    /// Moves packets from blocks that have begun, from number `from` on, to lower levels.
    fn empty(&mut self, height: usize, from: u64, to: Time, due: &mut Vec<Packet>) {
        let blocks = self.height(height);
        let many = (blocks.first - from).min(SLOTS);
        if many == 0 {
            return;
        }
        let in_range = (u64::MAX >> (SLOTS - many)).rotate_left((from % SLOTS) as u32);
        let mut begun = blocks.occupied & in_range;
        blocks.occupied &= !in_range;
        while begun != 0 {
            let at = begun.trailing_zeros() as usize;
            begun &= begun - 1;
            let mut packets = std::mem::take(&mut self.height(height).packets[at]);
            for packet in packets.drain(..) {
                if packet.time < to {
                    due.push(packet);
                } else if packet.time.0 >> self.shift < self.end {
                    self.push(packet.time, |to| to.push(packet));
                } else {
                    self.place_later(packet.time).push(packet);
                }
            }
            // Keeps the vector's capacity.
            self.height(height).packets[at] = packets;
        }
    }

    /// Copies `due`, all before `to`, in order of (time, delivering link, emission): one counting pass over the leading
    /// bits of the time, then insertion sort.
    fn sort(&mut self, due: &[Packet], to: Time, routes: &Routes) {
        let n = due.len();
        self.taken = n;
        if n <= MAX_SMALL_BATCH {
            self.sorted.clear();
            self.sorted.extend_from_slice(due);
            return insertion_sort(&mut self.sorted, routes);
        }
        let mut from = self.until;
        if to.since(from).0 > self.window.saturating_mul(2) {
            // No packets came for a while; buckets over the whole time would be too wide.
            from = due.iter().map(|packet| packet.time).min().unwrap_or(from);
        }
        let bits = (usize::BITS - n.leading_zeros()).min(BUCKETS.ilog2());
        let shift = (64 - (to.0 - 1 - from.0).leading_zeros()).saturating_sub(bits);
        let bucket = |packet: &Packet| ((packet.time.0 - from.0) >> shift) as usize % BUCKETS;
        self.counts[..1 << bits].fill(0);
        for packet in due {
            self.counts[bucket(packet)] += 1;
        }
        let mut place = 0;
        for count in &mut self.counts[..1 << bits] {
            place += std::mem::replace(count, place);
        }
        if self.sorted.len() < n {
            self.sorted.resize(n, due[0]);
        }
        let sorted = &mut self.sorted[..n];
        for packet in due {
            let place = &mut self.counts[bucket(packet)];
            sorted[*place as usize] = *packet;
            *place += 1;
        }
        insertion_sort(sorted, routes);
    }

    /// The time of the first packet here.
    pub(crate) fn first(&self) -> Time {
        if self.few {
            return self.ahead_first;
        }
        if self.slots_held != 0 {
            let from = self.current % SLOTS;
            let ahead = u64::from(self.slots_held.rotate_right(from as u32).trailing_zeros());
            let slot = &self.slots[((from + ahead) % SLOTS) as usize];
            return slot.iter().map(|packet| packet.time).min().unwrap_or(Time::NEVER);
        }
        let min = |blocks: &Level| blocks.first_occupied().map(|number| blocks.earliest[(number % SLOTS) as usize]);
        let first = min(&self.blocks).or_else(|| self.beyond.iter().find_map(min));
        first.unwrap_or(Time::NEVER).min(self.ahead_first)
    }

    /// Moves all packets to `to`, in order of emission within a source.
    pub(crate) fn drain_into(&mut self, to: &mut Vec<Packet>) {
        for number in self.current..self.end {
            to.append(&mut self.slots[(number % SLOTS) as usize]);
        }
        self.slots_held = 0;
        for blocks in std::iter::once(&mut self.blocks).chain(&mut self.beyond) {
            while let Some(number) = blocks.first_occupied() {
                to.append(&mut blocks.packets[(number % SLOTS) as usize]);
                blocks.occupied &= !(1 << (number % SLOTS));
            }
        }
        to.append(&mut self.ahead);
        self.ahead_first = Time::NEVER;
    }
}

/// Stable, and fast if few packets are out of order.
fn insertion_sort(packets: &mut [Packet], routes: &Routes) {
    let Some(first) = packets.first() else { return };
    let mut before = first.time;
    for i in 1..packets.len() {
        let time = packets[i].time;
        if time > before {
            before = time;
        } else {
            insert(&mut packets[..=i], routes);
        }
    }
}

/// Moves the last of `packets` to its position among the others, which are in order.
fn insert(packets: &mut [Packet], routes: &Routes) {
    let after = |a: &Packet, b: &Packet| {
        a.time > b.time || (a.time == b.time && routes.delivered_by(a) > routes.delivered_by(b))
    };
    let Some(&packet) = packets.last() else { return };
    let mut j = packets.len() - 1;
    while j > 0 && after(&packets[j - 1], &packet) {
        packets[j] = packets[j - 1];
        j -= 1;
    }
    packets[j] = packet;
}

#[cfg(test)]
mod tests {
    use crate::{Inbox, RouteStep, Routes};
    use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
    use paceline_random::{Sequence, Stream};
    use paceline_units::Time;

    /// For any windows, gaps and delays: packets are taken in order of (time, link, emission), each in the first window
    /// that ends after it.
    #[test]
    fn takes_what_is_due_in_order() {
        let (mut few, mut many) = (0, 0);
        let mut routes = Routes::default();
        let cursors: Vec<u32> = (0..7).map(|i| routes.add(7 - i, &[RouteStep::element(0, i)]) + 1).collect();
        for seed in 0..300 {
            let mut draws = Sequence::new(Stream::new(seed, "fan-in"));
            let mut below = |n: u64| (draws.unit() * n as f64) as u64;
            let window = [1, 10, 1000, 1 << 20][below(4) as usize];
            let (spread, max) = ([1, 3, 40, 5000][below(4) as usize], [5, 40, 200][below(3) as usize]);
            let mut burst = 1 + below(max);
            let mut inbox = Inbox::fan_in(Time(window));
            let (mut waiting, mut number, mut now) = (Vec::new(), 0, 0);
            for round in 0..60 {
                if round == 30 {
                    burst = 1 + below(max);
                }
                for _ in 0..below(burst) {
                    let time = now + below(window * spread);
                    let packet = Packet {
                        time: Time(time),
                        cursor: cursors[below(7) as usize],
                        size: 0,
                        flags: Flags::NONE,
                        flow: FlowId(0),
                        seq: number,
                        stamp: Stamp(0),
                        extra: ExtraId::NONE,
                    };
                    number += 1;
                    let wake = inbox.push(packet.time, |to| to.push(packet));
                    assert!(wake.is_none_or(|wake| wake <= packet.time));
                    waiting.push((time, routes.delivered_by(&packet), packet.seq));
                }
                // Mostly whole windows; some are cut short, and some steps of the clock are long.
                now += [window, window, window, 1 + below(window), window * (1 + below(50))][below(5) as usize];
                waiting.sort_unstable();
                let due = waiting.partition_point(|&(time, ..)| time < now);
                let taken = inbox.take(Time(now), &routes);
                let taken: Vec<_> = taken.iter().map(|p| (p.time.0, routes.delivered_by(p), p.seq)).collect();
                assert_eq!(taken, waiting.drain(..due).collect::<Vec<_>>(), "seed {seed}");
                let next = inbox.settle();
                assert!(waiting.first().map_or(next == Time::NEVER, |&(time, ..)| next <= Time(time)), "seed {seed}");
                assert_eq!(inbox.len(), waiting.len());
                *if inbox.keeps_few() { &mut few } else { &mut many } += 1;
            }
            let mut rest = Vec::new();
            inbox.drain_into(&mut rest);
            assert_eq!(rest.len(), waiting.len());
        }
        assert!(few > 1000 && many > 1000, "{few} {many}");
    }
}

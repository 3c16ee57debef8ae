//! Fan-in: what an inbox needs for an element with several sources, or for one whose source reorders.
//!
//! Sources hand over their packets one after the other, each in order, for this window and for later ones. The inbox
//! itself keeps what lies before the horizon, where the next window is expected to end; the rest waits in time slots of
//! about a window, what is later in blocks of slots, what is later still by itself: no packet is moved more than
//! three times, but for those that are thousands of windows away.

use crate::ways::Ways;
use paceline_packet::Packet;
use paceline_units::Time;

/// Slots of a block.
const BLOCK: u64 = 32;
/// The slots of this block and the next, and how many blocks there are beyond these: a bit each in a word.
const SLOTS: u64 = 2 * BLOCK;
const BLOCKS: u64 = 64;

/// The most buckets that a batch is sorted into.
const BUCKETS: usize = 4096;

/// A batch not larger than this is sorted by insertion alone.
const FEW: usize = 24;

/// What an inbox for several sources has beside its packets before the horizon: those later, and the sorting.
#[derive(Debug)]
pub(crate) struct Fanin {
    /// Everything before this instant has been taken.
    until: Time,
    /// The expected length of a window.
    window: u64,
    /// What was taken last, in order, and so many of them; what lies behind is left over.
    sorted: Vec<Packet>,
    taken: usize,
    /// Room for what a window that was cut short leaves.
    later: Vec<Packet>,
    /// Packets in no order, but for those of the same source, in slots of 2^shift nanoseconds, about a window.
    slots: [Vec<Packet>; SLOTS as usize],
    /// Number of the first slot that may hold packets; and of the first beyond them.
    current: u64,
    end: u64,
    shift: u32,
    /// Which slots hold packets, and which blocks: bit `number % 64`.
    slots_held: u64,
    /// Packets of the slots from `end` on, by block of slots; and the first slot beyond these blocks.
    blocks: [Vec<Packet>; BLOCKS as usize],
    blocks_end: u64,
    blocks_held: u64,
    /// Packets from `blocks_end` on, and the earliest of them.
    far: Vec<Packet>,
    far_first: Time,
    counts: Box<[u32; BUCKETS]>,
}

impl Fanin {
    /// Before the first window of this length.
    pub(crate) fn new(window: Time) -> Fanin {
        let shift = 63 - window.0.max(2).leading_zeros();
        Fanin {
            until: Time::ZERO,
            window: window.0,
            sorted: Vec::new(),
            taken: 0,
            later: Vec::new(),
            slots: [const { Vec::new() }; SLOTS as usize],
            current: window.0 >> shift,
            end: SLOTS,
            shift,
            slots_held: 0,
            blocks: [const { Vec::new() }; BLOCKS as usize],
            blocks_end: SLOTS + BLOCK * BLOCKS,
            blocks_held: 0,
            far: Vec::new(),
            far_first: Time::NEVER,
            counts: Box::new([0; BUCKETS]),
        }
    }

    /// Everything before this instant has been taken.
    #[inline]
    pub(crate) fn taken_until(&self) -> Time {
        self.until
    }

    /// What was taken last, in order of (time, delivering link, emission).
    #[inline]
    pub(crate) fn taken_packets(&mut self) -> &mut [Packet] {
        &mut self.sorted[..self.taken]
    }

    /// Adds a packet of this time, which is at the horizon or later.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: Time, put: impl FnOnce(&mut Vec<Packet>)) {
        let slot = time.0 >> self.shift;
        debug_assert!(slot >= self.current, "a packet for a window that is over");
        // Not in a function of its own: that would take the packet's address, and keep it in memory for all.
        if slot < self.end {
            self.slots_held |= 1 << (slot % SLOTS);
            put(&mut self.slots[(slot % SLOTS) as usize]);
        } else if slot < self.blocks_end {
            self.blocks_held |= 1 << (slot / BLOCK % BLOCKS);
            put(&mut self.blocks[(slot / BLOCK % BLOCKS) as usize]);
        } else {
            self.far_first = self.far_first.min(time);
            put(&mut self.far);
        }
    }

    /// How many packets are here.
    pub(crate) fn len(&self) -> usize {
        self.slots.iter().chain(&self.blocks).map(Vec::len).sum::<usize>() + self.far.len()
    }

    /// Takes everything before `until`, of which `due` has what lies before `horizon`, and leaves there what lies before
    /// the next horizon, which it gives.
    pub(crate) fn take(&mut self, until: Time, horizon: Time, due: &mut Vec<Packet>, ways: &Ways) -> Time {
        let horizon = self.collect(horizon, until, due);
        if until < horizon {
            due.retain(|packet| {
                if packet.time >= until {
                    self.later.push(*packet);
                }
                packet.time < until
            });
        }
        self.sort(due, until, ways);
        self.until = until;
        due.clear();
        due.append(&mut self.later);
        self.collect(horizon, Time(until.0.saturating_add(self.window)), due)
    }

    /// Moves what lies before `to` to `due`, if that is beyond the horizon; gives the horizon then.
    fn collect(&mut self, horizon: Time, to: Time, due: &mut Vec<Packet>) -> Time {
        if to <= horizon {
            return horizon;
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

    /// Fills the slots of the blocks that begin, and where there are no more blocks, these from what is far. Packets of one
    /// slot lie in one place, so those of a source stay in order.
    fn advance(&mut self, to: Time, due: &mut Vec<Packet>) {
        let (begun, first) = (self.end, self.current - self.current % BLOCK);
        self.end = first + SLOTS;
        for number in begun / BLOCK..self.end.min(self.blocks_end) / BLOCK {
            let mut block = std::mem::take(&mut self.blocks[(number % BLOCKS) as usize]);
            self.blocks_held &= !(1 << (number % BLOCKS));
            self.place(&mut block, to, due);
            self.blocks[(number % BLOCKS) as usize] = block;
        }
        if self.end >= self.blocks_end {
            self.blocks_end = self.end + BLOCK * BLOCKS;
            let mut far = std::mem::take(&mut self.far);
            self.far_first = Time::NEVER;
            self.place(&mut far, to, due);
            // Some may be far still; the room is kept for them.
            std::mem::swap(&mut far, &mut self.far);
            self.far.append(&mut far);
        }
    }

    /// Puts packets where they belong now.
    fn place(&mut self, packets: &mut Vec<Packet>, to: Time, due: &mut Vec<Packet>) {
        for packet in packets.drain(..) {
            if packet.time < to { due.push(packet) } else { self.push(packet.time, |to| to.push(packet)) }
        }
    }

    /// Copies `due`, all of which comes before `to`, in order of (time, delivering link, emission): one counting pass over
    /// the leading bits of the time, then insertion.
    fn sort(&mut self, due: &[Packet], to: Time, ways: &Ways) {
        let n = due.len();
        self.taken = n;
        if n <= FEW {
            self.sorted.clear();
            self.sorted.extend_from_slice(due);
            return insertion_sort(&mut self.sorted, ways);
        }
        let mut from = self.until;
        if to.since(from).0 > self.window.saturating_mul(2) {
            // Nothing came for a while; buckets that cover all of it would be too wide.
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
        insertion_sort(sorted, ways);
    }

    /// When the first packet here comes.
    pub(crate) fn first(&self) -> Time {
        let held = |bits: u64, from: u64| from + u64::from(bits.rotate_right((from % 64) as u32).trailing_zeros());
        let packets = if self.slots_held != 0 {
            &self.slots[(held(self.slots_held, self.current) % SLOTS) as usize]
        } else if self.blocks_held != 0 {
            &self.blocks[(held(self.blocks_held, self.end / BLOCK) % BLOCKS) as usize]
        } else {
            return self.far_first;
        };
        packets.iter().map(|packet| packet.time).min().unwrap_or(Time::NEVER)
    }

    /// Empties it into `to`, in order of emission within a source.
    pub(crate) fn drain_into(&mut self, to: &mut Vec<Packet>) {
        for number in self.current..self.end {
            to.append(&mut self.slots[(number % SLOTS) as usize]);
        }
        for block in self.end / BLOCK..self.blocks_end / BLOCK {
            to.append(&mut self.blocks[(block % BLOCKS) as usize]);
        }
        to.append(&mut self.far);
        self.far_first = Time::NEVER;
        self.slots_held = 0;
        self.blocks_held = 0;
    }
}

/// Stable, and cheap where little is out of place.
fn insertion_sort(packets: &mut [Packet], ways: &Ways) {
    let Some(first) = packets.first() else { return };
    let mut before = first.time;
    for i in 1..packets.len() {
        let time = packets[i].time;
        if time > before {
            before = time;
        } else {
            insert(&mut packets[..=i], ways);
        }
    }
}

/// Moves the last of `packets` to where it belongs among the others, which are in order.
fn insert(packets: &mut [Packet], ways: &Ways) {
    let after =
        |a: &Packet, b: &Packet| a.time > b.time || (a.time == b.time && ways.delivered_by(a) > ways.delivered_by(b));
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
    use crate::{Inbox, Way, Ways};
    use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
    use paceline_random::{Sequence, Stream};
    use paceline_units::Time;

    /// Whatever the windows, the gaps and the delays: packets come out sorted by (time, link, emission), each in the first
    /// window that ends after it.
    #[test]
    fn takes_what_is_due_in_order() {
        let mut ways = Ways::default();
        let cursors: Vec<u32> = (0..7).map(|i| ways.add(7 - i, &[Way::element(0, i)]) + 1).collect();
        for seed in 0..300 {
            let mut draws = Sequence::new(Stream::new(seed, "fan-in"));
            let mut below = |n: u64| (draws.unit() * n as f64) as u64;
            let window = [1, 10, 1000, 1 << 20][below(4) as usize];
            let (spread, burst) = ([1, 3, 40, 5000][below(4) as usize], 1 + below(200));
            let mut inbox = Inbox::fan_in(Time(window));
            let (mut waiting, mut number, mut now) = (Vec::new(), 0, 0);
            for _ in 0..60 {
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
                    waiting.push((time, ways.delivered_by(&packet), packet.seq));
                }
                // Mostly whole windows; some are cut short, and some of the clock's steps are long ones.
                now += [window, window, window, 1 + below(window), window * (1 + below(50))][below(5) as usize];
                waiting.sort_unstable();
                let due = waiting.partition_point(|&(time, ..)| time < now);
                let taken = inbox.take(Time(now), &ways);
                let taken: Vec<_> = taken.iter().map(|p| (p.time.0, ways.delivered_by(p), p.seq)).collect();
                assert_eq!(taken, waiting.drain(..due).collect::<Vec<_>>(), "seed {seed}");
                let next = inbox.settle();
                assert!(waiting.first().map_or(next == Time::NEVER, |&(time, ..)| next <= Time(time)), "seed {seed}");
                assert_eq!(inbox.len(), waiting.len());
            }
            let mut rest = Vec::new();
            inbox.drain_into(&mut rest);
            assert_eq!(rest.len(), waiting.len());
        }
    }
}

//! Outstanding packets, with the recently lost and acknowledged ones among them.

use super::Snapshot;
use paceline_packet::quic::{Frame, StreamPiece};
use paceline_units::Time;

/// The contents of a packet that matter when it is acknowledged or lost.
#[derive(Clone, Debug)]
pub(super) enum Carried {
    /// Nothing: it was an acknowledgement.
    Nothing,
    /// Data of one stream.
    Stream(StreamPiece),
    /// Several frames, or uncommon ones.
    Frames(Box<[Frame]>),
}

impl Carried {
    /// Overwrites a value that owns no heap memory; this saves the check that dropping the old value would need.
    #[inline(always)]
    pub(super) fn fill(&mut self, carried: Carried) {
        core::mem::forget(core::mem::replace(self, carried));
    }
}

/// The state of a sent packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// In flight.
    Out,
    /// Acknowledged.
    Acked,
    /// Declared lost.
    Lost,
    /// It is not ack-eliciting.
    Silent,
}

/// A sent packet.
#[derive(Clone, Debug)]
pub(super) struct SentPacket {
    pub(super) sent: Time,
    pub(super) carried: Carried,
    /// UDP payload.
    pub(super) bytes: u16,
    pub(super) state: State,
    /// It was sent as ECN-capable.
    pub(super) ect: bool,
}

/// The value of an empty place.
const NONE: SentPacket =
    SentPacket { sent: Time::ZERO, carried: Carried::Nothing, bytes: 0, state: State::Silent, ect: false };

/// The packets of a connection by number, from the oldest outstanding one on: a ring buffer indexed by the number's
/// lower bits.
#[derive(Debug, Default)]
pub(super) struct SentLog {
    /// The lowest number kept, and the next packet's number.
    base: u32,
    next: u32,
    /// The length is a power of two. Entries outside `base..next` own no heap memory.
    packets: Vec<SentPacket>,
    /// The rate sampler's snapshot for each packet; empty without a sampler.
    snapshots: Vec<Snapshot>,
    /// Below this, no packet is [`State::Out`].
    settled: u32,
}

impl SentLog {
    /// Creates an empty log; `base` is the first number. `samples`: keep snapshots.
    pub(super) fn new(base: u32, samples: bool) -> SentLog {
        const PLACES: usize = 8;
        let snapshots = vec![Snapshot::default(); if samples { PLACES } else { 0 }];
        SentLog { base, next: base, packets: vec![NONE; PLACES], snapshots, settled: base }
    }

    /// The next packet's number.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// The lowest number kept.
    #[inline]
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    #[inline]
    fn place(&self, number: u32) -> usize {
        number as usize & (self.packets.len() - 1)
    }

    /// Adds packet [`SentLog::next`], sent at `sent` with `bytes` of UDP payload; returns the place for its contents.
    #[inline(always)]
    pub(super) fn push(&mut self, sent: Time, bytes: u16, ect: bool) -> &mut Carried {
        self.push_any(sent, bytes, ect, State::Out)
    }

    /// [`SentLog::push`] with a snapshot of the rate sampler.
    #[inline(never)]
    pub(super) fn push_sampled(&mut self, sent: Time, bytes: u16, ect: bool, left: Snapshot) -> &mut Carried {
        let number = self.next;
        self.push(sent, bytes, ect);
        let place = self.place(number);
        self.snapshots[place] = left;
        &mut self.packets[place].carried
    }

    #[inline(always)]
    fn push_any(&mut self, sent: Time, bytes: u16, ect: bool, state: State) -> &mut Carried {
        if (self.next - self.base) as usize == self.packets.len() {
            self.make_room();
        }
        let place = self.place(self.next);
        self.next += 1;
        let place = &mut self.packets[place];
        (place.sent, place.bytes, place.state, place.ect) = (sent, bytes, state, ect);
        &mut place.carried
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        let places = 2 * self.packets.len();
        let mut packets = vec![NONE; places];
        let mut snapshots = vec![Snapshot::default(); if self.snapshots.is_empty() { 0 } else { places }];
        for number in self.base..self.next {
            let (from, to) = (self.place(number), number as usize & (places - 1));
            core::mem::swap(&mut packets[to], &mut self.packets[from]);
            if let (Some(new), Some(old)) = (snapshots.get_mut(to), self.snapshots.get(from)) {
                *new = *old;
            }
        }
        (self.packets, self.snapshots) = (packets, snapshots);
    }

    /// Adds a non-ack-eliciting packet; returns its number.
    #[inline]
    pub(super) fn push_silent(&mut self, now: Time, bytes: u16) -> u32 {
        let number = self.next;
        if self.base == self.next {
            // nothing will look it up
            (self.base, self.next) = (number + 1, number + 1);
            self.settled = self.settled.max(self.base);
        } else {
            self.push_any(now, bytes, false, State::Silent).fill(Carried::Nothing);
        }
        number
    }

    #[inline]
    fn keeps(&self, number: u32) -> bool {
        number.wrapping_sub(self.base) < self.next - self.base
    }

    /// The packet, if it is kept.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut SentPacket> {
        let place = self.place(number);
        if self.keeps(number) { self.packets.get_mut(place) } else { None }
    }

    /// The packet's snapshot, if the packet is kept or was the last one removed.
    #[inline]
    pub(super) fn snapshot(&self, number: u32) -> &Snapshot {
        if self.snapshots.is_empty() { &Snapshot::NONE } else { &self.snapshots[self.place(number)] }
    }

    /// The oldest packet in flight below `end`.
    #[inline]
    pub(super) fn first_out(&mut self, end: u32) -> Option<(u32, &mut SentPacket)> {
        self.settled = self.settled.max(self.base);
        while self.settled < end.min(self.next) {
            let place = self.place(self.settled);
            match self.packets[place].state {
                State::Out => return Some((self.settled, &mut self.packets[place])),
                State::Acked | State::Lost | State::Silent => self.settled += 1,
            }
        }
        None
    }

    /// All packets in flight, oldest first.
    pub(super) fn out(&self) -> impl Iterator<Item = (u32, &SentPacket)> {
        let all = (self.settled.max(self.base)..self.next).map(|number| (number, &self.packets[self.place(number)]));
        all.filter(|(_, packet)| packet.state == State::Out)
    }

    /// The packet, if it is kept.
    pub(super) fn get(&self, number: u32) -> Option<&SentPacket> {
        self.packets.get(self.place(number)).filter(|_| self.keeps(number))
    }

    /// Drops packets at the front that are no longer in flight.
    #[inline(always)]
    pub(super) fn prune(&mut self) {
        while self.base < self.next && self.packets[self.place(self.base)].state != State::Out {
            self.base += 1;
        }
    }

    /// Removes the oldest packet, if there is one, and returns it; the caller must take its contents.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<&mut SentPacket> {
        let place = self.place(self.base);
        if self.base == self.next {
            return None;
        }
        self.base += 1;
        self.packets.get_mut(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_settled_is_not_looked_at_again() {
        let mut log = SentLog::new(5, false);
        assert_eq!(log.push_silent(Time(0), 100), 5);
        assert_eq!((log.base(), log.next()), (6, 6), "acknowledgements alone leave no trace");
        for n in 0..4 {
            log.push(Time(n), 100, false).fill(Carried::Nothing);
        }
        assert_eq!(log.push_silent(Time(4), 100), 10);
        assert_eq!(log.next(), 11);
        log.get_mut(6).unwrap().state = State::Lost;
        log.get_mut(7).unwrap().state = State::Acked;
        assert_eq!(log.first_out(11).map(|(n, _)| n), Some(8));
        assert_eq!(log.out().map(|(n, _)| n).collect::<Vec<_>>(), [8, 9]);
        assert_eq!(log.first_out(8).map(|(n, _)| n), None);
        log.prune();
        assert_eq!(log.base(), 8);
        assert!(log.get_mut(7).is_none());
        assert_eq!(size_of::<SentPacket>(), 40);
    }
}

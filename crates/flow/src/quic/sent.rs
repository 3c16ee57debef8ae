//! What left and was not told of yet, and what was taken for lost and may still be.

use super::Snapshot;
use paceline_packet::quic::{Frame, StreamPiece};
use paceline_units::Time;
use std::collections::VecDeque;

/// What a packet carried that matters when it is acknowledged or lost.
#[derive(Clone, Debug)]
pub(super) enum Carried {
    /// Nothing: it was an acknowledgement.
    Nothing,
    /// Data of one stream.
    Stream(StreamPiece),
    /// Several frames, or rare ones.
    Frames(Box<[Frame]>),
}

/// What is known of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// On its way, and in flight.
    Out,
    /// Acknowledged.
    Acked,
    /// Taken for lost.
    Lost,
    /// It wants no acknowledgement.
    Silent,
}

/// A packet that left.
#[derive(Clone, Debug)]
pub(super) struct SentPacket {
    pub(super) sent: Time,
    pub(super) carried: Carried,
    /// UDP payload.
    pub(super) bytes: u16,
    pub(super) state: State,
    /// It was ECN-capable.
    pub(super) ect: bool,
}

/// The packets of a connection by number, the oldest that matters first.
#[derive(Debug, Default)]
pub(super) struct SentLog {
    /// Of the first.
    base: u32,
    packets: VecDeque<SentPacket>,
    /// What the rate sampler knew when each left; empty where there is none.
    snapshots: VecDeque<Snapshot>,
    samples: bool,
    /// Below it none is [`State::Out`].
    settled: u32,
}

impl SentLog {
    /// The first has this number; `samples`: snapshots are kept.
    pub(super) fn new(base: u32, samples: bool) -> SentLog {
        SentLog { base, settled: base, samples, ..SentLog::default() }
    }

    /// The next packet's number.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.base + self.packets.len() as u32
    }

    /// The lowest number that is kept.
    #[inline]
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// The packet with the number [`SentLog::next`] leaves.
    #[inline]
    pub(super) fn push(&mut self, packet: SentPacket, left: Snapshot) {
        self.packets.push_back(packet);
        if self.samples {
            self.snapshots.push_back(left);
        }
    }

    /// The same of a packet that wants no acknowledgement. Gives its number.
    #[inline]
    pub(super) fn push_silent(&mut self, now: Time, bytes: u16) -> u32 {
        let number = self.next();
        if self.packets.is_empty() {
            self.base += 1; // no one will ask for it
            self.settled = self.settled.max(self.base);
        } else {
            let packet = SentPacket { sent: now, carried: Carried::Nothing, bytes, state: State::Silent, ect: false };
            self.push(packet, Snapshot::default());
        }
        number
    }

    /// The packet, if it is kept.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut SentPacket> {
        self.packets.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// What was known when it left.
    #[inline]
    pub(super) fn snapshot(&self, number: u32) -> Snapshot {
        if !self.samples {
            return Snapshot::default();
        }
        let place = number.wrapping_sub(self.base) as usize;
        self.snapshots.get(place).copied().unwrap_or_default()
    }

    /// The oldest that is out and below `end`.
    #[inline]
    pub(super) fn first_out(&mut self, end: u32) -> Option<(u32, &mut SentPacket)> {
        self.settled = self.settled.max(self.base);
        while self.settled < end {
            let place = (self.settled - self.base) as usize;
            match self.packets.get(place)?.state {
                State::Out => return Some((self.settled, &mut self.packets[place])),
                State::Acked | State::Lost | State::Silent => self.settled += 1,
            }
        }
        None
    }

    /// All that are out, oldest first.
    pub(super) fn out(&self) -> impl Iterator<Item = (u32, &SentPacket)> {
        let from = self.settled.saturating_sub(self.base) as usize;
        let all = self.packets.iter().enumerate().skip(from);
        all.filter(|(_, packet)| packet.state == State::Out).map(|(place, packet)| (self.base + place as u32, packet))
    }

    /// The packet, if it is kept.
    pub(super) fn get(&self, number: u32) -> Option<&SentPacket> {
        self.packets.get(number.checked_sub(self.base)? as usize)
    }

    /// Forgets what is done with at the beginning.
    #[inline(always)]
    pub(super) fn prune(&mut self) {
        while self.packets.front().is_some_and(|first| first.state != State::Out) {
            self.drop_first();
        }
    }

    #[inline(never)]
    fn drop_first(&mut self) {
        self.pop();
        self.pop_snapshot();
    }

    /// The oldest.
    #[inline]
    pub(super) fn first(&self) -> Option<&SentPacket> {
        self.packets.front()
    }

    /// Takes out the oldest; [`SentLog::pop_snapshot`] is to follow.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<SentPacket> {
        let first = self.packets.pop_front()?;
        self.base += 1;
        Some(first)
    }

    /// Takes out what was known when the packet left that [`SentLog::pop`] gave.
    #[inline]
    pub(super) fn pop_snapshot(&mut self) -> Snapshot {
        if self.samples { self.snapshots.pop_front().unwrap_or_default() } else { Snapshot::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sent: u64, state: State) -> SentPacket {
        SentPacket { sent: Time(sent), carried: Carried::Nothing, bytes: 100, state, ect: false }
    }

    #[test]
    fn what_is_settled_is_not_looked_at_again() {
        let mut log = SentLog::new(5, false);
        assert_eq!(log.push_silent(Time(0), 100), 5);
        assert_eq!((log.base(), log.next()), (6, 6), "acknowledgements alone leave no trace");
        for n in 0..4 {
            log.push(packet(n, State::Out), Snapshot::default());
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

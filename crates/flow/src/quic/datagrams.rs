//! Frames sent as datagrams (RFC 9221): those waiting, and those received in part.

use super::connection::Connection;
use super::outgoing::Expired;
use paceline_packet::Stamp;
use paceline_packet::quic::Frame;
use paceline_units::Time;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of incomplete frames kept.
const KEPT: usize = 256;

/// A frame that waits to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) left: u64,
    pub(super) offset: u32,
    /// The number of the frame on the connection.
    pub(super) number: u32,
    pub(super) track: u8,
    /// Lower ranks are sent first.
    pub(super) rank: u8,
    pub(super) captured: Stamp,
    pub(super) key: bool,
    /// When it is dropped.
    pub(super) deadline: Time,
}

/// A part of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) offset: u32,
    pub(super) length: u16,
    pub(super) last: bool,
}

/// Frames received in part.
#[derive(Clone, Debug, Default)]
pub(super) struct Assembly {
    /// For each frame, the bytes received, and its size once its last part has arrived.
    frames: BTreeMap<u32, (u64, Option<u64>)>,
}

impl Assembly {
    /// Adds a part, which is new because duplicate packets are ignored. Returns the size of the frame if it is now
    /// complete.
    pub(super) fn part(&mut self, number: u32, part: Part) -> Option<u64> {
        let end = u64::from(part.offset) + u64::from(part.length);
        if part.offset == 0 && part.last {
            return Some(end);
        }
        let (received, size) = self.frames.entry(number).or_default();
        *received += u64::from(part.length);
        if part.last {
            *size = Some(end);
        }
        let whole = size.filter(|size| size == received);
        if whole.is_some() {
            self.frames.remove(&number);
        } else if self.frames.len() > KEPT {
            self.frames.pop_first();
        }
        whole
    }
}

/// Frames in datagrams, in both directions.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    /// Those to be sent, by rank.
    pub(super) waiting: VecDeque<Waiting>,
    /// The number of the next frame; it continues over the flow's connections.
    pub(super) next_number: u32,
    pub(super) assembly: Assembly,
}

impl Connection {
    /// Queues a frame to be sent in datagrams, behind those of its rank.
    pub(super) fn wait(&mut self, bytes: u64, captured: Stamp, key: bool, (track, rank): (u8, u8), deadline: Time) {
        let number = self.datagrams.next_number;
        self.datagrams.next_number += 1;
        let behind = self.datagrams.waiting.partition_point(|waiting| waiting.rank <= rank);
        self.datagrams
            .waiting
            .insert(behind, Waiting { left: bytes, offset: 0, number, track, rank, captured, key, deadline });
        self.timers.next_deadline = self.timers.next_deadline.min(deadline);
    }

    /// Resets streams and drops datagrams whose deadline has passed.
    #[cold]
    pub(super) fn expire(&mut self, now: Time) {
        for expired in self.outgoing.expire(now) {
            self.sent_of(expired.track).frames_reset += expired.frames;
            self.was_reset(&expired);
        }
        let late: VecDeque<Waiting>;
        (late, self.datagrams.waiting) = self.datagrams.waiting.drain(..).partition(|waiting| waiting.deadline <= now);
        late.iter().for_each(|waiting| self.sent_of(waiting.track).frames_reset += 1);
        self.timers.next_deadline = self.deadline();
    }

    /// Records and sends the reset of a stream. The other end must know of it even if nothing was sent: a later stream
    /// has opened this one there (RFC 9000, 3.2), and it counts against the stream limit until it ends.
    pub(super) fn was_reset(&mut self, stream: &Expired) {
        self.stats.reset_streams += 1;
        self.control.push_back(Frame::ResetStream { stream: stream.id, size: stream.size });
    }

    /// The earliest deadline of a stream or a datagram.
    pub(super) fn deadline(&self) -> Time {
        if self.timers.next_deadline == Time::NEVER {
            return Time::NEVER; // there is no deadline
        }
        let datagram = self.datagrams.waiting.iter().map(|waiting| waiting.deadline).min();
        self.outgoing.next_deadline().min(datagram.unwrap_or(Time::NEVER)).min(self.timers.waiting_due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_whole_with_all_its_parts_in_whatever_order() {
        let mut assembly = Assembly::default();
        let part = |offset, last| Part { offset, length: 100, last };
        assert_eq!(assembly.part(0, part(0, true)), Some(100));
        assert_eq!(assembly.part(1, part(200, true)), None);
        assert_eq!(assembly.part(1, part(0, false)), None);
        assert_eq!(assembly.part(2, part(0, false)), None);
        assert_eq!(assembly.part(1, part(100, false)), Some(300));
        assert_eq!(assembly.part(2, part(200, true)), None, "one is missing");
    }
}

//! A relay (draft-ietf-moq-transport): data that arrives on one connection leaves at once on another, in streams of its
//! own. Data that exceeds the outgoing queue is dropped by priority.

use super::Carriage;
use super::outgoing::Expired;
use super::portions::{RelayedData, RelayedDataKind};
use super::sender::QuicSender;
use super::tracks::Track;
use crate::Transmit;
use paceline_packet::Stamp;
use paceline_units::Time;

/// What the relay does with an incoming stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RelayedStream {
    /// It is sent on this outgoing stream as it arrives.
    By(u32),
    /// It was reset at its deadline, or because its source had reset it.
    Reset,
    /// It was dropped because too much waited, or no stream could be opened for it.
    Dropped,
    /// Its group had begun before the relay joined.
    Missed,
}

/// Bytes of a frame that have arrived, all of it or a part.
#[derive(Clone, Copy, Debug)]
struct Part {
    bytes: u64,
    captured: Stamp,
    due: Time,
    key: bool,
    last: bool,
}

impl QuicSender {
    /// Relays data of a track over this connection; the next call of [`QuicSender::send_on`] sends it.
    pub(super) fn relay(&mut self, track: u8, portion: RelayedData, now: Time) {
        let RelayedData { stream, what, .. } = portion;
        match what {
            RelayedDataKind::Bytes { bytes, captured, key, first, opens, last } => {
                self.open_again(now);
                let Track { config, transit, .. } = &mut self.tracks[usize::from(track)];
                let (config, captured_at) = (*config, transit.written(captured, now).time());
                let due = config.deadline.map_or(Time::NEVER, |deadline| captured_at + deadline);
                let part = Part { bytes, captured, due, key, last };
                match stream {
                    Some(stream) => self.relay_part(track, stream, part, (first, opens), now),
                    None => {
                        self.connection.sent_of(track).frames += 1;
                        self.connection.wait(bytes, captured, key, (track, config.rank), due);
                    }
                }
                if self.connection.timers.next_deadline <= now {
                    self.connection.expire(now);
                }
                self.keep_to_queue();
            }
            RelayedDataKind::End | RelayedDataKind::Reset => {
                let relayed = stream.and_then(|stream| self.tracks[usize::from(track)].relayed.remove(&stream));
                let Some(RelayedStream::By(place)) = relayed else { return };
                if what == RelayedDataKind::End {
                    self.connection.outgoing.write(place, 0, true);
                } else if let Some(reset) = self.connection.outgoing.reset(place) {
                    self.connection.sent_of(track).frames_reset += reset.frames;
                    self.connection.was_reset(&reset);
                }
            }
        }
        self.has_relayed = true;
    }

    /// Relays a part of a frame in a stream.
    fn relay_part(&mut self, track: u8, stream: u32, part: Part, (first, opens): (bool, bool), now: Time) {
        let Part { bytes, captured, due, key, last } = part;
        let relayed = match self.tracks[usize::from(track)].relayed.get(&stream).copied() {
            Some(RelayedStream::By(place)) if self.connection.outgoing.is_reset(place) => RelayedStream::Reset,
            Some(relayed) => relayed,
            None if !first => return, // it had begun before the relay joined
            None => self.accept_stream(track, opens, due <= now),
        };
        self.tracks[usize::from(track)].relayed.insert(stream, relayed);
        let sent = self.connection.sent_of(track);
        let begun = u64::from(first && relayed != RelayedStream::Missed);
        sent.frames += begun;
        match relayed {
            RelayedStream::By(place) => {
                self.connection.timers.next_deadline = self.connection.timers.next_deadline.min(due);
                self.connection.outgoing.write_part(place, bytes, (captured, due), key, last);
            }
            RelayedStream::Reset => sent.frames_reset += begun,
            RelayedStream::Dropped => sent.frames_dropped += begun,
            RelayedStream::Missed => {}
        }
    }

    /// Decides what to do with a new incoming stream.
    fn accept_stream(&mut self, track: u8, opens: bool, is_late: bool) -> RelayedStream {
        let carriage = self.tracks[usize::from(track)].config.carriage;
        if carriage == Carriage::StreamPerGroup && !opens {
            RelayedStream::Missed
        } else if is_late {
            RelayedStream::Reset
        } else if self.connection.outgoing.may_open() {
            RelayedStream::By(self.open_stream(track))
        } else {
            RelayedStream::Dropped
        }
    }

    /// Drops the unsent data of lowest priority until the queue's limit is met.
    fn keep_to_queue(&mut self) {
        let Some(limit) = self.connection.config.queue else { return };
        while self.waiting_frames() > limit && self.drop_lowest_priority() {}
    }

    /// Unsent bytes of frames.
    fn waiting_frames(&self) -> u64 {
        let of_frames = |track: &u8| self.tracks[usize::from(*track)].config.frames;
        (0..self.tracks.len() as u8).filter(of_frames).map(|track| self.unsent(track)).sum()
    }

    fn drop_lowest_priority(&mut self) -> bool {
        let connection = &mut self.connection;
        let of_frames = |track: u8| self.tracks[usize::from(track)].config.frames;
        let stream = connection.outgoing.lowest_priority(of_frames);
        // the oldest datagram of the lowest priority, which is the first of them
        let last = connection.datagrams.waiting.back().map(|waiting| waiting.rank);
        let datagram =
            last.map(|rank| (rank, connection.datagrams.waiting.partition_point(|waiting| waiting.rank < rank)));
        if let Some((rank, at)) = datagram.filter(|(rank, _)| stream.is_none_or(|(other, _)| other < *rank)) {
            debug_assert_eq!(connection.datagrams.waiting[at].rank, rank);
            let dropped = connection.datagrams.waiting.remove(at);
            dropped.iter().for_each(|dropped| connection.sent_of(dropped.track).frames_dropped += 1);
            return dropped.is_some();
        }
        let Some((_, place)) = stream else { return false };
        let Some(Expired { track, frames, .. }) =
            connection.outgoing.reset(place).inspect(|reset| connection.was_reset(reset))
        else {
            return false;
        };
        connection.sent_of(track).frames_dropped += frames;
        for relayed in
            self.tracks[usize::from(track)].relayed.values_mut().filter(|relayed| **relayed == RelayedStream::By(place))
        {
            *relayed = RelayedStream::Dropped;
        }
        true
    }

    /// Sends data that has arrived since the last call, as far as possible.
    pub fn send_on(&mut self, now: Time, out: &mut impl Transmit) {
        if core::mem::take(&mut self.has_relayed) && self.started {
            self.connection.pump(now, out);
        }
    }
}

//! Gives up data at their deadline.

use super::{Sending, Write};
use paceline_flow::quic::Carriage;
use paceline_units::Time;
use quinn_proto::{StreamId, VarInt};
use std::collections::VecDeque;

/// A stream that is not completely acknowledged.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Payload bytes in it.
    pub bytes: u64,
    /// Its frames with a deadline that are not known to be acknowledged, in order.
    pub frames: VecDeque<Due>,
}

/// A frame that is given up at its deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// Total payload bytes passed to quinn when it had received this frame completely; before that, the maximum number.
    pub end: u64,
    pub deadline: Time,
}

impl Open {
    fn deadline(&self) -> Time {
        self.frames.front().map_or(Time::NEVER, |frame| frame.deadline)
    }
}

impl Sending {
    /// Forgets acknowledged frames of groups: in an open stream, those that are neither in flight nor waiting to be
    /// sent or retransmitted.
    pub(super) fn forget_acked(&mut self, in_flight: u64) {
        if self.config.track.carriage != Carriage::StreamPerGroup {
            return;
        }
        let unknown = if self.quiet { 0 } else { in_flight.max(1) + self.owed + self.ahead };
        let known = self.written.saturating_sub(unknown);
        for open in self.open.values_mut() {
            while open.frames.front().is_some_and(|frame| frame.end <= known) {
                open.frames.pop_front();
            }
        }
    }

    /// The next write that is not given up.
    pub(super) fn next_write(&mut self) -> Option<Write> {
        self.drop_given_up(Time::ZERO);
        self.waiting.pop_front()
    }

    /// Resets streams whose deadline has passed, and discards their unwritten data.
    pub(super) fn reset_late(&mut self, now: Time) {
        if self.config.track.deadline.is_none() {
            return;
        }
        let late: Vec<_> = self.open.iter().filter(|(_, open)| open.deadline() <= now).map(|(id, _)| *id).collect();
        for id in late {
            self.reset(id);
        }
        self.drop_given_up(now);
    }

    /// Gives up a stream.
    fn reset(&mut self, id: StreamId) {
        self.stats.frames_reset += self.open.get(&id).map_or(0, |open| open.frames.len() as u64);
        if let Some(connection) = self.link.open() {
            let _ = connection.send_stream(id).reset(VarInt::from_u32(0));
        }
        self.close_stream(id, false);
    }

    /// Discards waiting writes that are late, and those whose stream or group was given up.
    fn drop_given_up(&mut self, now: Time) {
        while let Some(write) = self.waiting.front() {
            let (key, late) = (write.frame.key, write.deadline <= now);
            let given_up = write.stream.map_or(self.group_lost && !key, |id| !self.open.contains_key(&id));
            if !late && !given_up {
                return;
            }
            // frames already begun were counted with their stream
            self.stats.frames_reset += u64::from(write.stream.is_none());
            self.waiting.pop_front();
            if !given_up && self.config.track.carriage == Carriage::StreamPerGroup {
                // discard the rest of its group as well; a late key frame leaves the previous group intact
                match self.current {
                    Some(id) if !key => self.reset(id),
                    _ => self.end_group(),
                }
                self.group_lost = true;
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Time {
        let open = self.open.values().map(Open::deadline).min().unwrap_or(Time::NEVER);
        open.min(self.waiting.front().map_or(Time::NEVER, |write| write.deadline))
    }
}

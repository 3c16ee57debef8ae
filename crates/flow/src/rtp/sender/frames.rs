//! Frames that wait to be sent, their scheduling, and discarded frames.

use super::RtpSender;
use paceline_control::{MediaController, RtpController};
use paceline_units::{Size, Time};

/// A frame not sent completely.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// One past its last packet.
    pub(super) end: u32,
    /// When it was written.
    pub(super) written: Time,
    /// Its bytes on the wire, and those of its last packet.
    pub(super) size: u64,
    pub(super) last: u64,
    /// When to send its first packet, and the rate of all its packets, if the controller sets them.
    pub(super) own: Option<(Time, f64)>,
    /// Sending of it has begun.
    pub(super) begun: bool,
    /// The next frame's time has come.
    pub(super) hurries: bool,
    pub(super) key: bool,
}

impl Frame {
    /// Gets the frame's schedule from the controller.
    pub(super) fn plan(&mut self, controller: &mut RtpController) {
        // the gaps between the first packet and the last are those of all packets but the last
        let paced = if self.size > self.last { self.size - self.last } else { self.size };
        self.own = controller.frame_time(Size::from_bytes(self.size)).map(|time| {
            let rate = paced as f64 / time.span.as_secs_f64().max(1e-9);
            (self.written + time.delay, rate)
        });
    }
}

/// Whether a frame depends on others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Needs {
    /// Not specified.
    Unsaid,
    /// It depends on none: a key frame.
    Nothing,
}

impl RtpSender {
    /// Starts a frame with its own schedule without a gap after earlier frames. When its time has come, the rest of the
    /// earlier frame is sent at once.
    #[inline]
    pub(super) fn turn_frame(&mut self, now: Time) {
        let hurries = self.next_frame() <= now;
        let Some(frame) = self.frames.front_mut() else { return };
        if !frame.begun {
            frame.begun = true;
            self.frame_rate = frame.own.map(|(_, rate)| rate);
            if let Some((start, _)) = frame.own {
                self.pacer.start(start);
            }
        }
        if hurries {
            frame.hurries = true;
            self.frame_rate = Some(f64::INFINITY);
            self.pacer.start(now);
        }
    }

    /// When the frame after the current one is to start, if it has its own schedule.
    #[inline]
    pub(super) fn next_frame(&self) -> Time {
        let hurries = self.frames.front().is_some_and(|frame| frame.hurries);
        let next = self.frames.get(1).filter(|_| !hurries).and_then(|frame| frame.own);
        next.map_or(Time::NEVER, |(start, _)| start)
    }

    /// Whether it may discard waiting frames.
    #[must_use]
    pub fn may_discard_frames(&self) -> bool {
        self.config.settings.discards
    }

    /// Discards the queue if the controller requests it.
    #[inline]
    pub(super) fn heed_discard(&mut self) {
        if self.config.settings.discards && self.controller.discards() {
            self.discard_queue();
            if let Some(bundle) = &mut self.bundle {
                bundle.discarded = true;
            }
        }
    }

    /// Discards the queue, including the rest of a partly sent frame. Sequence numbers continue without a gap, so a
    /// receiver sees no loss, but an incomplete frame.
    #[cold]
    pub fn discard_queue(&mut self) {
        self.stats.frames_dropped += self.frames.len() as u64;
        self.discard();
        self.discarded = true;
    }

    /// Whether the queue was discarded since the last call; the next frame should then be a key frame.
    pub fn take_discarded(&mut self) -> bool {
        core::mem::take(&mut self.discarded)
    }

    /// The capture time of a packet's frame, whether the packet is its last, and whether it is a key frame.
    #[inline]
    pub(super) fn frame(&mut self, number: u32, now: Time) -> (Time, bool, bool) {
        let Some(frame) = self.frames.front() else { return (now, false, false) };
        let (written, last, key) = (frame.written, number + 1 >= frame.end, frame.key);
        if last {
            self.frames.pop_front();
        }
        (written, last, key)
    }
}

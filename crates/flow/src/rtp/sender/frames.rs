//! Frames that wait to leave, when each is to, and those that never do.

use super::RtpSender;
use paceline_control::{MediaController, RtpController};
use paceline_units::{Size, Time};

/// A frame that has not left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// One past its last packet.
    pub(super) end: u32,
    /// When it was written.
    pub(super) written: Time,
    /// Its bytes on the wire, and those of its last packet.
    pub(super) size: u64,
    pub(super) last: u64,
    /// When its first packet is to leave, and at what rate all do, if the controller says so.
    pub(super) own: Option<(Time, f64)>,
    /// Its turn has come.
    pub(super) begun: bool,
    /// The time of the frame after it has come.
    pub(super) hurries: bool,
    pub(super) key: bool,
}

impl Frame {
    /// Asks the controller when it is to leave.
    pub(super) fn plan(&mut self, controller: &mut RtpController) {
        // between the first packet and the last lie the gaps of all but the last
        let paced = if self.size > self.last { self.size - self.last } else { self.size };
        self.own = controller.frame_time(Size::from_bytes(self.size)).map(|time| {
            let rate = paced as f64 / time.span.as_secs_f64().max(1e-9);
            (self.written + time.delay, rate)
        });
    }
}

/// What a frame needs to be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Needs {
    /// That is not told.
    Unsaid,
    /// Nothing: a key frame.
    Nothing,
}

impl RtpSender {
    /// A frame with a time of its own waits for no gap after those before it, and when it has come what is left of these leaves
    /// at once.
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

    /// When the frame after the one that is leaving is to begin, if it has a time of its own.
    #[inline]
    pub(super) fn next_frame(&self) -> Time {
        let hurries = self.frames.front().is_some_and(|frame| frame.hurries);
        let next = self.frames.get(1).filter(|_| !hurries).and_then(|frame| frame.own);
        next.map_or(Time::NEVER, |(start, _)| start)
    }

    /// Whether it may throw away frames that wait.
    #[must_use]
    pub fn throws_away(&self) -> bool {
        self.config.settings.discards
    }

    /// Throws away what waits if the controller says so.
    #[inline]
    pub(super) fn heed_discard(&mut self) {
        if self.config.settings.discards && self.controller.discards() {
            self.throw_away();
            if let Some(bundle) = &mut self.bundle {
                bundle.thrown = true;
            }
        }
    }

    /// What waits is thrown away, of a frame that has left in part the rest. Numbers go on as if it had never been: a receiver
    /// finds no loss, and no frame of it whole.
    #[cold]
    pub fn throw_away(&mut self) {
        self.stats.frames_dropped += self.frames.len() as u64;
        self.discard();
        self.thrown = true;
    }

    /// Whether what waited has been thrown away since this was last asked: the next frame should need none before it.
    pub fn take_thrown(&mut self) -> bool {
        core::mem::take(&mut self.thrown)
    }

    /// When what is in a packet was captured, whether it is the last packet of a frame, and whether that is a key frame.
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

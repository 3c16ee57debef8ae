//! The two clocks of a session: the time that inputs come with, and the machine's own, which begins with the flow's data.

use paceline_units::{Span, Time};

/// A machine whose timer is late runs at the times that it asked for, as long as they lie no further back than this.
const LATE: Span = Span::from_millis(10);
/// Datagrams on account of one input, at most; the rest follows with the next timer, which is due at once.
pub(super) const MAX_DATAGRAMS: usize = 256;

/// How far a session and its machine are. Neither time ever goes back.
#[derive(Debug, Default)]
pub(super) struct Times {
    now: Time,
    at: Time,
    epoch: Time,
}

impl Times {
    /// An input has come at `now` of the session's time; what it counts as.
    pub fn input(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    /// The machine's time begins at `now` of the session's.
    pub fn begin(&mut self, now: Time) {
        self.epoch = now;
    }

    /// Zero of the machine's time; zero before it has begun.
    pub fn epoch(&self) -> Time {
        self.epoch
    }

    /// The machine's time at `now` of the session's.
    pub fn machine(&self, now: Time) -> Time {
        Time::ZERO + now.since(self.epoch)
    }

    /// Where the machine is.
    pub fn at(&self) -> Time {
        self.at
    }

    /// The machine gets something at `time` of its own, or now if it is past that; when.
    pub fn pass(&mut self, time: Time) -> Time {
        self.at = self.at.max(time);
        self.at
    }

    /// The machine's timer for `due` runs although it is `to` already; at which time of the machine's.
    pub fn timer(&mut self, due: Time, to: Time) -> Time {
        self.pass(due.max(Time(to.0.saturating_sub(LATE.0))))
    }

    /// The session's time of a machine's timer.
    pub fn wake(&self, due: Time) -> Time {
        if due == Time::NEVER { due } else { self.epoch + due.since(Time::ZERO) }
    }
}

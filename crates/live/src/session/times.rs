//! The two clocks of a session: the time of its inputs, and the machine's own time, which begins with the flow's data.

use paceline_units::{Span, Time};

/// Late timers run at their due times, but not further back than this.
const LATE: Span = Span::from_millis(10);
/// Maximum number of datagrams per input; the rest follows with the next timer, which is due at once.
pub(super) const MAX_DATAGRAMS: usize = 256;

/// Current times of a session and its machine. Neither ever runs backwards.
#[derive(Debug, Default)]
pub(super) struct Times {
    now: Time,
    at: Time,
    epoch: Time,
}

impl Times {
    /// Records an input at session time `now`; returns its effective time.
    pub fn input(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    /// Starts the machine's time at session time `now`.
    pub fn begin(&mut self, now: Time) {
        self.epoch = now;
    }

    /// Session time at which the machine's time is zero; zero before it has begun.
    pub fn epoch(&self) -> Time {
        self.epoch
    }

    /// The machine's time at session time `now`.
    pub fn machine(&self, now: Time) -> Time {
        Time::ZERO + now.since(self.epoch)
    }

    /// The machine's current time.
    pub fn at(&self) -> Time {
        self.at
    }

    /// Advances the machine's time to `time`, unless it is already later; returns it.
    pub fn pass(&mut self, time: Time) -> Time {
        self.at = self.at.max(time);
        self.at
    }

    /// Advances the machine's time for a timer due at `due` that runs at `to`; returns it.
    pub fn timer(&mut self, due: Time, to: Time) -> Time {
        self.pass(due.max(Time(to.0.saturating_sub(LATE.0))))
    }

    /// The session's time of a machine's timer.
    pub fn wake(&self, due: Time) -> Time {
        if due == Time::NEVER { due } else { self.epoch + due.since(Time::ZERO) }
    }
}

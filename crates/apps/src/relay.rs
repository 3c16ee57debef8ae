//! A relay: it forwards another flow's data and writes nothing itself.

use crate::application::{Action, Period};
use paceline_units::Time;

/// A relay of another flow's frames, within its period.
#[derive(Clone, Debug)]
pub struct Relay {
    period: Period,
    /// Whether it forwards an encoder's pictures.
    pictures: bool,
    begun: bool,
    stopped: bool,
}

impl Relay {
    /// A relay of an encoder's `pictures`, or of other frames.
    #[must_use]
    pub fn new(pictures: bool, period: Period) -> Relay {
        Relay { period, pictures, begun: false, stopped: false }
    }

    /// Whether it forwards an encoder's pictures.
    #[must_use]
    pub const fn has_pictures(&self) -> bool {
        self.pictures
    }

    /// See [`crate::Application::next_action`].
    pub fn next_action(&mut self, now: Time) -> Action {
        self.begun |= now >= self.period.start;
        if now >= self.period.stop && !self.stopped {
            self.stopped = true;
            return Action::Stop;
        }
        Action::Wait
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        let next = if self.begun { self.period.stop } else { self.period.start };
        (!self.stopped).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_wakes_to_begin_and_to_stop() {
        let mut relay = Relay::new(false, Period { start: Time(5), stop: Time(9) });
        assert_eq!(relay.next_wake(), Some(Time(5)));
        assert!(matches!(relay.next_action(Time(5)), Action::Wait));
        assert_eq!(relay.next_wake(), Some(Time(9)));
        assert!(matches!(relay.next_action(Time(9)), Action::Stop));
        assert_eq!(relay.next_wake(), None);
    }
}

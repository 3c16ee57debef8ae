//! A file transfer: greedy, of a given size or endless.

use crate::application::{Action, Period, Tally, Transfers};
use paceline_units::{Size, Time};

/// A transfer that begins at the period's start.
#[derive(Clone, Debug)]
pub struct Ftp {
    size: Option<Size>,
    period: Period,
    state: State,
    tally: Tally,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Sending,
    Over,
}

impl Ftp {
    /// A transfer of `size`; `None` is endless.
    #[must_use]
    pub fn new(size: Option<Size>, period: Period) -> Ftp {
        Ftp { size, period, state: State::Waiting, tally: Tally::default() }
    }

    /// See [`crate::Application::next_action`].
    pub fn next_action(&mut self, now: Time, acked: Size) -> Action {
        match (self.state, self.size) {
            (State::Over, _) => Action::Wait,
            (State::Waiting, size) if now >= self.period.start && now < self.period.stop => {
                self.state = State::Sending;
                self.tally.started();
                size.map_or(Action::Endless, Action::Send)
            }
            (State::Sending, Some(size)) if acked >= size => {
                self.state = State::Over;
                self.tally.completed(now, self.period.start);
                Action::Wait
            }
            _ if now >= self.period.stop => {
                self.state = State::Over;
                Action::Stop
            }
            _ => Action::Wait,
        }
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        match self.state {
            State::Waiting => Some(self.period.start),
            State::Sending if self.period.stop < Time::NEVER => Some(self.period.stop),
            State::Sending | State::Over => None,
        }
    }

    /// How it went; `None` if it is endless.
    #[must_use]
    pub fn transfers(&self) -> Option<Transfers> {
        self.size.map(|_| self.tally.read(self.tally.open()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::Span;

    const AT: fn(u64) -> Time = |s| Time(s * 1_000_000_000);

    #[test]
    fn endless_until_it_is_stopped() {
        let mut ftp = Ftp::new(None, Period { start: AT(1), stop: AT(5) });
        assert_eq!(ftp.next_wake(), Some(AT(1)));
        assert_eq!(ftp.next_action(AT(0), Size(0)), Action::Wait);
        assert_eq!(ftp.next_action(AT(1), Size(0)), Action::Endless);
        assert_eq!(ftp.next_wake(), Some(AT(5)));
        assert_eq!(ftp.next_action(AT(5), Size(9)), Action::Stop);
        assert_eq!((ftp.next_wake(), ftp.transfers()), (None, None));
    }

    #[test]
    fn a_sized_one_is_timed() {
        let mut ftp = Ftp::new(Some(Size(1000)), Period::from(AT(1)));
        assert_eq!(ftp.next_action(AT(1), Size(0)), Action::Send(Size(1000)));
        assert_eq!(ftp.next_action(AT(2), Size(999)), Action::Wait);
        let under_way = Transfers { started: 1, completed: 0, unfinished: 1, mean_time: None };
        assert_eq!(ftp.transfers(), Some(under_way));
        assert_eq!(ftp.next_action(AT(3), Size(1000)), Action::Wait);
        let done = Transfers { started: 1, completed: 1, unfinished: 0, mean_time: Some(Span::from_secs(2)) };
        assert_eq!(ftp.transfers(), Some(done));
    }
}

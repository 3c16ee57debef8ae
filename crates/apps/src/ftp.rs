//! A file transfer: greedy, of a given size or endless; an endless one may have periods with less to send.

use crate::application::{Action, Period, Tally, Transfers};
use crate::cbr::Cbr;
use paceline_units::{Rate, Size, Time};

/// A period in which a transfer has less to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// When.
    pub period: Period,
    /// The rate of new data meanwhile; `None`: no data.
    pub rate: Option<Rate>,
}

/// A transfer that begins at the period's start.
#[derive(Clone, Debug)]
pub struct Ftp {
    size: Option<Size>,
    period: Period,
    state: State,
    tally: Tally,
    /// The limited periods, disjoint, in reverse order.
    limited: Vec<Limited>,
    segment: Size,
}

#[derive(Clone, Debug)]
enum State {
    Waiting,
    Sending,
    /// In a limited period up to this instant, with the source of its data.
    Limited(Time, Option<Cbr>),
    /// All of it is acknowledged.
    Over,
    /// The stop came first.
    Cut,
}

impl Ftp {
    /// A transfer of `size`; `None` is endless.
    #[must_use]
    pub fn new(size: Option<Size>, period: Period) -> Ftp {
        Ftp { size, period, state: State::Waiting, tally: Tally::default(), limited: Vec::new(), segment: Size(1) }
    }

    /// Adds limited periods, in order and disjoint, in which an endless transfer has less to send, in whole segments.
    #[must_use]
    pub fn limited(mut self, mut times: Vec<Limited>, segment: Size) -> Ftp {
        times.reverse();
        (self.limited, self.segment) = (times, segment);
        self
    }

    /// See [`crate::Application::next_action`].
    pub fn next_action(&mut self, now: Time, acked: Size) -> Action {
        match (&mut self.state, self.size) {
            (State::Over | State::Cut, _) => Action::Wait,
            (State::Waiting, size) if now >= self.period.start && now < self.period.stop => {
                self.state = State::Sending;
                self.tally.started();
                match (size, self.limit(now)) {
                    (Some(size), _) => Action::Send(size),
                    (None, Action::Wait) => Action::Endless,
                    (None, limited) => limited,
                }
            }
            (State::Sending, Some(size)) if acked >= size => {
                self.state = State::Over;
                self.tally.completed(now, self.period.start);
                Action::Wait
            }
            _ if now >= self.period.stop => {
                self.state = State::Cut;
                Action::Stop
            }
            (State::Sending, None) => self.limit(now),
            (State::Limited(until, _), _) if now >= *until => {
                self.state = State::Sending;
                match self.limit(now) {
                    Action::Wait => Action::Endless,
                    next => next, // another limited period follows at once
                }
            }
            (State::Limited(_, Some(source)), _) => source.next_action(now),
            _ => Action::Wait,
        }
    }

    /// Enters a limited period, if one has begun.
    fn limit(&mut self, now: Time) -> Action {
        while self.limited.last().is_some_and(|next| next.period.stop <= now) {
            self.limited.pop();
        }
        let Some(&Limited { period, rate }) = self.limited.last().filter(|next| next.period.start <= now) else {
            return Action::Wait;
        };
        self.limited.pop();
        let source = rate.map(|rate| Cbr::new(rate, self.segment, period));
        self.state = State::Limited(period.stop, source);
        Action::Withdraw
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        let next = match &self.state {
            State::Waiting => return Some(self.period.start),
            State::Over | State::Cut => return None,
            State::Sending => self.limited.last().map_or(Time::NEVER, |next| next.period.start),
            State::Limited(until, source) => {
                source.as_ref().and_then(Cbr::next_wake).map_or(*until, |due| due.min(*until))
            }
        };
        Some(next.min(self.period.stop)).filter(|&at| at < Time::NEVER)
    }

    /// See [`crate::Application::is_over`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Its statistics; `None` if it is endless.
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
        let under_way = Transfers { started: 1, completed: 0, unfinished: 1, ..Transfers::default() };
        assert_eq!(ftp.transfers(), Some(under_way));
        assert_eq!(ftp.next_action(AT(3), Size(1000)), Action::Wait);
        let mean_time = Some(Span::from_secs(2));
        let done = Transfers { started: 1, completed: 1, unfinished: 0, mean_time, ..Transfers::default() };
        assert_eq!(ftp.transfers(), Some(done));
    }

    #[test]
    fn has_less_to_send_for_a_time() {
        let limited = vec![
            Limited { period: Period { start: AT(2), stop: AT(4) }, rate: Some(Rate(8_000)) },
            Limited { period: Period { start: AT(5), stop: AT(6) }, rate: None },
            Limited { period: Period { start: AT(6), stop: AT(7) }, rate: None },
        ];
        let mut ftp = Ftp::new(None, Period { start: AT(1), stop: AT(9) }).limited(limited, Size(1000));
        let mut done = Vec::new();
        while let Some(now) = ftp.next_wake() {
            loop {
                match ftp.next_action(now, Size(0)) {
                    Action::Wait => break,
                    action => done.push((now.0 / 1_000_000_000, action)),
                }
                if done.last().is_some_and(|(_, action)| *action == Action::Stop) {
                    break;
                }
            }
        }
        let (less, send) = (Action::Withdraw, Action::Send(Size(1000)));
        let expected = [
            (1, Action::Endless),
            (2, less),
            (2, send),
            (3, send),
            (4, Action::Endless),
            (5, less),
            (6, less),
            (7, Action::Endless),
            (9, Action::Stop),
        ];
        assert_eq!(done, expected);
    }

    #[test]
    fn begins_within_a_limited_time_or_after_it() {
        let pause = vec![Limited { period: Period { start: AT(1), stop: AT(3) }, rate: None }];
        let mut within = Ftp::new(None, Period::from(AT(2))).limited(pause.clone(), Size(1000));
        assert_eq!(within.next_action(AT(2), Size(0)), Action::Withdraw);
        assert_eq!((within.next_action(AT(2), Size(0)), within.next_wake()), (Action::Wait, Some(AT(3))));
        assert_eq!(within.next_action(AT(3), Size(0)), Action::Endless);
        let mut after = Ftp::new(None, Period::from(AT(4))).limited(pause, Size(1000));
        assert_eq!(after.next_action(AT(4), Size(0)), Action::Endless);
        assert_eq!((after.next_action(AT(4), Size(0)), after.next_wake()), (Action::Wait, None));
    }
}

//! Constant bit rate: equal packets at equal intervals, the first at once.

use crate::application::{Action, Period};
use paceline_units::{Rate, Size, Time};

/// A constant bit rate source.
#[derive(Clone, Debug)]
pub struct Cbr {
    rate: Rate,
    packet: Size,
    period: Period,
    /// Packets written.
    written: u64,
    stopped: bool,
}

impl Cbr {
    /// A source of `rate` payload within `period`, written in pieces of `packet`.
    #[must_use]
    pub fn new(rate: Rate, packet: Size, period: Period) -> Cbr {
        Cbr { rate, packet, period, written: 0, stopped: false }
    }

    /// The payload rate in bit/s, and the size of each write.
    pub(crate) fn pace(&self) -> (f64, Size) {
        (self.rate.bps(), self.packet)
    }

    /// When the next packet is due: computed from the start, so that rounding does not accumulate.
    fn due(&self) -> Time {
        let bits = u128::from(self.packet.bytes()) * 8 * u128::from(self.written);
        let after = bits * 1_000_000_000 / u128::from(self.rate.0.max(1));
        Time(self.period.start.0.saturating_add(u64::try_from(after).unwrap_or(u64::MAX)))
    }

    /// See [`crate::Application::next_action`].
    pub fn next_action(&mut self, now: Time) -> Action {
        if self.stopped {
            return Action::Wait;
        }
        if now >= self.period.stop {
            self.stopped = true;
            return Action::Stop;
        }
        if now < self.due() {
            return Action::Wait;
        }
        self.written += 1;
        Action::Send(self.packet)
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        (!self.stopped).then(|| self.due().min(self.period.stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_lie_at_equal_distances_from_the_start_to_the_stop() {
        // 1000 bytes at 3 Mbit/s: 2 666 666.67 ns apart
        let period = Period { start: Time(500), stop: Time(500 + 1_000_000_000) };
        let mut cbr = Cbr::new(Rate(3_000_000), Size(1000), period);
        let mut times = Vec::new();
        while let Some(now) = cbr.next_wake() {
            match cbr.next_action(now) {
                Action::Send(size) => times.push((now.0, size.bytes())),
                other => assert_eq!(other, Action::Stop),
            }
        }
        assert_eq!(times.len(), 375);
        assert_eq!((times[0], times[1]), ((500, 1000), (2_667_166, 1000)));
        assert_eq!(times[300].0, 500 + 800_000_000);
        assert_eq!(cbr.next_action(Time(2_000_000_000)), Action::Wait);
    }

    #[test]
    fn what_is_asked_late_comes_at_once_and_in_full() {
        let mut cbr = Cbr::new(Rate(8_000), Size(100), Period::from(Time::ZERO));
        let late = Time(350_000_000);
        let sent = (0..10).filter(|_| cbr.next_action(late) == Action::Send(Size(100))).count();
        assert_eq!((sent, cbr.next_wake()), (4, Some(Time(400_000_000))));
    }
}

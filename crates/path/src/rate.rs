//! A link's rate, and the servers that evaluate it: the start and end of each packet's transmission.

use crate::opportunities::{Delivery, Opportunities};
use crate::schedule::{Schedule, Stepped};
use paceline_units::{Rate, Span, Time};

/// A link's rate over time.
#[derive(Clone, PartialEq, Debug)]
pub enum RateModel {
    /// Constant; above zero.
    Constant(Rate),
    /// Steps in time.
    Schedule(Schedule),
    /// Instants at which a number of bytes can leave; nothing leaves between them.
    Opportunities(Opportunities),
}

impl RateModel {
    /// A single representative rate: the constant rate; the mean of a repeating schedule or trace; the first nonzero
    /// rate of a schedule that does not repeat. Zero if it never sends.
    #[must_use]
    pub fn nominal(&self) -> Rate {
        match self {
            RateModel::Constant(rate) => *rate,
            RateModel::Schedule(schedule) => schedule.nominal(),
            RateModel::Opportunities(opportunities) => opportunities.mean(),
        }
    }

    /// Its rates with their start times: the first starts at zero, the last has no end. If it repeats, the mean.
    #[must_use]
    pub fn steps(&self) -> Vec<(Time, Rate)> {
        match self {
            RateModel::Schedule(schedule) if schedule.period().is_none() => schedule.steps().collect(),
            _ => vec![(Time::ZERO, self.nominal())],
        }
    }

    /// The highest rate: the constant rate; the highest step of a schedule; for opportunities the most within a
    /// millisecond, which is the resolution of their traces.
    #[must_use]
    pub fn peak(&self) -> Rate {
        match self {
            RateModel::Constant(rate) => *rate,
            RateModel::Schedule(schedule) => schedule.steps().map(|(_, rate)| rate).max().unwrap_or(Rate(0)),
            RateModel::Opportunities(opportunities) => opportunities.peak(),
        }
    }
}

/// Why a rate over time is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RateError {
    /// There are no entries.
    #[error("it has no entries")]
    Empty,
    /// The first step of a schedule does not begin at zero.
    #[error("its first entry must be at 0 s, not at {0}")]
    LateStart(Time),
    /// An entry is not later than the one before it (for opportunities: it is earlier).
    #[error("the entry at {0} must come after the one at {1}")]
    Disorder(Time, Time),
    /// A rate exceeds [`Schedule::MAX_RATE`].
    #[error("{0} is more than {max}, the highest rate of a schedule", max = Schedule::MAX_RATE)]
    TooFast(Rate),
    /// It repeats, but carries nothing.
    #[error("it repeats without ever carrying anything")]
    Idle,
    /// Its period is zero, or not longer than its last entry.
    #[error("it must repeat later than its last entry, at {0}")]
    ShortPeriod(Time),
}

/// A server of constant rate. Instants are fixed point, 64 bits of nanoseconds and 64 of fraction, so that no rounding
/// accumulates over the packets of a busy period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constant {
    free: u64,
    fraction: u64,
    /// Nanoseconds and fraction.
    per_byte: (u64, u64),
}

impl Constant {
    /// # Panics
    /// If the rate is zero.
    pub(crate) fn new(rate: Rate) -> Constant {
        assert!(rate.0 > 0, "a constant rate must not be zero");
        // At most 2^97; times a size below 2^16 it stays below 2^113. Rounded up, so that a whole number of nanoseconds
        // stays whole (1000 bytes at 10 Mbit/s) instead of falling short.
        let per_byte = (8_000_000_000u128 << 64).div_ceil(u128::from(rate.0));
        Constant { free: 0, fraction: 0, per_byte: ((per_byte >> 64) as u64, per_byte as u64) }
    }

    /// When everything admitted so far has been sent.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// Sends `size` bytes available at `now`; returns start and end of the transmission.
    #[inline]
    pub(crate) fn serve(&mut self, now: u64, size: u16) -> (u64, u64) {
        if self.per_byte.1 == 0 {
            self.free = self.free.max(now);
        } else if self.free < now {
            // Idle since an earlier nanosecond; otherwise free at a fraction of this one or later.
            (self.free, self.fraction) = (now, 0);
        }
        (self.free, self.append(size))
    }

    /// As [`Constant::serve`] for a packet that must wait: the end of its transmission, which starts at `free`.
    #[inline(always)]
    pub(crate) fn append(&mut self, size: u16) -> u64 {
        let mut span = Span(self.per_byte.0 * u64::from(size));
        // At most rates a byte takes a whole number of nanoseconds, and then no instant has a fraction.
        if self.per_byte.1 != 0 {
            let fraction = u128::from(self.per_byte.1) * u128::from(size) + u128::from(self.fraction);
            self.fraction = fraction as u64;
            span.0 += (fraction >> 64) as u64;
        }
        self.free = (Time(self.free) + span).0;
        self.free
    }
}

/// A server of any rate model.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    Constant(Constant),
    Stepped(Box<Stepped>),
    Delivery(Box<Delivery>),
}

impl Server {
    /// # Panics
    /// If a constant rate is zero.
    pub(crate) fn new(rate: &RateModel) -> Server {
        match rate {
            RateModel::Constant(rate) => Server::Constant(Constant::new(*rate)),
            RateModel::Schedule(schedule) => Server::Stepped(Box::new(Stepped::new(schedule.clone()))),
            RateModel::Opportunities(all) => Server::Delivery(Box::new(Delivery::new(all.clone()))),
        }
    }

    /// When everything admitted so far has been sent; `u64::MAX`: never.
    #[inline]
    pub(crate) fn free(&self) -> u64 {
        match self {
            Server::Constant(server) => server.free(),
            Server::Stepped(server) => server.free(),
            Server::Delivery(server) => server.free(),
        }
    }

    /// Whether a packet that arrives at `now` must wait.
    #[inline]
    pub(crate) fn is_busy(&self, now: u64) -> bool {
        match self {
            Server::Constant(server) => server.free() > now,
            Server::Stepped(server) => server.free() > now,
            Server::Delivery(_) => true,
        }
    }

    /// When the transmission of a packet available at `now` would begin; `u64::MAX`: never.
    #[inline]
    pub(crate) fn ready(&mut self, now: u64) -> u64 {
        match self {
            Server::Constant(server) => server.free().max(now),
            Server::Stepped(server) => server.free().max(now),
            Server::Delivery(server) => server.ready(now),
        }
    }

    /// The latest arrival that can be in transmission from `start` on: at an opportunity, arrivals before it.
    #[inline]
    pub(crate) fn latest(&self, start: u64) -> u64 {
        match self {
            Server::Constant(_) | Server::Stepped(_) => start,
            Server::Delivery(_) => start.saturating_sub(1),
        }
    }

    /// Sends `size` bytes available at `now`; returns start and end of the transmission, each `u64::MAX` for never.
    #[inline]
    pub(crate) fn serve(&mut self, now: u64, size: u16) -> (u64, u64) {
        match self {
            Server::Constant(server) => server.serve(now, size),
            Server::Stepped(server) => server.serve(now, size),
            Server::Delivery(server) => server.serve(now, size),
        }
    }

    /// The bytes that it can carry in `[from, to)`; `None` for a constant rate, whose utilisation is measured by time
    /// alone.
    pub(crate) fn capacity(&self, from: u64, to: u64) -> Option<u128> {
        match self {
            Server::Constant(_) => None,
            Server::Stepped(server) => Some(server.schedule().capacity(from, to)),
            Server::Delivery(server) => Some(server.opportunities().capacity(from, to)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_packets_do_not_drift() {
        let mut server = Constant::new(Rate(3_700_000));
        for _ in 0..1_000_000 {
            server.serve(0, 1000);
        }
        assert_eq!(server.free(), (8_000_000_000u128 * 1_000_000_000 / 3_700_000) as u64);
    }

    #[test]
    fn round_numbers_stay_round() {
        for (rate, size, span) in [(10_000_000, 1000, 800_000), (3_700_000, 37, 80_000), (3, 3, 8_000_000_000)] {
            assert_eq!(Constant::new(Rate(rate)).serve(0, size).1, span);
        }
    }

    #[test]
    fn the_peak_of_what_varies() {
        let steps = [(Time(0), Rate(5_000_000)), (Time(10), Rate(20_000_000)), (Time(20), Rate(0))];
        let schedule = Schedule::new(&steps, None).expect("a schedule");
        assert_eq!(RateModel::Schedule(schedule).peak(), Rate(20_000_000));
        assert_eq!(RateModel::Constant(Rate(7)).peak(), Rate(7));
        // three in the second millisecond, one in the fifth
        let times = [1_000_000, 1_000_000, 1_400_000, 4_000_000, 9_000_000].map(Time);
        let trace = Opportunities::new(times, Opportunities::BYTES).expect("a trace");
        assert_eq!(RateModel::Opportunities(trace).peak(), Rate(36_000_000));
    }

    #[test]
    fn what_is_never_stays_so() {
        let mut server = Constant::new(Rate(1));
        assert_eq!(server.serve(u64::MAX, u16::MAX).1, u64::MAX);
        assert_eq!(server.serve(5, 1).1, u64::MAX);
    }
}

//! A rate that changes in steps.
//!
//! A transmission ends when the capacity since its start reaches its size. Arithmetic is exact: in a nanosecond, a rate
//! of r bit/s carries r units of 10^-9 bit. What a transmission uses of the nanosecond in which it ends is subtracted
//! for the next one.

use crate::RateError;
use paceline_units::{Rate, Span, Time};
use std::sync::Arc;

/// A byte in units of 10^-9 bit.
const BYTE: u64 = 8_000_000_000;

/// A rate that changes in steps. During a step of rate zero, packets wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    steps: Arc<[(u64, u64)]>,
    /// In nanoseconds; zero: the last step has no end.
    period: u64,
    /// The capacity of a period, in 10^-9 bits.
    per_period: u128,
}

impl Schedule {
    /// The highest rate of a step.
    pub const MAX_RATE: Rate = Rate(10_000_000_000_000);

    /// A schedule from its steps. Each rate holds until the next step; the last one for ever, or until the schedule
    /// repeats after `period`. If the rate stays at zero, packets are held for ever.
    ///
    /// # Errors
    /// If there is no step, the first is not at zero, a step is not later than the one before, a rate exceeds
    /// [`Schedule::MAX_RATE`], the period is not longer than the last step's time, or it carries nothing.
    pub fn new(steps: &[(Time, Rate)], period: Option<Span>) -> Result<Schedule, RateError> {
        let &(first, _) = steps.first().ok_or(RateError::Empty)?;
        if first > Time::ZERO {
            return Err(RateError::LateStart(first));
        }
        if let Some(pair) = steps.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(RateError::Disorder(pair[1].0, pair[0].0));
        }
        if let Some(&(_, rate)) = steps.iter().find(|(_, rate)| *rate > Schedule::MAX_RATE) {
            return Err(RateError::TooFast(rate));
        }
        let steps: Arc<[(u64, u64)]> = steps.iter().map(|(at, rate)| (at.0, rate.0)).collect();
        let mut schedule = Schedule { steps, period: 0, per_period: 0 };
        if let Some(period) = period {
            let last = schedule.steps[schedule.steps.len() - 1].0;
            if period.0 <= last {
                return Err(RateError::ShortPeriod(Time(last)));
            }
            schedule.per_period = schedule.carried(period.0);
            if schedule.per_period == 0 {
                return Err(RateError::Idle);
            }
            schedule.period = period.0;
        }
        Ok(schedule)
    }

    /// The mean rate if it repeats, else the first nonzero rate.
    #[must_use]
    pub fn nominal(&self) -> Rate {
        if self.period > 0 {
            return Rate((self.per_period / u128::from(self.period)) as u64);
        }
        Rate(self.steps.iter().map(|step| step.1).find(|&rate| rate > 0).unwrap_or(0))
    }

    /// The period, if it repeats.
    #[must_use]
    pub fn period(&self) -> Option<Span> {
        (self.period > 0).then_some(Span(self.period))
    }

    /// The instants and rates of one period.
    pub fn steps(&self) -> impl Iterator<Item = (Time, Rate)> + '_ {
        self.steps.iter().map(|&(at, rate)| (Time(at), Rate(rate)))
    }

    /// The capacity from zero to `time`, in 10^-9 bits.
    fn carried(&self, time: u64) -> u128 {
        let whole = time.checked_div(self.period).unwrap_or(0);
        let rest = time - whole * self.period;
        let mut sum = u128::from(whole) * self.per_period;
        for (i, &(at, rate)) in self.steps.iter().enumerate() {
            let end = self.steps.get(i + 1).map_or(u64::MAX, |next| next.0).min(rest);
            sum += u128::from(end.saturating_sub(at)) * u128::from(rate);
        }
        sum
    }

    /// The capacity in bytes of `[from, to)`.
    pub(crate) fn capacity(&self, from: u64, to: u64) -> u128 {
        (self.carried(to) - self.carried(from)) / u128::from(BYTE)
    }
}

/// A server whose rate follows a schedule.
#[derive(Clone, Debug)]
pub(crate) struct Stepped {
    schedule: Schedule,
    /// The step in which `free` lies, and the start of its period.
    step: usize,
    base: u64,
    /// When everything has been sent, rounded down, and how much of that nanosecond is used (10^-9 bits, less than the
    /// rate).
    free: u64,
    used: u64,
}

impl Stepped {
    pub(crate) fn new(schedule: Schedule) -> Stepped {
        Stepped { schedule, step: 0, base: 0, free: 0, used: 0 }
    }

    pub(crate) fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    #[inline]
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// When the current step ends; `u64::MAX`: never.
    #[inline]
    fn step_end(&self) -> u64 {
        match self.schedule.steps.get(self.step + 1) {
            Some(&(at, _)) => self.base.saturating_add(at),
            None if self.schedule.period == 0 => u64::MAX,
            None => self.base.saturating_add(self.schedule.period),
        }
    }

    /// Moves to the next step.
    fn advance(&mut self) {
        self.step += 1;
        if self.step == self.schedule.steps.len() {
            self.step = 0;
            self.base = self.base.saturating_add(self.schedule.period);
        }
    }

    /// Moves to the step in which `now` lies.
    fn seek(&mut self, now: u64) {
        if now < self.step_end() {
            return;
        }
        if let Some(periods) = (now - self.base).checked_div(self.schedule.period) {
            self.base += periods * self.schedule.period;
        }
        let position = now - self.base;
        self.step = self.schedule.steps.partition_point(|&(at, _)| at <= position) - 1;
    }

    /// The rate at `now`, for a user that sends nothing; calls must come in order of time.
    pub(crate) fn rate(&mut self, now: u64) -> Rate {
        self.seek(now);
        Rate(self.schedule.steps[self.step].1)
    }

    pub(crate) fn serve(&mut self, now: u64, size: u16) -> (u64, u64) {
        if self.free < now {
            self.seek(now);
            (self.free, self.used) = (now, 0);
        }
        let start = self.free;
        if start == u64::MAX {
            return (start, start);
        }
        // Below 2^50: a size is below 2^16, a rate below 2^44.
        let mut need = u64::from(size) * BYTE + self.used;
        loop {
            let (rate, end) = (self.schedule.steps[self.step].1, self.step_end());
            let step_capacity = u128::from(end - self.free) * u128::from(rate);
            if u128::from(need) < step_capacity {
                (self.free, self.used) = (self.free + need / rate, need % rate);
                return (start, self.free);
            }
            (self.free, self.used) = (end, 0);
            if end == u64::MAX {
                return (start, end);
            }
            need -= step_capacity as u64;
            self.advance();
            if need == 0 {
                return (start, end);
            }
            // Skip whole periods at once, so that a schedule of tiny capacity costs no more than one pass over it.
            let per_period = self.schedule.per_period;
            if self.step == 0 && per_period > 0 && u128::from(need) > per_period {
                let periods = (need - 1) / per_period as u64;
                need -= periods * per_period as u64;
                self.base = self.base.saturating_add(periods.saturating_mul(self.schedule.period));
                self.free = self.base;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(steps: &[(u64, u64)], period: Option<u64>) -> Result<Schedule, RateError> {
        let steps: Vec<_> = steps.iter().map(|&(at, rate)| (Time(at * 1_000_000), Rate(rate))).collect();
        Schedule::new(&steps, period.map(Span::from_millis))
    }

    #[test]
    fn crosses_steps_and_waits_out_zero() {
        // 1000 bytes take 1 ms at 8 Mbit/s: half of it from 0.5 ms, nothing until 10 ms, the rest at 4 Mbit/s.
        let mut server = Stepped::new(schedule(&[(0, 8_000_000), (1, 0), (10, 4_000_000)], None).unwrap());
        assert_eq!(server.serve(500_000, 1000), (500_000, 11_000_000));
        assert_eq!(server.serve(500_000, 1000), (11_000_000, 13_000_000));
        assert_eq!(server.serve(20_000_000, 500), (20_000_000, 21_000_000));
    }

    #[test]
    fn keeps_the_remainder() {
        let mut server = Stepped::new(schedule(&[(0, 3_700_000)], None).unwrap());
        for _ in 0..1_000_000 {
            server.serve(0, 1000);
        }
        assert_eq!(server.free(), (8_000_000_000u128 * 1_000_000_000 / 3_700_000) as u64);
    }

    #[test]
    fn zero_for_ever_holds_for_ever() {
        let mut server = Stepped::new(schedule(&[(0, 8_000_000), (1, 0)], None).unwrap());
        assert_eq!(server.serve(0, 500), (0, 500_000));
        assert_eq!(server.serve(0, 1000), (500_000, u64::MAX));
        assert_eq!(server.serve(5, 1), (u64::MAX, u64::MAX));
    }

    #[test]
    fn repeats() {
        // 1000 bytes in each 10 ms, from the third millisecond.
        let model = schedule(&[(0, 0), (2, 8_000_000), (3, 0)], Some(10)).unwrap();
        assert_eq!(model.nominal(), Rate(800_000));
        assert_eq!(model.capacity(0, 35_000_000), 4000);
        let mut server = Stepped::new(model);
        assert_eq!(server.serve(0, 60_000), (0, 593_000_000));
        assert_eq!(server.serve(0, 1), (593_000_000, 602_001_000));
        assert_eq!(server.serve(1_002_500_000, 1000), (1_002_500_000, 1_012_500_000));
    }

    #[test]
    fn a_tiny_capacity_is_no_long_walk() {
        // One bit in 1000 s.
        let steps: Vec<_> = (0..1000).map(|i| (Time(i * 1_000_000_000), Rate(u64::from(i == 0)))).collect();
        let mut server = Stepped::new(Schedule::new(&steps, Some(Span::from_secs(1000))).unwrap());
        assert_eq!(server.serve(0, 65_000).1, (65_000 * 8 - 1) * 1_000_000_000_000 + 1_000_000_000);
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        assert_eq!(schedule(&[], None), Err(RateError::Empty));
        assert!(matches!(schedule(&[(1, 1)], None), Err(RateError::LateStart(_))));
        assert!(matches!(schedule(&[(0, 1), (5, 1), (5, 2)], None), Err(RateError::Disorder(..))));
        assert!(matches!(schedule(&[(0, 1 << 60)], None), Err(RateError::TooFast(_))));
        assert!(matches!(schedule(&[(0, 1), (5, 2)], Some(5)), Err(RateError::ShortPeriod(_))));
        assert_eq!(schedule(&[(0, 0), (5, 0)], Some(6)), Err(RateError::Idle));
        assert!(schedule(&[(0, 0)], None).is_ok());
    }
}

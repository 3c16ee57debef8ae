//! The sending rate as ns-2.35 computes it (`Agent/TFRC` with its defaults).
//!
//! Differences from RFC 5348: the first packets are sent at 300 B/s; in slow start the rate doubles at most once per
//! round trip, up to twice the receive rate, and ramps to its new value packet by packet; after slow start, an increase
//! is limited to one packet per round trip for each round trip since the last change; the rate never exceeds twice the
//! last receive rate.

use super::equation::{Equation, Terms};
use super::{Interval, TfrcReport};
use crate::models::LossRate;
use paceline_units::Time;

/// `MAXRATE`: the maximum of the equation, in bytes per second.
const MAX_RATE: f64 = 25e6;

/// `InitRate_`, in bytes per second.
const INITIAL_RATE: f64 = 300.0;

/// Rates closer than this are equal, in bytes per second.
const NEGLIGIBLE: f64 = 1e-7;

/// RFC 3390 as in ns-2 (`rate_init_option_` 2): segments in the first round trip.
fn initial_segments(segment: f64) -> f64 {
    if segment <= 1095.0 {
        4.0
    } else if segment < 2190.0 {
        3.0
    } else {
        2.0
    }
}

/// ns-2's state; rates in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct Ns2 {
    rate: f64,
    /// The ramp to [`Ns2::rate`] in slow start, and its step per packet.
    ramp: f64,
    step: f64,
    /// The rate that spaces the next packet from the last.
    pace: f64,
    slow_start: bool,
    /// Reports and expiries of the nofeedback timer so far (`round_id`).
    rounds: u64,
    changed: Time,
    reported: bool,
}

impl Ns2 {
    pub(super) fn new() -> Ns2 {
        Ns2 {
            rate: INITIAL_RATE,
            ramp: INITIAL_RATE,
            step: 0.0,
            pace: INITIAL_RATE,
            slow_start: true,
            rounds: 0,
            changed: Time::ZERO,
            reported: false,
        }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    #[inline]
    pub(super) fn pacing(&self) -> f64 {
        self.pace
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.slow_start
    }

    /// A packet was sent: sets the rate for the next one.
    #[inline]
    pub(super) fn sent(&mut self, damping: f64) {
        self.pace = if self.slow_start && self.rounds > 2 && self.ramp + NEGLIGIBLE < self.rate {
            self.ramp += self.step;
            self.ramp
        } else {
            self.rate * damping
        };
    }

    pub(super) fn report(&mut self, report: &TfrcReport, now: Time, terms: &Terms, equation: &impl Equation) {
        self.rounds += 1;
        let p = report.loss_event_rate;
        let limit = if self.rounds > 1 { 2.0 * report.receive_rate } else { 0.0 };
        let fair = LossRate::new(p).map_or(MAX_RATE, |p| equation.rate(p, terms).min(MAX_RATE));
        let per_round = terms.segment() / terms.rtt();
        if !self.reported {
            self.reported = true;
            self.slow_start(report, limit, now, terms);
        } else if self.slow_start && p > 0.0 {
            self.slow_start = false;
            self.rate = fair;
            self.ramp = fair;
        } else if self.slow_start {
            self.slow_start(report, limit, now, terms);
        } else {
            let floor = match report.interval {
                Interval::DataLimited if fair > self.rate => initial_segments(terms.segment()) * per_round,
                _ => per_round,
            };
            let max = limit.max(floor);
            if fair > self.rate {
                let rounds = (now.since(self.changed).as_secs_f64() / terms.rtt()).min(2.0);
                self.rate = (self.rate + per_round * rounds).min(max.min(fair));
            } else {
                self.rate = fair.min(max);
            }
            self.changed = now;
        }
    }

    fn slow_start(&mut self, report: &TfrcReport, limit: f64, now: Time, terms: &Terms) {
        let per_round = terms.segment() / terms.rtt();
        let initial = initial_segments(terms.segment()) * per_round;
        let from = self.rate;
        if self.rounds <= 2 || report.interval == Interval::DataLimited && limit > 0.0 && limit < initial {
            self.rate = self.rate.max(initial);
        } else if limit <= 0.0 {
            self.rate = per_round;
        } else if self.rate < limit && now.since(self.changed).as_secs_f64() > terms.rtt() {
            self.rate = (2.0 * self.rate).min(limit).max(per_round);
        } else if self.rate > limit {
            self.rate = limit / 2.0;
            self.ramp = self.rate;
            self.step = 0.0;
            self.changed = now;
            return;
        } else {
            return;
        }
        self.ramp = from;
        // one step per packet of a round trip
        self.step = if limit <= 0.0 && self.rounds > 2 { 0.0 } else { (self.rate - from) / (self.rate / per_round) };
        self.changed = now;
    }

    pub(super) fn no_feedback(&mut self, interval: Interval, segment: f64, rtt: f64) {
        self.rounds += 1;
        let initial = initial_segments(segment) * segment / rtt;
        if interval == Interval::Used || self.rate > 2.0 * initial {
            self.rate /= 2.0;
        } else if self.rate > initial {
            self.rate = initial;
        }
    }
}

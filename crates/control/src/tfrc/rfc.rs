//! The allowed sending rate of RFC 5348 section 4, and where RFC 3448 section 4 differs.

use super::equation::{Equation, Terms};
use super::{Interval, MAX_BACKOFF, TfrcReport};
use crate::models::LossRate;
use paceline_units::{Span, Time};

/// Which RFC to follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    Rfc5348,
    Rfc3448,
}

/// The receive rates of the last two round-trip times (X_recv_set, RFC 5348 sections 4.3 and 8.2.2).
///
/// The RFC expects three entries to be enough; a report for each loss event adds a few more. If a peer sends still
/// more, the oldest is dropped, which can only lower the limit.
#[derive(Clone, Copy, Debug)]
struct ReceiveRates {
    entries: [(Time, f64); ReceiveRates::CAPACITY],
    count: usize,
}

impl ReceiveRates {
    const CAPACITY: usize = 8;

    fn only(at: Time, rate: f64) -> ReceiveRates {
        ReceiveRates { entries: [(at, rate); ReceiveRates::CAPACITY], count: 1 }
    }

    fn max(&self) -> f64 {
        self.entries[..self.count].iter().fold(0.0, |max: f64, &(_, rate)| max.max(rate))
    }

    fn add(&mut self, at: Time, rate: f64) {
        if self.count == ReceiveRates::CAPACITY {
            self.entries.copy_within(1.., 0);
            self.count -= 1;
        }
        self.entries[self.count] = (at, rate);
        self.count += 1;
    }

    /// "Update X_recv_set": drops entries older than two round-trip times.
    fn update(&mut self, now: Time, rate: f64, rtt: Span) {
        self.add(now, rate);
        let mut kept = 0;
        for i in 0..self.count {
            if now.since(self.entries[i].0) <= rtt * 2 {
                self.entries[kept] = self.entries[i];
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// "Maximize X_recv_set": keeps only the largest entry, dated now; the initial infinity is not a measurement.
    fn maximize(&mut self, now: Time, rate: f64) {
        let max_rate = self.entries[..self.count].iter().map(|e| e.1).filter(|r| r.is_finite()).fold(rate, f64::max);
        *self = ReceiveRates::only(now, max_rate);
    }

    fn halve(&mut self) {
        for entry in &mut self.entries[..self.count] {
            entry.1 /= 2.0;
        }
    }
}

/// The RFCs' state; rates in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct Rfc {
    version: Version,
    /// X.
    rate: f64,
    /// X_Bps at the last report with losses.
    equation_rate: f64,
    /// p at the last report.
    p: f64,
    /// When the rate was last doubled in slow start (tld); `None` before the first report.
    doubled: Option<Time>,
    received: ReceiveRates,
    /// The clock's limit: one packet per nanosecond.
    max_rate: f64,
}

/// RFC 5348 section 4.2: W_init in bytes.
fn initial_window(segment: f64) -> f64 {
    (4.0 * segment).min((2.0 * segment).max(4380.0))
}

impl Rfc {
    pub(super) fn new(version: Version) -> Rfc {
        Rfc {
            version,
            rate: 0.0,
            equation_rate: f64::INFINITY,
            p: 0.0,
            doubled: None,
            received: ReceiveRates::only(Time::ZERO, f64::INFINITY),
            max_rate: f64::INFINITY,
        }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.p == 0.0
    }

    /// Section 4.2: one packet per second.
    pub(super) fn start(&mut self, segment: f64) {
        self.rate = segment;
    }

    /// Sections 4.2 and 4.3, step 4.
    pub(super) fn report(&mut self, report: &TfrcReport, now: Time, terms: &Terms, equation: &impl Equation) {
        self.max_rate = terms.segment() * 1e9;
        let p = report.loss_event_rate;
        let rose = p > self.p;
        self.p = p;
        self.equation_rate = LossRate::new(p).map_or(f64::INFINITY, |p| equation.rate(p, terms));
        if self.version == Version::Rfc5348 && self.doubled.is_none() {
            // section 4.2; a first report that already has losses must not start above the equation's rate
            self.doubled = Some(now);
            self.received = ReceiveRates::only(now, f64::INFINITY);
            self.set((initial_window(terms.segment()) / terms.rtt()).min(self.equation_rate), terms.segment());
            return;
        }
        let limit = match self.version {
            Version::Rfc3448 => {
                self.received = ReceiveRates::only(now, report.receive_rate);
                2.0 * report.receive_rate
            }
            Version::Rfc5348 => match report.interval {
                // "the sender does not consider that the entire interval ... was a data-limited interval"
                _ if report.receive_rate == 0.0 => self.update(now, 0.0, terms.rtt()),
                Interval::DataLimited if rose => {
                    self.received.halve();
                    self.received.maximize(now, 0.85 * report.receive_rate);
                    self.received.max()
                }
                Interval::DataLimited => {
                    self.received.maximize(now, report.receive_rate);
                    2.0 * self.received.max()
                }
                Interval::Used => self.update(now, report.receive_rate, terms.rtt()),
            },
        };
        self.allow(limit, now, terms.segment(), terms.rtt());
    }

    /// The limit after an interval that was not data-limited.
    fn update(&mut self, now: Time, receive_rate: f64, rtt: f64) -> f64 {
        self.received.update(now, receive_rate, Span::from_secs_f64(rtt));
        2.0 * self.received.max()
    }

    /// Section 4.3 step 4 from "If (p > 0)" on.
    fn allow(&mut self, limit: f64, now: Time, segment: f64, rtt: f64) {
        if self.p > 0.0 {
            self.set(self.equation_rate.min(limit), segment);
            return;
        }
        let due = self.doubled.is_none_or(|at| now.since(at).as_secs_f64() >= rtt);
        if due {
            let min = match self.version {
                Version::Rfc5348 => initial_window(segment) / rtt,
                Version::Rfc3448 => segment / rtt,
            };
            self.set((2.0 * self.rate).min(limit).max(min), segment);
            self.doubled = Some(now);
        }
    }

    fn set(&mut self, rate: f64, segment: f64) {
        self.rate = rate.max(segment / MAX_BACKOFF).min(self.max_rate);
    }

    /// Section 4.4: the nofeedback timer has expired.
    pub(super) fn no_feedback(&mut self, interval: Interval, now: Time, segment: f64, rtt: f64) {
        let idle = interval == Interval::DataLimited;
        if rtt <= 0.0 || self.doubled.is_none() {
            if !idle {
                self.set(self.rate / 2.0, segment);
            }
            return;
        }
        match self.version {
            Version::Rfc5348 => {
                let recover = initial_window(segment) / rtt;
                let received = self.received.max();
                if idle && (self.p > 0.0 && received < recover || self.p == 0.0 && self.rate < 2.0 * recover) {
                    // an idle sender keeps the rate with which it may restart
                } else if self.p == 0.0 {
                    self.set(self.rate / 2.0, segment);
                } else if self.equation_rate > 2.0 * received {
                    self.limit_to(received, now, segment);
                } else {
                    self.limit_to(self.equation_rate / 2.0, now, segment);
                }
            }
            Version::Rfc3448 => {
                let received = self.received.max();
                if idle && received < 4.0 * segment / rtt {
                    return; // an idle sender keeps up to four packets per round-trip time
                }
                let less = if self.equation_rate > 2.0 * received {
                    (received / 2.0).max(segment / (2.0 * MAX_BACKOFF))
                } else {
                    self.equation_rate / 4.0
                };
                self.received = ReceiveRates::only(now, less);
                self.allow(2.0 * less, now, segment, rtt);
            }
        }
    }

    /// "Update_Limits": reduces the rate to `limit`, and keeps it there for two round-trip times without reports.
    fn limit_to(&mut self, limit: f64, now: Time, segment: f64) {
        let limit = limit.max(segment / MAX_BACKOFF);
        self.received = ReceiveRates::only(now, limit / 2.0);
        self.set(self.equation_rate.min(limit), segment);
    }
}

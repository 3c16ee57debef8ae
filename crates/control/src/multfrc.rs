//! MULTFRC: as many TFRC connections in one flow as the path carries without queueing.
//!
//! Source: M. Chen, A. Zakhor, "Rate control for streaming video over wireless", INFOCOM 2004, with the law and
//! constants that Zhou, Fu and Li ("TFRC Veno", section II) give for it: n grows by alpha / n, or shrinks by beta if
//! the average round-trip time exceeds the minimum by more than the share gamma. The averaging time and how often n
//! changes are not given there. See docs/controllers/multfrc.md.
//!
//! [`Connections`] is the law, one per flow; [`Member`] builds the controller of each connection, which is TFRC's. The
//! machine (crate `flow`, `multfrc`) opens and closes connections, each with its own TFRC state.

use crate::models::{Factor, LossRate};
use crate::tfrc::equation::{Equation, Terms};
use crate::tfrc::{COMMON, Tfrc, after_common, own, own_switch, own_whole};
use crate::{Build, Machine, Parameter, Profile, Scheme};
use paceline_units::{Span, Time};
use std::collections::VecDeque;

const PARAMETERS: [Parameter; COMMON.len() + 7] = after_common([
    own("alpha", 1.0, 0.0, 100.0, "1", "n grows by alpha / n"),
    own("beta", 1.0, 0.0, 100.0, "1", "n shrinks by beta"),
    own("gamma", 0.2, 0.0, 100.0, "1", "share of the least round-trip time that may be queueing"),
    own_whole("window", 50.0, 1.0, 1000.0, "round-trip samples in the average"),
    own_whole("period", 50.0, 1.0, 1000.0, "round-trip samples from one change of n to the next"),
    own("n_max", 1000.0, 1.0, 1000.0, "1", "n at most"),
    own_switch(
        "each_report",
        false,
        "each report of any connection is a sample; off: the mean of a round trip's reports",
    ),
]);

/// The law's constants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    alpha: f64,
    beta: f64,
    gamma: f64,
    window: usize,
    period: usize,
    max_flows: f64,
    each_report: bool,
}

/// The number of connections that a flow has open.
#[derive(Clone, Debug)]
pub struct Connections {
    rules: Rules,
    /// At least 1.
    n: f64,
    samples: VecDeque<f64>,
    sum: f64,
    since: usize,
    /// Minimum round-trip time in seconds.
    min_rtt: f64,
    /// Sum in seconds and number of reported round-trip times since the last sample, and when the next sample is due.
    reported: f64,
    reports: u32,
    due: Time,
}

impl Connections {
    /// One connection, without a sample.
    #[must_use]
    pub fn new(rules: Rules) -> Connections {
        Connections {
            rules,
            n: 1.0,
            samples: VecDeque::new(),
            sum: 0.0,
            since: 0,
            min_rtt: f64::INFINITY,
            reported: 0.0,
            reports: 0,
            due: Time::ZERO,
        }
    }

    /// A connection received a report, and its round-trip time is `rtt`.
    pub fn report(&mut self, rtt: Span, now: Time) {
        let seconds = rtt.as_secs_f64();
        self.min_rtt = self.min_rtt.min(seconds);
        self.reported += seconds;
        self.reports += 1;
        if !self.rules.each_report && now < self.due {
            return;
        }
        let mean = self.reported / f64::from(self.reports);
        // one sample per round-trip time in the long run, however reports are spaced
        self.due = (self.due + Span::from_secs_f64(mean)).max(now);
        (self.reported, self.reports) = (0.0, 0);
        self.sample(mean);
    }

    fn sample(&mut self, seconds: f64) {
        self.samples.push_back(seconds);
        self.sum += seconds;
        if self.samples.len() > self.rules.window {
            self.sum -= self.samples.pop_front().unwrap_or(0.0);
        }
        self.since += 1;
        if self.since >= self.rules.period {
            self.since = 0;
            self.sum = self.samples.iter().sum(); // removes accumulated rounding errors
            self.adjust();
        }
    }

    fn adjust(&mut self) {
        let average = self.sum / self.samples.len() as f64;
        if average - self.min_rtt > self.rules.gamma * self.min_rtt {
            self.n -= self.rules.beta;
        } else {
            self.n += self.rules.alpha / self.n;
        }
        self.n = self.n.min(self.rules.max_flows).max(1.0);
    }

    /// n.
    #[must_use]
    pub fn n(&self) -> f64 {
        self.n
    }

    /// Number of open connections: n rounded down.
    #[must_use]
    pub fn open(&self) -> u16 {
        self.n as u16
    }
}

/// The equation of one connection: TFRC's own.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    rules: Rules,
}

impl Equation for Member {
    fn rate(&self, p: LossRate, terms: &Terms) -> f64 {
        terms.rate(p, Factor::HALF)
    }

    fn connections(&self) -> Option<Rules> {
        Some(self.rules)
    }
}

impl Build for Tfrc<Member> {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "multfrc",
        summary: "n TFRC connections in one flow, n by the queueing delay",
        source: "Chen and Zakhor, INFOCOM 2004",
        machine: Machine::Tfrc,
        parameters: &PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Tfrc<Member> {
        let rules = Rules {
            alpha: values[8],
            beta: values[9],
            gamma: values[10],
            window: values[11] as usize,
            period: values[12] as usize,
            max_flows: values[13],
            each_report: values[14] == 1.0,
        };
        Tfrc::with(values, Member { rules })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RateController, TfrcController, registry};

    fn rules(given: &[(&str, f64)]) -> Rules {
        let scheme = registry::scheme("multfrc").unwrap();
        TfrcController::new(scheme, Profile::Rfc, given).unwrap().connections().unwrap()
    }

    /// `count` reports of `ms`, spaced by `ms`.
    fn reports(law: &mut Connections, count: usize, ms: u64, now: &mut Time) {
        for _ in 0..count {
            *now += Span::from_millis(ms);
            law.report(Span::from_millis(ms), *now);
        }
    }

    #[test]
    fn n_follows_the_queueing_delay() {
        let mut law = Connections::new(rules(&[("window", 10.0), ("period", 10.0)]));
        let mut now = Time::ZERO;
        reports(&mut law, 9, 100, &mut now);
        assert_eq!((law.n(), law.open()), (1.0, 1));
        reports(&mut law, 1, 100, &mut now);
        assert_eq!((law.n(), law.open()), (2.0, 2));
        reports(&mut law, 10, 100, &mut now);
        assert_eq!((law.n(), law.open()), (2.5, 2), "a whole number of connections");
        reports(&mut law, 10, 119, &mut now); // 19 % of queueing: not too much
        assert!((law.n() - 2.9).abs() < 1e-12);
        reports(&mut law, 10, 121, &mut now);
        assert!((law.n() - 1.9).abs() < 1e-12 && law.open() == 1);
        reports(&mut law, 30, 121, &mut now);
        assert_eq!(law.n(), 1.0, "never less than one");
    }

    #[test]
    fn a_round_trip_has_one_sample_unless_each_report_is_one() {
        // four connections report every 100 ms, 25 ms apart; two of them see 30 ms of queueing
        let run = |each_report: f64| {
            let given = [("window", 10.0), ("period", 10.0), ("n_max", 99.0), ("each_report", each_report)];
            let mut law = Connections::new(rules(&given));
            let mut changes = 0u32;
            for i in 0..400u64 {
                let before = law.n();
                law.report(Span::from_millis(100 + 30 * (i % 2)), Time(i * 25_000_000));
                changes += u32::from(law.n() != before);
            }
            (changes, law.n())
        };
        // 10 s are 86 round trips of 115 ms on average, 8 periods of ten; 15 % of queueing is within the limit
        let by_hand = |changes: u32| (0..changes).fold(1.0, |n, _| n + 1.0 / n);
        for (each_report, expected) in [(0.0, 8), (1.0, 40)] {
            let (changes, n) = run(each_report);
            assert_eq!(changes, expected);
            assert!((n - by_hand(expected)).abs() < 1e-12, "{n}");
        }
    }

    #[test]
    fn n_stays_within_its_limit() {
        let mut law = Connections::new(rules(&[("window", 1.0), ("period", 1.0), ("n_max", 3.5)]));
        let mut now = Time::ZERO;
        reports(&mut law, 100, 100, &mut now);
        assert_eq!((law.n(), law.open()), (3.5, 3));
    }
}

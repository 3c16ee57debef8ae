//! MULTFRC: as many TFRC connections as the path bears, here as one that behaves like n.
//!
//! Source: M. Chen, A. Zakhor, "Rate control for streaming video over wireless", INFOCOM 2004, with the law and the
//! constants that Zhou, Fu and Li ("TFRC Veno", section II) give for it: n grows by
//! alpha / n, or shrinks by beta if the average round-trip time exceeds the least one by more than the share gamma. How
//! long the average is and how often n changes are not given there. See docs/controllers/multfrc.md.
//!
//! Of n connections each sees its own losses, and those within a round-trip time are one event for it; one receiver of
//! all packets merges more. [`Multiple::apart`] takes that out again.

use crate::models::{Factor, LossRate};
use crate::tfrc::equation::{Equation, Terms};
use crate::tfrc::{COMMON, Tfrc, after_common, own, own_switch, own_whole};
use crate::{Build, Gauges, Machine, Parameter, PathView, Profile, Scheme, TfrcReport};
use std::collections::VecDeque;

const PARAMETERS: [Parameter; COMMON.len() + 7] = after_common([
    own("alpha", 1.0, 0.0, 100.0, "1", "n grows by alpha / n"),
    own("beta", 1.0, 0.0, 100.0, "1", "n shrinks by beta"),
    own("gamma", 0.2, 0.0, 100.0, "1", "share of the least round-trip time that may be queueing"),
    own_whole("window", 50.0, 1.0, 1000.0, "round-trip samples in the average"),
    own_whole("period", 50.0, 1.0, 1000.0, "round-trip samples from one change of n to the next"),
    own("n_max", 1000.0, 1.0, 1e6, "1", "n at most"),
    own_switch("own_losses", true, "p is what each of n connections would see; off: what the receiver reports"),
]);

/// The equation's state.
#[derive(Clone, Debug)]
pub struct Multiple {
    alpha: f64,
    beta: f64,
    gamma: f64,
    window: usize,
    period: usize,
    most: f64,
    own: bool,
    /// Packets in a round-trip time, of all connections together.
    packets: f64,
    /// How many connections it stands for; at least 1.
    n: f64,
    samples: VecDeque<f64>,
    sum: f64,
    since: usize,
    /// Least round-trip time in seconds.
    least: f64,
}

impl Multiple {
    fn adjust(&mut self) {
        let average = self.sum / self.samples.len() as f64;
        if average - self.least > self.gamma * self.least {
            self.n -= self.beta;
        } else {
            self.n += self.alpha / self.n;
        }
        self.n = self.n.min(self.most).max(1.0);
    }

    /// The loss event rate that one of n connections would see. Where packets are lost independently of each other, the
    /// mean interval between events is what one waits for the next loss, and before it a round-trip time in which further
    /// losses do not count: W packets of all connections together, W / n of one. A connection's interval is thus shorter by
    /// W (1 - 1/n).
    fn apart(&self, p: LossRate) -> LossRate {
        if !self.own {
            return p;
        }
        let interval = 1.0 / p.get() - self.packets * (1.0 - 1.0 / self.n);
        LossRate::new(1.0 / interval.max(1.0)).unwrap_or(p)
    }
}

impl Equation for Multiple {
    fn observe(&mut self, report: &TfrcReport, path: &PathView, rate: f64) {
        self.packets = rate * path.srtt.as_secs_f64() / f64::from(path.segment.max(1));
        let sample = report.rtt.as_secs_f64();
        self.least = self.least.min(sample);
        self.samples.push_back(sample);
        self.sum += sample;
        if self.samples.len() > self.window {
            self.sum -= self.samples.pop_front().unwrap_or(0.0);
        }
        self.since += 1;
        if self.since >= self.period {
            self.since = 0;
            self.sum = self.samples.iter().sum(); // what rounding left
            // in slow start one connection fills the path: n has nothing to say yet
            if report.loss_event_rate > 0.0 {
                self.adjust();
            }
        }
    }

    fn rate(&self, p: LossRate, terms: &Terms) -> f64 {
        self.n * terms.rate(self.apart(p), Factor::HALF)
    }

    fn flows(&self) -> f64 {
        self.n
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.gauge("n", self.n);
    }
}

impl Build for Tfrc<Multiple> {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "multfrc",
        summary: "n virtual TFRC connections, n by the queueing delay",
        source: "Chen and Zakhor, INFOCOM 2004",
        machine: Machine::Tfrc,
        parameters: &PARAMETERS,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Tfrc<Multiple> {
        let multiple = Multiple {
            alpha: values[7],
            beta: values[8],
            gamma: values[9],
            window: values[10] as usize,
            period: values[11] as usize,
            most: values[12],
            own: values[13] >= 0.5,
            packets: 0.0,
            n: 1.0,
            samples: VecDeque::new(),
            sum: 0.0,
            since: 0,
            least: f64::INFINITY,
        };
        Tfrc::with(values, multiple)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfrc::tests::{Script, plain, report};
    use crate::tfrc::{Law, RateController};

    #[test]
    fn n_follows_the_queueing_delay() {
        let scheme = &<Tfrc<Multiple> as Build>::SCHEMES[0];
        let given = [("window", 10.0), ("period", 10.0), ("own_losses", 0.0)];
        let values = scheme.values(Profile::Rfc, &given).unwrap();
        let mut s = Script::new(Tfrc::<Multiple>::build(Profile::Rfc, &values));
        for _ in 0..20 {
            s.report(0.1, report(0.1, 1e9, 0.0));
        }
        assert_eq!(s.controller.equation.n, 1.0, "slow start");
        for _ in 0..20 {
            s.report(0.1, report(0.1, 1e9, 0.01));
        }
        assert_eq!(s.controller.equation.n, 1.0 + 1.0 + 1.0 / 2.0);
        let mut one = Script::new(plain(Law::Rfc5348, 0.0));
        one.report(0.1, report(0.1, 1e9, 0.0));
        one.report(0.1, report(0.1, 1e9, 0.01));
        assert!((s.controller.rate() / one.controller.rate() - 2.5).abs() < 1e-9);
        for _ in 0..10 {
            s.report(0.119, report(0.119, 1e9, 0.01)); // 19 % of queueing: not too much
        }
        assert!((s.controller.equation.n - 2.9).abs() < 1e-12);
        for _ in 0..40 {
            s.report(0.121, report(0.121, 1e9, 0.01));
        }
        assert_eq!(s.controller.equation.n, 1.0);
    }

    #[test]
    fn each_connection_sees_its_own_losses() {
        let scheme = &<Tfrc<Multiple> as Build>::SCHEMES[0];
        let mut equation = Tfrc::<Multiple>::build(Profile::Rfc, &scheme.values(Profile::Rfc, &[]).unwrap()).equation;
        // 1 of 10 packets is lost; 4 connections send 20 packets in a round-trip time
        (equation.n, equation.packets) = (4.0, 20.0);
        let merged = LossRate::new(1.0 / 30.0).unwrap();
        assert!((1.0 / equation.apart(merged).get() - 15.0).abs() < 1e-12); // 10, and 5 of its own round-trip time
        equation.n = 1.0;
        assert_eq!(equation.apart(merged).get(), merged.get(), "one connection is TFRC");
        (equation.n, equation.packets) = (10.0, 1000.0);
        assert_eq!(equation.apart(merged).get(), 1.0, "p is a share, whatever the rate was");
    }
}

//! TFRC Veno: TFRC with the throughput equation of TCP Veno, for paths that lose packets without being congested.
//!
//! Source: B. Zhou, C. P. Fu, V. O. K. Li, "TFRC Veno: an enhancement of TCP friendly rate control over wired/wireless
//! networks", equation (22) with gamma of equation (20) ([`crate::models::gamma`]). Only the sender changes: the
//! receiver and the rest of the law are TFRC's. See docs/controllers/tfrc-veno.md.

use crate::models::{Factor, Gamma, LossRate, Seconds, Window};
use crate::tfrc::equation::{Equation, Terms};
use crate::tfrc::{COMMON, Tfrc, after_common, own, own_switch, own_whole};
use crate::{Build, Gauges, Idle, Machine, Parameter, PathView, Profile, Scheme, TfrcReport};
use std::collections::VecDeque;

const PARAMETERS: [Parameter; COMMON.len() + 7] = after_common([
    own("theta1", 0.95, 0.0, 0.999, "1", "window factor at a loss while the path is not congested"),
    own("theta2", 0.5, 0.0, 0.999, "1", "window factor at a loss on a congested path: gamma is never below"),
    own("beta", 3.0, 0.1, 1000.0, "packets", "backlog from which a loss counts as congestion"),
    own("wmax", 0.0, 0.0, 1e6, "packets", "W_max in packets; 0: the largest rate times round-trip time so far"),
    own_switch("base_rtt_reset", false, "the least round-trip time is sought anew after each loss event"),
    own_whole(
        "wmax_reports",
        0.0,
        0.0,
        10_000.0,
        "the largest of so many last reports counts for W_max, 1: the window of now; 0: the largest of all",
    )
    .idle(Idle::Unless("wmax", 0.0)),
    own_switch("as_printed", false, "equation (22) as the paper prints it, with p (1 + 32 p^2) under the root"),
]);

/// The equation's state.
#[derive(Clone, Debug)]
pub struct Veno {
    law: Gamma,
    fixed: Option<f64>,
    reset: bool,
    /// How many of the last windows count, and those windows; 0: all windows count.
    recent: usize,
    windows: VecDeque<f64>,
    printed: bool,
    /// Minimum round-trip time (BaseRTT) in seconds; infinite before the first sample.
    base: f64,
    /// Largest product of rate and round-trip time so far, in packets.
    largest: f64,
    p: f64,
    gamma: Factor,
}

impl Veno {
    /// Equation (20). Without a window or a sample yet, every loss counts as random.
    fn gamma(&self, rtt: f64) -> Factor {
        let window = self.fixed.unwrap_or(self.largest).max(1.0);
        let known = Seconds::new(rtt).and_then(|rtt| {
            // after a reset of the minimum, the smoothed time may lie below it
            let base = Seconds::new(self.base.min(rtt.get()))?;
            self.law.mean(rtt, base, Window::new(window)?)
        });
        known.unwrap_or(self.law.theta1())
    }
}

impl Equation for Veno {
    fn observe(&mut self, report: &TfrcReport, path: &PathView, rate: f64) {
        let sample = report.rtt.as_secs_f64();
        if self.reset && report.loss_event_rate > self.p {
            self.base = sample;
        }
        self.base = self.base.min(sample);
        let rtt = path.srtt.as_secs_f64();
        let window = rate * rtt / f64::from(path.segment.max(1));
        if self.recent > 0 {
            self.windows.push_back(window);
            if self.windows.len() > self.recent {
                self.windows.pop_front();
            }
            self.largest = self.windows.iter().copied().fold(0.0, f64::max);
        } else {
            self.largest = self.largest.max(window);
        }
        self.p = report.loss_event_rate;
        self.gamma = self.gamma(rtt);
    }

    fn rate(&self, p: LossRate, terms: &Terms) -> f64 {
        if self.printed { terms.rate_as_printed(p, self.gamma) } else { terms.rate(p, self.gamma) }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.number("gamma", self.gamma.get());
    }
}

impl Build for Tfrc<Veno> {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "tfrc-veno",
        summary: "TFRC with TCP Veno's throughput equation, for paths with random loss",
        source: "Zhou, Fu and Li, TFRC Veno",
        machine: Machine::Tfrc,
        parameters: &PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Tfrc<Veno> {
        let factor = |value: f64| Factor::new(value).unwrap_or(Factor::HALF);
        // scenario files refuse theta1 below theta2; equal values mean that losses are not distinguished
        let (theta1, theta2) = (factor(values[8].max(values[9])), factor(values[9]));
        let law = Gamma::new(theta1, theta2, values[10]).unwrap_or(Gamma::TFRC);
        let veno = Veno {
            law,
            fixed: (values[11] > 0.0).then_some(values[11]),
            reset: values[12] >= 0.5,
            recent: values[13] as usize,
            windows: VecDeque::new(),
            printed: values[14] >= 0.5,
            base: f64::INFINITY,
            largest: 0.0,
            p: 0.0,
            gamma: theta1,
        };
        Tfrc::with(values, veno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfrc::tests::{Script, plain, report};
    use crate::tfrc::{Law, RateController};

    fn script(given: &[(&str, f64)]) -> Script<Tfrc<Veno>> {
        let scheme = &<Tfrc<Veno> as Build>::SCHEMES[0];
        Script::new(<Tfrc<Veno>>::build(Profile::Rfc, &scheme.values(Profile::Rfc, given).unwrap()))
    }

    /// Equations (20) and (22) by hand: W_max 20 packets, 100 ms over a base of 50 ms: a backlog of 10 packets.
    #[test]
    fn equations_20_and_22() {
        let mut s = script(&[("wmax", 20.0)]);
        s.report(0.05, report(0.05, 1e9, 0.0));
        assert_eq!(s.controller.equation.gamma.get(), 0.95);
        s.report(0.1, report(0.1, 1e9, 0.01));
        let gamma = 0.5 + 0.45 * 3.0 * 0.1 / (0.05 * 20.0);
        assert!((s.controller.equation.gamma.get() - gamma).abs() < 1e-12);
        let expected = 1000.0
            / (0.1 * (2.0 * (1.0 - gamma) * 0.01 / (1.0 + gamma)).sqrt()
                + 0.4 * 3.0 * ((1.0 - gamma * gamma) * 0.01 / 2.0).sqrt() * 0.01 * (1.0 + 32.0 * 0.0001));
        assert!((s.controller.rate() / expected - 1.0).abs() < 1e-12);
        // an unbounded backlog results in theta2, and TFRC's rate
        s.report(100.0, report(100.0, 1e9, 0.01));
        let gamma = s.controller.equation.gamma.get();
        assert!((0.5..0.57).contains(&gamma), "{gamma}");
    }

    #[test]
    fn readings_that_the_paper_leaves_open() {
        let mut s = script(&[]);
        s.report(0.05, report(0.05, 1e9, 0.0)); // the first packets leave at 1000 B/s, then 4 in 50 ms
        s.report(0.05, report(0.05, 1e9, 0.01));
        assert!((s.controller.equation.largest - 4.0).abs() < 1e-9, "{}", s.controller.equation.largest);
        let mut s = script(&[("wmax_reports", 2.0)]);
        for received in [1e9, 1e6, 1e5, 1e4, 1e3] {
            s.report(0.2, report(0.05, received, 0.0001));
        }
        // the two rates before this report: twice 1e5 and twice 1e4
        assert!(
            (s.controller.equation.largest - 2e5 * 0.05 / 1000.0).abs() < 1e-9,
            "{}",
            s.controller.equation.largest
        );
        let mut s = script(&[("base_rtt_reset", 1.0)]);
        s.report(0.05, report(0.05, 1e9, 0.0));
        s.report(0.08, report(0.08, 1e9, 0.01));
        assert_eq!(s.controller.equation.base, 0.08);
        s.report(0.09, report(0.09, 1e9, 0.01));
        assert_eq!(s.controller.equation.base, 0.08);
    }

    /// Equation (22) as printed, by hand: gamma = 0.95, p = 4 %, T_0 = 4 R.
    #[test]
    fn equation_22_as_printed() {
        let mut s = script(&[("as_printed", 1.0)]);
        s.report(0.1, report(0.1, 1e9, 0.0));
        s.report(0.1, report(0.1, 1e9, 0.04));
        // sqrt(0.1 * 0.04 / 1.95) = 0.045292, 3 sqrt(0.04875 * 0.04 * 0.04 * 1.0512) = 0.027166
        let expected = 1000.0 / (0.1 * 0.045_292 + 0.4 * 0.027_166);
        assert!((s.controller.rate() / expected - 1.0).abs() < 1e-4, "{} {expected}", s.controller.rate());
        let mut right = script(&[]);
        right.report(0.1, report(0.1, 1e9, 0.0));
        right.report(0.1, report(0.1, 1e9, 0.04));
        assert!(right.controller.rate() > 2.0 * s.controller.rate());
    }

    #[test]
    fn half_gives_tfrc() {
        let mut s = script(&[("theta1", 0.5)]);
        let mut plain = Script::new(plain(Law::Rfc5348, 0.0));
        for p in [0.0, 0.0, 0.001, 0.05, 0.9, 1.0] {
            s.report(0.1, report(0.1, 1e6, p));
            plain.report(0.1, report(0.1, 1e6, p));
            assert_eq!(s.controller.rate(), plain.controller.rate());
        }
    }
}

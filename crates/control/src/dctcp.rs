//! DCTCP: Reno that reduces its window in proportion to the share of marked segments.
//!
//! Source: RFC 8257 (S. Bensley and others, "Data Center TCP (DCTCP): TCP Congestion Control for Data Centers", 2017);
//! under `linux` the arithmetic of `net/ipv4/tcp_dctcp.c`. Losses are handled as in Reno.

use crate::reno::Reno;
use crate::{Build, Controller, Ecn, Gauges, Machine, Needs, Parameter, PathView, Profile, Recovery, Scheme};
use crate::{TcpEvent, WindowController};

const PARAMETERS: &[Parameter] = &[Parameter::number(
    "g",
    [1.0 / 16.0; Profile::ALL.len()],
    (1.0 / 1024.0, 1.0),
    "1",
    "the weight of the newest round trip's share of marks (DCTCP.g)",
)];

/// The kernel's fixed-point scale of DCTCP.Alpha.
const PARTS: f64 = 1024.0;

/// The state.
#[derive(Clone, Debug)]
pub struct Dctcp {
    g: f64,
    reno: Reno,
    /// DCTCP.Alpha: the smoothed share of marked segments.
    alpha: f64,
    /// DCTCP.WindowEnd: the round trip ends when this is acknowledged.
    window_end: u32,
    /// DCTCP.BytesAcked and BytesMarked, in segments.
    acked: u32,
    marked: u32,
}

impl Dctcp {
    /// RFC 8257 section 3.3, steps 5 to 8, once per round trip; in the kernel in whole 1/1024.
    fn update_alpha(&mut self, path: &PathView) {
        let share = f64::from(self.marked.min(self.acked)) / f64::from(self.acked.max(1));
        self.alpha = if self.reno.profile == Profile::Linux {
            let alpha = (self.alpha * PARTS).round();
            let fall = (alpha * self.g).floor();
            let fall = if fall == 0.0 { alpha } else { fall }; // min_not_zero
            ((alpha - fall + (share * PARTS * self.g).floor()) / PARTS).min(1.0)
        } else {
            self.alpha * (1.0 - self.g) + self.g * share
        };
        self.window_end = path.next;
        (self.acked, self.marked) = (0, 0);
    }

    /// Section 3.3: cwnd = cwnd (1 - DCTCP.Alpha / 2).
    fn cut(&mut self) {
        let whole = matches!(self.reno.profile, Profile::Linux | Profile::Ns2Linux);
        let cwnd = self.reno.cwnd * (1.0 - self.alpha / 2.0);
        self.reno.ssthresh = if whole { cwnd.ceil() } else { cwnd }.max(2.0);
        self.reno.cwnd = self.reno.ssthresh;
        self.reno.count = 0;
    }
}

impl Build for Dctcp {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "dctcp",
        summary: "DCTCP: cuts by the share of its segments that are marked",
        source: "RFC 8257",
        machine: Machine::Tcp([Recovery::Sack; Profile::ALL.len()]),
        parameters: PARAMETERS,
        foreign: None,
    }];

    fn build(profile: Profile, values: &[f64]) -> Dctcp {
        let reno = Reno::build(profile, &[]);
        // section 4.2: Alpha starts at 1, so that a connection's first mark halves its window
        Dctcp { g: values[0], reno, alpha: 1.0, window_end: 0, acked: 0, marked: 0 }
    }
}

impl Controller for Dctcp {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::EcnEcho => self.cut(),
            TcpEvent::Established { .. } => {
                self.window_end = path.next;
                self.reno.on_feedback(feedback, path);
            }
            _ => self.reno.on_feedback(feedback, path),
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        self.reno.gauges(to);
        to.number("alpha", self.alpha);
    }
}

impl WindowController for Dctcp {
    fn window(&self) -> f64 {
        self.reno.cwnd
    }
    fn threshold(&self) -> f64 {
        self.reno.ssthresh
    }
    fn needs(&self) -> Needs {
        Needs { ecn: Ecn::Dctcp, ..Needs::NONE }
    }
    fn on_marks(&mut self, acked: u32, marked: u32, path: &PathView) {
        self.acked += acked;
        self.marked += marked;
        if path.acked > self.window_end {
            self.update_alpha(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{Span, Time};

    fn path(acked: u32, next: u32) -> PathView {
        PathView {
            now: Time::ZERO,
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            min_rtt: Span::ZERO,
            in_flight: 16,
            acked,
            next,
            receive_window: u32::MAX,
            segment: 1460,
        }
    }

    fn dctcp(profile: Profile) -> Dctcp {
        let mut dctcp = Dctcp::build(profile, &[1.0 / 16.0]);
        dctcp.on_feedback(&TcpEvent::Established { window: 16.0 }, &path(1, 1));
        dctcp
    }

    /// Section 3.3 with g = 1/16: alpha starts at 1; after a round trip without marks it is 15/16, after one with a
    /// quarter of its segments marked (15/16)^2 + 1/64.
    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut dctcp = dctcp(Profile::Rfc);
        dctcp.on_marks(16, 0, &path(17, 33));
        assert!((dctcp.alpha - 15.0 / 16.0).abs() < 1e-12);
        dctcp.on_marks(8, 2, &path(25, 41));
        dctcp.on_marks(8, 2, &path(33, 49));
        assert!((dctcp.alpha - 15.0 / 16.0).abs() < 1e-12, "the round trip is not over");
        dctcp.on_marks(4, 1, &path(37, 53));
        assert!((dctcp.alpha - (225.0 / 256.0 + 0.25 / 16.0)).abs() < 1e-12, "{}", dctcp.alpha);
    }

    #[test]
    fn a_mark_cuts_by_half_of_alpha() {
        let mut dctcp = dctcp(Profile::Rfc);
        dctcp.on_feedback(&TcpEvent::EcnEcho, &path(17, 33));
        assert!((dctcp.window() - 8.0).abs() < 1e-12, "alpha 1: as Reno");
        dctcp.alpha = 0.25;
        dctcp.on_feedback(&TcpEvent::EcnEcho, &path(17, 33));
        assert!((dctcp.window() - 7.0).abs() < 1e-12);
    }

    /// `dctcp_update_alpha` in units of 1/1024: 1024, 960, 900, and with all segments marked 900 - 56 + 64 = 908.
    #[test]
    fn linux_counts_in_parts_of_1024() {
        let mut dctcp = dctcp(Profile::Linux);
        let mut parts = Vec::new();
        for (i, marked) in [0, 0, 16].into_iter().enumerate() {
            let acked = 17 + 17 * i as u32;
            dctcp.on_marks(16, marked, &path(acked, acked + 16));
            parts.push(dctcp.alpha * PARTS);
        }
        assert_eq!(parts, [960.0, 900.0, 908.0]);
    }
}

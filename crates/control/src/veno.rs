//! Veno: Reno with a smaller reduction when the queue is short, since the loss is then taken as random.
//!
//! Sources: C. P. Fu, S. C. Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks", IEEE JSAC
//! 21(2), 2003; B. Zhou, C. P. Fu, V. O. K. Li, "TFRC Veno", equations (2) and (3). Profiles: `rfc` and `ns2` the
//! second paper's form, which changes only the reduction of [`crate::reno`]'s window under that profile, and resets the
//! base round-trip time at each loss; the first paper's slower growth is a parameter. `ns2-linux` `tcp_veno.c` of Linux
//! 2.6.22 as included in ns-2.35; `linux` that of a current kernel (`veno/tcp_veno.rs`). See docs/controllers/veno.md.

mod tcp_veno;

use crate::reno::Reno;
use crate::{Build, Controller, Gauges, Machine, Parameter, PathView, Profile, Recovery, Scheme};
use crate::{TcpEvent, WindowController, known};
use paceline_units::Span;
use tcp_veno::TcpVeno;

const PARAMETERS: &[Parameter] = &[
    Parameter::number(
        "beta",
        [3.0; Profile::ALL.len()],
        (0.0, 1000.0),
        "segments",
        "fewer than this in the queue: a loss is taken for a random one",
    ),
    Parameter::number(
        "theta1",
        [0.8; Profile::ALL.len()],
        (0.1, 0.99),
        "1",
        "what a random loss multiplies the window by",
    ),
    Parameter::number(
        "theta2",
        [0.5; Profile::ALL.len()],
        (0.1, 0.99),
        "1",
        "what any other loss multiplies the window by",
    ),
    Parameter::switch(
        "slow_growth",
        [false, false, true, true],
        "in congestion avoidance the window grows half as fast while beta or more are in the queue; off: as Reno's",
    ),
    Parameter::switch(
        "base_reset",
        [true, true, false, false],
        "the base round-trip time is forgotten at each loss; off: it is the connection's least",
    ),
];

/// The state.
#[derive(Clone, Debug)]
pub struct Veno {
    beta: f64,
    theta1: f64,
    theta2: f64,
    growth: Growth,
    base: Base,
    reno: Reno,
    /// Minimum round-trip time since the connection began or the last loss, in seconds (`ns2-linux`, `linux`:
    /// microseconds); infinite before the first sample.
    base_rtt: f64,
    /// N: last estimate of segments in the queue; NaN, which compares as below beta, before the first.
    backlog: f64,
    /// Whether the next acknowledgement (under Linux, the next window of them) may grow the window while N >= beta.
    turn: Turn,
    tcp_veno: TcpVeno,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Growth {
    Reno,
    Slow,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Base {
    Kept,
    Reset,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    Grow,
    Hold,
}

impl Veno {
    /// N = cwnd/RTT (RTT - BaseRTT), equation (2), with the smoothed round-trip time. Without a sample since the last
    /// loss the last estimate stays, because the queue is unknown.
    fn estimate(&mut self, path: &PathView) {
        let rtt = path.srtt.as_secs_f64();
        if rtt > 0.0 && self.base_rtt.is_finite() {
            self.backlog = self.reno.cwnd / rtt * (rtt - self.base_rtt).max(0.0);
        }
    }

    /// Equation (3).
    fn factor(&self) -> f64 {
        if self.backlog >= self.beta { self.theta2 } else { self.theta1 }
    }

    /// The unit of `base_rtt` in seconds.
    fn unit(&self) -> f64 {
        if matches!(self.reno.profile, Profile::Ns2Linux | Profile::Linux) { 1e-6 } else { 1.0 }
    }

    fn forget_base(&mut self) {
        if self.base == Base::Reset {
            self.base_rtt = f64::INFINITY;
        }
    }

    fn acked(&mut self, segments: u32, in_flight: u32, rtt: Option<Span>, path: &PathView) {
        if let Some(rtt) = rtt {
            self.base_rtt = self.base_rtt.min(rtt.as_secs_f64());
        }
        self.estimate(path);
        // Fu and Liew, section III-A: with N >= beta only every other acknowledgement grows the window
        if self.growth == Growth::Slow && self.reno.cwnd >= self.reno.ssthresh && self.backlog >= self.beta {
            self.turn = if self.turn == Turn::Grow { Turn::Hold } else { Turn::Grow };
            if self.turn == Turn::Hold {
                return;
            }
        }
        self.reno.acked(segments, in_flight);
    }
}

impl Build for Veno {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "veno",
        summary: "Veno: Reno that cuts to 4/5 where the queue is short",
        source: "Fu and Liew, IEEE JSAC 21(2), 2003",
        machine: Machine::Tcp([Recovery::NewReno, Recovery::NewReno, Recovery::Sack, Recovery::Sack]),
        parameters: PARAMETERS,
        foreign: None,
    }];

    fn build(profile: Profile, values: &[f64]) -> Veno {
        Veno {
            beta: values[0],
            theta1: values[1],
            theta2: values[2],
            growth: if values[3] > 0.0 { Growth::Slow } else { Growth::Reno },
            base: if values[4] > 0.0 { Base::Reset } else { Base::Kept },
            reno: Reno::build(profile, &[]),
            base_rtt: f64::INFINITY,
            backlog: f64::NAN,
            turn: Turn::Grow,
            tcp_veno: TcpVeno::default(),
        }
    }
}

impl Controller for Veno {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            _ if matches!(self.reno.profile, Profile::Ns2Linux | Profile::Linux) => {
                self.on_feedback_tcp_veno(feedback, path);
            }
            TcpEvent::Acked { segments, in_flight, rtt } => self.acked(segments, in_flight, rtt, path),
            TcpEvent::Lost { .. } => {
                self.estimate(path);
                self.reno.lost(self.factor(), path);
                self.forget_base();
            }
            // ECN marks and timeouts are not random losses: both halve the window (timeouts: Fu and Liew, section
            // III-B)
            TcpEvent::Timeout(_) => {
                self.reno.on_feedback(feedback, path);
                self.forget_base();
            }
            _ => self.reno.on_feedback(feedback, path),
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        self.reno.gauges(to);
        to.packets("backlog", self.backlog);
        to.seconds("base_rtt", known(self.base_rtt * self.unit()));
    }
}

impl WindowController for Veno {
    fn window(&self) -> f64 {
        self.reno.cwnd
    }
    fn threshold(&self) -> f64 {
        self.reno.ssthresh
    }
    fn base_rtt(&self) -> Option<f64> {
        self.base_rtt.is_finite().then(|| self.base_rtt * self.unit())
    }
}

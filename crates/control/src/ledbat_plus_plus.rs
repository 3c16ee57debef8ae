//! LEDBAT++: background transport that keeps a bounded queue when alone and yields to other flows.
//!
//! Source: draft-irtf-iccrg-ledbat-plus-plus-06, section 4 (P. Balasubramanian, O. Ertugay, D. Havey, M. Bagnulo), and
//! RFC 6817 for base and current delay. Delays are round-trip times. docs/controllers/ledbat-plus-plus.md says how
//! details that the draft leaves open are decided.

use crate::base_delay::Delays;
use crate::{Build, Controller, Gauges, Machine, Parameter, PathView, Profile, Recovery, Scheme};
use crate::{TcpEvent, Threshold, WindowController, known};
use paceline_units::{Span, Time};

const EACH: usize = Profile::ALL.len();

const PARAMETERS: &[Parameter] = &[
    Parameter::number(
        "target",
        [0.060; EACH],
        (0.001, 1.0),
        "s",
        "queueing delay above which the window shrinks (section 4.5)",
    ),
    Parameter::whole(
        "gain_divisor",
        [16.0; EACH],
        (1.0, 100.0),
        "the window grows as Reno's divided by 2 target / base delay, and by no more than this (section 4.2)",
    ),
    Parameter::number(
        "decrease",
        [1.0; EACH],
        (0.0, 10.0),
        "1",
        "share of the window that a round trip at twice the target takes (Constant of section 4.3)",
    ),
    Parameter::switch(
        "slowdowns",
        [true; EACH],
        "initial and periodic slowdowns, which bare the base delay (section 4.4)",
    ),
];

/// The window of a slowdown and the minimum in congestion avoidance, in segments (sections 4.3 and 4.4).
const MIN_CWND: f64 = 2.0;
/// Share of the target at which the first slow start ends (section 4.1).
const EXIT: f64 = 0.75;
/// Round trips for which a slowdown freezes the window; the first slowdown begins this many after the first slow start
/// (section 4.4).
const FREEZE: u64 = 2;
/// Time from the end of a slowdown to the next, as a multiple of its duration (section 4.4).
const BETWEEN: u64 = 9;

/// The phase.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// The first slow start, which delay can also end.
    First,
    /// Any later slow start, up to the threshold; if it ends a slowdown, with the slowdown's start.
    SlowStart(Option<Time>),
    Avoidance,
    /// A slowdown freezes the window: its start, and the end of the freeze.
    Frozen(Time, Time),
}

/// The state.
#[derive(Clone, Debug)]
pub struct LedbatPlusPlus {
    target: f64,
    divisor: f64,
    decrease: f64,
    slowdowns: bool,
    established: bool,
    cwnd: f64,
    ssthresh: f64,
    phase: Phase,
    delays: Delays,
    /// When the next slowdown is due; `NEVER` until the first slow start is over.
    next: Time,
}

impl LedbatPlusPlus {
    /// Section 4.2: GAIN = 1 / min(16, ceil(2 TARGET / base)).
    fn gain(&self, base: f64) -> f64 {
        1.0 / (2.0 * self.target / base).ceil().clamp(1.0, self.divisor)
    }

    fn acked(&mut self, segments: u32, in_flight: u32, rtt: Option<Span>, path: &PathView) {
        // a SYN is smaller than a segment: its round trip would give a base delay that no segment can have
        if let Some(rtt) = rtt.filter(|_| self.established) {
            self.delays.sample(rtt, path.now);
        }
        self.slow_down(path);
        let Some((base, queue)) = self.delays.known() else { return };
        let used = f64::from(in_flight) + 1.0 > self.cwnd;
        let gain = self.gain(base);
        match self.phase {
            Phase::Frozen(..) => {}
            Phase::First if queue > EXIT * self.target => {
                self.ssthresh = self.cwnd;
                self.end_first(path);
            }
            Phase::First | Phase::SlowStart(_) => {
                if used {
                    self.cwnd = (self.cwnd + gain * f64::from(segments)).min(self.ssthresh.max(self.cwnd));
                }
                if self.cwnd >= self.ssthresh {
                    self.reached(path);
                }
            }
            Phase::Avoidance => self.avoid(segments, used, gain, queue),
        }
    }

    /// Section 4.3, by the share of a window that is acknowledged.
    fn avoid(&mut self, segments: u32, used: bool, gain: f64, queue: f64) {
        let share = (f64::from(segments) / self.cwnd).min(1.0);
        let over = queue / self.target - 1.0;
        let change = if over > 0.0 { (gain - self.decrease * self.cwnd * over).max(-self.cwnd / 2.0) } else { gain };
        if change < 0.0 || used {
            self.cwnd = (self.cwnd + change * share).max(MIN_CWND);
        }
    }

    /// Section 4.4: begins a slowdown that is due, or ends the freeze of the current one.
    fn slow_down(&mut self, path: &PathView) {
        match self.phase {
            Phase::Frozen(began, until) if path.now >= until => self.phase = Phase::SlowStart(Some(began)),
            Phase::Avoidance if path.now >= self.next => {
                self.ssthresh = self.cwnd.max(MIN_CWND);
                self.cwnd = MIN_CWND;
                self.phase = Phase::Frozen(path.now, path.now + path.srtt * FREEZE);
                self.next = Time::NEVER;
            }
            _ => {}
        }
    }

    /// Ends the first slow start.
    fn end_first(&mut self, path: &PathView) {
        self.phase = Phase::Avoidance;
        if self.slowdowns {
            self.next = path.now + path.srtt * FREEZE;
        }
    }

    /// Handles a slow start that has reached the threshold.
    fn reached(&mut self, path: &PathView) {
        match self.phase {
            Phase::SlowStart(Some(began)) => {
                self.phase = Phase::Avoidance;
                self.next = path.now + path.now.since(began) * BETWEEN;
            }
            Phase::SlowStart(None) if self.next != Time::NEVER => self.phase = Phase::Avoidance,
            _ => self.end_first(path),
        }
    }

    /// A loss or a mark: as Reno (section 4.3). A slowdown that this ends counts as complete.
    fn cut(&mut self, path: &PathView, min: f64) {
        self.ssthresh = (self.cwnd.min(f64::from(path.in_flight)) / 2.0).max(MIN_CWND);
        self.cwnd = (self.cwnd.min(f64::from(path.in_flight)) / 2.0).max(min);
        match self.phase {
            Phase::Avoidance => {}
            Phase::Frozen(began, _) => {
                self.phase = Phase::SlowStart(Some(began));
                self.reached(path);
            }
            Phase::First | Phase::SlowStart(_) => self.reached(path),
        }
    }
}

impl Build for LedbatPlusPlus {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "ledbat-plus-plus",
        summary: "LEDBAT++: background traffic that gives way to others and keeps the queue short",
        source: "draft-irtf-iccrg-ledbat-plus-plus-06",
        machine: Machine::Tcp([Recovery::Sack; EACH]),
        parameters: PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> LedbatPlusPlus {
        LedbatPlusPlus {
            target: values[0],
            divisor: values[1],
            decrease: values[2],
            slowdowns: values[3] > 0.0,
            established: false,
            cwnd: 1.0,
            ssthresh: f64::INFINITY,
            phase: Phase::First,
            delays: Delays::NONE,
            next: Time::NEVER,
        }
    }
}

impl Controller for LedbatPlusPlus {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::Acked { segments, in_flight, rtt } => self.acked(segments, in_flight, rtt, path),
            TcpEvent::Established { window } => {
                self.cwnd = window.max(1.0);
                self.established = true;
            }
            TcpEvent::Lost { .. } => self.cut(path, MIN_CWND),
            TcpEvent::EcnEcho => self.cut(path, 1.0),
            TcpEvent::Recovered { at_most } => self.cwnd = self.cwnd.min(at_most).max(1.0),
            TcpEvent::Timeout(threshold) => {
                if threshold == Threshold::Cut {
                    self.ssthresh = (self.cwnd.min(f64::from(path.in_flight)) / 2.0).max(MIN_CWND);
                }
                self.cwnd = 1.0;
                self.phase = Phase::SlowStart(None);
            }
            TcpEvent::Undo { window, threshold } => {
                self.cwnd = self.cwnd.max(window);
                self.ssthresh = self.ssthresh.max(threshold);
            }
            TcpEvent::Idle { window } => {
                self.cwnd = self.cwnd.min(window).max(1.0);
                if self.phase != Phase::First {
                    self.phase = Phase::SlowStart(None);
                }
            }
            TcpEvent::Deflate { segments } => self.cwnd = (self.cwnd - f64::from(segments)).max(1.0),
            TcpEvent::Duplicate | TcpEvent::Repaired { .. } | TcpEvent::Resumed { .. } => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let (base, queue) = self.delays.known().unwrap_or((f64::NAN, f64::NAN));
        to.packets("cwnd", self.cwnd);
        to.packets("ssthresh", known(self.ssthresh));
        to.seconds("base_delay", base);
        to.seconds("queueing_delay", queue);
    }
}

impl WindowController for LedbatPlusPlus {
    fn window(&self) -> f64 {
        self.cwnd
    }
    fn threshold(&self) -> f64 {
        self.ssthresh
    }
    fn base_rtt(&self) -> Option<f64> {
        self.delays.known().map(|(base, _)| base)
    }
}

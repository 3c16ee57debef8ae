//! LEDBAT: background transport that steers towards a target queueing delay, and so yields to flows that build longer
//! queues.
//!
//! Source: RFC 6817 (S. Shalunov, G. Hazel, J. Iyengar, M. Kuehlewind), section 2.4.2. Delays are round-trip times; the
//! RFC uses one-way delays, which TCP does not report here. docs/controllers/ledbat.md says what that changes, and how
//! details that the RFC leaves open are decided.

use crate::base_delay::Delays;
use crate::{Build, Controller, Gauges, Machine, Parameter, PathView, Profile, Recovery, Scheme};
use crate::{TcpEvent, WindowController};
use paceline_units::Span;

const EACH: usize = Profile::ALL.len();

const PARAMETERS: &[Parameter] = &[
    Parameter::number(
        "target",
        [0.100; EACH],
        (0.001, 1.0),
        "s",
        "queueing delay that the window steers towards; at most 0.1 in RFC 6817 (section 2.5)",
    ),
    Parameter::number(
        "gain",
        [1.0; EACH],
        (0.01, 100.0),
        "1",
        "segments that the window grows by in a round trip without a queue; at most 1 in RFC 6817 (section 2.5)",
    ),
    Parameter::number(
        "allowed_increase",
        [1.0; EACH],
        (0.1, 100.0),
        "segments",
        "the window is no more than this above what is in flight (section 2.5)",
    ),
];

/// The initial and the minimum window (INIT_CWND and MIN_CWND of section 2.5), in segments.
const MIN_CWND: f64 = 2.0;

/// The state.
#[derive(Clone, Debug)]
pub struct Ledbat {
    target: f64,
    gain: f64,
    allowed_increase: f64,
    established: bool,
    cwnd: f64,
    delays: Delays,
}

impl Ledbat {
    fn acked(&mut self, segments: u32, in_flight: u32, rtt: Option<Span>, path: &PathView) {
        // a SYN is smaller than a segment: its round trip would give a base delay that no segment can have
        if let Some(rtt) = rtt.filter(|_| self.established) {
            self.delays.sample(rtt, path.now);
        }
        // only samples of the last round trip count (section 2.5, CURRENT_FILTER)
        let Some((_, queue)) = self.delays.known_since(path.now - path.srtt) else { return };
        let off_target = (self.target - queue) / self.target;
        let grown = self.cwnd + self.gain * off_target * f64::from(segments) / self.cwnd;
        self.cwnd = grown.min(f64::from(in_flight) + self.allowed_increase).max(MIN_CWND);
    }

    /// A loss or a mark, once per round trip.
    fn cut(&mut self) {
        self.cwnd = self.cwnd.min((self.cwnd / 2.0).max(MIN_CWND));
    }
}

impl Build for Ledbat {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "ledbat",
        summary: "LEDBAT: background traffic that steers towards a queue of its target",
        source: "RFC 6817",
        machine: Machine::Tcp([Recovery::Sack; EACH]),
        parameters: PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Ledbat {
        Ledbat {
            target: values[0],
            gain: values[1],
            allowed_increase: values[2],
            established: false,
            cwnd: 1.0,
            delays: Delays::NONE,
        }
    }
}

impl Controller for Ledbat {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::Acked { segments, in_flight, rtt } => self.acked(segments, in_flight, rtt, path),
            TcpEvent::Established { window } => {
                self.cwnd = window.clamp(1.0, MIN_CWND);
                self.established = true;
            }
            TcpEvent::Lost { .. } | TcpEvent::EcnEcho => self.cut(),
            TcpEvent::Recovered { at_most } => self.cwnd = self.cwnd.min(at_most).max(1.0),
            TcpEvent::Timeout(_) => self.cwnd = 1.0,
            TcpEvent::Undo { window, .. } => self.cwnd = self.cwnd.max(window),
            TcpEvent::Idle { window } => self.cwnd = self.cwnd.min(window).max(1.0),
            TcpEvent::Deflate { segments } => self.cwnd = (self.cwnd - f64::from(segments)).max(1.0),
            TcpEvent::Duplicate | TcpEvent::Repaired { .. } | TcpEvent::Resumed { .. } => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let (base, queue) = self.delays.known().unwrap_or((f64::NAN, f64::NAN));
        to.packets("cwnd", self.cwnd);
        to.seconds("base_delay", base);
        to.seconds("queueing_delay", queue);
    }
}

impl WindowController for Ledbat {
    fn window(&self) -> f64 {
        self.cwnd
    }
    /// There is no slow start, which section 2.2 leaves open: the threshold is below every window.
    fn threshold(&self) -> f64 {
        1.0
    }
    fn base_rtt(&self) -> Option<f64> {
        self.delays.known().map(|(base, _)| base)
    }
}

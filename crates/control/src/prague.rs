//! Prague: a scalable controller for low-latency queues, which reduces its window by half the share of marks.
//!
//! Source: B. Briscoe, K. De Schepper and others, "Prague Congestion Control"
//! (draft-briscoe-iccrg-prague-congestion-control), as implemented in L4STeam/udp_prague at e8e34353; RFC 9331 section
//! 4 has the requirements for such controllers. `law` is its arithmetic.

pub mod law;

use crate::{
    Build, Controller, Ecn, Gauges, Machine, Needs, Parameter, PathView, Profile, RateSample, Recovery, Scheme,
};
use crate::{TcpEvent, WindowController};
use law::{Counts, Law, Limits};
use paceline_units::{Span, Time};

const PARAMETERS: &[Parameter] = &[
    Parameter::number(
        "initial_rate",
        [100e3; Profile::ALL.len()],
        (8e3, 1e11),
        "bit/s",
        "the rate at the beginning, of payload: there is no slow start",
    ),
    Parameter::number("max_rate", [1e11; Profile::ALL.len()], (8e3, 1e11), "bit/s", "the rate at most"),
];

/// The absolute minimum rate, in bytes per second.
const MIN_RATE: u64 = 12_500;
/// The first window, in packets; the first acknowledgement recomputes it.
const FIRST_WINDOW: u64 = 10;

/// The state.
#[derive(Clone, Debug)]
pub struct Prague {
    initial: u64,
    max_rate: u64,
    law: Law,
    counts: Counts,
    /// Packets lost before the current recovery.
    lost_before: i64,
    pacing: u64,
    smss: u64,
    /// Bytes acknowledged and bytes lost that do not yet make a whole packet: QUIC's packets are not all full.
    rest: (u64, u64),
}

/// Microseconds on a clock that starts at one.
fn micros(now: Time) -> i64 {
    1 + (now.0 / 1000) as i64
}

impl Prague {
    fn limits(&self, segment: u64) -> Limits {
        let min_rate = MIN_RATE.min(self.initial).min(self.max_rate);
        Limits {
            packet: segment,
            initial: self.initial.min(self.max_rate),
            min_rate,
            max_rate: self.max_rate,
            frames: None,
        }
    }
}

impl Build for Prague {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "prague",
        summary: "Prague: for queues of low latency (L4S), falls by the share of marks",
        source: "draft-briscoe-iccrg-prague-congestion-control; L4STeam/udp_prague",
        machine: Machine::Tcp([Recovery::Rack; Profile::ALL.len()]),
        parameters: PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Prague {
        let (initial, max_rate) = ((values[0] / 8.0) as u64, (values[1] / 8.0) as u64);
        let limits = Limits { packet: 1460, initial, min_rate: MIN_RATE, max_rate, frames: None };
        let law = Law::new(limits, FIRST_WINDOW, 1);
        Prague {
            initial,
            max_rate,
            law,
            counts: Counts::default(),
            lost_before: 0,
            pacing: initial,
            smss: 1460,
            rest: (0, 0),
        }
    }
}

impl Controller for Prague {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::Established { .. } => {
                self.smss = u64::from(path.segment);
                self.law = Law::new(self.limits(self.smss), FIRST_WINDOW, micros(path.now));
                self.counts = Counts::default();
                (self.lost_before, self.rest) = (0, (0, 0));
                self.pacing = self.law.pacing(micros(path.now));
            }
            TcpEvent::Lost { .. } => self.lost_before = self.counts.lost,
            TcpEvent::Undo { .. } => self.counts.lost = self.lost_before,
            TcpEvent::Timeout(_) => {
                self.law.reset(micros(path.now));
                self.pacing = self.law.pacing(micros(path.now));
            }
            TcpEvent::Acked { .. }
            | TcpEvent::Deflate { .. }
            | TcpEvent::Duplicate
            | TcpEvent::EcnEcho
            | TcpEvent::Idle { .. }
            | TcpEvent::Recovered { .. }
            | TcpEvent::Repaired { .. }
            | TcpEvent::Resumed { .. } => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.packets("cwnd", self.window());
        to.bits_per_second("pacing_rate", 8.0 * self.pacing as f64);
        to.number("alpha", self.law.alpha as f64 / f64::from(1 << 20));
    }
}

impl WindowController for Prague {
    /// Segments do not shrink as udp_prague's packets do: at low rates the window has the same bytes, but at least two
    /// segments.
    fn window(&self) -> f64 {
        let bytes = self.law.packets as u64 * self.law.size;
        (bytes / self.smss).max(2) as f64
    }
    fn threshold(&self) -> f64 {
        f64::INFINITY
    }
    fn needs(&self) -> Needs {
        Needs { ecn: Ecn::Accurate, l4s: true, ..Needs::MODEL }
    }
    fn on_delivery(&mut self, sample: &RateSample, path: &PathView) {
        let now = micros(path.now);
        if let Some(rtt) = sample.rtt.or((path.srtt > Span::ZERO).then_some(path.srtt)) {
            self.law.round_trip((rtt.0 / 1000).max(1) as i64);
        }
        let (acked, lost) = (self.rest.0 + sample.newly_acked, self.rest.1 + sample.newly_lost);
        self.rest = (acked % self.smss, lost % self.smss);
        self.counts.received += (acked / self.smss) as i64;
        self.counts.marked += i64::from(sample.newly_marked);
        self.counts.lost += (lost / self.smss) as i64;
        let in_flight = (sample.in_flight / self.smss) as i64;
        self.counts.sent = self.counts.received + self.counts.lost + in_flight;
        self.counts.marked = self.counts.marked.min(self.counts.received);
        self.law.acknowledged(self.counts, now);
        self.pacing = self.law.pacing(now);
    }
    fn pacing_rate(&self) -> f64 {
        self.pacing as f64
    }
    fn send_quantum(&self) -> u32 {
        (self.law.burst as u64 * self.law.size).min(1 << 20) as u32
    }
}

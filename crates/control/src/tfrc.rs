//! TFRC: the rate of a TCP with the same losses, smoothed over eight loss intervals.
//!
//! Source: RFC 5348; its predecessor RFC 3448; ns-2.35's `Agent/TFRC`. The receiver measures the loss event rate and
//! the receive rate; from its reports this file decides the allowed sending rate. Round-trip times, pacing and timers
//! belong to the machine (crate `flow`, `tfrc`). `rfc` holds the RFCs' laws, `ns2` that of ns-2, `equation` the part in
//! which TFRC's relatives differ. See docs/controllers/tfrc.md.

pub mod equation;
mod ns2;
mod rfc;

use crate::models::{PerAck, TimeoutTerm};
use crate::multfrc::Rules;
use crate::{Build, Controller, Gauges, Idle, Machine, Parameter, PathView, Profile, Scheme};
use equation::{Equation, Plain, Terms};
use ns2::Ns2;
use paceline_random::Stream;
use paceline_units::Span;
use rfc::Rfc;

/// The maximum backoff: seconds between packets at the lowest rate (t_mbi, RFC 5348 section 4.3).
pub const MAX_BACKOFF: f64 = 64.0;

/// Which TFRC to follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Law {
    /// RFC 5348 (2008).
    #[default]
    Rfc5348,
    /// RFC 3448 (2003), which RFC 5348 replaces.
    Rfc3448,
    /// ns-2.35, `Agent/TFRC` and `Agent/TFRCSink`.
    Ns2,
}

impl Law {
    /// All laws; the parameter `law` is an index into this.
    pub const ALL: [Law; 3] = [Law::Rfc5348, Law::Rfc3448, Law::Ns2];

    /// Their names in scenarios.
    pub const NAMES: [&'static str; Law::ALL.len()] = ["rfc5348", "rfc3448", "ns2"];

    /// Its name in scenarios.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Law::NAMES[self as usize]
    }

    /// The value of the parameter `law` that chooses it.
    #[must_use]
    pub const fn code(self) -> f64 {
        self as u8 as f64
    }
}

/// How the sender used an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interval {
    /// At some time the sender used its whole allowed rate.
    Used,
    /// It never did, because the application had too little to send (RFC 5348 section 4.3).
    DataLimited,
}

/// A receiver's report, as the machine passes it on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TfrcReport {
    /// The round-trip sample from this report (R_sample).
    pub rtt: Span,
    /// TCP's retransmission timeout in the throughput equation (t_RTO).
    pub timeout: Span,
    /// X_recv: bytes a second, finite, not negative.
    pub receive_rate: f64,
    /// p: from 0 to 1.
    pub loss_event_rate: f64,
    /// The interval that the report covers; under `ns2`, whether the sender was data-limited recently.
    pub interval: Interval,
}

/// Events from a TFRC sender's machine to its controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TfrcEvent {
    /// The sender is ready to send and has no round-trip sample yet.
    Started,
    /// A report arrived; the path's `srtt` includes its sample.
    Report(TfrcReport),
    /// The nofeedback timer has expired (RFC 5348 section 4.4).
    NoFeedback {
        /// Whether there was data to send since the timer was set.
        interval: Interval,
    },
}

/// A controller for TFRC's machine.
pub trait RateController: Controller<Feedback = TfrcEvent> {
    /// The allowed sending rate (X) in bytes of payload per second: finite, at least one segment in [`MAX_BACKOFF`].
    fn rate(&self) -> f64;
    /// The rate at which packets leave now (X_inst, RFC 5348 section 4.5), with the same bounds as
    /// [`RateController::rate`].
    fn pacing(&self) -> f64;
    /// The gap to the next packet begins, whether or not a packet was sent (ns-2's `nextpkt()`). Under [`Law::Ns2`]
    /// only.
    fn begin_gap(&mut self) {}
    /// Whether no loss has been reported yet.
    fn in_slow_start(&self) -> bool;
    /// What the controller requests of its machine.
    fn settings(&self) -> Settings;
    /// The law by which the flow opens more connections, each with its own such controller; `None`: there is one
    /// connection.
    fn connections(&self) -> Option<Rules> {
        None
    }
    /// Sets the stream of its random draws. Called once, before any event.
    fn draw_from(&mut self, _stream: Stream) {}
}

/// What the controller requests of its machine; these are also parameters of the scheme.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// Which TFRC to follow.
    pub law: Law,
    /// History discounting (RFC 5348 section 5.5).
    pub discounting: bool,
    /// NDUPACK: a packet is lost after this many later packets (RFC 5348 section 5.1).
    pub ndupack: u32,
    /// Round-trip times' worth of packets that may be sent in one burst to catch up (T of RFC 5348 section 4.6).
    pub burst: f64,
    /// Gaps between packets are multiplied by uniform draws from 1 - this to 1 + this (ns-2's `overhead_`).
    pub gap_jitter: f64,
    /// t_gran: granularity of the sender's timers (RFC 5348 section 8.3).
    pub granularity: Span,
    /// b of the equation: packets that each acknowledgement of the modelled TCP covers.
    pub per_ack: PerAck,
    /// The flow may open several connections: each packet carries its connection's number.
    pub multiple_connections: bool,
}

const EACH: usize = Profile::ALL.len();

/// Without effect in ns-2's machine.
const NOT_NS2: Idle = Idle::Beside("law", Law::Ns2.code());

/// The parameters with which all schemes of this family begin.
pub(crate) const COMMON: [Parameter; 8] = [
    Parameter::choice(
        "law",
        [Law::Rfc5348.code(), Law::Ns2.code(), Law::Ns2.code(), Law::Rfc5348.code()],
        &Law::NAMES,
        "whose TFRC: RFC 5348's, RFC 3448's or ns-2's",
    ),
    Parameter::switch(
        "damping",
        [true; EACH],
        "send slower while the round-trip time is above its average (RFC 5348 section 4.5)",
    ),
    Parameter::switch("discounting", [true; EACH], "long times without loss discount the older intervals (5.5)"),
    Parameter::whole("ndupack", [3.0, 1.0, 1.0, 3.0], (1.0, 100.0), "so many later packets tell of a loss (5.1)")
        .idle(NOT_NS2),
    Parameter::number(
        "burst",
        [1.0, 0.0, 0.0, 1.0],
        (0.0, 1.0),
        "1",
        "round-trip times of sending that an idle sender catches up on in one burst (4.6)",
    )
    .idle(NOT_NS2),
    Parameter::number(
        "gap_jitter",
        [0.0; EACH],
        (0.0, 0.999),
        "1",
        "gaps are multiplied by draws from 1 - this to 1 + this",
    ),
    Parameter::number(
        "granularity",
        [0.0; EACH],
        (0.0, 1.0),
        "s",
        "packets may leave half of this before their time (8.3)",
    )
    .idle(NOT_NS2),
    Parameter::number(
        "packets_per_ack",
        [1.0; EACH],
        (1.0, 2.0),
        "1",
        "b of the equation (3.1); 2 for a TCP that delays ACKs",
    ),
];

/// A number that only one scheme has, with the same default under every profile.
pub(crate) const fn own(
    name: &'static str,
    default: f64,
    min: f64,
    max: f64,
    unit: &'static str,
    doc: &'static str,
) -> Parameter {
    Parameter::number(name, [default; EACH], (min, max), unit, doc)
}

/// A whole number that only one scheme has.
pub(crate) const fn own_whole(name: &'static str, default: f64, min: f64, max: f64, doc: &'static str) -> Parameter {
    Parameter::whole(name, [default; EACH], (min, max), doc)
}

/// A switch that only one scheme has.
pub(crate) const fn own_switch(name: &'static str, on: bool, doc: &'static str) -> Parameter {
    Parameter::switch(name, [on; EACH], doc)
}

/// [`COMMON`] followed by a scheme's own parameters.
pub(crate) const fn after_common<const OWN: usize, const ALL: usize>(own: [Parameter; OWN]) -> [Parameter; ALL] {
    assert!(COMMON.len() + OWN == ALL);
    let mut all = [COMMON[0]; ALL];
    let mut i = 1;
    while i < ALL {
        all[i] = if i < COMMON.len() { COMMON[i] } else { own[i - COMMON.len()] };
        i += 1;
    }
    all
}

impl Settings {
    /// RFC 5348's machine with its default settings.
    pub const PLAIN: Settings = Settings {
        law: Law::Rfc5348,
        discounting: true,
        ndupack: 3,
        burst: 1.0,
        gap_jitter: 0.0,
        granularity: Span::ZERO,
        per_ack: PerAck::ONE,
        multiple_connections: false,
    };

    /// The settings from the values of [`COMMON`].
    fn new(values: &[f64]) -> Settings {
        Settings {
            law: Law::ALL[(values[0] as usize).min(Law::ALL.len() - 1)],
            discounting: values[2] == 1.0,
            ndupack: values[3] as u32,
            burst: values[4],
            gap_jitter: values[5],
            granularity: Span::from_secs_f64(values[6]),
            per_ack: PerAck::new(values[7]).unwrap_or(PerAck::ONE),
            multiple_connections: false,
        }
    }
}

/// The state of the chosen law.
#[derive(Clone, Debug)]
enum State {
    Rfc(Rfc),
    Ns2(Ns2),
}

/// The long-term mean of the square root of the round-trip time (R_sqmean, RFC 5348 section 4.5).
#[derive(Clone, Copy, Debug)]
struct Damping {
    on: bool,
    /// Weight of the past (q2).
    keep: f64,
    mean: Option<f64>,
    /// R_sqmean / sqrt(R_sample).
    factor: f64,
}

impl Damping {
    fn sample(&mut self, rtt: f64) {
        let root = rtt.sqrt();
        let mean = self.mean.map_or(root, |mean| self.keep * mean + (1.0 - self.keep) * root);
        self.mean = Some(mean);
        self.factor = if self.on && root > 0.0 { mean / root } else { 1.0 };
    }
}

/// TFRC's controller around an equation.
#[derive(Clone, Debug)]
pub struct Tfrc<E = Plain> {
    settings: Settings,
    state: State,
    damping: Damping,
    pub(crate) equation: E,
    /// Last reported value, for plots; NaN before the first report.
    p: f64,
    receive_rate: f64,
    /// One segment per t_mbi, in bytes per second.
    floor: f64,
}

impl<E: Equation> Tfrc<E> {
    /// `values` begin with those of [`COMMON`].
    pub(crate) fn with(values: &[f64], equation: E) -> Tfrc<E> {
        let settings = Settings::new(values);
        let (state, keep) = match settings.law {
            Law::Rfc5348 => (State::Rfc(Rfc::new(rfc::Version::Rfc5348)), 0.9),
            Law::Rfc3448 => (State::Rfc(Rfc::new(rfc::Version::Rfc3448)), 0.9),
            Law::Ns2 => (State::Ns2(Ns2::new()), 0.95), // df_
        };
        let damping = Damping { on: values[1] >= 0.5, keep, mean: None, factor: 1.0 };
        let settings = Settings { multiple_connections: equation.connections().is_some(), ..settings };
        Tfrc { settings, state, damping, equation, p: f64::NAN, receive_rate: f64::NAN, floor: 0.0 }
    }

    fn report(&mut self, report: &TfrcReport, path: &PathView) {
        let sane = report.receive_rate.is_finite()
            && report.receive_rate >= 0.0
            && (0.0..=1.0).contains(&report.loss_event_rate);
        let Some(terms) = Terms::new(path.segment, path.srtt, report.timeout).filter(|_| sane) else {
            return;
        };
        let terms = terms.covering(self.settings.per_ack);
        let terms = if self.settings.law == Law::Ns2 { terms.form(TimeoutTerm::AtMostOne) } else { terms };
        self.damping.sample(report.rtt.as_secs_f64());
        self.equation.observe(report, path, self.rate());
        match &mut self.state {
            State::Rfc(rfc) => rfc.report(report, path.now, &terms, &self.equation),
            State::Ns2(ns2) => ns2.report(report, path.now, &terms, &self.equation),
        }
        self.p = report.loss_event_rate;
        self.receive_rate = report.receive_rate;
    }
}

impl Build for Tfrc {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "tfrc",
        summary: "TCP-friendly rate control: the rate of a TCP with the same losses, smoothly",
        source: "RFC 5348",
        machine: Machine::Tfrc,
        parameters: &COMMON,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Tfrc {
        Tfrc::with(values, Plain)
    }
}

impl<E: Equation> Controller for Tfrc<E> {
    type Feedback = TfrcEvent;

    fn on_feedback(&mut self, feedback: &TfrcEvent, path: &PathView) {
        self.floor = f64::from(path.segment.max(1)) / MAX_BACKOFF;
        let segment = f64::from(path.segment.max(1));
        match (feedback, &mut self.state) {
            (TfrcEvent::Report(report), _) => self.report(report, path),
            (TfrcEvent::Started, State::Rfc(rfc)) => rfc.start(segment),
            (TfrcEvent::Started, State::Ns2(_)) => {}
            (TfrcEvent::NoFeedback { interval }, State::Rfc(rfc)) => {
                rfc.no_feedback(*interval, path.now, segment, path.srtt.as_secs_f64());
            }
            (TfrcEvent::NoFeedback { interval }, State::Ns2(ns2)) => {
                ns2.no_feedback(*interval, segment, path.srtt.as_secs_f64());
            }
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.bits_per_second("allowed", self.rate() * 8.0);
        to.bits_per_second("receive", self.receive_rate * 8.0);
        to.number("loss_event_rate", self.p);
        self.equation.gauges(to);
    }
}

impl<E: Equation> RateController for Tfrc<E> {
    fn rate(&self) -> f64 {
        match &self.state {
            State::Rfc(rfc) => rfc.rate(),
            State::Ns2(ns2) => ns2.rate(),
        }
        .max(self.floor)
    }

    #[inline]
    fn pacing(&self) -> f64 {
        match &self.state {
            State::Rfc(rfc) => rfc.rate() * self.damping.factor,
            State::Ns2(ns2) => ns2.pacing(),
        }
        .max(self.floor)
    }

    fn begin_gap(&mut self) {
        if let State::Ns2(ns2) = &mut self.state {
            ns2.sent(self.damping.factor);
        }
    }

    fn in_slow_start(&self) -> bool {
        match &self.state {
            State::Rfc(rfc) => rfc.in_slow_start(),
            State::Ns2(ns2) => ns2.in_slow_start(),
        }
    }

    fn settings(&self) -> Settings {
        self.settings
    }

    fn connections(&self) -> Option<Rules> {
        self.equation.connections()
    }
}

impl<C: RateController> RateController for Box<C> {
    fn rate(&self) -> f64 {
        (**self).rate()
    }
    #[inline]
    fn pacing(&self) -> f64 {
        (**self).pacing()
    }
    fn begin_gap(&mut self) {
        (**self).begin_gap();
    }
    fn in_slow_start(&self) -> bool {
        (**self).in_slow_start()
    }
    fn settings(&self) -> Settings {
        (**self).settings()
    }
    fn connections(&self) -> Option<Rules> {
        (**self).connections()
    }
    fn draw_from(&mut self, stream: Stream) {
        (**self).draw_from(stream);
    }
}

#[cfg(test)]
pub(crate) mod tests;

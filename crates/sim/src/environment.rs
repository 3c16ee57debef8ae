//! A run that stops for decisions: somebody outside decides for one flow, interval by interval, and sees what each was like.
//!
//! Learners stand on it. The flow's machine and path are those of any run; its controller only passes on what
//! it is told, and does as it is bidden. Results are the scenario's, the seed's and the decisions'.

use crate::build::{Built, build};
use crate::expand::expand;
use crate::graph::Planning;
use crate::model::Model;
use crate::recorder::Recording;
use crate::run::{RunError, ends, in_words};
use crate::scenario::{Document, Mistake, Scenario, ScenarioError};
use paceline_control::foreign::{Foreign, Given, Maker, Window};
use paceline_control::monitor::Monitored;
use paceline_control::{
    Controller, Failure, GaugeUnit, Gauges, Machine, Needs, PathView, Profile, RateSample, Recovery, Scheme, TcpEvent,
    WindowController,
};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the agent's flow has in `cc`.
pub const AGENT: &str = "agent";

/// What an agent sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acts {
    /// A window in segments.
    Window,
    /// A rate in bits of payload a second, at which segments leave; a window of [`MOST_IN_FLIGHT`] segments bounds what is in flight.
    Rate,
}

/// How long a step is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// So long.
    Time(Span),
    /// Until so many segments have been acknowledged, to a tenth of a millisecond, or for [`LONGEST_STEP`].
    Segments(u32),
}

/// The window of an agent that sets a rate.
pub const MOST_IN_FLIGHT: f64 = 1e6;
/// A step by acknowledgements ends after this without them.
pub const LONGEST_STEP: Span = Span::from_secs(1);
/// How often it is looked whether they are there.
const LOOK: Span = Span::from_micros(100);

/// What a step tells, in this order.
pub const FEATURES: [&str; 18] = [
    "time_s",
    "duration_s",
    "acked_bytes",
    "lost_bytes",
    "sent_bytes",
    "marked_segments",
    "timeouts",
    "rtt_s",
    "rtt_least_s",
    "rtt_most_s",
    "srtt_s",
    "rtt_min_s",
    "in_flight_segments",
    "window_segments",
    "rate_bps",
    "app_limited",
    "segment_bytes",
    "begun",
];

/// One step's features; not a number: not known.
pub type Features = [f64; FEATURES.len()];

/// What the controller and who decides for it have in common.
#[derive(Debug)]
struct Shared {
    /// Segments, and bytes a second: numbers as their bits.
    window: AtomicU64,
    pacing: AtomicU64,
    seen: Mutex<Seen>,
}

/// What the controller has been told since the last step.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    told: Monitored,
    srtt: Span,
    min_rtt: Span,
    in_flight: u32,
    segment: u32,
    begun: bool,
    /// Bytes after which no more is taken in: a step by acknowledgements ends there.
    full: Option<u64>,
}

impl Shared {
    fn new() -> Shared {
        Shared {
            window: AtomicU64::new(1f64.to_bits()),
            pacing: AtomicU64::new(f64::INFINITY.to_bits()),
            seen: Mutex::default(),
        }
    }

    fn window(&self) -> f64 {
        f64::from_bits(self.window.load(Ordering::Relaxed))
    }

    fn pacing(&self) -> f64 {
        f64::from_bits(self.pacing.load(Ordering::Relaxed))
    }

    fn decide(&self, window: f64, pacing: f64) {
        self.window.store(window.to_bits(), Ordering::Relaxed);
        self.pacing.store(pacing.to_bits(), Ordering::Relaxed);
    }

    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The agent's controller.
struct Agent {
    shared: Arc<Shared>,
    needs: Needs,
}

impl Agent {
    fn at_most(&self, window: f64) {
        let window = self.shared.window().min(window).max(1.0);
        self.shared.decide(window, self.shared.pacing());
    }

    fn look(seen: &mut Seen, path: &PathView) {
        (seen.srtt, seen.min_rtt, seen.in_flight, seen.segment) =
            (path.srtt, path.min_rtt, path.in_flight, path.segment);
    }
}

impl Controller for Agent {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, event: &TcpEvent, path: &PathView) {
        match *event {
            TcpEvent::Established { window } => {
                self.shared.seen(|seen| {
                    Agent::look(seen, path);
                    seen.begun = true;
                });
                if !self.needs.rate_leads {
                    self.shared.decide(window.max(1.0), self.shared.pacing());
                }
            }
            TcpEvent::Timeout(_) => {
                self.shared.seen(|seen| {
                    Agent::look(seen, path);
                    seen.told.timeouts += 1;
                });
                if !self.needs.rate_leads {
                    self.at_most(1.0);
                }
            }
            TcpEvent::Recovered { at_most } if !self.needs.rate_leads => self.at_most(at_most),
            TcpEvent::Idle { window } if !self.needs.rate_leads => self.at_most(window),
            _ => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.packets("cwnd", self.shared.window());
    }
}

impl WindowController for Agent {
    fn window(&self) -> f64 {
        self.shared.window()
    }

    fn threshold(&self) -> f64 {
        f64::INFINITY
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn on_delivery(&mut self, sample: &RateSample, path: &PathView) {
        self.shared.seen(|seen| {
            if seen.full.is_none_or(|full| seen.told.acked < full) {
                seen.told.add(sample);
                Agent::look(seen, path);
            }
        });
    }

    fn pacing_rate(&self) -> f64 {
        self.shared.pacing()
    }
}

/// A scenario with an agent, of which runs are made one after the other.
#[derive(Debug)]
pub struct Environment {
    scenario: Scenario,
    flow: String,
    acts: Acts,
    step: Step,
    shared: Arc<Shared>,
    run: Option<Running>,
}

/// A run under way.
#[derive(Debug)]
struct Running {
    model: Model,
    built: Built,
    flow: usize,
    /// When the last step ended.
    at: Time,
    /// Segments sent by then.
    sent: u64,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stepped {
    /// What it was like.
    pub features: Features,
    /// The flow has sent all that it had to.
    pub is_done: bool,
    /// The scenario's duration is over.
    pub is_over: bool,
}

/// Why there is no environment.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// A mistake in the scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// It does not run.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Environment {
    /// One of the scenario in `document`, in which the agent decides for `flow` each `step`. `foreign` are schemes of others.
    ///
    /// # Errors
    /// Mistakes in it; a flow that is not there, or of which there are several.
    pub fn new(
        mut document: Document,
        read: &mut dyn FnMut(&str) -> Result<String, String>,
        foreign: &[&'static Scheme],
        (flow, acts, step): (&str, Acts, Step),
    ) -> Result<Environment, EnvironmentError> {
        let shared = Arc::new(Shared::new());
        let scheme = scheme(&shared, acts);
        document.hand_over(flow, AGENT)?;
        let all: Vec<&'static Scheme> = foreign.iter().copied().chain([scheme]).collect();
        let scenario = Scenario::check_with(&document, read, &all)?;
        let own = scenario.flows().iter().find(|own| own.name == flow);
        if own.is_none_or(|own| own.count != 1) {
            let problem = "an agent decides for one flow: leave `count` out";
            return Err(document.error(vec![Mistake::new(format!("flow.{flow}.count"), problem)]).into());
        }
        Ok(Environment { scenario, flow: flow.to_owned(), acts, step, shared, run: None })
    }

    /// How long a run is.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.scenario.duration()
    }

    /// Begins a run, and simulates until the agent's flow begins; gives what is known by then.
    ///
    /// # Errors
    /// What only the whole graph shows, and what a controller of others failed with.
    pub fn reset(&mut self, seed: u64) -> Result<Stepped, RunError> {
        let model = expand(&self.scenario, seed)?;
        let built = build(&model, Recording::NOTHING, Planning::default()).map_err(|error| in_words(&model, error))?;
        let flow = model.flows.iter().position(|flow| flow.name == self.flow).unwrap_or(0);
        let window = if self.acts == Acts::Rate { MOST_IN_FLIGHT } else { 1.0 };
        // a rate has to be something before there is a decision: ten segments of 1000 B in 100 ms
        let pacing = if self.acts == Acts::Rate { 1e5 } else { f64::INFINITY };
        self.shared.decide(window, pacing);
        self.shared.seen(|seen| *seen = Seen::default());
        let mut run = Running { model, built, flow, at: Time::ZERO, sent: 0 };
        let end = Time::ZERO + self.scenario.duration();
        while !self.shared.seen(|seen| seen.begun) && run.at < end {
            run.advance((run.at + LOOK).min(end))?;
        }
        self.shared.seen(|seen| seen.told = Monitored::default());
        run.sent = run.sent_so_far();
        let told = self.told(&run, run.at);
        self.run = Some(run);
        Ok(told)
    }

    /// Takes a decision, in segments or bits a second, and simulates a step.
    ///
    /// # Errors
    /// What a controller of others failed with. Without a run there is nothing to do: see [`Environment::reset`].
    pub fn step(&mut self, decision: f64) -> Result<Stepped, RunError> {
        let Some(mut run) = self.run.take() else { return Err(RunError::Cancelled) };
        match self.acts {
            Acts::Window => self.shared.decide(decision.clamp(1.0, MOST_IN_FLIGHT), f64::INFINITY),
            Acts::Rate => self.shared.decide(MOST_IN_FLIGHT, (decision / 8.0).clamp(1.0, 1e14)),
        }
        let began = run.at;
        let end = Time::ZERO + self.scenario.duration();
        match self.step {
            Step::Time(span) => run.advance((began + span).min(end))?,
            Step::Segments(many) => {
                let full = self.shared.seen(|seen| {
                    let full = u64::from(many) * u64::from(seen.segment.max(1));
                    seen.full = Some(full);
                    full
                });
                let last = (began + LONGEST_STEP).min(end);
                while run.at < last && self.shared.seen(|seen| seen.told.acked) < full {
                    run.advance((run.at + LOOK).min(last))?;
                }
            }
        }
        let told = self.told(&run, began);
        run.sent = run.sent_so_far();
        self.shared.seen(|seen| seen.told = Monitored::default());
        self.run = Some(run);
        Ok(told)
    }

    fn told(&self, run: &Running, began: Time) -> Stepped {
        let seen = self.shared.seen(|seen| *seen);
        let (told, known) = (seen.told, |span: Span| if span == Span::ZERO { f64::NAN } else { span.as_secs_f64() });
        let optional = |span: Option<Span>| span.map_or(f64::NAN, Span::as_secs_f64);
        let segment = f64::from(seen.segment);
        let sent = (run.sent_so_far() - run.sent) as f64 * segment;
        let is_done = ends(&run.model, &run.built, run.flow).source.is_done();
        Stepped {
            features: [
                run.at.since(Time::ZERO).as_secs_f64(),
                run.at.since(began).as_secs_f64(),
                told.acked as f64,
                told.lost as f64,
                sent,
                f64::from(told.marked),
                f64::from(told.timeouts),
                told.rtt().unwrap_or(f64::NAN),
                optional(told.least_rtt),
                optional(told.most_rtt),
                known(seen.srtt),
                known(seen.min_rtt),
                f64::from(seen.in_flight),
                self.shared.window(),
                self.shared.pacing() * 8.0,
                f64::from(u8::from(told.app_limited)),
                segment,
                f64::from(u8::from(seen.begun)),
            ],
            is_done,
            is_over: run.at >= Time::ZERO + self.scenario.duration(),
        }
    }
}

impl Running {
    fn advance(&mut self, to: Time) -> Result<(), RunError> {
        Failure::caught(|| self.built.engine.run(to))?;
        self.at = to;
        Ok(())
    }

    fn sent_so_far(&self) -> u64 {
        ends(&self.model, &self.built, self.flow).source.sender.stats().packets_sent
    }
}

/// The scheme of one environment's agent. It stays as long as the process: environments are few, and are reset for each run.
fn scheme(shared: &Arc<Shared>, acts: Acts) -> &'static Scheme {
    let rate = acts == Acts::Rate;
    let needs = Needs { deliveries: true, pacing: rate, rate_leads: rate, ..Needs::NONE };
    let shared = Arc::clone(shared);
    let make = move |_: &Given, _: Stream| -> Result<Box<Window>, String> {
        Ok(Box::new(Agent { shared: Arc::clone(&shared), needs }))
    };
    let gauges = vec![("cwnd", GaugeUnit::Packets)];
    let foreign = Box::leak(Box::new(Foreign { gauges, maker: Maker::Window(Box::new(make), needs) }));
    Box::leak(Box::new(Scheme {
        name: AGENT,
        summary: "Decides outside of the simulator, interval by interval",
        source: "an environment's agent",
        machine: Machine::Tcp([Recovery::Rack; Profile::ALL.len()]),
        parameters: &[],
        foreign: Some(foreign),
    }))
}

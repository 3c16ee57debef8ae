//! A run that pauses for decisions: an outside agent controls one flow, interval by interval, and observes each
//! interval.
//!
//! For reinforcement learning. The flow's machine and path are those of any run; its controller only forwards its
//! events and applies the decisions. Results depend on the scenario, the seed and the decisions alone. As a baseline,
//! one of Paceline's controllers can drive the flow instead, observed in the same way.

mod agent;
mod baseline;
mod observation;

use crate::build::build;
use crate::expand::expand;
use crate::graph::Planning;
use crate::recorder::Recording;
use crate::run::{RunError, in_words};
use crate::summary::Summary;
use agent::Shared;
use baseline::{Counts, Listener};
pub use observation::{FEATURES, Features, Stepped};
use observation::{Observation, Running};
use paceline_control::{Machine, RtpFeedback, Scheme};
use paceline_flow::Transport;
use paceline_scenario::flow::App;
use paceline_scenario::{Document, Flow, Mistake, Scenario, ScenarioError};
use paceline_units::{Span, Time};
use std::sync::Arc;

/// The value of `cc` in the agent's flow.
pub const AGENT: &str = "agent";

/// What drives the flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Driver {
    /// The agent.
    Agent(Acts),
    /// This controller; decisions have no effect. The flow is bit for bit that of a run with this `cc`.
    Baseline(String),
}

/// What an agent sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acts {
    /// A window in segments.
    Window,
    /// A payload rate in bit/s, at which segments leave; a window of [`MAX_IN_FLIGHT`] segments bounds what is in
    /// flight. On RTP, a rate in bit/s on the wire, which is the encoder's target.
    Rate,
}

/// Length of a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// A fixed time.
    Time(Span),
    /// Until this number of segments has been acknowledged, to a tenth of a millisecond, or for [`LONGEST_STEP`].
    Segments(u32),
}

/// The window, in segments, of an agent that sets a rate.
pub const MAX_IN_FLIGHT: f64 = 1e6;
/// A step by acknowledgements ends after this time at the latest.
pub const LONGEST_STEP: Span = Span::from_secs(1);
/// Polling interval of a step by acknowledgements.
const POLL_INTERVAL: Span = Span::from_micros(100);

/// The rate before the first decision, in bytes/s: ten segments of 1000 B in 100 ms. For a call 300 kbit/s, libwebrtc's
/// start bitrate.
const FIRST_RATE: f64 = 1e5;
const FIRST_RATE_OF_CALL: f64 = 37_500.0;

/// A scenario with an agent, run again after each reset.
#[derive(Debug)]
pub struct Environment {
    scenario: Scenario,
    flow: String,
    driver: Driver,
    /// Whether the flow is on RTP's machine, rather than TCP's.
    rtp: bool,
    step: Step,
    shared: Arc<Shared>,
    listener: Option<Listener>,
    run: Option<Running>,
}

/// Why an environment cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// A mistake in the scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The scenario cannot run.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Environment {
    /// An environment for the scenario in `document`, in which `driver` drives `flow`. `foreign` are schemes that are
    /// not compiled in.
    ///
    /// # Errors
    /// Mistakes in the scenario; a flow that does not exist, has several instances, or shares its controller with
    /// others; a window for a flow on RTP; a baseline on a machine that does not report what arrived in a step.
    pub fn new(
        mut document: Document,
        read: &mut dyn FnMut(&str) -> Result<String, String>,
        foreign: &[&'static Scheme],
        (flow, driver, step): (&str, Driver, Step),
    ) -> Result<Environment, EnvironmentError> {
        let shared = Arc::new(Shared::new());
        let mut all = foreign.to_vec();
        // A flow whose `cc` is the baseline's already keeps its parameters.
        let as_it_is = Scenario::check_with(&document, read, &all)?;
        let own = as_it_is.flows().iter().find(|own| own.name == flow);
        match &driver {
            Driver::Agent(acts) => {
                let rtp = own.is_some_and(is_of_rtp);
                if rtp && *acts == Acts::Window {
                    let problem = "on RTP an agent sets a rate, not a window (action `rate` or `rate_factor`)";
                    return Err(document.error(vec![Mistake::new(format!("flow.{flow}"), problem)]).into());
                }
                all.push(agent::scheme(&shared, *acts, rtp));
                document.hand_over(flow, AGENT)?;
            }
            Driver::Baseline(name) if own.is_none_or(|own| own.cc != *name) => document.hand_over(flow, name)?,
            Driver::Baseline(_) => {}
        }
        let scenario = Scenario::check_with(&document, read, &all)?;
        let wrong = |key: &str, problem: String| {
            let mistake = Mistake::new(format!("flow.{flow}.{key}"), problem);
            EnvironmentError::from(document.error(vec![mistake]))
        };
        let own = scenario.flows().iter().find(|own| own.name == flow).filter(|own| own.count == 1);
        let Some(own) = own else {
            return Err(wrong("count", "an agent decides for one flow: leave `count` out".to_owned()));
        };
        if own.bundle.is_some() {
            let problem = "has one controller with others: an agent, and a baseline, is of a flow alone; leave it out";
            return Err(wrong("bundle", problem.to_owned()));
        }
        if own.app.request().is_some() {
            let problem =
                "has connections that its receiver opens: an agent, and a baseline, opens its own; leave it out";
            return Err(wrong("app.request", problem.to_owned()));
        }
        let model = expand(&scenario, scenario.seed()).map_err(RunError::from)?;
        let transport = model.flows.iter().find(|model| model.name == flow).map(|model| &model.transport);
        let observable = match transport {
            Some(Transport::Rtp { config, .. }) => config.settings.feedback == RtpFeedback::Arrivals,
            transport => matches!(transport, Some(Transport::Tcp { .. })),
        };
        if !observable {
            let problem = format!(
                "as a baseline `{}` cannot be seen step by step: it must be a controller of TCP, or one of RTP that is told when \
                 each packet arrived (all but `lda-plus`)",
                own.cc
            );
            return Err(wrong("cc", problem));
        }
        let rtp = matches!(transport, Some(Transport::Rtp { .. }));
        let listener = (rtp && matches!(driver, Driver::Baseline(_))).then(|| Listener::new(&shared));
        Ok(Environment { scenario, flow: flow.to_owned(), driver, rtp, step, shared, listener, run: None })
    }

    /// Duration of a run.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.scenario.duration()
    }

    /// Begins a run and simulates until the agent's flow begins; returns the first observation.
    ///
    /// # Errors
    /// Errors that only the whole graph shows, and failures of a controller that is not compiled in.
    pub fn reset(&mut self, seed: u64) -> Result<Stepped, RunError> {
        let mut model = expand(&self.scenario, seed)?;
        let flow = model.flows.iter().position(|flow| flow.name == self.flow).unwrap_or(0);
        let (window, pacing) = match self.driver {
            Driver::Agent(Acts::Rate) if self.rtp => (MAX_IN_FLIGHT, FIRST_RATE_OF_CALL),
            Driver::Agent(Acts::Rate) => (MAX_IN_FLIGHT, FIRST_RATE),
            _ => (1.0, f64::INFINITY),
        };
        self.shared.decide(window, pacing);
        self.shared.with_observation(|observation| *observation = Observation::default());
        let label = model.flows[flow].label();
        if let (Some(listener), Transport::Rtp { controller, .. }) = (&self.listener, &mut model.flows[flow].transport)
        {
            listener.listen(controller, &label);
        }
        let built = build(&model, Recording::NOTHING, Planning::default()).map_err(|error| in_words(&model, error))?;
        let mut run = Running::new(model, built, flow);
        if matches!(self.driver, Driver::Baseline(_)) && !self.rtp {
            run.counts = Counts::of(&run, None);
        }
        let end = run.end();
        while !self.has_begun(&run) && run.at < end {
            run.advance((run.at + POLL_INTERVAL).min(end))?;
        }
        let now = run.at;
        self.end_step(&mut run, now); // what happened before belongs to no step
        let step = self.end_step(&mut run, now);
        self.run = Some(run);
        Ok(step)
    }

    /// Applies a decision, in segments or bit/s, and simulates a step. A baseline ignores the decision.
    ///
    /// # Errors
    /// Failures of a controller that is not compiled in. Without a run it returns [`RunError::Cancelled`]: see
    /// [`Environment::reset`].
    pub fn step(&mut self, decision: f64) -> Result<Stepped, RunError> {
        let Some(mut run) = self.run.take() else { return Err(RunError::Cancelled) };
        match self.driver {
            Driver::Agent(Acts::Window) => self.shared.decide(decision.clamp(1.0, MAX_IN_FLIGHT), f64::INFINITY),
            Driver::Agent(Acts::Rate) => self.shared.decide(MAX_IN_FLIGHT, (decision / 8.0).clamp(1.0, 1e14)),
            Driver::Baseline(_) => {}
        }
        let (began, end) = (run.at, run.end());
        match self.step {
            Step::Time(span) => run.advance((began + span).min(end))?,
            Step::Segments(many) => {
                let segment = run.model.flows[run.flow].transport.segment().max(1);
                let full = u64::from(many) * u64::from(segment);
                self.shared.with_observation(|observation| observation.full = Some(full));
                let last = (began + LONGEST_STEP).min(end);
                while run.at < last && self.acked(&run) < full {
                    run.advance((run.at + POLL_INTERVAL).min(last))?;
                }
            }
        }
        let step = self.end_step(&mut run, began);
        self.run = Some(run);
        Ok(step)
    }

    /// Ends a run that is over, or whose flow is done, and returns its summary; if only the flow is done, the run first
    /// goes on to its end. The result is that of [`crate::run()`], except that `stop_after` does not end the run here.
    /// `None` if there is no such run.
    ///
    /// # Errors
    /// Failures of a controller that is not compiled in.
    pub fn summary(&mut self) -> Result<Option<Summary>, RunError> {
        let Some(mut run) = self.run.take_if(|run| run.at >= run.end() || run.ends().source.is_done()) else {
            return Ok(None);
        };
        run.advance(run.end())?;
        Ok(run.finish())
    }

    /// The observation of the step from `began` to now; begins the next step.
    fn end_step(&self, run: &mut Running, began: Time) -> Stepped {
        let observed = self.shared.with_observation(|observation| {
            let observed = *observation;
            observation.begin_step();
            observed
        });
        let counts = run.counts.as_ref().and_then(|before| Counts::of(run, Some(before)));
        let counted = run.counts.as_ref().zip(counts.as_ref()).map(|(before, now)| now.since(before, run));
        let agent = matches!(self.driver, Driver::Agent(_));
        let set = agent.then(|| (self.shared.window(), self.shared.pacing()));
        let step = run.stepped(began, &counted.unwrap_or(observed), set);
        run.counts = counts;
        run.sent = run.sent_so_far();
        step
    }

    fn has_begun(&self, run: &Running) -> bool {
        match &run.counts {
            Some(_) => Counts::has_begun(run),
            None => self.shared.with_observation(|observation| observation.begun),
        }
    }

    /// Bytes acknowledged in the step so far.
    fn acked(&self, run: &Running) -> u64 {
        match &run.counts {
            Some(before) => before.acked_since(run),
            None => self.shared.with_observation(|observation| observation.interval.acked),
        }
    }
}

/// Whether an agent in this flow's place is on RTP: for flows on RTP, and for all that carry a call.
fn is_of_rtp(flow: &Flow) -> bool {
    flow.scheme().is_ok_and(|scheme| scheme.machine == Machine::Rtp) || matches!(flow.app, App::Encoder { .. })
}

//! The agent's controllers: they forward their events and apply the agent's decisions.

use super::observation::Observation;
use super::{AGENT, Acts};
use paceline_control::foreign::{ControllerArgs, Foreign, Maker, Media, Window};
use paceline_control::{
    Controller, GaugeUnit, Gauges, Machine, MediaController, Needs, PathView, Profile, RateSample, Recovery, RtpEvent,
    RtpFeedback, RtpSettings, Scheme, TcpEvent, WindowController,
};
use paceline_random::Stream;
use paceline_units::{Rate, Span};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Ratio of the pacing rate to the rate that is set, for frames, as in SCReAM (PACKET_PACING_HEADROOM). At the rate
/// itself, frames larger than the mean would queue.
const HEADROOM: f64 = 1.5;

/// State shared by the controller and the environment.
#[derive(Debug)]
pub(super) struct Shared {
    /// Segments, and bytes/s, as the bits of f64 numbers.
    window: AtomicU64,
    pacing: AtomicU64,
    observation: Mutex<Observation>,
}

impl Shared {
    pub(super) fn new() -> Shared {
        Shared {
            window: AtomicU64::new(1f64.to_bits()),
            pacing: AtomicU64::new(f64::INFINITY.to_bits()),
            observation: Mutex::default(),
        }
    }

    pub(super) fn window(&self) -> f64 {
        f64::from_bits(self.window.load(Ordering::Relaxed))
    }

    pub(super) fn pacing(&self) -> f64 {
        f64::from_bits(self.pacing.load(Ordering::Relaxed))
    }

    pub(super) fn decide(&self, window: f64, pacing: f64) {
        self.window.store(window.to_bits(), Ordering::Relaxed);
        self.pacing.store(pacing.to_bits(), Ordering::Relaxed);
    }

    pub(super) fn with_observation<T>(&self, apply: impl FnOnce(&mut Observation) -> T) -> T {
        apply(&mut self.observation.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The agent's controller on TCP's machine.
struct Agent {
    shared: Arc<Shared>,
    needs: Needs,
}

impl Agent {
    fn limit_window(&self, window: f64) {
        let window = self.shared.window().min(window).max(1.0);
        self.shared.decide(window, self.shared.pacing());
    }
}

impl Controller for Agent {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, event: &TcpEvent, path: &PathView) {
        match *event {
            TcpEvent::Established { window } => {
                self.shared.with_observation(|observation| {
                    observation.set_path_state(path);
                    observation.begun = true;
                });
                if !self.needs.rate_clocked {
                    self.shared.decide(window.max(1.0), self.shared.pacing());
                }
            }
            TcpEvent::Timeout(_) => {
                self.shared.with_observation(|observation| {
                    observation.set_path_state(path);
                    observation.interval.timeouts += 1;
                });
                if !self.needs.rate_clocked {
                    self.limit_window(1.0);
                }
            }
            TcpEvent::Recovered { at_most } if !self.needs.rate_clocked => self.limit_window(at_most),
            TcpEvent::Idle { window } if !self.needs.rate_clocked => self.limit_window(window),
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
        self.shared.with_observation(|observation| {
            if observation.full.is_none_or(|full| observation.interval.acked < full) {
                observation.interval.add(sample);
                observation.set_path_state(path);
            }
        });
    }

    fn pacing_rate(&self) -> f64 {
        self.shared.pacing()
    }
}

/// The agent's controller on RTP's machine.
struct Caller {
    shared: Arc<Shared>,
    /// Whether the application writes frames.
    frames: bool,
}

impl Controller for Caller {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, event: &RtpEvent, path: &PathView) {
        self.shared.with_observation(|observation| observation.on_rtp_event(event, path));
    }
}

impl MediaController for Caller {
    fn rate(&self) -> f64 {
        self.shared.pacing() * if self.frames { HEADROOM } else { 1.0 }
    }

    fn target(&self) -> Option<Rate> {
        Some(Rate((self.shared.pacing() * 8.0) as u64))
    }

    fn settings(&self) -> RtpSettings {
        CALL
    }

    fn frames_every(&mut self, _period: Span) {
        self.frames = true;
    }
}

/// Its settings for RTP's machine.
const CALL: RtpSettings = RtpSettings { silence: 5, feedback: RtpFeedback::Arrivals, even: true, ..RtpSettings::PLAIN };

/// The scheme of one environment's agent, on RTP's machine if `rtp`, else on TCP's. It is leaked: environments are few,
/// and are reset for each run.
pub(super) fn scheme(shared: &Arc<Shared>, acts: Acts, rtp: bool) -> &'static Scheme {
    let rate = acts == Acts::Rate;
    let needs = Needs { deliveries: true, pacing: rate, rate_clocked: rate, ..Needs::NONE };
    let shared = Arc::clone(shared);
    let foreign = if rtp {
        let make = move |_: &ControllerArgs, _: Stream| -> Result<Box<Media>, String> {
            Ok(Box::new(Caller { shared: Arc::clone(&shared), frames: false }))
        };
        Foreign { gauges: Vec::new(), maker: Maker::Media(Box::new(make), CALL) }
    } else {
        let make = move |_: &ControllerArgs, _: Stream| -> Result<Box<Window>, String> {
            Ok(Box::new(Agent { shared: Arc::clone(&shared), needs }))
        };
        Foreign { gauges: vec![("cwnd", GaugeUnit::Packets)], maker: Maker::Window(Box::new(make), needs) }
    };
    let machine = if rtp { Machine::Rtp } else { Machine::Tcp([Recovery::Rack; Profile::ALL.len()]) };
    named(AGENT, machine, foreign)
}

/// A scheme for this environment alone.
pub(super) fn named(name: &'static str, machine: Machine, foreign: Foreign) -> &'static Scheme {
    Box::leak(Box::new(Scheme {
        name,
        summary: "Decides outside of the simulator, interval by interval",
        source: "an environment's agent",
        machine,
        parameters: &[],
        foreign: Some(Box::leak(Box::new(foreign))),
    }))
}

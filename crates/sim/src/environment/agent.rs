//! The agent's controllers: they pass on what they are told, and do as they are bidden.

use super::seen::Seen;
use super::{AGENT, Acts};
use paceline_control::foreign::{Foreign, Given, Maker, Media, Window};
use paceline_control::{
    Controller, GaugeUnit, Gauges, Machine, MediaController, Needs, PathView, Profile, RateSample, Recovery, RtpEvent,
    RtpFeedback, RtpSettings, Scheme, TcpEvent, WindowController,
};
use paceline_random::Stream;
use paceline_units::{Rate, Span};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Frames leave so much faster than the rate that is set, as SCReAM's do (PACKET_PACING_HEADROOM): at the rate itself those that are
/// larger than the mean would wait for one another.
const HEADROOM: f64 = 1.5;

/// What the controller and who decides for it have in common.
#[derive(Debug)]
pub(super) struct Shared {
    /// Segments, and bytes a second: numbers as their bits.
    window: AtomicU64,
    pacing: AtomicU64,
    seen: Mutex<Seen>,
}

impl Shared {
    pub(super) fn new() -> Shared {
        Shared {
            window: AtomicU64::new(1f64.to_bits()),
            pacing: AtomicU64::new(f64::INFINITY.to_bits()),
            seen: Mutex::default(),
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

    pub(super) fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Its controller on TCP's machine.
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
                self.shared.seen(|seen| {
                    seen.look(path);
                    seen.begun = true;
                });
                if !self.needs.rate_leads {
                    self.shared.decide(window.max(1.0), self.shared.pacing());
                }
            }
            TcpEvent::Timeout(_) => {
                self.shared.seen(|seen| {
                    seen.look(path);
                    seen.interval.timeouts += 1;
                });
                if !self.needs.rate_leads {
                    self.limit_window(1.0);
                }
            }
            TcpEvent::Recovered { at_most } if !self.needs.rate_leads => self.limit_window(at_most),
            TcpEvent::Idle { window } if !self.needs.rate_leads => self.limit_window(window),
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
            if seen.full.is_none_or(|full| seen.interval.acked < full) {
                seen.interval.add(sample);
                seen.look(path);
            }
        });
    }

    fn pacing_rate(&self) -> f64 {
        self.shared.pacing()
    }
}

/// Its controller on RTP's machine.
struct Caller {
    shared: Arc<Shared>,
    /// The application writes frames.
    frames: bool,
}

impl Controller for Caller {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, event: &RtpEvent, path: &PathView) {
        self.shared.seen(|seen| seen.on_rtp_event(event, path));
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

/// What it asks of RTP's machine.
const CALL: RtpSettings = RtpSettings { silence: 5, feedback: RtpFeedback::Arrivals, even: true, ..RtpSettings::PLAIN };

/// The scheme of one environment's agent, on RTP's machine if it is `rtp`, else on TCP's. It stays as long as the process: environments
/// are few, and are reset for each run.
pub(super) fn scheme(shared: &Arc<Shared>, acts: Acts, rtp: bool) -> &'static Scheme {
    let rate = acts == Acts::Rate;
    let needs = Needs { deliveries: true, pacing: rate, rate_leads: rate, ..Needs::NONE };
    let shared = Arc::clone(shared);
    let foreign = if rtp {
        let make = move |_: &Given, _: Stream| -> Result<Box<Media>, String> {
            Ok(Box::new(Caller { shared: Arc::clone(&shared), frames: false }))
        };
        Foreign { gauges: Vec::new(), maker: Maker::Media(Box::new(make), CALL) }
    } else {
        let make = move |_: &Given, _: Stream| -> Result<Box<Window>, String> {
            Ok(Box::new(Agent { shared: Arc::clone(&shared), needs }))
        };
        Foreign { gauges: vec![("cwnd", GaugeUnit::Packets)], maker: Maker::Window(Box::new(make), needs) }
    };
    let machine = if rtp { Machine::Rtp } else { Machine::Tcp([Recovery::Rack; Profile::ALL.len()]) };
    named(AGENT, machine, foreign)
}

/// A scheme of this environment alone.
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

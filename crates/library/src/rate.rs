//! A controller for TFRC's machine.

use crate::abi::{Rate as Decided, TfrcEvent as Event};
use crate::state::{Known, State, path};
use core::ptr::null;
use paceline_control::foreign::{ControllerArgs, Paced};
use paceline_control::tfrc::MAX_BACKOFF;
use paceline_control::{Controller, Gauges, Interval, PathView, RateController, Settings, TfrcEvent};
use paceline_random::Stream;

struct Own {
    state: State,
    settings: Settings,
    decided: Decided,
    /// One segment per t_mbi, in bytes per second.
    min_rate: f64,
}

/// SAFETY: `failed` is the only pointer, to a text that lives as long as the library; the state owns its memory.
unsafe impl Send for Own {}

/// A new controller.
pub fn new(known: &'static Known, settings: Settings, args: &ControllerArgs, stream: Stream) -> Box<Paced> {
    let decided = Decided { rate: 1.0, pacing: 1.0, in_slow_start: 1, reserved: 0, failed: null() };
    Box::new(Own { state: State::new(known, args, stream), settings, decided, min_rate: 1.0 })
}

fn limited(interval: Interval) -> u32 {
    (interval == Interval::DataLimited).into()
}

impl Controller for Own {
    type Feedback = TfrcEvent;

    fn on_feedback(&mut self, feedback: &TfrcEvent, view: &PathView) {
        const EVENT: Event =
            Event { kind: 1, data_limited: 0, rtt: 0, timeout: 0, receive_rate: 0.0, loss_event_rate: 0.0 };
        let event = match *feedback {
            TfrcEvent::Started => EVENT,
            TfrcEvent::Report(report) => Event {
                kind: 2,
                data_limited: limited(report.interval),
                rtt: report.rtt.0,
                timeout: report.timeout.0,
                receive_rate: report.receive_rate,
                loss_event_rate: report.loss_event_rate,
            },
            TfrcEvent::NoFeedback { interval } => Event { kind: 3, data_limited: limited(interval), ..EVENT },
        };
        let path = path(view);
        if let Some(call) = self.state.known.of.on_tfrc {
            // SAFETY: the state belongs to this library; event, path and decision outlive the call, which keeps no
            // pointer.
            unsafe { call(self.state.get(), &raw const event, &raw const path, &raw mut self.decided) };
        }
        let Decided { rate, pacing, failed, .. } = self.decided;
        let usable = |rate: f64| rate > 0.0 && rate.is_finite();
        if !usable(rate) || !usable(pacing) || !failed.is_null() {
            let wrong = format!("rate = {rate}, pacing = {pacing}: finite, and more than 0 B/s");
            self.state.fail(view.now, failed, &wrong);
        }
        self.min_rate = f64::from(view.segment.max(1)) / MAX_BACKOFF;
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.bits_per_second("allowed", self.rate() * 8.0);
        self.state.gauges(to);
    }
}

impl RateController for Own {
    fn rate(&self) -> f64 {
        self.decided.rate.max(self.min_rate)
    }

    fn pacing(&self) -> f64 {
        self.decided.pacing.max(self.min_rate)
    }

    fn in_slow_start(&self) -> bool {
        self.decided.in_slow_start != 0
    }

    fn settings(&self) -> Settings {
        self.settings
    }
}

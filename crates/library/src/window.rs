//! A controller for TCP's machine.

use crate::abi::{Delivery, Lost, TcpEvent as Event, Window as Decided};
use crate::state::{Known, State, or_none, path};
use core::ptr::null;
use paceline_control::foreign::{ControllerArgs, Window};
use paceline_control::{
    Controller, Gauges, LostSegment, Needs, PathView, RateSample, TcpEvent, Threshold, WindowController,
};
use paceline_random::Stream;
use paceline_units::Time;

/// The maximum window in segments.
const MAX_WINDOW: f64 = 1e9;

struct Own {
    state: State,
    needs: Needs,
    decided: Decided,
}

/// SAFETY: `failed` is the only pointer, to a text that lives as long as the library; the state owns its memory.
unsafe impl Send for Own {}

/// A new controller.
pub fn new(known: &'static Known, needs: Needs, args: &ControllerArgs, stream: Stream) -> Box<Window> {
    let decided = Decided {
        window: 1.0,
        threshold: f64::INFINITY,
        pacing: f64::INFINITY,
        base_rtt: f64::NAN,
        quantum: 0,
        holds_back: 0,
        failed: null(),
    };
    Box::new(Own { state: State::new(known, args, stream), needs, decided })
}

impl Own {
    /// Checks that the machine can use the decision.
    #[inline]
    fn check(&self, now: Time) {
        let own = &self.decided;
        let usable = (1.0..=MAX_WINDOW).contains(&own.window) && own.threshold >= 0.0 && own.pacing > 0.0;
        if !usable || !own.failed.is_null() {
            self.refuse(now);
        }
    }

    #[cold]
    fn refuse(&self, now: Time) -> ! {
        let Decided { window, threshold, pacing, failed, .. } = self.decided;
        let wrong = format!(
            "window = {window} (from 1 to {MAX_WINDOW:e} segments), threshold = {threshold} (0 or more), pacing = {pacing} \
             (more than 0 B/s)"
        );
        self.state.fail(now, failed, &wrong)
    }
}

/// An empty event.
const EVENT: Event = Event {
    kind: 0,
    segments: 0,
    in_flight: 0,
    count: 0,
    flag: 0,
    reserved: 0,
    rtt: crate::abi::NONE,
    window: 0.0,
    threshold: 0.0,
};

#[inline]
fn event(of: &TcpEvent) -> Event {
    match *of {
        TcpEvent::Established { window } => Event { kind: 1, window, ..EVENT },
        TcpEvent::Acked { segments, in_flight, rtt } => {
            Event { kind: 2, segments, in_flight, rtt: or_none(rtt), ..EVENT }
        }
        TcpEvent::Repaired { segments, rtt } => Event { kind: 3, segments, rtt: or_none(rtt), ..EVENT },
        TcpEvent::Duplicate => Event { kind: 4, ..EVENT },
        TcpEvent::Lost { duplicates, again } => Event { kind: 5, count: duplicates, flag: again.into(), ..EVENT },
        TcpEvent::Deflate { segments } => Event { kind: 6, segments, ..EVENT },
        TcpEvent::Recovered { at_most } => Event { kind: 7, window: at_most, ..EVENT },
        TcpEvent::Undo { window, threshold } => Event { kind: 8, window, threshold, ..EVENT },
        TcpEvent::Timeout(threshold) => Event { kind: 9, flag: (threshold == Threshold::Cut).into(), ..EVENT },
        TcpEvent::EcnEcho => Event { kind: 10, ..EVENT },
        TcpEvent::Resumed { idle, app_limited } => Event { kind: 11, rtt: idle.0, flag: app_limited.into(), ..EVENT },
        TcpEvent::Idle { window } => Event { kind: 12, window, ..EVENT },
    }
}

impl Controller for Own {
    type Feedback = TcpEvent;

    #[inline]
    fn on_feedback(&mut self, feedback: &TcpEvent, view: &PathView) {
        let (event, path) = (event(feedback), path(view));
        if let Some(call) = self.state.known.of.on_tcp {
            // SAFETY: the state belongs to this library; event, path and decision outlive the call, which keeps no
            // pointer.
            unsafe { call(self.state.get(), &raw const event, &raw const path, &raw mut self.decided) };
        }
        self.check(view.now);
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.packets("cwnd", self.decided.window);
        to.packets("ssthresh", self.decided.threshold);
        self.state.gauges(to);
    }
}

impl WindowController for Own {
    fn window(&self) -> f64 {
        self.decided.window
    }

    fn threshold(&self) -> f64 {
        self.decided.threshold
    }

    fn base_rtt(&self) -> Option<f64> {
        Some(self.decided.base_rtt).filter(|rtt| rtt.is_finite())
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn on_delivery(&mut self, sample: &RateSample, view: &PathView) {
        let Some(call) = self.state.known.of.on_delivery else { return };
        let (path, sample) = (
            path(view),
            Delivery {
                total: sample.total,
                newly_acked: sample.newly_acked,
                newly_lost: sample.newly_lost,
                prior_delivered: sample.prior_delivered,
                delivered: sample.delivered,
                interval: sample.interval.0,
                rtt: or_none(sample.rtt),
                tx_in_flight: sample.tx_in_flight,
                lost: sample.lost,
                prior_in_flight: sample.prior_in_flight,
                in_flight: sample.in_flight,
                newly_marked: sample.newly_marked,
                app_limited: sample.app_limited.into(),
                window_limited: sample.window_limited.into(),
                reserved: 0,
            },
        );
        // SAFETY: as in `on_feedback`.
        unsafe { call(self.state.get(), &raw const sample, &raw const path, &raw mut self.decided) };
        self.check(view.now);
    }

    fn on_lost(&mut self, lost: &LostSegment, view: &PathView) {
        let Some(call) = self.state.known.of.on_lost else { return };
        let (path, lost) = (
            path(view),
            Lost {
                size: lost.size,
                total: lost.total,
                tx_in_flight: lost.tx_in_flight,
                lost: lost.lost,
                seq: lost.seq,
                app_limited: lost.app_limited.into(),
            },
        );
        // SAFETY: as in `on_feedback`.
        unsafe { call(self.state.get(), &raw const lost, &raw const path, &raw mut self.decided) };
        self.check(view.now);
    }

    fn on_marks(&mut self, acked: u32, marked: u32, view: &PathView) {
        let Some(call) = self.state.known.of.on_marks else { return };
        let path = path(view);
        // SAFETY: as in `on_feedback`.
        unsafe { call(self.state.get(), acked, marked, &raw const path, &raw mut self.decided) };
        self.check(view.now);
    }

    fn pacing_rate(&self) -> f64 {
        self.decided.pacing
    }

    fn send_quantum(&self) -> u32 {
        self.decided.quantum
    }

    fn limits_itself(&self) -> bool {
        self.decided.holds_back != 0
    }
}

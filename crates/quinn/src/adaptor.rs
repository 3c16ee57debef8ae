//! Implements quinn's trait: converts its instants to times since the path began.
//!
//! quinn requires `Sync`, which a shared library's controller is not: the law is in a mutex, which code with exclusive
//! access does not lock.

use crate::{Call, Gate, Law, Observer, Seen, What};
use paceline_units::{Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One of Paceline's controllers as a quinn controller. Connections return a copy:
/// `connection.congestion_state().into_any().downcast()`.
#[derive(Debug)]
pub struct Adaptor {
    law: Mutex<Law>,
    /// The law's window, which quinn reads for each packet.
    window: u64,
    began: Instant,
    /// Time of quinn's last call.
    latest: Instant,
    initial_window: u64,
    path: u64,
    observer: Option<Observer>,
    gate: Option<Gate>,
    /// For the acknowledgement in progress: quinn's round trip before it; for the packets that it acknowledges, when
    /// they were sent, with their bytes; and the same in quinn's time for the observer.
    smoothed: Span,
    acked: Vec<(Time, u64)>,
    left: Vec<Instant>,
}

impl Adaptor {
    pub(crate) fn new(
        law: Law,
        began: Instant,
        initial_window: u64,
        path: u64,
        observer: Option<Observer>,
        gate: Option<Gate>,
    ) -> Adaptor {
        let window = law.window();
        let began_with = What::Began { datagram: law.state().datagram };
        let mut adaptor = Adaptor {
            law: Mutex::new(law),
            window,
            began,
            latest: began,
            initial_window,
            path,
            observer,
            gate,
            smoothed: Span::ZERO,
            acked: Vec::new(),
            left: Vec::new(),
        };
        adaptor.has(began, &[], began_with);
        adaptor
    }

    /// Returns the law.
    #[must_use]
    pub fn into_law(self) -> Law {
        self.law.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the law.
    fn copy(&self) -> Law {
        self.law.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn time(&self, at: Instant) -> Time {
        Time(span(at.saturating_duration_since(self.began)).0)
    }

    /// Passes a call to the law at `now`; `left`: when its packets were sent.
    fn on_call(&mut self, now: Instant, left: &[Instant], call: Call<'_>) {
        let at = self.time(now);
        self.law.get_mut().unwrap_or_else(PoisonError::into_inner).take(at, call);
        self.has(now, left, What::Called(call));
    }

    /// Updates quinn's side after an event of the law.
    fn has(&mut self, now: Instant, left: &[Instant], what: What<'_>) {
        let at = self.time(now);
        let law = self.law.get_mut().unwrap_or_else(PoisonError::into_inner);
        (self.window, self.latest) = (law.window(), now);
        if let Some(gate) = &self.gate {
            let until = law.congestion().waits(at);
            gate.set_pause(until.map(|until| self.began + Duration::from_nanos(until.0)));
            law.open(gate);
        }
        if let Some(observer) = &self.observer {
            observer.record(&Seen { now, at, path: self.path, what, left, state: &law.state() }, law);
        }
    }
}

impl Clone for Adaptor {
    fn clone(&self) -> Adaptor {
        Adaptor {
            law: Mutex::new(self.copy()),
            observer: self.observer.clone(),
            gate: self.gate.clone(),
            acked: self.acked.clone(),
            left: self.left.clone(),
            ..*self
        }
    }
}

fn span(duration: Duration) -> Span {
    Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

impl Controller for Adaptor {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.on_call(now, &[now], Call::Sent { bytes, last_packet_number });
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, _app_limited: bool, rtt: &RttEstimator) {
        self.smoothed = span(rtt.get());
        if self.observer.is_some() {
            self.left.push(sent);
        }
        self.acked.push((self.time(sent), bytes));
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let (mut packets, mut left) = (std::mem::take(&mut self.acked), std::mem::take(&mut self.left));
        let (smoothed, limited) = (self.smoothed, !app_limited);
        self.on_call(now, &left, Call::Acked { packets: &packets, in_flight, smoothed, limited });
        packets.clear();
        left.clear();
        (self.acked, self.left) = (packets, left);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        let (left, sent) = ([sent], self.time(sent));
        let lost = Call::Lost { sent, bytes: lost_bytes, persistent };
        self.on_call(now, &left, if lost_bytes == 0 { Call::Marked { sent } } else { lost });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.on_call(self.latest, &[], Call::Datagram(new_mtu));
    }

    fn window(&self) -> u64 {
        self.gate.as_ref().map_or(self.window, Gate::window)
    }

    fn metrics(&self) -> ControllerMetrics {
        let state = self.law.lock().unwrap_or_else(PoisonError::into_inner).state();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = state.window;
        metrics.ssthresh = state.threshold;
        metrics.pacing_rate = state.pacing_rate.map(|rate| (rate * 8.0) as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

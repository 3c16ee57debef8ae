//! quinn's trait: its instants become times since the path began.
//!
//! quinn wants `Sync`, which a controller of a shared library is not: the law lies in a lock, which whoever has it to himself does not
//! take.

use crate::{Gate, Law, What, Witness};
use paceline_units::{Span, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One of our controllers as quinn's. Connections give a copy of theirs: `connection.congestion_state().into_any().downcast()`.
#[derive(Debug)]
pub struct Adaptor {
    law: Mutex<Law>,
    /// Of the law, which quinn asks for each packet.
    window: u64,
    began: Instant,
    initial_window: u64,
    /// quinn's round trip before the acknowledgement that is being told of.
    smoothed: Span,
    path: u64,
    witness: Option<Witness>,
    gate: Option<Gate>,
    /// When the packets left that the acknowledgement which is being told of has acknowledged, for the witness.
    acked: Vec<Instant>,
}

impl Adaptor {
    pub(crate) fn new(
        law: Law,
        began: Instant,
        initial_window: u64,
        path: u64,
        witness: Option<Witness>,
        gate: Option<Gate>,
    ) -> Adaptor {
        let window = law.window();
        let law = Mutex::new(law);
        let (smoothed, acked) = (Span::ZERO, Vec::new());
        let mut adaptor = Adaptor { law, window, began, initial_window, smoothed, path, witness, gate, acked };
        adaptor.change(began, &[], |_, _| What::Began);
        adaptor
    }

    /// The law within.
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

    /// Something happens at `now`, to packets that left then.
    fn change(&mut self, now: Instant, left: &[Instant], by: impl FnOnce(&mut Law, Time) -> What) {
        let at = self.time(now);
        let law = self.law.get_mut().unwrap_or_else(PoisonError::into_inner);
        let what = by(law, at);
        self.window = law.window();
        if let Some(gate) = &self.gate {
            let until = law.congestion().waits(at);
            gate.set_pause(until.map(|until| self.began + Duration::from_nanos(until.0)));
            law.open(gate);
        }
        if let Some(witness) = &self.witness {
            witness.sees(now, self.path, what, left, law);
        }
    }
}

impl Clone for Adaptor {
    fn clone(&self) -> Adaptor {
        let &Adaptor { window, began, initial_window, smoothed, path, ref witness, ref gate, .. } = self;
        Adaptor {
            law: Mutex::new(self.copy()),
            window,
            began,
            initial_window,
            smoothed,
            path,
            witness: witness.clone(),
            gate: gate.clone(),
            acked: self.acked.clone(),
        }
    }
}

fn span(duration: Duration) -> Span {
    Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

impl Controller for Adaptor {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.change(now, &[now], |law, at| {
            law.on_sent(at, bytes);
            What::Sent { bytes, last_packet_number }
        });
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, _app_limited: bool, rtt: &RttEstimator) {
        self.smoothed = span(rtt.get());
        if self.witness.is_some() {
            self.acked.push(sent);
        }
        let sent = self.time(sent);
        self.law.get_mut().unwrap_or_else(PoisonError::into_inner).on_ack(sent, bytes);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let (smoothed, mut acked) = (self.smoothed, std::mem::take(&mut self.acked));
        self.change(now, &acked, |law, at| {
            law.on_end_acks(at, in_flight, smoothed, !app_limited);
            What::Acked
        });
        acked.clear();
        self.acked = acked;
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        let left = [sent];
        let sent = self.time(sent);
        self.change(now, &left, |law, at| {
            if lost_bytes == 0 {
                law.on_marked(at, sent);
                return What::Marked;
            }
            What::Lost { lost: law.on_lost(at, sent, lost_bytes, persistent), persistent }
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let law = self.law.get_mut().unwrap_or_else(PoisonError::into_inner);
        law.set_datagram(new_mtu);
        self.window = law.window();
        self.gate.iter().for_each(|gate| law.open(gate));
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

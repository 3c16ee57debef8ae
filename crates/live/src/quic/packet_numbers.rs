//! Packet numbers at an end with quinn's own congestion control: wraps its controller, and records the last number.

#![expect(clippy::disallowed_types, reason = "quinn's times are Instants; none is taken here")]

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The number of the last packet sent. Clones share it; as a factory it creates quinn's controllers.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers(Arc<AtomicU64>);

impl Numbers {
    pub(super) fn last(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl ControllerFactory for Numbers {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let own = Arc::new(CubicConfig::default()).build(now, current_mtu);
        Box::new(Numbered { own, numbers: (*self).clone() })
    }
}

struct Numbered {
    own: Box<dyn Controller>,
    numbers: Numbers,
}

impl Controller for Numbered {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.numbers.0.store(last_packet_number, Ordering::Relaxed);
        self.own.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.own.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.own.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        self.own.on_congestion_event(now, sent, persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.own.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.own.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.own.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Numbered { own: self.own.clone_box(), numbers: self.numbers.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.own.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.own.into_any()
    }
}

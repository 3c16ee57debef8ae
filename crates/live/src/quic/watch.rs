//! What a congestion controller of quinn's is told, seen from beside it: round trips, what is in flight, losses.

#![expect(clippy::disallowed_types, reason = "quinn's trait is told the time as an Instant; none is taken here")]

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What has been seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Round trips since they were last taken: one for each acknowledgement of something new, its delay there included.
    pub round_trips: Vec<Duration>,
    /// Bytes in flight after the last acknowledgement, and those sent since that are to be acknowledged (who sends counts them).
    pub in_flight: u64,
    /// Congestion events by losses, and by marks.
    pub losses: u64,
    pub marks: u64,
    /// Bytes of lost packets since they were last taken.
    pub lost_bytes: u64,
    /// When the newest of the packets was sent that are being acknowledged.
    newest: Option<Instant>,
}

/// Shares what was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes controllers that are watched.
pub(super) struct Watching<F> {
    pub inner: Arc<F>,
    pub watch: Watch,
}

impl<F: ControllerFactory + Send + Sync + 'static> ControllerFactory for Watching<F> {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, current_mtu);
        self.watch.seen().in_flight = 0;
        Box::new(Watched { inner, watch: self.watch.clone() })
    }
}

/// A controller that is watched.
struct Watched {
    inner: Box<dyn Controller>,
    watch: Watch,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        {
            let mut seen = self.watch.seen();
            seen.newest = seen.newest.max(Some(sent));
        }
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        {
            let mut seen = self.watch.seen();
            seen.in_flight = in_flight;
            if let Some(newest) = seen.newest.take() {
                seen.round_trips.push(now.saturating_duration_since(newest));
            }
        }
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        {
            let mut seen = self.watch.seen();
            seen.in_flight = seen.in_flight.saturating_sub(lost_bytes);
            seen.lost_bytes += lost_bytes;
            *(if lost_bytes == 0 { &mut seen.marks } else { &mut seen.losses }) += 1;
        }
        self.inner.on_congestion_event(now, sent, persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Watched { inner: self.inner.clone_box(), watch: self.watch.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}

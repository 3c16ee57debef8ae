//! Observes the calls to a flow's congestion control: round trips, bytes in flight, losses.

#![expect(clippy::disallowed_types, reason = "quinn's times are Instants; none is taken here")]

use super::Shared;
use crate::session::log::EVENT_LOG;
use paceline_quinn::{Call, Observer, What};
use paceline_units::Span;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The observations.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Round trips since they were last taken: one per acknowledgement of new data, including the receiver's ACK delay.
    pub round_trips: Vec<Span>,
    /// Bytes in flight after the last acknowledgement, plus ack-eliciting bytes sent since (counted by the sender).
    pub in_flight: u64,
    /// Congestion events caused by losses, and by marks.
    pub losses: u64,
    pub marks: u64,
    /// Bytes in lost packets since they were last taken.
    pub lost_bytes: u64,
    /// The fate of packets since it was last taken, if it is logged; and the number of the last packet sent.
    pub fates: Option<Vec<PacketFate>>,
    pub last: u64,
}

/// The fate of packets, identified by their send times.
#[derive(Debug)]
pub(super) enum PacketFate {
    /// These were acknowledged.
    Acked(Vec<Instant>),
    /// This packet was lost, and those before it.
    Lost(Instant),
}

/// Shares the observations.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An observer that records the calls here, and in the event log if there is one.
    pub fn observer(&self, shared: Arc<Shared>) -> Observer {
        let watch = self.clone();
        Observer::with_callback(move |event| {
            if let Some(calls) = shared.calls.get()
                && let Err(error) = calls.lock().unwrap_or_else(PoisonError::into_inner).write(event)
            {
                shared.cut_log(EVENT_LOG, &error);
            }
            watch.seen().take(event);
        })
    }
}

impl Seen {
    fn take(&mut self, event: &paceline_quinn::Seen<'_>) {
        let What::Called(call) = event.what else { return self.in_flight = 0 };
        match call {
            Call::Sent { last_packet_number, .. } => self.last = last_packet_number,
            Call::Acked { .. } => {
                self.fates.iter_mut().for_each(|fates| fates.push(PacketFate::Acked(event.left.to_vec())));
                self.in_flight = event.state.in_flight;
                self.round_trips.push(event.state.rtt.latest_rtt);
            }
            Call::Lost { bytes, .. } => {
                let newest = event.left.iter().copied().map(PacketFate::Lost);
                self.fates.iter_mut().for_each(|fates| fates.extend(newest.clone()));
                self.in_flight = self.in_flight.saturating_sub(bytes);
                (self.losses, self.lost_bytes) = (self.losses + 1, self.lost_bytes + bytes);
            }
            Call::Marked { .. } => self.marks += 1,
            Call::Datagram(_) => {}
        }
    }
}

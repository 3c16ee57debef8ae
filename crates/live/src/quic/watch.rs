//! What a flow's congestion control is told, seen from beside it: round trips, what is in flight, losses.

use paceline_quinn::{What, Witness};
use paceline_units::Span;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What has been seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Round trips since they were last taken: one for each acknowledgement of something new, its delay there included.
    pub round_trips: Vec<Span>,
    /// Bytes in flight after the last acknowledgement, and those sent since that are to be acknowledged (who sends counts them).
    pub in_flight: u64,
    /// Congestion events by losses, and by marks.
    pub losses: u64,
    pub marks: u64,
    /// Bytes of lost packets since they were last taken.
    pub lost_bytes: u64,
}

/// Shares what was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A witness that tells this what it sees.
    pub fn witness(&self) -> Witness {
        let watch = self.clone();
        Witness::telling(move |event| {
            let mut seen = watch.seen();
            match event.what {
                What::Began => seen.in_flight = 0,
                What::Sent { .. } => {}
                What::Acked => {
                    seen.in_flight = event.state.in_flight;
                    seen.round_trips.push(event.state.rtt.latest);
                }
                What::Lost { lost, .. } => {
                    seen.in_flight = seen.in_flight.saturating_sub(lost.bytes);
                    (seen.losses, seen.lost_bytes) = (seen.losses + 1, seen.lost_bytes + lost.bytes);
                }
                What::Marked => seen.marks += 1,
            }
        })
    }
}

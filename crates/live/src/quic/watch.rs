//! What a flow's congestion control is told, seen from beside it: round trips, what is in flight, losses.

#![expect(clippy::disallowed_types, reason = "quinn's times are Instants; none is taken here")]

use super::Shared;
use crate::session::log::EVENT_LOG;
use paceline_quinn::{Call, What, Witness};
use paceline_units::Span;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

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
    /// What happened to which packets since it was last taken, if somebody logs it; and the number of the last one that was sent.
    pub news: Option<Vec<News>>,
    pub last: u64,
}

/// What happened to packets, which are named by when they left.
#[derive(Debug)]
pub(super) enum News {
    /// These were acknowledged.
    Acked(Vec<Instant>),
    /// This one was lost, and what was before it.
    Lost(Instant),
}

/// Shares what was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A witness that tells this what it sees, and whoever writes all of it down.
    pub fn witness(&self, shared: Arc<Shared>) -> Witness {
        let watch = self.clone();
        Witness::telling(move |event| {
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
                self.news.iter_mut().for_each(|news| news.push(News::Acked(event.left.to_vec())));
                self.in_flight = event.state.in_flight;
                self.round_trips.push(event.state.rtt.latest_rtt);
            }
            Call::Lost { bytes, .. } => {
                let newest = event.left.iter().copied().map(News::Lost);
                self.news.iter_mut().for_each(|news| news.extend(newest.clone()));
                self.in_flight = self.in_flight.saturating_sub(bytes);
                (self.losses, self.lost_bytes) = (self.losses + 1, self.lost_bytes + bytes);
            }
            Call::Marked { .. } => self.marks += 1,
            Call::Datagram(_) => {}
        }
    }
}

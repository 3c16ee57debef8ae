//! A gate for code that drives quinn-proto in its own loop: packets are sent when the controller allows it, not by
//! quinn's window and pacing.
//!
//! quinn (0.11) does not pace below a window of more than 32 bits. With a window of one byte it sends nothing that
//! counts, only acknowledgements and its timer's probes, which RFC 9002 exempts (sections 7 and 7.5).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// When the next full packet may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendTime {
    /// Now.
    Now,
    /// At this time: pacing holds it back.
    At(Instant),
    /// After an acknowledgement or a loss: the window is full.
    Later,
}

#[derive(Debug, Default)]
struct Inside {
    open: bool,
    /// The controller's window and the size of a full packet, in bytes.
    window: u64,
    datagram: u64,
    /// Nothing may be sent before this time.
    until: Option<Instant>,
}

/// Holds back packets that the factory's controllers would not send yet
/// ([`Controllers::behind`](crate::Controllers::behind)). Closed until [`Gate::poll`] is called. Copies share one
/// state, that of the factory's newest path.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Mutex<Inside>>);

impl Gate {
    /// A gate for a new factory.
    #[must_use]
    pub fn new() -> Gate {
        Gate::default()
    }

    /// When a packet may be sent with `in_flight` bytes in flight. Call this before each call of
    /// `Connection::poll_transmit`, which is allowed whatever the answer is: if the answer is not [`SendTime::Now`],
    /// quinn sends only what nothing holds back.
    #[must_use]
    pub fn poll(&self, now: Instant, in_flight: u64) -> SendTime {
        let mut inside = self.inside();
        let send_time = match inside.until {
            _ if in_flight + inside.datagram > inside.window => SendTime::Later,
            Some(until) if until > now => SendTime::At(until),
            _ => SendTime::Now,
        };
        inside.open = send_time == SendTime::Now;
        send_time
    }

    /// The window to report to quinn.
    pub(crate) fn window(&self) -> u64 {
        if self.inside().open { u64::MAX } else { 1 }
    }

    /// Sets the window and the size of a full packet, in bytes.
    pub(crate) fn set_window(&self, window: u64, datagram: u16) {
        let mut inside = self.inside();
        (inside.window, inside.datagram) = (window, datagram.into());
    }

    /// Sets until when pacing holds packets back, if it does.
    pub(crate) fn set_pause(&self, until: Option<Instant>) {
        self.inside().until = until;
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

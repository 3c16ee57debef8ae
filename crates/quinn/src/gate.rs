//! A gate before quinn, for who drives quinn-proto in a loop of his own: packets leave when the controller has them leave, not by quinn's window
//! and pacing.
//!
//! quinn (0.11) does not pace below a window of more than 32 bits, and sends nothing that counts below one of a byte, but acknowledgements and
//! the probes of its timer, which RFC 9002 exempts (sections 7 and 7.5).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// When the next full packet may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// Now.
    Now,
    /// Then: pacing holds it back.
    At(Instant),
    /// When something is acknowledged, or lost: the window is full.
    Later,
}

#[derive(Debug, Default)]
struct Inside {
    open: bool,
    /// The controller's window and a full packet, in bytes.
    window: u64,
    datagram: u64,
    /// Nothing leaves before.
    until: Option<Instant>,
}

/// Holds back what the controllers of a factory would not send yet ([`Controllers::behind`](crate::Controllers::behind)). Closed until it is asked; copies are
/// of the same one. It is of the factory's newest path.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Mutex<Inside>>);

impl Gate {
    /// One for a new factory.
    #[must_use]
    pub fn new() -> Gate {
        Gate::default()
    }

    /// When a packet may leave, with so many bytes in flight. To be asked before each packet that quinn is asked for
    /// (`Connection::poll_transmit`, which may be asked whatever the answer is): if not now, quinn sends only what nothing holds back.
    #[must_use]
    pub fn ask(&self, now: Instant, in_flight: u64) -> Leave {
        let mut inside = self.inside();
        let leave = match inside.until {
            _ if in_flight + inside.datagram > inside.window => Leave::Later,
            Some(until) if until > now => Leave::At(until),
            _ => Leave::Now,
        };
        inside.open = leave == Leave::Now;
        leave
    }

    /// What quinn takes for the window.
    pub(crate) fn window(&self) -> u64 {
        if self.inside().open { u64::MAX } else { 1 }
    }

    /// The window and a full packet have so many bytes.
    pub(crate) fn set_window(&self, window: u64, datagram: u16) {
        let mut inside = self.inside();
        (inside.window, inside.datagram) = (window, datagram.into());
    }

    /// Pacing holds packets back until then, or not.
    pub(crate) fn set_pause(&self, until: Option<Instant>) {
        self.inside().until = until;
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Who sees what controllers do: the state at any time, and each event as it happens.

use crate::{Call, Law, State};
use paceline_control::{GaugeUnit, Gauges};
use paceline_units::Time;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What<'a> {
    /// A path's congestion control began.
    Began {
        /// The greatest UDP payload, in bytes.
        datagram: u16,
    },
    /// It was told this.
    Called(Call<'a>),
}

/// An event, and where the path's congestion control is after it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// quinn's time.
    pub now: Instant,
    /// The same since the path began.
    pub at: Time,
    /// Of which path, in the order in which the factory's paths began.
    pub path: u64,
    /// The event.
    pub what: What<'a>,
    /// When packets left of which it tells: each that was acknowledged; of those that were lost or marked the newest.
    pub left: &'a [Instant],
    /// What is after it.
    pub state: &'a State,
}

type Tell = Box<dyn FnMut(&Seen<'_>) + Send>;

#[derive(Default)]
struct Inside {
    state: Option<State>,
    gauges: Vec<(&'static str, GaugeUnit, f64)>,
    tell: Option<Tell>,
}

/// Sees what the controllers of a factory do ([`Controllers::seen_by`](crate::Controllers::seen_by)). Copies are of the same one.
#[derive(Clone, Default)]
pub struct Witness(Arc<Mutex<Inside>>);

impl Witness {
    /// Keeps the newest state of all paths, of whichever it is.
    #[must_use]
    pub fn new() -> Witness {
        Witness::default()
    }

    /// The same, and calls `tell` for each event, from within quinn: it must not take long, and not ask the witness.
    #[must_use]
    pub fn telling(tell: impl FnMut(&Seen<'_>) + Send + 'static) -> Witness {
        let witness = Witness::default();
        witness.inside().tell = Some(Box::new(tell));
        witness
    }

    /// After the newest event; `None` before the first.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        self.inside().state
    }

    /// What a plot of the controller should show, after the newest acknowledgement or loss.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.inside().gauges.iter().for_each(|&(name, unit, value)| to.gauge(name, unit, value));
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An event has changed `law`.
    pub(crate) fn sees(&self, seen: &Seen<'_>, law: &Law) {
        let mut inside = self.inside();
        inside.state = Some(*seen.state);
        if !matches!(seen.what, What::Called(Call::Sent { .. })) {
            inside.gauges.clear();
            law.gauges(&mut *inside);
        }
        if let Some(tell) = &mut inside.tell {
            tell(seen);
        }
    }
}

impl Gauges for Inside {
    fn gauge(&mut self, name: &'static str, unit: GaugeUnit, value: f64) {
        self.gauges.push((name, unit, value));
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").field("state", &self.inside().state).finish_non_exhaustive()
    }
}

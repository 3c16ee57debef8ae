//! Observes controllers: the state at any time, and each event as it happens.

use crate::{Call, Law, State};
use paceline_control::{GaugeUnit, Gauges};
use paceline_units::Time;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What<'a> {
    /// A path's congestion control began.
    Began {
        /// The maximum UDP payload in bytes.
        datagram: u16,
    },
    /// quinn made this call.
    Called(Call<'a>),
}

/// An event, with the state of the path's congestion control after it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// quinn's time.
    pub now: Instant,
    /// The same as time since the path began.
    pub at: Time,
    /// The number of the path, in the order in which the factory's paths began.
    pub path: u64,
    /// The event.
    pub what: What<'a>,
    /// When the packets of the event were sent: each acknowledged one; of lost or marked ones, the newest.
    pub left: &'a [Instant],
    /// The state after it.
    pub state: &'a State,
}

type Callback = Box<dyn FnMut(&Seen<'_>) + Send>;

#[derive(Default)]
struct Inside {
    state: Option<State>,
    gauges: Vec<(&'static str, GaugeUnit, f64)>,
    callback: Option<Callback>,
}

/// Observes the controllers of a factory ([`Controllers::seen_by`](crate::Controllers::seen_by)). Copies share one
/// state.
#[derive(Clone, Default)]
pub struct Observer(Arc<Mutex<Inside>>);

impl Observer {
    /// An observer that keeps the newest state, whichever path it is of.
    #[must_use]
    pub fn new() -> Observer {
        Observer::default()
    }

    /// An observer that also calls `callback` for each event, from within quinn: `callback` must return quickly and
    /// must not use the observer.
    #[must_use]
    pub fn with_callback(callback: impl FnMut(&Seen<'_>) + Send + 'static) -> Observer {
        let observer = Observer::default();
        observer.inside().callback = Some(Box::new(callback));
        observer
    }

    /// The state after the newest event; `None` before the first.
    #[must_use]
    pub fn state(&self) -> Option<State> {
        self.inside().state
    }

    /// Reports the controller's gauges after the newest acknowledgement or loss.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.inside().gauges.iter().for_each(|&(name, unit, value)| to.gauge(name, unit, value));
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event that has changed `law`.
    pub(crate) fn record(&self, seen: &Seen<'_>, law: &Law) {
        let mut inside = self.inside();
        inside.state = Some(*seen.state);
        if !matches!(seen.what, What::Called(Call::Sent { .. })) {
            inside.gauges.clear();
            law.gauges(&mut *inside);
        }
        if let Some(callback) = &mut inside.callback {
            callback(seen);
        }
    }
}

impl Gauges for Inside {
    fn gauge(&mut self, name: &'static str, unit: GaugeUnit, value: f64) {
        self.gauges.push((name, unit, value));
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("state", &self.inside().state).finish_non_exhaustive()
    }
}

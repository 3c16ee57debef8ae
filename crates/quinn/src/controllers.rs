//! The factory: a scheme and its parameters, checked once, from which each of quinn's paths gets a new controller.

use crate::{Adaptor, Gate, Law, Observer};
use paceline_control::{
    ParameterError, Profile, Scheme, TcpController, UnknownScheme, WindowController as _, registry,
};
use paceline_flow::quic::Congestion;
use paceline_random::Stream;
use quinn_proto::congestion::{Controller, ControllerFactory};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Why a scheme cannot be used in quinn.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Refused {
    /// No scheme has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownScheme),
    /// A parameter is invalid, or the scheme has no congestion window.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The scheme needs counts of marks.
    #[error("{scheme} counts the packets that were marked, and quinn tells only that some were; choose another")]
    Marks {
        /// The scheme.
        scheme: &'static str,
    },
}

/// Makes controllers of one scheme: quinn's `congestion_controller_factory`.
#[derive(Debug)]
pub struct Controllers {
    /// In a mutex, because a shared library's controller is not `Sync`.
    fresh: Mutex<TcpController>,
    profile: Profile,
    stream: Stream,
    /// Number of controllers made.
    made: AtomicU64,
    /// In bytes; `None`: RFC 9002's.
    initial_window: Option<u64>,
    observer: Option<Observer>,
    gate: Option<Gate>,
}

impl Controllers {
    /// Controllers of the scheme `name` (`paceline controllers` lists them), with these parameters and the others'
    /// defaults. Schemes with random draws (`bbr`, `bbr3`) draw from `seed`: use a different one in each process, so
    /// that connections do not probe in step. The same seed gives the same draws.
    ///
    /// # Errors
    /// There is no such scheme or parameter, a value is out of range, the scheme has no window, or it needs what quinn
    /// does not report.
    pub fn new(name: &str, parameters: &[(&str, f64)], seed: u64) -> Result<Controllers, Refused> {
        Controllers::of(registry::scheme(name)?, Profile::Rfc, parameters, seed)
    }

    /// Controllers of this scheme, which may be from a shared library, under this profile. See [`Controllers::new`].
    ///
    /// # Errors
    /// As for [`Controllers::new`].
    pub fn of(
        scheme: &Scheme,
        profile: Profile,
        parameters: &[(&str, f64)],
        seed: u64,
    ) -> Result<Controllers, Refused> {
        let fresh = TcpController::new(scheme, profile, parameters)?;
        if fresh.needs().ecn.counts() {
            return Err(Refused::Marks { scheme: scheme.name });
        }
        Ok(Controllers::around(fresh, profile, Stream::new(seed, scheme.name)))
    }

    /// Copies of `fresh`, a controller that has not started, under this profile; random draws are from `stream`. A
    /// controller that counts marks sees one where there may have been more.
    #[must_use]
    pub fn around(fresh: TcpController, profile: Profile, stream: Stream) -> Controllers {
        let (fresh, made) = (Mutex::new(fresh), AtomicU64::new(0));
        Controllers { fresh, profile, stream, made, initial_window: None, observer: None, gate: None }
    }

    /// Sets an initial window of this many bytes in place of RFC 9002's (section 7.2).
    #[must_use]
    pub fn beginning_with(mut self, initial_window: u64) -> Controllers {
        self.initial_window = Some(initial_window);
        self
    }

    /// Adds an observer that sees everything its controllers do.
    #[must_use]
    pub fn seen_by(mut self, observer: Observer) -> Controllers {
        self.observer = Some(observer);
        self
    }

    /// Sends packets through this gate, at the controller's own rate, in place of quinn's window and pacing. Code that
    /// drives quinn-proto must call [`Gate::poll`] before each packet; otherwise only acknowledgements and probes are
    /// sent.
    #[must_use]
    pub fn behind(mut self, gate: Gate) -> Controllers {
        self.gate = Some(gate);
        self
    }

    /// The law of the factory's path with this number, counted from 0, for datagrams of `datagram` bytes.
    #[must_use]
    pub fn law(&self, path: u64, datagram: u16) -> Law {
        let fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let initial = self.initial_window(datagram);
        Law::new(Congestion::new(fresh, self.profile, datagram, initial, self.stream.fork(path)), datagram)
    }

    /// The initial window of paths in bytes.
    fn initial_window(&self, datagram: u16) -> u64 {
        self.initial_window.unwrap_or_else(|| Congestion::initial_window(datagram))
    }
}

impl ControllerFactory for Controllers {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let path = self.made.fetch_add(1, Ordering::Relaxed);
        let (law, initial) = (self.law(path, current_mtu), self.initial_window(current_mtu));
        Box::new(Adaptor::new(law, now, initial, path, self.observer.clone(), self.gate.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_control::Machine;

    #[test]
    fn every_window_controller_is_one_for_quinn_but_those_that_count_marks() {
        let (mut made, mut refused) = (0, Vec::new());
        for scheme in registry::schemes() {
            match (scheme.machine, Controllers::new(scheme.name, &[], 1)) {
                (Machine::Tcp(_), Ok(_)) => made += 1,
                (Machine::Tcp(_), Err(Refused::Marks { scheme })) => refused.push(scheme),
                (Machine::Tcp(_), Err(error)) => panic!("{error}"),
                (_, answer) => assert!(matches!(answer, Err(Refused::Parameter(ParameterError::Machine { .. })))),
            }
        }
        refused.sort_unstable();
        assert_eq!((made > 8, refused), (true, vec!["dctcp", "prague"]));
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = |name, parameters: &[(&str, f64)]| Controllers::new(name, parameters, 1).unwrap_err().to_string();
        assert_eq!(error("cubik", &[]), "there is no congestion control `cubik`; did you mean `cubic`?");
        assert_eq!(error("vegas", &[("alpha", -1.0)]), "vegas: alpha = -1 is not from 0 to 1000 segments");
        assert_eq!(error("gcc", &[]), "gcc rides on the machine rtp, not on this one");
        assert_eq!(
            error("prague", &[]),
            "prague counts the packets that were marked, and quinn tells only that some were; choose another"
        );
    }
}

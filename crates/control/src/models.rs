//! Throughput models: functions that give the rate a controller should reach on a path.
//!
//! One file per family: [`reno`] the PFTK model, [`veno`] its generalisation to any window factor, [`gamma`] that
//! factor for Veno, [`tfrc`] the equation of TFRC and TFRC Veno with its inverse, [`vegas`] the equilibrium without
//! loss. Arguments are checked once, when they become a quantity of [`domain`]; the functions themselves cannot fail,
//! except the inverse. As in their sources, rates of window models are in packets per second, those of TFRC in bytes
//! per second. [`catalog`] lists the models by name, with plain numbers as arguments. See docs/models.md.

pub mod catalog;
pub mod domain;
pub mod gamma;
pub mod reno;
pub mod tfrc;
pub mod vegas;
pub mod veno;

pub use domain::{BytesPerSecond, DomainError, Factor, LossRate, PacketSize, PacketsPerSecond, PerAck};
pub use domain::{Seconds, Window};
pub use gamma::Gamma;
pub use tfrc::{Tfrc, TfrcPath, TimeoutTerm};

/// A connection and its path, as TCP's models need them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpPath {
    /// Mean round-trip time.
    pub rtt: Seconds,
    /// T_0: the duration of the first timeout in a sequence.
    pub rto: Seconds,
    /// b: packets per acknowledgement; 2 with delayed acknowledgements.
    pub per_ack: PerAck,
    /// W_max: the receive window.
    pub limit: Window,
}

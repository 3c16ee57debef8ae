//! Throughput models: what a controller should reach on a path, as functions.
//!
//! One file a family: [`reno`] the PFTK model, [`veno`] its generalisation to any window factor, [`gamma`] that factor
//! for Veno, [`tfrc`] the equation of TFRC and TFRC Veno with its inverse, [`vegas`] the equilibrium without loss.
//! Arguments are checked once, when they become a quantity of [`domain`]; the functions themselves cannot fail, but
//! for the inverse. Rates of window models are in packets per second, those of TFRC in bytes per second, as their
//! sources have them. [`catalog`] lists them by name for those who have numbers. See docs/models.md.

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

/// What the models of TCP ask about a connection and its path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpPath {
    /// Mean round-trip time.
    pub rtt: Seconds,
    /// T_0: how long the first timeout of a run of them takes.
    pub rto: Seconds,
    /// b: packets that an acknowledgement covers; 2 with delayed acknowledgements.
    pub per_ack: PerAck,
    /// W_max: the receiver's window.
    pub limit: Window,
}

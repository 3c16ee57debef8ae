//! QUIC: both ends of a connection, sans-I/O, around any window controller (RFC 9000, RFC 9002, RFC 9221).
//!
//! Look first at [`Congestion`].

mod bucket;
mod congestion;
mod rtt;

pub use crate::delivery::Snapshot;
pub use congestion::{Congestion, Cuts};
pub use rtt::Rtt;

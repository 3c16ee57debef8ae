//! QUIC: both ends of a connection, sans-I/O, around any window controller (RFC 9000, RFC 9002, RFC 9221).
//!
//! Volumes are bytes. Packets are numbered once, and what was lost leaves again in others. The caller owns the clock and the network.
//! Look first at [`QuicSender`] and [`QuicReceiver`], which are the two ends as a host sees them, then at `connection.rs` for the state
//! that both have; `ack.rs` has what acknowledgements do, `assemble.rs` what packets are made of, `outgoing.rs` and `incoming.rs` the
//! streams, `tracks.rs` flows that share a connection, `relay.rs` what comes by one and leaves by another. [`Congestion`] makes of it all what a controller is told. [`QuicConfig`] has every setting.

mod ack;
mod assemble;
mod bucket;
mod config;
mod congestion;
mod connection;
mod datagrams;
mod ecn;
mod handshake;
mod incoming;
mod numbered;
mod outgoing;
mod portions;
mod ranges;
mod received;
mod receiver;
mod recovery;
mod relay;
mod rtt;
mod sender;
mod sent;
mod tracks;

#[cfg(test)]
mod tests;

pub use crate::delivery::Snapshot;
pub use config::{Carriage, Handshake, QuicConfig, TrackConfig};
pub use congestion::{Congestion, Cuts};
pub use incoming::Object;
pub use portions::{Portion, PortionKind};
pub use receiver::QuicReceiver;
pub use recovery::{CongestionState, LostNumber, Recovery, Stage};
pub use rtt::Rtt;
pub use sender::QuicSender;
pub use tracks::{TrackArrivals, TrackReceiver, TrackSender, TrackState, TrackWrite};

//! QUIC: both ends of a connection, sans-I/O, around any window controller (RFC 9000, RFC 9002, RFC 9221).
//!
//! Data is counted in bytes. Each packet has a new number, and lost data is sent again in other packets. The caller
//! owns the clock and the network.
//!
//! Start with [`QuicSender`] and [`QuicReceiver`], the two ends as a host sees them; then read `connection.rs` for
//! their common state. `ack.rs` processes acknowledgements, `loss_detection.rs` declares packets
//! lost, `assemble.rs` builds packets, `outgoing.rs` and
//! `incoming.rs` have the streams, `tracks.rs` has flows that share a connection, `relay.rs` forwards data from one
//! connection to another. [`Congestion`] converts QUIC's feedback into a controller's events. [`QuicConfig`] has every
//! setting.

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
mod loss_detection;
mod numbered;
mod outgoing;
mod portions;
mod ranges;
mod received;
mod receiver;
mod recovery_state;
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
pub use portions::{RelayedData, RelayedDataKind};
pub use receiver::QuicReceiver;
pub use recovery_state::{CongestionState, LostNumber, Recovery, Stage};
pub use rtt::Rtt;
pub use sender::QuicSender;
pub use tracks::{TrackArrivals, TrackReceiver, TrackSender, TrackState, TrackWrite};

//! TCP: a sender and a receiver machine, sans-I/O, around any window controller.
//!
//! Segments are numbered, not bytes: a connection's first segment is its SYN, then come data segments of
//! `segment` payload bytes, but for the last of a write, which may be shorter. The caller owns the clock and the
//! network: it hands in acknowledgements, data and the time, and takes segments through [`Transmit`](crate::Transmit).
//! Look first at [`TcpSender::on_ack`] (`in_order.rs`; what is less common is in `sender.rs`), then at `connection.rs` for the
//! state, at `ack.rs` and `output.rs` for what happens to it, and at `repair` for what losses do: one file for each way of
//! repairing them. [`TcpConfig`] has every setting. `requests.rs` makes a connection of two halves, on which a client asks.

mod ack;
mod config;
mod connection;
mod delivery;
mod handshake;
mod in_order;
mod output;
mod receiver;
mod repair;
mod requests;
mod ring;
mod rtt;
mod sender;
mod sent;
mod view;

#[cfg(test)]
mod fast_paths;

pub use config::{PartialAcks, TcpConfig};
pub use in_order::Burst;
pub use receiver::TcpReceiver;
pub use requests::{Requests, TcpClient, TcpServer};
pub use sender::TcpSender;
pub use view::TcpView;

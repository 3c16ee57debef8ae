//! TCP: a sender and a receiver machine, sans-I/O, around any window controller.
//!
//! Segments are numbered, not bytes. A connection's first segment is its SYN; data segments of `segment` payload bytes
//! follow, and only the last one of a write may be shorter. The caller owns the clock and the network: it passes in
//! acknowledgements, data and the time, and receives segments through [`Transmit`](crate::Transmit).
//!
//! Start with [`TcpSender::on_ack`] (`in_order.rs`; the less common cases are in `sender.rs`). Then read
//! `connection.rs` for the state, `ack.rs` and `output.rs` for what changes it, and `loss_recovery` for loss recovery,
//! one file for each algorithm. [`TcpConfig`] has every setting. `requests.rs` combines two halves into a connection on
//! which a client sends requests.

mod ack;
mod config;
mod connection;
mod delivery;
mod handshake;
mod in_order;
mod loss_recovery;
mod output;
mod receiver;
mod requests;
mod ring;
mod rtt;
mod scoreboard;
mod sender;
mod view;

#[cfg(test)]
mod fast_paths;

pub use config::{PartialAcks, TcpConfig};
pub use in_order::Burst;
pub use receiver::TcpReceiver;
pub use requests::{Requests, TcpClient, TcpServer};
pub use sender::TcpSender;
pub use view::TcpView;

//! TCP: a sender and a receiver machine, sans-I/O, around any window controller.
//!
//! Segments are numbered, not bytes: a connection's first segment is its SYN, then come data segments of
//! `segment` payload bytes, but for the last of a write, which may be shorter. The caller owns the clock and the
//! network: it hands in acknowledgements, data and the time, and takes segments through [`Transmit`](crate::Transmit).
//! Look first at [`TcpSender::on_ack`] (`in_order.rs`; what is less common is in `ack.rs`), then at `output.rs` for sending
//! and timers, at `recovery.rs` for what losses do; [`TcpConfig`] has every setting. Profile `linux` has a machine of its
//! own, `kernel.rs`.

mod ack;
mod autotune;
mod board;
mod clock;
mod config;
mod episode;
mod in_order;
mod kernel;
mod linux;
mod mdev;
mod output;
mod prr;
mod rack;
mod receiver;
mod recovery;
mod rtt;
mod sack;
mod scoreboard;
mod sender;
mod tlp;
mod vegas;

pub use config::{PartialAcks, TcpConfig};
pub use in_order::Burst;
pub use receiver::TcpReceiver;
pub use sender::TcpSender;

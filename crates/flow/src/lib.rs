//! Sender and receiver machines around a controller. Sans-I/O: time is an argument, segments leave through a trait, and
//! nothing is read from the system.
//!
//! The machines are [`tcp`]; [`quic`]; [`acks`], rate control by per-packet acknowledgements; [`tfrc`], and
//! [`multfrc`], several TFRC connections in one flow; [`rtp`]; [`udp`], datagrams without congestion control; and
//! [`ForeignSender`], which another crate implements. [`machine`] has the enums over all of them that a host drives.
//! They share [`Segment`], [`Transmit`] and the counters, [`SenderStats`] and [`ReceiverStats`]. This crate uses
//! control, packet and random. Start with [`Sender`], then read [`tcp::TcpSender`].

pub mod acks;
mod delivery;
mod foreign;
pub mod machine;
pub mod multfrc;
mod pacer;
mod pacing;
pub mod quic;
pub mod rtp;
mod segment;
mod stats;
mod supply;
pub mod tcp;
pub mod tfrc;
mod tls;
pub mod udp;

pub use foreign::{Datagrams, ForeignReceiver, ForeignSender};
pub use machine::{Receiver, Sender, Transport};
pub use segment::{Segment, Transmit};
pub use stats::{Arrived, ReceiverStats, SenderStats};

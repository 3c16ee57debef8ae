//! Sender and receiver machines around a controller. Sans-I/O: time comes in as an argument, segments go out through
//! a trait, nothing is read from the system.
//!
//! What lives here: [`tcp`]; [`acks`], rate control by per-packet acknowledgements; [`tfrc`], and [`multfrc`], several of
//! them in one flow; [`rtp`]; [`udp`], datagrams without control; [`ForeignSender`], what another crate brings; [`machine`], any
//! of them as a host drives it. All share
//! [`Segment`], [`Transmit`] and the counts, [`SenderStats`] and [`ReceiverStats`]. Uses control, packet and random.
//! Look first at [`Sender`], then at [`tcp::TcpSender`].

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

//! TCP: a sender and a receiver machine, sans-I/O, around any window controller.
//!
//! Segments are numbered, not bytes: a connection's first segment is its SYN, then come data segments of
//! `segment` payload bytes, but for the last of a write, which may be shorter. The caller owns the clock and the
//! network: it hands in acknowledgements, data and the time, and takes segments through [`Transmit`].
//! Look first at [`TcpSender::on_ack`] (`ack.rs`), then at `output.rs` for sending and timers, at `recovery.rs` for what
//! losses do; [`TcpConfig`] has every setting. Profile `linux` has a machine of its own, `kernel.rs`.

mod ack;
mod board;
mod clock;
mod config;
mod episode;
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
mod sender;
mod stats;
mod tlp;
mod vegas;

pub use config::{PartialAcks, TcpConfig};
pub use receiver::{Arrived, ReceiverStats, TcpReceiver};
pub use sender::TcpSender;
pub use stats::{Histogram, SenderStats};

use paceline_packet::{Extra, Flags, Stamp};

/// A segment on its way out: a packet but for what the host adds.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Data: the segment's number. Acknowledgement: the next segment expected.
    pub seq: u32,
    /// Data: the sender's clock. Acknowledgement: the echo of the data's.
    pub stamp: Stamp,
    /// Bytes on the wire.
    pub size: u16,
    /// Header bits.
    pub flags: Flags,
    /// SACK blocks, if there are any.
    pub extra: Option<Extra>,
}

/// Takes segments as they are sent.
pub trait Transmit {
    /// The segment leaves now.
    fn transmit(&mut self, segment: Segment);
}

impl Transmit for Vec<Segment> {
    fn transmit(&mut self, segment: Segment) {
        self.push(segment);
    }
}

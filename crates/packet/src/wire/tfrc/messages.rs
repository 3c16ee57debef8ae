//! The messages of TFRC over UDP.

use super::tcp::{Plain, Segment, SegmentAck};
use crate::{FramePart, LastHole, Stamp, Subflow};
use paceline_units::Span;

/// A duration on the wire: units of 256 ns, as in [`Stamp`]; at most 1099.5 s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Ticks(pub u32);

impl Ticks {
    /// Nanoseconds per tick.
    pub const NANOS: u64 = 256;

    /// The nearest number of ticks. A duration beyond the field's range becomes its maximum. A nonzero one stays above
    /// zero, since a round-trip time of zero means that there is none yet.
    #[must_use]
    pub const fn nearest(span: Span) -> Ticks {
        let ticks = span.0 / Ticks::NANOS + (span.0 % Ticks::NANOS >= Ticks::NANOS / 2) as u64;
        if ticks > u32::MAX as u64 {
            Ticks(u32::MAX)
        } else if ticks == 0 && span.0 > 0 {
            Ticks(1)
        } else {
            Ticks(ticks as u32)
        }
    }

    /// The duration.
    #[must_use]
    pub const fn span(self) -> Span {
        Span(self.0 as u64 * Ticks::NANOS)
    }
}

/// Identifies a flow between two addresses: the data sender chooses it at random, and all messages of both sides have
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct ConnectionId(pub u32);

/// A secret of 64 random bits that the data sender chooses for a request: the response must repeat it, and only a
/// recipient of the request knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Nonce(pub u64);

/// Whether data are sent ECN-capable (RFC 3168; RFC 5348 section 3 counts a mark as a loss).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ecn {
    /// Data packets are not ECN-capable.
    Off,
    /// Data packets carry ECT.
    On,
}

/// Requests the other side's consent to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The response must repeat this.
    pub nonce: Nonce,
    /// Bytes that each data packet carries after this format's header: s of RFC 5348, section 3.1.
    pub packet_size: u16,
    /// Whether data will be sent ECN-capable.
    pub ecn: Ecn,
}

/// The maximum rate that a receiver accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateLimit {
    /// No limit beyond congestion control.
    None,
    /// Bytes per second, without headers (`u32::MAX` means no limit on the wire, and is sent as one less).
    BytesPerSecond(u32),
}

/// Consents to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accept {
    /// The request's nonce.
    pub nonce: Nonce,
    /// The sender stays below this rate, whatever its congestion control allows.
    pub limit: RateLimit,
}

/// Why a request is refused or a connection closed. Unknown numbers are preserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Reason(pub u16);

impl Reason {
    /// No reason given.
    pub const UNSPECIFIED: Reason = Reason(0);
    /// All data have been sent, or no more are needed.
    pub const DONE: Reason = Reason(1);
    /// The receiver accepts no (further) flow.
    pub const BUSY: Reason = Reason(2);
    /// The receiver does not know the connection.
    pub const UNKNOWN: Reason = Reason(3);
    /// The receiver cannot take packets of this size.
    pub const PACKET_SIZE: Reason = Reason(4);
}

/// Refuses a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refuse {
    /// The request's nonce.
    pub nonce: Nonce,
    /// The reason.
    pub reason: Reason,
}

/// Closes a connection; either side may, at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Close {
    /// The request's nonce.
    pub nonce: Nonce,
    /// The reason.
    pub reason: Reason,
}

/// The header of a data packet (RFC 5348 section 3.2.1). The payload follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// Incremented with each data packet, modulo 2^32.
    pub sequence: u32,
    /// The sender's clock when it sent the packet.
    pub timestamp: Stamp,
    /// The sender's round-trip time; zero before the first sample.
    pub rtt: Ticks,
    /// Its connection, in a flow that may have several. Each connection has its own sequence numbers.
    pub subflow: Option<Subflow>,
    /// The part of a video frame, in a flow that carries video.
    pub frame: Option<FramePart>,
}

/// A feedback packet (RFC 5348 section 3.2.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback {
    /// One past the highest sequence number received.
    pub received_end: u32,
    /// The timestamp of the last data packet received.
    pub echo: Stamp,
    /// From the arrival of that packet to the sending of this one: t_delay.
    pub delay: Ticks,
    /// Data packets received so far, modulo 2^32.
    pub received: u32,
    /// Those of them marked "congestion experienced", modulo 2^32.
    pub marked: u32,
    /// The receive rate over a round-trip time or more (RFC 5348 section 6.2), in bytes per second: X_recv; finite and
    /// not negative.
    pub receive_rate: f64,
    /// The loss event rate p, from 0 to 1.
    pub loss_event_rate: f64,
    /// Its connection, in a flow that may have several; counts and rates are that connection's.
    pub subflow: Option<Subflow>,
}

/// The header of an individually acknowledged data packet. The payload follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Single {
    /// Incremented with each data packet, from 0 to 2^32 - 2.
    pub sequence: u32,
    /// The sender's clock when it sent the packet.
    pub timestamp: Stamp,
}

/// The acknowledgement of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The packet's number, below [`LastHole::received_end`].
    pub sequence: u32,
    /// Its timestamp.
    pub echo: Stamp,
    /// The packets received so far: `hole_start <= hole_end < received_end`.
    pub hole: LastHole,
}

/// The content of a datagram.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Message {
    /// Data sender to receiver: requests consent to send.
    Request(Request),
    /// Receiver to sender: consents.
    Accept(Accept),
    /// Receiver to sender: refuses.
    Refuse(Refuse),
    /// Either direction: closes.
    Close(Close),
    /// Sender to receiver: data.
    Data(Data),
    /// Receiver to sender: feedback.
    Feedback(Feedback),
    /// Sender to receiver: individually acknowledged data.
    Single(Single),
    /// Receiver to sender: acknowledgement of one packet.
    Ack(Ack),
    /// Sender to receiver: a segment of TCP's machines.
    Segment(Segment),
    /// Receiver to sender: an acknowledgement of TCP's machines.
    SegmentAck(SegmentAck),
    /// Sender to receiver: data without any acknowledgement.
    Plain(Plain),
}

/// A datagram without its payload.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Datagram {
    /// Its connection.
    pub connection: ConnectionId,
    /// Its message.
    pub message: Message,
}

//! What the messages of TFRC over UDP say.

use super::tcp::{Plain, Segment, SegmentAck};
use crate::{FramePart, LastHole, Stamp, Subflow};
use paceline_units::Span;

/// A length of time on the wire: units of 256 ns, as in [`Stamp`]; at most 1099.5 s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Ticks(pub u32);

impl Ticks {
    /// Nanoseconds of a tick.
    pub const NANOS: u64 = 256;

    /// The nearest number of ticks. What is longer than the field holds becomes the longest, and what is not zero stays
    /// above zero, since a round-trip time of zero means that there is none yet.
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

    /// The length of time.
    #[must_use]
    pub const fn span(self) -> Span {
        Span(self.0 as u64 * Ticks::NANOS)
    }
}

/// Names a flow between two addresses: chosen at random by the sender of data, in every message of both sides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct ConnectionId(pub u32);

/// A secret of 64 random bits that the sender of data chooses for a request: the answer must repeat it, and only who
/// received the request knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct Nonce(pub u64);

/// Whether data are sent ECN-capable (RFC 3168; RFC 5348 section 3 lets a mark count as a loss).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ecn {
    /// Data packets are not ECN-capable.
    Off,
    /// Data packets carry ECT.
    On,
}

/// Asks for the other side's agreement to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What the answer must repeat.
    pub nonce: Nonce,
    /// Bytes that each data packet carries after this format's header: s of RFC 5348, section 3.1.
    pub packet_size: u16,
    /// Whether data will be sent ECN-capable.
    pub ecn: Ecn,
}

/// The most that a receiver agrees to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateLimit {
    /// Whatever the congestion control allows.
    None,
    /// At most so many bytes a second, headers left out (`u32::MAX` means none on the wire, and is sent as one less).
    BytesPerSecond(u32),
}

/// Agrees to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accept {
    /// The request's.
    pub nonce: Nonce,
    /// The sender stays below it, whatever its congestion control allows.
    pub limit: RateLimit,
}

/// Why a request is refused or an agreement ends. Numbers without a name here are kept as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Reason(pub u16);

impl Reason {
    /// No reason given.
    pub const UNSPECIFIED: Reason = Reason(0);
    /// All data have been sent, or none is wanted any more.
    pub const DONE: Reason = Reason(1);
    /// The receiver takes no (further) flow.
    pub const BUSY: Reason = Reason(2);
    /// The receiver does not know the connection.
    pub const UNKNOWN: Reason = Reason(3);
    /// The receiver cannot take packets of this size.
    pub const PACKET_SIZE: Reason = Reason(4);
}

/// Refuses a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refuse {
    /// The request's.
    pub nonce: Nonce,
    /// Why.
    pub reason: Reason,
}

/// Ends an agreement; either side may, at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Close {
    /// The request's.
    pub nonce: Nonce,
    /// Why.
    pub reason: Reason,
}

/// The header of a data packet (RFC 5348 section 3.2.1). The payload follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// One more with each data packet, modulo 2^32.
    pub sequence: u32,
    /// The sender's clock when it sent the packet.
    pub timestamp: Stamp,
    /// The sender's round-trip time; zero before it has one.
    pub rtt: Ticks,
    /// Which connection it is of, in a flow that may have several. Numbers are each connection's own.
    pub subflow: Option<Subflow>,
    /// Which part of a video frame it is, in a flow that carries video.
    pub frame: Option<FramePart>,
}

/// A feedback packet (RFC 5348 section 3.2.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback {
    /// One past the highest sequence number received.
    pub received_end: u32,
    /// The timestamp of the last data packet received.
    pub echo: Stamp,
    /// From the arrival of that packet to this one's sending: t_delay.
    pub delay: Ticks,
    /// Data packets received so far, modulo 2^32.
    pub received: u32,
    /// Of them, those marked "congestion experienced", modulo 2^32.
    pub marked: u32,
    /// The rate of arrival over a round-trip time or more (RFC 5348 section 6.2), in bytes a second: X_recv; finite and
    /// not negative.
    pub receive_rate: f64,
    /// The loss event rate p, from 0 to 1.
    pub loss_event_rate: f64,
    /// Which connection it is of, in a flow that may have several; counts and rates are that connection's.
    pub subflow: Option<Subflow>,
}

/// The header of a data packet that wants an acknowledgement of its own. The payload follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Single {
    /// One more with each data packet, from 0 to 2^32 - 2.
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
    /// What has come so far: `hole_start <= hole_end < received_end`.
    pub hole: LastHole,
}

/// What a datagram says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Message {
    /// Sender of data to receiver: may I send?
    Request(Request),
    /// Receiver to sender: yes.
    Accept(Accept),
    /// Receiver to sender: no.
    Refuse(Refuse),
    /// Either way: no more.
    Close(Close),
    /// Sender to receiver.
    Data(Data),
    /// Receiver to sender.
    Feedback(Feedback),
    /// Sender to receiver, where each packet is acknowledged.
    Single(Single),
    /// Receiver to sender, where each packet is acknowledged.
    Ack(Ack),
    /// Sender to receiver, of TCP's machines.
    Segment(Segment),
    /// Receiver to sender, of TCP's machines.
    SegmentAck(SegmentAck),
    /// Sender to receiver, where nothing comes back.
    Plain(Plain),
}

/// A datagram without its payload.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Datagram {
    /// Whose it is.
    pub connection: ConnectionId,
    /// What it says.
    pub message: Message,
}

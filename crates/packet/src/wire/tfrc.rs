//! TFRC over UDP, version 1: the header and feedback contents of RFC 5348 section 3.2, and the handshake before them.
//! `docs/wire/tfrc.md` shows every message and the rules of the handshake, which all formats share. `docs/wire/acks.md`
//! shows RAP's and TFRCP's packets, which are acknowledged individually; `docs/wire/tcp.md` the segments of TCP's
//! machines and plain datagrams.
//!
//! RFC 5348 defines the contents of data and feedback packets and leaves their format open. In this format, type and
//! flags determine the size, and byte order is network order. It is canonical: each message has one encoding, and
//! [`decode`] rejects every other (reserved bits set, a wrong length, a number out of range), so that decoding and
//! encoding again returns the same bytes.

mod messages;
mod tcp;

pub use messages::{
    Accept, Ack, Close, ConnectionId, Data, Datagram, Ecn, Feedback, Message, Nonce, RateLimit, Reason, Refuse,
    Request, Single, Ticks,
};
pub use tcp::{BLOCK_LEN, Plain, SEGMENT_ACK_LEN, SEGMENT_LEN, Segment, SegmentAck, WINDOW_LEN};

use crate::{FramePart, LastHole, Stamp, Subflow};

/// The first two bytes of each datagram, "PT". They are outside the ranges by which RFC 7983 distinguishes STUN, DTLS
/// and RTP.
pub const MAGIC: [u8; 2] = *b"PT";

/// The version that this module reads and writes.
pub const VERSION: u8 = 1;

/// Bytes of the handshake's messages and of a data message's header; the payload follows the latter.
pub const SHORT_LEN: usize = 20;

/// Bytes of a feedback message.
pub const FEEDBACK_LEN: usize = 44;

/// Bytes of the header of an individually acknowledged packet; the payload follows.
pub const SINGLE_LEN: usize = 16;

/// Bytes of an acknowledgement of one packet.
pub const ACK_LEN: usize = 28;

/// Additional bytes of data and feedback that identify a connection within the flow.
pub const SUBFLOW_LEN: usize = 4;

/// Additional bytes of data that identify a part of a video frame.
pub const FRAME_LEN: usize = 4;

/// Why bytes are not a message of this format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The bytes do not begin with [`MAGIC`].
    NotOurs,
    /// The version is not [`VERSION`].
    Version(u8),
    /// The type is unknown.
    Type(u8),
    /// The length does not match type and flags (data: shorter than its header).
    Length(usize),
    /// A reserved flag or field is not zero.
    Reserved,
    /// A receive rate is infinite, negative (including -0) or not a number.
    ReceiveRate,
    /// A loss event rate is outside 0 to 1 (-0 included).
    LossEventRate,
    /// A hole ends before it begins or is not below the packets received, or the acknowledged packet has not been
    /// received.
    Hole,
    /// The sequence number is 2^32 - 1, which individually acknowledged packets and segments never have.
    Sequence,
    /// A block ends before it begins, or is empty.
    Block,
    /// The window is zero segments.
    Window,
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DecodeError::NotOurs => f.write_str("not a datagram of TFRC over UDP: it does not begin with \"PT\""),
            DecodeError::Version(v) => write!(f, "version {v}, where this program knows version {VERSION}"),
            DecodeError::Type(t) => write!(f, "type {t}, which has no meaning"),
            DecodeError::Length(n) => write!(f, "{n} bytes, which is no length of this type"),
            DecodeError::Reserved => f.write_str("a reserved bit is set"),
            DecodeError::ReceiveRate => f.write_str("the receive rate is negative, infinite or no number"),
            DecodeError::LossEventRate => f.write_str("the loss event rate is not from 0 to 1"),
            DecodeError::Hole => f.write_str("the numbers of what has come contradict each other"),
            DecodeError::Sequence => f.write_str("no packet has this number"),
            DecodeError::Block => f.write_str("a block is empty or ends before it begins"),
            DecodeError::Window => f.write_str("a window of no segment"),
        }
    }
}

impl core::error::Error for DecodeError {}

const REQUEST: u8 = 1;
const ACCEPT: u8 = 2;
const REFUSE: u8 = 3;
const CLOSE: u8 = 4;
const DATA: u8 = 5;
const FEEDBACK: u8 = 6;
const SINGLE: u8 = 7;
const ACK: u8 = 8;
const SEGMENT: u8 = 9;
const SEGMENT_ACK: u8 = 10;
const PLAIN: u8 = 11;

const FLAG_ECN: u8 = 1;
const FLAG_SUBFLOW: u8 = 2;
const FLAG_FRAME: u8 = 4;
const FLAG_LAST: u8 = 8;
const NO_LIMIT: u32 = u32::MAX;

impl Message {
    const fn kind(&self) -> u8 {
        match self {
            Message::Request(_) => REQUEST,
            Message::Accept(_) => ACCEPT,
            Message::Refuse(_) => REFUSE,
            Message::Close(_) => CLOSE,
            Message::Data(_) => DATA,
            Message::Feedback(_) => FEEDBACK,
            Message::Single(_) => SINGLE,
            Message::Ack(_) => ACK,
            Message::Segment(_) => SEGMENT,
            Message::SegmentAck(_) => SEGMENT_ACK,
            Message::Plain(_) => PLAIN,
        }
    }

    fn flags(&self) -> u8 {
        match self {
            Message::Request(Request { ecn: Ecn::On, .. }) => FLAG_ECN,
            Message::Data(data) => data.wire_flags(),
            Message::Feedback(Feedback { subflow: Some(_), .. }) => FLAG_SUBFLOW,
            Message::Segment(segment) => segment.wire_flags(),
            Message::SegmentAck(ack) => ack.wire_flags(),
            _ => 0,
        }
    }
}

impl Data {
    fn wire_flags(&self) -> u8 {
        let part = match self.frame {
            Some(FramePart { last: true, .. }) => FLAG_FRAME | FLAG_LAST,
            Some(FramePart { last: false, .. }) => FLAG_FRAME,
            None => 0,
        };
        if self.subflow.is_some() { part | FLAG_SUBFLOW } else { part }
    }
}

fn put_subflow(to: &mut Vec<u8>, subflow: Option<Subflow>) {
    if let Some(Subflow { place, opening }) = subflow {
        to.extend_from_slice(&place.to_be_bytes());
        to.extend_from_slice(&opening.to_be_bytes());
    }
}

impl Datagram {
    /// Appends the encoding; the caller appends the payload, if any. Rates are not checked: out of range (see
    /// [`Feedback`]) they make a message that [`decode`] rejects.
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&MAGIC);
        to.extend_from_slice(&[VERSION << 4 | self.message.kind(), self.message.flags()]);
        to.extend_from_slice(&self.connection.0.to_be_bytes());
        match self.message {
            Message::Request(m) => {
                to.extend_from_slice(&m.nonce.0.to_be_bytes());
                to.extend_from_slice(&m.packet_size.to_be_bytes());
                to.extend_from_slice(&[0; 2]);
            }
            Message::Accept(m) => {
                let limit = match m.limit {
                    RateLimit::None => NO_LIMIT,
                    RateLimit::BytesPerSecond(n) => n.min(NO_LIMIT - 1),
                };
                to.extend_from_slice(&m.nonce.0.to_be_bytes());
                to.extend_from_slice(&limit.to_be_bytes());
            }
            Message::Refuse(Refuse { nonce, reason }) | Message::Close(Close { nonce, reason }) => {
                to.extend_from_slice(&nonce.0.to_be_bytes());
                to.extend_from_slice(&reason.0.to_be_bytes());
                to.extend_from_slice(&[0; 2]);
            }
            Message::Data(m) => {
                to.extend_from_slice(&m.sequence.to_be_bytes());
                to.extend_from_slice(&m.timestamp.0.to_be_bytes());
                to.extend_from_slice(&m.rtt.0.to_be_bytes());
                put_subflow(to, m.subflow);
                if let Some(part) = m.frame {
                    to.extend_from_slice(&part.captured.0.to_be_bytes());
                }
            }
            Message::Feedback(m) => {
                to.extend_from_slice(&m.received_end.to_be_bytes());
                to.extend_from_slice(&m.echo.0.to_be_bytes());
                to.extend_from_slice(&m.delay.0.to_be_bytes());
                to.extend_from_slice(&m.received.to_be_bytes());
                to.extend_from_slice(&m.marked.to_be_bytes());
                to.extend_from_slice(&m.receive_rate.to_be_bytes());
                to.extend_from_slice(&m.loss_event_rate.to_be_bytes());
                put_subflow(to, m.subflow);
            }
            Message::Single(m) => {
                to.extend_from_slice(&m.sequence.to_be_bytes());
                to.extend_from_slice(&m.timestamp.0.to_be_bytes());
            }
            Message::Ack(m) => {
                to.extend_from_slice(&m.sequence.to_be_bytes());
                to.extend_from_slice(&m.echo.0.to_be_bytes());
                to.extend_from_slice(&m.hole.received_end.to_be_bytes());
                to.extend_from_slice(&m.hole.hole_end.to_be_bytes());
                to.extend_from_slice(&m.hole.hole_start.to_be_bytes());
            }
            Message::Segment(m) => m.put(to),
            Message::SegmentAck(m) => m.put(to),
            Message::Plain(m) => {
                to.extend_from_slice(&m.sequence.to_be_bytes());
                to.extend_from_slice(&m.timestamp.0.to_be_bytes());
            }
        }
    }
}

/// Reads a datagram; returns the message and its payload (empty for messages without one).
///
/// # Errors
/// [`DecodeError`], one for each way in which bytes can be invalid.
pub fn decode(bytes: &[u8]) -> Result<(Datagram, &[u8]), DecodeError> {
    let ours = bytes.get(..2).ok_or(DecodeError::NotOurs)?;
    if ours != MAGIC {
        return Err(DecodeError::NotOurs);
    }
    let &[kind, flags] = bytes.get(2..4).and_then(|b| b.first_chunk()).ok_or(DecodeError::Length(bytes.len()))?;
    if kind >> 4 != VERSION {
        return Err(DecodeError::Version(kind >> 4));
    }
    let kind = kind & 0xf;
    let meanings = match kind {
        REQUEST => FLAG_ECN,
        DATA if flags & FLAG_FRAME == 0 => FLAG_SUBFLOW,
        DATA => FLAG_SUBFLOW | FLAG_FRAME | FLAG_LAST,
        FEEDBACK => FLAG_SUBFLOW,
        SEGMENT => tcp::SEGMENT_FLAGS,
        SEGMENT_ACK => tcp::ACK_FLAGS,
        _ => 0,
    };
    let named = matches!(kind, DATA | FEEDBACK) && flags & FLAG_SUBFLOW != 0;
    let part = kind == DATA && flags & FLAG_FRAME != 0;
    let more = if named { SUBFLOW_LEN } else { 0 } + if part { FRAME_LEN } else { 0 };
    let len = match kind {
        REQUEST | ACCEPT | REFUSE | CLOSE | DATA => SHORT_LEN + more,
        FEEDBACK => FEEDBACK_LEN + more,
        SINGLE => SINGLE_LEN,
        ACK => ACK_LEN,
        SEGMENT | PLAIN => SEGMENT_LEN,
        SEGMENT_ACK => SegmentAck::len(flags),
        _ => return Err(DecodeError::Type(kind)),
    };
    let (header, payload) = bytes.split_at_checked(len).ok_or(DecodeError::Length(bytes.len()))?;
    if !matches!(kind, DATA | SINGLE | SEGMENT | PLAIN) && !payload.is_empty() {
        return Err(DecodeError::Length(bytes.len()));
    }
    if flags & !meanings != 0 {
        return Err(DecodeError::Reserved);
    }
    let mut read = Reader(&header[4..]);
    let connection = ConnectionId(read.u32());
    let message = match kind {
        REQUEST => {
            let (nonce, packet_size) = (Nonce(read.u64()), read.u16());
            read.reserved()?;
            Message::Request(Request {
                nonce,
                packet_size,
                ecn: if flags & FLAG_ECN != 0 { Ecn::On } else { Ecn::Off },
            })
        }
        ACCEPT => {
            let nonce = Nonce(read.u64());
            let limit = match read.u32() {
                NO_LIMIT => RateLimit::None,
                n => RateLimit::BytesPerSecond(n),
            };
            Message::Accept(Accept { nonce, limit })
        }
        REFUSE | CLOSE => {
            let (nonce, reason) = (Nonce(read.u64()), Reason(read.u16()));
            read.reserved()?;
            if kind == REFUSE {
                Message::Refuse(Refuse { nonce, reason })
            } else {
                Message::Close(Close { nonce, reason })
            }
        }
        DATA => Message::Data(Data {
            sequence: read.u32(),
            timestamp: Stamp(read.u32()),
            rtt: Ticks(read.u32()),
            subflow: read.subflow(named),
            frame: part.then(|| FramePart { captured: Stamp(read.u32()), last: flags & FLAG_LAST != 0 }),
        }),
        SINGLE => {
            let (sequence, timestamp) = (read.u32(), Stamp(read.u32()));
            if sequence == u32::MAX {
                return Err(DecodeError::Sequence);
            }
            Message::Single(Single { sequence, timestamp })
        }
        ACK => {
            let (sequence, echo) = (read.u32(), Stamp(read.u32()));
            let hole = LastHole { received_end: read.u32(), hole_end: read.u32(), hole_start: read.u32() };
            if sequence >= hole.received_end || hole.hole_end >= hole.received_end || hole.hole_start > hole.hole_end {
                return Err(DecodeError::Hole);
            }
            Message::Ack(Ack { sequence, echo, hole })
        }
        SEGMENT => Message::Segment(Segment::read(flags, &mut read)?),
        SEGMENT_ACK => Message::SegmentAck(SegmentAck::read(flags, &mut read)?),
        PLAIN => Message::Plain(Plain { sequence: read.u32(), timestamp: Stamp(read.u32()) }),
        _ => Message::Feedback(Feedback {
            received_end: read.u32(),
            echo: Stamp(read.u32()),
            delay: Ticks(read.u32()),
            received: read.u32(),
            marked: read.u32(),
            receive_rate: read.number(f64::MAX).ok_or(DecodeError::ReceiveRate)?,
            loss_event_rate: read.number(1.0).ok_or(DecodeError::LossEventRate)?,
            subflow: read.subflow(named),
        }),
    };
    Ok((Datagram { connection, message }, payload))
}

/// Reads numbers from the front of a message whose length has been checked.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((first, rest)) = self.0.split_first_chunk() else {
            debug_assert!(false, "a message was read beyond its length");
            return [0; N];
        };
        self.0 = rest;
        *first
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }

    /// A number from 0 (not -0) to `max`.
    fn number(&mut self, max: f64) -> Option<f64> {
        let number = f64::from_be_bytes(self.take());
        (number.is_sign_positive() && number <= max).then_some(number)
    }

    fn subflow(&mut self, named: bool) -> Option<Subflow> {
        named.then(|| Subflow { place: self.u16(), opening: self.u16() })
    }

    fn reserved(&mut self) -> Result<(), DecodeError> {
        if self.u16() == 0 { Ok(()) } else { Err(DecodeError::Reserved) }
    }
}

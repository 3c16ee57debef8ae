//! TFRC over UDP, version 1: the header and feedback contents of RFC 5348 section 3.2, and the agreement that comes
//! before them. `docs/wire/tfrc.md` draws every message and states the rules of the agreement.
//!
//! RFC 5348 gives the contents of data and feedback packets and leaves the format to whoever uses it. This one is of
//! fixed size, in network byte order, and canonical: for each message there is one encoding, and [`decode`] refuses
//! every other (reserved bits set, a wrong length, a number out of its range), so that decoding and encoding again
//! gives the same bytes.

use crate::Stamp;
use paceline_units::Span;

/// The first two bytes of each datagram, "PT". Outside the ranges by which RFC 7983 tells STUN, DTLS and RTP apart.
pub const MAGIC: [u8; 2] = *b"PT";

/// The version that this file reads and writes.
pub const VERSION: u8 = 1;

/// Bytes of every message but feedback; what follows them in a data message is payload.
pub const SHORT_LEN: usize = 20;

/// Bytes of a feedback message.
pub const FEEDBACK_LEN: usize = 44;

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
}

/// A datagram without its payload.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Datagram {
    /// Whose it is.
    pub connection: ConnectionId,
    /// What it says.
    pub message: Message,
}

/// Why bytes are not a message of this format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// They do not begin with [`MAGIC`].
    NotOurs,
    /// A version that is not [`VERSION`].
    Version(u8),
    /// A type without a meaning.
    Type(u8),
    /// Another number of bytes than the type has (data: fewer than its header).
    Length(usize),
    /// A reserved flag or field is not zero.
    Reserved,
    /// A receive rate that is infinite, negative (zero's sign included) or no number.
    ReceiveRate,
    /// A loss event rate outside 0 to 1 (zero's sign included).
    LossEventRate,
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

const FLAG_ECN: u8 = 1;
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
        }
    }

    const fn flags(&self) -> u8 {
        match self {
            Message::Request(Request { ecn: Ecn::On, .. }) => FLAG_ECN,
            _ => 0,
        }
    }
}

impl Datagram {
    /// Appends the encoding; a data message's payload is the caller's to append after it. Rates are written as they
    /// are: out of their range (see [`Feedback`]) they make a message that [`decode`] refuses.
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
            }
            Message::Feedback(m) => {
                to.extend_from_slice(&m.received_end.to_be_bytes());
                to.extend_from_slice(&m.echo.0.to_be_bytes());
                to.extend_from_slice(&m.delay.0.to_be_bytes());
                to.extend_from_slice(&m.received.to_be_bytes());
                to.extend_from_slice(&m.marked.to_be_bytes());
                to.extend_from_slice(&m.receive_rate.to_be_bytes());
                to.extend_from_slice(&m.loss_event_rate.to_be_bytes());
            }
        }
    }
}

/// Reads a datagram; gives the message and, of a data message, its payload (of any other, nothing).
///
/// # Errors
/// [`DecodeError`], of which there is one for each way in which bytes can fail to be an encoding.
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
    let len = match kind {
        REQUEST | ACCEPT | REFUSE | CLOSE | DATA => SHORT_LEN,
        FEEDBACK => FEEDBACK_LEN,
        _ => return Err(DecodeError::Type(kind)),
    };
    let (header, payload) = bytes.split_at_checked(len).ok_or(DecodeError::Length(bytes.len()))?;
    if kind != DATA && !payload.is_empty() {
        return Err(DecodeError::Length(bytes.len()));
    }
    if flags & !(if kind == REQUEST { FLAG_ECN } else { 0 }) != 0 {
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
        DATA => Message::Data(Data { sequence: read.u32(), timestamp: Stamp(read.u32()), rtt: Ticks(read.u32()) }),
        _ => Message::Feedback(Feedback {
            received_end: read.u32(),
            echo: Stamp(read.u32()),
            delay: Ticks(read.u32()),
            received: read.u32(),
            marked: read.u32(),
            receive_rate: read.number(f64::MAX).ok_or(DecodeError::ReceiveRate)?,
            loss_event_rate: read.number(1.0).ok_or(DecodeError::LossEventRate)?,
        }),
    };
    Ok((Datagram { connection, message }, payload))
}

/// Takes numbers from the front of a message whose length has been checked.
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

    /// A number from 0 (not minus 0) to `most`.
    fn number(&mut self, most: f64) -> Option<f64> {
        let number = f64::from_be_bytes(self.take());
        (number.is_sign_positive() && number <= most).then_some(number)
    }

    fn reserved(&mut self) -> Result<(), DecodeError> {
        if self.u16() == 0 { Ok(()) } else { Err(DecodeError::Reserved) }
    }
}

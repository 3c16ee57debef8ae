//! QUIC's frames (RFC 9000 section 19, RFC 9221, draft-ietf-quic-ack-frequency) as the simulator carries them, and what each
//! takes on the wire.

use crate::{Block, Stamp};

/// A run of a stream's bytes (RFC 9000 section 19.8), and of which media frame they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamPiece {
    /// Where in the stream it begins.
    pub offset: u64,
    /// The stream.
    pub stream: u32,
    /// When what it is a part of was captured, by its sender's clock: of an application's frame, of which its header tells.
    pub captured: Stamp,
    /// Bytes.
    pub length: u16,
    /// The stream ends with it.
    pub fin: bool,
    /// It is of a key frame.
    pub key: bool,
    /// A frame ends with it.
    pub last: bool,
    /// Which of the connection's tracks the stream is of, as its first bytes say (MoQ's track alias).
    pub track: u8,
}

impl StreamPiece {
    /// One past its last byte.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset + self.length as u64
    }

    /// Bytes that the frame takes beside its data, if it is the `last` of its packet or not: then it says how long it is.
    #[inline]
    #[must_use]
    pub const fn header(stream: u32, offset: u64, last: bool) -> u16 {
        let offset = if offset == 0 { 0 } else { varint(offset) };
        1 + varint(stream as u64) + offset + if last { 0 } else { 2 }
    }
}

/// What is acknowledged by two ranges at most (RFC 9000 section 19.3); further ranges are the frame's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckRange {
    /// The greatest number that has come.
    pub largest: u32,
    /// All from here to it have.
    pub smallest: u32,
    /// From the arrival of the greatest to this, in microseconds.
    pub delay: u32,
    /// Packets that came with ECT(0) or ECT(1), and with CE; zero and zero: the receiver cannot tell.
    pub ect: u32,
    /// Packets that came with CE.
    pub ce: u32,
    /// The range before that, empty if there is none.
    pub older: Block,
}

/// Bytes of the acknowledgement's delay as 3 is its exponent (RFC 9000 section 18.2).
const ACK_DELAY_EXPONENT: u32 = 3;

impl AckRange {
    /// Bytes of an ACK frame of this and `more`, newest first.
    #[inline]
    #[must_use]
    pub fn size(&self, more: &[Block]) -> u16 {
        let delay = varint(u64::from(self.delay >> ACK_DELAY_EXPONENT));
        let mut len = 1 + varint(self.largest.into()) + delay + varint(u64::from(self.largest - self.smallest));
        len += if self.older.end == 0 { 1 } else { self.size_of_older(more) };
        if self.ect > 0 || self.ce > 0 {
            len += varint(self.ect.into()) + 1 + varint(self.ce.into());
        }
        len
    }

    fn size_of_older(&self, more: &[Block]) -> u16 {
        let mut len = varint(more.len() as u64 + 1);
        let mut lowest = self.smallest;
        for block in core::iter::once(&self.older).chain(more) {
            // a gap counts what lies between, less one (section 19.3.1)
            let gap = lowest.saturating_sub(block.end + 1);
            len += varint(gap.into()) + varint(u64::from(block.end - block.start - 1));
            lowest = block.start;
        }
        len
    }
}

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// Packets that have come: two ranges, and more of them, newest first.
    Ack(AckRange, Box<[Block]>),
    /// The receiver is to acknowledge after so many packets, or after so many microseconds (draft-ietf-quic-ack-frequency).
    AckFrequency {
        /// Packets that may wait for an acknowledgement.
        threshold: u16,
        /// How long they may wait, in microseconds.
        delay: u32,
    },
    /// The connection is over (section 19.19).
    Close {
        /// The error, 0 for none.
        code: u32,
    },
    /// A run of the handshake's bytes (section 19.6).
    Crypto {
        /// The number of the first packet of the connection that is being opened, which tells it from others of the flow: what the
        /// packet's connection identifiers are for.
        connection: u32,
        /// Where it begins.
        offset: u32,
        /// Bytes.
        length: u16,
    },
    /// The sender would send more, if the connection's limit let it (section 19.12).
    DataBlocked(u64),
    /// Data without a stream (RFC 9221): a part of what was captured then.
    Datagram {
        /// Bytes.
        length: u16,
        /// The number of its frame among the connection's.
        number: u32,
        /// Where in its frame it begins.
        offset: u32,
        /// When it was captured.
        captured: Stamp,
        /// It is the last of its frame.
        last: bool,
        /// Its frame is a key frame.
        key: bool,
        /// Which of the connection's tracks it is of.
        track: u8,
    },
    /// The packet is one of the first of a connection, of which the handshake says nothing that the other end has heard: in a header
    /// the connection identifier says so.
    Early {
        /// The connection's first number.
        connection: u32,
        /// It is a 0-RTT packet (section 17.2.3), whose header is longer than another's.
        zero_rtt: bool,
    },
    /// The handshake is confirmed (section 19.20).
    HandshakeDone,
    /// So many bytes may be sent on all streams together (section 19.9).
    MaxData(u64),
    /// So many bytes may be sent on a stream (section 19.10).
    MaxStreamData {
        /// The stream.
        stream: u32,
        /// Bytes from its beginning.
        limit: u64,
    },
    /// So many streams may be opened (section 19.11).
    MaxStreams(u32),
    /// So many bytes that mean nothing.
    Padding(u16),
    /// An answer is wanted (section 19.2).
    Ping,
    /// The rest of a stream will not come (section 19.4).
    ResetStream {
        /// The stream.
        stream: u32,
        /// How many of its bytes have been sent.
        size: u64,
    },
    /// Data of a stream.
    Stream(StreamPiece),
    /// A stream would send more, if its limit let it (section 19.13).
    StreamDataBlocked {
        /// The stream.
        stream: u32,
        /// Its limit.
        limit: u64,
    },
    /// More streams would be opened than may be (section 19.14).
    StreamsBlocked(u32),
}

impl Frame {
    /// Bytes that it takes in a packet; a stream's or a datagram's as one that says how long it is.
    #[must_use]
    pub fn size(&self) -> u16 {
        match self {
            Frame::Ack(ack, more) => ack.size(more),
            Frame::AckFrequency { threshold, delay } => 2 + 2 + varint((*threshold).into()) + varint((*delay).into()),
            Frame::Close { code } => 1 + varint((*code).into()) + 2,
            Frame::Crypto { offset, length, .. } => 1 + varint((*offset).into()) + varint((*length).into()) + length,
            Frame::DataBlocked(limit) | Frame::MaxData(limit) => 1 + varint(*limit),
            Frame::Datagram { length, .. } => 1 + varint((*length).into()) + length,
            Frame::Early { zero_rtt, .. } => {
                if *zero_rtt {
                    LONG_HEADER - short_header(0x7f)
                } else {
                    0
                }
            }
            Frame::HandshakeDone | Frame::Ping => 1,
            Frame::MaxStreamData { stream, limit } | Frame::StreamDataBlocked { stream, limit } => {
                1 + varint((*stream).into()) + varint(*limit)
            }
            Frame::MaxStreams(limit) | Frame::StreamsBlocked(limit) => 1 + varint((*limit).into()),
            Frame::Padding(length) => *length,
            Frame::ResetStream { stream, size } => 1 + varint((*stream).into()) + 1 + varint(*size),
            Frame::Stream(piece) => StreamPiece::header(piece.stream, piece.offset, false) + piece.length,
        }
    }

    /// Whether it brings data of the application.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        match self {
            Frame::Stream(piece) => piece.length > 0,
            Frame::Datagram { .. } => true,
            _ => false,
        }
    }

    /// Whether the peer is to acknowledge it (RFC 9002 section 2).
    #[must_use]
    pub const fn elicits_ack(&self) -> bool {
        !matches!(self, Frame::Ack(..) | Frame::Close { .. } | Frame::Early { .. } | Frame::Padding(_))
    }
}

/// Bytes of a number (RFC 9000 section 16).
#[inline]
#[must_use]
pub const fn varint(value: u64) -> u16 {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// The least number that takes more bytes than this one: two bits of them say how many they are.
#[must_use]
pub const fn varint_end(value: u64) -> u64 {
    1 << (8 * varint(value) - 2)
}

/// Bytes of a connection's identifier, either way: what most of today's servers take (quinn, picoquic).
pub const CONNECTION_ID: u16 = 8;
/// Bytes of the tag that authenticates a packet (RFC 9001 section 5.3).
pub const TAG: u16 = 16;
/// Bytes of a datagram that every path of QUIC takes, up to which one with an Initial packet is filled (RFC 9000 section 14).
pub const INITIAL_DATAGRAM: u16 = 1200;

/// Bytes of a packet of the number space in use beside its frames (RFC 9000 section 17.3.1), with its number in as few bytes as tell
/// it from `unacknowledged` others (appendix A.2).
#[inline]
#[must_use]
pub const fn short_header(unacknowledged: u32) -> u16 {
    let number = match unacknowledged {
        0..0x80 => 1,
        0x80..0x8000 => 2,
        0x8000..0x80_0000 => 3,
        _ => 4,
    };
    1 + CONNECTION_ID + number + TAG
}

/// The same of a packet of the handshake (section 17.2): version, both identifiers, the length, no token.
pub const LONG_HEADER: u16 = 1 + 4 + 1 + CONNECTION_ID + 1 + CONNECTION_ID + 1 + 2 + 2 + TAG;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000, table 4 and appendix A.1.
    #[test]
    fn numbers_take_one_to_eight_bytes() {
        let of = [63, 64, 16_383, 16_384, 1_073_741_823, 1_073_741_824].map(varint);
        assert_eq!(of, [1, 2, 2, 4, 4, 8]);
        assert_eq!([15_293, 494_878_333, 151_288_809_941_952_652, 37].map(varint), [2, 4, 8, 1]);
    }

    /// Appendix A.2: 29,519 packets back take 2 bytes, 65,000 take 3.
    #[test]
    fn packet_numbers_are_as_short_as_what_is_unacknowledged_allows() {
        assert_eq!(short_header(1) - short_header(0), 0);
        assert_eq!(short_header(29_519) - short_header(0), 1);
        assert_eq!(short_header(65_000) - short_header(0), 2);
    }

    #[test]
    fn frames_take_what_the_rfc_says() {
        let piece = StreamPiece {
            offset: 0,
            stream: 2,
            captured: Stamp(0),
            length: 100,
            fin: true,
            key: false,
            last: false,
            track: 0,
        };
        assert_eq!(Frame::Stream(piece).size(), 1 + 1 + 2 + 100);
        assert_eq!(StreamPiece::header(2, 0, true), 2);
        assert_eq!(StreamPiece::header(100, 20_000, true), 1 + 2 + 4);
        let ack = AckRange { largest: 100, smallest: 90, delay: 25_000, ..AckRange::default() };
        assert_eq!(ack.size(&[]), 1 + 2 + 2 + 1 + 1);
        let holes = AckRange { older: Block { start: 80, end: 85 }, ..ack };
        assert_eq!((holes.size(&[]), holes.size(&[Block { start: 1, end: 3 }])), (7 + 2, 7 + 2 + 3));
        assert_eq!(AckRange { ce: 70, ect: 30, ..ack }.size(&[]), 7 + 1 + 1 + 2);
        assert!(!Frame::Ack(ack, Box::new([])).elicits_ack() && Frame::Ping.elicits_ack());
        assert_eq!(size_of::<StreamPiece>(), 24);
    }
}

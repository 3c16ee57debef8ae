//! QUIC's frames (RFC 9000 section 19, RFC 9221, draft-ietf-quic-ack-frequency) as the simulator carries them, and
//! their size on the wire.

use crate::{Block, Stamp};

/// A range of a stream's bytes (RFC 9000 section 19.8), and the media frame that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamPiece {
    /// The offset of its first byte in the stream.
    pub offset: u64,
    /// The stream.
    pub stream: u32,
    /// When its media frame was captured, on the sender's clock; an application's frame header would carry it.
    pub captured: Stamp,
    /// The number of bytes.
    pub length: u16,
    /// Whether the stream ends with it.
    pub fin: bool,
    /// Whether it is part of a key frame.
    pub key: bool,
    /// Whether a media frame ends with it.
    pub last: bool,
    /// The stream's track in the connection, as its first bytes would say (MoQ's track alias).
    pub track: u8,
}

impl StreamPiece {
    /// One past its last byte.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.offset + self.length as u64
    }

    /// Bytes of the frame's header. A frame that is not the `last` of its packet includes its length.
    #[inline]
    #[must_use]
    pub const fn header(stream: u32, offset: u64, last: bool) -> u16 {
        let offset = if offset == 0 { 0 } else { varint(offset) };
        1 + varint(stream as u64) + offset + if last { 0 } else { 2 }
    }
}

/// An acknowledgement of at most two ranges (RFC 9000 section 19.3); [`Frame::Ack`] has more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckRange {
    /// The largest packet number received.
    pub largest: u32,
    /// The first packet number of the range that ends at `largest`.
    pub smallest: u32,
    /// From the arrival of `largest` to this acknowledgement, in microseconds.
    pub delay: u32,
    /// Packets received with ECT(0) or ECT(1). If this and `ce` are zero, the receiver cannot see ECN.
    pub ect: u32,
    /// Packets received with CE.
    pub ce: u32,
    /// The next older range, empty if there is none.
    pub older: Block,
}

/// The exponent of the ACK delay field (RFC 9000 section 18.2).
const ACK_DELAY_EXPONENT: u32 = 3;

impl AckRange {
    /// Bytes of an ACK frame with these ranges and `more`, newest first.
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
            // the gap field is the number of packets in the gap, less one (section 19.3.1)
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
    /// Received packets: two ranges, and more of them, newest first.
    Ack(AckRange, Box<[Block]>),
    /// Asks the receiver to acknowledge after this many packets, or this many microseconds
    /// (draft-ietf-quic-ack-frequency).
    AckFrequency {
        /// Packets that may wait for an acknowledgement.
        threshold: u16,
        /// How long they may wait, in microseconds.
        delay: u32,
    },
    /// Closes the connection (section 19.19).
    Close {
        /// The error code, 0 for none.
        code: u32,
    },
    /// A range of the handshake's bytes (section 19.6).
    Crypto {
        /// The first packet number of the connection that is being opened. It distinguishes the flow's connections, in
        /// place of connection IDs.
        connection: u32,
        /// The offset of its first byte.
        offset: u32,
        /// The number of bytes.
        length: u16,
    },
    /// The sender has more data, but is at the connection's flow control limit (section 19.12).
    DataBlocked(u64),
    /// Data without a stream (RFC 9221): part of a captured frame.
    Datagram {
        /// The number of bytes.
        length: u16,
        /// The number of its frame in the connection.
        number: u32,
        /// Its offset in its frame.
        offset: u32,
        /// When its frame was captured.
        captured: Stamp,
        /// Whether it is the last of its frame.
        last: bool,
        /// Whether its frame is a key frame.
        key: bool,
        /// Its track in the connection.
        track: u8,
    },
    /// Marks one of the first packets of a connection, for which the other end has no handshake data yet. On the wire,
    /// the header's connection ID conveys this.
    Early {
        /// The connection's first packet number.
        connection: u32,
        /// Whether it is a 0-RTT packet (section 17.2.3), whose header is longer.
        zero_rtt: bool,
    },
    /// The handshake is confirmed (section 19.20).
    HandshakeDone,
    /// The limit in bytes of all streams together (section 19.9).
    MaxData(u64),
    /// The limit in bytes of a stream (section 19.10).
    MaxStreamData {
        /// The stream.
        stream: u32,
        /// In bytes from the stream's beginning.
        limit: u64,
    },
    /// The maximum number of streams (section 19.11).
    MaxStreams(u32),
    /// Padding of this many bytes.
    Padding(u16),
    /// Requests an acknowledgement (section 19.2).
    Ping,
    /// Abandons the rest of a stream (section 19.4).
    ResetStream {
        /// The stream.
        stream: u32,
        /// The stream's final size in bytes.
        size: u64,
    },
    /// Data of a stream.
    Stream(StreamPiece),
    /// A stream has more data, but is at its flow control limit (section 19.13).
    StreamDataBlocked {
        /// The stream.
        stream: u32,
        /// Its limit.
        limit: u64,
    },
    /// More streams are needed than the limit allows (section 19.14).
    StreamsBlocked(u32),
}

impl Frame {
    /// Bytes that it takes in a packet; a stream's or a datagram's frame includes its length field.
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

    /// Whether it carries application data.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        match self {
            Frame::Stream(piece) => piece.length > 0,
            Frame::Datagram { .. } => true,
            _ => false,
        }
    }

    /// Whether it is ack-eliciting (RFC 9002 section 2).
    #[must_use]
    pub const fn elicits_ack(&self) -> bool {
        !matches!(self, Frame::Ack(..) | Frame::Close { .. } | Frame::Early { .. } | Frame::Padding(_))
    }
}

/// Bytes of a variable-length integer (RFC 9000 section 16).
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

/// The lowest number that takes more bytes than this one; two bits of the encoding give its length.
#[must_use]
pub const fn varint_end(value: u64) -> u64 {
    1 << (8 * varint(value) - 2)
}

/// Bytes of a connection ID, in both directions: the length that most current servers use (quinn, picoquic).
pub const CONNECTION_ID: u16 = 8;
/// Bytes of a packet's authentication tag (RFC 9001 section 5.3).
pub const TAG: u16 = 16;
/// The datagram size that every QUIC path supports, and to which datagrams with an Initial packet are padded (RFC 9000
/// section 14).
pub const INITIAL_DATAGRAM: u16 = 1200;

/// Bytes of a 1-RTT packet beside its frames (RFC 9000 section 17.3.1). Its packet number is as short as
/// `unacknowledged` earlier packets allow (appendix A.2).
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

/// Bytes of a handshake packet beside its frames (section 17.2): version, both connection IDs, the length, no token.
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

    /// Appendix A.2: with 29,519 packets unacknowledged a number takes 2 bytes, with 65,000 it takes 3.
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

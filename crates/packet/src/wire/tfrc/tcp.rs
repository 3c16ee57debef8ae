//! The messages of TCP's machines in UDP, and plain numbered datagrams; `docs/wire/tcp.md` shows their formats.

use super::{DecodeError, Reader};
use crate::{Block, Flags, Stamp, TcpOptions};
use core::num::NonZeroU32;

/// Bytes of a segment's header, and of a plain datagram's; the payload follows.
pub const SEGMENT_LEN: usize = 16;

/// Bytes of an acknowledgement of segments without a window and without blocks.
pub const SEGMENT_ACK_LEN: usize = 16;

/// Additional bytes of a window.
pub const WINDOW_LEN: usize = 4;

/// Additional bytes per block.
pub const BLOCK_LEN: usize = 8;

pub(super) const FLAG_SYN: u8 = 0x04;
const FLAG_PUSH: u8 = 0x08;
const FLAG_CWR: u8 = 0x10;
const FLAG_ECE: u8 = 0x08;
const FLAG_WINDOW: u8 = 0x10;
/// With `FLAG_CWR`: the ECN request of a SYN. With accurate ECN, in other segments: first how the SYN/ACK arrived, then
/// a count (RFC 9768).
const FLAG_SEGMENT_ECE: u8 = 0x20;
const FLAG_SEGMENT_AE: u8 = 0x40;
/// The upper bits of accurate ECN's count in an acknowledgement (RFC 9768); `FLAG_ECE` is the lowest.
const FLAG_ACK_CWR: u8 = 0x20;
const FLAG_AE: u8 = 0x40;
/// The number of blocks in an acknowledgement.
const BLOCKS: u8 = 0x03;

/// The valid flags of a segment.
pub(super) const SEGMENT_FLAGS: u8 = FLAG_SYN | FLAG_PUSH | FLAG_CWR | FLAG_SEGMENT_ECE | FLAG_SEGMENT_AE;
/// The valid flags of an acknowledgement.
pub(super) const ACK_FLAGS: u8 = BLOCKS | FLAG_SYN | FLAG_ECE | FLAG_WINDOW | FLAG_ACK_CWR | FLAG_AE;

/// A header bit and its flag on the wire.
type Bit = (Flags, u8);
const SEGMENT_BITS: [Bit; 5] = [
    (Flags::SYN, FLAG_SYN),
    (Flags::PUSH, FLAG_PUSH),
    (Flags::CWR, FLAG_CWR),
    (Flags::ECE, FLAG_SEGMENT_ECE),
    (Flags::AE, FLAG_SEGMENT_AE),
];
const ACK_BITS: [Bit; 4] =
    [(Flags::SYN, FLAG_SYN), (Flags::ECE, FLAG_ECE), (Flags::CWR, FLAG_ACK_CWR), (Flags::AE, FLAG_AE)];

fn to_wire(flags: Flags, bits: &[Bit]) -> u8 {
    bits.iter().filter(|(bit, _)| flags.has(*bit)).fold(0, |wire, (_, flag)| wire | flag)
}

fn from_wire(wire: u8, bits: &[Bit]) -> Flags {
    bits.iter().filter(|(_, flag)| wire & flag != 0).fold(Flags::NONE, |flags, (bit, _)| flags.with(*bit))
}

/// The header of a segment. The payload follows; a bare SYN has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// The segment's number, from 0 to 2^32 - 2: segments are counted, not bytes.
    pub sequence: u32,
    /// The sender's clock when it sent the segment.
    pub timestamp: Stamp,
    /// Any of SYN, PUSH, CWR, ECE and AE; no others are sent.
    pub flags: Flags,
}

impl Segment {
    pub(super) fn wire_flags(&self) -> u8 {
        to_wire(self.flags, &SEGMENT_BITS)
    }

    pub(super) fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.sequence.to_be_bytes());
        to.extend_from_slice(&self.timestamp.0.to_be_bytes());
    }

    pub(super) fn read(flags: u8, read: &mut Reader<'_>) -> Result<Segment, DecodeError> {
        let (sequence, timestamp) = (read.u32(), Stamp(read.u32()));
        if sequence == u32::MAX {
            return Err(DecodeError::Sequence);
        }
        Ok(Segment { sequence, timestamp, flags: from_wire(flags, &SEGMENT_BITS) })
    }
}

/// An acknowledgement of segments (RFC 9293 section 3.4; blocks: RFC 2018, RFC 2883).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentAck {
    /// The number of the next segment expected.
    pub next: u32,
    /// The timestamp to echo under RFC 7323 section 4.3.
    pub echo: Stamp,
    /// Any of SYN, ECE, CWR and AE; no others are sent.
    pub flags: Flags,
    /// SACK blocks, used ones first, each with `start < end`; the window, if it differs from the default.
    pub options: TcpOptions,
}

impl SegmentAck {
    pub(super) fn wire_flags(&self) -> u8 {
        let window = if self.options.window.is_some() { FLAG_WINDOW } else { 0 };
        to_wire(self.flags, &ACK_BITS) | window | self.options.blocks().count() as u8 & BLOCKS
    }

    /// The length that these flags imply.
    pub(super) const fn len(flags: u8) -> usize {
        let window = if flags & FLAG_WINDOW != 0 { WINDOW_LEN } else { 0 };
        SEGMENT_ACK_LEN + window + BLOCK_LEN * (flags & BLOCKS) as usize
    }

    pub(super) fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.next.to_be_bytes());
        to.extend_from_slice(&self.echo.0.to_be_bytes());
        if let Some(window) = self.options.window {
            to.extend_from_slice(&window.get().to_be_bytes());
        }
        for block in self.options.blocks() {
            to.extend_from_slice(&block.start.to_be_bytes());
            to.extend_from_slice(&block.end.to_be_bytes());
        }
    }

    pub(super) fn read(flags: u8, read: &mut Reader<'_>) -> Result<SegmentAck, DecodeError> {
        let (next, echo) = (read.u32(), Stamp(read.u32()));
        let mut options = TcpOptions::NONE;
        if flags & FLAG_WINDOW != 0 {
            options.window = Some(NonZeroU32::new(read.u32()).ok_or(DecodeError::Window)?);
        }
        for block in options.sack.iter_mut().take((flags & BLOCKS).into()) {
            *block = Block { start: read.u32(), end: read.u32() };
            if block.start >= block.end {
                return Err(DecodeError::Block);
            }
        }
        Ok(SegmentAck { next, echo, flags: from_wire(flags, &ACK_BITS), options })
    }
}

/// The header of a datagram without any acknowledgement. The payload follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain {
    /// Incremented with each datagram, modulo 2^32.
    pub sequence: u32,
    /// The sender's clock when it sent the datagram.
    pub timestamp: Stamp,
}

//! A stream on its sending side.

use super::super::ranges::Ranges;
use paceline_packet::Stamp;
use paceline_packet::quic::{StreamPiece, varint_end};
use paceline_units::Time;
use std::collections::VecDeque;

/// The priority and track of a new stream.
#[derive(Clone, Copy, Debug)]
pub(in crate::quic) struct Kind {
    /// Streams of lower rank are served first.
    pub(in crate::quic) rank: u8,
    /// The connection's track that it belongs to: tracks of one rank take turns; streams of one track are served oldest
    /// first.
    pub(in crate::quic) track: u8,
}

/// A frame of the application within a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// One past its last byte.
    pub(super) end: u64,
    pub(super) captured: Stamp,
    pub(super) key: bool,
    /// The stream is reset if the frame is not acknowledged by then.
    pub(super) due: Time,
    /// It was written completely.
    pub(super) whole: bool,
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) kind: Kind,
    /// Bytes written; the next byte never sent; MAX_STREAM_DATA.
    pub(super) written: u64,
    pub(super) next: u64,
    pub(super) limit: u64,
    /// The writer has finished; the FIN was sent; the FIN was acknowledged.
    pub(super) finished: bool,
    pub(super) fin_sent: bool,
    pub(super) fin_acked: bool,
    /// Acknowledged bytes, and lost bytes to retransmit.
    pub(super) acked: Ranges,
    pub(super) lost: Ranges,
    /// Its unacknowledged frames, if it consists of frames.
    pub(super) marks: VecDeque<Mark>,
    /// It was reset; the reset, or all data, is acknowledged.
    pub(super) reset: bool,
    pub(super) done: bool,
    /// Frame header bytes of new data at the end of a packet; valid while `next` is below the second number.
    pub(super) header: (u16, u64),
    /// Its key among the streams with data to send.
    pub(super) listed: Option<Key>,
}

/// The order of streams: by rank, retransmissions before new data, by track, by age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    pub(super) rank: u8,
    pub(super) new: bool,
    pub(super) track: u8,
    pub(super) place: u32,
}

/// A stream that was reset: at its deadline, or because its data is withdrawn or dropped.
#[derive(Clone, Copy, Debug)]
pub(in crate::quic) struct Expired {
    pub(in crate::quic) id: u32,
    /// Bytes sent, which is its final size.
    pub(in crate::quic) size: u64,
    pub(in crate::quic) track: u8,
    /// Number of its unacknowledged frames.
    pub(in crate::quic) frames: u64,
}

impl Stream {
    /// Whether it has anything to send within its own limit.
    pub(super) fn has_data(&self) -> bool {
        !self.reset
            && !self.done
            && (!self.lost.is_empty() || self.next < self.written.min(self.limit) || self.owes_fin())
    }

    /// Frame header bytes of new data at the end of a packet.
    #[inline(always)]
    pub(super) fn header(&mut self) -> u16 {
        if self.next >= self.header.1 {
            self.work_out_header();
        }
        self.header.0
    }

    #[cold]
    #[inline(never)]
    fn work_out_header(&mut self) {
        // an offset of zero is omitted (RFC 9000 section 19.8)
        let longer = if self.next == 0 { 1 } else { varint_end(self.next) };
        self.header = (StreamPiece::header(self.id, self.next, true), longer);
    }

    pub(super) fn owes_fin(&self) -> bool {
        self.finished && !self.fin_sent && self.next == self.written
    }

    /// When it is reset: the deadline of its oldest unacknowledged frame.
    pub(super) fn due(&self) -> Time {
        let live = !self.reset && !self.done;
        self.marks.front().filter(|_| live).map_or(Time::NEVER, |mark| mark.due)
    }

    pub(super) fn is_acked(&self) -> bool {
        self.finished && self.fin_acked && self.acked.prefix() == self.written
    }
}

//! One of the streams that an end sends.

use super::super::ranges::Ranges;
use paceline_packet::Stamp;
use paceline_packet::quic::{StreamPiece, varint_end};
use paceline_units::Time;
use std::collections::VecDeque;

/// What a new stream is.
#[derive(Clone, Copy, Debug)]
pub(in crate::quic) struct Kind {
    /// Streams of a lower number are served first.
    pub(in crate::quic) rank: u8,
    /// Which of the connection's tracks it is of: those of one rank take turns, the streams of one go oldest first.
    pub(in crate::quic) track: u8,
}

/// A frame of the application within a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// One past its last byte.
    pub(super) end: u64,
    pub(super) captured: Stamp,
    pub(super) key: bool,
    /// Its stream is reset if it is not acknowledged by then.
    pub(super) due: Time,
    /// It is written to its end.
    pub(super) whole: bool,
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) kind: Kind,
    /// Bytes written so far; the next that was never sent; what the other end lets be sent.
    pub(super) written: u64,
    pub(super) next: u64,
    pub(super) limit: u64,
    /// Nothing will be written any more; that has been said; that has been acknowledged.
    pub(super) finished: bool,
    pub(super) fin_sent: bool,
    pub(super) fin_acked: bool,
    /// Bytes that were acknowledged, and those of the others that are to be sent again.
    pub(super) acked: Ranges,
    pub(super) lost: Ranges,
    /// Its frames that are not acknowledged, if it consists of such.
    pub(super) marks: VecDeque<Mark>,
    /// It was reset, with so many bytes sent; that has been acknowledged.
    pub(super) reset: bool,
    pub(super) done: bool,
    /// Bytes of the header of what is new and the last of its packet, as long as `next` is below this.
    pub(super) header: (u16, u64),
    /// Where it stands among those that have something to send.
    pub(super) listed: Option<Key>,
}

/// Where a stream stands: by its rank, what is to be sent again before what is new, by its track, by its age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    pub(super) rank: u8,
    pub(super) new: bool,
    pub(super) track: u8,
    pub(super) place: u32,
}

/// A stream that was reset: its deadline has come, or nobody is to have it.
#[derive(Clone, Copy, Debug)]
pub(in crate::quic) struct Expired {
    pub(in crate::quic) id: u32,
    /// Bytes of it that were sent.
    pub(in crate::quic) size: u64,
    pub(in crate::quic) track: u8,
    /// Its frames that were not acknowledged.
    pub(in crate::quic) frames: u64,
}

impl Stream {
    /// Whether anything of it could leave, as far as its own limit goes.
    pub(super) fn has_data(&self) -> bool {
        !self.reset
            && !self.done
            && (!self.lost.is_empty() || self.next < self.written.min(self.limit) || self.owes_fin())
    }

    /// Bytes of the header of what is new and the last of its packet.
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
        // an offset of zero is left out (RFC 9000 section 19.8)
        let longer = if self.next == 0 { 1 } else { varint_end(self.next) };
        self.header = (StreamPiece::header(self.id, self.next, true), longer);
    }

    pub(super) fn owes_fin(&self) -> bool {
        self.finished && !self.fin_sent && self.next == self.written
    }

    /// When it is reset: its oldest frame that is not acknowledged is too old then.
    pub(super) fn due(&self) -> Time {
        let live = !self.reset && !self.done;
        self.marks.front().filter(|_| live).map_or(Time::NEVER, |mark| mark.due)
    }

    pub(super) fn is_acked(&self) -> bool {
        self.finished && self.fin_acked && self.acked.prefix() == self.written
    }
}

//! Received data in order and in pieces, for a relay that forwards it at once.

use super::incoming::FrameEnd;
use paceline_packet::Stamp;
use paceline_packet::quic::StreamPiece;
use std::collections::BTreeMap;

/// A piece of received data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RelayedData {
    /// The connection's track that it belongs to.
    pub track: u8,
    /// The number of its stream on the connection; `None` for a frame in datagrams, which arrives as a whole.
    pub stream: Option<u32>,
    /// The data or event.
    pub what: RelayedDataKind,
}

/// Data or an event of a stream, or a frame in datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RelayedDataKind {
    /// Bytes of one frame, in order.
    Bytes {
        /// Their number.
        bytes: u64,
        /// When they were captured, by the sender's clock.
        captured: Stamp,
        /// They belong to a key frame.
        key: bool,
        /// They are the first of their frame.
        first: bool,
        /// They are the first of their stream.
        opens: bool,
        /// They are the last of their frame.
        last: bool,
    },
    /// The stream has ended.
    End,
    /// The rest of the stream will not arrive.
    Reset,
}

/// Tells to which frames the bytes of a stream belong that were not yet passed on.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// By the offset of each piece: its capture time, and whether it belongs to a key frame. No piece spans two frames.
    of: BTreeMap<u64, (Stamp, bool)>,
}

impl Heads {
    /// Records a piece. Everything up to `given` of its stream was passed on.
    pub(super) fn note(&mut self, piece: &StreamPiece, given: u64) {
        if piece.end() > given {
            self.of.insert(piece.offset, (piece.captured, piece.key));
        }
    }

    /// Passes on the bytes in `range`, which are now in order. The stream's current frame began at `begin`; `ends` has
    /// the ends of frames in ascending order.
    pub(super) fn push(
        &mut self,
        range: core::ops::Range<u64>,
        mut begin: u64,
        ends: &[FrameEnd],
        (track, stream): (u8, u32),
        portions: &mut Vec<RelayedData>,
    ) {
        let mut at = range.start;
        while at < range.end {
            let end = ends.iter().map(|frame| frame.end).find(|end| *end > at).filter(|end| *end <= range.end);
            let to = end.unwrap_or(range.end);
            let (captured, key) = self.of.range(..=at).next_back().map_or((Stamp(0), false), |(_, of)| *of);
            let (first, opens, last) = (at == begin, at == 0, end.is_some());
            let what = RelayedDataKind::Bytes { bytes: to - at, captured, key, first, opens, last };
            portions.push(RelayedData { track, stream: Some(stream), what });
            if last {
                begin = to;
            }
            at = to;
        }
        self.of = self.of.split_off(&range.end);
    }
}

#[cfg(test)]
mod tests {
    use super::super::incoming::Incoming;
    use super::*;

    fn piece(offset: u64, length: u16, captured: u32, last: bool, fin: bool) -> StreamPiece {
        let captured = Stamp(captured);
        StreamPiece { offset, stream: 6, captured, length, fin, key: false, last, track: 3 }
    }

    /// The data passed on: bytes, capture time, whether a frame begins and ends with them; `None` for the end of the
    /// stream.
    fn taken(incoming: &mut Incoming) -> Vec<Option<(u64, u32, bool, bool)>> {
        let portions = core::mem::take(incoming.portions.as_mut().unwrap());
        let of = |portion: RelayedData| {
            assert_eq!((portion.track, portion.stream), (3, Some(1)));
            match portion.what {
                RelayedDataKind::Bytes { bytes, captured, first, last, .. } => Some((bytes, captured.0, first, last)),
                RelayedDataKind::End | RelayedDataKind::Reset => None,
            }
        };
        portions.into_iter().map(of).collect()
    }

    /// Two frames of a stream, whose first piece arrives late, after a third frame has begun: each byte is passed on
    /// once, in order, with its own frame's capture time.
    #[test]
    fn bytes_are_told_of_in_order_with_their_frames() {
        let mut incoming = Incoming::new(1 << 30, 1 << 30, 10);
        incoming.portions = Some(Vec::new());
        let grants = &mut Vec::new();
        incoming.piece(&piece(0, 100, 7, false, false), grants).unwrap();
        assert_eq!(taken(&mut incoming), [Some((100, 7, true, false))]);
        for (offset, length, captured, last) in [(150, 50, 7, true), (200, 80, 8, true), (280, 20, 9, false)] {
            incoming.piece(&piece(offset, length, captured, last, false), grants).unwrap();
        }
        assert_eq!(taken(&mut incoming), [], "a hole before them");
        incoming.piece(&piece(100, 50, 7, false, false), grants).unwrap();
        let whole = [Some((100, 7, false, true)), Some((80, 8, true, true)), Some((20, 9, true, false))];
        assert_eq!(taken(&mut incoming), whole);
        incoming.piece(&piece(100, 50, 7, false, false), grants).unwrap();
        assert_eq!(taken(&mut incoming), [], "a copy");
        incoming.piece(&piece(300, 30, 9, true, true), grants).unwrap();
        assert_eq!(taken(&mut incoming), [Some((30, 9, false, true)), None]);
    }

    /// A reset stream is reported, and so is a stream whose connection has ended.
    #[test]
    fn what_will_not_come_is_told_of() {
        for over in [false, true] {
            let mut incoming = Incoming::new(1 << 30, 1 << 30, 10);
            incoming.portions = Some(Vec::new());
            incoming.piece(&piece(0, 100, 7, false, false), &mut Vec::new()).unwrap();
            if over {
                incoming.portions = incoming.end();
            } else {
                incoming.reset(6, 400, &mut Vec::new()).unwrap();
            }
            let portions = incoming.portions.unwrap();
            assert_eq!(portions.len(), 2);
            assert_eq!(portions[1], RelayedData { track: 3, stream: Some(1), what: RelayedDataKind::Reset });
        }
    }
}

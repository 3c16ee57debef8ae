//! What comes of a connection bit by bit, in order, for who sends it on at once.

use super::incoming::FrameEnd;
use paceline_packet::Stamp;
use paceline_packet::quic::StreamPiece;
use std::collections::BTreeMap;

/// What has come of a connection's tracks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Portion {
    /// Which of the connection's tracks it is of.
    pub track: u8,
    /// The number of its stream among the connection's; of a frame in datagrams, which comes whole, `None`.
    pub stream: Option<u32>,
    /// What has come.
    pub what: PortionKind,
}

/// What has come of a stream, or a datagram's frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortionKind {
    /// Bytes of one frame, which follow what came before.
    Bytes {
        /// How many.
        bytes: u64,
        /// When they were captured, by their sender's clock.
        captured: Stamp,
        /// They are of a key frame.
        key: bool,
        /// Their frame begins with them; so does their stream.
        first: bool,
        /// The latter.
        opens: bool,
        /// Their frame ends with them.
        last: bool,
    },
    /// The stream has ended: nothing follows.
    End,
    /// What is missing of the stream will not come.
    Reset,
}

/// Of which frames a stream's bytes are, as far as they are not told of.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// By where pieces begin, when they were captured and whether they are of a key frame. No piece is of two frames.
    of: BTreeMap<u64, (Stamp, bool)>,
}

impl Heads {
    /// A piece has come, of whose stream everything up to `given` is told of.
    pub(super) fn note(&mut self, piece: &StreamPiece, given: u64) {
        if piece.end() > given {
            self.of.insert(piece.offset, (piece.captured, piece.key));
        }
    }

    /// Tells of the bytes in `range`, which are in order now; their stream's frame that is under way began at `begin`, and others end
    /// with `ends`, in ascending order.
    pub(super) fn push(
        &mut self,
        range: core::ops::Range<u64>,
        mut begin: u64,
        ends: &[FrameEnd],
        (track, stream): (u8, u32),
        portions: &mut Vec<Portion>,
    ) {
        let mut at = range.start;
        while at < range.end {
            let end = ends.iter().map(|frame| frame.end).find(|end| *end > at).filter(|end| *end <= range.end);
            let to = end.unwrap_or(range.end);
            let (captured, key) = self.of.range(..=at).next_back().map_or((Stamp(0), false), |(_, of)| *of);
            let (first, opens, last) = (at == begin, at == 0, end.is_some());
            let what = PortionKind::Bytes { bytes: to - at, captured, key, first, opens, last };
            portions.push(Portion { track, stream: Some(stream), what });
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

    /// What was sent on: bytes, capture, whether a frame begins and ends with them; `None` for the end of the stream.
    fn taken(incoming: &mut Incoming) -> Vec<Option<(u64, u32, bool, bool)>> {
        let portions = core::mem::take(incoming.portions.as_mut().unwrap());
        let of = |portion: Portion| {
            assert_eq!((portion.track, portion.stream), (3, Some(1)));
            match portion.what {
                PortionKind::Bytes { bytes, captured, first, last, .. } => Some((bytes, captured.0, first, last)),
                PortionKind::End | PortionKind::Reset => None,
            }
        };
        portions.into_iter().map(of).collect()
    }

    /// Two frames of a stream, of which the first piece comes late and a third frame has begun: each byte is told of once, in order, with
    /// its own frame's capture.
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

    /// A stream that was reset says so, and so does one whose connection is over.
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
            assert_eq!(portions[1], Portion { track: 3, stream: Some(1), what: PortionKind::Reset });
        }
    }
}

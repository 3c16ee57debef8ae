//! The receiving side of streams (RFC 9000 section 3.2): data received in order, and flow control.

use super::numbered::Numbered;
use super::portions::{Heads, RelayedData, RelayedDataKind};
use super::ranges::Ranges;
use paceline_packet::Stamp;
use paceline_packet::quic::{Frame, StreamPiece};

/// A stream.
#[derive(Debug, Default)]
struct Stream {
    /// Received ranges; one past the highest byte; the final size, once known.
    have: Ranges,
    end: u64,
    size: Option<u64>,
    /// Bytes delivered to the application.
    given: u64,
    /// MAX_STREAM_DATA.
    limit: u64,
    /// The ends of frames that are not complete, and the end of the last complete one.
    marks: Vec<FrameEnd>,
    complete_to: u64,
    done: bool,
    track: u8,
    /// The starts of frames in data not yet delivered, if it is relayed.
    heads: Heads,
}

/// The end of a frame within a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameEnd {
    pub(super) end: u64,
    captured: Stamp,
    key: bool,
}

/// A frame of the application that has arrived completely, with everything before it in its stream; or a stream that
/// was reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Object {
    /// When it was captured, by the sender's clock.
    pub captured: Stamp,
    /// The number of its stream on the connection, or of the datagram.
    pub number: u32,
    /// Its size in bytes.
    pub size: u64,
    /// It is a key frame.
    pub key: bool,
    /// The stream was reset: the missing part will not arrive.
    pub reset: bool,
    /// The track of the connection that it belongs to.
    pub track: u8,
}

/// All streams that an end receives.
#[derive(Debug)]
pub(super) struct Incoming {
    streams: Numbered<Stream>,
    window: u64,
    /// The last MAX_DATA sent, its window, and the bytes delivered to the application.
    max_data: u64,
    data_window: u64,
    taken: u64,
    /// Bytes that count against MAX_DATA: the highest offset of each stream.
    seen: u64,
    /// The last MAX_STREAMS sent, its window, and the number of closed streams.
    max_streams: u32,
    streams_window: u32,
    closed: u32,
    /// The other end opens streams for requests; these stay open until they are answered.
    answered: bool,
    /// Frames that have arrived since the last query: of the first track, and of those that it leads.
    pub(super) objects: Vec<Object>,
    pub(super) led: Vec<Object>,
    /// Data that has arrived since the last query, if it is relayed.
    pub(super) portions: Option<Vec<RelayedData>>,
}

/// A new flow-control limit for the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Grant {
    /// MAX_DATA.
    Data(u64),
    /// MAX_STREAM_DATA of the stream with this id.
    Stream(u32, u64),
    /// MAX_STREAMS.
    Streams(u32),
}

/// A protocol violation by the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Violation {
    /// FLOW_CONTROL_ERROR.
    FlowControl,
    /// STREAM_LIMIT_ERROR.
    StreamLimit,
    /// FINAL_SIZE_ERROR.
    FinalSize,
}

impl Violation {
    /// The error code (RFC 9000 section 20.1).
    pub(super) const fn code(self) -> u32 {
        match self {
            Violation::FlowControl => 0x03,
            Violation::StreamLimit => 0x04,
            Violation::FinalSize => 0x06,
        }
    }
}

impl Grant {
    pub(super) const fn frame(self) -> Frame {
        match self {
            Grant::Data(limit) => Frame::MaxData(limit),
            Grant::Stream(stream, limit) => Frame::MaxStreamData { stream, limit },
            Grant::Streams(limit) => Frame::MaxStreams(limit),
        }
    }
}

/// The remaining part of a limit at which it is raised: seven eighths. With a half, a sender limited by flow control
/// would keep only half of the window in flight: the data of a grant uses just under a half, and the next grant waits
/// for the packet that the limit holds back.
const fn unused(window: u64) -> u64 {
    window - window / 8
}

impl Incoming {
    pub(super) fn new(data_window: u64, window: u64, max_streams: u32) -> Incoming {
        Incoming {
            streams: Numbered::new(),
            window,
            max_data: data_window,
            data_window,
            taken: 0,
            seen: 0,
            max_streams,
            streams_window: max_streams,
            closed: 0,
            answered: false,
            objects: Vec::new(),
            led: Vec::new(),
            portions: None,
        }
    }

    /// Makes it the receiving side of requests: the other end opens the streams.
    pub(super) fn for_server(self) -> Incoming {
        Incoming { answered: true, ..self }
    }

    /// Makes it the receiving side of answers: this end opens the streams, so it grants none.
    pub(super) fn for_client(self) -> Incoming {
        Incoming { max_streams: u32::MAX, streams_window: 0, ..self }
    }

    /// The number of streams that the other end has opened.
    pub(super) fn opened(&self) -> u32 {
        self.streams.next()
    }

    /// Closes a request's stream: its answer was acknowledged.
    pub(super) fn on_answer_acked(&mut self, grants: &mut Vec<Grant>) {
        self.closed += u32::from(self.answered);
        self.grant(grants);
    }

    /// Records a complete frame or a reset stream.
    #[inline]
    pub(super) fn push_object(&mut self, object: Object) {
        if object.track == 0 { &mut self.objects } else { &mut self.led }.push(object);
    }

    /// Records a frame that arrived in datagrams.
    #[inline]
    pub(super) fn push_datagram(&mut self, object: Object) {
        self.push_object(object);
        if let Some(portions) = &mut self.portions {
            let Object { captured, key, size: bytes, track, .. } = object;
            let what = RelayedDataKind::Bytes { bytes, captured, key, first: true, opens: true, last: true };
            portions.push(RelayedData { track, stream: None, what });
        }
    }

    /// Ends the connection. If data is relayed, returns what has arrived; unfinished streams count as reset.
    pub(super) fn end(&mut self) -> Option<Vec<RelayedData>> {
        let mut portions = self.portions.take()?;
        let open =
            self.streams.numbers().zip(self.streams.iter()).filter(|(_, stream)| !stream.done && stream.given > 0);
        let reset = |(number, stream): (u32, &Stream)| RelayedData {
            track: stream.track,
            stream: Some(number),
            what: RelayedDataKind::Reset,
        };
        portions.extend(open.map(reset));
        Some(portions)
    }

    /// The index of a stream; `None`: it is closed.
    #[inline]
    fn place(&mut self, id: u32) -> Result<Option<u32>, Violation> {
        let place = id / 4;
        if place < self.streams.first() {
            return Ok(None);
        }
        if place >= self.max_streams {
            return Err(Violation::StreamLimit);
        }
        while self.streams.next() <= place {
            self.streams.push(Stream { limit: self.window, ..Stream::default() });
        }
        Ok(Some(place))
    }

    /// Takes data that follows the newest of a stream, within all limits. Returns the bytes newly delivered in order,
    /// which are none behind a hole. `None`: nothing was done.
    #[inline(always)]
    pub(super) fn newest_piece(&mut self, piece: &StreamPiece) -> Option<u64> {
        let length = u64::from(piece.length);
        let stream = self.streams.get_mut(piece.stream / 4)?;
        let end = piece.end();
        if stream.end != piece.offset || piece.fin || piece.last || stream.done || self.portions.is_some() {
            return None;
        }
        let whole = stream.given == piece.offset;
        // limits are raised when a part of the window is used by in-order data
        let within = if whole {
            end + unused(self.window) <= stream.limit && self.taken + length + unused(self.data_window) <= self.max_data
        } else {
            end <= stream.limit && self.seen + length <= self.max_data
        };
        if !(within && stream.have.follow(piece.offset..end)) {
            return None;
        }
        stream.end = end;
        self.seen += length;
        if !whole {
            return Some(0);
        }
        stream.given = end;
        self.taken += length;
        Some(length)
    }

    /// Takes stream data. Returns the bytes newly delivered in order, and whether all of the data had arrived before.
    #[inline]
    pub(super) fn piece(&mut self, piece: &StreamPiece, grants: &mut Vec<Grant>) -> Result<(u64, bool), Violation> {
        let Some(place) = self.place(piece.stream)? else { return Ok((0, true)) };
        let stream = &mut self.streams[place];
        let end = piece.end();
        let further = end.saturating_sub(stream.end);
        if end > stream.limit || self.seen + further > self.max_data {
            return Err(Violation::FlowControl);
        }
        if stream.size.is_some_and(|size| end > size || piece.fin && end != size) || piece.fin && end < stream.end {
            return Err(Violation::FinalSize);
        }
        if stream.done {
            return Ok((0, true));
        }
        stream.end += further;
        stream.track = piece.track;
        self.seen += further;
        if piece.fin {
            stream.size = Some(end);
        }
        let mut fresh = 0;
        stream.have.insert(piece.offset..end, |part| fresh += part.end - part.start);
        let prefix = stream.have.prefix();
        let before = stream.given;
        let given = prefix - before;
        stream.given = prefix;
        self.taken += given;
        // retransmitted data may be cut differently, so that a frame ends twice
        if piece.last && end > stream.complete_to && !stream.marks.iter().any(|mark| mark.end == end) {
            stream.marks.push(FrameEnd { end, captured: piece.captured, key: piece.key });
            stream.marks.sort_unstable_by_key(|mark| mark.end);
        }
        if let Some(portions) = &mut self.portions {
            stream.heads.note(piece, before);
            let of = (piece.track, piece.stream / 4);
            stream.heads.push(before..prefix, stream.complete_to, &stream.marks, of, portions);
        }
        if !stream.marks.is_empty() {
            let objects = if piece.track == 0 { &mut self.objects } else { &mut self.led };
            Self::push_complete(stream, piece.stream / 4, objects);
        }
        if stream.limit - prefix < unused(self.window) && stream.size.is_none() {
            stream.limit = prefix + self.window;
            grants.push(Grant::Stream(piece.stream, stream.limit));
        }
        if stream.size == Some(prefix) {
            self.close(place, false);
        }
        self.grant(grants);
        Ok((given, fresh == 0 && piece.length > 0))
    }

    /// Reports the frames of a stream that are complete.
    fn push_complete(stream: &mut Stream, number: u32, objects: &mut Vec<Object>) {
        let complete = stream.marks.partition_point(|mark| mark.end <= stream.given);
        for FrameEnd { end, captured, key } in stream.marks.drain(..complete) {
            let track = stream.track;
            objects.push(Object { captured, number, size: end - stream.complete_to, key, reset: false, track });
            stream.complete_to = end;
        }
    }

    /// Processes the reset of a stream at its final `size`.
    pub(super) fn reset(&mut self, id: u32, size: u64, grants: &mut Vec<Grant>) -> Result<(), Violation> {
        let Some(place) = self.place(id)? else { return Ok(()) };
        let stream = &mut self.streams[place];
        if size < stream.end || stream.size.is_some_and(|known| known != size) {
            return Err(Violation::FinalSize);
        }
        if !stream.done {
            // data that will never arrive counts as delivered (section 4.5)
            self.taken += size - stream.given;
            self.seen += size - stream.end;
            (stream.given, stream.end) = (size, size);
            self.close(place, true);
        }
        self.grant(grants);
        Ok(())
    }

    /// Closes a stream.
    fn close(&mut self, number: u32, reset: bool) {
        let stream = &mut self.streams[number];
        stream.done = true;
        stream.have.clear();
        if let Some(portions) = &mut self.portions {
            let what = if reset { RelayedDataKind::Reset } else { RelayedDataKind::End };
            portions.push(RelayedData { track: stream.track, stream: Some(number), what });
        }
        if reset {
            let size = stream.end - stream.complete_to;
            let track = stream.track;
            self.push_object(Object { captured: Stamp(0), number, size, key: false, reset, track });
        }
        self.closed += u32::from(!self.answered);
        self.streams.retire(|stream| stream.done);
    }

    /// Raises limits that are partly used. MAX_STREAMS is raised when that adds at least half of the streams that may
    /// still be opened, so that long-lived streams do not hold up short ones.
    #[inline]
    fn grant(&mut self, grants: &mut Vec<Grant>) {
        if self.max_data - self.taken.min(self.max_data) < unused(self.data_window) {
            self.max_data = self.taken + self.data_window;
            grants.push(Grant::Data(self.max_data));
        }
        let raised = self.closed.saturating_add(self.streams_window);
        let gain = raised.saturating_sub(self.max_streams);
        if gain > 0 && gain >= self.max_streams.saturating_sub(self.opened()) / 2 {
            self.max_streams = raised;
            grants.push(Grant::Streams(self.max_streams));
        }
    }

    /// The current limit, to be sent again after its frame was lost.
    pub(super) fn current(&self, grant: Grant) -> Option<Grant> {
        match grant {
            Grant::Data(_) => Some(Grant::Data(self.max_data)),
            Grant::Streams(_) => Some(Grant::Streams(self.max_streams)),
            Grant::Stream(id, _) => {
                let stream = self.streams.get(id / 4)?;
                (stream.size.is_none() && !stream.done).then_some(Grant::Stream(id, stream.limit))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame whose end arrives twice, because a retransmission was cut differently, is reported once.
    #[test]
    fn a_frame_is_told_of_once_however_it_was_cut() {
        let mut incoming = Incoming::new(1 << 30, 1 << 30, 10);
        let piece = |offset, length, last| StreamPiece {
            offset,
            stream: 2,
            captured: Stamp(5),
            length,
            fin: last,
            key: false,
            last,
            track: 0,
        };
        let grants = &mut Vec::new();
        assert_eq!(incoming.piece(&piece(60, 40, true), grants), Ok((0, false)));
        assert_eq!(incoming.piece(&piece(0, 100, true), grants), Ok((100, false)));
        assert_eq!(incoming.piece(&piece(0, 60, false), grants), Ok((0, true)));
        let reported: Vec<_> = incoming.objects.drain(..).map(|o| (o.size, o.captured.0, o.reset)).collect();
        assert_eq!(reported, [(100, 5, false)]);
    }

    #[test]
    fn what_goes_beyond_a_limit_is_a_violation() {
        let mut incoming = Incoming::new(150, 100, 2);
        let piece = |stream, offset, length| StreamPiece {
            offset,
            stream,
            captured: Stamp(0),
            length,
            fin: false,
            key: false,
            last: false,
            track: 0,
        };
        let grants = &mut Vec::new();
        assert_eq!(incoming.piece(&piece(2, 50, 51), grants), Err(Violation::FlowControl), "the stream's");
        assert_eq!(incoming.piece(&piece(2, 0, 12), grants), Ok((12, false)));
        assert_eq!(grants, &[], "an eighth is to be used first");
        assert_eq!(incoming.piece(&piece(2, 60, 40), grants), Ok((0, false)));
        assert_eq!(incoming.piece(&piece(6, 10, 40), grants), Ok((0, false)));
        assert_eq!(incoming.piece(&piece(6, 50, 1), grants), Err(Violation::FlowControl), "the connection's");
        assert_eq!(incoming.piece(&piece(10, 0, 1), grants), Err(Violation::StreamLimit));
        assert_eq!(incoming.reset(6, 49, grants), Err(Violation::FinalSize));
        assert_eq!(incoming.reset(6, 50, grants), Ok(()));
        assert!(grants.contains(&Grant::Data(62 + 150)), "{grants:?}");
    }
}

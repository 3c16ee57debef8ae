//! Streams on their sending side (RFC 9000 section 3.1): what is written, what has left, what is to be sent again.

use super::ranges::Ranges;
use paceline_packet::Stamp;
use paceline_packet::quic::StreamPiece;
use paceline_units::Time;
use std::collections::{BTreeSet, VecDeque};

/// Bytes of a stream whose writer never runs dry.
pub(super) const ENDLESS: u64 = 1 << 61;
/// Unidirectional streams of the end that opened the connection are numbered 2, 6, 10... (section 2.1).
const FIRST_ID: u32 = 2;
const ID_STEP: u32 = 4;

/// What a new stream is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// Streams of a lower number are served first.
    pub(super) priority: u8,
    /// When it is reset if it is not acknowledged by then.
    pub(super) deadline: Time,
}

/// A frame of the application within a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// One past its last byte.
    end: u64,
    captured: Stamp,
    key: bool,
}

/// A stream.
#[derive(Debug)]
struct Stream {
    id: u32,
    kind: Kind,
    /// Bytes written so far; the next that was never sent; what the other end lets be sent.
    written: u64,
    next: u64,
    limit: u64,
    /// Nothing will be written any more; that has been said; that has been acknowledged.
    finished: bool,
    fin_sent: bool,
    fin_acked: bool,
    /// Bytes that were acknowledged, and those of the others that are to be sent again.
    acked: Ranges,
    lost: Ranges,
    /// Its frames that are not acknowledged, if it consists of such.
    marks: VecDeque<Mark>,
    /// It was reset, with so many bytes sent; that has been acknowledged.
    reset: bool,
    done: bool,
}

impl Stream {
    /// Whether anything of it could leave, as far as its own limit goes.
    fn has_data(&self) -> bool {
        !self.reset && (!self.lost.is_empty() || self.next < self.written.min(self.limit) || self.owes_fin())
    }

    fn owes_fin(&self) -> bool {
        self.finished && !self.fin_sent && self.next == self.written
    }

    fn is_acked(&self) -> bool {
        self.finished && self.fin_acked && self.acked.prefix() == self.written
    }
}

/// What of a stream leaves next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) piece: StreamPiece,
    /// It was sent before.
    pub(super) again: bool,
}

/// What an acknowledgement of a piece changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Gain {
    /// Bytes that had not been acknowledged before.
    pub(super) bytes: u64,
    /// The stream is acknowledged to its end.
    pub(super) completed: bool,
}

/// All streams that an end sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The oldest that is not done with, and those after it, in the order of their opening.
    streams: VecDeque<Stream>,
    /// Of the first of them, among all.
    base: u32,
    /// Those that have something to send: by priority, then by age.
    ready: BTreeSet<(u8, u32)>,
    /// The first of them, unless it is not known.
    front: Option<(u8, u32)>,
    /// How many the other end lets be opened in all.
    max_streams: u32,
    /// MAX_DATA, and what counts against it: bytes sent for the first time.
    max_data: u64,
    spent: u64,
    /// What each stream may send before it is told more.
    window: u64,
    /// Bytes written and not acknowledged, of streams that were not reset.
    owed: u64,
    /// Of these never sent.
    unsent: u64,
    endless: bool,
}

impl Outgoing {
    /// None yet; the other end takes `max_data` bytes in all, `window` of each stream, and `max_streams`.
    pub(super) fn new(max_data: u64, window: u64, max_streams: u32) -> Outgoing {
        Outgoing {
            streams: VecDeque::new(),
            base: 0,
            ready: BTreeSet::new(),
            front: None,
            max_streams,
            max_data,
            spent: 0,
            window,
            owed: 0,
            unsent: 0,
            endless: false,
        }
    }

    /// How many have been opened.
    pub(super) fn opened(&self) -> u32 {
        self.base + self.streams.len() as u32
    }

    /// Whether another may be opened.
    pub(super) fn may_open(&self) -> bool {
        self.opened() < self.max_streams
    }

    /// So many may be opened in all (MAX_STREAMS).
    pub(super) fn set_max_streams(&mut self, limit: u32) {
        self.max_streams = self.max_streams.max(limit);
    }

    /// Opens one; the caller has asked whether it may. Gives its place among all.
    pub(super) fn open(&mut self, kind: Kind) -> u32 {
        let place = self.opened();
        self.streams.push_back(Stream {
            id: FIRST_ID + ID_STEP * place,
            kind,
            written: 0,
            next: 0,
            limit: self.window,
            finished: false,
            fin_sent: false,
            fin_acked: false,
            acked: Ranges::default(),
            lost: Ranges::default(),
            marks: VecDeque::new(),
            reset: false,
            done: false,
        });
        place
    }

    fn get(&mut self, place: u32) -> Option<&mut Stream> {
        self.streams.get_mut(place.checked_sub(self.base)? as usize)
    }

    #[inline]
    fn of_id(&mut self, id: u32) -> Option<(u32, &mut Stream)> {
        let place = id.checked_sub(FIRST_ID)? / ID_STEP;
        let stream = self.streams.get_mut(place.checked_sub(self.base)? as usize)?;
        Some((place, stream))
    }

    /// Appends to a stream; `finish`: nothing follows.
    pub(super) fn write(&mut self, place: u32, bytes: u64, finish: bool) {
        let Some(stream) = self.get(place) else { return };
        let bytes = bytes.min(ENDLESS - stream.written.min(ENDLESS));
        stream.written += bytes;
        stream.finished |= finish;
        let key = (stream.kind.priority, place);
        let ready = stream.has_data();
        self.owed += bytes;
        self.unsent += bytes;
        if ready {
            self.add_ready(key);
        }
    }

    /// Appends a frame to a stream; `finish`: nothing follows.
    pub(super) fn write_frame(&mut self, place: u32, bytes: u64, captured: Stamp, key: bool, finish: bool) {
        if let Some(stream) = self.get(place) {
            let end = stream.written + bytes;
            stream.marks.push_back(Mark { end, captured, key });
        }
        self.write(place, bytes, finish);
    }

    /// A stream will never run dry.
    pub(super) fn write_endlessly(&mut self, place: u32) {
        self.endless = true;
        self.write(place, ENDLESS, false);
    }

    /// What was written and never sent is taken back, of streams that were not finished; with `finish` they are now.
    pub(super) fn withdraw(&mut self, finish: bool) {
        self.endless = false;
        for (place, stream) in self.streams.iter_mut().enumerate().filter(|(_, stream)| !stream.finished) {
            self.owed -= stream.written - stream.next;
            self.unsent -= stream.written - stream.next;
            stream.marks.retain(|mark| mark.end <= stream.next);
            stream.written = stream.next;
            stream.finished = finish && stream.written > 0;
            let key = (stream.kind.priority, self.base + place as u32);
            if stream.has_data() {
                self.ready.insert(key);
            } else {
                self.ready.remove(&key);
            }
        }
        self.front = None;
    }

    /// Whether all that was written has been acknowledged, or given up.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.owed == 0 && !self.endless
    }

    /// Bytes that have never left.
    pub(super) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Whether something could leave but for the congestion window.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.front.is_some() || !self.ready.is_empty()
    }

    /// A stream has something to send.
    #[inline]
    fn add_ready(&mut self, key: (u8, u32)) {
        self.ready.insert(key);
        self.front = None;
    }

    /// A stream has nothing to send any more.
    fn remove_ready(&mut self, key: (u8, u32)) {
        self.ready.remove(&key);
        self.front = None;
    }

    /// What leaves next in a packet with room for `room` bytes of a frame, the `last` of its packet; it is taken to leave. `None` if
    /// nothing can: nothing is there, the connection's limit is reached, or there is too little room.
    #[inline]
    pub(super) fn take(&mut self, room: u16) -> Option<Offer> {
        let (priority, place) = match self.front {
            Some(front) => front,
            None => *self.front.insert(*self.ready.first()?),
        };
        let left = self.max_data - self.spent;
        let stream = self.streams.get_mut((place - self.base) as usize)?;
        if left == 0 && stream.lost.is_empty() && !stream.owes_fin() {
            return self.take_again(room);
        }
        Self::cut(stream, room, left).inspect(|offer| {
            let new = if offer.again { 0 } else { u64::from(offer.piece.length) };
            self.spent += new;
            self.unsent -= new;
            let stream = &self.streams[(place - self.base) as usize];
            if !stream.has_data() {
                self.remove_ready((priority, place));
            }
        })
    }

    /// The connection's limit lets nothing new leave: what was lost may, of any stream.
    #[cold]
    fn take_again(&mut self, room: u16) -> Option<Offer> {
        let base = self.base;
        let of = |place: u32| (place - base) as usize;
        let key = *self.ready.iter().find(|key| !self.streams[of(key.1)].lost.is_empty())?;
        let offer = Self::cut(&mut self.streams[of(key.1)], room, 0)?;
        if !self.streams[of(key.1)].has_data() {
            self.remove_ready(key);
        }
        Some(offer)
    }

    /// A piece of a stream: what was lost first, else up to `left` new bytes.
    #[inline]
    fn cut(stream: &mut Stream, room: u16, left: u64) -> Option<Offer> {
        let (start, end, again) = match stream.lost.first() {
            Some(range) => (range.start, range.end, true),
            None => {
                let end = stream.written.min(stream.limit).min(stream.next.saturating_add(left));
                (stream.next, end, false)
            }
        };
        let data = room.checked_sub(StreamPiece::header(stream.id, start, true))?;
        let mut piece = StreamPiece {
            offset: start,
            stream: stream.id,
            captured: Stamp(0),
            length: 0,
            fin: false,
            key: false,
            last: false,
        };
        let end = if stream.marks.is_empty() { end } else { Self::within_frame(stream, &mut piece, end) };
        let length = (end - start).min(u64::from(data)) as u16;
        let fin = stream.finished && start + u64::from(length) == stream.written;
        if length == 0 && !fin {
            return None;
        }
        if again {
            stream.lost.remove(start..start + u64::from(length));
        } else {
            stream.next += u64::from(length);
        }
        stream.fin_sent |= fin;
        (piece.length, piece.fin) = (length, fin);
        piece.last &= start + u64::from(length) == end;
        Some(Offer { piece, again })
    }

    /// A piece is of one frame: where it ends at the latest, which was to be by `end`.
    #[inline(never)]
    fn within_frame(stream: &Stream, piece: &mut StreamPiece, end: u64) -> u64 {
        let at = stream.marks.partition_point(|mark| mark.end <= piece.offset);
        let Some(mark) = stream.marks.get(at) else { return end };
        (piece.captured, piece.key) = (mark.captured, mark.key);
        piece.last = mark.end <= end;
        end.min(mark.end)
    }

    /// A piece has arrived.
    #[inline]
    pub(super) fn acked(&mut self, piece: &StreamPiece) -> Gain {
        let Some((place, stream)) = self.of_id(piece.stream) else { return Gain::default() };
        let mut bytes = 0;
        let range = piece.offset..piece.end();
        stream.acked.insert(range.clone(), |part| bytes += part.end - part.start);
        if !stream.lost.is_empty() {
            stream.lost.remove(range);
        }
        stream.fin_acked |= piece.fin;
        if !stream.marks.is_empty() {
            let prefix = stream.acked.prefix();
            while stream.marks.front().is_some_and(|mark| mark.end <= prefix) {
                stream.marks.pop_front();
            }
        }
        if !stream.reset {
            self.owed -= bytes;
        }
        let stream = &mut self.streams[(place - self.base) as usize];
        let completed = !stream.done && !stream.reset && stream.is_acked();
        if completed {
            stream.done = true;
            self.remove_ready((self.streams[(place - self.base) as usize].kind.priority, place));
            self.retire();
        }
        Gain { bytes, completed }
    }

    /// A piece was lost: what of it was not acknowledged since is to be sent again.
    pub(super) fn lost(&mut self, piece: &StreamPiece) {
        let Some((place, stream)) = self.of_id(piece.stream) else { return };
        if stream.reset || stream.done {
            return;
        }
        stream.lost.insert_without(piece.offset..piece.end(), &stream.acked);
        if piece.fin && !stream.fin_acked {
            stream.fin_sent = false;
        }
        let key = (stream.kind.priority, place);
        if stream.has_data() {
            self.add_ready(key);
        }
    }

    /// The other end takes so many bytes on all streams (MAX_DATA).
    pub(super) fn set_max_data(&mut self, limit: u64) {
        self.max_data = self.max_data.max(limit);
    }

    /// The other end takes so many bytes of a stream (MAX_STREAM_DATA).
    pub(super) fn set_limit(&mut self, id: u32, limit: u64) {
        let Some((place, stream)) = self.of_id(id) else { return };
        stream.limit = stream.limit.max(limit);
        let key = (stream.kind.priority, place);
        if stream.has_data() {
            self.add_ready(key);
        }
    }

    /// When the next deadline of a stream is.
    pub(super) fn next_deadline(&self) -> Time {
        let live = self.streams.iter().filter(|stream| !stream.reset && !stream.done);
        live.map(|stream| stream.kind.deadline).min().unwrap_or(Time::NEVER)
    }

    /// Resets the streams whose deadline has come. Gives each one's id and how many of its bytes have been sent.
    pub(super) fn expire(&mut self, now: Time) -> Vec<(u32, u64)> {
        let mut expired = Vec::new();
        for (place, stream) in self.streams.iter_mut().enumerate() {
            if !stream.reset && !stream.done && stream.kind.deadline <= now {
                stream.reset = true;
                let acked: u64 = stream.acked.iter().map(|range| range.end - range.start).sum();
                self.owed -= stream.written - acked;
                self.unsent -= stream.written - stream.next;
                self.ready.remove(&(stream.kind.priority, self.base + place as u32));
                self.front = None;
                expired.push((stream.id, stream.next));
            }
        }
        expired
    }

    /// The other end knows that a stream was reset.
    pub(super) fn reset_acked(&mut self, id: u32) {
        if let Some((_, stream)) = self.of_id(id) {
            stream.done = true;
            self.retire();
        }
    }

    fn retire(&mut self) {
        while self.streams.front().is_some_and(|stream| stream.done) {
            self.streams.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests;

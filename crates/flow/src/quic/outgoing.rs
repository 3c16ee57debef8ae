//! Streams on their sending side (RFC 9000 section 3.1): what is written, what has left, what is to be sent again.

mod stream;

use super::numbered::Numbered;
use super::ranges::Ranges;
use paceline_packet::Stamp;
use paceline_packet::quic::StreamPiece;
use paceline_units::Time;
use std::collections::{BTreeSet, VecDeque};
use stream::{Key, Mark, Stream};

pub(super) use stream::{Expired, Kind};

/// Bytes of a stream whose writer never runs dry; a connection has up to 255 of them.
pub(super) const ENDLESS: u64 = 1 << 53;
/// Streams of a connection's opener are numbered from here on: unidirectional ones 2, 6, 10..., those of requests and answers, which go
/// both ways, 0, 4, 8... (section 2.1).
pub(super) const FIRST_UNIDIRECTIONAL: u32 = 2;
pub(super) const FIRST_BIDIRECTIONAL: u32 = 0;
const ID_STEP: u32 = 4;

/// What of a stream leaves next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) piece: StreamPiece,
    /// It was sent before.
    pub(super) again: bool,
    /// Bytes of its frame, as the last of a packet.
    pub(super) size: u16,
}

/// What an acknowledgement of a piece changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Gain {
    /// Bytes that had not been acknowledged before.
    pub(super) bytes: u64,
    /// The stream is acknowledged to its end.
    pub(super) completed: bool,
}

/// What a track has written.
#[derive(Clone, Copy, Default, Debug)]
struct Owing {
    /// Bytes that are not acknowledged, of streams that were not reset; of these never sent.
    owed: u64,
    unsent: u64,
}

/// Where the account of a track but the first lies: that of the first is what is left of all.
const fn led(track: u8) -> usize {
    (track as usize).wrapping_sub(1)
}

/// All streams that an end sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// In the order of their opening.
    streams: Numbered<Stream>,
    /// Those that have something to send.
    ready: BTreeSet<Key>,
    /// What leaves next, unless it is not known.
    front: Option<Key>,
    /// By rank the track that was served last, where tracks of one rank take turns; else empty.
    turns: Vec<u8>,
    /// The number of the first of all.
    first_id: u32,
    /// How many the other end lets be opened in all.
    max_streams: u32,
    /// MAX_DATA, and what counts against it: bytes sent for the first time.
    max_data: u64,
    spent: u64,
    /// What each stream may send before it is told more.
    window: u64,
    /// What all tracks have written, and what each but the first.
    all: Owing,
    led: Vec<Owing>,
}

impl Outgoing {
    /// None yet, the first to be numbered `first_id`; the other end takes `max_data` bytes in all, `window` of each stream, and
    /// `max_streams`.
    pub(super) fn new(first_id: u32, max_data: u64, window: u64, max_streams: u32) -> Outgoing {
        Outgoing {
            streams: Numbered::new(),
            ready: BTreeSet::new(),
            front: None,
            turns: Vec::new(),
            first_id,
            max_streams,
            max_data,
            spent: 0,
            window,
            all: Owing::default(),
            led: Vec::new(),
        }
    }

    /// There are tracks of these ranks, the first one's first.
    pub(super) fn set_tracks(&mut self, ranks: &[u8]) {
        self.led = vec![Owing::default(); ranks.len().saturating_sub(1)];
        let alike = (1..ranks.len()).any(|at| ranks[..at].contains(&ranks[at]));
        self.turns = if alike { vec![u8::MAX; usize::from(u8::MAX) + 1] } else { Vec::new() };
    }

    /// How many have been opened.
    pub(super) fn opened(&self) -> u32 {
        self.streams.next()
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
        self.streams.push(Stream {
            id: self.first_id + ID_STEP * place,
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
            header: (0, 0),
            listed: None,
        })
    }

    /// Opens those up to this place that the other end has opened, to answer on them (section 3.2: an earlier one's data may come
    /// later).
    pub(super) fn open_up_to(&mut self, place: u32, kind: Kind) {
        while self.opened() <= place {
            self.open(kind);
        }
    }

    fn get(&mut self, place: u32) -> Option<&mut Stream> {
        self.streams.get_mut(place).filter(|stream| !stream.done)
    }

    #[inline]
    fn of_id(&mut self, id: u32) -> Option<(u32, &mut Stream)> {
        let place = id.checked_sub(self.first_id)? / ID_STEP;
        Some((place, self.streams.get_mut(place)?))
    }

    /// Appends to a stream; `finish`: nothing follows.
    pub(super) fn write(&mut self, place: u32, bytes: u64, finish: bool) {
        let Some(stream) = self.get(place) else { return };
        let bytes = bytes.min(ENDLESS - stream.written.min(ENDLESS));
        stream.written += bytes;
        stream.finished |= finish;
        let track = stream.kind.track;
        for owing in [Some(&mut self.all), self.led.get_mut(led(track))].into_iter().flatten() {
            owing.owed += bytes;
            owing.unsent += bytes;
        }
        self.list(place);
    }

    /// Appends a frame to a stream, which is reset if that is not acknowledged when it is `due`; `finish`: nothing follows.
    pub(super) fn write_frame(
        &mut self,
        place: u32,
        bytes: u64,
        (captured, due): (Stamp, Time),
        key: bool,
        finish: bool,
    ) {
        self.mark(place, bytes, (captured, due), key, true);
        self.write(place, bytes, finish);
    }

    /// Appends a part of a frame to a stream; `whole`: its last.
    pub(super) fn write_part(&mut self, place: u32, bytes: u64, frame: (Stamp, Time), key: bool, whole: bool) {
        self.mark(place, bytes, frame, key, whole);
        self.write(place, bytes, false);
    }

    /// What is written next to a stream is of a frame: of the one that is not whole, if there is such.
    fn mark(&mut self, place: u32, bytes: u64, (captured, due): (Stamp, Time), key: bool, whole: bool) {
        let Some(stream) = self.get(place) else { return };
        let end = stream.written + bytes;
        match stream.marks.back_mut().filter(|mark| !mark.whole) {
            Some(mark) => (mark.end, mark.whole) = (end, whole),
            None => stream.marks.push_back(Mark { end, captured, key, due, whole }),
        }
    }

    /// Whether a stream was reset: nothing can be written to it.
    pub(super) fn is_reset(&mut self, place: u32) -> bool {
        self.get(place).is_none_or(|stream| stream.reset)
    }

    /// A stream will never run dry.
    pub(super) fn write_endlessly(&mut self, place: u32) {
        self.write(place, ENDLESS, false);
    }

    /// What a track wrote and never sent is taken back; with `finish` nothing follows on its streams. Those that had been finished are
    /// reset, since what leaves of them would not be what was said to be the whole (RFC 9000 section 3.1); gives these.
    pub(super) fn withdraw(&mut self, track: u8, finish: bool) -> Vec<Expired> {
        let mut cut = Vec::new();
        for place in self.streams.numbers() {
            let stream = &mut self.streams[place];
            let unsent = stream.written - stream.next;
            if stream.kind.track != track || stream.reset || stream.done {
                continue;
            }
            if !stream.finished {
                stream.marks.retain(|mark| mark.end <= stream.next);
                stream.written = stream.next;
                stream.finished = finish && stream.written > 0;
                self.give_up(track, unsent, unsent);
                self.list(place);
            } else if unsent > 0 {
                cut.push(self.reset_at(place));
            }
        }
        cut
    }

    /// Bytes of a track will not be acknowledged, of which some will not be sent.
    #[inline]
    fn give_up(&mut self, track: u8, owed: u64, unsent: u64) {
        for owing in [Some(&mut self.all), self.led.get_mut(led(track))].into_iter().flatten() {
            owing.owed -= owed;
            owing.unsent -= unsent;
        }
    }

    /// Whether all that was written has been acknowledged, or given up.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.all.owed == 0
    }

    /// Whether all that a track wrote has been acknowledged, or given up.
    pub(super) fn has_settled(&self, track: u8) -> bool {
        self.of_track(track).owed == 0
    }

    /// Bytes of a track that have never left.
    pub(super) fn unsent(&self, track: u8) -> u64 {
        self.of_track(track).unsent
    }

    fn of_track(&self, track: u8) -> Owing {
        let others = || {
            self.led
                .iter()
                .fold(self.all, |all, owing| Owing { owed: all.owed - owing.owed, unsent: all.unsent - owing.unsent })
        };
        self.led.get(led(track)).copied().unwrap_or_else(others)
    }

    /// Whether something could leave but for the congestion window and the connection's limit.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.front.is_some() || !self.ready.is_empty()
    }

    /// Whether so many bytes could leave but for the congestion window, as far as the other end's limits go.
    #[inline(never)]
    pub(super) fn offers(&self, bytes: u64) -> bool {
        let (mut offered, mut left) = (0, self.max_data - self.spent);
        for key in &self.ready {
            let stream = &self.streams[key.place];
            let again: u64 = stream.lost.iter().map(|range| range.end - range.start).sum();
            let new = stream.written.min(stream.limit).saturating_sub(stream.next).min(left);
            left -= new;
            offered += again + new;
            if offered >= bytes {
                return true;
            }
        }
        offered >= bytes
    }

    /// The first that may leave though the connection's limit is reached: what was lost, and ends of streams (RFC 9000 section 4.1).
    #[cold]
    fn beyond_limit(&self) -> Option<Key> {
        let stream = |key: &Key| &self.streams[key.place];
        self.ready.iter().find(|key| !stream(key).lost.is_empty() || stream(key).owes_fin()).copied()
    }

    /// Puts a stream where it belongs among those that have something to send.
    #[inline(never)]
    fn list(&mut self, place: u32) {
        let stream = &mut self.streams[place];
        let Kind { rank, track, .. } = stream.kind;
        let key = stream.has_data().then(|| Key { rank, new: stream.lost.is_empty(), track, place });
        if stream.listed != key {
            let old = core::mem::replace(&mut stream.listed, key);
            self.relist(old, key);
        }
    }

    #[cold]
    fn relist(&mut self, old: Option<Key>, key: Option<Key>) {
        if let Some(old) = old {
            self.ready.remove(&old);
        }
        self.ready.extend(key);
        self.front = None;
    }

    /// The rank of what leaves next, if the connection's limit lets anything.
    pub(super) fn rank(&self) -> Option<u8> {
        let first =
            if self.spent == self.max_data { self.beyond_limit() } else { self.front.or(self.ready.first().copied()) };
        first.map(|key| key.rank)
    }

    /// Finds what leaves next: of tracks of one rank, the one after that which was served last.
    #[inline(never)]
    fn choose(&mut self) -> Option<Key> {
        let mut key = *self.ready.first()?;
        if let Some(&last) = self.turns.get(usize::from(key.rank)) {
            let after = Key { track: last.saturating_add(1), place: 0, ..key };
            let next = self.ready.range(after..).next().filter(|next| (next.rank, next.new) == (key.rank, key.new));
            key = *next.filter(|_| last < u8::MAX).unwrap_or(&key);
        }
        self.front = Some(key);
        self.front
    }

    /// A track has been served: it is another's turn.
    #[cold]
    fn turn(&mut self, key: Key) {
        self.turns[usize::from(key.rank)] = key.track;
        self.front = None;
    }

    /// What leaves next in a packet with room for `room` bytes of a frame, the `last` of its packet; it is taken to leave. `None` if
    /// nothing can: nothing is there, the connection's limit is reached, or there is too little room.
    #[inline]
    pub(super) fn take(&mut self, room: u16) -> Option<Offer> {
        self.take_full(room).map(|piece| Offer { piece, again: false, size: room }).or_else(|| self.take_any(room))
    }

    /// The same, where the first stream has no frames, no turns to keep, and more new data than fit: by far the most common. `None`:
    /// nothing has been done.
    #[inline(always)]
    pub(super) fn take_full(&mut self, room: u16) -> Option<StreamPiece> {
        let place = self.front?.place;
        let stream = self.streams.get_mut(place)?;
        let (start, length) = (stream.next, room.checked_sub(stream.header())?);
        let end = start + u64::from(length);
        let more = end < stream.written.min(stream.limit) && u64::from(length) <= self.max_data - self.spent;
        if !(more && self.led.is_empty() && stream.lost.is_empty() && stream.marks.is_empty()) {
            return None;
        }
        stream.next = end;
        self.spent += u64::from(length);
        self.all.unsent -= u64::from(length);
        let (stream, captured) = (stream.id, Stamp(0));
        Some(StreamPiece { offset: start, stream, captured, length, fin: false, key: false, last: false, track: 0 })
    }

    fn take_any(&mut self, room: u16) -> Option<Offer> {
        let key = match self.front {
            Some(front) => front,
            None => self.choose()?,
        };
        let left = self.max_data - self.spent;
        let stream = self.streams.get_mut(key.place)?;
        if left == 0 && stream.lost.is_empty() && !stream.owes_fin() {
            return self.take_again(room);
        }
        Self::cut(stream, room, left).inspect(|offer| {
            let new = if offer.again { 0 } else { u64::from(offer.piece.length) };
            self.spent += new;
            self.all.unsent -= new;
            if key.track != 0 {
                self.led[led(key.track)].unsent -= new;
            }
            if offer.again || !self.streams[key.place].has_data() {
                self.list(key.place);
            }
            if !self.turns.is_empty() {
                self.turn(key);
            }
        })
    }

    /// The connection's limit lets nothing new leave.
    #[cold]
    fn take_again(&mut self, room: u16) -> Option<Offer> {
        let key = self.beyond_limit()?;
        let offer = Self::cut(&mut self.streams[key.place], room, 0)?;
        self.list(key.place);
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
        let header = StreamPiece::header(stream.id, start, true);
        let data = room.checked_sub(header)?;
        let mut piece = StreamPiece {
            offset: start,
            stream: stream.id,
            captured: Stamp(0),
            length: 0,
            fin: false,
            key: false,
            last: false,
            track: stream.kind.track,
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
        Some(Offer { piece, again, size: header + length })
    }

    /// A piece is of one frame: where it ends at the latest, which was to be by `end`.
    #[inline(never)]
    fn within_frame(stream: &Stream, piece: &mut StreamPiece, end: u64) -> u64 {
        let at = stream.marks.partition_point(|mark| mark.end <= piece.offset);
        let Some(mark) = stream.marks.get(at) else { return end };
        (piece.captured, piece.key) = (mark.captured, mark.key);
        piece.last = mark.whole && mark.end <= end;
        end.min(mark.end)
    }

    /// A piece has arrived.
    #[inline(always)]
    pub(super) fn acked(&mut self, piece: &StreamPiece) -> Gain {
        let Some((place, stream)) = self.of_id(piece.stream) else { return Gain::default() };
        // in order, with more to come: by far the most common
        let plain = stream.lost.is_empty() && stream.marks.is_empty() && !stream.finished && !stream.reset;
        if plain && piece.track == 0 && stream.acked.follow(piece.offset..piece.end()) {
            let bytes = u64::from(piece.length);
            self.all.owed -= bytes;
            return Gain { bytes, completed: false };
        }
        self.acked_any(place, piece)
    }

    #[inline(never)]
    fn acked_any(&mut self, place: u32, piece: &StreamPiece) -> Gain {
        let stream = &mut self.streams[place];
        let mut bytes = 0;
        let range = piece.offset..piece.end();
        stream.acked.insert(range.clone(), |part| bytes += part.end - part.start);
        let was_lost = !stream.lost.is_empty();
        if was_lost {
            stream.lost.remove(range);
        }
        stream.fin_acked |= piece.fin;
        if !stream.marks.is_empty() {
            let prefix = stream.acked.prefix();
            while stream.marks.front().is_some_and(|mark| mark.whole && mark.end <= prefix) {
                stream.marks.pop_front();
            }
        }
        if !stream.reset {
            self.all.owed -= bytes;
            if piece.track != 0 {
                self.led[led(piece.track)].owed -= bytes;
            }
        }
        if was_lost {
            self.list(place);
        }
        let stream = &mut self.streams[place];
        let completed = !stream.done && !stream.reset && stream.is_acked();
        if completed {
            stream.done = true;
            self.list(place);
            self.streams.retire(|stream| stream.done);
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
        self.list(place);
    }

    /// The other end takes so many bytes on all streams (MAX_DATA).
    pub(super) fn set_max_data(&mut self, limit: u64) {
        self.max_data = self.max_data.max(limit);
    }

    /// The other end takes so many bytes of a stream (MAX_STREAM_DATA).
    pub(super) fn set_limit(&mut self, id: u32, limit: u64) {
        let Some((place, stream)) = self.of_id(id) else { return };
        stream.limit = stream.limit.max(limit);
        self.list(place);
    }

    /// When the next deadline of a stream is.
    pub(super) fn next_deadline(&self) -> Time {
        self.streams.iter().map(Stream::due).min().unwrap_or(Time::NEVER)
    }

    /// Resets the streams whose deadline has come.
    pub(super) fn expire(&mut self, now: Time) -> Vec<Expired> {
        let due: Vec<u32> = self.streams.numbers().filter(|&place| self.streams[place].due() <= now).collect();
        due.into_iter().map(|place| self.reset_at(place)).collect()
    }

    /// Resets a stream, unless that was done, or all of it is acknowledged.
    pub(super) fn reset(&mut self, place: u32) -> Option<Expired> {
        let stream = self.get(place)?;
        (!stream.reset).then(|| self.reset_at(place))
    }

    fn reset_at(&mut self, place: u32) -> Expired {
        let stream = &mut self.streams[place];
        stream.reset = true;
        let acked: u64 = stream.acked.iter().map(|range| range.end - range.start).sum();
        let (track, frames) = (stream.kind.track, stream.marks.len() as u64);
        let expired = Expired { id: stream.id, size: stream.next, track, frames };
        let (owed, unsent) = (stream.written - acked, stream.written - stream.next);
        self.give_up(track, owed, unsent);
        self.list(place);
        expired
    }

    /// Where too much waits, the stream to give up, of the tracks for which that `may` be done: of those that leave last the oldest of
    /// which nothing has left, unless it is its track's newest, or else the oldest. Gives its rank as well.
    pub(super) fn lowest_priority(&self, may: impl Fn(u8) -> bool) -> Option<(u8, u32)> {
        let waits =
            |stream: &&Stream| !stream.reset && !stream.done && stream.next < stream.written && may(stream.kind.track);
        let rank = self.streams.iter().filter(waits).map(|stream| stream.kind.rank).max()?;
        let mut newest = [0; u8::MAX as usize + 1];
        for stream in self.streams.iter() {
            newest[usize::from(stream.kind.track)] = stream.id;
        }
        let all = || self.streams.iter().filter(waits).filter(|stream| stream.kind.rank == rank);
        let whole = |stream: &&Stream| stream.next == 0 && newest[usize::from(stream.kind.track)] != stream.id;
        let stream = all().find(whole).or_else(|| all().next())?;
        Some((rank, (stream.id - self.first_id) / ID_STEP))
    }

    /// The other end knows that a stream was reset.
    pub(super) fn reset_acked(&mut self, id: u32) {
        if let Some((_, stream)) = self.of_id(id) {
            stream.done = true;
            self.streams.retire(|stream| stream.done);
        }
    }
}

#[cfg(test)]
mod tests;

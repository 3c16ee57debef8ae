//! The sending side of streams (RFC 9000 section 3.1): written, sent and lost data.

mod stream;

use super::numbered::Numbered;
use super::ranges::Ranges;
use paceline_packet::Stamp;
use paceline_packet::quic::StreamPiece;
use paceline_units::Time;
use std::collections::{BTreeSet, VecDeque};
use stream::{Key, Mark, Stream};

pub(super) use stream::{Expired, Kind};

/// Length of a stream whose writer always has data; a connection has up to 255 of them.
pub(super) const ENDLESS: u64 = 1 << 53;
/// The first stream ids of a connection's client: unidirectional streams are 2, 6, 10...; bidirectional ones, for
/// requests and answers, are 0, 4, 8... (section 2.1).
pub(super) const FIRST_UNIDIRECTIONAL: u32 = 2;
pub(super) const FIRST_BIDIRECTIONAL: u32 = 0;
const ID_STEP: u32 = 4;

/// The next piece of a stream to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) piece: StreamPiece,
    /// Its data was sent before.
    pub(super) again: bool,
    /// Size in bytes of its frame, as the last one of a packet.
    pub(super) size: u16,
}

/// The effect of acknowledging a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Gain {
    /// Bytes newly acknowledged.
    pub(super) bytes: u64,
    /// The stream is now acknowledged completely.
    pub(super) completed: bool,
}

/// The unacknowledged and unsent data of a track.
#[derive(Clone, Copy, Default, Debug)]
struct Backlog {
    /// Bytes not acknowledged, on streams that were not reset; and the part of them never sent.
    owed: u64,
    unsent: u64,
}

/// The index of a track's account in `led`. The first track has none; its account is the total minus the others.
const fn led(track: u8) -> usize {
    (track as usize).wrapping_sub(1)
}

/// All streams that an end sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// In the order of opening.
    streams: Numbered<Stream>,
    /// Streams with data to send.
    ready: BTreeSet<Key>,
    /// The stream to send from next, if known.
    front: Option<Key>,
    /// For each rank, the track served last, if tracks of equal rank take turns; otherwise empty.
    turns: Vec<u8>,
    /// The id of the first stream.
    first_id: u32,
    /// The number of streams that the other end allows in total.
    max_streams: u32,
    /// The other end's MAX_DATA, and the bytes that count against it: those sent for the first time.
    max_data: u64,
    spent: u64,
    /// The initial MAX_STREAM_DATA of each stream.
    window: u64,
    /// The accounts of all tracks together, and of each but the first.
    all: Backlog,
    led: Vec<Backlog>,
}

impl Outgoing {
    /// Creates an empty set; the first stream gets id `first_id`. The other end allows `max_data` bytes in total,
    /// `window` bytes per stream, and `max_streams` streams.
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
            all: Backlog::default(),
            led: Vec::new(),
        }
    }

    /// Sets the ranks of the tracks, beginning with the first track.
    pub(super) fn set_tracks(&mut self, ranks: &[u8]) {
        self.led = vec![Backlog::default(); ranks.len().saturating_sub(1)];
        let alike = (1..ranks.len()).any(|at| ranks[..at].contains(&ranks[at]));
        self.turns = if alike { vec![u8::MAX; usize::from(u8::MAX) + 1] } else { Vec::new() };
    }

    /// The number of streams opened.
    pub(super) fn opened(&self) -> u32 {
        self.streams.next()
    }

    /// Whether another stream may be opened.
    pub(super) fn may_open(&self) -> bool {
        self.opened() < self.max_streams
    }

    /// Raises the number of streams that may be opened in total (MAX_STREAMS).
    pub(super) fn set_max_streams(&mut self, limit: u32) {
        self.max_streams = self.max_streams.max(limit);
    }

    /// Opens a stream and returns its index; call [`Outgoing::may_open`] first.
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

    /// Opens the streams up to this index that the other end has opened, to answer on them (section 3.2: data of an
    /// earlier one may arrive later).
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

    /// Appends to a stream; `finish`: this is the end of the stream.
    pub(super) fn write(&mut self, place: u32, bytes: u64, finish: bool) {
        let Some(stream) = self.get(place) else { return };
        let bytes = bytes.min(ENDLESS - stream.written.min(ENDLESS));
        stream.written += bytes;
        stream.finished |= finish;
        let track = stream.kind.track;
        for backlog in [Some(&mut self.all), self.led.get_mut(led(track))].into_iter().flatten() {
            backlog.owed += bytes;
            backlog.unsent += bytes;
        }
        self.list(place);
    }

    /// Appends a frame to a stream; the stream is reset if the frame is not acknowledged by `due`. `finish`: this is
    /// the end of the stream.
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

    /// Appends a part of a frame to a stream; `whole`: its last part.
    pub(super) fn write_part(&mut self, place: u32, bytes: u64, frame: (Stamp, Time), key: bool, whole: bool) {
        self.mark(place, bytes, frame, key, whole);
        self.write(place, bytes, false);
    }

    /// Records that the next bytes of a stream belong to a frame: the incomplete one, if there is one.
    fn mark(&mut self, place: u32, bytes: u64, (captured, due): (Stamp, Time), key: bool, whole: bool) {
        let Some(stream) = self.get(place) else { return };
        let end = stream.written + bytes;
        match stream.marks.back_mut().filter(|mark| !mark.whole) {
            Some(mark) => (mark.end, mark.whole) = (end, whole),
            None => stream.marks.push_back(Mark { end, captured, key, due, whole }),
        }
    }

    /// Whether a stream was reset, so that nothing can be written to it.
    pub(super) fn is_reset(&mut self, place: u32) -> bool {
        self.get(place).is_none_or(|stream| stream.reset)
    }

    /// Makes a stream endless: its writer always has data.
    pub(super) fn write_endlessly(&mut self, place: u32) {
        self.write(place, ENDLESS, false);
    }

    /// Withdraws a track's unsent data; with `finish`, also ends its streams. Finished streams are reset, because a
    /// truncated one must not appear complete (RFC 9000 section 3.1); returns these.
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

    /// Subtracts bytes that will not be acknowledged, and the part of them that will not be sent.
    #[inline]
    fn give_up(&mut self, track: u8, owed: u64, unsent: u64) {
        for backlog in [Some(&mut self.all), self.led.get_mut(led(track))].into_iter().flatten() {
            backlog.owed -= owed;
            backlog.unsent -= unsent;
        }
    }

    /// Whether everything written has been acknowledged or given up.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.all.owed == 0
    }

    /// Whether everything that a track wrote has been acknowledged or given up.
    pub(super) fn has_settled(&self, track: u8) -> bool {
        self.of_track(track).owed == 0
    }

    /// Bytes of a track that were never sent.
    pub(super) fn unsent(&self, track: u8) -> u64 {
        self.of_track(track).unsent
    }

    fn of_track(&self, track: u8) -> Backlog {
        let others = || {
            self.led.iter().fold(self.all, |all, backlog| Backlog {
                owed: all.owed - backlog.owed,
                unsent: all.unsent - backlog.unsent,
            })
        };
        self.led.get(led(track)).copied().unwrap_or_else(others)
    }

    /// Whether any stream has data to send, apart from the congestion window and the connection's limit.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.front.is_some() || !self.ready.is_empty()
    }

    /// Whether the streams have at least `bytes` to send within the other end's limits, apart from the congestion
    /// window.
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

    /// The first stream that may send although the connection's limit is reached: lost data, and a FIN (RFC 9000
    /// section 4.1).
    #[cold]
    fn beyond_limit(&self) -> Option<Key> {
        let stream = |key: &Key| &self.streams[key.place];
        self.ready.iter().find(|key| !stream(key).lost.is_empty() || stream(key).owes_fin()).copied()
    }

    /// Updates a stream's entry in `ready`.
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

    /// The rank of the next data to send, if the connection's limit allows any.
    pub(super) fn rank(&self) -> Option<u8> {
        let first =
            if self.spent == self.max_data { self.beyond_limit() } else { self.front.or(self.ready.first().copied()) };
        first.map(|key| key.rank)
    }

    /// Selects the stream to send from next: among tracks of equal rank, the one after the track served last.
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

    /// Records that a track was served, so that the next one takes its turn.
    #[cold]
    fn turn(&mut self, key: Key) {
        self.turns[usize::from(key.rank)] = key.track;
        self.front = None;
    }

    /// Takes the next piece for a packet with `room` bytes left for a frame, the last of its packet; it counts as sent.
    /// `None` if there is no data, the connection's limit is reached, or there is too little room.
    #[inline]
    pub(super) fn take(&mut self, room: u16) -> Option<Offer> {
        self.take_full(room).map(|piece| Offer { piece, again: false, size: room }).or_else(|| self.take_any(room))
    }

    /// [`Outgoing::take`] in the most common case: the first stream has no frames and no turns, and more new data than
    /// fits. `None`: nothing was done.
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

    /// Takes a piece that the connection's limit, already reached, still allows.
    #[cold]
    fn take_again(&mut self, room: u16) -> Option<Offer> {
        let key = self.beyond_limit()?;
        let offer = Self::cut(&mut self.streams[key.place], room, 0)?;
        self.list(key.place);
        Some(offer)
    }

    /// Cuts a piece of a stream: lost data first, otherwise up to `left` new bytes.
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

    /// Limits a piece to one frame: returns its end, which is at most `end`.
    #[inline(never)]
    fn within_frame(stream: &Stream, piece: &mut StreamPiece, end: u64) -> u64 {
        let at = stream.marks.partition_point(|mark| mark.end <= piece.offset);
        let Some(mark) = stream.marks.get(at) else { return end };
        (piece.captured, piece.key) = (mark.captured, mark.key);
        piece.last = mark.whole && mark.end <= end;
        end.min(mark.end)
    }

    /// Processes the acknowledgement of a piece.
    #[inline(always)]
    pub(super) fn acked(&mut self, piece: &StreamPiece) -> Gain {
        let Some((place, stream)) = self.of_id(piece.stream) else { return Gain::default() };
        // in order, with more to follow: the most common case
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

    /// Marks a lost piece for retransmission, except what has been acknowledged meanwhile.
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

    /// Raises the limit of bytes on all streams (MAX_DATA).
    pub(super) fn set_max_data(&mut self, limit: u64) {
        self.max_data = self.max_data.max(limit);
    }

    /// Raises the limit of bytes on a stream (MAX_STREAM_DATA).
    pub(super) fn set_limit(&mut self, id: u32, limit: u64) {
        let Some((place, stream)) = self.of_id(id) else { return };
        stream.limit = stream.limit.max(limit);
        self.list(place);
    }

    /// The earliest deadline of a stream.
    pub(super) fn next_deadline(&self) -> Time {
        self.streams.iter().map(Stream::due).min().unwrap_or(Time::NEVER)
    }

    /// Resets the streams whose deadline has passed.
    pub(super) fn expire(&mut self, now: Time) -> Vec<Expired> {
        let due: Vec<u32> = self.streams.numbers().filter(|&place| self.streams[place].due() <= now).collect();
        due.into_iter().map(|place| self.reset_at(place)).collect()
    }

    /// Resets a stream, unless it was reset before or is acknowledged completely.
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

    /// The stream to drop if too much waits, among tracks for which `may` holds. Of those with the lowest priority, it
    /// is the oldest of which nothing was sent and which is not its track's newest; if there is none, the oldest. Also
    /// returns its rank.
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

    /// Processes the acknowledgement of a RESET_STREAM.
    pub(super) fn reset_acked(&mut self, id: u32) {
        if let Some((_, stream)) = self.of_id(id) {
            stream.done = true;
            self.streams.retire(|stream| stream.done);
        }
    }
}

#[cfg(test)]
mod tests;

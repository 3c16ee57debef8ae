//! A receiver of live video whose frames need those before them: a jitter buffer, and requests for key frames.
//!
//! Each frame needs the one before it, a key frame none. One is decoded when all its packets have come and what it needs is
//! decoded, and shown at its play-out time, or at once if that is over: it is late then. A key frame that is whole is decoded
//! whatever is missing before it; the frames between are lost, or cannot be decoded. Decoding takes no time.
//!
//! The play-out time is the capture, the mean delay of frames and a margin of four times their mean deviation from it, within
//! bounds: algorithm 1 of R. Ramjee, J. Kurose, D. Towsley, H. Schulzrinne, "Adaptive Playout Mechanisms for Packetized Audio
//! Applications in Wide-Area Networks", INFOCOM 1994, with its factor of 0.998002, applied to each frame where it has talk
//! spurts. A frame's delay is that until it can be decoded, so that what retransmissions take is part of it; the first ones
//! are averaged with equal weights. libwebrtc's buffer has a Kalman filter in its place.
//!
//! A key frame is asked for when frames cannot go on for so long, as libwebrtc's `VideoReceiveStream2` does after 3 s, and
//! again each 200 ms, its wait for a key frame, until a frame can be decoded.

use crate::picture::Picture;
use crate::viewer::ViewReport;
use paceline_units::{Offset, Span, Time};
use std::collections::VecDeque;

/// Weight of a new frame in the means.
const WEIGHT: f64 = 1.0 - 0.998_002;
/// Deviations that make the margin.
const DEVIATIONS: f64 = 4.0;
/// From one request for a key frame to the next.
const ASK_AGAIN: Span = Span::from_millis(200);
/// Packets that are remembered.
const KEPT: usize = 4096;
/// A jump of so many numbers is no gap: the numbers begin anew.
const MAX_JUMP: usize = 3000;

/// Captures that are further apart, in ns, are of different frames; stamps are of 256 ns.
const FRAMES_APART: i64 = 1000;

/// What a buffer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayoutModel {
    /// The least margin above the frames' mean delay.
    pub min_margin: Span,
    /// The greatest.
    pub max_margin: Span,
    /// A key frame is asked for when the next frame has been missing for so long after packets that follow it.
    pub patience: Span,
}

/// A packet as it arrives, or as it was when it is sent again.
#[derive(Clone, Copy, Debug)]
pub struct MediaPacket {
    /// Its number.
    pub sequence: u16,
    /// What it carries.
    pub part: Part,
    /// When its frame was captured: by the clock of who watches, from which the sender's may differ by any time that stays.
    pub captured: Offset,
    /// Whether it is the last of its frame.
    pub last: bool,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Of a frame that needs the one before it.
    Delta,
    /// Of a key frame.
    Key,
    /// Nothing.
    Filler,
}

/// What became of the frames, beside [`ViewReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayoutReport {
    /// Frames that were shown.
    pub shown: u64,
    /// Of these, after their play-out time.
    pub late: u64,
    /// Frames of which all packets came, but never what they need.
    pub undecodable: u64,
    /// Frames that wait: for their time, or for what they need.
    pub waiting: u64,
    /// Key frames of which all packets came.
    pub keys: u64,
    /// From the arrival of their first packets to their showing, of those shown in all (`jitterBufferDelay`; `shown` is
    /// `jitterBufferEmittedCount`).
    pub buffered: Span,
}

impl PlayoutReport {
    /// The mean time in the buffer; `None` without a frame.
    #[must_use]
    pub fn mean_buffered(&self) -> Option<Span> {
        self.buffered.0.checked_div(self.shown).map(Span)
    }
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    at: Time,
    part: Part,
    captured: Offset,
    last: bool,
}

impl Packet {
    /// Whether the two are of different frames: what two packets of one say of its capture differs by a stamp's tick at most.
    fn is_apart_from(&self, other: &Packet) -> bool {
        (self.captured.0 - other.captured.0).abs() > FRAMES_APART
    }
}

/// A frame that can be decoded, until it is shown.
#[derive(Clone, Copy, Debug)]
struct Ready {
    shown: Time,
    captured: Offset,
    first: Time,
    late: bool,
}

/// The delay of frames. If the sender's clock is another all are longer or shorter by the same, and so is their mean: play-out
/// times, which are captures and this, stay as they are.
#[derive(Clone, Debug, Default)]
struct Delay {
    frames: u64,
    /// In seconds.
    mean: f64,
    deviation: f64,
}

impl Delay {
    fn add(&mut self, delay: Offset) {
        self.frames += 1;
        let weight = WEIGHT.max(1.0 / self.frames as f64);
        let delay = delay.as_secs_f64();
        self.mean += weight * (delay - self.mean);
        self.deviation += weight * ((delay - self.mean).abs() - self.deviation);
    }

    /// Rounded to the nanosecond.
    fn mean(&self) -> Offset {
        Offset(libm::floor(self.mean * 1e9 + 0.5) as i64)
    }
}

/// The buffer, with its screen.
#[derive(Clone, Debug)]
pub struct FrameBuffer {
    model: PlayoutModel,
    picture: Picture,
    /// The number of the first packet that is not decoded.
    base: u16,
    packets: VecDeque<Option<Packet>>,
    /// A packet has come.
    began: bool,
    /// Packets of the next frame that have come in a row.
    whole: usize,
    /// What the next frame needs is decoded.
    chained: bool,
    delay: Delay,
    ready: VecDeque<Ready>,
    /// When the last frame is shown, of those that are ready too.
    last: Time,
    /// When a key frame is to be asked for.
    ask: Time,
    counts: PlayoutReport,
}

impl FrameBuffer {
    /// One that waits for a picture from `start` on.
    #[must_use]
    pub fn new(model: PlayoutModel, start: Time) -> FrameBuffer {
        FrameBuffer {
            model,
            picture: Picture::new(start),
            base: 0,
            packets: VecDeque::new(),
            began: false,
            whole: 0,
            chained: false,
            delay: Delay::default(),
            ready: VecDeque::new(),
            last: Time::ZERO,
            ask: Time::NEVER,
            counts: PlayoutReport::default(),
        }
    }

    /// Frames that are `captured` then or later count, and freezes that end after `at`, which is now.
    pub fn measure_from(&mut self, at: Time, captured: Offset) {
        self.play(at);
        self.picture.measure_from(at, captured);
        self.counts = PlayoutReport::default();
    }

    /// When a key frame is to be asked for; never while frames go on.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.ask
    }

    /// Whether a key frame is to be asked for now, which counts as done.
    pub fn asks(&mut self, now: Time) -> bool {
        let asks = self.ask <= now;
        if asks {
            self.ask = now + ASK_AGAIN;
        }
        asks
    }

    /// A packet has come. Copies, and what comes after its frame was given up, change nothing.
    pub fn on_packet(&mut self, now: Time, packet: &MediaPacket) {
        self.play(now);
        let mut place = usize::from(packet.sequence.wrapping_sub(self.base));
        if !self.began || place > self.packets.len() + MAX_JUMP && place < usize::from(u16::MAX / 2) {
            self.drop_until(self.packets.len());
            (self.began, self.base, place) = (true, packet.sequence, 0);
        } else if place >= usize::from(u16::MAX / 2) {
            return;
        }
        if place >= self.packets.len() {
            self.packets.resize(place + 1, None);
        }
        if self.packets[place].is_some() {
            return;
        }
        let MediaPacket { part, captured, last, .. } = *packet;
        self.packets[place] = Some(Packet { at: now, part, captured, last: last || part == Part::Filler });
        let waited = self.base;
        if place > self.whole {
            // what is missing before may be given up for a key frame
            if !self.jump(place) && last {
                self.jump(place + 1);
            }
        }
        self.go_on(now);
        if self.packets.len() > KEPT {
            self.drop_until(self.packets.len() - KEPT);
        }
        // a key frame of which nothing is missing so far needs no other
        let comes = matches!(self.packets.front(), Some(Some(came)) if came.part == Part::Key);
        let stands = self.packets.len() > self.whole || !self.chained && !comes;
        if !stands {
            self.ask = Time::NEVER;
        } else if self.ask == Time::NEVER || self.chained && self.base != waited {
            self.ask = now + self.model.patience;
        }
    }

    /// Decodes what can be.
    fn go_on(&mut self, now: Time) {
        while let Some(&Some(packet)) = self.packets.get(self.whole) {
            // of a frame that its sender gave up there is no last packet
            if self.whole > 0 && self.packets[self.whole - 1].is_some_and(|before| before.is_apart_from(&packet)) {
                self.drop_until(self.whole);
                continue;
            }
            self.whole += 1;
            if !packet.last {
                continue;
            }
            let packets = self.packets.drain(..self.whole).flatten();
            let first = packets.map(|packet| packet.at).min().unwrap_or(now);
            self.base = self.base.wrapping_add(self.whole as u16);
            self.whole = 0;
            self.frame(now, packet, first);
        }
    }

    /// All packets of the next frame have come.
    fn frame(&mut self, now: Time, packet: Packet, first: Time) {
        let Packet { part, captured, .. } = packet;
        let counts = u64::from(self.picture.counts(captured));
        match part {
            Part::Filler => return,
            Part::Key => (self.chained, self.counts.keys) = (true, self.counts.keys + counts),
            Part::Delta if !self.chained => {
                self.counts.undecodable += counts;
                return;
            }
            Part::Delta => {}
        }
        let margin = Span::from_secs_f64(DEVIATIONS * self.delay.deviation);
        let margin = margin.min(self.model.max_margin).max(self.model.min_margin);
        let delay = Offset::at(now) - captured;
        let mean = if self.delay.frames == 0 { delay } else { self.delay.mean() };
        let due = (captured + mean + margin).time();
        self.delay.add(delay);
        self.picture.on_complete(now, captured);
        self.last = due.max(now).max(self.last);
        self.ready.push_back(Ready { shown: self.last, captured, first, late: due < now });
        self.play(now);
    }

    /// Shows what is due.
    fn play(&mut self, now: Time) {
        while let Some(&frame) = self.ready.front().filter(|frame| frame.shown <= now) {
            self.ready.pop_front();
            self.picture.keep(frame.shown, frame.captured);
            self.picture.show(frame.shown, frame.captured);
            if self.picture.counts(frame.captured) {
                self.counts.shown += 1;
                self.counts.late += u64::from(frame.late);
                self.counts.buffered += frame.shown.since(frame.first);
            }
        }
    }

    /// If the packet at `place` is of a key frame that is whole, what lies before it is given up. Where it begins, the end of the
    /// frame before shows; when in doubt it is not whole. Whether
    /// that happened.
    fn jump(&mut self, place: usize) -> bool {
        let is_key = |packet: &Option<Packet>| packet.is_some_and(|packet| packet.part == Part::Key);
        if !self.packets.get(place).is_some_and(is_key) {
            return false;
        }
        let before = self.packets.range(..place).rposition(|packet| packet.is_none_or(|packet| packet.last));
        let Some(before) = before.filter(|&before| self.packets[before].is_some()) else { return false };
        let ends = self.packets.range(place..).find(|packet| packet.is_none_or(|packet| packet.last));
        let whole = ends.is_some_and(Option::is_some);
        if whole {
            self.drop_until(before + 1);
        }
        whole
    }

    /// What lies before `place` is given up, and so are the frames that need it.
    fn drop_until(&mut self, place: usize) {
        self.counts.undecodable += self.complete(place, |_| true);
        self.counts.keys += self.complete(place, |packet| packet.part == Part::Key);
        self.packets.drain(..place);
        self.base = self.base.wrapping_add(place as u16);
        (self.whole, self.chained) = (0, false);
    }

    /// Frames before `place` of which all packets have come and that count.
    fn complete(&self, place: usize, of: impl Fn(&Packet) -> bool) -> u64 {
        let (mut count, mut whole) = (0, true);
        for packet in self.packets.range(..place) {
            let Some(packet) = packet else {
                whole = false;
                continue;
            };
            if packet.last {
                count += u64::from(
                    whole && packet.part != Part::Filler && of(packet) && self.picture.counts(packet.captured),
                );
                whole = true;
            }
        }
        count
    }

    /// The least time from a frame's capture until it could be decoded, of all so far, whether they count or not.
    #[must_use]
    pub fn min_delay(&self) -> Option<Offset> {
        self.picture.min_delay()
    }

    /// A row of a recording, as [`Viewer::sample`](crate::viewer::Viewer::sample) gives it, of frames that were shown.
    pub fn sample(&mut self, now: Time) -> [f64; 4] {
        self.play(now);
        self.picture.sample(now)
    }

    /// What became of the frames, watched until `end`.
    #[must_use]
    pub fn report(&self, end: Time) -> ViewReport {
        let mut until = self.clone();
        until.play(end);
        let mut counts = until.counts;
        let ready = until.ready.iter().filter(|frame| until.picture.counts(frame.captured)).count() as u64;
        counts.waiting = ready + until.complete(until.packets.len(), |_| true);
        let complete = counts.shown + counts.undecodable + counts.waiting;
        ViewReport { complete, playout: Some(counts), ..until.picture.report(end) }
    }
}

#[cfg(test)]
mod tests;

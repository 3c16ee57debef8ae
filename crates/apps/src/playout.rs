//! A receiver of live video with dependent frames: a jitter buffer, and key frame requests.
//!
//! Each frame depends on the previous one, except key frames. A frame is decoded when all its packets have arrived and
//! its dependency is decoded. It is shown at its play-out time, or at once if that has passed: it is then late. A
//! complete key frame is decoded whatever is missing before it; frames in between are lost, or undecodable. Decoding
//! takes no time.
//!
//! The play-out time is the capture time, plus the mean delay of frames, plus a margin of four times their mean
//! deviation, within bounds: algorithm 1 of R. Ramjee, J. Kurose, D. Towsley, H. Schulzrinne, "Adaptive Playout
//! Mechanisms for Packetized Audio Applications in Wide-Area Networks", INFOCOM 1994, with its factor of 0.998002,
//! applied to each frame instead of each talk spurt. A frame's delay lasts until it can be decoded, so it includes
//! retransmissions; the first frames are averaged with equal weights. libwebrtc's buffer uses a Kalman filter instead.
//!
//! A key frame is requested when decoding has been blocked for a time, as libwebrtc's `VideoReceiveStream2` does after
//! 3 s, and again every 200 ms, its wait for a key frame, until a frame can be decoded.

use crate::picture::Picture;
use crate::viewer::ViewReport;
use paceline_units::{Offset, Span, Time};
use std::collections::VecDeque;

/// Weight of a new frame in the means.
const WEIGHT: f64 = 1.0 - 0.998_002;
/// The margin in mean deviations.
const DEVIATIONS: f64 = 4.0;
/// The interval between key frame requests.
const MAX_WAIT_FOR_KEY_FRAME: Span = Span::from_millis(200);
/// The maximum number of packets kept.
const MAX_PACKETS: usize = 4096;
/// A jump of the sequence number beyond this is no gap: numbering has restarted.
const MAX_JUMP: usize = 3000;

/// Capture times further apart than this, in ns, are of different frames; stamps have a resolution of 256 ns.
const FRAMES_APART: i64 = 1000;

/// The jitter buffer's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayoutModel {
    /// The minimum margin above the frames' mean delay.
    pub min_margin: Span,
    /// The maximum margin.
    pub max_margin: Span,
    /// How long the next frame must be missing, after packets that follow it, before a key frame is requested.
    pub patience: Span,
}

/// A packet as it arrives, or its content when retransmitted.
#[derive(Clone, Copy, Debug)]
pub struct MediaPacket {
    /// Its sequence number.
    pub sequence: u16,
    /// Its content.
    pub part: Part,
    /// Capture time of its frame, on the receiver's clock; the sender's clock may have any constant offset.
    pub captured: Offset,
    /// Whether it is the last of its frame.
    pub last: bool,
}

/// A packet's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Part of a frame that depends on the previous one.
    Delta,
    /// Part of a key frame.
    Key,
    /// Padding.
    Filler,
}

/// The fates of frames, in addition to [`ViewReport`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayoutReport {
    /// Frames that were shown.
    pub shown: u64,
    /// Frames shown after their play-out time.
    pub late: u64,
    /// Complete frames whose dependency never became decodable.
    pub undecodable: u64,
    /// Frames waiting for their play-out time or their dependency.
    pub waiting: u64,
    /// Complete key frames.
    pub keys: u64,
    /// Total time from the arrival of a frame's first packet to its display, over all shown frames
    /// (`jitterBufferDelay`; `shown` is `jitterBufferEmittedCount`).
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
    /// Whether the two packets are of different frames: capture times in one frame differ by at most a tick of the
    /// stamp.
    fn is_apart_from(&self, other: &Packet) -> bool {
        (self.captured.0 - other.captured.0).abs() > FRAMES_APART
    }
}

/// A decodable frame, until it is shown.
#[derive(Clone, Copy, Debug)]
struct Ready {
    shown: Time,
    captured: Offset,
    first: Time,
    late: bool,
}

/// The delay of frames. An offset of the sender's clock shifts all delays and their mean by the same amount, so
/// play-out times (capture plus mean) do not change.
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

    /// The mean, rounded to the nanosecond.
    fn mean(&self) -> Offset {
        Offset(libm::floor(self.mean * 1e9 + 0.5) as i64)
    }
}

/// The jitter buffer, with its screen.
#[derive(Clone, Debug)]
pub struct FrameBuffer {
    model: PlayoutModel,
    picture: Picture,
    /// The sequence number of the first packet that is not decoded.
    base: u16,
    packets: VecDeque<Option<Packet>>,
    /// Whether a packet has arrived.
    began: bool,
    /// The number of consecutive packets of the next frame that have arrived.
    whole: usize,
    /// Whether the next frame's dependency is decoded.
    dependency_decoded: bool,
    delay: Delay,
    ready: VecDeque<Ready>,
    /// The display time of the latest frame, including those in `ready`.
    last: Time,
    /// When to request a key frame.
    next_key_request: Time,
    counts: PlayoutReport,
}

impl FrameBuffer {
    /// A buffer that expects a picture from `start` on.
    #[must_use]
    pub fn new(model: PlayoutModel, start: Time) -> FrameBuffer {
        FrameBuffer {
            model,
            picture: Picture::new(start),
            base: 0,
            packets: VecDeque::new(),
            began: false,
            whole: 0,
            dependency_decoded: false,
            delay: Delay::default(),
            ready: VecDeque::new(),
            last: Time::ZERO,
            next_key_request: Time::NEVER,
            counts: PlayoutReport::default(),
        }
    }

    /// Counts frames captured at `captured` or later, and freezes that end after `at`, the current time.
    pub fn measure_from(&mut self, at: Time, captured: Offset) {
        self.play(at);
        self.picture.measure_from(at, captured);
        self.counts = PlayoutReport::default();
    }

    /// When to request a key frame; never while decoding proceeds.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.next_key_request
    }

    /// Whether to request a key frame now; if so, the request counts as sent.
    pub fn take_key_request(&mut self, now: Time) -> bool {
        let is_due = self.next_key_request <= now;
        if is_due {
            self.next_key_request = now + MAX_WAIT_FOR_KEY_FRAME;
        }
        is_due
    }

    /// A packet has arrived. Duplicates, and packets of a frame that was given up, have no effect.
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
            // missing packets before it may be given up for a key frame
            if !self.skip_to_key_frame(place) && last {
                self.skip_to_key_frame(place + 1);
            }
        }
        self.decode_complete_frames(now);
        if self.packets.len() > MAX_PACKETS {
            self.drop_until(self.packets.len() - MAX_PACKETS);
        }
        // a key frame without gaps so far makes a request unnecessary
        let key_in_progress = matches!(self.packets.front(), Some(Some(first)) if first.part == Part::Key);
        let is_blocked = self.packets.len() > self.whole || !self.dependency_decoded && !key_in_progress;
        if !is_blocked {
            self.next_key_request = Time::NEVER;
        } else if self.next_key_request == Time::NEVER || self.dependency_decoded && self.base != waited {
            self.next_key_request = now + self.model.patience;
        }
    }

    /// Decodes all complete frames at the front.
    fn decode_complete_frames(&mut self, now: Time) {
        while let Some(&Some(packet)) = self.packets.get(self.whole) {
            // a frame that the sender abandoned has no last packet
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

    /// All packets of the next frame have arrived.
    fn frame(&mut self, now: Time, packet: Packet, first: Time) {
        let Packet { part, captured, .. } = packet;
        let counts = u64::from(self.picture.counts(captured));
        match part {
            Part::Filler => return,
            Part::Key => (self.dependency_decoded, self.counts.keys) = (true, self.counts.keys + counts),
            Part::Delta if !self.dependency_decoded => {
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

    /// Shows the frames that are due.
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

    /// If the packet at `place` belongs to a complete key frame, gives up everything before that frame. The end of the
    /// previous frame shows where it begins; in doubt it counts as incomplete. Returns whether this happened.
    fn skip_to_key_frame(&mut self, place: usize) -> bool {
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

    /// Gives up everything before `place`, and so the frames that depend on it.
    fn drop_until(&mut self, place: usize) {
        self.counts.undecodable += self.complete(place, |_| true);
        self.counts.keys += self.complete(place, |packet| packet.part == Part::Key);
        self.packets.drain(..place);
        self.base = self.base.wrapping_add(place as u16);
        (self.whole, self.dependency_decoded) = (0, false);
    }

    /// The number of complete frames before `place` that count.
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

    /// The minimum time from a frame's capture until it was decodable, over all frames so far, whether they count or
    /// not.
    #[must_use]
    pub fn min_delay(&self) -> Option<Offset> {
        self.picture.min_delay()
    }

    /// A row of a recording, as from [`Viewer::sample`](crate::viewer::Viewer::sample), for frames that were shown.
    pub fn sample(&mut self, now: Time) -> [f64; 4] {
        self.play(now);
        self.picture.sample(now)
    }

    /// The report on the frames, watched until `end`.
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

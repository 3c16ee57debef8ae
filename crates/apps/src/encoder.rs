//! A live video encoder: frames at a fixed rate, whose sizes follow a target.
//!
//! The statistical model of RFC 8593 section 5 (X. Zhu, S. Mena, Z. Sarker, "Video Traffic Models for RTP Congestion Control
//! Evaluations", 2019), with key frames besides: a new target is followed at once, but then none for a reaction time; an abrupt one
//! begins a burst, a large frame for which the next ones make up; a frame's size is its share of the rate, and the interval before the
//! next its share of a second, each times a Laplace draw around 1; a key frame is several times as large as others, and the frames that
//! follow it make up for it.
//!
//! What differs from the RFC: sizes may be uniform instead, as where SCReAM's authors measured theirs; a draw below a tenth counts as a tenth. What is abrupt it leaves open (`change`, as in its reference
//! implementation, `syncodecs`). With a [`Ladder`] it is the trace-driven model (section 6): frames have recorded sizes, from the first on
//! where a key frame is asked for.

use crate::application::{Action, Period};
use crate::ladder::Ladder;
use paceline_random::{Sequence, Stream};
use paceline_units::{Rate, Size, Span, Time};

/// A key frame and those that make up for it.
const TRANSIENT: u32 = 8;
/// The least of a frame's share that its draw, or a key frame before it, leaves.
const MIN_SHARE: f64 = 0.1;
/// Of requests for key frames, those so soon after another are ignored (libwebrtc's `EncoderRtcpFeedback`).
const MIN_KEY_FRAME_INTERVAL: Span = Span::from_millis(300);

/// What an encoder is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderModel {
    /// Frames a second; above zero.
    pub frame_rate: f64,
    /// The target is taken as no less than this, and so it is before there is one.
    pub min_rate: Rate,
    /// Nor as more than this.
    pub max_rate: Rate,
    /// How far frame sizes lie from their mean, as a share of it: a Laplace law's scale, a uniform one's bound.
    pub jitter: f64,
    /// The law of frame sizes.
    pub jitter_law: JitterLaw,
    /// The same of the intervals between frames (`SCALE_t`).
    pub interval_jitter: f64,
    /// What an abrupt change of the rate begins.
    pub burst: Option<Burst>,
    /// After a change of the rate none follows for so long.
    pub reaction: Span,
    /// From one key frame to the next; zero: only the first frame is one.
    pub key_interval: Span,
    /// A key frame's size over that of a mean frame: from 1 to 8.
    pub key_size: f64,
    /// Payload of a full packet; not zero.
    pub segment: Size,
    /// Headers of a packet, which the target rate counts as well.
    pub header: Size,
    /// What frames need.
    pub needs: FrameNeeds,
    /// A frame is skipped when what waits at the sender takes longer than this to leave.
    pub max_queue: Span,
}

/// A large frame and those that make up for it (RFC 8593 section 5.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// The large one, headers included, unless a mean frame is larger (`K_B`).
    pub size: Size,
    /// All of them (`K_d`), two or more.
    pub frames: u32,
    /// A change is abrupt that is by more than this share of the rate before.
    pub change: f64,
}

/// How sizes of frames are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterLaw {
    /// RFC 8593's: near the mean as a rule, now and then far from it.
    Laplace,
    /// Each distance up to the bound as often as another.
    Uniform,
}

/// What frames need to be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameNeeds {
    /// Nothing: each stands for itself.
    Nothing,
    /// The frame before, unless they are key frames.
    Before,
}

/// An encoder.
#[derive(Clone, Debug)]
pub struct Encoder {
    model: EncoderModel,
    period: Period,
    draws: Sequence,
    /// Of intervals.
    gaps: Sequence,
    /// Frames so far.
    frames: u64,
    /// By how many mean intervals the next frame is later than by the clock.
    drift: f64,
    /// Frames captured since measuring began, and since when that is.
    counted: u64,
    from: Time,
    /// Bits a second, headers included.
    rate: Rate,
    /// The rate may change from here on.
    ready: Time,
    /// Frames since the last key frame, that included.
    since_key: u32,
    next_key: Time,
    /// Frames of a burst that are to come.
    in_burst: u32,
    /// What frames are recorded, and the next one.
    ladder: Option<(Ladder, usize)>,
    /// When it captures nothing, the first to come last; and the last of those that no frame is before.
    pauses: Vec<Period>,
    pause: Option<Period>,
    stopped: bool,
    /// How long what waits at the sender takes to leave.
    queueing: Span,
    /// Frames skipped since measuring began.
    skipped: u64,
    /// The last frame is a key frame.
    made_key: bool,
    /// Requests for key frames count from here on.
    heeds: Time,
}

impl Encoder {
    /// The first frame is captured at the period's start.
    #[must_use]
    pub fn new(model: EncoderModel, stream: Stream, period: Period) -> Encoder {
        Encoder {
            model,
            period,
            draws: Sequence::new(stream),
            gaps: Sequence::new(stream.fork(1)),
            frames: 0,
            drift: 0.0,
            counted: 0,
            from: Time::ZERO,
            rate: model.min_rate,
            ready: Time::ZERO,
            since_key: 0,
            next_key: period.start,
            in_burst: 0,
            ladder: None,
            pauses: Vec::new(),
            pause: None,
            stopped: false,
            queueing: Span::ZERO,
            skipped: 0,
            made_key: false,
            heeds: Time::ZERO,
        }
    }

    /// Nothing is captured in these periods, which lie apart; the first frame after one is a key frame. Frames keep their
    /// instants; with draws of intervals the first one after comes at the pause's end.
    #[must_use]
    pub fn pausing(mut self, mut pauses: Vec<Period>) -> Encoder {
        pauses.sort_by_key(|pause| core::cmp::Reverse(pause.start));
        self.pauses = pauses;
        self.skip();
        self
    }

    /// Frames have recorded sizes: the model's jitter of sizes, bursts and key frames at intervals are without meaning.
    #[must_use]
    pub fn playing(mut self, ladder: Ladder) -> Encoder {
        self.ladder = Some((ladder, 0));
        self
    }

    /// The next frame is none that lies in a pause.
    fn skip(&mut self) {
        while let Some(&pause) = self.pauses.last() {
            let next = self.capture(self.frames);
            if next < pause.start {
                return;
            }
            self.pause = self.pauses.pop();
            if next < pause.stop {
                let within = pause.stop.since(self.period.start).as_secs_f64() * self.model.frame_rate;
                self.frames = (libm::ceil(within - 1e-9) as u64).max(self.frames + 1);
                if self.model.interval_jitter > 0.0 {
                    self.drift = within - self.frames as f64;
                }
                self.next_key = self.capture(self.frames);
            }
        }
    }

    /// What the connection would have it send, headers included.
    pub fn aim(&mut self, target: Rate, now: Time) {
        let rate = Rate(target.0.min(self.model.max_rate.0).max(self.model.min_rate.0));
        if now >= self.ready && rate != self.rate {
            let change = (rate.bps() / self.rate.bps() - 1.0).abs();
            self.in_burst =
                self.model.burst.filter(|burst| change > burst.change).map_or(self.in_burst, |burst| burst.frames);
            self.rate = rate;
            self.ready = now + self.model.reaction;
        }
    }

    /// Its rate: what it last followed of what the connection would have it send.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The greatest rate, and a frame of it.
    pub(crate) fn pace(&self) -> (f64, Size) {
        let rate = self.model.max_rate.bps();
        (rate, Size((rate / 8.0 / self.model.frame_rate) as u64))
    }

    /// What it could send at most at `now`, in bits a second with all headers: nothing in a pause, and once it is over.
    #[must_use]
    pub fn demand(&self, now: Time) -> f64 {
        let pauses = self.pause.is_some_and(|pause| pause.start <= now && now < pause.stop);
        if pauses || self.stopped || now >= self.period.stop { 0.0 } else { self.model.max_rate.bps() }
    }

    /// Frames from `at` on count.
    pub fn measure_from(&mut self, at: Time) {
        self.from = at;
        (self.counted, self.skipped) = (0, 0);
    }

    /// What waits at the sender takes so long to leave.
    pub fn press(&mut self, queueing: Span) {
        self.queueing = queueing;
    }

    /// The receiver asks for a key frame: the next frame is one.
    pub fn request_key(&mut self, now: Time) {
        if now >= self.heeds {
            self.begin_anew(now);
        }
    }

    /// What its sender had of it has been thrown away: the next frame is a key frame.
    pub fn begin_anew(&mut self, now: Time) {
        self.heeds = now + MIN_KEY_FRAME_INTERVAL;
        self.next_key = self.next_key.min(now);
    }

    /// Whether the last frame is a key frame that others need.
    #[must_use]
    pub fn made_key(&self) -> bool {
        self.made_key && self.model.needs == FrameNeeds::Before
    }

    /// How many frames have been skipped since measuring began.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many frames have been captured and not skipped since measuring began.
    #[must_use]
    pub fn captured(&self) -> u64 {
        self.counted
    }

    /// When frame `index` is captured.
    fn capture(&self, index: u64) -> Time {
        self.period.start + Span::from_secs_f64((index as f64 + self.drift) / self.model.frame_rate)
    }

    /// Draws how much longer than usual the interval to the next frame is.
    fn draw_interval(&mut self) {
        if self.model.interval_jitter > 0.0 {
            self.drift += laplace(self.gaps.unit(), self.model.interval_jitter).max(MIN_SHARE) - 1.0;
        }
    }

    /// See [`crate::Application::next_action`].
    pub fn next_action(&mut self, now: Time) -> Action {
        if self.stopped {
            return Action::Wait;
        }
        if now >= self.period.stop {
            self.stopped = true;
            return Action::Stop;
        }
        let captured = self.capture(self.frames);
        if now < captured {
            return Action::Wait;
        }
        self.frames += 1;
        self.draw_interval();
        if self.queueing > self.model.max_queue {
            self.skipped += u64::from(captured >= self.from);
            self.skip();
            return Action::Wait;
        }
        self.counted += u64::from(captured >= self.from);
        self.skip();
        Action::Send(self.frame(captured))
    }

    /// The size of the next frame.
    fn frame(&mut self, captured: Time) -> Size {
        let key = captured >= self.next_key;
        self.made_key = key;
        if key {
            self.since_key = 0;
            let interval = self.model.key_interval;
            let repeats = interval > Span::ZERO && self.ladder.is_none();
            self.next_key = if repeats { captured + interval } else { Time::NEVER };
        }
        if let Some(size) = self.recorded(key) {
            return size;
        }
        self.since_key = self.since_key.saturating_add(1);
        let share = if key {
            self.in_burst = 0;
            self.model.key_size
        } else if let Some(burst) = self.model.burst.filter(|_| self.in_burst > 0) {
            self.in_burst -= 1;
            self.of_burst(&burst, self.in_burst + 1 == burst.frames)
        } else if self.since_key <= TRANSIENT {
            (f64::from(TRANSIENT) - self.model.key_size) / f64::from(TRANSIENT - 1)
        } else {
            1.0
        };
        let (unit, jitter) = (self.draws.unit(), self.model.jitter);
        let drawn = match self.model.jitter_law {
            JitterLaw::Laplace => laplace(unit, jitter),
            JitterLaw::Uniform => 1.0 + jitter * (2.0 * unit - 1.0),
        };
        let drawn = drawn.max(MIN_SHARE);
        Size(self.payload(share.max(MIN_SHARE) * drawn).max(1.0) as u64)
    }

    /// The payload of a frame that has this share of a mean one, headers included.
    fn payload(&self, share: f64) -> f64 {
        let wire = self.rate.bps() / 8.0 / self.model.frame_rate * share;
        payload(wire, self.model.segment.0.max(1) as f64, self.model.header.0 as f64)
    }

    /// The next frame of those that are recorded, at the rate that the headers of a mean frame leave.
    fn recorded(&mut self, key: bool) -> Option<Size> {
        let rate = self.payload(1.0) * 8.0 * self.model.frame_rate;
        let (ladder, next) = self.ladder.as_mut()?;
        if key {
            *next = 0;
        }
        let size = ladder.size(rate, *next);
        *next = ladder.after(*next);
        Some(Size(size as u64))
    }

    /// The share of a mean frame that the first one of a burst has, or any other.
    fn of_burst(&self, burst: &Burst, first: bool) -> f64 {
        let (frames, mean) = (f64::from(burst.frames), self.rate.bps() / 8.0 / self.model.frame_rate);
        let large = (burst.size.0 as f64 / mean).clamp(1.0, frames);
        if first { large } else { (frames - large) / (frames - 1.0) }
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        (!self.stopped).then(|| self.capture(self.frames).min(self.period.stop))
    }
}

/// A draw around 1 from a uniform one.
fn laplace(unit: f64, scale: f64) -> f64 {
    let centred = unit - 0.5;
    let tail = (1.0 - 2.0 * centred.abs()).max(f64::MIN_POSITIVE);
    1.0 - scale * centred.signum() * libm::log(tail)
}

/// The payload of packets of `segment` at most that have `wire` bytes with their headers.
fn payload(wire: f64, segment: f64, header: f64) -> f64 {
    wire - header * libm::ceil(wire / (segment + header))
}

#[cfg(test)]
mod tests;

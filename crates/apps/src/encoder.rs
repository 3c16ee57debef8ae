//! A live video encoder: frames at a fixed rate, whose sizes follow a target.
//!
//! The statistical model of RFC 8593 section 5 (X. Zhu, S. Mena, Z. Sarker, "Video Traffic Models for RTP Congestion
//! Control Evaluations", 2019), plus key frames. A new target is followed at once; for a reaction time, further changes
//! are ignored. An abrupt change begins a burst: a large frame, compensated by the next ones. A frame's size is its
//! share of the rate, and the interval to the next frame its share of a second, each times a Laplace draw around 1. A
//! key frame is several times as large as others, and the following frames compensate for it.
//!
//! Differences from the RFC: sizes may be uniform instead, as in measurements by SCReAM's authors; a draw below a tenth
//! counts as a tenth. The RFC does not define an abrupt change (`change`, as in its reference implementation,
//! `syncodecs`). With a [`Ladder`] it is the trace-driven model (section 6): frames have recorded sizes, and a key
//! frame request restarts the recording.

use crate::application::{Action, Period};
use crate::ladder::Ladder;
use paceline_random::{Sequence, Stream};
use paceline_units::{Rate, Size, Span, Time};

/// A key frame and the frames that compensate for it.
const TRANSIENT: u32 = 8;
/// The minimum share of a mean frame, after its draw or a key frame before it.
const MIN_SHARE: f64 = 0.1;
/// Key frame requests within this time after another are ignored (libwebrtc's `EncoderRtcpFeedback`).
const MIN_KEY_FRAME_INTERVAL: Span = Span::from_millis(300);

/// An encoder's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderModel {
    /// Frames per second; above zero.
    pub frame_rate: f64,
    /// The lower bound of the target, and the rate before there is one.
    pub min_rate: Rate,
    /// The upper bound of the target.
    pub max_rate: Rate,
    /// The spread of frame sizes, relative to their mean: a Laplace distribution's scale, a uniform one's bound.
    pub jitter: f64,
    /// The distribution of frame sizes.
    pub jitter_law: JitterLaw,
    /// The spread of the intervals between frames (`SCALE_t`).
    pub interval_jitter: f64,
    /// The burst after an abrupt change of the rate.
    pub burst: Option<Burst>,
    /// For this long after a change of the rate, further changes are ignored.
    pub reaction: Span,
    /// The interval between key frames; zero: only the first frame is one.
    pub key_interval: Span,
    /// A key frame's size relative to a mean frame: from 1 to 8.
    pub key_size: f64,
    /// Payload of a full packet; not zero.
    pub segment: Size,
    /// Header bytes per packet, which the target rate includes.
    pub header: Size,
    /// Dependencies between frames.
    pub needs: FrameNeeds,
    /// A frame is skipped if the sender's backlog takes longer than this to drain.
    pub max_queue: Span,
}

/// A large frame and those that compensate for it (RFC 8593 section 5.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// The large one's size, headers included, unless a mean frame is larger (`K_B`).
    pub size: Size,
    /// The number of frames (`K_d`), two or more.
    pub frames: u32,
    /// A change by more than this fraction of the previous rate is abrupt.
    pub change: f64,
}

/// The distribution of frame sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterLaw {
    /// RFC 8593's: usually near the mean, sometimes far from it.
    Laplace,
    /// Uniform within the bound.
    Uniform,
}

/// Dependencies between frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameNeeds {
    /// None: each frame is decodable by itself.
    Nothing,
    /// Each frame needs the previous one, except key frames.
    Before,
}

/// An encoder.
#[derive(Clone, Debug)]
pub struct Encoder {
    model: EncoderModel,
    period: Period,
    draws: Sequence,
    /// Draws of intervals.
    gaps: Sequence,
    /// The index of the next frame.
    frames: u64,
    /// The next frame's offset from equal intervals, in mean intervals.
    drift: f64,
    /// Frames captured since the start of the measurement, and that start.
    counted: u64,
    from: Time,
    /// In bit/s, headers included.
    rate: Rate,
    /// From when the rate may change.
    ready: Time,
    /// Frames since the last key frame, including it.
    since_key: u32,
    next_key: Time,
    /// Frames left in a burst.
    in_burst: u32,
    /// The recorded frames, and the index of the next one.
    ladder: Option<(Ladder, usize)>,
    /// Pauses, the next one last; and the latest one already taken into account.
    pauses: Vec<Period>,
    pause: Option<Period>,
    stopped: bool,
    /// How long the sender's backlog takes to drain.
    queueing: Span,
    /// Frames skipped since the start of the measurement.
    skipped: u64,
    /// Whether the last frame is a key frame.
    last_is_key_frame: bool,
    /// From when key frame requests are accepted.
    key_requests_from: Time,
}

impl Encoder {
    /// An encoder whose first frame is captured at the period's start.
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
            last_is_key_frame: false,
            key_requests_from: Time::ZERO,
        }
    }

    /// Adds disjoint periods without frames; the first frame after each is a key frame. Frame times do not shift; with
    /// random intervals, the first frame comes at the end of the pause.
    #[must_use]
    pub fn pausing(mut self, mut pauses: Vec<Period>) -> Encoder {
        pauses.sort_by_key(|pause| core::cmp::Reverse(pause.start));
        self.pauses = pauses;
        self.skip();
        self
    }

    /// Uses recorded frame sizes: size jitter, bursts and periodic key frames do not apply.
    #[must_use]
    pub fn playing(mut self, ladder: Ladder) -> Encoder {
        self.ladder = Some((ladder, 0));
        self
    }

    /// Moves the next frame past any pause that it lies in.
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

    /// Sets the target rate, headers included.
    pub fn set_target_rate(&mut self, target: Rate, now: Time) {
        let rate = Rate(target.0.min(self.model.max_rate.0).max(self.model.min_rate.0));
        if now >= self.ready && rate != self.rate {
            let change = (rate.bps() / self.rate.bps() - 1.0).abs();
            self.in_burst =
                self.model.burst.filter(|burst| change > burst.change).map_or(self.in_burst, |burst| burst.frames);
            self.rate = rate;
            self.ready = now + self.model.reaction;
        }
    }

    /// The current rate: the last target that was followed.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The maximum rate in bit/s, and a frame's size at that rate.
    pub(crate) fn pace(&self) -> (f64, Size) {
        let rate = self.model.max_rate.bps();
        (rate, Size((rate / 8.0 / self.model.frame_rate) as u64))
    }

    /// The maximum rate at `now`, in bit/s with all headers: zero in a pause and after the end.
    #[must_use]
    pub fn demand(&self, now: Time) -> f64 {
        let pauses = self.pause.is_some_and(|pause| pause.start <= now && now < pause.stop);
        if pauses || self.stopped || now >= self.period.stop { 0.0 } else { self.model.max_rate.bps() }
    }

    /// Counts frames from `at` on.
    pub fn measure_from(&mut self, at: Time) {
        self.from = at;
        (self.counted, self.skipped) = (0, 0);
    }

    /// Reports how long the sender's backlog takes to drain.
    pub fn on_queueing_delay(&mut self, queueing: Span) {
        self.queueing = queueing;
    }

    /// The receiver requests a key frame: the next frame becomes one.
    pub fn request_key(&mut self, now: Time) {
        if now >= self.key_requests_from {
            self.on_backlog_discarded(now);
        }
    }

    /// The sender has discarded its backlog: the next frame becomes a key frame.
    pub fn on_backlog_discarded(&mut self, now: Time) {
        self.key_requests_from = now + MIN_KEY_FRAME_INTERVAL;
        self.next_key = self.next_key.min(now);
    }

    /// Whether the last frame is a key frame that others depend on.
    #[must_use]
    pub fn last_is_key_frame(&self) -> bool {
        self.last_is_key_frame && self.model.needs == FrameNeeds::Before
    }

    /// Frames skipped since the start of the measurement.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Frames captured and not skipped since the start of the measurement.
    #[must_use]
    pub fn captured(&self) -> u64 {
        self.counted
    }

    /// When frame `index` is captured.
    fn capture(&self, index: u64) -> Time {
        self.period.start + Span::from_secs_f64((index as f64 + self.drift) / self.model.frame_rate)
    }

    /// Draws the deviation of the interval to the next frame.
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
        self.last_is_key_frame = key;
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

    /// The payload of a frame with this share of a mean one, headers included.
    fn payload(&self, share: f64) -> f64 {
        let wire = self.rate.bps() / 8.0 / self.model.frame_rate * share;
        payload(wire, self.model.segment.0.max(1) as f64, self.model.header.0 as f64)
    }

    /// The size of the next recorded frame, at the target rate less headers.
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

    /// The size of a burst's first frame, or of another one, relative to a mean frame.
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

/// A Laplace draw around 1, from a uniform one.
fn laplace(unit: f64, scale: f64) -> f64 {
    let centred = unit - 0.5;
    let tail = (1.0 - 2.0 * centred.abs()).max(f64::MIN_POSITIVE);
    1.0 - scale * centred.signum() * libm::log(tail)
}

/// The payload of `wire` bytes of packets with at most `segment` bytes of payload and a header each.
fn payload(wire: f64, segment: f64, header: f64) -> f64 {
    wire - header * libm::ceil(wire / (segment + header))
}

#[cfg(test)]
mod tests;

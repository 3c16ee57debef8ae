//! A live video encoder: frames at a fixed rate, whose sizes follow a target.
//!
//! The statistical model of RFC 8593 section 5 (X. Zhu, S. Mena, Z. Sarker, "Video Traffic Models for RTP Congestion Control
//! Evaluations", 2019), with key frames besides: a new target is followed at once, but then none for a reaction time; an abrupt one
//! begins a burst, a large frame for which the next ones make up; a frame's size is its share of the rate, and the interval before the
//! next its share of a second, each times a Laplace draw around 1; a key frame is several times as large as others, and the frames that
//! follow it make up for it.
//!
//! What differs from the RFC: a draw below a tenth counts as a tenth. What is abrupt it leaves open (`change`, as in its reference
//! implementation, `syncodecs`). With a [`Ladder`] it is the trace-driven model (section 6): frames have recorded sizes, from the first on
//! where a key frame is asked for.

use crate::application::{Action, Period};
use crate::ladder::Ladder;
use paceline_random::{Sequence, Stream};
use paceline_units::{Rate, Size, Span, Time};

/// A key frame and those that make up for it.
const TRANSIENT: u32 = 8;
/// The least of a frame's share that its draw, or a key frame before it, leaves.
const LEAST: f64 = 0.1;
/// Of requests for key frames, those so soon after another are ignored (libwebrtc's `EncoderRtcpFeedback`).
const LEAST_REQUESTED: Span = Span::from_millis(300);

/// What an encoder is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderModel {
    /// Frames a second; above zero.
    pub frame_rate: f64,
    /// The target is taken as no less than this, and so it is before there is one.
    pub min_rate: Rate,
    /// Nor as more than this.
    pub max_rate: Rate,
    /// Scale of the Laplace law of frame sizes, as a share of their mean.
    pub jitter: f64,
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
            self.heeds = now + LEAST_REQUESTED;
            self.next_key = self.next_key.min(now);
        }
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
            self.drift += laplace(self.gaps.unit(), self.model.interval_jitter).max(LEAST) - 1.0;
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
        let drawn = laplace(self.draws.unit(), self.model.jitter).max(LEAST);
        Size(self.payload(share.max(LEAST) * drawn).max(1.0) as u64)
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
mod tests {
    use super::*;

    const MODEL: EncoderModel = EncoderModel {
        frame_rate: 30.0,
        min_rate: Rate(100_000),
        max_rate: Rate(2_000_000),
        jitter: 0.15,
        interval_jitter: 0.0,
        burst: None,
        reaction: Span::from_millis(200),
        key_interval: Span::ZERO,
        key_size: 1.0,
        segment: Size(1460),
        header: Size(40),
        needs: FrameNeeds::Before,
        max_queue: Span::MAX,
    };

    fn encoder(model: EncoderModel) -> Encoder {
        Encoder::new(model, Stream::new(1, "encoder"), Period::from(Time::from_secs_f64(1.0)))
    }

    /// The next frames: when they were captured, and their bytes.
    fn frames(encoder: &mut Encoder, count: usize) -> Vec<(f64, u64)> {
        let mut frames = Vec::new();
        while frames.len() < count {
            let now = encoder.next_wake().unwrap();
            let Action::Send(size) = encoder.next_action(now) else { panic!("a frame is due") };
            assert_eq!(encoder.next_action(now), Action::Wait);
            frames.push((now.as_secs_f64(), size.0));
        }
        frames
    }

    #[test]
    fn section_5_frames_have_their_share_of_the_rate_and_a_laplace_law() {
        let mut encoder = encoder(MODEL);
        encoder.aim(Rate(1_000_000), Time::ZERO);
        let frames = frames(&mut encoder, 30_000);
        assert!(frames[0].0 == 1.0 && (frames[29_999].0 - 1.0 - 29_999.0 / 30.0).abs() < 1e-8);
        // 4167 bytes with the headers of 3 packets
        let wire: Vec<f64> = frames.iter().map(|f| f.1 as f64 + 40.0 * libm::ceil(f.1 as f64 / 1460.0)).collect();
        let mean = wire.iter().sum::<f64>() / wire.len() as f64;
        assert!((mean / 4166.7 - 1.0).abs() < 0.005, "{mean}");
        // of a Laplace law the mean distance from the middle is its scale
        let spread = wire.iter().map(|size| (size - 4166.7).abs()).sum::<f64>() / wire.len() as f64;
        assert!((spread / 4166.7 - 0.15).abs() < 0.005, "{spread}");
    }

    #[test]
    fn section_5_3_intervals_have_a_laplace_law_too() {
        let mut encoder = encoder(EncoderModel { interval_jitter: 0.15, ..MODEL });
        let times: Vec<f64> = frames(&mut encoder, 30_001).iter().map(|f| f.0).collect();
        let gaps: Vec<f64> = times.windows(2).map(|two| (two[1] - two[0]) * 30.0).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.005, "{mean}");
        let spread = gaps.iter().map(|gap| (gap - 1.0).abs()).sum::<f64>() / gaps.len() as f64;
        assert!((spread - 0.15).abs() < 0.005, "{spread}");
        let together = gaps.windows(2).map(|two| (two[0] - 1.0) * (two[1] - 1.0)).sum::<f64>() / gaps.len() as f64;
        // of a Laplace law the variance is twice the square of the scale
        assert!(together.abs() < 0.05 * 2.0 * 0.15 * 0.15, "one draw has nothing to do with the next: {together}");
        let mut wild = self::encoder(EncoderModel { interval_jitter: 1.0, ..MODEL });
        let times: Vec<f64> = frames(&mut wild, 3000).iter().map(|f| f.0).collect();
        let least = times.windows(2).map(|two| (two[1] - two[0]) * 30.0).fold(f64::MAX, f64::min);
        assert!((least - 0.1).abs() < 1e-6, "{least}");
    }

    #[test]
    fn intervals_that_vary_leave_sizes_and_pauses_as_they_are() {
        let at = |ms: u64| Time(ms * 1_000_000);
        let sizes = |model| frames(&mut encoder(model), 100).iter().map(|f| f.1).collect::<Vec<u64>>();
        let varied = EncoderModel { interval_jitter: 0.3, ..MODEL };
        assert_eq!(sizes(varied), sizes(MODEL));
        let mut paused = encoder(varied).pausing(vec![Period { start: at(1500), stop: at(2501) }]);
        let times: Vec<f64> = frames(&mut paused, 60).iter().map(|f| f.0).collect();
        assert!(times.iter().all(|time| !(1.5..2.501).contains(time)) && times.contains(&2.501), "{times:?}");
    }

    /// A frame of 250 kbit/s and its header make 252.4 kbit/s: what is recorded is of payload.
    #[test]
    fn section_6_recorded_frames_follow_the_target_without_headers() {
        let sizes = |rate: u32| (0..100).map(|frame| rate / 240 + frame).collect::<Vec<u32>>();
        let rungs = [200_000, 400_000].map(|rate| (Rate(u64::from(rate)), sizes(rate)));
        let ladder = Ladder::new(rungs.into(), 20).unwrap();
        let mut encoder = encoder(MODEL).playing(ladder);
        let expected = |rate: f64, frame: usize| rate / 240.0 + frame as f64;
        encoder.aim(Rate(200_000 + 240 * 40), Time::ZERO);
        for (at, frame) in frames(&mut encoder, 120).iter().zip((0..100).chain(20..40)) {
            assert!((at.1 as f64 - expected(200e3, frame)).abs() < 2.0, "{frame}: {at:?}");
        }
        encoder.request_key(encoder.next_wake().unwrap());
        assert!((frames(&mut encoder, 1)[0].1 as f64 - expected(200e3, 0)).abs() < 2.0);
        encoder.aim(Rate(300_000 + 240 * 40), Time(9_000_000_000));
        assert!((frames(&mut encoder, 1)[0].1 as f64 - expected(300e3, 1)).abs() < 2.0);
    }

    /// At 1 Mbit/s and 30 frames a second a mean frame has 4167 bytes, and the example's burst begins with 3.24 of them.
    #[test]
    fn section_5_2_an_abrupt_change_begins_a_burst() {
        let burst = Some(Burst { size: Size(13_500), frames: 8, change: 0.5 });
        let mut encoder = encoder(EncoderModel { burst, jitter: 0.0, ..MODEL });
        let mean = 1e6 / 8.0 / 30.0;
        let shares = |encoder: &mut Encoder, count: usize, rate: f64| -> Vec<f64> {
            let wire = |size: u64| size as f64 + 40.0 * libm::ceil(size as f64 / 1460.0);
            frames(encoder, count).iter().map(|frame| wire(frame.1) / (rate / 240.0)).collect()
        };
        frames(&mut encoder, 10); // the key frame and what makes up for it, at 100 kbit/s
        encoder.aim(Rate(1_000_000), Time::ZERO);
        let found = shares(&mut encoder, 9, 1e6);
        let expected = (8.0 - 13_500.0 / mean) / 7.0;
        assert!((found[0] - 13_500.0 / mean).abs() < 1e-3, "{found:?}");
        assert!(found[1..8].iter().all(|share| (share - expected).abs() < 1e-3), "{found:?}");
        assert!((found[8] - 1.0).abs() < 1e-3 && (found[..8].iter().sum::<f64>() - 8.0).abs() < 1e-2, "{found:?}");
        // by half is not by more than half, either way; what is larger than the burst's frame is not made smaller
        let at = |ms: u64| Time(ms * 1_000_000);
        encoder.aim(Rate(1_500_000), at(1000));
        assert!(shares(&mut encoder, 1, 1.5e6)[0] < 1.01);
        encoder.aim(Rate(700_000), at(2000));
        assert!((shares(&mut encoder, 1, 0.7e6)[0] - 13_500.0 * 240.0 / 0.7e6).abs() < 1e-3);
    }

    #[test]
    fn section_5_a_change_is_followed_by_none_for_the_reaction_time() {
        let mut encoder = encoder(MODEL);
        let at = |ms: u64| Time(ms * 1_000_000);
        assert_eq!(encoder.rate, Rate(100_000), "the least at first");
        encoder.aim(Rate(500_000), at(0));
        encoder.aim(Rate(600_000), at(199));
        assert_eq!(encoder.rate, Rate(500_000));
        encoder.aim(Rate(700_000), at(200));
        assert_eq!(encoder.rate, Rate(700_000));
        encoder.aim(Rate(9_000_000), at(400));
        assert_eq!(encoder.rate, MODEL.max_rate);
        encoder.aim(Rate(0), at(600));
        assert_eq!(encoder.rate, MODEL.min_rate);
    }

    #[test]
    fn key_frames_are_large_and_made_up_for() {
        let model = EncoderModel { key_interval: Span::from_secs(1), key_size: 4.0, jitter: 0.0, ..MODEL };
        let mut encoder = encoder(model);
        encoder.aim(Rate(1_000_000), Time::ZERO);
        let frames = frames(&mut encoder, 60);
        let sizes: Vec<u64> = frames.iter().map(|f| f.1).collect();
        assert_eq!(sizes[0], payload(4.0 * 1e6 / 240.0, 1460.0, 40.0) as u64);
        assert_eq!((sizes[30], sizes[1], sizes[8]), (sizes[0], sizes[7], sizes[29]));
        assert_eq!(sizes[1], payload(4.0 / 7.0 * 1e6 / 240.0, 1460.0, 40.0) as u64);
    }

    #[test]
    fn a_pause_has_no_frames_and_ends_with_a_key_frame() {
        let model = EncoderModel { key_size: 4.0, jitter: 0.0, ..MODEL };
        let at = |ms: u64| Time(ms * 1_000_000);
        let pause = |from, to| Period { start: at(from), stop: at(to) };
        // 30 frames a second from 1 s on: frames 15 to 44 lie in the pause, none in the one that lies between two frames
        let mut encoder = encoder(model).pausing(vec![pause(1500, 2500), pause(1010, 1020)]);
        let frames = frames(&mut encoder, 60);
        let times: Vec<f64> = frames.iter().map(|f| f.0).collect();
        for (frame, time) in [(1, 1.0 + 1.0 / 30.0), (14, 1.0 + 14.0 / 30.0), (15, 2.5), (16, 2.5 + 1.0 / 30.0)] {
            assert!((times[frame] - time).abs() < 1e-6, "{times:?}");
        }
        let sizes: Vec<u64> = frames.iter().map(|f| f.1).collect();
        assert_eq!((sizes[15], sizes[16], sizes[14]), (sizes[0], sizes[1], sizes[40]));
        assert!(sizes[0] > 3 * sizes[14]);
    }

    #[test]
    fn a_key_frame_comes_on_request_but_not_twice_in_300_ms() {
        let at = |ms: u64| Time(ms * 1_000_000);
        let mut encoder = encoder(EncoderModel { key_size: 4.0, jitter: 0.0, ..MODEL });
        let keys = |encoder: &mut Encoder, count| {
            let made = (0..count).filter(|_| {
                frames(encoder, 1);
                encoder.made_key()
            });
            made.count()
        };
        assert_eq!(keys(&mut encoder, 30), 1, "the first");
        encoder.request_key(at(1990));
        frames(&mut encoder, 1);
        assert!(encoder.made_key());
        encoder.request_key(at(2289));
        assert_eq!(keys(&mut encoder, 30), 0);
        encoder.request_key(at(2290));
        assert_eq!(keys(&mut encoder, 30), 1);
    }

    #[test]
    fn frames_are_skipped_while_the_senders_queue_is_too_long() {
        let mut encoder = encoder(EncoderModel { max_queue: Span::from_millis(500), ..MODEL });
        frames(&mut encoder, 3);
        encoder.press(Span::from_millis(501));
        for n in 3..6 {
            let now = encoder.next_wake().unwrap();
            assert_eq!((now, encoder.next_action(now)), (encoder.capture(n), Action::Wait));
        }
        encoder.press(Span::from_millis(500));
        assert_eq!(frames(&mut encoder, 1)[0].0, encoder.capture(6).as_secs_f64());
        assert_eq!((encoder.captured(), encoder.skipped()), (4, 3));
    }

    #[test]
    fn no_frame_is_less_than_a_tenth_of_its_share() {
        let mut wild = encoder(EncoderModel { jitter: 1.0, ..MODEL });
        wild.aim(Rate(1_000_000), Time::ZERO);
        let least = frames(&mut wild, 3000).iter().map(|frame| frame.1).min();
        // a tenth of 4167 bytes, less a header
        assert_eq!(least, Some(376));
        // a key frame of eight frames leaves nothing to the seven that follow
        let mut keys = encoder(EncoderModel { key_size: 8.0, jitter: 0.0, ..MODEL });
        keys.aim(Rate(1_000_000), Time::ZERO);
        assert_eq!(frames(&mut keys, 8)[7].1, 376);
    }

    #[test]
    fn nothing_is_captured_after_the_stop_and_frames_count_from_the_warm_up() {
        let period = Period { start: Time::ZERO, stop: Time::from_secs_f64(2.0) };
        let mut encoder = Encoder::new(MODEL, Stream::new(1, "encoder"), period);
        frames(&mut encoder, 30);
        encoder.measure_from(Time::from_secs_f64(1.0));
        frames(&mut encoder, 30);
        assert_eq!(encoder.captured(), 30);
        assert_eq!(encoder.next_wake(), Some(period.stop));
        assert_eq!(encoder.next_action(period.stop), Action::Stop);
        assert_eq!(encoder.next_wake(), None);
    }
}

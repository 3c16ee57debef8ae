//! The screen: how old frames are when shown, and freezes (W3C, Identifiers for WebRTC's Statistics API).

use crate::viewer::ViewReport;
use paceline_units::{Offset, Span, Time};
use std::collections::VecDeque;

/// The number of recent frames in the mean frame duration.
const FRAMES: usize = 30;
/// The maximum number of delays stored: ten hours at 30 frames per second. Beyond that only every second one is kept,
/// then every fourth.
const MAX_DELAYS: usize = 1 << 20;
/// A picture is frozen if it stays for three times the mean duration, and for at least this much longer than the mean.
const FREEZE: Span = Span::from_millis(150);

/// The screen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    /// From when the first frame is expected.
    start: Time,
    /// The start of the measurement.
    at: Time,
    /// Frames captured from here on count.
    from: Offset,
    /// The frame on the screen: its capture, and since when it is shown.
    pub(crate) shown: Option<(Offset, Time)>,
    /// The durations of the last frames.
    durations: VecDeque<Span>,
    report: ViewReport,
    /// The number of frames whose delays count, and how many are skipped per stored one: one less than a power of two.
    delays: u64,
    skips: u64,
    min_delay: Option<Offset>,
    sampled: Sampled,
}

/// Frames since the last sample of a recording, whether they count or not.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    frames: u64,
    /// The sum of their delays, in nanoseconds.
    delay: i128,
    max_delay: Option<Offset>,
}

impl Picture {
    pub(crate) fn new(start: Time) -> Picture {
        Picture { start, from: Offset(i64::MIN), ..Picture::default() }
    }

    /// Counts frames captured at `captured` or later, and freezes that end after `at`.
    pub(crate) fn measure_from(&mut self, at: Time, captured: Offset) {
        (self.at, self.from) = (at, captured);
        self.report = ViewReport::default();
        (self.delays, self.skips) = (0, 0);
    }

    /// Whether a frame captured at `captured` counts.
    pub(crate) fn counts(&self, captured: Offset) -> bool {
        captured >= self.from
    }

    /// A frame is complete.
    pub(crate) fn on_complete(&mut self, now: Time, captured: Offset) {
        let delay = Offset::at(now) - captured;
        self.min_delay = Some(self.min_delay.map_or(delay, |min| min.min(delay)));
    }

    /// The minimum delay of complete frames.
    pub(crate) fn min_delay(&self) -> Option<Offset> {
        self.min_delay
    }

    /// Records a frame's delay, until `now`. The number of stored delays is bounded.
    pub(crate) fn keep(&mut self, now: Time, captured: Offset) {
        let delay = Offset::at(now) - captured;
        self.sampled.frames += 1;
        self.sampled.delay += i128::from(delay.0);
        self.sampled.max_delay = self.sampled.max_delay.max(Some(delay));
        if !self.counts(captured) {
            return;
        }
        let nth = self.delays;
        self.delays += 1;
        if nth & self.skips != 0 {
            return;
        }
        let delays = &mut self.report.delays;
        if delays.len() == MAX_DELAYS {
            let mut nth = 0;
            delays.retain(|_| {
                nth += 1;
                nth % 2 == 1
            });
            self.skips = self.skips * 2 + 1;
        }
        delays.push(delay);
    }

    /// Shows a frame, unless a later one has been shown.
    pub(crate) fn show(&mut self, now: Time, captured: Offset) {
        match self.shown {
            Some((newest, _)) if captured <= newest => return,
            Some((_, since)) => self.next(now.since(since)),
            None => {}
        }
        self.shown = Some((captured, now));
    }

    /// The picture changes after `duration`.
    fn next(&mut self, duration: Span) {
        // the second picture has no previous durations to compare with
        if !self.durations.is_empty() && self.is_freeze(duration) {
            self.report.freezes += 1;
            self.report.frozen += duration;
        }
        self.durations.push_back(duration);
        if self.durations.len() > FRAMES {
            self.durations.pop_front();
        }
    }

    /// Whether a picture that stays for `duration` is frozen.
    fn is_freeze(&self, duration: Span) -> bool {
        let sum = self.durations.iter().fold(Span::ZERO, |sum, &each| sum + each);
        let mean = sum / (self.durations.len() as u64).max(1);
        duration >= (mean * 3).max(mean + FREEZE)
    }

    /// A row of a recording: the number of frames since the previous row, the mean and maximum of their delays, and how
    /// long the picture at `now` has been shown, or the screen has been empty. In seconds; NaN if there is no frame.
    pub(crate) fn sample(&mut self, now: Time) -> [f64; 4] {
        let Sampled { frames, delay, max_delay } = core::mem::take(&mut self.sampled);
        let stands = now.since(self.shown.map_or(self.start, |(_, since)| since)).as_secs_f64();
        match max_delay {
            None => [0.0, f64::NAN, f64::NAN, stands],
            Some(max) => [frames as f64, delay as f64 / frames as f64 * 1e-9, max.as_secs_f64(), stands],
        }
    }

    /// The report on the frames, watched until `end`, without the number of complete ones.
    pub(crate) fn report(&self, end: Time) -> ViewReport {
        let mut report = self.report.clone();
        report.delays.sort_unstable();
        let stands = end.since(self.shown.map_or(self.start.max(self.at), |(_, since)| since));
        if self.is_freeze(stands) {
            report.freezes += 1;
            report.frozen += stands;
        }
        report
    }
}

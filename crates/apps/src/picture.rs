//! What a screen shows: how old frames are, and when the picture freezes (W3C, Identifiers for WebRTC's Statistics API).

use crate::viewer::ViewReport;
use paceline_units::{Offset, Span, Time};
use std::collections::VecDeque;

/// The mean time between frames is that of so many of the last.
const FRAMES: usize = 30;
/// Delays that are kept: of ten hours at 30 frames a second. Of more frames every other one's is left out, then three of four.
const MAX_DELAYS: usize = 1 << 20;
/// A picture stands still if it stays three times as long as the mean, and this much longer than it.
const FREEZE: Span = Span::from_millis(150);

/// The screen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    /// The first frame is waited for from here on.
    start: Time,
    /// From here on it is measured.
    at: Time,
    /// Frames captured from here on count.
    from: Offset,
    /// When the frame on the screen was captured, and since when it is there.
    pub(crate) shown: Option<(Offset, Time)>,
    /// How long the last frames were shown.
    durations: VecDeque<Span>,
    report: ViewReport,
    /// Frames whose delays count, and how many are left out for each that is kept: one less than a power of two.
    delays: u64,
    skips: u64,
    min_delay: Option<Offset>,
    sampled: Sampled,
}

/// Frames since the last sample of a recording, whether they count or not.
#[derive(Clone, Copy, Debug, Default)]
struct Sampled {
    frames: u64,
    /// Their delays together, in nanoseconds.
    delay: i128,
    max_delay: Option<Offset>,
}

impl Picture {
    pub(crate) fn new(start: Time) -> Picture {
        Picture { start, from: Offset(i64::MIN), ..Picture::default() }
    }

    /// Frames that are `captured` then or later count, and freezes that end after `at`.
    pub(crate) fn measure_from(&mut self, at: Time, captured: Offset) {
        (self.at, self.from) = (at, captured);
        self.report = ViewReport::default();
        (self.delays, self.skips) = (0, 0);
    }

    /// Whether a frame captured then counts.
    pub(crate) fn counts(&self, captured: Offset) -> bool {
        captured >= self.from
    }

    /// A frame is complete.
    pub(crate) fn on_complete(&mut self, now: Time, captured: Offset) {
        let delay = Offset::at(now) - captured;
        self.min_delay = Some(self.min_delay.map_or(delay, |min| min.min(delay)));
    }

    /// The least delay of those that were complete.
    pub(crate) fn min_delay(&self) -> Option<Offset> {
        self.min_delay
    }

    /// A frame has its delay, until `now`. What is kept is bounded, however many frames come.
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

    /// A frame is shown, unless a later one has been.
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
        // the second picture of all has nothing to be measured by
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

    /// A row of a recording: frames that have had their delays since the row before, the mean and the greatest of these, and for
    /// how long at `now` the picture has stood, or none has come; in seconds, and what there is none of is not a number.
    pub(crate) fn sample(&mut self, now: Time) -> [f64; 4] {
        let Sampled { frames, delay, max_delay: most } = core::mem::take(&mut self.sampled);
        let stands = now.since(self.shown.map_or(self.start, |(_, since)| since)).as_secs_f64();
        match most {
            None => [0.0, f64::NAN, f64::NAN, stands],
            Some(max) => [frames as f64, delay as f64 / frames as f64 * 1e-9, max.as_secs_f64(), stands],
        }
    }

    /// What became of the frames, watched until `end`; how many were complete is the caller's to say.
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

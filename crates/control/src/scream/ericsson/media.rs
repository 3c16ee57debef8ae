//! The stream: its queue, frames, measured rates and target.

use super::super::queue::Queue;
use super::{Settings, seconds};

/// Weight of the newest frame interval.
const PERIOD_GAIN: f32 = 0.9;
/// How fast the target is reduced for a queue.
const ADJUST_GAIN: f32 = 0.2;
const ADJUST_TIME: f32 = 8.0;
const MAX_RATE_ADJUSTMENT: f32 = 0.5;
/// Frames with a smaller mean size are not paced faster, in bytes.
const SMALL_FRAME: f32 = 500.0;
/// Number of periods over which the written rate is averaged.
const PERIODS: usize = 4;
/// Histogram of frame sizes above their mean: number of bins, their range, their decay, the share of frames below the
/// large ones, and the number of frames needed.
const BINS: usize = 50;
const RANGE: f32 = 2.0;
const BINS_DECAY: f32 = 1.0 / 1024.0;
const LARGE: f32 = 0.8;
const FRAMES: u32 = 50;
/// Minimum time between discards, and from the first frame to the first discard: 0.25 s.
const DISCARD_INTERVAL: u32 = 16384;

/// The stream's state.
#[derive(Clone, Debug)]
pub(super) struct Media {
    min_rate: f32,
    max_rate: f32,
    discard_after: f32,
    /// When the queue was last discarded, or the first frame was written.
    discarded: Option<u32>,
    /// Whether the queue has been discarded without this having been reported.
    pub(super) discards: bool,
    queue: Queue<u32>,
    frame: u32,
    frames: u32,
    frame_last: Option<u32>,
    pub(super) period: f32,
    pub(super) adjust: f32,
    pub(super) pacing: f32,
    sizes: [f32; BINS],
    pub(super) large: f32,
    pub(super) share: f32,
    pub(super) target: f32,
    measured: Option<u32>,
    sent: u32,
    acked: i32,
    written: u32,
    history: [f32; PERIODS],
    place: usize,
    pub(super) sent_rate: f32,
    pub(super) acked_rate: f32,
    pub(super) written_rate: f32,
}

impl Media {
    pub(super) fn new(settings: &Settings) -> Media {
        let mut sizes = [0.0; BINS];
        sizes[0] = 1.0;
        Media {
            min_rate: settings.min_rate,
            max_rate: settings.max_rate,
            discard_after: settings.discard_after,
            discarded: None,
            discards: false,
            queue: Queue::default(),
            frame: 0,
            frames: 0,
            frame_last: None,
            period: 0.02,
            adjust: 0.0,
            pacing: 1.0,
            sizes,
            large: 1.0,
            share: settings.min_rate,
            target: settings.start_rate.max(settings.min_rate).min(settings.max_rate),
            measured: None,
            sent: 0,
            acked: 0,
            written: 0,
            history: [0.0; PERIODS],
            place: 0,
            sent_rate: 0.0,
            acked_rate: 0.0,
            written_rate: 0.0,
        }
    }

    /// The size of the next packet to send.
    pub(super) fn next(&self) -> Option<u32> {
        self.queue.next()
    }

    pub(super) fn write(&mut self, now: u32, size: u32, ends_frame: bool, adaptive: f32) {
        self.queue.write(now, size);
        self.frame += size;
        if ends_frame {
            self.end_frame(now, adaptive);
        }
        self.retarget(now);
        self.written += size;
    }

    fn end_frame(&mut self, now: u32, adaptive: f32) {
        self.frames += 1;
        if let Some(last) = self.frame_last {
            let since = seconds(now.wrapping_sub(last));
            self.period = since * PERIOD_GAIN + self.period * (1.0 - PERIOD_GAIN);
        }
        self.frame_last = Some(now);
        let mean = self.target * self.period / 8.0;
        let largest = self.queue.bytes().max(self.frame) as f32;
        self.pacing = if mean > SMALL_FRAME { (largest / mean).max(1.0).min(adaptive) } else { 1.0 };
        if self.frame as f32 > mean {
            self.size(self.frame as f32 / mean - 1.0);
        }
        self.frame = 0;
        let error = (self.wait(now) - self.period / 2.0) / self.period;
        self.adjust = (self.adjust + ADJUST_GAIN * error / ADJUST_TIME).clamp(0.0, MAX_RATE_ADJUSTMENT);
    }

    /// Adds a frame that exceeds the mean by this share.
    fn size(&mut self, above: f32) {
        let bin = ((above / RANGE * BINS as f32) as usize).min(BINS - 1);
        self.sizes[bin] += 1.0;
        for count in &mut self.sizes {
            *count *= 1.0 - BINS_DECAY;
        }
        if self.frames > FRAMES {
            let max = LARGE * self.sizes.iter().sum::<f32>();
            let mut sum = 0.0;
            let below = |count: &f32| {
                sum += count;
                sum >= max
            };
            let bin = self.sizes.iter().position(below).unwrap_or(BINS - 1);
            self.large = 1.0 + bin as f32 * RANGE / BINS as f32;
        }
    }

    /// How long the oldest packet has been queued, in seconds.
    fn wait(&self, now: u32) -> f32 {
        self.queue.oldest().map_or(0.0, |written| seconds(now.wrapping_sub(written)))
    }

    pub(super) fn discard(&mut self) {
        self.queue = Queue::default();
    }

    /// A packet was sent; returns when its first bytes were written.
    pub(super) fn take(&mut self, size: u32) -> Option<u32> {
        self.sent += size;
        self.queue.take(size)
    }

    pub(super) fn arrived(&mut self, size: i32) {
        self.acked += size;
    }

    /// Computes rates from the counts.
    pub(super) fn measure(&mut self, now: u32) {
        if let Some(last) = self.measured {
            let time = seconds(now.wrapping_sub(last));
            self.sent_rate = self.sent as f32 * 8.0 / time;
            self.acked_rate = self.acked as f32 * 8.0 / time;
            self.history[self.place] = self.written as f32 * 8.0 / time;
            self.place = (self.place + 1) % PERIODS;
            self.written_rate = self.history.iter().sum::<f32>() / PERIODS as f32;
        }
        (self.sent, self.acked, self.written) = (0, 0, 0);
        self.measured = Some(now);
    }

    /// Discards the queue if it is too old, and computes the target.
    pub(super) fn retarget(&mut self, now: u32) {
        let since = *self.discarded.get_or_insert(now);
        if self.wait(now) > self.discard_after && now.wrapping_sub(since) > DISCARD_INTERVAL {
            self.discard();
            (self.discarded, self.discards) = (Some(now), true);
        }
        self.target = (self.share / (1.0 + self.adjust)).max(self.min_rate).min(self.max_rate);
    }
}

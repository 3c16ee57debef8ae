//! Congestion signals from feedback: marks, queueing delay and its variation, and whether the window is to react.

use super::{Law, NO_DELAY, REACTION};

/// Gains of the share of marks, upwards and downwards.
const ALPHA_UP: f32 = 1.0 / 8.0;
const ALPHA_DOWN: f32 = 1.0 / 128.0;
/// Minimum time over which the share of marks is taken, if the round trip is not shorter: 10 ms.
const ALPHA_INTERVAL: u32 = 655;
/// Gain of the mean queueing delay, upwards.
const DELAY_GAIN: f32 = 1.0 / 4.0;
/// Gain of its long-term minimum, and the round trips after which that is updated.
const MIN_DELAY_GAIN: f32 = 1.0 / 8.0;
const MIN_DELAY_RTTS: u32 = 100;
/// Gain of the variation of queueing delay, the variation that counts as high, and decay of the extremes.
const VARIATION_GAIN: f32 = 1.0 / 32.0;
const VARIATION: f32 = 0.01;
const EXTREMES_DECAY: f32 = 1.0 / 16.0;
impl Law {
    /// Ends the handling of a feedback.
    pub(super) fn react(&mut self, now: u32, marked: bool) {
        let interval = REACTION.min(self.srtt);
        if marked && now.wrapping_sub(self.reaction) > interval {
            self.mark_event = true;
            self.reaction = now;
        }
        self.share_of_marks(now);
        if now.wrapping_sub(self.delay_since) > interval {
            self.mean_delay(now);
        }
        let half = self.settings.delay_target / 2.0;
        if self.delay_mean > half && now.wrapping_sub(self.reaction) > interval {
            self.delay_event = true;
            self.virtual_alpha = ((self.delay_mean - half) / half).clamp(0.0, 1.0) / self.long_round_trip();
        }
        if self.srtt_short_before > self.srtt_short && self.marked_share == 1.0 {
            self.mark_event = false;
        }
        if self.loss_event || self.mark_event || self.delay_event {
            self.reaction = now;
        }
        if self.loss_event {
            self.loss_reaction = now;
        }
        let since = *self.window_since.get_or_insert(now);
        if now.wrapping_sub(since) > interval
            || self.loss_event
            || self.mark_event
            || self.delay_event
            || self.new_frame
        {
            self.update(now);
            self.media.retarget(now);
            self.mark_event = false;
            self.delay_event = false;
            self.window_since = Some(now);
            self.new_frame = false;
        }
    }

    /// The divisor of a reaction if several fit into a round trip.
    pub(super) fn long_round_trip(&self) -> f32 {
        (self.srtt as f32 / REACTION as f32).max(1.0)
    }

    fn share_of_marks(&mut self, now: u32) {
        if !self.settings.l4s {
            self.alpha = 0.0;
            return;
        }
        if now.wrapping_sub(self.alpha_since) <= ALPHA_INTERVAL.min(self.srtt) {
            return;
        }
        self.alpha_since = now;
        self.marked_share = 0.0;
        if self.delivered > 0 {
            self.marked_share = self.marked as f32 / self.delivered as f32;
            self.alpha = if self.marked_share >= self.alpha {
                (ALPHA_UP * self.marked_share + (1.0 - ALPHA_UP) * self.alpha).min(1.0)
            } else {
                self.alpha * (1.0 - ALPHA_DOWN)
            };
            (self.delivered, self.marked) = (0, 0);
        }
    }

    fn mean_delay(&mut self, now: u32) {
        if now.wrapping_sub(self.queue_delay_min_since) > self.srtt.wrapping_mul(MIN_DELAY_RTTS) {
            self.queue_delay_min = if self.queue_delay_min_current < self.queue_delay_min {
                self.queue_delay_min_current
            } else {
                MIN_DELAY_GAIN * self.queue_delay_min_current + (1.0 - MIN_DELAY_GAIN) * self.queue_delay_min
            };
            self.queue_delay_min_current = NO_DELAY;
            self.queue_delay_min_since = now;
        }
        let delay = self.delay - self.queue_delay_min;
        self.delay_mean =
            if delay < self.delay_mean { delay } else { (1.0 - DELAY_GAIN) * self.delay_mean + DELAY_GAIN * delay };
        let variation = (self.delay_high - self.delay_low).clamp(0.0, 2.0 * VARIATION);
        self.variation = (1.0 - VARIATION_GAIN) * self.variation + VARIATION_GAIN * variation;
        self.latency_diff_cwnd_scale = (1.0 - self.variation / VARIATION).clamp(0.0, 1.0);
        self.delay_high *= 1.0 - EXTREMES_DECAY;
        self.delay_low = (1.0 - EXTREMES_DECAY) * self.delay_low + EXTREMES_DECAY * self.delay_high;
        self.policed *= 1.001;
        if !self.settings.faults.overflow {
            self.policed = self.policed.min(1e8);
        }
        self.delay_since = now;
    }
}

//! The window's update, and the pacing rate and target that follow from it.

use super::{Law, SECOND, VIRTUAL_RTT};

/// Growth is slow for this many round trips after congestion.
const POST_CONGESTION: u32 = 200;
/// After this many round trips without congestion, the window is first reduced to what was in flight.
const LONG_AGO: f32 = 100.0;
/// Minimum pacing rate in bits per second, and minimum interval in seconds.
const MIN_PACE_RATE: f32 = 50e3;
const MIN_PACE_INTERVAL: f32 = 10e-6;
/// Pacing is relaxed from this share of the maximum rate on, at most by this factor.
const RELAXED_FROM: f32 = 0.8;
const RELAXED: f32 = 5.0;
/// How often the bytes in flight are sampled: 50 ms.
const SLOW: u32 = 3277;
/// Number of those samples kept.
pub(super) const LOOKS: usize = 20;
/// Above this share of the maximum rate, the window is bounded by what is in flight.
const NEAR_MAX_RATE: f32 = 0.95;
/// Multiple of the window that may be in flight while the delay varies.
const MIN_HEADROOM: f32 = 1.5;
/// The window moves slowly within 1/8 of the inflection point: the inverse of that share.
const INFLECTION_PROXIMITY: f32 = 8.0;
/// A target below this share of the receive rate has already been reduced; the window then falls by a quarter of the
/// usual share.
const UNDERSHOOT_THRESHOLD: f32 = 0.8;
/// Factor of the window at a loss behind a policer.
const POLICED_BETA: f32 = 0.95;
/// Headers of RTP and UDP, in bytes.
const OVERHEAD: i32 = 20;

impl Law {
    pub(super) fn update(&mut self, now: u32) {
        let since = now.wrapping_sub(self.congestion);
        self.post_congestion = (since as f32 / POST_CONGESTION.wrapping_mul(self.srtt) as f32).clamp(0.0, 1.0);
        self.queue_delay_min_current = self.queue_delay_min_current.min(self.delay);
        self.pace_by_target();
        if now.wrapping_sub(self.slow_since) > SLOW {
            self.look_at_flight(now);
        }
        let ratio = self.mss() as f32 / self.window as f32;
        self.headroom = MIN_HEADROOM + (self.settings.window_headroom - MIN_HEADROOM) * self.latency_diff_cwnd_scale;
        let inflection_scale = (self.window - self.inflection) as f32 / self.inflection as f32 * INFLECTION_PROXIMITY;
        let inflection_scale = (inflection_scale * inflection_scale).clamp(0.1, 1.0);
        self.decrease(now, inflection_scale);
        self.increase(ratio, inflection_scale);
        self.rate_of_window(ratio);
    }

    fn pace_by_target(&mut self) {
        let target = self.media.target;
        let adaptive = if self.media.pacing > 1.0 && target > 0.0 { self.media.pacing * target / target } else { 1.0 };
        let rate = target.max(self.media.written_rate);
        let mut rate = (self.settings.pacing * adaptive * rate).max(MIN_PACE_RATE);
        let share = target / self.settings.max_rate;
        if self.settings.relaxed_pacing && share > RELAXED_FROM {
            let relaxed = ((share - RELAXED_FROM) / (1.0 - RELAXED_FROM)).min(1.0);
            rate /= (1.0 - relaxed).clamp(1.0 / RELAXED, 1.0);
        }
        self.pace = (self.mss() as f32 * 8.0 / rate).max(MIN_PACE_INTERVAL);
    }

    fn look_at_flight(&mut self, now: u32) {
        let flight = &mut self.flight;
        flight.looks[flight.look] = flight.max_bytes;
        flight.look = (flight.look + 1) % LOOKS;
        if self.media.target > self.settings.max_rate * NEAR_MAX_RATE {
            let max = flight.looks.iter().copied().max().unwrap_or(0).max(flight.max_bytes);
            let needed = self.settings.pacing * self.large * self.settings.max_rate / 8.0 * (self.rtt + 0.001);
            self.window = self.window.min(max.max(needed as i32));
        }
        if now.wrapping_sub(self.start) > 2 * SECOND {
            flight.max_bytes_previous = flight.max_bytes;
            flight.max_bytes = 0;
        }
        self.large = self.media.large;
        self.slow_since = now;
    }

    fn decrease(&mut self, now: u32, inflection_scale: f32) {
        if !(self.loss_event || self.mark_event || self.delay_event) {
            return;
        }
        if !self.inflection_held {
            self.inflection = self.window;
            self.inflection_held = true;
        }
        let window = self.window as f32;
        if self.loss_event {
            let beta = if self.policed_held { POLICED_BETA } else { self.settings.loss_beta };
            self.fall_to(beta * window);
            self.loss_event = false;
        } else if self.mark_event {
            if self.settings.l4s {
                self.fall_by_marks(now, inflection_scale);
            } else {
                self.fall_to(self.settings.ecn_beta * window);
            }
            (self.mark_event, self.delay_event) = (false, false);
        } else {
            let mut share = self.scale_undershoot(self.virtual_alpha / 2.0);
            if self.settings.faults.divided_twice {
                share /= self.long_round_trip();
            }
            self.fall_to((1.0 - share) * window);
            self.delay_event = false;
        }
        self.congestion = now;
        self.post_congestion = 0.0;
    }

    fn fall_to(&mut self, window: f32) {
        self.window = self.min_ref_wnd.max(window as i32);
    }

    /// The share to reduce by: a quarter of `share` if the target has already been reduced.
    fn scale_undershoot(&self, share: f32) -> f32 {
        if self.media.target < self.media.acked_rate * UNDERSHOOT_THRESHOLD { share * 0.25 } else { share }
    }

    fn fall_by_marks(&mut self, now: u32, inflection_scale: f32) {
        let mut share = self.scale_undershoot(self.alpha / 2.0) / self.long_round_trip();
        if self.delay < self.settings.delay_target * 0.25 {
            share *= inflection_scale.max(0.25);
            share *= self.latency_diff_cwnd_scale.clamp(0.25, 1.0);
        }
        let long = LONG_AGO * self.rtt.max(VIRTUAL_RTT) * SECOND as f32;
        if now.wrapping_sub(self.congestion) as f32 > long {
            self.window = self.window.min(self.flight.max_bytes_previous);
        }
        self.fall_to((1.0 - share) * self.window as f32);
    }

    fn increase(&mut self, ratio: f32, inflection_scale: f32) {
        let mut increment = (self.acked - self.acked_marked) as f32 * ratio;
        increment *= inflection_scale.max(0.25);
        increment *= (self.rtt / VIRTUAL_RTT).min(1.0);
        increment *= self.latency_diff_cwnd_scale.clamp(0.1, 1.0);
        let share = self.settings.multiplicative_increase * self.window as f32 / self.mss() as f32;
        let share = (1.0 + f64::from(share)) as f32;
        let share = 1.0 + (f64::from(share) - 1.0) * f64::from(self.post_congestion) * f64::from(inflection_scale);
        increment *= share as f32;
        let max = self.flight.max_bytes.max(self.flight.max_bytes_previous) as f32;
        let allowed = self.mss() as f32 + max * self.settings.flight_headroom;
        self.limited = allowed < self.window as f32;
        let window = self.window + (increment + 0.5) as i32;
        if window as f32 <= allowed && self.media.target < self.settings.max_rate {
            if window > self.window {
                self.inflection_held = false;
            }
            self.window = window;
        }
        self.window = self.window.min(self.policed_window()).max(self.min_ref_wnd);
        (self.acked, self.acked_marked) = (0, 0);
    }

    /// The policer's limit in whole bytes; a number too large for 32 bits becomes the minimum integer, as on the
    /// reference's machine.
    fn policed_window(&self) -> i32 {
        if self.policed < 2_147_483_648.0 { self.policed as i32 } else { i32::MIN }
    }

    fn rate_of_window(&mut self, ratio: f32) {
        let mut rtt = self.rtt + 0.001;
        if self.settings.faults.rtt_clamp {
            rtt = rtt.min(0.2);
        }
        let mut rate = (8 * self.window) as f32 / rtt.max(0.001);
        rate *= 1.0 - (ratio - 0.1).clamp(0.0, 0.2);
        rate /= 1.1;
        let overhead = self.mss() as f32 / (self.mss() + OVERHEAD) as f32;
        self.media.share = (rate * overhead).min(self.settings.max_rate);
    }
}

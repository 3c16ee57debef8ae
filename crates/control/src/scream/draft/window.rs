//! The reference window ("Reference Window Update").

use super::Law;

/// LOSS_RATE_THRESHOLD.
pub(super) const LOSS_RATE: f64 = 0.01;
/// The window moves slowly within 1/8 of ref_wnd_i: the inverse of that share.
const INFLECTION_PROXIMITY: f64 = 8.0;
/// After this many round trips without a reaction, the window is first reduced to what was in flight.
const LONG_AGO: f64 = 100.0;
/// ACKED_BITRATE_MARGIN and BACKOFF_SCALE_LOW_TARGETRATE.
const ACKED_BITRATE_MARGIN: f64 = 0.8;
const BACKOFF_SCALE_LOW_TARGETRATE: f64 = 0.25;

/// A cause for reducing the window.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Sign {
    Loss,
    Mark,
    /// l4s_alpha_v_t.
    Delay(f64),
}

impl Law {
    pub(super) fn update(&mut self, now: f64) {
        let inflection_scale = (self.window - self.inflection) / self.inflection * INFLECTION_PROXIMITY;
        let inflection_scale = (inflection_scale * inflection_scale).clamp(0.1, 1.0);
        if self.lost_seen || self.mark_seen {
            self.congestion = now;
        }
        if now - self.reaction >= self.settings.virtual_rtt.min(self.srtt) {
            if let Some(sign) = self.sign() {
                self.decrease(now, inflection_scale, sign);
            }
            (self.lost_seen, self.mark_seen) = (false, false);
        }
        self.increase(now, inflection_scale);
        (self.acked, self.acked_marked) = (0.0, 0.0);
    }

    fn sign(&self) -> Option<Sign> {
        let target = self.settings.delay_target;
        let counts = !self.settings.loss_threshold || self.loss_rate > LOSS_RATE || self.delay_mean > target / 4.0;
        if self.lost_seen && counts {
            Some(Sign::Loss)
        } else if self.mark_seen {
            Some(Sign::Mark)
        } else if self.delay_mean > target / 2.0 {
            Some(Sign::Delay(((self.delay_mean - target / 2.0) / (target / 2.0)).clamp(0.0, 1.0)))
        } else {
            None
        }
    }

    /// "Reference Window Reduction".
    fn decrease(&mut self, now: f64, inflection_scale: f64, sign: Sign) {
        if self.inflection_open {
            self.inflection = self.window;
            self.inflection_open = false;
        }
        let kept = match sign {
            Sign::Loss => self.settings.loss_beta,
            Sign::Mark if self.settings.l4s => 1.0 - self.by_marks(now, inflection_scale),
            Sign::Mark => self.settings.ecn_beta,
            Sign::Delay(alpha) => 1.0 - self.backoff(alpha),
        };
        self.window = (kept * self.window).trunc().max(self.settings.min_ref_wnd);
        self.reaction = now;
    }

    /// Half the share of marks, less if several reactions fit into a round trip.
    fn backoff(&self, alpha: f64) -> f64 {
        let backoff = alpha / 2.0 / (self.srtt / self.settings.virtual_rtt).max(1.0);
        let undershoots = self.settings.undershoot && self.target < self.received_rate * ACKED_BITRATE_MARGIN;
        if undershoots { backoff * BACKOFF_SCALE_LOW_TARGETRATE } else { backoff }
    }

    fn by_marks(&mut self, now: f64, inflection_scale: f64) -> f64 {
        let mut backoff = self.backoff(self.alpha);
        if self.delay < self.settings.delay_target * 0.25 {
            backoff *= inflection_scale.max(0.25) * self.ref_wnd_delay_scale.max(0.25);
        }
        if now - self.reaction > LONG_AGO * self.settings.virtual_rtt.max(self.srtt) {
            self.window = self.window.min(self.flight[1]);
        }
        backoff
    }

    /// "Reference Window Increase".
    fn increase(&mut self, now: f64, inflection_scale: f64) {
        let settings = &self.settings;
        let long = settings.post_congestion_rtts * settings.virtual_rtt.max(self.srtt);
        let post_congestion = ((now - self.congestion) / long).clamp(0.0, 1.0);
        let share = settings.multiplicative_increase * self.window / settings.mss;
        let increment = (self.acked - self.acked_marked)
            * (settings.mss / self.window).min(1.0)
            * (self.srtt / settings.virtual_rtt).min(1.0)
            * inflection_scale.max(0.25)
            * self.ref_wnd_delay_scale.max(0.1)
            * (1.0 + share * post_congestion * inflection_scale);
        let allowed = settings.mss + self.flight[0].max(self.flight[1]) * settings.flight_headroom;
        let window = (self.window + increment).trunc();
        if window <= allowed && self.target < settings.max_rate {
            self.inflection_open |= window > self.window;
            self.window = window;
        }
    }
}

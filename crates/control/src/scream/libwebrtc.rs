//! SCReAM v2 by libwebrtc: the reference window at each feedback, the pacing rate and the target.
//!
//! Source: the behaviour of libwebrtc's `modules/congestion_controller/scream` (`scream_v2.cc`,
//! `delay_based_congestion_control.cc`, `loss_estimator.cc`) of June 2026 (f48df12d). As there, windows are in whole
//! bytes, times in whole microseconds, rates in whole bits per second, and products with fractions are rounded. Left
//! out: route changes, and the late arrival of packets reported lost.

mod controller;
mod delay;
mod loss;

pub use controller::Libwebrtc;
use delay::Delay;
use loss::Losses;

/// Gains of the share of marks, upwards and downwards.
const ALPHA_UP: f64 = 1.0 / 8.0;
const ALPHA_DOWN: f64 = 1.0 / 128.0;
/// Gain of the mean time for which the receiver holds feedback.
const HOLD_GAIN: f64 = 1.0 / 8.0;
/// The application is limited below this share of the target; rates are measured over this time, in microseconds.
const LIMITED: f64 = 0.9;
const RATE_WINDOW: i64 = 100_000;
/// The pacing rate is at least this share of the receive rate.
const RECEIVED: f64 = 0.8;
/// To drain a queue, the target is halved for this many round trips, or for 0.1 s.
const DRAIN_RTTS: f64 = 5.0;
const DRAIN: i64 = 100_000;

/// The sender's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// The target's minimum, in bits per second.
    pub min_rate: i64,
    /// The target's initial value.
    pub start_rate: i64,
    /// The target's maximum.
    pub max_rate: i64,
    /// MinRefWindow, in bytes.
    pub min_ref_window: i64,
    /// MaxSegmentSize, in bytes.
    pub mss: i64,
    /// BetaLoss.
    pub loss_beta: f64,
    /// QDelayTarget, in microseconds.
    pub delay_target: i64,
    /// VirtualRtt, in microseconds.
    pub virtual_rtt: i64,
    /// PacingFactor.
    pub pacing: f64,
    /// BytesInFlightHeadRoom.
    pub flight_headroom: f64,
    /// MultiplicativeIncreaseFactor.
    pub multiplicative_increase: f64,
    /// PostCongestionDelayRtts.
    pub post_congestion_rtts: f64,
    /// BackoffScaleFactorCloseToRefWindowI.
    pub backoff_scale_factor_close_to_ref_window_i: f64,
    /// RefWinMin.
    pub ref_window_overhead_min: f64,
    /// RefWinMax.
    pub ref_window_overhead_max: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            min_rate: 0,
            start_rate: 300_000,
            max_rate: i64::MAX,
            min_ref_window: 1000,
            mss: 1280,
            loss_beta: 0.7,
            delay_target: 60_000,
            virtual_rtt: 25_000,
            pacing: 1.1,
            flight_headroom: 1.1,
            multiplicative_increase: 0.02,
            post_congestion_rtts: 100.0,
            backoff_scale_factor_close_to_ref_window_i: 2.0,
            ref_window_overhead_min: 1.5,
            ref_window_overhead_max: 3.0,
        }
    }
}

/// The arrival of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When it was sent, in microseconds.
    pub sent: i64,
    /// When it arrived, by the receiver's clock.
    pub at: i64,
    /// Whether it was marked.
    pub marked: bool,
}

/// A packet whose fate is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fated {
    /// Its size, in bytes.
    pub size: i64,
    /// Its arrival; `None` if it is lost.
    pub arrival: Option<Arrival>,
}

/// The content of feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback<'a> {
    /// The packets, in sending order.
    pub packets: &'a [Fated],
    /// How long the receiver held the feedback after the last packet, in microseconds.
    pub held: i64,
    /// Bytes in flight after it.
    pub in_flight: i64,
}

/// The sender's state.
#[derive(Clone, Debug)]
pub struct Law {
    settings: Settings,
    delay: Delay,
    losses: Losses,
    /// The reference window.
    pub window: i64,
    /// The window at which congestion last began.
    pub inflection: i64,
    inflection_open: bool,
    has_feedback: bool,
    /// The mean share of marks.
    pub alpha: f64,
    hold: i64,
    flight: [i64; 2],
    flight_since: Option<i64>,
    reaction: Option<i64>,
    /// When the window was last reduced.
    fell: Option<i64>,
    /// Whether the application uses less than the window.
    pub limited: bool,
    received: i64,
    received_since: Option<i64>,
    received_rate: Option<i64>,
    draining: Option<i64>,
    target: i64,
}

/// A product, rounded as libwebrtc's units do.
fn scaled(value: i64, by: f64) -> i64 {
    libm::round(value as f64 * by) as i64
}

impl Law {
    /// The initial state of a sender.
    #[must_use]
    pub fn new(settings: Settings) -> Law {
        Law {
            settings,
            delay: Delay::new(settings.delay_target),
            losses: Losses::new(settings.virtual_rtt),
            window: settings.min_ref_window,
            inflection: 1,
            inflection_open: true,
            has_feedback: false,
            alpha: 0.0,
            hold: 0,
            flight: [0; 2],
            flight_since: None,
            reaction: None,
            fell: None,
            limited: false,
            received: 0,
            received_since: None,
            received_rate: None,
            draining: None,
            target: settings.start_rate,
        }
    }

    /// A packet was sent; `in_flight` bytes are in flight with it.
    pub fn sent(&mut self, in_flight: i64) {
        self.flight[0] = self.flight[0].max(in_flight);
    }

    /// Handles feedback; without a received packet it has no effect.
    pub fn feedback(&mut self, now: i64, feedback: &Feedback<'_>) {
        let arrivals = || feedback.packets.iter().filter_map(|packet| packet.arrival);
        // of packets that arrived at the same time, the one sent later counts as the later one
        let Some(last) = arrivals().reduce(|a, b| if b.at >= a.at { b } else { a }) else { return };
        let first = arrivals().map(|packet| packet.at).min().unwrap_or(last.at);
        self.flight[0] = self.flight[0].max(feedback.in_flight);
        self.measure(last.at, feedback);
        let rate = self.received_rate.map_or(f64::INFINITY, |rate| rate as f64);
        self.limited = self.max_ref_window() < self.window && rate < scaled(self.target(), LIMITED) as f64;
        let sample = (now - last.sent - feedback.held).max(0);
        self.delay.update(now, feedback.packets, sample, self.limited);
        if !self.limited {
            let held = last.at + feedback.held - first;
            if self.hold == 0 {
                self.hold = held;
            }
            self.hold = scaled(held, HOLD_GAIN) + scaled(self.hold, 1.0 - HOLD_GAIN);
        }
        if !self.has_feedback {
            let bits = self.target as i128 * i128::from(self.delay.rtt + self.hold);
            self.window = self.settings.min_ref_window.max(((bits + 4_000_000) / 8_000_000) as i64);
            self.has_feedback = true;
        }
        self.share_of_marks(feedback.packets);
        self.update(now, feedback.packets);
        self.rate_of_window(now);
        if self.flight_since.is_none_or(|since| now - since >= self.settings.virtual_rtt.max(self.delay.rtt)) {
            self.flight_since = Some(now);
            self.flight = [0, self.flight[0]];
        }
    }

    /// Measures the receive rate; unknown at first.
    fn measure(&mut self, last: i64, feedback: &Feedback<'_>) {
        self.received += feedback.packets.iter().filter(|p| p.arrival.is_some()).map(|p| p.size).sum::<i64>();
        let Some(since) = self.received_since else {
            (self.received_since, self.received) = (Some(last), 0);
            return;
        };
        if last - since >= RATE_WINDOW {
            self.received_rate = Some(self.received * 8_000_000 / (last - since));
            (self.received_since, self.received) = (Some(last), 0);
        }
    }

    fn share_of_marks(&mut self, packets: &[Fated]) {
        let arrivals = packets.iter().filter_map(|packet| packet.arrival);
        let (count, marked) = arrivals.fold((0.0, 0.0), |(n, m), c| (n + 1.0, m + f64::from(u8::from(c.marked))));
        let share = marked / count;
        self.alpha = if share > self.alpha {
            (ALPHA_UP * share + (1.0 - ALPHA_UP) * self.alpha).min(1.0)
        } else {
            (1.0 - ALPHA_DOWN) * self.alpha
        };
    }

    fn update(&mut self, now: i64, packets: &[Fated]) {
        let marked = packets.iter().any(|packet| packet.arrival.is_some_and(|arrival| arrival.marked));
        let lost = self.losses.update(now, packets, self.delay.rtt);
        let queue = self.delay.is_queue();
        let lost = lost && (self.losses.is_congestion() || queue);
        let before = self.window;
        let long = (self.delay.rtt as f64 / self.settings.virtual_rtt as f64).max(1.0);
        let shortest = self.delay.rtt.min(self.settings.virtual_rtt);
        let due = self.reaction.is_none_or(|reaction| now - reaction >= shortest);
        if (queue || marked || lost) && due {
            self.reaction = Some(now);
            let backoff = if lost {
                1.0 - self.settings.loss_beta
            } else if marked {
                let backoff = self.alpha / 2.0 / long;
                if queue {
                    backoff
                } else {
                    backoff
                        * self.scale_close_to_ref_window_i().max(0.25)
                        * self.delay.scale_due_to_avg_min_delay().max(0.1)
                }
            } else {
                self.delay.alpha() / 2.0 / long
            };
            self.window = scaled(self.window, 1.0 - backoff);
        }
        if (!marked && self.losses.level < 0.01 && !queue) || self.reaction == Some(now) {
            self.increase(now, packets);
        }
        if self.window > before {
            self.inflection_open = true;
        } else if self.window < before {
            self.fell = Some(now);
            if self.inflection_open {
                self.inflection = before;
                self.inflection_open = false;
            }
        }
    }

    fn increase(&mut self, now: i64, packets: &[Fated]) {
        let settings = &self.settings;
        let mut scale = self.ratio();
        let rtt = self.delay.rtt + self.hold;
        if rtt < settings.virtual_rtt {
            let part = rtt as f64 / settings.virtual_rtt as f64;
            scale *= part * part;
        }
        let scale_close_to_ref_window_i = self.scale_close_to_ref_window_i();
        scale *= scale_close_to_ref_window_i.max(0.25);
        scale *= self.delay.scale_due_to_avg_min_delay();
        scale *= self.delay.scale_due_to_latency_difference();
        let long = scaled(settings.virtual_rtt.max(self.delay.rtt), settings.post_congestion_rtts) as f64;
        let post_congestion = self.reaction.map_or(1.0, |reaction| ((now - reaction) as f64 / long).clamp(0.0, 1.0));
        let share = scaled(self.window, settings.multiplicative_increase) as f64 / settings.mss as f64;
        scale *= 1.0 + share * post_congestion * scale_close_to_ref_window_i;
        let acked = packets.iter().filter(|p| !p.arrival.is_some_and(|arrival| arrival.marked)).map(|p| p.size).sum();
        let max = self.max_ref_window();
        if self.window < max {
            self.window = (self.window + scaled(acked, scale)).clamp(settings.min_ref_window, max);
        }
    }

    fn ratio(&self) -> f64 {
        (self.settings.mss as f64 / self.window as f64).min(1.0)
    }

    /// Factor that slows the window's changes near its inflection point.
    fn scale_close_to_ref_window_i(&self) -> f64 {
        let by = scaled((self.window - self.inflection).abs(), self.settings.backoff_scale_factor_close_to_ref_window_i)
            as f64
            / self.inflection as f64;
        (by * by).clamp(0.1, 1.0)
    }

    /// The window's limit by bytes in flight.
    fn max_ref_window(&self) -> i64 {
        let flight = self.flight[0].max(self.flight[1]);
        (self.settings.mss + scaled(flight, self.settings.flight_headroom)).max(self.settings.min_ref_window)
    }

    fn rate_of_window(&mut self, now: i64) {
        let rtt = self.delay.rtt.max(1000);
        let scale = 1.0 - (self.ratio() - 0.1).clamp(0.0, 0.2);
        let mut rate = scaled(self.window * 8_000_000 / (rtt + self.hold), scale);
        if self.delay.is_drained(now) {
            self.draining = None;
        } else {
            let since = *self.draining.get_or_insert(now);
            if now - since < DRAIN.max(scaled(rtt, DRAIN_RTTS)) {
                rate = scaled(rate, 0.5);
            } else {
                self.delay.forget();
            }
        }
        self.target = rate.max(self.settings.min_rate).min(self.settings.max_rate);
    }

    /// The target rate of the encoder in bits per second.
    #[must_use]
    pub fn target(&self) -> i64 {
        self.target.min(self.settings.max_rate)
    }

    /// Bytes that may be in flight.
    #[must_use]
    pub fn allowed(&self) -> i64 {
        let Settings { ref_window_overhead_min: min, ref_window_overhead_max: max, .. } = self.settings;
        scaled(self.window, min + (max - min) * self.delay.scale_due_to_avg_min_delay_or_zero())
    }

    /// The pacing rate in bits per second.
    #[must_use]
    pub fn pace(&self) -> i64 {
        let pace = scaled(self.target(), self.settings.pacing);
        self.received_rate.map_or(pace, |received| pace.max(scaled(received, RECEIVED)))
    }

    /// The mean round trip and the mean queueing delay in microseconds; no delay before the first feedback.
    #[must_use]
    pub fn delays(&self) -> (i64, Option<i64>) {
        (self.delay.rtt, self.delay.mean)
    }
}

#[cfg(test)]
mod tests;

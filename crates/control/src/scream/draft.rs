//! SCReAM v2 by its draft: the reference window, pacing and media rate of its pseudocode.
//!
//! Source: draft-ietf-ccwg-rfc8298bis-screamv2 (August 2026), with its section names and, in capitals, its constants.
//! Times are in seconds, windows in whole bytes, rates in bits per second. Left out: its options (competing flows
//! compensation, the remedies for rate policers and for clock drift), and what it describes in words only (listed in
//! docs/controllers/scream.md).

mod controller;
mod window;

use super::base_delay::BaseDelay;
use super::queue::Queue;
pub use controller::Draft;

/// L4S_AVG_G_UP and L4S_AVG_G_DOWN.
const ALPHA_UP: f64 = 1.0 / 8.0;
const ALPHA_DOWN: f64 = 1.0 / 128.0;
/// l4s_alpha is updated after this time or a round trip, whichever is shorter.
const ALPHA_INTERVAL: f64 = 0.010;
/// QDELAY_AVG_G.
const DELAY_GAIN: f64 = 1.0 / 4.0;
/// QDELAY_MIN_MAX_AVG_G.
const EXTREMES_GAIN: f64 = 1.0 / 16.0;
/// QDELAY_DEV_AVG_G and QDELAY_DEV_THRESHOLD.
const VARIATION_GAIN: f64 = 1.0 / 32.0;
const VARIATION: f64 = 0.01;
/// RATE_PACE_MIN.
const RATE_PACE_MIN: f64 = 50e3;
/// RELAXED_PACING_LIMIT_LOW.
const RELAXED_FROM: f64 = 0.8;
/// PACKET_OVERHEAD.
const OVERHEAD: f64 = 20.0;
/// RATE_ADJUST_GAIN.
const ADJUST_GAIN: f64 = 1.0 / 16.0;
/// FRAME_SIZE_DEV_ALPHA.
const FRAME_GAIN: f64 = 1.0 / 64.0;
/// The weight of the newest frame interval; the draft does not say how it estimates the frame period.
const PERIOD_GAIN: f64 = 0.9;
/// alpha of RFC 6298.
const RTT_GAIN: f64 = 1.0 / 8.0;

/// The sender's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// TARGET_BITRATE_MIN.
    pub min_rate: f64,
    /// TARGET_BITRATE_MAX.
    pub max_rate: f64,
    /// MIN_REF_WND.
    pub min_ref_wnd: f64,
    /// MSS.
    pub mss: f64,
    /// BETA_LOSS.
    pub loss_beta: f64,
    /// BETA_ECN.
    pub ecn_beta: f64,
    /// QDELAY_TARGET_LO.
    pub delay_target: f64,
    /// VIRTUAL_RTT.
    pub virtual_rtt: f64,
    /// PACKET_PACING_HEADROOM.
    pub pacing: f64,
    /// MAX_RELAXED_PACING_FACTOR.
    pub relaxed_pacing: f64,
    /// BYTES_IN_FLIGHT_HEAD_ROOM.
    pub flight_headroom: f64,
    /// MUL_INCREASE_FACTOR.
    pub multiplicative_increase: f64,
    /// POST_CONGESTION_DELAY_RTT.
    pub post_congestion_rtts: f64,
    /// REF_WND_OVERHEAD_MIN.
    pub ref_wnd_overhead_min: f64,
    /// REF_WND_OVERHEAD_MAX.
    pub ref_wnd_overhead_max: f64,
    /// IS_L4S.
    pub l4s: bool,
    /// REDUCE_JITTER.
    pub reduce_jitter: bool,
    /// Whether losses count only above LOSS_RATE_THRESHOLD or with a queue ("Link layer losses and rate policers").
    pub loss_threshold: bool,
    /// Whether the window is reduced less when the target is below the receive rate ("Reference window undershoot at
    /// congestion").
    pub undershoot: bool,
}

impl Default for Settings {
    /// The draft's default values.
    fn default() -> Settings {
        Settings {
            min_rate: 150e3,
            max_rate: 1.5e6,
            min_ref_wnd: 3000.0,
            mss: 1000.0,
            loss_beta: 0.7,
            ecn_beta: 0.8,
            delay_target: 0.06,
            virtual_rtt: 0.025,
            pacing: 1.5,
            relaxed_pacing: 4.0,
            flight_headroom: 1.5,
            multiplicative_increase: 0.02,
            post_congestion_rtts: 100.0,
            ref_wnd_overhead_min: 1.5,
            ref_wnd_overhead_max: 3.0,
            l4s: false,
            reduce_jitter: false,
            loss_threshold: false,
            undershoot: false,
        }
    }
}

/// A packet whose fate is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fated {
    /// Its size, in bytes.
    pub size: f64,
    /// If it arrived: its one-way delay by the two clocks, and whether it was marked.
    pub arrival: Option<(f64, bool)>,
}

/// The content of feedback.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback<'a> {
    /// Packets whose fate it is the first to report.
    pub packets: &'a [Fated],
    /// The round-trip time.
    pub rtt: Option<f64>,
    /// Bytes in flight after it.
    pub in_flight: f64,
}

/// The sender's state.
#[derive(Clone, Debug)]
pub struct Law {
    settings: Settings,
    base: BaseDelay,
    queue: Queue<f64>,
    /// ref_wnd.
    pub window: f64,
    /// ref_wnd_i.
    pub inflection: f64,
    inflection_open: bool,
    /// s_rtt.
    pub srtt: f64,
    /// qdelay.
    pub delay: f64,
    /// qdelay_avg.
    pub delay_mean: f64,
    delay_high: f64,
    delay_low: f64,
    variation: f64,
    /// ref_wnd_delay_scale.
    pub ref_wnd_delay_scale: f64,
    delay_since: f64,
    /// l4s_alpha.
    pub alpha: f64,
    alpha_since: f64,
    delivered: f64,
    marked: f64,
    loss_rate: f64,
    lost_seen: bool,
    mark_seen: bool,
    acked: f64,
    acked_marked: f64,
    flight: [f64; 2],
    flight_since: f64,
    congestion: f64,
    reaction: f64,
    received: f64,
    received_since: f64,
    received_rate: f64,
    /// rate_adjust_factor.
    pub adjust: f64,
    /// frame_size_dev.
    pub frame_deviation: f64,
    period: f64,
    frame_last: Option<f64>,
    /// target_bitrate.
    pub target: f64,
}

impl Law {
    /// A sender's initial state; time starts at zero.
    #[must_use]
    pub fn new(settings: Settings) -> Law {
        Law {
            settings,
            base: BaseDelay::default(),
            queue: Queue::default(),
            window: settings.min_ref_wnd,
            inflection: 1.0,
            inflection_open: true,
            srtt: 0.0,
            delay: 0.0,
            delay_mean: 0.0,
            delay_high: settings.delay_target,
            delay_low: 0.0,
            variation: 0.0,
            ref_wnd_delay_scale: 1.0,
            delay_since: 0.0,
            alpha: 0.0,
            alpha_since: 0.0,
            delivered: 0.0,
            marked: 0.0,
            loss_rate: 0.0,
            lost_seen: false,
            mark_seen: false,
            acked: 0.0,
            acked_marked: 0.0,
            flight: [0.0; 2],
            flight_since: 0.0,
            congestion: 0.0,
            reaction: 0.0,
            received: 0.0,
            received_since: 0.0,
            received_rate: 0.0,
            adjust: 0.0,
            frame_deviation: 0.0,
            period: 0.02,
            frame_last: None,
            target: settings.min_rate,
        }
    }

    /// The encoder has written a frame of `bytes` bytes ("Media Rate Control").
    pub fn frame(&mut self, now: f64, bytes: u32) {
        if let Some(last) = self.frame_last.filter(|&last| now > last) {
            self.period += PERIOD_GAIN * (now - last - self.period);
        }
        self.frame_last = Some(now);
        self.queue.write(now, bytes);
        let wait = self.queue.oldest().map_or(0.0, |written| now - written);
        let error = (wait - self.period / 4.0) / self.period;
        self.adjust = (self.adjust + error * ADJUST_GAIN).clamp(0.0, 0.5);
        let nominal = self.target * self.period / 8.0;
        let deviation = ((f64::from(bytes) - nominal) / nominal).max(0.0);
        self.frame_deviation = ((1.0 - FRAME_GAIN) * self.frame_deviation + FRAME_GAIN * deviation).min(0.2);
    }

    /// A packet was sent; `in_flight` bytes are in flight with it.
    pub fn sent(&mut self, size: u32, in_flight: f64) {
        self.queue.take(size);
        self.flight[0] = self.flight[0].max(in_flight);
    }

    /// Handles feedback.
    pub fn feedback(&mut self, now: f64, feedback: &Feedback<'_>) {
        if let Some(rtt) = feedback.rtt {
            self.srtt = if self.srtt == 0.0 { rtt } else { (1.0 - RTT_GAIN) * self.srtt + RTT_GAIN * rtt };
        }
        for packet in feedback.packets {
            self.packet(now, packet);
        }
        if self.srtt == 0.0 {
            return;
        }
        if now - self.received_since >= self.srtt {
            self.received_rate = 8.0 * self.received / (now - self.received_since);
            (self.received, self.received_since) = (0.0, now);
        }
        self.share_of_marks(now);
        self.mean_delay(now);
        self.update(now);
        if now - self.flight_since >= self.srtt {
            self.flight = [feedback.in_flight, self.flight[0]];
            self.flight_since = now;
        }
        self.rate_of_window();
    }

    fn packet(&mut self, now: f64, packet: &Fated) {
        self.acked += packet.size;
        let gain = (window::LOSS_RATE / 4.0).min(self.settings.mss / self.window / 2.0);
        let lost = if packet.arrival.is_some() { 0.0 } else { 1.0 };
        self.loss_rate = (1.0 - gain) * self.loss_rate + gain * lost;
        let Some((one_way, marked)) = packet.arrival else {
            self.lost_seen = true;
            return;
        };
        self.delivered += 1.0;
        self.received += packet.size;
        if marked {
            self.marked += 1.0;
            self.acked_marked += packet.size;
            self.mark_seen = true;
        }
        self.delay = self.base.queueing(now, one_way);
        if self.settings.reduce_jitter {
            self.delay_high = self.settings.delay_target.min(self.delay_high.max(self.delay));
            self.delay_low = self.delay_low.min(self.delay);
        }
    }

    /// "Receiving ECN-CE for L4S".
    fn share_of_marks(&mut self, now: f64) {
        if self.delivered == 0.0 || now - self.alpha_since < ALPHA_INTERVAL.min(self.srtt) {
            return;
        }
        let share = self.marked / self.delivered;
        self.alpha = if share >= self.alpha {
            ALPHA_UP * share + (1.0 - ALPHA_UP) * self.alpha
        } else {
            (1.0 - ALPHA_DOWN) * self.alpha
        };
        self.alpha_since = now;
        (self.delivered, self.marked) = (0.0, 0.0);
    }

    /// "Detecting Increased Queue Delay".
    fn mean_delay(&mut self, now: f64) {
        if now - self.delay_since < self.settings.virtual_rtt.min(self.srtt) {
            return;
        }
        self.delay_since = now;
        self.delay_mean = if self.delay < self.delay_mean {
            self.delay
        } else {
            DELAY_GAIN * self.delay + (1.0 - DELAY_GAIN) * self.delay_mean
        };
        if self.settings.reduce_jitter {
            self.delay_high *= 1.0 - EXTREMES_GAIN;
            self.delay_low = self.delay_low * (1.0 - EXTREMES_GAIN) + self.delay_high * EXTREMES_GAIN;
            let spread = self.delay_high - self.delay_low;
            self.variation = (1.0 - VARIATION_GAIN) * self.variation + VARIATION_GAIN * spread;
            self.ref_wnd_delay_scale = (1.0 - self.variation / VARIATION).clamp(0.0, 1.0);
        }
    }

    /// Bytes that may be in flight ("Send Window Calculation").
    #[must_use]
    pub fn allowed(&self) -> f64 {
        let Settings { ref_wnd_overhead_min: min, ref_wnd_overhead_max: max, .. } = self.settings;
        self.window * (min + (max - min) * self.ref_wnd_delay_scale)
    }

    /// pace_bitrate ("Packet Pacing").
    #[must_use]
    pub fn pace(&self) -> f64 {
        let share = self.target / self.settings.max_rate;
        let scale = ((share - RELAXED_FROM) / (1.0 - RELAXED_FROM)).min(1.0);
        let scale = (1.0 - scale).clamp(1.0 / self.settings.relaxed_pacing, 1.0);
        self.target.max(RATE_PACE_MIN) * self.settings.pacing / scale
    }

    /// "Media Rate Control".
    fn rate_of_window(&mut self) {
        let ratio = (self.settings.mss / self.window).min(1.0);
        let mut scale = 1.0 - (ratio - 0.1).clamp(0.0, 0.2);
        scale *= self.settings.mss / (self.settings.mss + OVERHEAD);
        scale /= 1.2 + self.adjust + self.frame_deviation;
        let rate = scale * 8.0 * self.window / self.srtt;
        self.target = rate.max(self.settings.min_rate).min(self.settings.max_rate);
    }
}

#[cfg(test)]
mod tests;

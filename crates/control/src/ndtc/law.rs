//! NDTC's arithmetic: computes the next frame's size and sending time from the times in which frames were sent and
//! received.
//!
//! Source: P.-L. Ageneau, G. Armitage, S. Danahy, "Network Delivery Time Control" (draft-ageneau-ccwg-ndtc of July
//! 2026), whose names are in capitals in the comments. Sizes are in bytes of payload, times in seconds.

use paceline_units::Time;

/// RECV is limited to this many frame periods.
const MAX_RECV: f64 = 3.0;
/// The weight of the newest frame's share of marks.
const ECN_GAIN: f64 = 1.0 / 16.0;

/// The law's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// TFRAME.
    pub frame: f64,
    /// TRECV.
    pub recv: f64,
    /// TSEND.
    pub send: f64,
    /// DELTA.
    pub dither: f64,
    /// INIT_TARGET.
    pub init: f64,
    /// MIN_TARGET.
    pub min: f64,
    /// MAX_TARGET.
    pub max: f64,
    /// LAMBDA.
    pub weight: f64,
    /// ITERATIONS.
    pub iterations: u32,
    /// KMARGIN.
    pub margin: f64,
    /// ALPHA.
    pub alpha: f64,
    /// EALPHA.
    pub ecn_alpha: f64,
    /// BETA.
    pub beta: f64,
}

/// A frame as reported by feedback.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame {
    /// LENGTH: the payload minus the mean of the first and the last packet's; for a single packet, its payload.
    pub length: f64,
    /// SEND.
    pub send: f64,
    /// RECV.
    pub recv: f64,
    /// When its first packet was sent.
    pub sent: Time,
    /// Number of packets.
    pub packets: u32,
    /// Packets lost.
    pub lost: u32,
    /// Packets received with a mark.
    pub marked: u32,
    /// Whether SEND and RECV are known.
    pub timed: bool,
}

/// When to send a frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Schedule {
    /// DELAY: from when the frame is available to its first packet.
    pub delay: f64,
    /// SEND: from the first packet to the last.
    pub send: f64,
}

/// The averages of the dual-variable EWMA process (the draft's appendix A).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Averages {
    /// COUNT.
    pub count: f64,
    /// AVG_NSEND.
    pub send: f64,
    /// AVG_NRECV.
    pub recv: f64,
    /// VAR_NSEND.
    pub var_send: f64,
    /// VAR_NRECV.
    pub var_recv: f64,
    /// COVAR.
    pub covar: f64,
}

impl Averages {
    /// Adds a sample (NSEND, NRECV), with LAMBDA as `lambda`.
    pub fn update(&mut self, send: f64, recv: f64, lambda: f64) {
        self.count += 1.0;
        let weight = lambda.max(1.0 / self.count);
        let (by_send, by_recv) = (send - self.send, recv - self.recv);
        self.send += weight * by_send;
        self.recv += weight * by_recv;
        self.var_send = (1.0 - weight) * (self.var_send + weight * by_send * by_send);
        self.var_recv = (1.0 - weight) * (self.var_recv + weight * by_recv * by_recv);
        self.covar = (1.0 - weight) * (self.covar + weight * by_send * by_recv);
    }

    /// SLOPE and INTERCEPT of the regression.
    #[must_use]
    pub fn line(&self) -> (f64, f64) {
        let rises = self.var_send > 0.0 && self.covar > 0.0;
        let slope = if rises { (self.covar / self.var_send).min(1.0) } else { 0.0 };
        (slope, (self.recv - slope * self.send).max(0.0))
    }

    /// ESTIMATE + MARGIN in seconds per byte, with `iterations` iterations and `margin` as KMARGIN.
    #[must_use]
    pub fn estimate(&self, iterations: u32, margin: f64) -> f64 {
        let (slope, intercept) = self.line();
        let estimate = (0..iterations).fold(self.recv, |estimate, _| slope * estimate + intercept);
        let spread = self.var_send * self.var_recv;
        let known = self.var_send > 0.0 && self.var_recv > 0.0 && spread > 0.0;
        let unexplained = if known { 1.0 - self.covar * self.covar / spread } else { 0.0 };
        estimate + margin * self.var_recv.sqrt() * unexplained
    }
}

/// The state.
#[derive(Clone, Debug)]
pub struct Law {
    settings: Settings,
    /// The regression.
    pub averages: Averages,
    /// AVAILABLE in bytes per second; zero before the first estimate, infinite if the estimate is zero.
    pub available: f64,
    /// TARGET and SLOPE from FDACE, before capping.
    fdace: (f64, f64),
    /// TARGET after capping, at least MIN_TARGET.
    pub target: f64,
    /// SLOPE after capping.
    pub slope: f64,
    /// CSIZE.
    pub size: f64,
    /// `ecn_average`.
    pub ecn_average: f64,
    decreased: Time,
    ecn_decreased: Time,
}

impl Law {
    /// The state before anything has been sent.
    #[must_use]
    pub fn new(settings: Settings) -> Law {
        let init = settings.init.min(settings.max).max(settings.min);
        Law {
            settings,
            averages: Averages::default(),
            available: 0.0,
            fdace: (init, 1.0),
            target: init,
            slope: 1.0,
            size: settings.max,
            ecn_average: 1.0,
            decreased: Time::ZERO,
            ecn_decreased: Time::ZERO,
        }
    }

    /// Handles feedback on a frame.
    pub fn frame(&mut self, frame: &Frame, now: Time) {
        let s = self.settings;
        if frame.timed && frame.packets > 1 && frame.lost == 0 && frame.length >= s.min / 2.0 {
            let recv = frame.recv.min(MAX_RECV * s.frame);
            self.averages.update(frame.send / frame.length, recv / frame.length, s.weight);
            let estimate = self.averages.estimate(s.iterations, s.margin);
            // if frames arrive in no time, the estimate is zero and the available rate infinite
            self.available = 1.0 / estimate;
            let target = (s.recv * self.available).min(s.max);
            self.fdace = (target, self.averages.line().0);
        }
        self.congestion(frame, now);
        self.cap();
    }

    /// CMAX.
    fn max_size(&self) -> f64 {
        self.fdace.0 * self.settings.recv / self.settings.send
    }

    /// The draft's appendix C, for one frame.
    fn congestion(&mut self, frame: &Frame, now: Time) {
        let (s, max) = (self.settings, self.max_size());
        let share = f64::from(frame.marked) / f64::from(frame.packets.max(1));
        self.ecn_average += ECN_GAIN * (share - self.ecn_average);
        if self.decreased > frame.sent {
            // no decrease for a round trip
        } else if frame.lost > 0 {
            self.size = self.size.min(max) * s.beta;
            self.decreased = now;
        } else if self.ecn_decreased > frame.sent {
            // no decrease for marks within a round trip
        } else if frame.marked > 0 {
            self.size = self.size.min(max) * (1.0 - self.ecn_average * (1.0 - s.beta));
            self.ecn_decreased = now;
        }
        if self.decreased <= frame.sent && self.size < max {
            let more = if self.ecn_decreased <= self.decreased { s.alpha } else { s.ecn_alpha * (1.0 - share) };
            self.size = (self.size + more).min(max);
        }
    }

    /// Caps TARGET and SLOPE by CTARGET and CSLOPE; TARGET is at least MIN_TARGET.
    fn cap(&mut self) {
        let (s, max) = (self.settings, self.max_size());
        let target = self.size.min(max);
        let min = s.send / s.recv;
        let slope = (1.0 - min * (max / target)).max(0.0) / (1.0 - min);
        self.target = self.fdace.0.min(target).max(s.min);
        self.slope = self.fdace.1.min(slope);
    }

    /// No feedback for a long time: decreases as after a loss.
    pub fn silence(&mut self, now: Time) {
        self.size = self.size.min(self.max_size()) * self.settings.beta;
        self.decreased = now;
        self.cap();
    }

    /// When to send a frame of `length` (all payloads except the last packet's); `draw` is from -1 to 1.
    #[must_use]
    pub fn schedule(&self, length: f64, draw: f64) -> Schedule {
        let (s, slope) = (self.settings, self.slope);
        let pace = slope * (s.send + draw * s.dither) + (1.0 - slope) * s.recv;
        let send = (pace * length / self.target).min(s.frame);
        Schedule { delay: slope * (pace + slope * s.dither - send).max(0.0), send }
    }
}

//! NDTC's arithmetic: from how long frames take to leave and to arrive to the size of the next and how long it is to take.
//!
//! Source: P.-L. Ageneau, G. Armitage, S. Danahy, "Network Delivery Time Control" (draft-ageneau-ccwg-ndtc of July 2026); names in
//! capitals in the comments are its. Sizes are in bytes of payload, times in seconds.

use paceline_units::Time;

/// RECV counts as no more than so many frame periods.
const MAX_RECV: f64 = 3.0;
/// The weight of a frame's share of marks.
const ECN_GAIN: f64 = 1.0 / 16.0;

/// What may be chosen.
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

/// What feedback tells of a frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame {
    /// LENGTH: the payload less the mean of the first and the last packet's; of a single packet its own.
    pub length: f64,
    /// SEND.
    pub send: f64,
    /// RECV.
    pub recv: f64,
    /// When its first packet left.
    pub sent: Time,
    /// Its packets.
    pub packets: u32,
    /// Of these so many were lost.
    pub lost: u32,
    /// Of those that came, so many were marked.
    pub marked: u32,
    /// SEND and RECV are known.
    pub timed: bool,
}

/// How a frame is to leave.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Schedule {
    /// DELAY: from the time at which it is there to its first packet.
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
    /// A sample (NSEND, NRECV), with LAMBDA as `lambda`.
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

    /// ESTIMATE + MARGIN, in seconds a byte, by so many iterations and with KMARGIN for `margin`.
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
    /// AVAILABLE in bytes a second; zero before the first estimate, infinite if that is zero.
    pub available: f64,
    /// TARGET and SLOPE as FDACE left them.
    fdace: (f64, f64),
    /// TARGET, capped and floored.
    pub target: f64,
    /// SLOPE, capped.
    pub slope: f64,
    /// CSIZE.
    pub size: f64,
    /// `ecn_average`.
    pub ecn_average: f64,
    decreased: Time,
    ecn_decreased: Time,
}

impl Law {
    /// Before anything has been sent.
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

    /// Feedback on a frame has come.
    pub fn frame(&mut self, frame: &Frame, now: Time) {
        let s = self.settings;
        if frame.timed && frame.packets > 1 && frame.lost == 0 && frame.length >= s.min / 2.0 {
            let recv = frame.recv.min(MAX_RECV * s.frame);
            self.averages.update(frame.send / frame.length, recv / frame.length, s.weight);
            let estimate = self.averages.estimate(s.iterations, s.margin);
            // of frames that arrive in no time the estimate is zero, and what is available is without bound
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

    /// The draft's appendix C, on a frame.
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
            // no decrease by marks for a round trip
        } else if frame.marked > 0 {
            self.size = self.size.min(max) * (1.0 - self.ecn_average * (1.0 - s.beta));
            self.ecn_decreased = now;
        }
        if self.decreased <= frame.sent && self.size < max {
            let more = if self.ecn_decreased <= self.decreased { s.alpha } else { s.ecn_alpha * (1.0 - share) };
            self.size = (self.size + more).min(max);
        }
    }

    /// CTARGET and CSLOPE cap TARGET and SLOPE, and MIN_TARGET is the least.
    fn cap(&mut self) {
        let (s, max) = (self.settings, self.max_size());
        let target = self.size.min(max);
        let min = s.send / s.recv;
        let slope = (1.0 - min * (max / target)).max(0.0) / (1.0 - min);
        self.target = self.fdace.0.min(target).max(s.min);
        self.slope = self.fdace.1.min(slope);
    }

    /// No feedback for long: a decrease as by a loss.
    pub fn silence(&mut self, now: Time) {
        self.size = self.size.min(self.max_size()) * self.settings.beta;
        self.decreased = now;
        self.cap();
    }

    /// How a frame of `length` (all payloads but the last packet's) is to leave, with a draw from -1 to 1.
    #[must_use]
    pub fn schedule(&self, length: f64, draw: f64) -> Schedule {
        let (s, slope) = (self.settings, self.slope);
        let pace = slope * (s.send + draw * s.dither) + (1.0 - slope) * s.recv;
        let send = (pace * length / self.target).min(s.frame);
        Schedule { delay: slope * (pace + slope * s.dither - send).max(0.0), send }
    }
}

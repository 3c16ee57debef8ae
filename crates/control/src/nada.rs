//! NADA: a media rate that follows one signal composed of queueing delay, losses and marks.
//!
//! Source: RFC 8698 (X. Zhu and others, "Network-Assisted Dynamic Adaptation (NADA): A Unified Congestion Control
//! Scheme for Real-Time Media", 2020), whose equation numbers and names of Table 2 (in capitals) are used. Everything
//! is computed at the sender, from the arrivals that RFC 8888 reports (RFC 8698 section 6.4 compares both places).
//! docs/controllers/nada.md says how details that the RFC leaves open are decided.

mod window;

use crate::coupled::CoupledRate;
use crate::rtp::{Arrivals, MediaController, RtpEvent, RtpFeedback, RtpSession, RtpSettings};
use crate::tfrc::{own, own_switch, own_whole};
use crate::{Build, Controller, EncoderRate, Gauges, Machine, Parameter, PathView, Profile, Scheme};
use paceline_units::{Rate, Time};
use window::Window;

/// QEPS: a queueing delay below this counts as none, in seconds.
const QEPS: f64 = 0.010;
/// DFILT: the delay that filtering adds to feedback, in seconds.
const DFILT: f64 = 0.120;
/// GAMMA_MAX: maximum growth of the rate per feedback, as a share.
const GAMMA_MAX: f64 = 0.5;
/// QBOUND: maximum queueing delay that accelerated growth may cause, in seconds.
const QBOUND: f64 = 0.050;
/// QTH: queueing delays above this are warped while there are losses, in seconds.
const QTH: f64 = 0.050;
/// LAMBDA: how fast the warped delay decays.
const LAMBDA: f64 = 0.5;
/// MULTILOSS: losses are expected again within this many loss intervals.
const MULTILOSS: f64 = 7.0;
/// DLOSS: the delay penalty of a loss share of PLRREF, in seconds.
const DLOSS: f64 = 0.010;
/// PLRREF.
const PLRREF: f64 = 0.01;
/// DMARK: the delay penalty of a mark share of PMRREF, in seconds.
const DMARK: f64 = 0.002;
/// PMRREF.
const PMRREF: f64 = 0.01;
/// ALPHA: the weight of the newest shares of lost and of marked packets.
const ALPHA: f64 = 0.1;
/// FPS of the rate shaping buffer.
const FPS: f64 = 30.0;
/// BETA_V and BETA_S: how much the buffer lowers the encoder's rate, and raises the sending rate.
const BETA: f64 = 0.1;
/// Neither differs from the reference rate by more than this share of it.
const MAX_SHAPING: f64 = 0.05;

const PARAMETERS: [Parameter; 10] = [
    own("min_rate", 150e3, 1e3, 1e11, "bit/s", "RMIN: the rate at least, and at the beginning")
        .following(EncoderRate::Min),
    own("max_rate", 1.5e6, 1e3, 1e11, "bit/s", "RMAX: the rate at most, if it is above min_rate")
        .following(EncoderRate::Max),
    own("priority", 1.0, 1e-3, 1e3, "1", "PRIO: the weight of this flow among its like"),
    own("x_ref", 0.010, 1e-4, 1.0, "s", "XREF: the signal at which a flow of PRIO 1 keeps RMAX"),
    own("kappa", 0.5, 1e-3, 10.0, "1", "KAPPA: how fast the rate follows the signal"),
    own("eta", 2.0, 0.0, 100.0, "1", "ETA: how much its change counts"),
    own("tau", 0.5, 0.01, 10.0, "s", "TAU: the longest round-trip time at which it is stable"),
    own("x_max", 0.5, 0.01, 1e3, "s", "the signal at most"),
    own_switch("shaping", true, "the rates heed what waits at the sender (the rate shaping buffer)"),
    own_whole("silence", 10.0, 0.0, 1000.0, "the rate is halved after so many intervals without feedback; 0: never"),
];

/// The state. Times are in seconds, rates in bits per second of packets with all headers.
#[derive(Clone, Debug)]
pub struct Nada {
    min_rate: f64,
    max_rate: f64,
    priority: f64,
    x_ref: f64,
    kappa: f64,
    eta: f64,
    tau: f64,
    x_max: f64,
    shaping: bool,
    silence: u32,
    /// DELTA.
    interval: f64,
    window: Window,
    /// r_ref.
    rate: f64,
    /// x_curr.
    signal: f64,
    /// rtt; zero before the first.
    rtt: f64,
    /// Whether feedback has arrived; p_loss and p_mark.
    has_feedback: bool,
    loss: f64,
    mark: f64,
    /// buffer_len in bytes at the last feedback.
    backlog: f64,
}

impl Nada {
    fn start(&mut self, session: &RtpSession, path: &PathView) {
        self.interval = session.interval.as_secs_f64();
        self.window.start(path.now);
        self.rate = self.min_rate;
        self.backlog = 0.0;
    }

    /// Section 4.3: the sender's reaction to feedback.
    fn feedback(&mut self, arrivals: &Arrivals, path: &PathView) {
        if let Some(rtt) = arrivals.rtt {
            self.rtt = rtt.as_secs_f64();
        }
        self.backlog = arrivals.backlog.bytes() as f64;
        let shares = self.window.feedback(&arrivals.packets, self.rtt, path.now);
        self.has_feedback = true;
        self.loss += ALPHA * (shares.loss - self.loss);
        self.mark += ALPHA * (shares.mark - self.mark);
        let Some(queueing) = self.window.queueing() else { return };
        let before = self.signal;
        self.signal = self.aggregate(self.window.warped_share(), queueing).min(self.x_max);
        // rmode of section 4.2
        let rate = if shares.loss == 0.0 && self.window.longest_queueing() < QEPS {
            accelerated(self.rate, self.window.receive_rate(path.now), self.rtt + self.interval)
        } else {
            self.gradual(arrivals.since.as_secs_f64(), before)
        };
        self.rate = self.bounded(rate);
    }

    /// Equations 1 and 2, in which the share `warped` of the queueing delay is warped.
    fn aggregate(&self, warped: f64, queueing: f64) -> f64 {
        let (mark, loss) = (self.mark / PMRREF, self.loss / PLRREF);
        warped * warp(queueing) + (1.0 - warped) * queueing + DMARK * mark * mark + DLOSS * loss * loss
    }

    /// Equations 5 to 7, `since` after the previous feedback, when the signal was `before`.
    fn gradual(&self, since: f64, before: f64) -> f64 {
        let offset = self.signal - self.priority * self.x_ref * self.max_rate / self.rate;
        let change = self.signal - before;
        let down = self.kappa * (since / self.tau * (offset / self.tau) + self.eta * (change / self.tau));
        self.rate - down * self.rate
    }

    fn bounded(&self, rate: f64) -> f64 {
        rate.min(self.max_rate).max(self.min_rate)
    }

    /// The change of the reference rate by the rate shaping buffer (section 5.2).
    fn shaping(&self) -> f64 {
        let drained = BETA * 8.0 * self.backlog * FPS;
        if self.shaping { drained.min(MAX_SHAPING * self.rate) } else { 0.0 }
    }

    /// r_send.
    fn sending(&self) -> f64 {
        (self.rate + self.shaping()).min(self.max_rate)
    }

    /// r_vin.
    fn encoding(&self) -> f64 {
        (self.rate - self.shaping()).max(self.min_rate)
    }

    /// No feedback for a long time: delay and loss are unknown.
    fn silence(&mut self) {
        self.rate = self.bounded(self.rate / 2.0);
    }
}

/// Equation 1.
fn warp(queueing: f64) -> f64 {
    if queueing < QTH { queueing } else { QTH * libm::exp(-LAMBDA * (queueing - QTH) / QTH) }
}

/// Equations 3 and 4, with `delay` for rtt + DELTA.
fn accelerated(rate: f64, received: f64, delay: f64) -> f64 {
    let gamma = (QBOUND / (delay + DFILT)).min(GAMMA_MAX);
    rate.max((1.0 + gamma) * received)
}

impl Build for Nada {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "nada",
        summary: "NADA: one signal of queueing delay, losses and marks, from the arrival of each packet",
        source: "RFC 8698",
        machine: Machine::Rtp,
        parameters: &PARAMETERS,
        foreign: None,
    }];

    fn build(_profile: Profile, values: &[f64]) -> Nada {
        Nada {
            min_rate: values[0],
            max_rate: values[1].max(values[0]),
            priority: values[2],
            x_ref: values[3],
            kappa: values[4],
            eta: values[5],
            tau: values[6],
            x_max: values[7],
            shaping: values[8] == 1.0,
            silence: values[9] as u32,
            interval: 0.1,
            window: Window::default(),
            rate: values[0],
            signal: 0.0,
            rtt: 0.0,
            has_feedback: false,
            loss: 0.0,
            mark: 0.0,
            backlog: 0.0,
        }
    }
}

impl Controller for Nada {
    type Feedback = RtpEvent;

    fn on_feedback(&mut self, feedback: &RtpEvent, path: &PathView) {
        match feedback {
            RtpEvent::Started(session) => self.start(session, path),
            RtpEvent::Arrivals(arrivals) => self.feedback(arrivals, path),
            RtpEvent::Silence => self.silence(),
            _ => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let queueing = self.window.queueing();
        to.bits_per_second("allowed", self.rate);
        to.number("reported_loss", if self.has_feedback { self.loss } else { f64::NAN });
        to.seconds("signal", queueing.map_or(f64::NAN, |_| self.signal));
        to.seconds("queueing", queueing.unwrap_or(f64::NAN));
    }
}

impl MediaController for Nada {
    #[inline]
    fn rate(&self) -> f64 {
        self.sending() / 8.0
    }

    fn target(&self) -> Option<Rate> {
        Some(Rate(self.encoding() as u64))
    }

    /// Section 6.1 of RFC 8699: r_ref.
    fn coupled(&self) -> Option<CoupledRate> {
        Some(CoupledRate { calculated: self.rate, max_rate: self.max_rate })
    }

    fn share(&mut self, rate: Rate, _now: Time) {
        self.rate = self.bounded(rate.bps());
    }

    fn settings(&self) -> RtpSettings {
        RtpSettings { silence: self.silence, feedback: RtpFeedback::Arrivals, ..RtpSettings::default() }
    }
}

#[cfg(test)]
mod tests;

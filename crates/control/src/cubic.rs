//! CUBIC: the window as a cubic function of the time since the last loss.
//!
//! Source: RFC 9438, with fast convergence (section 4.7), the Reno-friendly region (section 4.3), and HyStart++ (RFC
//! 9406, section 4.10) or another slow start of `slow_start`. Under `linux`, the kernel's `tcp_cubic.c` with its
//! HyStart (`cubic/linux.rs`); under `ns2-linux`, that of Linux 2.6.22 as included in ns-2 (`cubic/ns2_linux.rs`). See
//! docs/controllers/cubic.md.

mod linux;
mod ns2_linux;

use crate::slow_start::{self, SlowStart, Verdict};
use crate::{Build, Controller, Gauges, Machine, Parameter, PathView, Profile, Recovery, Scheme};
use crate::{TcpEvent, Threshold, WindowController, known};
use linux::Linux;
use ns2_linux::Ns2Linux;
use paceline_units::{Span, Time};

const PARAMETERS: &[Parameter] = &[
    Parameter::number(
        "c",
        [0.4, 0.4, 410.0 / 1024.0, 410.0 / 1024.0],
        (0.001, 100.0),
        "segments/s^3",
        "how steeply the cubic rises (RFC 9438 section 5.1)",
    ),
    Parameter::number(
        "beta",
        [0.7, 0.7, 819.0 / 1024.0, 717.0 / 1024.0],
        (0.1, 0.99),
        "1",
        "what a loss multiplies the window by (RFC 9438 section 4.6)",
    ),
    Parameter::choice(
        "slow_start",
        [slow_start::HYSTART_PLUS_PLUS, slow_start::STANDARD, slow_start::STANDARD, slow_start::HYSTART],
        slow_start::NAMES,
        "when slow start ends before a loss: never, as the kernel's HyStart, HyStart++ (RFC 9406) or SEARCH has it",
    ),
];

/// The state.
#[derive(Clone, Debug)]
pub struct Cubic {
    c: f64,
    beta: f64,
    slow_start: SlowStart,
    cwnd: f64,
    ssthresh: f64,
    /// The window before the last reduction, or less after fast convergence (W_max).
    w_max: f64,
    /// When the current stage of congestion avoidance began, if it has, plus the time in which the window was not used
    /// since.
    epoch: Option<Time>,
    /// When the last acknowledgement arrived.
    acked: Time,
    /// The next stage of congestion avoidance is the first after a timeout.
    timed_out: bool,
    /// Time from `epoch` to the plateau, in seconds (K).
    k: f64,
    /// The window that Reno would have (W_est).
    w_est: f64,
    /// The window just before the last reduction (cwnd_prior).
    prior: f64,
    /// The kernel's own state under `linux`.
    linux: Option<Linux>,
    /// The state of Linux 2.6.22 under `ns2-linux`.
    ns2_linux: Option<Box<Ns2Linux>>,
}

impl Cubic {
    /// Section 4.2: K is the time in which the cubic rises from the window at the epoch's start to W_max. After a
    /// timeout the stage begins at the plateau (section 4.8).
    fn begin_epoch(&mut self, now: Time) {
        self.epoch = Some(now);
        self.w_est = self.cwnd;
        if core::mem::take(&mut self.timed_out) || self.w_max <= self.cwnd {
            self.w_max = self.cwnd;
            self.k = 0.0;
        } else {
            self.k = libm::cbrt((self.w_max - self.cwnd) / self.c);
        }
    }

    /// Congestion avoidance (sections 4.2 to 4.5).
    fn avoid(&mut self, segments: f64, path: &PathView) {
        if self.epoch.is_none() {
            self.begin_epoch(path.now);
        }
        let began = self.epoch.unwrap_or(path.now);
        let t = path.now.since(began).as_secs_f64();
        let cubic = |t: f64| {
            let d = t - self.k;
            self.c * d * d * d + self.w_max
        };
        // Section 4.3: Reno's growth that is fair at this beta, until the window before the last reduction is reached
        let alpha = if self.w_est >= self.prior { 1.0 } else { 3.0 * (1.0 - self.beta) / (1.0 + self.beta) };
        // by segments acknowledged (RFC 3465), but at most one window per acknowledgement
        let share = (segments / self.cwnd).min(1.0);
        self.w_est += alpha * share;
        if cubic(t) < self.w_est {
            self.cwnd = self.cwnd.max(self.w_est); // section 4.2: the increase is never negative
        } else {
            let target = cubic(t + path.srtt.as_secs_f64()).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += share * (target - self.cwnd);
        }
    }

    fn undo(&mut self, window: f64, threshold: f64) {
        self.cwnd = self.cwnd.max(window);
        self.ssthresh = self.ssthresh.max(threshold);
    }

    /// Multiplicative decrease and fast convergence (sections 4.6 and 4.7). Returns beta times FlightSize, which is
    /// limited to cwnd: in a long recovery more segments are unacknowledged than the window ever allowed into the
    /// network.
    fn reduce(&mut self, path: &PathView) -> f64 {
        let window = self.cwnd.min(f64::from(path.in_flight)) * self.beta;
        self.prior = self.cwnd;
        self.w_max = if self.cwnd < self.w_max { self.cwnd * (1.0 + self.beta) / 2.0 } else { self.cwnd };
        self.ssthresh = window.max(2.0);
        self.epoch = None;
        self.timed_out = false;
        window
    }

    /// Excludes time in which the window was not used from the epoch (sections 4.2 and 5.8).
    fn pass(&mut self, now: Time) {
        let before = core::mem::replace(&mut self.acked, now);
        self.epoch = self.epoch.map(|began| began + now.since(before));
    }

    /// Handles an acknowledgement of new data.
    fn grow(&mut self, segments: u32, in_flight: u32, rtt: Option<Span>, path: &PathView) {
        let (used, slow) = (f64::from(in_flight) + 1.0 > self.cwnd, self.cwnd < self.ssthresh);
        if !used {
            self.pass(path.now);
        } else if slow {
            self.cwnd += self.slow_start.growth(segments, 1.0, self.ssthresh.is_infinite()); // RFC 5681 equation (2)
        } else {
            self.avoid(f64::from(segments), path);
        }
        self.acked = path.now;
        if slow {
            self.look(rtt, path.min_rtt, path);
        }
    }

    /// Checks whether slow start should end without a loss. W_max is then unknown: the first stage of congestion
    /// avoidance begins at its plateau (section 4.10).
    fn look(&mut self, rtt: Option<Span>, delay_min: Span, path: &PathView) {
        let first = self.ssthresh.is_infinite();
        match self.slow_start.on_ack(rtt, delay_min, self.cwnd, first, path) {
            Verdict::Continue => return,
            Verdict::Drain(window) => {
                self.cwnd = self.cwnd.min(window);
                return;
            }
            Verdict::Leave => {}
            Verdict::LeaveAt(window) => self.cwnd = self.cwnd.min(window),
        }
        self.ssthresh = self.cwnd;
        self.prior = self.cwnd;
    }
}

impl Build for Cubic {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "cubic",
        summary: "CUBIC: today's default of Linux, Windows and Apple systems",
        source: "RFC 9438",
        machine: Machine::Tcp([Recovery::Sack; Profile::ALL.len()]),
        parameters: PARAMETERS,
        foreign: None,
    }];

    fn build(profile: Profile, values: &[f64]) -> Cubic {
        Cubic {
            c: values[0],
            beta: values[1],
            slow_start: SlowStart::new(values[2]),
            cwnd: 1.0,
            ssthresh: f64::INFINITY,
            w_max: 0.0,
            epoch: None,
            acked: Time::ZERO,
            timed_out: false,
            k: 0.0,
            w_est: 0.0,
            prior: 0.0,
            linux: (profile == Profile::Linux).then(Linux::default),
            ns2_linux: (profile == Profile::Ns2Linux).then(|| Box::new(Ns2Linux::new(values[0], values[1]))),
        }
    }
}

impl Controller for Cubic {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        if self.linux.is_some() {
            return self.on_feedback_linux(feedback, path);
        }
        if self.ns2_linux.is_some() {
            return self.on_feedback_ns2_linux(feedback, path);
        }
        match *feedback {
            TcpEvent::Acked { segments, in_flight, rtt } => self.grow(segments, in_flight, rtt, path),
            TcpEvent::Established { window } => {
                self.cwnd = window.max(1.0);
                self.slow_start.begin(path);
            }
            TcpEvent::Duplicate | TcpEvent::Repaired { .. } => {}
            TcpEvent::Resumed { .. } => self.pass(path.now),
            TcpEvent::Lost { .. } => {
                self.reduce(path);
                self.cwnd = self.ssthresh;
            }
            TcpEvent::EcnEcho => self.cwnd = self.reduce(path).max(1.0),
            TcpEvent::Deflate { segments } => self.cwnd = (self.cwnd - f64::from(segments)).max(1.0),
            TcpEvent::Recovered { at_most } => self.cwnd = self.ssthresh.min(at_most).max(1.0),
            TcpEvent::Timeout(threshold) => {
                if threshold == Threshold::Cut {
                    self.reduce(path);
                }
                self.epoch = None;
                self.timed_out = true;
                self.cwnd = 1.0;
                self.slow_start.begin(path);
            }
            TcpEvent::Undo { window, threshold } => self.undo(window, threshold),
            TcpEvent::Idle { window } => {
                self.cwnd = self.cwnd.min(window).max(1.0);
                self.epoch = None;
                self.slow_start.restart(path);
            }
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.packets("cwnd", self.cwnd);
        to.packets("ssthresh", self.ssthresh);
        to.packets("w_max", known(self.w_max));
        to.packets("w_est", known(self.w_est));
    }
}

impl WindowController for Cubic {
    fn window(&self) -> f64 {
        self.cwnd
    }
    fn threshold(&self) -> f64 {
        self.ssthresh
    }
    fn is_paced(&mut self) {
        self.slow_start.is_paced();
    }
}

//! CUBIC in ns-2's `Agent/TCP/Linux`: version 2.1, of Linux 2.6.22, in whole segments and milliseconds.
//!
//! Source: the behaviour of `tcp_cubic.c` of Linux 2.6.22.6 as included in ns-2.35 (`HZ` 1000, time from the start of
//! the simulation). It differs from a current kernel's in `beta` (819/1024), in slow start (no HyStart; one segment per
//! acknowledgement), in its growth, which counts acknowledgements and divides by an estimate of the segments per
//! acknowledgement, in a limit of 16 segments per 100 ms beyond the plateau, and in that before the first loss 50
//! acknowledgements grow the window by one segment.
//!
//! Two of its quirks affect its rate and are reproduced: the estimate starts at two segments per acknowledgement and,
//! truncated to sixteenths, stops at 31/16 when each acknowledgement covers one; and a segment of window growth takes
//! one acknowledgement more than computed. One is not: its cube root is up to a thousandth too small.

use super::Cubic;
use crate::{PathView, TcpEvent, Threshold};
use paceline_units::Span;

/// Sixteenths: fixed point of the delayed-ACK ratio.
const RATIO: u64 = 4;
/// `HZ`.
const HZ: u64 = 1000;
/// 2^10 units of time per second (`BICTCP_HZ`).
const UNITS: u32 = 10;
/// `max_increment`: maximum growth in segments per 100 ms beyond the plateau.
const MAX_INCREMENT: u64 = 16;

/// The kernel's state besides the window; times in milliseconds, 0 if unset.
#[derive(Clone, Debug)]
pub(super) struct Ns2Linux {
    /// 1024 C and 1024 beta.
    scale: u64,
    beta: u64,
    /// Acknowledgements counted towards the next segment of window growth, and the number needed (`snd_cwnd_cnt`,
    /// `cnt`).
    count: u64,
    per: u64,
    last_max: u64,
    /// A loss has occurred.
    lost: bool,
    /// Window and time of the last computation.
    worked: (u64, u64),
    origin: u64,
    k: u64,
    /// Eight times the minimum delay.
    delay_min: u64,
    epoch: u64,
    /// Acknowledgements counted towards Reno's window, and that window.
    acks: u64,
    reno: u64,
    /// Segments per acknowledgement, in sixteenths.
    ratio: u64,
    /// Whether the connection is outside recovery.
    open: bool,
}

impl Ns2Linux {
    pub(super) fn new(c: f64, beta: f64) -> Ns2Linux {
        Ns2Linux {
            scale: (libm::round(c * 1024.0) as u64).max(1),
            beta: libm::round(beta * 1024.0) as u64,
            count: 0,
            per: 0,
            last_max: 0,
            lost: false,
            worked: (0, 0),
            origin: 0,
            k: 0,
            delay_min: 0,
            epoch: 0,
            acks: 0,
            reno: 0,
            ratio: 2 << RATIO,
            open: true,
        }
    }

    /// `bictcp_reset`, at a timeout.
    fn forget(&mut self) {
        let (c, beta) = (self.scale as f64 / 1024.0, self.beta as f64 / 1024.0);
        *self = Ns2Linux { open: false, ..Ns2Linux::new(c, beta) };
    }

    /// `bictcp_acked`: segments per acknowledgement, 15/16 old and 1/16 new, truncated.
    fn acked(&mut self, segments: u32) {
        if self.open {
            self.ratio = (self.ratio + u64::from(segments)).saturating_sub(self.ratio >> RATIO).max(1);
        }
    }

    /// `measure_delay`: ignored in the first second of an epoch and of the simulation.
    fn measure(&mut self, now: u64, rtt: Span, path: &PathView) {
        if now.saturating_sub(self.epoch) < HZ {
            return;
        }
        let sent = (path.now.0.saturating_sub(rtt.0) + 500_000) / 1_000_000;
        let delay = (now.saturating_sub(sent) << 3).max(1);
        if self.delay_min == 0 || delay < self.delay_min {
            self.delay_min = delay;
        }
    }

    /// `bictcp_update`: computes how many acknowledgements grow the window by one segment.
    fn work_out(&mut self, cwnd: u64, now: u64) {
        self.acks += 1;
        if self.worked.0 == cwnd && now - self.worked.1 <= HZ / 32 {
            return;
        }
        self.worked = (cwnd, now);
        if self.epoch == 0 {
            self.epoch = now;
            self.acks = 1;
            self.reno = cwnd;
            self.origin = self.last_max.max(cwnd);
            let units = ((1_u64 << (10 + 3 * UNITS)) / self.scale).saturating_mul(self.origin - cwnd);
            self.k = libm::cbrt(units as f64) as u64;
        }
        let t = ((now + (self.delay_min >> 3) - self.epoch) << UNITS) / HZ;
        let off = u128::from(t.abs_diff(self.k));
        let rise = (u128::from(self.scale) * off * off * off) >> (10 + 3 * UNITS);
        let rise = u64::try_from(rise).unwrap_or(u64::MAX);
        let target = if t < self.k { self.origin.saturating_sub(rise) } else { self.origin.saturating_add(rise) };
        self.per = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.delay_min > 0 && t >= self.k {
            self.per = self.per.max(cwnd * HZ * 8 / (10 * MAX_INCREMENT * self.delay_min));
        }
        if !self.lost {
            self.per = 50;
        }
        // Reno's window grows by one segment per `eighths` eighths of a window
        let eighths = 8 * (1024 + self.beta) / 3 / (1024 - self.beta);
        let step = ((cwnd * eighths) >> 3).max(1);
        let grown = self.acks.saturating_sub(1) / step;
        self.acks -= grown * step;
        self.reno += grown;
        if self.reno > cwnd {
            self.per = self.per.min(cwnd / (self.reno - cwnd));
        }
        self.per = ((self.per << RATIO) / self.ratio).max(1);
    }
}

impl Cubic {
    pub(super) fn on_feedback_ns2_linux(&mut self, feedback: &TcpEvent, path: &PathView) {
        let Some(mut state) = self.ns2_linux.take() else { return };
        let e = &mut *state;
        match *feedback {
            TcpEvent::Acked { segments, in_flight, rtt } => {
                e.acked(segments);
                self.acked_ns2_linux(e, segments, in_flight, rtt, path);
            }
            TcpEvent::Repaired { segments, .. } => e.acked(segments),
            TcpEvent::Established { window } => {
                self.cwnd = window.max(1.0);
                self.slow_start.begin(path);
            }
            TcpEvent::Lost { .. } | TcpEvent::EcnEcho => {
                self.reduce_ns2_linux(e);
                e.open = false;
                self.cwnd = self.ssthresh;
            }
            TcpEvent::Timeout(threshold) => {
                if threshold == Threshold::Cut {
                    self.reduce_ns2_linux(e);
                }
                e.forget();
                self.cwnd = 1.0;
                self.slow_start.begin(path);
            }
            TcpEvent::Recovered { at_most } => {
                e.open = true;
                if self.cwnd < self.ssthresh {
                    self.cwnd = self.ssthresh.min(at_most).max(1.0);
                }
            }
            TcpEvent::Idle { window } => {
                self.cwnd = self.cwnd.min(window).max(1.0);
                self.slow_start.restart(path);
            }
            TcpEvent::Undo { .. } | TcpEvent::Resumed { .. } | TcpEvent::Deflate { .. } | TcpEvent::Duplicate => {}
        }
        (self.w_max, self.w_est) = (e.last_max as f64, e.reno as f64);
        self.ns2_linux = Some(state);
    }

    /// `bictcp_cong_avoid`.
    fn acked_ns2_linux(&mut self, e: &mut Ns2Linux, segments: u32, in_flight: u32, rtt: Option<Span>, path: &PathView) {
        let now = path.now.0 / 1_000_000;
        if let Some(rtt) = rtt.filter(|_| e.open) {
            e.measure(now, rtt, path);
        }
        let slow = self.cwnd <= self.ssthresh;
        if slow {
            let delay_min = Span::from_millis(e.delay_min >> 3);
            self.look(rtt, if e.delay_min > 0 { delay_min } else { path.min_rtt }, path);
        }
        if f64::from(in_flight) < self.cwnd {
            return;
        }
        if slow {
            // tcp_slow_start with appropriate byte counting
            self.cwnd += f64::from(self.slow_start.whole_growth(segments, 1, self.ssthresh.is_infinite()));
            return;
        }
        e.work_out(self.cwnd as u64, now);
        if e.count >= e.per {
            self.cwnd += 1.0;
            e.count = 0;
        } else {
            e.count += 1;
        }
    }

    /// `bictcp_recalc_ssthresh`, with fast convergence.
    fn reduce_ns2_linux(&mut self, e: &mut Ns2Linux) {
        let cwnd = self.cwnd as u64;
        e.epoch = 0;
        e.last_max = if cwnd < e.last_max { cwnd * (1024 + e.beta) / 2048 } else { cwnd };
        e.lost = true;
        e.count = 0;
        self.ssthresh = (cwnd * e.beta / 1024).max(2) as f64;
    }
}

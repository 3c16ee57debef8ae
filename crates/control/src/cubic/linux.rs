//! CUBIC in a current kernel (`net/ipv4/tcp_cubic.c`): whole segments, and HyStart (`slow_start/hystart.rs`).
//!
//! Source: the behaviour of that file. It differs from RFC 9438 in its growth (a number of acknowledgements per
//! segment, at least 2), its reduction (of cwnd, not of FlightSize), its Reno estimate (whole segments), its growth
//! before the first loss (at least one segment per 20 acknowledged), and in slow start.

use super::Cubic;
use crate::{PathView, TcpEvent, Threshold, reno};
use paceline_units::{Span, Time};

/// `HZ / 32`: how long the growth of an unchanged window is not recomputed.
const PAUSE: Span = Span::from_micros(31_250);
/// Samples this soon after a reduction may measure the queue before it (`HZ`).
const SETTLE: Span = Span::from_secs(1);

/// The kernel's state besides the window.
#[derive(Clone, Debug, Default)]
pub(super) struct Linux {
    /// Acknowledged segments counted towards the next segment of window growth, and the number needed.
    count: u32,
    per: f64,
    /// Acknowledged segments counted towards Reno's estimate.
    reno: f64,
    /// Window and time of the last computation.
    worked: Option<(f64, Time)>,
    delay_min: Option<Span>,
}

impl Cubic {
    pub(super) fn on_feedback_linux(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::Acked { segments, in_flight, rtt } => {
                self.sample_linux(rtt, path);
                self.acked_linux(segments, in_flight, path);
            }
            TcpEvent::Repaired { rtt, .. } => self.sample_linux(rtt, path),
            TcpEvent::Established { window } => {
                self.cwnd = window.max(1.0);
                self.slow_start.begin(path);
            }
            TcpEvent::Lost { .. } | TcpEvent::EcnEcho => {
                self.reduce_linux();
                self.cwnd = self.ssthresh;
            }
            TcpEvent::Timeout(threshold) => {
                if threshold == Threshold::Cut {
                    self.reduce_linux();
                }
                // cubictcp_state: TCP_CA_Loss resets everything
                self.cwnd = 1.0;
                self.w_max = 0.0;
                self.w_est = 0.0;
                self.epoch = None;
                *self.linux() = Linux::default();
                self.slow_start.begin(path);
            }
            TcpEvent::Recovered { at_most } => {
                if self.cwnd < self.ssthresh {
                    self.cwnd = self.ssthresh.min(at_most).max(1.0);
                }
            }
            TcpEvent::Undo { window, threshold } => self.undo(window, threshold),
            // time with nothing in flight does not count for the cubic
            TcpEvent::Resumed { idle, .. } => self.epoch = self.epoch.map(|began| (began + idle).min(path.now)),
            TcpEvent::Idle { window } => {
                self.ssthresh = self.ssthresh.max(0.75 * self.cwnd); // tcp_current_ssthresh (RFC 2861)
                self.cwnd = self.cwnd.min(window).max(1.0);
                self.slow_start.restart(path);
            }
            TcpEvent::Deflate { .. } | TcpEvent::Duplicate => {}
        }
    }

    fn linux(&mut self) -> &mut Linux {
        self.linux.get_or_insert_default()
    }

    /// `cubictcp_acked`.
    fn sample_linux(&mut self, rtt: Option<Span>, path: &PathView) {
        let Some(delay) = rtt else { return };
        if self.epoch.is_some_and(|began| path.now.since(began) < SETTLE) {
            return;
        }
        let linux = self.linux();
        let delay = delay.max(Span::from_micros(1));
        let delay_min = linux.delay_min.map_or(delay, |l| l.min(delay));
        linux.delay_min = Some(delay_min);
        if self.cwnd < self.ssthresh {
            let prior = self.prior;
            self.look(Some(delay), delay_min, path);
            self.prior = prior; // the kernel computes the plateau when the epoch begins
        }
    }

    /// `cubictcp_cong_avoid`.
    fn acked_linux(&mut self, segments: u32, in_flight: u32, path: &PathView) {
        if f64::from(in_flight) < self.cwnd {
            return;
        }
        let mut segments = segments;
        if self.cwnd < self.ssthresh {
            segments = self.slow_start.whole_growth(segments, segments, self.ssthresh.is_infinite());
        }
        let left = reno::slow_start_linux(&mut self.cwnd, self.ssthresh, segments);
        if left == 0 {
            return;
        }
        self.work_out(left, path);
        let mut cwnd = self.cwnd;
        let linux = self.linux();
        reno::avoid_linux(&mut cwnd, linux.per, &mut linux.count, left);
        self.cwnd = cwnd;
    }

    /// `bictcp_update`: computes how many acknowledged segments grow the window by one.
    fn work_out(&mut self, segments: u32, path: &PathView) {
        let (cwnd, now) = (self.cwnd, path.now);
        self.linux().reno += f64::from(segments);
        if self.linux().worked.is_some_and(|(window, at)| window == cwnd && now.since(at) <= PAUSE) {
            return;
        }
        self.linux().worked = Some((cwnd, now));
        if self.epoch.is_none() {
            self.epoch = Some(now);
            self.linux().reno = f64::from(segments);
            self.w_est = cwnd;
            self.prior = self.w_max.max(cwnd); // the plateau
            self.k = libm::cbrt((self.prior - cwnd) / self.c);
        }
        let delay_min = self.linux().delay_min.unwrap_or(path.srtt);
        let t = (now.since(self.epoch.unwrap_or(now)) + delay_min).as_secs_f64();
        let d = t - self.k;
        let target = (self.prior + (self.c * d * d * d).trunc()).max(0.0);
        let mut per = if target > cwnd { (cwnd / (target - cwnd)).floor() } else { 100.0 * cwnd };
        if self.w_max == 0.0 {
            per = per.min(20.0); // nothing is known of the path yet
        }
        // Reno's estimate grows by one segment per 8 (1 + beta) / (3 (1 - beta)) eighths of a window
        let scale = (8.0 * (1.0 + self.beta) / (3.0 * (1.0 - self.beta))).floor();
        let step = (cwnd * scale / 8.0).floor().max(1.0);
        let whole = ((self.linux().reno / step).ceil() - 1.0).max(0.0);
        self.linux().reno -= whole * step;
        self.w_est += whole;
        if self.w_est > cwnd {
            per = per.min((cwnd / (self.w_est - cwnd)).floor());
        }
        self.linux().per = per.max(2.0);
    }

    /// `cubictcp_recalc_ssthresh`, with fast convergence.
    fn reduce_linux(&mut self) {
        let cwnd = self.cwnd;
        self.w_max = if cwnd < self.w_max { (cwnd * (1.0 + self.beta) / 2.0).floor() } else { cwnd };
        self.ssthresh = (cwnd * self.beta).floor().max(2.0);
        self.epoch = None;
        self.linux().count = 0;
    }
}

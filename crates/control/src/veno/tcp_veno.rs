//! Veno in Linux (`net/ipv4/tcp_veno.c`): N from the minimum round trip since the last acknowledgement that could grow
//! the window; Reno until there are three samples; whole segments; reduction to 4/5 or 1/2, and to at least 2 segments.
//! 2.6.22 (`ns2-linux`) counts acknowledgements, a current kernel (`linux`) acknowledged segments.

use super::{Growth, Turn, Veno};
use crate::{Controller, PathView, Profile, TcpEvent, Threshold, reno};
use paceline_units::Span;

/// The kernel's state besides the base round-trip time.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpVeno {
    /// Veno's law applies only outside recovery.
    ruling: Ruling,
    /// Minimum round trip in microseconds since the window could last grow (`minrtt`).
    min_rtt: f64,
    /// Samples so far (`cntrtt`); never reset. 16 bits wide, but 32 where ns-2 defines `u16` as `unsigned int`.
    samples: u32,
    /// Counts towards the next segment of window growth; separate from slow start's and Reno's count (`snd_cwnd_cnt`).
    count: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ruling {
    Veno,
    Reno,
}

impl Default for TcpVeno {
    fn default() -> TcpVeno {
        TcpVeno { ruling: Ruling::Veno, min_rtt: f64::INFINITY, samples: 0, count: 0 }
    }
}

impl Veno {
    pub(super) fn on_feedback_tcp_veno(&mut self, feedback: &TcpEvent, path: &PathView) {
        let current = self.reno.profile == Profile::Linux;
        match *feedback {
            TcpEvent::Acked { segments, in_flight, rtt } => {
                self.sample_tcp_veno(segments, rtt);
                self.acked_tcp_veno(segments, in_flight);
            }
            TcpEvent::Repaired { segments, rtt } => self.sample_tcp_veno(segments, rtt),
            TcpEvent::Lost { .. } | TcpEvent::EcnEcho => {
                self.reduce_tcp_veno();
                self.reno.cwnd = self.reno.ssthresh;
            }
            TcpEvent::Timeout(threshold) => {
                if threshold == Threshold::Cut {
                    self.reduce_tcp_veno();
                }
                self.reno.cwnd = 1.0;
                self.reno.count = 0;
                self.tcp_veno.count = 0;
            }
            TcpEvent::Recovered { .. } | TcpEvent::Undo { .. } => {
                self.reno.on_feedback(feedback, path);
                self.enable();
            }
            TcpEvent::Idle { .. } => {
                self.reno.on_feedback(feedback, path);
                if current {
                    self.begin(); // CA_EVENT_CWND_RESTART
                }
            }
            TcpEvent::Resumed { .. } => self.begin(), // CA_EVENT_TX_START
            TcpEvent::Established { .. } | TcpEvent::Deflate { .. } | TcpEvent::Duplicate => {
                self.reno.on_feedback(feedback, path);
            }
        }
    }

    fn enable(&mut self) {
        self.tcp_veno.ruling = Ruling::Veno;
        self.tcp_veno.min_rtt = f64::INFINITY;
    }

    /// `tcp_veno_init`.
    fn begin(&mut self) {
        self.base_rtt = f64::INFINITY;
        self.turn = Turn::Grow;
        self.enable();
    }

    /// `tcp_veno_pkts_acked`: samples in microseconds, never zero.
    fn sample_tcp_veno(&mut self, segments: u32, rtt: Option<Span>) {
        if self.reno.profile == Profile::Ns2Linux {
            self.reno.count = self.reno.count.saturating_add(segments); // bytes_acked
        }
        if let Some(rtt) = rtt {
            let micros = (rtt.0 / 1000 + 1) as f64;
            self.base_rtt = self.base_rtt.min(micros);
            self.tcp_veno.min_rtt = self.tcp_veno.min_rtt.min(micros);
            let width = if self.reno.profile == Profile::Linux { 0xFFFF } else { u32::MAX };
            self.tcp_veno.samples = self.tcp_veno.samples.wrapping_add(1) & width;
        }
    }

    /// `tcp_veno_cong_avoid`.
    fn acked_tcp_veno(&mut self, segments: u32, in_flight: u32) {
        if self.tcp_veno.ruling == Ruling::Reno {
            return self.reno_tcp_veno(segments, in_flight);
        }
        if f64::from(in_flight) < self.reno.cwnd {
            return;
        }
        if self.tcp_veno.samples <= 2 {
            self.reno_tcp_veno(segments, in_flight);
        } else {
            // fixed point with one fractional bit
            let doubled = self.reno.cwnd * 2.0;
            let target = (doubled * self.base_rtt / self.tcp_veno.min_rtt).trunc();
            self.backlog = (doubled - target) / 2.0;
            if self.reno.profile == Profile::Linux {
                let left = reno::slow_start_linux(&mut self.reno.cwnd, self.reno.ssthresh, segments);
                if left > 0 {
                    self.avoid(left);
                }
            } else if self.reno.cwnd <= self.reno.ssthresh {
                reno::slow_start(&mut self.reno.cwnd, &mut self.reno.count);
            } else {
                self.avoid(1);
            }
            self.reno.cwnd = self.reno.cwnd.max(2.0);
        }
        self.tcp_veno.min_rtt = f64::INFINITY;
    }

    fn reno_tcp_veno(&mut self, segments: u32, in_flight: u32) {
        let reno = &mut self.reno;
        if reno.profile == Profile::Linux {
            reno::grow_linux(&mut reno.cwnd, reno.ssthresh, &mut self.tcp_veno.count, segments, in_flight);
        } else {
            reno::grow_ns2_linux(&mut reno.cwnd, reno.ssthresh, &mut reno.count, in_flight);
        }
    }

    /// Congestion avoidance: one segment per window of acknowledgements; while N >= beta, per two windows.
    fn avoid(&mut self, segments: u32) {
        let slow = self.growth == Growth::Slow && self.backlog >= self.beta;
        let (cwnd, count) = (&mut self.reno.cwnd, &mut self.tcp_veno.count);
        if !slow && self.reno.profile == Profile::Linux {
            let per = *cwnd;
            return reno::avoid_linux(cwnd, per, count, segments);
        }
        if f64::from(*count) < *cwnd {
            *count = count.saturating_add(segments);
            return;
        }
        *count = 0;
        if !slow {
            *cwnd += 1.0;
        } else if self.turn == Turn::Grow {
            *cwnd += 1.0;
            self.turn = Turn::Hold;
        } else {
            self.turn = Turn::Grow;
        }
    }

    /// `tcp_veno_ssthresh`; Veno's law applies again when recovery ends.
    fn reduce_tcp_veno(&mut self) {
        self.reno.ssthresh = (self.reno.cwnd * self.factor()).floor().max(2.0);
        self.reno.count = 0;
        self.tcp_veno.count = 0;
        self.tcp_veno.ruling = Ruling::Reno;
        self.forget_base();
    }
}

//! Vegas in a current kernel (`net/ipv4/tcp_vegas.c`): minimum round trip of the epoch, Reno if there were at most two
//! samples, slow start in every round trip, losses as in Reno.

use super::{Sampling, Vegas};
use crate::{PathView, TcpEvent, Threshold, reno};
use paceline_units::Span;

impl Vegas {
    pub(super) fn on_feedback_linux(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::Acked { segments, in_flight, rtt } => {
                self.sample_linux(rtt);
                self.acked_linux(segments, in_flight, path);
            }
            TcpEvent::Repaired { rtt, .. } => self.sample_linux(rtt),
            TcpEvent::Established { window } => {
                self.cwnd = window.max(1.0);
                self.enable(path);
            }
            TcpEvent::Lost { .. } | TcpEvent::EcnEcho => {
                self.reduce_linux();
                self.cwnd = self.ssthresh;
            }
            TcpEvent::Timeout(threshold) => {
                if threshold == Threshold::Cut {
                    self.reduce_linux();
                }
                self.cwnd = 1.0;
                self.count = 0;
                self.sampling = Sampling::Off;
            }
            TcpEvent::Recovered { at_most } => {
                if self.cwnd < self.ssthresh {
                    self.cwnd = self.ssthresh.min(at_most).max(1.0);
                }
                self.enable(path);
            }
            TcpEvent::Undo { window, threshold } => {
                self.undo(window, threshold);
                self.enable(path);
            }
            TcpEvent::Idle { window } => {
                self.ssthresh = self.ssthresh.max(0.75 * self.cwnd); // tcp_current_ssthresh (RFC 2861)
                self.cwnd = self.cwnd.min(window).max(1.0);
                self.begin_linux(path); // CA_EVENT_CWND_RESTART
            }
            TcpEvent::Resumed { .. } => self.begin_linux(path), // CA_EVENT_TX_START
            TcpEvent::Deflate { .. } | TcpEvent::Duplicate => {}
        }
    }

    /// `tcp_vegas_init`: resets the base round-trip time.
    fn begin_linux(&mut self, path: &PathView) {
        self.base_rtt = f64::INFINITY;
        self.enable(path);
    }

    /// `tcp_vegas_cong_avoid`.
    fn acked_linux(&mut self, segments: u32, in_flight: u32, path: &PathView) {
        if self.sampling == Sampling::Off {
            return self.reno_linux(segments, in_flight);
        }
        if path.acked <= self.epoch {
            reno::slow_start_linux(&mut self.cwnd, self.ssthresh, segments);
            return;
        }
        self.epoch = path.next;
        if self.samples <= 2 {
            self.reno_linux(segments, in_flight); // too few to distinguish a queue from delayed acknowledgements
        } else {
            // whole segments, as in the kernel
            let target = (self.cwnd * self.base_rtt / self.min_rtt).floor();
            let difference = (self.cwnd * (self.min_rtt - self.base_rtt) / self.base_rtt).floor();
            self.difference = difference;
            if self.cwnd < self.ssthresh {
                if difference > self.gamma {
                    self.cwnd = self.cwnd.min(target + 1.0).max(2.0);
                    self.ssthresh = self.ssthresh.min(self.cwnd);
                } else {
                    reno::slow_start_linux(&mut self.cwnd, self.ssthresh, segments);
                }
            } else if difference > self.beta {
                self.cwnd -= 1.0;
                self.ssthresh = self.ssthresh.min(self.cwnd).max(2.0);
            } else if difference < self.alpha {
                self.cwnd += 1.0;
            }
            self.cwnd = self.cwnd.max(2.0);
            self.ssthresh = self.ssthresh.max((0.75 * self.cwnd).floor()); // tcp_current_ssthresh
        }
        self.samples = 0;
        self.min_rtt = f64::INFINITY;
    }

    fn reno_linux(&mut self, segments: u32, in_flight: u32) {
        reno::grow_linux(&mut self.cwnd, self.ssthresh, &mut self.count, segments, in_flight);
    }

    /// `tcp_vegas_pkts_acked`: samples in microseconds, never zero.
    fn sample_linux(&mut self, rtt: Option<Span>) {
        if let Some(rtt) = rtt {
            let micros = (rtt.0 / 1000 + 1) as f64;
            self.base_rtt = self.base_rtt.min(micros);
            self.min_rtt = self.min_rtt.min(micros);
            self.samples += 1;
        }
    }

    /// `tcp_reno_ssthresh`; sampling resumes when recovery ends.
    fn reduce_linux(&mut self) {
        self.ssthresh = (self.cwnd / 2.0).floor().max(2.0);
        self.count = 0;
        self.sampling = Sampling::Off;
    }
}

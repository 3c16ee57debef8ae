//! Reno's window: slow start, congestion avoidance, halving.
//!
//! Source: V. Jacobson, "Congestion avoidance and control", SIGCOMM 1988; RFC 5681. The schemes `tahoe`, `reno`,
//! `newreno` and `sack` share this window and differ in the machine's loss recovery. Profiles: `rfc` RFC 5681; `ns2`
//! `Agent/TCP` of ns-2.35 (`windowOption_ 1`); `ns2-linux` `tcp_cong.c` of Linux 2.6.22 as included in ns-2.35; `linux`
//! that of a current kernel. See docs/controllers/reno.md.

use crate::{Build, Controller, Gauges, Machine, PathView, Profile, Recovery, Scheme};
use crate::{TcpEvent, Threshold, WindowController};

/// The state: small enough for the sender's own cache lines.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    pub(crate) cwnd: f64,
    pub(crate) ssthresh: f64,
    /// Segments acknowledged, counted towards the window's next increase (Linux's `bytes_acked`).
    pub(crate) count: u32,
    pub(crate) profile: Profile,
}

const fn scheme(name: &'static str, summary: &'static str, source: &'static str, recovery: Recovery) -> Scheme {
    // TCP-Linux and the kernel have only one machine, with SACK.
    let machine = Machine::Tcp([recovery, recovery, Recovery::Sack, Recovery::Sack]);
    Scheme { name, summary, source, machine, parameters: &[], foreign: None }
}

impl Reno {
    /// `factor` times FlightSize, which is limited to cwnd: in a long recovery more segments are unacknowledged than
    /// the window ever allowed into the network.
    fn share(&self, factor: f64, path: &PathView) -> f64 {
        f64::from(path.in_flight).min(self.cwnd) * factor
    }

    /// The slow-start threshold after a loss: multiplicative decrease by `factor`, 1/2 in Reno.
    #[inline]
    fn reduced(&self, factor: f64, path: &PathView) -> f64 {
        match self.profile {
            Profile::Rfc => self.share(factor, path).max(2.0), // RFC 5681 equation (4)
            // slowdown() with precisionReduce_: ssthresh_ is an int, at least 2
            Profile::Ns2 => (self.cwnd.min(f64::from(path.receive_window)) * factor).floor().max(2.0),
            // tcp_reno_ssthresh()
            Profile::Ns2Linux | Profile::Linux => (self.cwnd * factor).floor().max(2.0),
        }
    }

    /// Handles a loss that multiplies the window by `factor`.
    #[cold]
    pub(crate) fn lost(&mut self, factor: f64, path: &PathView) {
        self.ssthresh = self.reduced(factor, path);
        self.count = 0;
        self.cwnd = match self.profile {
            Profile::Rfc | Profile::Linux => self.ssthresh,
            Profile::Ns2 => self.cwnd.min(f64::from(path.receive_window)) * factor,
            // tcp_reno_min_cwnd(): the machine lowers what is in flight step by step, and the end of recovery restores
            // ssthresh
            Profile::Ns2Linux => (self.ssthresh / 2.0).floor(),
        }
        .max(1.0);
    }

    /// An ECN mark is handled like a loss, but the window may shrink to one segment (RFC 3168 section 6.1.2).
    #[cold]
    fn marked(&mut self, path: &PathView) {
        let window = self.share(0.5, path).max(1.0);
        self.lost(0.5, path);
        if self.profile == Profile::Rfc {
            self.cwnd = window;
        }
    }

    /// Handles [`TcpEvent::Acked`] without a [`PathView`], which Reno does not need.
    #[inline]
    pub fn acked(&mut self, segments: u32, in_flight: u32) {
        match self.profile {
            Profile::Rfc => {
                // an unused window says nothing about the path (RFC 7661 section 4.3)
                if f64::from(in_flight) + 1.0 > self.cwnd {
                    if self.cwnd < self.ssthresh {
                        self.cwnd += 1.0; // RFC 5681 equation (2): min(N, SMSS)
                    } else {
                        // RFC 5681 section 3.1, by segments acknowledged; at most one segment
                        self.cwnd += (f64::from(segments) / self.cwnd).min(1.0);
                    }
                }
            }
            Profile::Ns2 => {
                self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
            }
            Profile::Ns2Linux | Profile::Linux => self.cong_avoid(segments, in_flight),
        }
    }

    /// `tcp_reno_cong_avoid`; under `ns2-linux` with `sysctl_tcp_abc` 1, as in ns-2.
    #[inline(never)]
    fn cong_avoid(&mut self, segments: u32, in_flight: u32) {
        if self.profile == Profile::Linux {
            return grow_linux(&mut self.cwnd, self.ssthresh, &mut self.count, segments, in_flight);
        }
        self.count = self.count.saturating_add(segments);
        grow_ns2_linux(&mut self.cwnd, self.ssthresh, &mut self.count, in_flight);
    }
}

/// Linux 2.6.22 with appropriate byte counting: one segment per acknowledgement in slow start, one per window of
/// acknowledged segments after it; no growth while the window is not used. `count`: segments acknowledged so far.
pub(crate) fn grow_ns2_linux(cwnd: &mut f64, ssthresh: f64, count: &mut u32, in_flight: u32) {
    if f64::from(in_flight) < *cwnd {
        return;
    }
    if *cwnd <= ssthresh {
        slow_start(cwnd, count);
    } else if f64::from(*count) >= *cwnd {
        *count -= *cwnd as u32;
        *cwnd += 1.0;
    }
}

/// `tcp_reno_cong_avoid` of a current kernel: slow start by segments acknowledged, up to the threshold; one segment per
/// window of acknowledged segments after it; no growth while the window is not used (RFC 7661).
pub(crate) fn grow_linux(cwnd: &mut f64, ssthresh: f64, count: &mut u32, segments: u32, in_flight: u32) {
    if f64::from(in_flight) < *cwnd {
        return;
    }
    let segments = slow_start_linux(cwnd, ssthresh, segments);
    avoid_linux(cwnd, *cwnd, count, segments);
}

/// `tcp_slow_start`; returns the rest of `segments`, which counts for congestion avoidance.
pub(crate) fn slow_start_linux(cwnd: &mut f64, ssthresh: f64, segments: u32) -> u32 {
    if *cwnd >= ssthresh {
        return segments;
    }
    let grown = (*cwnd + f64::from(segments)).min(ssthresh.floor().max(*cwnd));
    let left = segments - ((grown - *cwnd) as u32).min(segments);
    *cwnd = grown;
    left
}

/// `tcp_cong_avoid_ai`: one segment per `per` segments acknowledged.
pub(crate) fn avoid_linux(cwnd: &mut f64, per: f64, count: &mut u32, segments: u32) {
    if f64::from(*count) >= per {
        // counted before `per` fell
        *count = 0;
        *cwnd += 1.0;
    }
    *count = count.saturating_add(segments);
    if f64::from(*count) >= per {
        let more = (f64::from(*count) / per).floor();
        *count -= ((more * per) as u32).min(*count);
        *cwnd += more;
    }
}

/// `tcp_slow_start` of Linux 2.6.22 with appropriate byte counting.
pub(crate) fn slow_start(cwnd: &mut f64, count: &mut u32) {
    if *count > 0 {
        *count = 0;
        *cwnd += 1.0;
    }
}

impl Build for Reno {
    const SCHEMES: &'static [Scheme] = &[
        scheme("newreno", "Reno's window with NewReno's recovery", "RFC 5681, RFC 6582", Recovery::NewReno),
        scheme("reno", "Reno: fast retransmit and fast recovery", "RFC 5681 (recovery: RFC 2581)", Recovery::Reno),
        scheme("sack", "Reno's window with selective acknowledgements", "RFC 2018, RFC 5681, RFC 6675", Recovery::Sack),
        scheme("tahoe", "Slow start after every loss", "Jacobson, SIGCOMM 1988", Recovery::Tahoe),
    ];

    fn build(profile: Profile, _values: &[f64]) -> Reno {
        Reno { cwnd: 1.0, ssthresh: f64::INFINITY, count: 0, profile }
    }
}

impl Controller for Reno {
    type Feedback = TcpEvent;

    #[inline(always)]
    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::Acked { segments, in_flight, .. } => self.acked(segments, in_flight),
            TcpEvent::Established { window } => self.cwnd = window.max(1.0),
            TcpEvent::Repaired { segments, .. } => {
                if self.profile != Profile::Linux {
                    self.count = self.count.saturating_add(segments);
                }
            }
            TcpEvent::Duplicate | TcpEvent::Resumed { .. } => {}
            TcpEvent::Lost { .. } => self.lost(0.5, path),
            TcpEvent::EcnEcho => self.marked(path),
            TcpEvent::Deflate { segments } => self.cwnd = (self.cwnd - f64::from(segments)).max(1.0),
            TcpEvent::Recovered { at_most } => match self.profile {
                Profile::Rfc => self.cwnd = self.ssthresh.min(at_most).max(1.0), // RFC 6582 section 3.2 step 3
                Profile::Ns2 => {}                                               // exit_recovery_fix_ 0
                Profile::Ns2Linux | Profile::Linux => {
                    if self.cwnd < self.ssthresh {
                        self.cwnd = self.ssthresh.min(at_most).max(1.0);
                    }
                }
            },
            TcpEvent::Timeout(threshold) => {
                if threshold == Threshold::Cut {
                    self.ssthresh = self.reduced(0.5, path);
                }
                self.cwnd = 1.0;
                self.count = 0;
            }
            TcpEvent::Undo { window, threshold } => {
                self.cwnd = self.cwnd.max(window);
                self.ssthresh = self.ssthresh.max(threshold);
            }
            TcpEvent::Idle { window } => {
                if self.profile == Profile::Linux {
                    self.ssthresh = self.ssthresh.max(0.75 * self.cwnd); // tcp_current_ssthresh (RFC 2861)
                }
                self.cwnd = self.cwnd.min(window).max(1.0);
            }
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.packets("cwnd", self.cwnd);
        to.packets("ssthresh", self.ssthresh);
    }
}

impl WindowController for Reno {
    #[inline]
    fn window(&self) -> f64 {
        self.cwnd
    }
    #[inline]
    fn threshold(&self) -> f64 {
        self.ssthresh
    }
}

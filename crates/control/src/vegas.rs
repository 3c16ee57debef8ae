//! Vegas: keeps between alpha and beta segments in the queue.
//!
//! Source: L. Brakmo, L. Peterson, "TCP Vegas: end to end congestion avoidance on a global internet", IEEE JSAC
//! 13(8), 1995. Profiles: `rfc` the paper's form; `ns2` `Agent/TCP/Vegas` of ns-2.35; `ns2-linux` `tcp_vegas.c` of
//! Linux 2.6.22 as included in ns-2.35; `linux` that of a current kernel (`vegas/linux.rs`). The machine does its
//! fine-grained retransmission ([`Recovery::Vegas`]). See docs/controllers/vegas.md.

mod linux;

use crate::{Build, Controller, Gauges, Machine, Parameter, PathView, Profile, Recovery, Scheme};
use crate::{TcpEvent, Threshold, WindowController, known, reno};
use paceline_units::{Span, Time};

const PARAMETERS: &[Parameter] = &[
    Parameter::number(
        "alpha",
        [1.0, 1.0, 2.0, 2.0],
        (0.0, 1000.0),
        "segments",
        "fewer than this in the queue: the window grows by one a round trip",
    ),
    Parameter::number(
        "beta",
        [3.0, 3.0, 4.0, 4.0],
        (0.0, 1000.0),
        "segments",
        "more than this in the queue: the window shrinks by one a round trip",
    ),
    Parameter::number(
        "gamma",
        [1.0; Profile::ALL.len()],
        (0.0, 1000.0),
        "segments",
        "more than this in the queue: slow start ends",
    ),
];

/// The state.
#[derive(Clone, Debug)]
pub struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    profile: Profile,
    cwnd: f64,
    ssthresh: f64,
    /// The window after recovery, without the duplicates that inflate it (`v_newcwnd_`).
    deflated: f64,
    /// Minimum round-trip time in seconds (`ns2-linux`, `linux`: microseconds); infinite before the first sample.
    base_rtt: f64,
    /// This epoch's samples: their sum in seconds, their number, and their minimum (`ns2-linux`, `linux`) in
    /// microseconds.
    sum: f64,
    samples: u32,
    min_rtt: f64,
    /// The epoch ends when this segment is acknowledged; then its start time, and the end of the previous epoch.
    epoch: u32,
    epoch_began: Time,
    epoch_before: u32,
    epoch_window: f64,
    /// Growth per acknowledgement, constant within an epoch.
    increment: f64,
    /// Slow start grows the window in every other epoch only.
    growing: Alternate,
    /// The last epoch's difference, for plots; NaN before the first.
    difference: f64,
    /// Linux: samples count only outside recovery.
    sampling: Sampling,
    count: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Alternate {
    Grow,
    Hold,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sampling {
    Unborn,
    On,
    Off,
}

impl Vegas {
    /// Once per round trip: compares the expected with the actual rate (section 3.2 of the paper) and decides the
    /// change.
    fn epoch(&mut self, path: &PathView) {
        // segments sent in the epoch; their acknowledgements gave its samples
        let sent = path.next.saturating_sub(self.epoch);
        let rtt = if self.samples > 0 {
            self.sum / f64::from(self.samples)
        } else if self.profile == Profile::Rfc {
            // only a SYN, which is smaller than a segment, or a retransmission (Karn) was measured, so there is no
            // sample; ns-2 takes the epoch's duration, which may be shorter than any round trip
            0.0
        } else if self.base_rtt.is_finite() {
            path.now.since(self.epoch_began).as_secs_f64()
        } else {
            path.min_rtt.as_secs_f64()
        };
        self.sum = 0.0;
        self.samples = 0;
        self.epoch = path.next;
        self.epoch_began = path.now;
        if rtt <= 0.0 {
            return;
        }
        if rtt < self.base_rtt || sent <= 1 {
            self.base_rtt = rtt;
        }
        let actual = f64::from(sent) / rtt;
        let window = match self.profile {
            // the segments sent in the epoch equal the window, if it was used
            Profile::Rfc => f64::from(sent),
            // ns-2's last_ack_ is the newest acknowledged segment, not the next expected one
            _ => f64::from(path.next) - f64::from(path.acked) + 1.0,
        };
        let expected = window / self.base_rtt;
        let difference = (expected - actual) * self.base_rtt;
        // ns-2 stores it in an int
        let difference = if self.profile == Profile::Rfc { difference } else { (difference + 0.5).trunc() };
        self.difference = difference;
        if self.cwnd < self.ssthresh {
            self.growing = if self.growing == Alternate::Grow { Alternate::Hold } else { Alternate::Grow };
            self.increment = 0.0;
            if self.growing == Alternate::Grow {
                if difference > self.gamma {
                    self.ssthresh = 2.0;
                    self.cwnd = (self.cwnd - self.cwnd / 8.0).max(2.0);
                } else {
                    self.increment = 1.0;
                }
            }
        } else if difference > self.beta {
            self.cwnd = (self.cwnd - 1.0).max(2.0);
            self.increment = 0.0;
        } else if difference < self.alpha {
            self.increment = 1.0 / self.cwnd;
        } else {
            self.increment = 0.0;
        }
    }

    fn acked(&mut self, rtt: Option<Span>, path: &PathView) {
        if path.acked > self.epoch {
            self.epoch(path);
        }
        // the threshold may be reached before the epoch ends
        if self.increment == 1.0 && self.cwnd >= self.ssthresh {
            self.increment = 0.0;
        }
        // a window that the sender does not use does not grow
        let outstanding = f64::from(path.next) - f64::from(path.acked) + 1.0;
        if self.increment > 0.0 && self.cwnd - outstanding <= 2.0 {
            self.cwnd += self.increment;
        }
        if let Some(rtt) = rtt {
            let rtt = rtt.0 as f64 * 1e-9;
            self.sum += rtt;
            self.samples += 1;
            if rtt > 0.0 && rtt < self.base_rtt {
                self.base_rtt = rtt;
            }
        }
    }

    fn lost(&mut self, duplicates: u32, again: bool, path: &PathView) {
        let window = self.cwnd.min(f64::from(path.receive_window)).trunc();
        self.deflated = if window <= 3.0 {
            2.0
        } else if again {
            (window / 2.0).trunc()
        } else {
            window - (window / 4.0).trunc() // section 3.1: three quarters
        };
        self.cwnd = self.deflated + f64::from(duplicates);
    }

    fn undo(&mut self, window: f64, threshold: f64) {
        self.cwnd = self.cwnd.max(window);
        self.ssthresh = self.ssthresh.max(threshold);
    }

    // ---- Linux 2.6.22

    fn enable(&mut self, path: &PathView) {
        self.sampling = Sampling::On;
        self.epoch = path.next;
        self.samples = 0;
        self.min_rtt = f64::INFINITY;
    }

    fn acked_ns2_linux(&mut self, segments: u32, in_flight: u32, rtt: Option<Span>, path: &PathView) {
        if self.sampling == Sampling::Unborn {
            self.enable(path);
        }
        self.sample_ns2_linux(segments, rtt);
        if self.sampling == Sampling::Off {
            return reno::grow_ns2_linux(&mut self.cwnd, self.ssthresh, &mut self.count, in_flight);
        }
        if path.acked <= self.epoch {
            if self.cwnd <= self.ssthresh {
                reno::slow_start(&mut self.cwnd, &mut self.count);
            }
            return;
        }
        let window = f64::from(self.epoch.saturating_sub(self.epoch_before));
        let before = self.epoch_window;
        self.epoch_before = self.epoch;
        self.epoch = path.next;
        self.epoch_window = self.cwnd;
        if self.samples <= 2 {
            reno::grow_ns2_linux(&mut self.cwnd, self.ssthresh, &mut self.count, in_flight);
        } else {
            // fixed point with one fractional bit, as in the kernel
            let target = (window * self.base_rtt * 2.0 / self.min_rtt).trunc();
            let difference = window * 2.0 - target;
            self.difference = difference / 2.0;
            if self.cwnd <= self.ssthresh {
                if difference > self.gamma * 2.0 {
                    self.ssthresh = 2.0;
                    self.cwnd = self.cwnd.min((target / 2.0).trunc() + 1.0);
                }
                reno::slow_start(&mut self.cwnd, &mut self.count);
            } else {
                let wanted = if difference > self.beta * 2.0 {
                    before - 1.0
                } else if difference < self.alpha * 2.0 {
                    before + 1.0
                } else {
                    before
                };
                if wanted > self.cwnd {
                    self.cwnd += 1.0;
                } else if wanted < self.cwnd {
                    self.cwnd -= 1.0;
                }
            }
            self.cwnd = self.cwnd.max(2.0);
        }
        self.samples = 0;
        self.min_rtt = f64::INFINITY;
    }

    /// `tcp_vegas_pkts_acked`: samples in microseconds, never zero.
    fn sample_ns2_linux(&mut self, segments: u32, rtt: Option<Span>) {
        self.count = self.count.saturating_add(segments);
        if let Some(rtt) = rtt {
            let micros = (rtt.0 / 1000 + 1) as f64;
            self.base_rtt = self.base_rtt.min(micros);
            self.min_rtt = self.min_rtt.min(micros);
            self.samples += 1;
        }
    }

    fn lost_ns2_linux(&mut self) {
        self.ssthresh = (self.cwnd / 2.0).floor().max(2.0);
        self.cwnd = (self.ssthresh / 2.0).floor().max(1.0);
        self.count = 0;
        self.sampling = Sampling::Off;
    }
}

impl Build for Vegas {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "vegas",
        summary: "Vegas: keeps between alpha and beta segments in the queue",
        source: "Brakmo and Peterson, IEEE JSAC 13(8), 1995",
        machine: Machine::Tcp([Recovery::Vegas, Recovery::Vegas, Recovery::Sack, Recovery::Sack]),
        parameters: PARAMETERS,
        foreign: None,
    }];

    fn build(profile: Profile, values: &[f64]) -> Vegas {
        Vegas {
            alpha: values[0],
            beta: values[1],
            gamma: values[2],
            profile,
            cwnd: 1.0,
            ssthresh: f64::INFINITY,
            deflated: 1.0,
            base_rtt: f64::INFINITY,
            sum: 0.0,
            samples: 0,
            min_rtt: f64::INFINITY,
            epoch: 0,
            epoch_began: Time::ZERO,
            epoch_before: 0,
            epoch_window: 0.0,
            increment: 0.0,
            growing: Alternate::Grow,
            difference: f64::NAN,
            sampling: Sampling::Unborn,
            count: 0,
        }
    }
}

impl Controller for Vegas {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        let ns2_linux = self.profile == Profile::Ns2Linux;
        match *feedback {
            _ if self.profile == Profile::Linux => self.on_feedback_linux(feedback, path),
            TcpEvent::Acked { segments, in_flight, rtt } if ns2_linux => {
                self.acked_ns2_linux(segments, in_flight, rtt, path);
            }
            TcpEvent::Repaired { segments, rtt } => self.sample_ns2_linux(segments, rtt),
            TcpEvent::Acked { rtt, .. } => self.acked(rtt, path),
            TcpEvent::Established { window } => self.cwnd = window.max(1.0),
            TcpEvent::Duplicate => self.cwnd += 1.0,
            TcpEvent::Resumed { .. } => {}
            TcpEvent::Lost { .. } | TcpEvent::EcnEcho if ns2_linux => self.lost_ns2_linux(),
            TcpEvent::Lost { duplicates, again } => self.lost(duplicates, again, path),
            TcpEvent::EcnEcho => {
                self.ssthresh = (self.cwnd.min(f64::from(path.receive_window)) / 2.0).floor().max(2.0);
                self.cwnd = (self.cwnd / 2.0).max(1.0);
            }
            TcpEvent::Deflate { segments } => self.cwnd = (self.cwnd - f64::from(segments)).max(1.0),
            TcpEvent::Recovered { at_most } if ns2_linux => {
                if self.cwnd < self.ssthresh {
                    self.cwnd = self.ssthresh.min(at_most).max(1.0);
                }
                self.enable(path);
            }
            TcpEvent::Recovered { .. } => {
                if self.cwnd > self.deflated {
                    self.cwnd = self.deflated.max(1.0);
                    self.ssthresh = 2.0; // enables slow start only, which is over
                }
            }
            TcpEvent::Timeout(threshold) => {
                if self.profile == Profile::Rfc {
                    // RFC 5681 section 3.1, as in other controllers
                    if threshold == Threshold::Cut {
                        self.ssthresh = (f64::from(path.in_flight).min(self.cwnd) / 2.0).max(2.0);
                    }
                    self.cwnd = 1.0;
                    // sending restarts from the left edge, and so do the epochs
                    self.epoch = path.acked;
                    self.epoch_began = path.now;
                    self.sum = 0.0;
                    self.samples = 0;
                } else if ns2_linux {
                    if threshold == Threshold::Cut {
                        self.lost_ns2_linux();
                    }
                    self.cwnd = 1.0;
                    self.count = 0;
                } else {
                    // also when idle: ns-2's agent does not check whether anything is outstanding
                    self.ssthresh = (self.cwnd.min(f64::from(path.receive_window)) / 2.0).floor().max(2.0);
                    self.cwnd = 2.0;
                    self.deflated = 0.0;
                }
            }
            TcpEvent::Undo { window, threshold } => self.undo(window, threshold),
            TcpEvent::Idle { window } => self.cwnd = self.cwnd.min(window).max(1.0),
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.packets("cwnd", self.cwnd);
        to.packets("ssthresh", self.ssthresh);
        to.packets("diff", self.difference);
        let unit = if matches!(self.profile, Profile::Ns2Linux | Profile::Linux) { 1e-6 } else { 1.0 };
        to.seconds("base_rtt", known(self.base_rtt * unit));
    }
}

impl WindowController for Vegas {
    fn window(&self) -> f64 {
        self.cwnd
    }
    fn threshold(&self) -> f64 {
        self.ssthresh
    }
}

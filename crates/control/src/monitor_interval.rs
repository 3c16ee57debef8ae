//! Controllers that decide once per monitor interval, not at each acknowledgement: this module gathers an interval's
//! measurements.
//!
//! The name is that of M. Dong, Q. Li, D. Zarchy, P. B. Godfrey, M. Schapira, "PCC: Re-architecting Congestion Control
//! for Consistent High Performance", NSDI 2015. Learning agents, and controllers too slow to call for each packet, use
//! it.

use crate::{Controller, Gauges, Needs, PathView, RateSample, TcpEvent, WindowController};
use paceline_units::{Span, Time};

/// The length of an interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Every {
    /// Until what was sent at its beginning has been acknowledged.
    RoundTrip,
    /// This long; it ends with the first acknowledgement after that.
    Time(Span),
    /// Until this many segments have been acknowledged.
    Segments(u32),
}

/// The measurements of an interval.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Monitored {
    /// Its duration.
    pub duration: Span,
    /// Bytes acknowledged, selectively or cumulatively.
    pub acked: u64,
    /// Bytes detected as lost.
    pub lost: u64,
    /// Bytes sent, retransmissions included: those acknowledged or lost, plus the increase in flight.
    pub sent: u64,
    /// CE-marked segments, if the receiver counts them.
    pub marked: u32,
    /// Retransmission timeouts: 1 if a timeout ended the interval, else 0.
    pub timeouts: u32,
    /// Whether the application, not the controller, limited what was sent.
    pub app_limited: bool,
    /// Number of round-trip samples.
    pub rtts: u32,
    /// Their sum in seconds (see [`Monitored::rtt`]).
    pub rtt_sum: f64,
    /// The minimum round-trip time.
    pub min_rtt: Option<Span>,
    /// The maximum round-trip time.
    pub max_rtt: Option<Span>,
}

impl Monitored {
    /// The mean round-trip time in seconds; `None` without a sample.
    #[must_use]
    pub fn rtt(&self) -> Option<f64> {
        (self.rtts > 0).then(|| self.rtt_sum / f64::from(self.rtts))
    }

    /// Bytes acknowledged per second.
    #[must_use]
    pub fn delivery_rate(&self) -> f64 {
        let seconds = self.duration.as_secs_f64();
        if seconds > 0.0 { self.acked as f64 / seconds } else { 0.0 }
    }

    /// Lost bytes as a share of those acknowledged or lost.
    #[must_use]
    pub fn loss(&self) -> f64 {
        let all = self.acked + self.lost;
        if all > 0 { self.lost as f64 / all as f64 } else { 0.0 }
    }

    /// Adds an acknowledgement.
    pub fn add(&mut self, sample: &RateSample) {
        self.acked += sample.newly_acked;
        self.lost += sample.newly_lost;
        self.marked = self.marked.saturating_add(sample.newly_marked);
        self.app_limited |= sample.app_limited;
        if let Some(rtt) = sample.rtt {
            self.add_rtt(rtt);
        }
    }

    /// Adds a round-trip time.
    pub fn add_rtt(&mut self, rtt: Span) {
        self.rtts += 1;
        self.rtt_sum += rtt.as_secs_f64();
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.max_rtt = Some(self.max_rtt.map_or(rtt, |max| max.max(rtt)));
    }
}

/// What applies until the end of the next interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// The window in segments: finite, at least 1.
    pub window: f64,
    /// The pacing rate in bytes of payload per second; infinite: only the window limits sending.
    pub pacing: f64,
}

/// Decides once per interval.
pub trait Policy {
    /// The connection is established; `window` is the initial window in segments.
    fn begin(&mut self, window: f64, path: &PathView) -> Decision;
    /// An interval has ended; `now` is the decision in force.
    fn decide(&mut self, interval: &Monitored, now: Decision, path: &PathView) -> Decision;
    /// Readings for plots besides the window.
    fn gauges(&self, _to: &mut dyn Gauges) {}
}

/// A controller that calls `D` once per interval. In between, a timeout reduces the window to one segment (and ends the
/// interval), and the limits that prevent bursts apply (RFC 6582 section 3.2, RFC 5681 section 4.1).
#[derive(Clone, Debug)]
pub struct Monitor<D> {
    /// The decision maker.
    pub by: D,
    every: Every,
    pacing: bool,
    decision: Decision,
    interval: Monitored,
    began: Time,
    /// Segments in flight at the interval's start.
    in_flight: u32,
    /// The round trip ends when this segment is acknowledged.
    end: u32,
}

impl<D: Policy> Monitor<D> {
    /// Calls `by` at each `every`; `pacing`: segments leave at its rate.
    pub fn new(by: D, every: Every, pacing: bool) -> Monitor<D> {
        Monitor {
            by,
            every,
            pacing,
            decision: Decision { window: 1.0, pacing: f64::INFINITY },
            interval: Monitored::default(),
            began: Time::ZERO,
            in_flight: 0,
            end: 0,
        }
    }

    /// What its machine must do.
    #[must_use]
    pub const fn needs(pacing: bool) -> Needs {
        Needs { deliveries: true, pacing, ..Needs::NONE }
    }

    fn begin(&mut self, path: &PathView) {
        self.interval = Monitored::default();
        self.began = path.now;
        self.in_flight = path.in_flight;
        self.end = path.next;
    }

    fn is_over(&self, path: &PathView) -> bool {
        match self.every {
            Every::RoundTrip => path.acked >= self.end && self.interval.acked > 0,
            Every::Time(span) => path.now.since(self.began) >= span,
            Every::Segments(many) => self.interval.acked >= u64::from(many) * u64::from(path.segment.max(1)),
        }
    }

    fn end(&mut self, path: &PathView) {
        self.interval.duration = path.now.since(self.began);
        let more = (i64::from(path.in_flight) - i64::from(self.in_flight)) * i64::from(path.segment);
        self.interval.sent = (self.interval.acked + self.interval.lost).saturating_add_signed(more);
        self.decision = self.by.decide(&self.interval, self.decision, path);
        self.begin(path);
    }

    fn limit_window(&mut self, window: f64) {
        self.decision.window = self.decision.window.min(window).max(1.0);
    }
}

impl<D: Policy> Controller for Monitor<D> {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, event: &TcpEvent, path: &PathView) {
        match *event {
            TcpEvent::Established { window } => {
                self.decision = self.by.begin(window, path);
                self.begin(path);
            }
            TcpEvent::Timeout(_) => {
                self.decision.window = 1.0;
                self.interval.timeouts += 1;
                self.end(path);
            }
            TcpEvent::Recovered { at_most } => self.limit_window(at_most),
            TcpEvent::Idle { window } => self.limit_window(window),
            TcpEvent::EcnEcho => self.interval.marked = self.interval.marked.max(1),
            _ => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.packets("cwnd", self.decision.window);
        to.packets("ssthresh", f64::INFINITY);
        self.by.gauges(to);
    }
}

impl<D: Policy> WindowController for Monitor<D> {
    fn window(&self) -> f64 {
        self.decision.window
    }

    fn threshold(&self) -> f64 {
        f64::INFINITY
    }

    fn needs(&self) -> Needs {
        Self::needs(self.pacing)
    }

    fn on_delivery(&mut self, sample: &RateSample, path: &PathView) {
        self.interval.add(sample);
        if self.is_over(path) {
            self.end(path);
        }
    }

    fn pacing_rate(&self) -> f64 {
        self.decision.pacing
    }
}

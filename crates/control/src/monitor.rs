//! Controllers that decide once an interval, not at each acknowledgement: what the interval was like is gathered here.
//!
//! The name is that of M. Dong, Q. Li, D. Zarchy, P. B. Godfrey, M. Schapira, "PCC: Re-architecting Congestion Control for
//! Consistent High Performance", NSDI 2015. A learner's steps, and what is too dear to be called for each packet, ride on it.

use crate::{Controller, Gauges, Needs, PathView, RateSample, TcpEvent, WindowController};
use paceline_units::{Span, Time};

/// How long an interval is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Every {
    /// As long as it takes until what was sent at its beginning has been acknowledged.
    RoundTrip,
    /// So long, as far as acknowledgements come: it ends with the first one after.
    Time(Span),
    /// So many segments' acknowledgements.
    Segments(u32),
}

/// What an interval was like.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Monitored {
    /// How long it was.
    pub duration: Span,
    /// Bytes that were acknowledged, selectively or in order.
    pub acked: u64,
    /// Bytes that were found lost.
    pub lost: u64,
    /// Bytes that were sent, those sent again too: what was acknowledged or lost, and by how much more is in flight.
    pub sent: u64,
    /// Segments that were marked, of which the receiver counts (ECN).
    pub marked: u32,
    /// Retransmission timeouts: the one that ends it, or none.
    pub timeouts: u32,
    /// Whether the application, not the controller, limited what was sent.
    pub app_limited: bool,
    /// Round-trip times: how many, their sum in seconds, the least and the greatest.
    pub rtts: u32,
    /// See [`Monitored::rtt`].
    pub rtt_sum: f64,
    /// The least round-trip time.
    pub min_rtt: Option<Span>,
    /// The greatest.
    pub max_rtt: Option<Span>,
}

impl Monitored {
    /// The mean round-trip time in seconds; `None` without a sample.
    #[must_use]
    pub fn rtt(&self) -> Option<f64> {
        (self.rtts > 0).then(|| self.rtt_sum / f64::from(self.rtts))
    }

    /// Bytes a second that were acknowledged.
    #[must_use]
    pub fn delivery_rate(&self) -> f64 {
        let seconds = self.duration.as_secs_f64();
        if seconds > 0.0 { self.acked as f64 / seconds } else { 0.0 }
    }

    /// The share that was lost of what was acknowledged or lost.
    #[must_use]
    pub fn loss(&self) -> f64 {
        let all = self.acked + self.lost;
        if all > 0 { self.lost as f64 / all as f64 } else { 0.0 }
    }

    /// Takes in an acknowledgement.
    pub fn add(&mut self, sample: &RateSample) {
        self.acked += sample.newly_acked;
        self.lost += sample.newly_lost;
        self.marked = self.marked.saturating_add(sample.newly_marked);
        self.app_limited |= sample.app_limited;
        if let Some(rtt) = sample.rtt {
            self.add_rtt(rtt);
        }
    }

    /// Takes in a round-trip time.
    pub fn add_rtt(&mut self, rtt: Span) {
        self.rtts += 1;
        self.rtt_sum += rtt.as_secs_f64();
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.max_rtt = Some(self.max_rtt.map_or(rtt, |max| max.max(rtt)));
    }
}

/// What holds until the next interval has ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// In segments: finite, at least 1.
    pub window: f64,
    /// In bytes of payload a second; infinite: as the window lets them.
    pub pacing: f64,
}

/// Who decides.
pub trait Decide {
    /// The connection stands; `window` is the initial window in segments.
    fn begin(&mut self, window: f64, path: &PathView) -> Decision;
    /// An interval has ended, at whose end `now` holds.
    fn decide(&mut self, interval: &Monitored, now: Decision, path: &PathView) -> Decision;
    /// What a plot should show beside the window.
    fn gauges(&self, _to: &mut dyn Gauges) {}
}

/// A controller that asks `D` once an interval. Between, a timeout leaves one segment (and ends the interval), and what would let
/// a burst out is heeded (RFC 6582 section 3.2, RFC 5681 section 4.1).
#[derive(Clone, Debug)]
pub struct Monitor<D> {
    /// Who decides.
    pub by: D,
    every: Every,
    pacing: bool,
    decision: Decision,
    interval: Monitored,
    began: Time,
    /// Segments in flight when it began.
    in_flight: u32,
    /// The round trip is over when this segment is acknowledged.
    end: u32,
}

impl<D: Decide> Monitor<D> {
    /// Asks `by` each `every`; `pacing`: segments leave at its rate.
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

    /// What its machine has to do.
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

impl<D: Decide> Controller for Monitor<D> {
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

impl<D: Decide> WindowController for Monitor<D> {
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

//! The interface between TCP's machine and its controllers.
//!
//! The unit is segments throughout: a window of 10 is ten full segments. The machine itself inflates the window in fast
//! recovery (RFC 5681 section 3.2), so a controller's window does not include duplicates, except in Vegas' own
//! recovery, which reports each of them (see [`TcpEvent::Duplicate`]).

use crate::{Controller, LostSegment, Needs, PathView, RateSample};
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// The slow-start threshold's change at a retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threshold {
    /// It is reduced.
    Cut,
    /// It stays: the same segment has timed out before (RFC 5681 section 3.1), an ECN mark has just reduced it, or
    /// nothing is outstanding.
    Keep,
}

/// Events of a TCP connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TcpEvent {
    /// The connection is established; the window may open to `window` segments.
    Established {
        /// The initial window in segments.
        window: f64,
    },
    /// An acknowledgement of new data outside recovery.
    Acked {
        /// Segments newly acknowledged.
        segments: u32,
        /// FlightSize before this acknowledgement. Under `linux`: at least the window if the window limits the sender
        /// (`tcp_is_cwnd_limited`), else below the window.
        in_flight: u32,
        /// The round-trip time of the newest of them, unless it is ambiguous (Karn's algorithm).
        rtt: Option<Span>,
    },
    /// An acknowledgement of new data during recovery. Reported under `ns2-linux` and `linux` only.
    Repaired {
        /// Segments newly acknowledged.
        segments: u32,
        /// The round-trip time of the newest of them, unless it is ambiguous (Karn's algorithm).
        rtt: Option<Span>,
    },
    /// Another duplicate acknowledgement in Vegas' recovery: a segment has left the network.
    Duplicate,
    /// A loss detected without a timeout: at most once per window of data.
    Lost {
        /// Duplicates so far, by which the controller is to inflate the window; 0 where the machine inflates it.
        duplicates: u32,
        /// The lost segment was a retransmission.
        again: bool,
    },
    /// A partial acknowledgement (RFC 6582 section 3.2 step 3) covered more segments than the window was inflated by.
    Deflate {
        /// The number of segments by which to shrink the window itself.
        segments: u32,
    },
    /// Recovery has ended.
    Recovered {
        /// Upper bound of the window that prevents a burst; infinite where there is no bound.
        at_most: f64,
    },
    /// The last reduction was spurious: segments presumed lost arrived late (RFC 4015). Under `linux` only.
    Undo {
        /// The window before the reduction.
        window: f64,
        /// The slow-start threshold before it.
        threshold: f64,
    },
    /// The retransmission timer has expired.
    Timeout(Threshold),
    /// The receiver echoes an ECN mark (RFC 3168), at most once per window of data.
    EcnEcho,
    /// Sending resumes after a time with nothing in flight (`CA_EVENT_TX_START`). Under `linux` only.
    Resumed {
        /// Time since the last segment was sent.
        idle: Span,
        /// Whether the application had nothing to send; if false, the pacer held data back.
        app_limited: bool,
    },
    /// Nothing was sent for longer than the timeout (RFC 5681 section 4.1).
    Idle {
        /// The restart window in segments.
        window: f64,
    },
}

/// A controller for TCP's machine.
pub trait WindowController: Controller<Feedback = TcpEvent> {
    /// Congestion window in segments, fractions included; finite and at least 1.
    fn window(&self) -> f64;
    /// Slow-start threshold in segments; infinite at first.
    fn threshold(&self) -> f64;
    /// The controller's estimate of the round-trip time without queueing, in seconds; `None` if it has no such
    /// estimate, or no sample yet.
    fn base_rtt(&self) -> Option<f64> {
        None
    }
    /// What it needs from the machine besides events.
    fn needs(&self) -> Needs {
        Needs::NONE
    }
    /// An acknowledgement delivered data. Called after the events that it causes, and only if [`Needs::deliveries`] is
    /// set.
    fn on_delivery(&mut self, _sample: &RateSample, _path: &PathView) {}
    /// Fast path of [`WindowController::on_delivery`], for controllers that can tell cheaply that a sample changes only
    /// a few sums. `false`: nothing was done, call `on_delivery`. The result is the same as that of `on_delivery`.
    fn on_delivery_fast(&mut self, _sample: &RateSample, _now: Time) -> bool {
        false
    }
    /// A segment was detected as lost. Called after the event that it causes and before the sample of the same
    /// acknowledgement.
    fn on_lost(&mut self, _lost: &LostSegment, _path: &PathView) {}
    /// An acknowledgement of `acked` segments, of which `marked` were CE-marked. Called before the events that it
    /// causes, and only if [`Needs::ecn`] counts marks.
    fn on_marks(&mut self, _acked: u32, _marked: u32, _path: &PathView) {}
    /// The pacing rate in bytes of payload per second; infinite: only the window limits sending.
    fn pacing_rate(&self) -> f64 {
        f64::INFINITY
    }
    /// Bytes that may leave in one burst while pacing.
    fn send_quantum(&self) -> u32 {
        0
    }
    /// Whether the controller itself limits its rate now, so that delivery samples of segments sent now do not measure
    /// the path.
    fn limits_itself(&self) -> bool {
        false
    }
    /// Sets the stream of its random draws. Called once, before any event.
    fn draw_from(&mut self, _stream: Stream) {}
    /// The machine will pace segments although the controller requested no pacing. Called once, before any event.
    fn is_paced(&mut self) {}
}

impl<C: Controller> Controller for Box<C> {
    type Feedback = C::Feedback;
    #[inline]
    fn on_feedback(&mut self, feedback: &C::Feedback, path: &PathView) {
        (**self).on_feedback(feedback, path);
    }
    fn gauges(&self, to: &mut dyn crate::Gauges) {
        (**self).gauges(to);
    }
}

impl<C: WindowController> WindowController for Box<C> {
    #[inline]
    fn window(&self) -> f64 {
        (**self).window()
    }
    #[inline]
    fn threshold(&self) -> f64 {
        (**self).threshold()
    }
    fn base_rtt(&self) -> Option<f64> {
        (**self).base_rtt()
    }
    fn needs(&self) -> Needs {
        (**self).needs()
    }
    #[inline]
    fn on_delivery(&mut self, sample: &RateSample, path: &PathView) {
        (**self).on_delivery(sample, path);
    }
    #[inline(always)]
    fn on_delivery_fast(&mut self, sample: &RateSample, now: Time) -> bool {
        (**self).on_delivery_fast(sample, now)
    }
    fn on_lost(&mut self, lost: &LostSegment, path: &PathView) {
        (**self).on_lost(lost, path);
    }
    fn on_marks(&mut self, acked: u32, marked: u32, path: &PathView) {
        (**self).on_marks(acked, marked, path);
    }
    #[inline]
    fn pacing_rate(&self) -> f64 {
        (**self).pacing_rate()
    }
    #[inline]
    fn send_quantum(&self) -> u32 {
        (**self).send_quantum()
    }
    #[inline]
    fn limits_itself(&self) -> bool {
        (**self).limits_itself()
    }
    fn draw_from(&mut self, stream: Stream) {
        (**self).draw_from(stream);
    }
    fn is_paced(&mut self) {
        (**self).is_paced();
    }
}

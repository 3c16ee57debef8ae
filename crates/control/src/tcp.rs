//! What TCP's machine tells a controller, and what it wants to know of it.
//!
//! Segments are the unit throughout: a window of 10 is ten full segments. The machine inflates the window in fast
//! recovery itself (RFC 5681 section 3.2), so a controller's window never contains duplicates, except under Vegas'
//! own recovery, which reports each of them (see [`TcpEvent::Duplicate`]).

use crate::{Controller, LostSegment, Needs, PathView, RateSample};
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// What happens to the slow-start threshold at a retransmission timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threshold {
    /// It is cut.
    Cut,
    /// It stays: the same segment timed out before (RFC 5681 section 3.1), a mark has just cut it, or nothing is
    /// outstanding.
    Keep,
}

/// Feedback of a TCP connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TcpEvent {
    /// The connection stands; the window may open to `window` segments.
    Established {
        /// The initial window in segments.
        window: f64,
    },
    /// An acknowledgement of new data, outside of recovery.
    Acked {
        /// How many segments it acknowledges.
        segments: u32,
        /// FlightSize before it came. Under `linux`: not below the window if the window is what limits the sender
        /// (`tcp_is_cwnd_limited`), else below it.
        in_flight: u32,
        /// The round-trip time of the newest of them, unless it is ambiguous (Karn).
        rtt: Option<Span>,
    },
    /// An acknowledgement of new data during recovery, under `ns2-linux` and `linux`; the other machines keep it to
    /// themselves.
    Repaired {
        /// How many segments it acknowledges.
        segments: u32,
        /// The round-trip time of the newest of them, unless it is ambiguous (Karn).
        rtt: Option<Span>,
    },
    /// One more duplicate in Vegas' recovery: a segment has left the network.
    Duplicate,
    /// A loss, found without a timeout: at most once per window of data.
    Lost {
        /// Duplicates so far by which the window is to be inflated; 0 where the machine inflates it.
        duplicates: u32,
        /// The lost segment had been sent again before: this loss is not its first.
        again: bool,
    },
    /// A partial acknowledgement (RFC 6582 section 3.2 step 3) took more segments than the window was inflated by.
    Deflate {
        /// By how many segments the window itself is to shrink.
        segments: u32,
    },
    /// Recovery is over.
    Recovered {
        /// The window must not exceed this, or a burst would follow; infinite where there is no such limit.
        at_most: f64,
    },
    /// The last reduction was for nothing: what had seemed lost has arrived late (RFC 4015). Under `linux` only.
    Undo {
        /// The window before the reduction.
        window: f64,
        /// The slow-start threshold before it.
        threshold: f64,
    },
    /// The retransmission timer has expired.
    Timeout(Threshold),
    /// The receiver echoes a mark (RFC 3168), at most once per window of data.
    EcnEcho,
    /// Sending begins again after nothing was in flight for so long (`CA_EVENT_TX_START`). Under `linux` only.
    Resumed {
        /// Since the last segment left.
        idle: Span,
        /// The application had nothing to send, rather than that the pacer held it back.
        app_limited: bool,
    },
    /// Nothing has been sent for longer than the timeout (RFC 5681 section 4.1).
    Idle {
        /// The restart window in segments.
        window: f64,
    },
}

/// A controller that TCP's machine can ride on.
pub trait WindowController: Controller<Feedback = TcpEvent> {
    /// Congestion window in segments, fractions included; finite and at least 1.
    fn window(&self) -> f64;
    /// Slow-start threshold in segments; infinite at first.
    fn threshold(&self) -> f64;
    /// The round-trip time in seconds that it takes for that of a path without a queue; `None` without such a notion, and
    /// while it has no sample.
    fn base_rtt(&self) -> Option<f64> {
        None
    }
    /// What it needs of the machine beyond events.
    fn needs(&self) -> Needs {
        Needs::NONE
    }
    /// An acknowledgement has delivered something. After the events that it causes; only for who [`Needs`] deliveries.
    fn on_delivery(&mut self, _sample: &RateSample, _path: &PathView) {}
    /// The same for a controller that can tell by little that the sample changes nothing but a few sums. `false`: nothing has been
    /// done, and it is one for [`WindowController::on_delivery`], of which this is a shorter way and no other.
    fn on_delivery_fast(&mut self, _sample: &RateSample, _now: Time) -> bool {
        false
    }
    /// A segment was found lost. After the event that it causes, before the sample of the acknowledgement that told of it.
    fn on_lost(&mut self, _lost: &LostSegment, _path: &PathView) {}
    /// An acknowledgement of `acked` segments, of which `marked` had been marked; only for who [`Needs`] marks that are
    /// counted. Before the events that it causes.
    fn on_marks(&mut self, _acked: u32, _marked: u32, _path: &PathView) {}
    /// Bytes of payload a second at which segments are to leave; infinite: as the window lets them.
    fn pacing_rate(&self) -> f64 {
        f64::INFINITY
    }
    /// Bytes that may leave at once while it paces.
    fn send_quantum(&self) -> u32 {
        0
    }
    /// It holds its rate down itself: samples of what is sent now say nothing of the path's.
    fn holds_back(&self) -> bool {
        false
    }
    /// Where its randomness comes from, if it wants any: told once, before anything else.
    fn draw_from(&mut self, _stream: Stream) {}
    /// Its segments will leave one by one though it asks for no pacing: told once, before anything else.
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
    fn holds_back(&self) -> bool {
        (**self).holds_back()
    }
    fn draw_from(&mut self, stream: Stream) {
        (**self).draw_from(stream);
    }
    fn is_paced(&mut self) {
        (**self).is_paced();
    }
}

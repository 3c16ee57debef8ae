//! The interface between the machine of per-packet acknowledgements (crate `flow`, `acks`) and its controllers.
//!
//! The receiver acknowledges each packet. The machine measures round-trip times, detects losses from gaps in the
//! acknowledgements and from timeouts, and paces. The controller decides the packet rate. [`crate::rap`] and
//! [`crate::tfrcp`] use it.

use crate::{Controller, PathView};
use paceline_units::{Span, Time};

/// The longest time in seconds between packets while there is data to send: TFRC's t_mbi (RFC 5348 section 4.3). The
/// sources of the schemes on this machine give no minimum rate.
pub const MAX_GAP: f64 = 64.0;

/// The shortest time between packets in seconds: the clock's resolution, a nanosecond.
pub const MIN_GAP: f64 = 1e-9;

/// Events from the machine to its controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AckEvent {
    /// The sender is ready to send and has no round-trip sample yet.
    Started,
    /// An acknowledgement arrived.
    Acked {
        /// The round-trip time of the packet that it answers, already part of the path's `srtt`; `None` if that
        /// packet's fate was known before. A late answer to a packet declared lost has one if
        /// [`AckSettings::late_answers`] is set.
        rtt: Option<Span>,
        /// Packets that it is the first to acknowledge, without those declared lost before.
        packets: u32,
    },
    /// Packets were detected as lost.
    Lost {
        /// Their number.
        packets: u32,
        /// The highest of their sequence numbers.
        newest: u32,
    },
}

/// How round-trip times are smoothed, and how the timeout follows from them:
/// srtt += gain (sample - srtt), deviation += deviation_gain (|sample - srtt| - deviation),
/// timeout = max(min_rto, srtt_factor srtt + deviation_factor deviation).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimator {
    /// Weight of a sample in the mean, above 0, at most 1.
    pub gain: f64,
    /// Weight of a sample in the deviation.
    pub deviation_gain: f64,
    /// Initial deviation, as a share of the first sample.
    pub first_deviation: f64,
    /// Factor of the mean in the timeout.
    pub srtt_factor: f64,
    /// Factor of the deviation in the timeout.
    pub deviation_factor: f64,
    /// The shortest timeout.
    pub min_rto: Span,
    /// The timeout before the first sample.
    pub first_timeout: Span,
    /// Initial mean, with zero deviation; zero: the first sample.
    pub first_mean: Span,
}

/// How the next packet's time follows the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacing {
    /// A new rate reschedules the waiting packet.
    Follows,
    /// ns-2's timer: a gap that has begun is not changed, and if a loss is detected when a packet is due, none is sent.
    Timer,
}

/// What the controller requests of its machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckSettings {
    /// How round-trip times are smoothed.
    pub estimator: Estimator,
    /// How the next packet's time follows the rate.
    pub pacing: Pacing,
    /// Gaps between packets are multiplied by uniform draws from 1 - this to 1 + this.
    pub gap_jitter: f64,
    /// Whether an answer to a packet declared lost is a round-trip sample. It is unambiguous, because no packet is sent
    /// twice. Without this, a timeout that has fallen below the round-trip time stays there, and every packet is
    /// declared lost before its answer arrives.
    pub late_answers: bool,
}

/// A controller for the machine of per-packet acknowledgements.
pub trait AckController: Controller<Feedback = AckEvent> {
    /// The allowed rate in packets per second: finite, from one packet in [`MAX_GAP`] to one in [`MIN_GAP`].
    fn rate(&self) -> f64;
    /// When to call [`AckController::on_timer`], if at all; queried again after each call.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// A packet was sent.
    fn on_sent(&mut self) {}
    /// The time given by [`AckController::next_timer`] is reached.
    fn on_timer(&mut self, _path: &PathView) {}
    /// What the controller requests of its machine.
    fn settings(&self) -> AckSettings;
}

impl<C: AckController> AckController for Box<C> {
    fn rate(&self) -> f64 {
        (**self).rate()
    }
    #[inline]
    fn next_timer(&self) -> Option<Time> {
        (**self).next_timer()
    }
    #[inline]
    fn on_sent(&mut self) {
        (**self).on_sent();
    }
    fn on_timer(&mut self, path: &PathView) {
        (**self).on_timer(path);
    }
    fn settings(&self) -> AckSettings {
        (**self).settings()
    }
}

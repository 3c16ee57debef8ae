//! What the machine of per-packet acknowledgements (crate `flow`, `acks`) and a controller on it say to one another.
//!
//! The receiver answers each packet; the machine measures round-trip times, finds losses by holes in what was
//! acknowledged and by timeouts, and paces. The controller decides at which rate packets leave. [`crate::rap`] and
//! [`crate::tfrcp`] ride on it.

use crate::{Controller, PathView};
use paceline_units::{Span, Time};

/// The longest time between packets while there are any to send: 64 s, TFRC's t_mbi (RFC 5348 section 4.3). The
/// sources of the schemes on this machine name no least rate.
pub const LONGEST_GAP: f64 = 64.0;

/// The shortest, in seconds: a clock counts in nanoseconds.
pub const SHORTEST_GAP: f64 = 1e-9;

/// What the machine tells its controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AckEvent {
    /// The sender is ready to send, without a round-trip sample yet.
    Started,
    /// An acknowledgement has told of packets that came.
    Acked {
        /// The round-trip time of the packet that it answers, already part of the path's `srtt`; `None` if that packet's
        /// fate was known before. A packet given up for lost that is answered late has one
        /// ([`AckSettings::late_answers`]).
        rtt: Option<Span>,
        /// How many packets it was the first to tell of: of those given up for lost before, none.
        packets: u32,
    },
    /// Packets have been found lost.
    Lost {
        /// How many.
        packets: u32,
        /// The highest of their numbers.
        newest: u32,
    },
}

/// How round-trip times are smoothed, and the timeout made of them:
/// srtt += gain (sample - srtt), deviation += deviation_gain (|sample - srtt| - deviation),
/// timeout = max(least, srtt_factor srtt + deviation_factor deviation).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimator {
    /// Weight of a sample in the mean, above 0, at most 1.
    pub gain: f64,
    /// Weight of a sample in the deviation.
    pub deviation_gain: f64,
    /// What the deviation begins with, as a share of the first sample.
    pub first_deviation: f64,
    /// Weight of the mean in the timeout.
    pub srtt_factor: f64,
    /// Weight of the deviation in it.
    pub deviation_factor: f64,
    /// The shortest timeout.
    pub min_rto: Span,
    /// The timeout before the first sample.
    pub first_timeout: Span,
    /// What the mean begins with, without a deviation; zero: with the first sample.
    pub first_mean: Span,
}

/// How the time of the next packet follows the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacing {
    /// A new rate moves the packet that waits.
    Follows,
    /// ns-2's timer: a gap that has begun stays as it is, and a packet is not sent where one was due but a loss was found.
    Timer,
}

/// What the machine around the controller is to do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AckSettings {
    /// How round-trip times are smoothed.
    pub estimator: Estimator,
    /// How the time of the next packet follows the rate.
    pub pacing: Pacing,
    /// Gaps between packets are drawn uniformly from 1 - this to 1 + this.
    pub gap_jitter: f64,
    /// An answer to a packet that was given up for lost is a round-trip sample as others are: no packet is sent twice, so
    /// there is no doubt which one it answers. Without it, a timeout that has fallen below the round-trip time stays there,
    /// and every packet is lost for good before its answer comes.
    pub late_answers: bool,
}

/// A controller that the machine of per-packet acknowledgements can ride on.
pub trait AckController: Controller<Feedback = AckEvent> {
    /// The allowed rate in packets a second: finite, from a packet in [`LONGEST_GAP`] to one in [`SHORTEST_GAP`].
    fn rate(&self) -> f64;
    /// When [`AckController::on_timer`] is to be called, if ever; asked anew after each call.
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// A packet has left.
    fn on_sent(&mut self) {}
    /// The time that [`AckController::next_timer`] named has come.
    fn on_timer(&mut self, _path: &PathView) {}
    /// What the machine is to do.
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

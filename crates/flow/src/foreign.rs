//! Machines of other crates: ends of a flow that take and give whole datagrams, in a form of packets that is their own, in place
//! of [`Packet`](paceline_packet::Packet)s. A real implementation of a transport is one, driven in real time; nothing here makes
//! one. Who has made it hands datagrams over; what is around a machine sees of it what it sees of any other.

use crate::quic::Object;
use crate::{ReceiverStats, SenderStats};
use core::fmt::Debug;
use paceline_control::Gauges;
use paceline_packet::Flags;
use paceline_units::{Rate, Span, Time};

/// What both ends do with datagrams and the time. Times are the flow's own and never go back.
pub trait Datagrams: Debug + Send {
    /// A datagram of the other end has come, with these ECN bits.
    fn on_datagram(&mut self, now: Time, bytes: &[u8], ecn: Flags);

    /// Appends the next datagram that is to leave now, and gives its ECN bits; `None`: there is none, and nothing is appended.
    fn datagram(&mut self, now: Time, to: &mut Vec<u8>) -> Option<Flags>;

    /// The time that [`Datagrams::next_wake`] named has come; a call too early does nothing.
    fn on_timer(&mut self, now: Time);

    /// When [`Datagrams::on_timer`] should be called.
    fn next_wake(&self) -> Time;

    /// Tells the other end that this is the end; what it takes to say so is the next datagram.
    fn close(&mut self, now: Time);
}

/// The sending end, as [`Sender`](crate::Sender) has it.
pub trait ForeignSender: Datagrams {
    /// The flow begins.
    fn start(&mut self, now: Time);

    /// The application writes `bytes`: of a key frame, or not.
    fn supply(&mut self, bytes: u64, key: bool, now: Time);

    /// The application will never run dry.
    fn supply_endless(&mut self, now: Time);

    /// The application takes back what has not been sent yet.
    fn withdraw(&mut self);

    /// The application stops: what has not been sent yet never will be.
    fn stop(&mut self);

    /// Begins afresh, with nothing supplied; statistics go on counting.
    fn restart(&mut self, now: Time);

    /// What an encoder should aim at, in bits a second with all headers; `None` if that is not known.
    fn target(&self) -> Option<Rate>;

    /// How long what waits takes to leave at that rate.
    fn queueing(&self) -> Span;

    /// Whether all that was supplied has been acknowledged, or given up.
    fn acked_all(&self) -> bool;

    /// Writes that wait, each of which is remembered by itself.
    fn remembered_writes(&self) -> usize;

    /// Counts up to now.
    fn stats(&self) -> &SenderStats;

    /// The same, to begin a measurement in.
    fn stats_mut(&mut self) -> &mut SenderStats;

    /// Brings the integrals in [`ForeignSender::stats`] up to `now`.
    fn account(&mut self, now: Time);

    /// The congestion window in packets.
    fn congestion_window(&self) -> f64;

    /// Tells `to` what a plot should show.
    fn gauges(&self, to: &mut dyn Gauges);
}

/// The receiving end, as [`Receiver`](crate::Receiver) has it.
pub trait ForeignReceiver: Datagrams {
    /// Frames that have come to their end since the last call, in that order.
    fn take_objects(&mut self) -> Vec<Object>;

    /// Counts up to now.
    fn stats(&self) -> &ReceiverStats;
}

//! Machines that other crates implement. They exchange whole datagrams in their own packet format, in place of
//! [`Packet`](paceline_packet::Packet)s: for example, a real implementation of a transport in real time. This crate
//! creates none. Their creator carries the datagrams; all other code sees the same interface as for any machine.

use crate::quic::Object;
use crate::{ReceiverStats, SenderStats};
use core::fmt::Debug;
use paceline_control::Gauges;
use paceline_packet::Flags;
use paceline_units::{Rate, Span, Time};

/// Datagrams and timers of either end. Times are the flow's own and never decrease.
pub trait Datagrams: Debug + Send {
    /// Processes a datagram of the other end that arrived with these ECN bits.
    fn on_datagram(&mut self, now: Time, bytes: &[u8], ecn: Flags);

    /// Appends the next datagram to send now to `to`, and returns its ECN bits; `None`: there is none, and nothing is
    /// appended.
    fn datagram(&mut self, now: Time, to: &mut Vec<u8>) -> Option<Flags>;

    /// The time that [`Datagrams::next_wake`] returned has arrived; a call too early does nothing.
    fn on_timer(&mut self, now: Time);

    /// When to call [`Datagrams::on_timer`].
    fn next_wake(&self) -> Time;

    /// Closes the connection; the next datagram tells the other end.
    fn close(&mut self, now: Time);
}

/// The sending end; see [`Sender`](crate::Sender).
pub trait ForeignSender: Datagrams {
    /// Starts the flow.
    fn start(&mut self, now: Time);

    /// The application writes `bytes`; `key`: they are a key frame.
    fn supply(&mut self, bytes: u64, key: bool, now: Time);

    /// The application always has data.
    fn supply_endless(&mut self, now: Time);

    /// The application withdraws unsent data.
    fn withdraw(&mut self);

    /// The application stops: unsent data is discarded.
    fn stop(&mut self);

    /// Resets the sender, with nothing supplied; statistics continue to count.
    fn restart(&mut self, now: Time);

    /// The target rate for an encoder, in bits a second including all headers; `None` if unknown.
    fn target(&self) -> Option<Rate>;

    /// How long the waiting data takes to leave at that rate.
    fn queueing(&self) -> Span;

    /// Whether everything supplied has been acknowledged or given up.
    fn acked_all(&self) -> bool;

    /// The number of entries kept for single waiting writes.
    fn remembered_writes(&self) -> usize;

    /// Counters up to now.
    fn stats(&self) -> &SenderStats;

    /// Mutable access to the counters, to begin a measurement.
    fn stats_mut(&mut self) -> &mut SenderStats;

    /// Advances the integrals in [`ForeignSender::stats`] to `now`.
    fn account(&mut self, now: Time);

    /// The congestion window in packets.
    fn congestion_window(&self) -> f64;

    /// Reports to `to` the values to plot.
    fn gauges(&self, to: &mut dyn Gauges);
}

/// The receiving end; see [`Receiver`](crate::Receiver).
pub trait ForeignReceiver: Datagrams {
    /// Frames completed since the last call, in order of completion.
    fn take_objects(&mut self) -> Vec<Object>;

    /// Counters up to now.
    fn stats(&self) -> &ReceiverStats;
}

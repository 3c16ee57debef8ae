//! Captures: packets as they leave a host and as they reach one, in order of time.
//!
//! A tap is one more folded link, without delay, at both ends of each way. Without a capture there are no taps, and a run
//! costs what it always did; with one, it gives the same results.

use paceline_packet::{Extra, Extras, Packet};
use paceline_units::Time;
use std::ops::ControlFlow;

/// A packet that leaves or reaches a host.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The node of the host.
    pub node: usize,
    /// The packet; its time is that of the capture.
    pub packet: Packet,
    /// Its side record, if it has one.
    pub extra: Option<Extra>,
}

/// Takes packets as they leave and reach hosts.
pub trait Capture {
    /// The next packet: never earlier than the one before. [`ControlFlow::Break`] ends the run.
    fn packet(&mut self, captured: &Captured) -> ControlFlow<()>;
}

/// The tap at one host.
#[derive(Debug)]
pub struct Tap {
    node: usize,
    seen: Vec<Captured>,
}

impl Tap {
    /// A tap at the host of this node.
    #[must_use]
    pub const fn new(node: usize) -> Tap {
        Tap { node, seen: Vec::new() }
    }

    /// A packet passes.
    #[cold]
    #[inline(never)]
    pub fn pass(&mut self, packet: &Packet, extras: &Extras) {
        self.seen.push(Captured { node: self.node, packet: *packet, extra: extras.get(packet.extra).cloned() });
    }
}

/// What the taps have seen, until it is certain that nothing earlier follows.
pub(crate) struct Pending<'a> {
    capture: &'a mut dyn Capture,
    waiting: Vec<Captured>,
}

impl<'a> Pending<'a> {
    pub(crate) fn new(capture: &'a mut dyn Capture) -> Pending<'a> {
        Pending { capture, waiting: Vec::new() }
    }

    /// Everything before `now` has happened: what the taps have seen before it is handed over. Links are evaluated when a
    /// packet enters them, so that a tap behind them sees it ahead of the clock.
    pub(crate) fn hand_over<'t>(&mut self, taps: impl Iterator<Item = &'t mut Tap>, now: Time) -> ControlFlow<()> {
        taps.for_each(|tap| self.waiting.append(&mut tap.seen));
        // one host's packets of one instant keep their order
        self.waiting.sort_by_key(|captured| (captured.packet.time, captured.node));
        let due = self.waiting.partition_point(|captured| captured.packet.time < now);
        self.waiting.drain(..due).try_for_each(|captured| self.capture.packet(&captured))
    }
}

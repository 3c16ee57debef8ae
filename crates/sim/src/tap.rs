//! Captures: packets as they leave and reach hosts, in order of time, and events at the ends of QUIC flows.
//!
//! A tap is one more folded link, without delay, at both ends of each path. Without a capture there are no taps and no
//! cost; with one, the results are the same.

use crate::quic_events::{QuicEvent, QuicEventKind};
use paceline_packet::{Extra, Extras, Flags, FlowId, Packet};
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

/// Receives packets as they leave and reach hosts.
pub trait Capture {
    /// Receives the next packet, never earlier than the one before. [`ControlFlow::Break`] ends the run.
    fn packet(&mut self, captured: &Captured) -> ControlFlow<()>;

    /// Whether it wants events at the ends of QUIC flows.
    fn wants_notes(&self) -> bool {
        false
    }

    /// Receives an event of an endpoint, in order of time with packets. At the same time and host, arriving packets
    /// come first, then losses, then departing packets, then changes of the recovery state.
    fn on_quic_event(&mut self, _noted: &QuicEvent) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
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

    /// Captures a passing packet.
    #[cold]
    #[inline(never)]
    pub fn pass(&mut self, packet: &Packet, extras: &Extras) {
        self.seen.push(Captured { node: self.node, packet: *packet, extra: extras.get(packet.extra).cloned() });
    }
}

/// Captured packets and events, held until nothing earlier can follow.
pub(crate) struct Pending<'a> {
    capture: &'a mut dyn Capture,
    waiting: Vec<Captured>,
    quic_events: Vec<QuicEvent>,
    /// The node of each flow's sender; empty if no events are wanted.
    sources: Vec<usize>,
}

/// Sort key: time, host, and order at the same time and host.
type Place = (Time, usize, u8);

impl<'a> Pending<'a> {
    /// For a run with flows whose senders are at these nodes.
    pub(crate) fn new(capture: &'a mut dyn Capture, sources: impl Iterator<Item = usize>) -> Pending<'a> {
        let sources = if capture.wants_notes() { sources.collect() } else { Vec::new() };
        Pending { capture, waiting: Vec::new(), quic_events: Vec::new(), sources }
    }

    /// Hands over what happened before `now`. Links are evaluated when a packet enters them, so a tap behind a link
    /// sees the packet ahead of the clock.
    pub(crate) fn hand_over<'t>(
        &mut self,
        taps: impl Iterator<Item = &'t mut Tap>,
        notes: Vec<QuicEvent>,
        now: Time,
    ) -> ControlFlow<()> {
        taps.for_each(|tap| self.waiting.append(&mut tap.seen));
        self.quic_events.extend(notes);
        // A stable sort: one host's packets at the same time keep their order.
        let sources = &self.sources;
        self.waiting.sort_by_key(|captured| place_of(captured, sources));
        self.quic_events.sort_by_key(place);
        let due = self.waiting.partition_point(|captured| captured.packet.time < now);
        let known = self.quic_events.partition_point(|noted| noted.time < now);
        let mut notes = self.quic_events.drain(..known).peekable();
        for captured in self.waiting.drain(..due) {
            while let Some(note) = notes.next_if(|note| place(note) < place_of(&captured, sources)) {
                self.capture.on_quic_event(&note)?;
            }
            self.capture.packet(&captured)?;
        }
        notes.try_for_each(|note| self.capture.on_quic_event(&note))
    }
}

fn place_of(captured: &Captured, sources: &[usize]) -> Place {
    let Packet { flow: FlowId(flow), flags, time, .. } = captured.packet;
    let source = sources.get(flow as usize);
    let leaves = source.is_some_and(|source| (*source == captured.node) != flags.has(Flags::ACK));
    (time, captured.node, if leaves { 2 } else { 0 })
}

fn place(noted: &QuicEvent) -> Place {
    (noted.time, noted.node, if matches!(noted.what, QuicEventKind::Lost(_)) { 1 } else { 3 })
}

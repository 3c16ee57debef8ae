//! The flows of one end and their coupling: everything that a driver does for them except for the clock, reading
//! sockets, and fair shares. So they also run in virtual time, over ports that are not sockets (`worlds`).

use super::bundles::Bundles;
use super::flow::Flow;
use super::groups::Groups;
use super::port::Port;
use crate::session::{EcnBits, Input, Outbox, SILENCE, Session};
use paceline_units::{Span, Time};
use std::net::SocketAddr;

/// The flows of one end.
pub(super) struct Flows<P> {
    pub(super) all: Vec<Flow>,
    pub(super) ports: Vec<P>,
    groups: Groups,
    bundles: Bundles,
    out: Outbox,
}

impl<P: Port> Flows<P> {
    /// No flows yet, with these ports.
    pub(super) fn new(ports: Vec<P>) -> Flows<P> {
        Flows { all: Vec::new(), ports, groups: Groups::default(), bundles: Bundles::default(), out: Outbox::default() }
    }

    /// Adds a flow, and starts it unless it waits for its peer.
    pub(super) fn enters(&mut self, mut flow: Flow, now: Time) {
        flow.shows = now + SILENCE;
        self.groups.enters(&flow);
        self.bundles.enters(&flow);
        // a server's sender waits for its peer's first datagram
        if flow.new.peer.is_some() || matches!(flow.session, Session::Receiver(_)) {
            flow.input(now, Input::Start, &mut self.out, &mut self.ports);
        }
        self.all.push(flow);
    }

    /// Index of the flow that a datagram received on a port belongs to.
    pub(super) fn flow_of(&self, port: usize, from: SocketAddr, bytes: &[u8]) -> Option<usize> {
        self.all.iter().position(|flow| flow.is_for(port, from, bytes))
    }

    /// Passes an input to a flow that is neither a datagram nor a timer.
    pub(super) fn input(&mut self, at: usize, now: Time, input: Input<'_>) {
        self.all[at].input(now, input, &mut self.out, &mut self.ports);
    }

    /// Handles a datagram of a flow; at a server's sender it may be the first one, which starts the flow.
    pub(super) fn datagram(&mut self, at: usize, time: Time, from: SocketAddr, ecn: EcnBits, bytes: &[u8]) {
        let flow = &mut self.all[at];
        let shown = flow.new.peer.is_none();
        flow.new.peer.get_or_insert(from);
        let input = match flow.session {
            Session::Sender(_) if shown => Input::Start,
            _ => Input::Datagram(bytes, ecn),
        };
        flow.datagram(time, input, &mut self.out, &mut self.ports);
        self.on_event(at, time);
    }

    /// Does what is due for a flow; `lag` returns the delay between a given instant and the send.
    pub(super) fn visit(&mut self, at: usize, now: Time, lag: impl FnOnce(Time) -> Span) {
        self.all[at].visit(now, lag, &mut self.out, &mut self.ports);
        self.on_event(at, now);
    }

    /// Handles an event of a flow that coupled flows may need to know.
    fn on_event(&mut self, at: usize, now: Time) {
        self.groups.on_event(at, now, &mut self.all, &mut self.out, &mut self.ports);
        self.bundles.on_event(at, now, &mut self.all, &mut self.out, &mut self.ports);
    }

    /// Removes a flow.
    pub(super) fn leaves(&mut self, at: usize) -> Flow {
        let flow = self.all.remove(at);
        self.groups.leaves(&flow, &self.all);
        self.bundles.leaves(&flow, &self.all);
        flow
    }
}

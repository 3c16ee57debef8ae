//! The flows of one end and what binds them: all that a driver does for them but to tell the time, to read sockets, and to say
//! whose turn it is. So they run in virtual time as well, over ports that are none of the system's (`worlds`).

use super::bundles::Bundles;
use super::flow::Flow;
use super::groups::Groups;
use super::udp::UdpPort;
use crate::session::{EcnBits, Input, Outbox, SILENCE, Session};
use paceline_units::{Span, Time};
use std::io;
use std::net::SocketAddr;

/// Where datagrams leave.
pub(super) trait Port {
    /// Sends them to `to`, which is the peer of a connected port.
    ///
    /// # Errors
    /// `ConnectionRefused`: nobody listens there.
    fn send(&mut self, out: &Outbox, to: SocketAddr) -> io::Result<()>;

    /// Datagrams for which there was no room, or that were refused.
    fn refused(&self) -> u64;
}

impl Port for UdpPort {
    fn send(&mut self, out: &Outbox, to: SocketAddr) -> io::Result<()> {
        UdpPort::send(self, out, to)
    }

    fn refused(&self) -> u64 {
        UdpPort::refused(self)
    }
}

/// The flows of one end.
pub(super) struct Flows<P> {
    pub(super) all: Vec<Flow>,
    pub(super) ports: Vec<P>,
    groups: Groups,
    bundles: Bundles,
    out: Outbox,
}

impl<P: Port> Flows<P> {
    /// None yet, with these ports.
    pub(super) fn new(ports: Vec<P>) -> Flows<P> {
        Flows { all: Vec::new(), ports, groups: Groups::default(), bundles: Bundles::default(), out: Outbox::default() }
    }

    /// A flow comes, and starts unless it waits for its peer.
    pub(super) fn enters(&mut self, mut flow: Flow, now: Time) {
        flow.shows = now + SILENCE;
        self.groups.enters(&flow);
        self.bundles.enters(&flow);
        // a server's sender waits for its peer to show itself
        if flow.new.peer.is_some() || matches!(flow.session, Session::Receiver(_)) {
            flow.input(now, Input::Start, &mut self.out, &mut self.ports);
        }
        self.all.push(flow);
    }

    /// Whose a datagram is that has come to a port.
    pub(super) fn whose(&self, port: usize, from: SocketAddr, bytes: &[u8]) -> Option<usize> {
        self.all.iter().position(|flow| flow.is_for(port, from, bytes))
    }

    /// Tells a flow something that is no datagram and no matter of time.
    pub(super) fn input(&mut self, at: usize, now: Time, input: Input<'_>) {
        self.all[at].input(now, input, &mut self.out, &mut self.ports);
    }

    /// A datagram of a flow has come, of a server's sender perhaps the one with which its peer shows itself.
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

    /// Does what is due of a flow; `lag` says how long after an instant its datagrams have left.
    pub(super) fn visit(&mut self, at: usize, now: Time, lag: impl FnOnce(Time) -> Span) {
        self.all[at].visit(now, lag, &mut self.out, &mut self.ports);
        self.on_event(at, now);
    }

    /// Something has happened to a flow, which those that it is bound to may have to know.
    fn on_event(&mut self, at: usize, now: Time) {
        self.groups.on_event(at, now, &mut self.all, &mut self.out, &mut self.ports);
        self.bundles.on_event(at, now, &mut self.all, &mut self.out, &mut self.ports);
    }

    /// A flow goes.
    pub(super) fn leaves(&mut self, at: usize) -> Flow {
        let flow = self.all.remove(at);
        self.groups.leaves(&flow, &self.all);
        self.bundles.leaves(&flow, &self.all);
        flow
    }
}

//! A quinn-proto connection driven with a flow's time and datagrams.

#![expect(clippy::disallowed_types, reason = "quinn counts time by Instants: the one of its beginning is taken here")]

use super::settings::{self, Controllers};
use super::{CloseReason, Keys, Shared};
use bytes::BytesMut;
use paceline_flow::quic::QuicConfig;
use paceline_packet::Flags;
use paceline_quinn::{Gate, SendTime};
use paceline_units::{Span, Time};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionEvent, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointEvent,
    Event, ServerConfig, VarInt,
};
use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The other end's address as quinn sees it: the driver knows the real one, and passes only that peer's datagrams.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);
/// The server name in TLS: nobody checks it.
const NAME: &str = "paceline";

/// One end's connection, including the time before it is open.
pub(super) struct Link {
    /// quinn's time at zero of the flow's time.
    base: Instant,
    /// The last time passed to quinn, or a nanosecond after a datagram sent then: each is sent at a distinct time,
    /// which identifies it to the congestion control and to a log.
    latest: Instant,
    endpoint: Endpoint,
    /// At the end that opens the connection.
    client: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    /// A new connection that the other end wants to open beside the current one; its handshake has yet to authenticate
    /// the peer.
    next: Option<(ConnectionHandle, Connection)>,
    /// Outgoing datagrams that belong to no connection.
    answers: VecDeque<Vec<u8>>,
    /// Whether packets are ECN-capable.
    ecn: bool,
    wake: Time,
    connected: bool,
    /// Number of accepted connections.
    answered: u32,
    shared: Arc<Shared>,
}

impl Debug for Link {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("connected", &self.connected).field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Link {
    /// Creates the opening end of a connection, or the accepting one, with its congestion control.
    pub(super) fn new(
        opens: bool,
        controllers: Controllers,
        config: &QuicConfig,
        keys: &Keys,
        shared: Arc<Shared>,
    ) -> Link {
        let transport = Arc::new(settings::transport(config, controllers));
        let client = || {
            let tls = QuicClientConfig::try_from(keys.client().ok()?).ok()?;
            let mut client = ClientConfig::new(Arc::new(tls));
            client.transport_config(Arc::clone(&transport));
            Some(client)
        };
        let server = || {
            let tls = QuicServerConfig::try_from(keys.server().ok()?).ok()?;
            let mut server = ServerConfig::with_crypto(Arc::new(tls));
            server.transport_config(Arc::clone(&transport)).migration(false).max_incoming(1);
            Some(Arc::new(server))
        };
        let (client, server) = if opens { (client(), None) } else { (None, server()) };
        #[expect(
            clippy::disallowed_methods,
            reason = "quinn's times have no other beginning; what it is does not matter"
        )]
        let base = Instant::now();
        Link {
            base,
            latest: base,
            endpoint: Endpoint::new(Arc::new(settings::endpoint()), server, false, None),
            client,
            connection: None,
            next: None,
            answers: VecDeque::new(),
            ecn: config.ecn,
            wake: Time::NEVER,
            connected: false,
            answered: 0,
            shared,
        }
    }

    fn instant(&mut self, now: Time) -> Instant {
        self.latest = self.latest.max(self.base + Duration::from_nanos(now.since(Time::ZERO).0));
        self.latest
    }

    fn time(&self, at: Instant) -> Time {
        let after = at.saturating_duration_since(self.base).as_nanos();
        Time::ZERO + Span(u64::try_from(after).unwrap_or(u64::MAX))
    }

    /// Queries the gate, at a sender whose controllers are behind it: when a packet may be sent with `in_flight` bytes
    /// in flight; [`Time::NEVER`]: the window is full.
    pub(super) fn may_leave(&mut self, gate: &Gate, now: Time, in_flight: u64) -> Time {
        match gate.poll(self.instant(now), in_flight) {
            SendTime::Now => now,
            SendTime::At(then) => self.time(then),
            SendTime::Later => Time::NEVER,
        }
    }

    /// Opens a connection, which replaces the current one.
    pub(super) fn connect(&mut self, now: Time) {
        let now = self.instant(now);
        self.connected = false;
        let opened = self.client.clone().and_then(|client| self.endpoint.connect(now, client, PEER, NAME).ok());
        if opened.is_none() {
            let _ = self.shared.lost.set(CloseReason::Failed);
        }
        let before = std::mem::replace(&mut self.connection, opened);
        self.forget(before);
        self.settle();
    }

    /// Handles a received datagram.
    pub(super) fn on_datagram(&mut self, now: Time, bytes: &[u8], ecn: Flags) {
        let now = self.instant(now);
        let mut answer = Vec::new();
        let event = self.endpoint.handle(now, PEER, None, codepoint(ecn), BytesMut::from(bytes), &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => self.on_event(now, handle, event),
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut answer, None) {
                    // anyone's first packet looks like this: a live connection continues until the new peer has proved
                    // its key
                    Ok(connection) if self.connection().is_some_and(|live| !live.is_closed()) => {
                        let before = self.next.replace(connection);
                        self.forget(before);
                        self.on_next(now);
                    }
                    Ok(connection) => self.take(connection),
                    Err(refused) => {
                        self.answers.extend(refused.response.map(|response| answer[..response.size].to_vec()))
                    }
                }
            }
            Some(DatagramEvent::Response(response)) => self.answers.push_back(answer[..response.size].to_vec()),
            None => {}
        }
        self.settle();
    }

    fn on_event(&mut self, now: Instant, handle: ConnectionHandle, event: ConnectionEvent) {
        if let Some((own, connection)) = &mut self.connection
            && *own == handle
        {
            connection.handle_event(event);
        } else if let Some((own, next)) = &mut self.next
            && *own == handle
        {
            next.handle_event(event);
            self.on_next(now);
        }
    }

    /// Makes this the other end's connection from now on.
    fn take(&mut self, connection: (ConnectionHandle, Connection)) {
        let before = self.connection.replace(connection);
        self.forget(before);
        self.connected = false;
        self.answered += 1;
    }

    /// Discards a connection. One that is drained has notified the endpoint itself.
    fn forget(&mut self, connection: Option<(ConnectionHandle, Connection)>) {
        if let Some((handle, _)) = connection.filter(|(_, connection)| !connection.is_drained()) {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }

    /// Handles an event of the candidate for the next connection: it replaces the current one once its handshake is
    /// done, which includes the check of the other end's key.
    fn on_next(&mut self, now: Instant) {
        let Some((handle, mut next)) = self.next.take() else { return };
        settle(&mut self.endpoint, handle, &mut next);
        if !next.is_handshaking() && !next.is_closed() {
            return self.take((handle, next));
        }
        let mut packet = Vec::new();
        while let Some(transmit) = next.poll_transmit(now, 1, &mut packet) {
            self.answers.push_back(packet[..transmit.size].to_vec());
            packet.clear();
        }
        settle(&mut self.endpoint, handle, &mut next);
        if next.is_closed() { self.forget(Some((handle, next))) } else { self.next = Some((handle, next)) }
    }

    /// Number of connections accepted so far.
    pub(super) fn answered(&self) -> u32 {
        self.answered
    }

    /// Whether the next outgoing datagram belongs to no connection.
    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// The next datagram to be sent now, and whether it is ack-eliciting.
    pub(super) fn datagram(&mut self, now: Time, to: &mut Vec<u8>) -> Option<(Flags, bool)> {
        if let Some(answer) = self.answers.pop_front() {
            to.extend_from_slice(&answer);
            return Some((Flags::NONE, false));
        }
        let now = self.instant(now);
        let (_, connection) = self.connection.as_mut()?;
        let (mut packet, before) = (Vec::new(), eliciting(connection));
        let transmit = connection.poll_transmit(now, 1, &mut packet);
        let elicits = eliciting(connection) != before;
        self.settle();
        let transmit = transmit?;
        self.latest += Duration::from_nanos(1);
        to.extend_from_slice(&packet[..transmit.size]);
        Some((if self.ecn { flags(transmit.ecn) } else { Flags::NONE }, elicits))
    }

    /// Call this at the time given by [`Link::next_wake`].
    pub(super) fn on_timer(&mut self, now: Time) {
        if self.wake > now {
            return;
        }
        let now = self.instant(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(now);
        }
        if let Some((_, next)) = &mut self.next {
            next.handle_timeout(now);
            self.on_next(now);
        }
        self.settle();
    }

    /// When [`Link::on_timer`] should be called.
    pub(super) fn next_wake(&self) -> Time {
        self.wake
    }

    /// Exchanges events between the connection and its endpoint, and sets the next timer.
    fn settle(&mut self) {
        if let Some((handle, connection)) = &mut self.connection {
            settle(&mut self.endpoint, *handle, connection);
        }
        let both = [&mut self.connection, &mut self.next].into_iter().flatten();
        let timeout = both.filter_map(|(_, connection)| connection.poll_timeout()).min();
        self.wake = timeout.map_or(Time::NEVER, |timeout| self.time(timeout));
    }

    /// quinn's time of the last sent datagram.
    pub(super) fn last_left(&self) -> Instant {
        self.latest - Duration::from_nanos(1)
    }

    /// The next event for the owner of the streams.
    pub(super) fn event(&mut self) -> Option<Event> {
        let event = self.connection.as_mut()?.1.poll()?;
        match &event {
            Event::Connected => self.connected = true,
            Event::ConnectionLost { reason } => {
                if let Some(lost) = CloseReason::of(reason) {
                    let _ = self.shared.lost.set(lost);
                }
            }
            _ => {}
        }
        Some(event)
    }

    /// The connection, if its handshake is complete and it is not closed.
    pub(super) fn open(&mut self) -> Option<&mut Connection> {
        let connected = self.connected;
        self.connection.as_mut().map(|(_, connection)| connection).filter(|open| connected && !open.is_closed())
    }

    /// The connection in any state.
    pub(super) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref().map(|(_, connection)| connection)
    }

    /// Whether there is a connection that has been closed.
    pub(super) fn is_closed(&self) -> bool {
        self.connection().is_some_and(Connection::is_closed)
    }

    /// Closes the connection.
    pub(super) fn close(&mut self, now: Time) {
        let now = self.instant(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.close(now, VarInt::from_u32(0), bytes::Bytes::new());
        }
        self.settle();
    }
}

/// Exchanges events between a connection and its endpoint.
fn settle(endpoint: &mut Endpoint, handle: ConnectionHandle, connection: &mut Connection) {
    while let Some(event) = connection.poll_endpoint_events() {
        if let Some(event) = endpoint.handle_event(handle, event) {
            connection.handle_event(event);
        }
    }
}

/// Number of ack-eliciting frames sent (RFC 9002 section 2), of the kinds that Paceline's ends send. Handshake frames
/// are excluded, since they leave the bytes in flight without notice when the handshake ends.
fn eliciting(connection: &Connection) -> u64 {
    let sent = connection.stats().frame_tx;
    let of_streams = sent.stream + sent.reset_stream + sent.stop_sending + sent.datagram;
    let of_limits = sent.max_data + sent.max_stream_data + sent.max_streams_uni + sent.streams_blocked_uni;
    let blocked = sent.data_blocked + sent.stream_data_blocked;
    let of_ids = sent.new_connection_id + sent.retire_connection_id;
    let others = sent.ping + sent.ack_frequency + sent.immediate_ack + u64::from(sent.handshake_done);
    of_streams + of_limits + blocked + of_ids + others
}

fn codepoint(flags: Flags) -> Option<EcnCodepoint> {
    match flags {
        flags if flags.has(Flags::CE) => Some(EcnCodepoint::Ce),
        flags if flags.has(Flags::L4S) => Some(EcnCodepoint::Ect1),
        flags if flags.has(Flags::ECT) => Some(EcnCodepoint::Ect0),
        _ => None,
    }
}

fn flags(codepoint: Option<EcnCodepoint>) -> Flags {
    match codepoint {
        Some(EcnCodepoint::Ect0) => Flags::ECT,
        Some(EcnCodepoint::Ect1) => Flags::ECT.with(Flags::L4S),
        // quinn sends no marked packets
        Some(EcnCodepoint::Ce) | None => Flags::NONE,
    }
}

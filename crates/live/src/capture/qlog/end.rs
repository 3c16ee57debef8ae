//! The logs at one end of a flow: a file for each of its connections.

use super::connection::Connection;
use super::packets::Content;
use paceline_control::{TcpController, WindowController};
use paceline_flow::Transport;
use paceline_flow::quic::{QuicConfig, Recovery, Stage};
use paceline_packet::Flags;
use paceline_qlog::write::{
    Event, Initiator, LossTrigger, Packet, PacketKind, PacketName, Parameters, RecoveryParameters,
};
use paceline_sim::model::Model;
use paceline_sim::{Captured, QuicEvent, QuicEventKind};
use paceline_units::{Span, Time};
use std::io;
use std::path::Path;

/// Properties common to both ends of a flow.
pub(super) struct Flow {
    pub(super) number: usize,
    /// Prefix of its files' names.
    pub(super) name: String,
    pub(super) title: String,
    /// Whether its receiver opens connections, in order to send requests.
    pub(super) receiver_requests: bool,
    /// The hosts of the opening and of the accepting end.
    pub(super) hosts: [String; 2],
    scheme: String,
    config: QuicConfig,
    /// Whether ECN-capable packets are sent with ECT(1).
    l4s: bool,
}

impl Flow {
    /// The flow with this number; `None` if it does not use QUIC.
    pub(super) fn of(model: &Model, number: usize) -> Option<Flow> {
        let flow = &model.flows[number];
        let Transport::Quic { config, controller } = &flow.transport else { return None };
        let receiver_requests = config.request.is_some();
        let ends = if receiver_requests { [flow.sink, flow.source] } else { [flow.source, flow.sink] };
        let alone = model.flows.iter().filter(|other| other.name == flow.name).count() == 1;
        Some(Flow {
            number,
            name: if alone { flow.name.clone() } else { format!("{}.{}", flow.name, flow.instance) },
            title: format!("{}, seed {}: {}, {}", model.name, model.seed, flow.label(), flow.scheme),
            receiver_requests,
            hosts: ends.map(|node| model.nodes[node].clone()),
            scheme: flow.scheme.clone(),
            config: config.clone(),
            l4s: TcpController::needs(controller).l4s,
        })
    }

    /// The transport parameters of an end; both declare the same.
    pub(super) fn parameters(&self, initiator: Initiator) -> Parameters<'static> {
        let config = &self.config;
        let pushed = !self.receiver_requests;
        let milliseconds = |span: Span| span.0 / 1_000_000;
        Parameters {
            initiator: Some(initiator),
            max_idle_timeout_ms: Some(config.idle_timeout.map_or(0, milliseconds)),
            max_udp_payload_size: Some(config.datagram.into()),
            ack_delay_exponent: Some(3),
            max_ack_delay_ms: Some(milliseconds(config.max_ack_delay)),
            initial_max_data: Some(config.receive_window),
            initial_max_stream_data_uni: pushed.then_some(config.stream_window),
            initial_max_streams_uni: pushed.then_some(config.max_streams.into()),
            initial_max_stream_data_bidi_local: self.receiver_requests.then_some(config.stream_window),
            initial_max_stream_data_bidi_remote: self.receiver_requests.then_some(config.stream_window),
            initial_max_streams_bidi: self.receiver_requests.then_some(config.max_streams.into()),
            ..Parameters::default()
        }
    }

    /// RFC 9002's constants, and the flow's settings of them.
    pub(super) fn recovery(&self) -> RecoveryParameters<'_> {
        RecoveryParameters {
            congestion_control: Some(&self.scheme),
            reordering_threshold: Some(3),
            time_threshold: Some(1.125),
            timer_granularity_ms: 1,
            initial_rtt: Some(Span::from_millis(333)),
            max_datagram_size: Some(self.config.datagram.into()),
            initial_congestion_window: Some(self.config.initial_window()),
            minimum_congestion_window: Some(2 * u64::from(self.config.datagram)),
            loss_reduction_factor: None,
            persistent_congestion_threshold: Some(3),
        }
    }
}

/// One end.
pub(super) struct End {
    /// Whether it opens connections: the flow's sender, or its receiver if that sends requests.
    opens: bool,
    now: Option<Connection>,
    /// Number of connections so far.
    count: u32,
}

impl End {
    pub(super) fn new(opens: bool) -> End {
        End { opens, now: None, count: 0 }
    }

    /// The log of the connection whose opener's first packet has the number `base`; begins it if it is later than the
    /// current one.
    fn connection(&mut self, now: Time, base: u32, flow: &Flow, folder: &Path) -> io::Result<&mut Connection> {
        if self.now.as_ref().is_none_or(|connection| base > connection.base) {
            self.finish()?;
            self.count += 1;
            self.now = Some(Connection::begin(now, self.opens, (base, self.count), flow, folder)?);
        }
        self.now.as_mut().ok_or_else(|| io::Error::other("the log was not begun"))
    }

    /// Logs a packet that leaves or reaches this end.
    pub(super) fn packet(&mut self, captured: &Captured, flow: &Flow, folder: &Path) -> io::Result<()> {
        let packet = &captured.packet;
        let content = Content::of(captured.extra.as_ref());
        let of_opener = packet.flags.has(Flags::ACK) == flow.receiver_requests;
        // the opener's first packets identify their connection
        let named = content.connection().filter(|_| of_opener && !packet.flags.has(Flags::CORRUPT));
        let base = named.or_else(|| self.now.as_ref().map(|connection| connection.base)).unwrap_or(0);
        let leaves = of_opener == self.opens;
        let connection = self.connection(packet.time, base, flow, folder)?;
        let size = u64::from(packet.size.saturating_sub(flow.config.header));
        if !leaves && let Some(trigger) = connection.refuses(packet, of_opener) {
            return connection.write(packet.time, &Event::PacketDropped { size, trigger });
        }
        let frames = content.frames(flow.l4s);
        let logged = Packet::new(content.kind(), packet.seq.into(), size, &frames);
        let event = if leaves { Event::PacketSent(logged) } else { Event::PacketReceived(logged) };
        connection.write(packet.time, &event)?;
        if content.confirms() {
            connection.confirm(packet.time)?;
        }
        if let Some(code) = content.closes().filter(|_| !leaves) {
            connection.was_closed(code);
        }
        Ok(())
    }

    /// Logs an event at this end.
    pub(super) fn noted(&mut self, noted: &QuicEvent, flow: &Flow, folder: &Path) -> io::Result<()> {
        match noted.what {
            QuicEventKind::Lost(lost) => {
                let Some(connection) = &mut self.now else { return Ok(()) };
                let trigger =
                    if lost.by_number { LossTrigger::ReorderingThreshold } else { LossTrigger::TimeThreshold };
                let packet = PacketName { kind: PacketKind::OneRtt, number: Some(lost.number.into()) };
                let lost =
                    Event::PacketLost { packet, frames: &[], is_mtu_probe_packet: false, trigger: Some(trigger) };
                connection.write(noted.time, &lost)
            }
            QuicEventKind::Recovery(Recovery { stage: Stage::Idle, .. }) => Ok(()),
            QuicEventKind::Recovery(recovery) => {
                // the accepting end learns of a connection from a packet, which was logged before
                let known = self.now.as_ref().map_or(0, |connection| connection.base);
                let base = if self.opens { recovery.connection } else { known };
                self.connection(noted.time, base, flow, folder)?.recovery(noted.time, &recovery, flow)
            }
        }
    }

    /// Flushes buffered data.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.now.take().map_or(Ok(()), Connection::finish)
    }
}

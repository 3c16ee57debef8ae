//! The events that can be written: those of draft-ietf-quic-qlog-quic-events-12 about congestion control, and those
//! needed to understand them.

use super::frame::{CloseError, Ecn, Frame, Raw, StreamKind};
use super::state::{Metrics, Parameters, RecoveryParameters};
use super::{is_false, millis};
use paceline_units::Span;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// An event. Sizes and windows are in bytes; packet numbers are those on the wire.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Event<'a> {
    /// The first packet was sent or received.
    ConnectionStarted {
        /// This end.
        local: Endpoint<'a>,
        /// The other end.
        remote: Endpoint<'a>,
    },
    /// The handshake progressed, or the connection is ending.
    ConnectionStateUpdated {
        /// The new state.
        new: ConnectionState,
    },
    /// The connection was closed.
    ConnectionClosed {
        /// The end that closed it.
        #[serde(skip_serializing_if = "Option::is_none")]
        initiator: Option<Initiator>,
        /// The error given.
        #[serde(flatten, serialize_with = "closing_error")]
        error: Option<CloseError>,
        /// The reason phrase; empty if none.
        #[serde(skip_serializing_if = "str::is_empty")]
        reason: &'a str,
        /// The cause.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<CloseTrigger>,
    },
    /// An end's parameters from the handshake.
    ParametersSet(Parameters<'a>),
    /// The maximum datagram size changed.
    MtuUpdated {
        /// The old size.
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<u32>,
        /// The new size.
        new: u32,
        /// Whether path MTU discovery has finished.
        #[serde(skip_serializing_if = "is_false")]
        done: bool,
    },
    /// A packet was sent.
    PacketSent(Packet<'a>),
    /// A packet was received and could be read.
    PacketReceived(Packet<'a>),
    /// A packet was received and discarded.
    PacketDropped {
        /// Its size.
        #[serde(serialize_with = "raw", rename = "raw")]
        size: u64,
        /// The cause.
        trigger: DropTrigger,
    },
    /// The peer acknowledged these packets for the first time; at least one. Not needed if received ACK frames are
    /// logged.
    PacketsAcked {
        /// Their packet number space.
        #[serde(rename = "packet_number_space")]
        space: Space,
        /// Their packet numbers.
        #[serde(rename = "packet_numbers")]
        numbers: &'a [u64],
    },
    /// A packet was declared lost.
    PacketLost {
        /// The packet.
        #[serde(rename = "header")]
        packet: PacketName,
        /// Its frames; empty if not logged.
        #[serde(skip_serializing_if = "<[Frame]>::is_empty")]
        frames: &'a [Frame<'a>],
        /// Whether it was only a path MTU probe.
        #[serde(skip_serializing_if = "is_false")]
        is_mtu_probe_packet: bool,
        /// The cause.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<LossTrigger>,
    },
    /// Datagrams were passed to the operating system.
    UdpDatagramsSent(Datagrams<'a>),
    /// Datagrams were received from the operating system.
    UdpDatagramsReceived(Datagrams<'a>),
    /// A stream was opened, or ended.
    StreamStateUpdated {
        /// The stream ID.
        #[serde(rename = "stream_id")]
        id: u64,
        /// Whether it is bidirectional.
        #[serde(rename = "stream_type", skip_serializing_if = "Option::is_none")]
        kind: Option<StreamKind>,
        /// The old state.
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<StreamState>,
        /// The new state.
        new: StreamState,
        /// Its sending or receiving side.
        #[serde(rename = "stream_side")]
        side: StreamSide,
    },
    /// Stream data moved from one layer to another.
    StreamDataMoved {
        /// The stream ID.
        #[serde(rename = "stream_id")]
        id: u64,
        /// Offset of the first byte.
        offset: u64,
        /// The source.
        from: Layer,
        /// The destination.
        to: Layer,
        /// Count of bytes.
        #[serde(serialize_with = "raw", rename = "raw")]
        length: u64,
    },
    /// The content of a DATAGRAM frame moved from one layer to another.
    DatagramDataMoved {
        /// The source.
        from: Layer,
        /// The destination.
        to: Layer,
        /// Count of bytes.
        #[serde(serialize_with = "raw", rename = "raw")]
        length: u64,
    },
    /// Initial parameters of loss recovery and congestion control.
    RecoveryParametersSet(RecoveryParameters<'a>),
    /// Current metrics of loss recovery and congestion control.
    RecoveryMetricsUpdated(Metrics),
    /// The controller's state changed: "slow_start", "congestion_avoidance", "application_limited", "recovery" of RFC
    /// 9002, or its own.
    CongestionStateUpdated {
        /// The old state.
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<&'a str>,
        /// The new state.
        new: &'a str,
        /// The cause: "persistent_congestion", "ecn", or the controller's own.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<&'a str>,
    },
    /// A timer was set, expired or was cancelled.
    TimerUpdated {
        /// The timer.
        #[serde(rename = "timer_type")]
        kind: TimerKind,
        /// Its packet number space.
        #[serde(rename = "packet_number_space", skip_serializing_if = "Option::is_none")]
        space: Option<Space>,
        /// The change.
        #[serde(flatten)]
        change: TimerChange,
    },
    /// The state of ECN validation changed (RFC 9000, A.4).
    EcnStateUpdated {
        /// The old state.
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<EcnState>,
        /// The new state.
        new: EcnState,
    },
}

impl Event<'_> {
    /// Its name in the draft.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Event::ConnectionStarted { .. } => "quic:connection_started",
            Event::ConnectionStateUpdated { .. } => "quic:connection_state_updated",
            Event::ConnectionClosed { .. } => "quic:connection_closed",
            Event::ParametersSet(_) => "quic:parameters_set",
            Event::MtuUpdated { .. } => "quic:mtu_updated",
            Event::PacketSent(_) => "quic:packet_sent",
            Event::PacketReceived(_) => "quic:packet_received",
            Event::PacketDropped { .. } => "quic:packet_dropped",
            Event::PacketsAcked { .. } => "quic:packets_acked",
            Event::PacketLost { .. } => "quic:packet_lost",
            Event::UdpDatagramsSent(_) => "quic:udp_datagrams_sent",
            Event::UdpDatagramsReceived(_) => "quic:udp_datagrams_received",
            Event::StreamStateUpdated { .. } => "quic:stream_state_updated",
            Event::StreamDataMoved { .. } => "quic:stream_data_moved",
            Event::DatagramDataMoved { .. } => "quic:datagram_data_moved",
            Event::RecoveryParametersSet(_) => "quic:recovery_parameters_set",
            Event::RecoveryMetricsUpdated(_) => "quic:recovery_metrics_updated",
            Event::CongestionStateUpdated { .. } => "quic:congestion_state_updated",
            Event::TimerUpdated { .. } => "quic:timer_updated",
            Event::EcnStateUpdated { .. } => "quic:ecn_state_updated",
        }
    }
}

/// An end of a connection; unknown fields are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Endpoint<'a> {
    /// Its address; in a simulation its host's name, which the draft allows as a redacted address.
    pub address: Option<&'a str>,
    /// Its port.
    pub port: Option<u16>,
    /// Its first connection ID, in hexadecimal.
    pub connection_id: Option<&'a str>,
}

impl Serialize for Endpoint<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let six = self.address.is_some_and(|address| address.contains(':'));
        let mut map = to.serialize_map(None)?;
        if let Some(address) = self.address {
            map.serialize_entry(if six { "ip_v6" } else { "ip_v4" }, address)?;
        }
        if let Some(port) = self.port {
            map.serialize_entry(if six { "port_v6" } else { "port_v4" }, &port)?;
        }
        if let Some(id) = self.connection_id {
            map.serialize_entry("connection_ids", &[id])?;
        }
        map.end()
    }
}

/// A packet's type (RFC 9000, 17).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "RFC 9000's names")]
pub enum PacketKind {
    Initial,
    Handshake,
    #[serde(rename = "0RTT")]
    ZeroRtt,
    #[serde(rename = "1RTT")]
    OneRtt,
    Retry,
}

/// A packet number space (RFC 9000, 12.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "RFC 9000's names")]
pub enum Space {
    Initial,
    Handshake,
    ApplicationData,
}

/// A packet's type and number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PacketName {
    /// Its type.
    #[serde(rename = "packet_type")]
    pub kind: PacketKind,
    /// Its number, if known: a received packet's is protected.
    #[serde(rename = "packet_number", skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

/// A packet that was sent or received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Type and number.
    pub name: PacketName,
    /// Its size within its UDP datagram, including header and authentication tag.
    pub size: u64,
    /// Its frames in order; empty if not logged.
    pub frames: &'a [Frame<'a>],
    /// Its datagram, if several packets share one.
    pub datagram_id: Option<u32>,
    /// Whether it is only a path MTU probe.
    pub is_mtu_probe: bool,
    /// For a sent packet: the cause, if it is not obvious.
    pub trigger: Option<SendTrigger>,
}

impl<'a> Packet<'a> {
    /// A packet without the optional fields.
    #[must_use]
    pub const fn new(kind: PacketKind, number: u64, size: u64, frames: &'a [Frame<'a>]) -> Packet<'a> {
        let name = PacketName { kind, number: Some(number) };
        Packet { name, size, frames, datagram_id: None, is_mtu_probe: false, trigger: None }
    }

    /// A packet whose number and frames are unknown.
    #[must_use]
    pub const fn unnumbered(kind: PacketKind, size: u64) -> Packet<'a> {
        let name = PacketName { kind, number: None };
        Packet { name, size, frames: &[], datagram_id: None, is_mtu_probe: false, trigger: None }
    }
}

impl Serialize for Packet<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("header", &self.name)?;
        map.serialize_entry("raw", &Raw::of(self.size))?;
        if !self.frames.is_empty() {
            map.serialize_entry("frames", self.frames)?;
        }
        if let Some(id) = self.datagram_id {
            map.serialize_entry("datagram_id", &id)?;
        }
        if self.is_mtu_probe {
            map.serialize_entry("is_mtu_probe_packet", &true)?;
        }
        if let Some(trigger) = self.trigger {
            map.serialize_entry("trigger", &trigger)?;
        }
        map.end()
    }
}

/// One or more UDP datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagrams<'a> {
    /// Payload size of each; at least one.
    pub sizes: &'a [u64],
    /// Their ECN field, the same in all; `None` if unchanged since the previous datagrams.
    pub ecn: Option<Ecn>,
    /// Their ids, one for each, to which packets refer; empty if they have none.
    pub ids: &'a [u32],
}

impl Serialize for Datagrams<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("count", &self.sizes.len())?;
        map.serialize_entry("raw", &self.sizes.iter().map(|size| Raw::of(*size)).collect::<Vec<_>>())?;
        if let Some(ecn) = self.ecn {
            map.serialize_entry("ecn", &vec![ecn; self.sizes.len()])?;
        }
        if !self.ids.is_empty() {
            map.serialize_entry("datagram_ids", self.ids)?;
        }
        map.end()
    }
}

/// A change of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "event_type", rename_all = "snake_case")]
pub enum TimerChange {
    /// It was set to expire after a time.
    Set {
        /// The time until it expires.
        #[serde(serialize_with = "millis")]
        delta: Span,
    },
    /// It expired.
    Expired,
    /// It was cancelled.
    Cancelled,
}

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($word:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs, reason = "the draft's words")]
        pub enum $name { $($word),* }
    };
}

words!(/** An end of the connection. */ Initiator { Local, Remote });
words!(/** State of a connection. */ ConnectionState {
    Attempted, PeerValidated, HandshakeStarted, EarlyWrite, HandshakeComplete, HandshakeConfirmed, Closing, Draining, Closed,
});
words!(/** Why a connection was closed. */ CloseTrigger {
    IdleTimeout, Application, Error, VersionMismatch, StatelessReset, Aborted, Unspecified,
});
words!(/** Why a packet was sent again, or without new data. */ SendTrigger {
    RetransmitReordered, RetransmitTimeout, PtoProbe, RetransmitCrypto, CcBandwidthProbe,
});
words!(/** Why a received packet was discarded. */ DropTrigger {
    InternalError, Rejected, Unsupported, Invalid, Duplicate, ConnectionUnknown, DecryptionFailure, KeyUnavailable, General,
});
words!(/** Why a packet was declared lost (RFC 9002, 6.1 and 6.2.4). */ LossTrigger {
    ReorderingThreshold, TimeThreshold, PtoExpired,
});
words!(/** The sending or receiving side of a stream. */ StreamSide { Sending, Receiving });
words!(/** State of a stream's side: the draft's simple states, and RFC 9000's (3.1 to 3.4). */ StreamState {
    Idle, Open, Closed, HalfClosedLocal, HalfClosedRemote, Ready, Send, DataSent, ResetSent, ResetReceived, Receive, SizeKnown,
    DataRead, ResetRead, DataReceived, Destroyed,
});
words!(/** The layer that holds data. */ Layer { Application, Transport, Network });
words!(/** A timer. */ TimerKind { Ack, Pto, LossTimeout, PathValidation, HandshakeTimeout, IdleTimeout });
words!(/** State of ECN validation (RFC 9000, A.4). */ EcnState { Testing, Unknown, Failed, Capable });

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn raw<S: Serializer>(length: &u64, to: S) -> Result<S::Ok, S::Error> {
    Raw::of(*length).serialize(to)
}

/// The error of a `connection_closed` event, which has a field for each of the two error spaces.
fn closing_error<S: Serializer>(error: &Option<CloseError>, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(None)?;
    if let Some(error) = error {
        let (name, code) = error.words();
        let key = if matches!(error, CloseError::Transport(_)) { "connection_error" } else { "application_error" };
        map.serialize_entry(key, &name)?;
        if let Some(code) = code {
            map.serialize_entry("error_code", &code)?;
        }
    }
    map.end()
}

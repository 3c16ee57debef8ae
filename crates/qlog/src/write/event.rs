//! What can be written of a connection: the events of draft-ietf-quic-qlog-quic-events-12 that tell of congestion control,
//! and what one needs to understand them.

use super::frame::{CloseError, Ecn, Frame, Raw, StreamKind};
use super::state::{Metrics, Parameters, RecoveryParameters};
use super::{is_false, millis};
use paceline_units::Span;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// What happened. Sizes and windows are bytes; numbers of packets are those on the wire.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Event<'a> {
    /// The first packet was sent, or came.
    ConnectionStarted {
        /// This end.
        local: Endpoint<'a>,
        /// The other one.
        remote: Endpoint<'a>,
    },
    /// The handshake went on, or the end.
    ConnectionStateUpdated {
        /// What it is now.
        new: ConnectionState,
    },
    /// It is over.
    ConnectionClosed {
        /// Who ended it.
        #[serde(skip_serializing_if = "Option::is_none")]
        initiator: Option<Initiator>,
        /// The error that was given.
        #[serde(flatten, serialize_with = "closing_error")]
        error: Option<CloseError>,
        /// In words; empty: none.
        #[serde(skip_serializing_if = "str::is_empty")]
        reason: &'a str,
        /// What led to it.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<CloseTrigger>,
    },
    /// What an end has declared in its handshake.
    ParametersSet(Parameters<'a>),
    /// The greatest datagram that is sent has another size now.
    MtuUpdated {
        /// Before.
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<u32>,
        /// Now.
        new: u32,
        /// Whether the search for it has ended.
        #[serde(skip_serializing_if = "is_false")]
        done: bool,
    },
    /// A packet was sent.
    PacketSent(Packet<'a>),
    /// A packet came, and could be read.
    PacketReceived(Packet<'a>),
    /// A packet came, and was of no use.
    PacketDropped {
        /// Its size.
        #[serde(serialize_with = "raw", rename = "raw")]
        size: u64,
        /// Why.
        trigger: DropTrigger,
    },
    /// The peer acknowledged these for the first time; at least one. Who writes received ACK frames need not.
    PacketsAcked {
        /// Which numbers they have.
        #[serde(rename = "packet_number_space")]
        space: Space,
        /// Them.
        #[serde(rename = "packet_numbers")]
        numbers: &'a [u64],
    },
    /// A packet counts as lost.
    PacketLost {
        /// Which.
        #[serde(rename = "header")]
        packet: PacketName,
        /// What was in it; empty: not said.
        #[serde(skip_serializing_if = "<[Frame]>::is_empty")]
        frames: &'a [Frame<'a>],
        /// Whether it only probed for a greater datagram.
        #[serde(skip_serializing_if = "is_false")]
        is_mtu_probe_packet: bool,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<LossTrigger>,
    },
    /// Datagrams were given to the system.
    UdpDatagramsSent(Datagrams<'a>),
    /// Datagrams came from the system.
    UdpDatagramsReceived(Datagrams<'a>),
    /// A stream opened, or ended.
    StreamStateUpdated {
        /// Its number.
        #[serde(rename = "stream_id")]
        id: u64,
        /// Of how many ends.
        #[serde(rename = "stream_type", skip_serializing_if = "Option::is_none")]
        kind: Option<StreamKind>,
        /// Before.
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<StreamState>,
        /// Now.
        new: StreamState,
        /// Which of its halves.
        #[serde(rename = "stream_side")]
        side: StreamSide,
    },
    /// Bytes of a stream went from one layer to another.
    StreamDataMoved {
        /// Its number.
        #[serde(rename = "stream_id")]
        id: u64,
        /// Of the first byte.
        offset: u64,
        /// From where.
        from: Layer,
        /// Where to.
        to: Layer,
        /// How many.
        #[serde(serialize_with = "raw", rename = "raw")]
        length: u64,
    },
    /// The content of a DATAGRAM frame went from one layer to another.
    DatagramDataMoved {
        /// From where.
        from: Layer,
        /// Where to.
        to: Layer,
        /// How many bytes.
        #[serde(serialize_with = "raw", rename = "raw")]
        length: u64,
    },
    /// What loss recovery and congestion control begin with.
    RecoveryParametersSet(RecoveryParameters<'a>),
    /// What they are at.
    RecoveryMetricsUpdated(Metrics),
    /// The controller is in another state: "slow_start", "congestion_avoidance", "application_limited", "recovery" of
    /// RFC 9002, or its own.
    CongestionStateUpdated {
        /// Before.
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<&'a str>,
        /// Now.
        new: &'a str,
        /// Why: "persistent_congestion", "ecn", or its own.
        #[serde(skip_serializing_if = "Option::is_none")]
        trigger: Option<&'a str>,
    },
    /// A timer was set, ran out or was stopped.
    TimerUpdated {
        /// Which.
        #[serde(rename = "timer_type")]
        kind: TimerKind,
        /// Of which numbers.
        #[serde(rename = "packet_number_space", skip_serializing_if = "Option::is_none")]
        space: Option<Space>,
        /// What became of it.
        #[serde(flatten)]
        change: TimerChange,
    },
    /// Whether the path carries ECN is another question now (RFC 9000, A.4).
    EcnStateUpdated {
        /// Before.
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<EcnState>,
        /// Now.
        new: EcnState,
    },
}

impl Event<'_> {
    /// The draft's name of it.
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

/// An end of a connection; what is not known is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Endpoint<'a> {
    /// Its address; in a simulation its host's name, which the draft allows as a redacted one.
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

/// What a packet is (RFC 9000, 17).
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

/// Which numbers a packet has (RFC 9000, 12.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "RFC 9000's names")]
pub enum Space {
    Initial,
    Handshake,
    ApplicationData,
}

/// A packet's kind and number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PacketName {
    /// What it is.
    #[serde(rename = "packet_type")]
    pub kind: PacketKind,
    /// Its number, if it is known: that of a packet which came is protected.
    #[serde(rename = "packet_number", skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

/// A packet that was sent or came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Kind and number.
    pub name: PacketName,
    /// Its size: what it takes of a datagram of UDP, header and authentication tag included.
    pub size: u64,
    /// What is in it, in order; empty: not said.
    pub frames: &'a [Frame<'a>],
    /// Which datagram it was in, where several packets share one.
    pub datagram_id: Option<u32>,
    /// Whether it only probes for a greater datagram.
    pub is_mtu_probe: bool,
    /// Of a packet sent: why then, where that is not plain.
    pub trigger: Option<SendTrigger>,
}

impl<'a> Packet<'a> {
    /// With the rest left out.
    #[must_use]
    pub const fn new(kind: PacketKind, number: u64, size: u64, frames: &'a [Frame<'a>]) -> Packet<'a> {
        let name = PacketName { kind, number: Some(number) };
        Packet { name, size, frames, datagram_id: None, is_mtu_probe: false, trigger: None }
    }

    /// One of which neither the number nor the frames are known.
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

/// Datagrams of UDP, one or more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagrams<'a> {
    /// The payload's size of each; at least one.
    pub sizes: &'a [u64],
    /// Their ECN field, the same in all; none: as in the datagrams before.
    pub ecn: Option<Ecn>,
    /// Their numbers, one for each, by which packets name them; empty: none have.
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

/// What became of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "event_type", rename_all = "snake_case")]
pub enum TimerChange {
    /// It will run out so long after this.
    Set {
        /// How long.
        #[serde(serialize_with = "millis")]
        delta: Span,
    },
    /// It ran out.
    Expired,
    /// It was stopped.
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

words!(/** Which end did it. */ Initiator { Local, Remote });
words!(/** How far a connection is. */ ConnectionState {
    Attempted, PeerValidated, HandshakeStarted, EarlyWrite, HandshakeComplete, HandshakeConfirmed, Closing, Draining, Closed,
});
words!(/** What led to a connection's end. */ CloseTrigger {
    IdleTimeout, Application, Error, VersionMismatch, StatelessReset, Aborted, Unspecified,
});
words!(/** Why a packet was sent again, or without new data. */ SendTrigger {
    RetransmitReordered, RetransmitTimeout, PtoProbe, RetransmitCrypto, CcBandwidthProbe,
});
words!(/** Why a packet was dropped by the end that it came to. */ DropTrigger {
    InternalError, Rejected, Unsupported, Invalid, Duplicate, ConnectionUnknown, DecryptionFailure, KeyUnavailable, General,
});
words!(/** Why a packet counts as lost (RFC 9002, 6.1 and 6.2.4). */ LossTrigger {
    ReorderingThreshold, TimeThreshold, PtoExpired,
});
words!(/** A half of a stream. */ StreamSide { Sending, Receiving });
words!(/** How far a half of a stream is: the draft's simple states, and RFC 9000's (3.1 to 3.4). */ StreamState {
    Idle, Open, Closed, HalfClosedLocal, HalfClosedRemote, Ready, Send, DataSent, ResetSent, ResetReceived, Receive, SizeKnown,
    DataRead, ResetRead, DataReceived, Destroyed,
});
words!(/** Where data lies. */ Layer { Application, Transport, Network });
words!(/** Which timer. */ TimerKind { Ack, Pto, LossTimeout, PathValidation, HandshakeTimeout, IdleTimeout });
words!(/** Whether the path carries ECN. */ EcnState { Testing, Unknown, Failed, Capable });

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn raw<S: Serializer>(length: &u64, to: S) -> Result<S::Ok, S::Error> {
    Raw::of(*length).serialize(to)
}

/// Of the event that ends a connection: the two spaces have a field each there.
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

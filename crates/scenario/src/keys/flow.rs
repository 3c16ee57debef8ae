//! Flows in a scenario file: endpoints, controller, and transport options.

pub use super::app::{App, FrameFormat, GameWay, Limited, Playout, RTP_HEADER, WebArrivals};
use super::bounds::DefaultBound;
use super::bundle::BundleTable;
pub use super::codec::Codec;
use super::coupled::CoupledTable;
use super::draw::Draw;
pub use super::edca::AccessCategory;
pub use super::encoder::{EncoderBurst, EncoderTrace, JitterBuffer, JitterLaw, Pause};
use super::file::Profile;
use super::link::FlowAccessTable;
use super::named::Named;
use super::parameters::ParameterValue;
use super::quic::{QuicTable, TransportKey};
use super::repair::{EcnFeedback, NewrenoVariant, Recovery};
use super::rtp::RtpTable;
use super::values::{ClientBuffer, DelayedAck};
use paceline_units::{Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One flow, or several alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowTable {
    /// Number of flows alike: name[0], name[1], ...
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub count: u32,
    /// Node of the sender, or the router to which its host is linked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "left; parking lot: r0; home: the server, if there is one; graph: required; a relay: the `to` of the flow that it forwards"))]
    pub from: Option<String>,
    /// Node of the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "right; parking lot: the last node; home: the station, if there is one; graph: required"))]
    pub to: Option<String>,
    /// Congestion controller: `paceline controllers` lists them. Your own: `python:FILE:CLASS`, `library:FILE`
    /// (docs/your-own-controller.md).
    #[serde(default = "newreno")]
    pub cc: String,
    #[serde(skip)]
    pub(crate) named: Named,
    #[serde(skip)]
    pub(crate) default_bound: DefaultBound,
    /// The controller's own parameters; `paceline controllers CC` lists them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-default" = "by controller and profile"))]
    pub params: BTreeMap<String, ParameterValue>,
    /// The reference that TCP follows where references differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the scenario's"))]
    pub profile: Option<Profile>,
    /// Transport of controllers that set a window (those of TCP).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`tcp`; other controllers have their own transports"))]
    pub transport: Option<TransportKey>,
    /// When the flow starts. Before the duration.
    #[serde(default = "at_once")]
    pub start: Draw<Span>,
    /// When the application stops sending; data that have not left by then never leave. Later than the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "never"))]
    pub stop: Option<Span>,
    /// Round-trip propagation delay of this flow. The source's access link adds what the path lacks, half each way. A
    /// value below the path's own is an error; a drawn one counts as the path's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the path's own", "x-max" = "120 s"))]
    pub rtt: Option<Draw<Span>>,
    /// Flows of one group share a Jain index.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the flow's name"))]
    pub group: Option<String>,
    /// Other flows of its host with which it shares rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none"))]
    pub coupled: Option<CoupledTable>,
    /// Other flows with which it shares one controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none"))]
    pub bundle: Option<BundleTable>,
    /// Category of its packets, both ways, in 802.11 cells on its path. If any flow has one, the others are
    /// `best-effort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: cells without categories"))]
    pub access_category: Option<AccessCategory>,
    /// Payload of a full segment. Segment and header together have at most 65535 B.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "1460 B; 1448 B in profile linux, 1000 B in ns2 and ns2-linux; RAP and TFRCP 1456 B, TFRC 1452 B, MULTFRC 1448 B, RTP 1460 B, UDP 1472 B, all 1000 B in ns2 and ns2-linux; QUIC 1472 B, including its own headers", "x-min" = "1 B", "x-max" = "65535 B"))]
    pub segment: Option<Size>,
    /// Bytes of a data packet on the wire beside its payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "40 B; 52 B in profile linux, 0 B in ns2 and ns2-linux; RAP and TFRCP 44 B, TFRC 48 B, MULTFRC 52 B, RTP 40 B, UDP 28 B, all 0 B in ns2 and ns2-linux; QUIC 28 B", "x-max" = "65534 B"))]
    pub header: Option<Size>,
    /// Size of an acknowledgement (for TFRC, a report) on the wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "40 B; 52 B in profile linux; TFRC 72 B, MULTFRC 76 B, and 40 B in ns2 and ns2-linux; RAP and TFRCP 56 B, and 44 B in ns2 and ns2-linux", "x-min" = "1 B", "x-max" = "65535 B"))]
    pub ack_size: Option<Size>,
    /// Initial congestion window in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000), extend("x-default" = "by profile"))]
    pub initial_window: Option<u32>,
    /// The receiver's window in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_000_000_000), extend("x-default" = "never binding"))]
    pub receive_window: Option<u32>,
    /// Profile `linux`: memory of the receiver's socket (`tcp_rmem`), or `unlimited`. The window begins with 64 kB
    /// and is tuned as the kernel does: to twice what arrives in a round trip and more, at most five eighths of the
    /// memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "32 MiB in profile linux"))]
    pub receive_buffer: Option<ClientBuffer>,
    /// Profile `linux`: memory of the sender's socket (`tcp_wmem`), or `unlimited`. Fifteen sixteenths of it may be
    /// outstanding.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "4 MiB in profile linux"))]
    pub send_buffer: Option<ClientBuffer>,
    /// Longest delay of an acknowledgement (1 ns to 10 s), or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by profile"))]
    pub delayed_ack: Option<DelayedAck>,
    /// How losses are found and repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by controller and profile"))]
    pub recovery: Option<Recovery>,
    /// Which partial acknowledgements restart NewReno's timer (RFC 6582, section 4).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by profile"))]
    pub newreno: Option<NewrenoVariant>,
    /// Limited transmit (RFC 3042).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by profile"))]
    pub limited_transmit: Option<bool>,
    /// With `recovery = "sack"` under profile `rfc`: the window shrinks over a round trip (proportional rate
    /// reduction, RFC 9937) instead of at once (RFC 6675, section 5). Profile `linux` always does this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`false` for `sack` in profile rfc"))]
    pub prr: Option<bool>,
    /// Paces segments at twice the window per round trip in slow start and 1.2 times after it, like Linux with `fq`.
    /// For profile `linux`, and with `recovery = "rack"`. Controllers that model the path always pace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`false`; `true` for controllers that always pace"))]
    pub pacing: Option<bool>,
    /// Explicit congestion notification (RFC 3168).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by controller"))]
    pub ecn: Option<bool>,
    /// How a TCP receiver reports marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by controller, else `classic`"))]
    pub ecn_feedback: Option<EcnFeedback>,
    /// Minimum retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by profile", "x-min" = "1 us", "x-max" = "60 s"))]
    pub min_rto: Option<Span>,
    /// Whether SYN and SYN-ACK open the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by profile"))]
    pub handshake: Option<bool>,
    /// When the window opens, TCP waits for a time drawn uniformly from 0 to this, then sends everything that the
    /// window allows (ns-2's `overhead_`). `rap` and `tfrcp`: each gap between packets is longer by such a draw.
    #[serde(default)]
    #[schemars(extend("x-max" = "10 s"))]
    pub send_overhead: Span,
    /// Measures arrivals of its data packets: one-way delay, distance between arrivals, jitter (`owd_...`,
    /// `interarrival_...`, `jitter_s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`true` for `udp`, else `false`"))]
    pub delays: Option<bool>,
    /// In real time (`paceline emulate`) the kernel's TCP carries the flow, with its own congestion control of this
    /// kind and its parameters. Of the keys above it takes `segment`, up to what fits a packet, and `receive_window`,
    /// up to 128 kB. The simulator is unaffected: there profile `linux`, which this key sets, represents the kernel.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub kernel: bool,
    /// Keys of this flow's access links that override `[access]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "nothing"))]
    pub access: Option<FlowAccessTable>,
    /// The QUIC connection; only with `transport = "quic"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "its keys' defaults"))]
    pub quic: Option<QuicTable>,
    /// The RTP session; only for controllers on RTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "its keys' defaults"))]
    pub rtp: Option<RtpTable>,
    /// The application.
    #[serde(default)]
    pub app: App,
}

/// The default scheme.
pub(crate) const USUAL_CC: &str = "newreno";

const fn one() -> u32 {
    1
}
fn newreno() -> String {
    USUAL_CC.into()
}
const fn at_once() -> Draw<Span> {
    Draw::Fixed(Span::ZERO)
}

impl FlowTable {
    /// Whether it runs over QUIC.
    #[must_use]
    pub fn is_quic(&self) -> bool {
        self.transport == Some(TransportKey::Quic)
    }
}

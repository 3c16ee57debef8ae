//! Flows in a scenario file: endpoints, controller, and the options of what carries it.

pub(crate) use super::app::RTP_HEADER;
pub use super::app::{App, FrameFormat, GameWay, Limited, Playout, WebArrivals};
use super::bounds::Unsaid;
use super::bundle::BundleTable;
pub use super::codec::Codec;
use super::coupled::CoupledTable;
use super::draw::Draw;
pub use super::edca::AccessCategory;
pub use super::encoder::{EncoderBurst, EncoderTrace, JitterBuffer, JitterLaw, Pause};
use super::link::FlowAccessTable;
use super::model::Profile;
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
    /// That many flows alike: name[0], name[1], ...
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub count: u32,
    /// Node of the sender, or the router that its host hangs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "left; parking lot: r0; home: the server, if there is one; graph: required; a relay: the `to` that the flow which it sends on has"))]
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
    pub(super) named: Named,
    #[serde(skip)]
    pub(super) unsaid: Unsaid,
    /// The controller's own parameters; `paceline controllers CC` lists them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-default" = "by controller and profile"))]
    pub params: BTreeMap<String, ParameterValue>,
    /// Whose behaviour TCP follows where references differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the scenario's"))]
    pub profile: Option<Profile>,
    /// What carries it, for controllers that set a window (those of TCP).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`tcp`; other controllers have transports of their own"))]
    pub transport: Option<TransportKey>,
    /// When the flow starts. Before the duration.
    #[serde(default = "at_once")]
    pub start: Draw<Span>,
    /// When the application stops sending: what has not left by then never will. Later than the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "never"))]
    pub stop: Option<Span>,
    /// Round-trip propagation of this flow. What the path does not have lies on the source's access link, half each way. A
    /// value below the path's own is a mistake; a drawn one counts as the path's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the path's own", "x-max" = "120 s"))]
    pub rtt: Option<Draw<Span>>,
    /// Flows of one group share a Jain index.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the flow's name"))]
    pub group: Option<String>,
    /// Other flows of its host whose rates it shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none"))]
    pub coupled: Option<CoupledTable>,
    /// Other flows with which it has one controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none"))]
    pub bundle: Option<BundleTable>,
    /// What its packets are, both ways, to the 802.11 cells on their way. Where a flow says, others are `best-effort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "cells know no categories"))]
    pub access_category: Option<AccessCategory>,
    /// Payload of a full segment. Segment and header together are at most 65535 B.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "1460 B; 1448 B in profile linux, 1000 B in ns2 and ns2-linux; RAP and TFRCP 1456 B, TFRC 1452 B, MULTFRC 1448 B, RTP 1460 B, UDP 1472 B, all 1000 B in ns2 and ns2-linux; QUIC 1472 B, of which its own headers are a part", "x-min" = "1 B", "x-max" = "65535 B"))]
    pub segment: Option<Size>,
    /// What a data packet has on the wire beside its payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "40 B; 52 B in profile linux, 0 B in ns2 and ns2-linux; RAP and TFRCP 44 B, TFRC 48 B, MULTFRC 52 B, RTP 40 B, UDP 28 B, all 0 B in ns2 and ns2-linux; QUIC 28 B", "x-max" = "65534 B"))]
    pub header: Option<Size>,
    /// Size of an acknowledgement (of TFRC a report) on the wire.
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
    /// Profile `linux`: memory that the receiver's socket may take (`tcp_rmem`), or `unlimited`. The window begins with 64 kB, and
    /// grows to twice what arrives in a round trip and more, as the kernel tunes it; five eighths of the memory at the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "32 MiB in profile linux"))]
    pub receive_buffer: Option<ClientBuffer>,
    /// Profile `linux`: memory that the sender's socket may take (`tcp_wmem`), or `unlimited`. Fifteen sixteenths of it may be
    /// outstanding.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "4 MiB in profile linux"))]
    pub send_buffer: Option<ClientBuffer>,
    /// How long the receiver may hold back an acknowledgement (1 ns to 10 s), or `off`.
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
    /// With `recovery = "sack"` under profile `rfc`: the window shrinks over a round trip (proportional rate reduction, RFC 9937),
    /// in place of at once (RFC 6675, section 5). Profile `linux` always does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`false` for `sack` in profile rfc"))]
    pub prr: Option<bool>,
    /// Segments leave one by one, at twice what the window sends in a round trip in slow start and 1.2 times after, as Linux with `fq`:
    /// under profile `linux`, and where losses are found by time (`recovery = "rack"`). Who models the path paces anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`false`; `true` for who paces anyway"))]
    pub pacing: Option<bool>,
    /// Explicit congestion notification (RFC 3168).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by controller"))]
    pub ecn: Option<bool>,
    /// How a TCP receiver tells of marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by controller, else `classic`"))]
    pub ecn_feedback: Option<EcnFeedback>,
    /// Least retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by profile", "x-min" = "1 us", "x-max" = "60 s"))]
    pub min_rto: Option<Span>,
    /// Whether the connection is opened with SYN and SYN-ACK.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "by profile"))]
    pub handshake: Option<bool>,
    /// When the window opens, TCP waits for a time drawn uniformly from 0 to this, then sends all that the window allows by then
    /// (ns-2's `overhead_`). `rap` and `tfrcp`: each gap between packets is longer by such a draw.
    #[serde(default)]
    #[schemars(extend("x-max" = "10 s"))]
    pub send_overhead: Span,
    /// Measures how its data packets arrive: one-way delay, distance between arrivals, jitter (`owd_...`, `interarrival_...`,
    /// `jitter_s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`true` for `udp`, else `false`"))]
    pub delays: Option<bool>,
    /// In real time (`paceline emulate`) the kernel's TCP carries the flow, with its own congestion control of this kind and its
    /// parameters; of the keys above it takes `segment`, up to what fits a packet, and `receive_window`, up to 128 kB. In the
    /// simulator nothing changes: profile `linux`, which this takes, is what stands for the kernel there.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub kernel: bool,
    /// What this flow's access links have instead of what `[access]` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "nothing"))]
    pub access: Option<FlowAccessTable>,
    /// The QUIC connection; with `transport = "quic"` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "each of its keys' own"))]
    pub quic: Option<QuicTable>,
    /// The RTP session; for controllers that ride on RTP alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "each of its keys' own"))]
    pub rtp: Option<RtpTable>,
    /// What sends over the connection.
    #[serde(default)]
    pub app: App,
}

/// The scheme of a flow that names none.
pub(super) const USUAL_CC: &str = "newreno";

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
    /// Whether QUIC carries it.
    #[must_use]
    pub fn is_quic(&self) -> bool {
        self.transport == Some(TransportKey::Quic)
    }
}

//! QUIC in a scenario file: how a connection begins and ends, its limits, and how the application's writes are carried.

use super::flow::App;
use paceline_flow::quic::{Carriage as MachineCarriage, Handshake as MachineHandshake, QuicConfig, TrackConfig};
use paceline_units::{Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What carries a window controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TransportKey {
    /// TCP, by profile.
    #[default]
    Tcp,
    /// QUIC (RFC 9000, RFC 9002, RFC 9221): its own loss detection, pacing and handshake, whatever the profile.
    Quic,
}

/// A QUIC connection; for flows with `transport = "quic"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuicTable {
    /// How a connection begins.
    #[serde(default)]
    pub handshake: HandshakeKey,
    /// Mapping of the application's writes to streams or datagrams.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`stream-each` for `web`, `encoder`, `video`, `video-trace`, `voice`, `game` and with requests, else `stream`; a relay: as the flow that it forwards"))]
    pub carriage: Option<CarriageKey>,
    /// A stream is reset if one of its frames is not acknowledged within this time of its capture; a datagram that
    /// has not left by then is dropped. Not with `carriage = "stream"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none", "x-min" = "1 ms", "x-max" = "1000 s"))]
    pub deadline: Option<Span>,
    /// For a relay: bytes of frames, over all tracks of its connection, that may wait to leave. Beyond it, frames of
    /// the lowest priority are dropped: first those of which nothing has left, oldest first; of groups the oldest,
    /// with the rest of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "1 MB for a relay, else none", "x-min" = "1 kB", "x-max" = "1000 GB"))]
    pub queue: Option<Size>,
    /// Data that the receiver accepts on all streams together before it has read them (MAX_DATA).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "never binding", "x-min" = "1200 B", "x-max" = "1000 GB"))]
    pub receive_window: Option<Size>,
    /// Data that the receiver accepts on each stream before it has read them (MAX_STREAM_DATA).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "never binding", "x-min" = "1200 B", "x-max" = "1000 GB"))]
    pub stream_window: Option<Size>,
    /// Maximum number of open streams (MAX_STREAMS).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000), extend("x-default" = "never binding"))]
    pub max_streams: Option<u32>,
    /// Number of packets that one acknowledgement covers (RFC 9000, 13.2.2; draft-ietf-quic-ack-frequency).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000), extend("x-default" = "2"))]
    pub ack_threshold: Option<u16>,
    /// Longest wait of an acknowledgement (max_ack_delay).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "25 ms", "x-min" = "1 us", "x-max" = "16 s"))]
    pub max_ack_delay: Option<Span>,
    /// A connection without arrivals for this long ends, and with it everything in progress: an endless transfer,
    /// pages that wait for each other. Later writes open another.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none", "x-min" = "1 ms", "x-max" = "1000000 s"))]
    pub idle_timeout: Option<Span>,
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HandshakeKey {
    /// Data follow the other end's answer: one round trip.
    #[default]
    OneRtt,
    /// A resumed session: data leave with the first packet.
    ZeroRtt,
    /// Just completed: neither time nor bytes.
    Done,
}

/// Mapping of the application's writes to streams or datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CarriageKey {
    /// One stream for everything, in order.
    Stream,
    /// A stream for each write: a frame, a response.
    StreamEach,
    /// A stream for each group of pictures (apps `encoder` and `video`), from a key frame on. A reset one takes the
    /// rest of its group with it.
    StreamPerGroup,
    /// Datagrams, which are not sent again (RFC 9221).
    Datagrams,
}

impl QuicTable {
    /// The default carriage of an application's writes.
    #[must_use]
    pub fn usual_carriage(app: &App) -> CarriageKey {
        match app {
            App::Encoder { .. }
            | App::Game { .. }
            | App::Relay { .. }
            | App::Video { .. }
            | App::VideoTrace { .. }
            | App::Voice { .. }
            | App::Web { .. } => CarriageKey::StreamEach,
            App::Stream { request: Some(_), .. } => CarriageKey::StreamEach,
            App::Cbr { .. } | App::Ftp { .. } | App::Pareto { .. } | App::Stream { .. } => CarriageKey::Stream,
        }
    }

    /// Fills in the keys whose default for `app` does not depend on other keys.
    pub(crate) fn fill(&mut self, app: &App, usual: &QuicConfig) {
        self.carriage.get_or_insert_with(|| QuicTable::usual_carriage(app));
        self.ack_threshold.get_or_insert(usual.ack_threshold);
        self.max_ack_delay.get_or_insert(usual.max_ack_delay);
    }

    /// Takes over from its leader what the track does not set itself.
    pub(crate) fn inherit(&mut self, leader: &QuicTable) {
        *self = QuicTable {
            carriage: self.carriage,
            deadline: self.deadline,
            handshake: if self.handshake == HandshakeKey::default() { leader.handshake } else { self.handshake },
            queue: self.queue.or(leader.queue),
            receive_window: self.receive_window.or(leader.receive_window),
            stream_window: self.stream_window.or(leader.stream_window),
            max_streams: self.max_streams.or(leader.max_streams),
            ack_threshold: self.ack_threshold.or(leader.ack_threshold),
            max_ack_delay: self.max_ack_delay.or(leader.max_ack_delay),
            idle_timeout: self.idle_timeout.or(leader.idle_timeout),
        };
    }

    /// Keys of the connection in which a track differs from its leader.
    pub(crate) fn differs(&self, leader: &QuicTable) -> impl Iterator<Item = &'static str> {
        let differs = [
            ("handshake", self.handshake != leader.handshake),
            ("queue", self.queue != leader.queue),
            ("receive_window", self.receive_window != leader.receive_window),
            ("stream_window", self.stream_window != leader.stream_window),
            ("max_streams", self.max_streams != leader.max_streams),
            ("ack_threshold", self.ack_threshold != leader.ack_threshold),
            ("max_ack_delay", self.max_ack_delay != leader.max_ack_delay),
            ("idle_timeout", self.idle_timeout != leader.idle_timeout),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key)
    }

    /// The machine's settings: `usual`, overridden by the table.
    #[must_use]
    pub fn config(&self, app: &App, usual: QuicConfig) -> QuicConfig {
        QuicConfig {
            handshake: match self.handshake {
                HandshakeKey::OneRtt => MachineHandshake::OneRtt,
                HandshakeKey::ZeroRtt => MachineHandshake::ZeroRtt,
                HandshakeKey::Done => MachineHandshake::Done,
            },
            track: TrackConfig {
                carriage: match self.carriage.unwrap_or_else(|| QuicTable::usual_carriage(app)) {
                    CarriageKey::Stream => MachineCarriage::Stream,
                    CarriageKey::StreamEach => MachineCarriage::StreamEach,
                    CarriageKey::StreamPerGroup => MachineCarriage::StreamPerGroup,
                    CarriageKey::Datagrams => MachineCarriage::Datagrams,
                },
                frames: app.has_frames(),
                deadline: self.deadline,
                rank: 0,
            },
            queue: self.queue.map(Size::bytes),
            receive_window: self.receive_window.map_or(usual.receive_window, Size::bytes),
            stream_window: self.stream_window.map_or(usual.stream_window, Size::bytes),
            max_streams: self.max_streams.unwrap_or(usual.max_streams),
            ack_threshold: self.ack_threshold.unwrap_or(usual.ack_threshold),
            max_ack_delay: self.max_ack_delay.unwrap_or(usual.max_ack_delay),
            idle_timeout: self.idle_timeout,
            request: app.request().map(|request| request.size.bytes()),
            ..usual
        }
    }
}

//! QUIC settings, for both ends of a connection.

use super::Congestion;
use paceline_control::{Profile, Scheme, TcpController, WindowController};
use paceline_packet::UDP_IPV4;
use paceline_packet::quic::{StreamPiece, short_header};
use paceline_units::Span;

/// How a connection begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handshake {
    /// Both ends have completed the handshake before the flow starts.
    Done,
    /// Data follows the other end's answer (RFC 9001): one round trip.
    OneRtt,
    /// A session is resumed: data is sent with the first packet (0-RTT).
    ZeroRtt,
}

/// How the application's writes are carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carriage {
    /// One stream for everything, in order.
    Stream,
    /// A stream for each write: a media frame, a response.
    StreamEach,
    /// A stream for each group of pictures, beginning with a key frame.
    StreamPerGroup,
    /// Datagrams, which are not retransmitted (RFC 9221).
    Datagrams,
}

/// How a track of the connection is carried.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrackConfig {
    /// How its writes are carried.
    pub carriage: Carriage,
    /// Each write is a frame whose completion the receiver reports, also when frames share a stream.
    pub frames: bool,
    /// A stream is reset when its oldest unacknowledged frame exceeds this age; `None`: never.
    pub deadline: Option<Span>,
    /// Priority: tracks of lower rank are sent first; those of equal rank take turns.
    pub rank: u8,
}

impl TrackConfig {
    /// A single stream.
    pub const STREAM: TrackConfig = TrackConfig { carriage: Carriage::Stream, frames: false, deadline: None, rank: 0 };
}

/// The settings of a connection.
#[derive(Clone, PartialEq, Debug)]
pub struct QuicConfig {
    /// The profile of the controller. The protocol itself is the same in all profiles (RFC 9002).
    pub profile: Profile,
    /// UDP payload of a full packet in bytes (max_datagram_size), including QUIC's own headers.
    pub datagram: u16,
    /// Header bytes of IP and UDP on the wire.
    pub header: u16,
    /// Initial window in datagrams; `None`: by RFC 9002 section 7.2.
    pub initial_window: Option<u32>,
    /// Bytes that the other end may send on all streams before the receiver reads: initial_max_data, and how far each
    /// MAX_DATA exceeds what was read.
    pub receive_window: u64,
    /// The same for each stream.
    pub stream_window: u64,
    /// Maximum number of concurrently open streams.
    pub max_streams: u32,
    /// Packets per acknowledgement, as the data's sender requests after the handshake (draft-ietf-quic-ack-frequency);
    /// before that, two (RFC 9000 section 13.2.2).
    pub ack_threshold: u16,
    /// Maximum delay of an acknowledgement (max_ack_delay).
    pub max_ack_delay: Span,
    /// Whether packets are ECN-capable.
    pub ecn: bool,
    /// How the connection begins.
    pub handshake: Handshake,
    /// The connection closes after this time without a packet; `None`: never (max_idle_timeout 0).
    pub idle_timeout: Option<Span>,
    /// For a relay: the maximum number of bytes of frames, of all its tracks, that may wait; `None`: not a relay.
    pub queue: Option<u64>,
    /// How the application's writes are carried.
    pub track: TrackConfig,
    /// The flow is a track of another flow's connection.
    pub is_led: bool,
    /// Bytes of a request: the receiver opens connections and sends requests, each on its own stream; `None`: no
    /// requests.
    pub request: Option<u64>,
}

impl QuicConfig {
    /// With the headers of IPv4 and UDP, a packet has 1500 bytes.
    const DATAGRAM: u16 = 1500 - UDP_IPV4 as u16;

    /// RFC 9000 section 13.2.2.
    const ACK_THRESHOLD: u16 = 2;

    /// The defaults of a flow of `scheme` under `profile`.
    #[must_use]
    pub fn new(profile: Profile, scheme: &Scheme) -> QuicConfig {
        let needs = TcpController::new(scheme, profile, &[]).map(|controller| controller.needs());
        QuicConfig {
            profile,
            datagram: QuicConfig::DATAGRAM,
            header: UDP_IPV4 as u16,
            initial_window: None,
            receive_window: 1 << 40,
            stream_window: 1 << 40,
            max_streams: 1 << 20,
            ack_threshold: QuicConfig::ACK_THRESHOLD,
            max_ack_delay: Span::from_millis(25), // RFC 9000 section 18.2
            ecn: needs.is_ok_and(|needs| needs.ecn.is_on()),
            handshake: Handshake::OneRtt,
            idle_timeout: None,
            queue: None,
            track: TrackConfig::STREAM,
            is_led: false,
            request: None,
        }
    }

    /// Payload bytes of a full packet, at a large stream offset and with a two-byte packet number.
    #[must_use]
    pub fn payload(&self) -> u16 {
        self.datagram.saturating_sub(short_header(0x80) + StreamPiece::header(1 << 8, 1 << 20, true))
    }

    /// Initial window in bytes.
    #[must_use]
    pub fn initial_window(&self) -> u64 {
        let given = self.initial_window.map(|datagrams| u64::from(datagrams) * u64::from(self.datagram));
        given.unwrap_or_else(|| Congestion::initial_window(self.datagram))
    }

    /// Packets per acknowledgement before the other end requests [`QuicConfig::ack_threshold`]; it has done so if the
    /// handshake is done.
    #[must_use]
    pub(super) fn first_ack_threshold(&self) -> u16 {
        if self.handshake == Handshake::Done { self.ack_threshold } else { QuicConfig::ACK_THRESHOLD }
    }

    /// Size of a full packet on the wire in bytes.
    #[must_use]
    pub fn wire(&self) -> u16 {
        self.datagram.saturating_add(self.header)
    }

    /// Scales an amount of UDP payload in full packets to include the headers below.
    pub(super) fn with_headers(&self, bits: f64) -> f64 {
        bits * f64::from(self.wire()) / f64::from(self.datagram)
    }
}

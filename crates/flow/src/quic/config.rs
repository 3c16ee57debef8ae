//! A connection's settings, for both its ends.

use super::Congestion;
use paceline_control::{Profile, Scheme, TcpController, WindowController};
use paceline_packet::UDP_IPV4;
use paceline_packet::quic::{StreamPiece, short_header};
use paceline_units::Span;

/// How a connection begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handshake {
    /// Both ends know all already, as if the handshake had just been.
    Done,
    /// Data follow the answer of the other end (RFC 9001): one round trip.
    OneRtt,
    /// A session is resumed: data leave with the first packet.
    ZeroRtt,
}

/// What becomes of what an application writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carriage {
    /// One stream for all, in order.
    Stream,
    /// A stream for each write: a media frame, a response.
    StreamEach,
    /// A stream for each group of pictures: a key frame begins one.
    StreamPerGroup,
    /// Datagrams, which are not sent again (RFC 9221).
    Datagrams,
}

/// What becomes of what one of a connection's tracks writes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrackConfig {
    /// What its writes become.
    pub carriage: Carriage,
    /// Each write is a frame, whose completion the receiver tells of, also where frames share a stream.
    pub frames: bool,
    /// A stream that is older is reset; `None`: never.
    pub deadline: Option<Span>,
    /// Tracks of a lower one leave first; of one rank they take turns.
    pub rank: u8,
}

impl TrackConfig {
    /// One stream.
    pub const STREAM: TrackConfig = TrackConfig { carriage: Carriage::Stream, frames: false, deadline: None, rank: 0 };
}

/// The settings of a connection.
#[derive(Clone, PartialEq, Debug)]
pub struct QuicConfig {
    /// Whose law the controller obeys; the machine is one (RFC 9002).
    pub profile: Profile,
    /// UDP payload of a full packet in bytes (max_datagram_size); QUIC's own headers come out of it.
    pub datagram: u16,
    /// Bytes on the wire beside it: of IP and UDP.
    pub header: u16,
    /// Initial window in datagrams; `None`: as RFC 9002 section 7.2 has it.
    pub initial_window: Option<u32>,
    /// Bytes that the receiver lets the other end send on all streams before it reads: initial_max_data, and how far beyond what was
    /// read each MAX_DATA goes.
    pub receive_window: u64,
    /// The same of each stream.
    pub stream_window: u64,
    /// How many streams may be open at once.
    pub max_streams: u32,
    /// So many packets are acknowledged together, as the end that sends data asks after the handshake (draft-ietf-quic-ack-frequency);
    /// before that two (RFC 9000 section 13.2.2).
    pub ack_threshold: u16,
    /// How long an acknowledgement may wait (max_ack_delay).
    pub max_ack_delay: Span,
    /// Whether packets are ECN-capable.
    pub ecn: bool,
    /// How it begins.
    pub handshake: Handshake,
    /// After so long without a packet the connection is over; `None`: never (max_idle_timeout 0).
    pub idle_timeout: Option<Span>,
    /// Of a relay: bytes of frames of all its tracks that may wait to leave; `None`: it is none.
    pub queue: Option<u64>,
    /// What becomes of what the application writes.
    pub track: TrackConfig,
    /// The flow is a track of another's connection.
    pub is_led: bool,
    /// Bytes of a request: the receiver opens connections and asks for what it is sent, on a stream each; `None`: it does not.
    pub request: Option<u64>,
}

impl QuicConfig {
    /// A packet that with IPv4 and UDP takes 1500 bytes.
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

    /// Bytes of data that a full packet carries, far into a stream and with a packet number of two bytes.
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

    /// So many packets are acknowledged together before the other end asks for [`QuicConfig::ack_threshold`], which it has done where
    /// the handshake is over.
    #[must_use]
    pub(super) fn first_ack_threshold(&self) -> u16 {
        if self.handshake == Handshake::Done { self.ack_threshold } else { QuicConfig::ACK_THRESHOLD }
    }

    /// Bytes on the wire of a full packet.
    #[must_use]
    pub fn wire(&self) -> u16 {
        self.datagram.saturating_add(self.header)
    }

    /// What so much of full packets' datagrams is with the headers below them.
    pub(super) fn with_headers(&self, bits: f64) -> f64 {
        bits * f64::from(self.wire()) / f64::from(self.datagram)
    }
}

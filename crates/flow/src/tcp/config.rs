//! A connection's settings, with each profile's defaults.

use super::Requests;
use paceline_control::{Ecn, Profile, Recovery, Scheme, TcpController, WindowController};
use paceline_units::Span;

/// When partial acknowledgements restart the retransmission timer (RFC 6582 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartialAcks {
    /// The first one only: many losses end in a timeout.
    Impatient,
    /// Each one: recovery takes a round trip per loss.
    SlowButSteady,
}

/// The settings of a connection, for both its ends.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpConfig {
    /// Whose behaviour.
    pub profile: Profile,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// Payload of a full segment in bytes.
    pub segment: u16,
    /// Header bytes beside the payload.
    pub header: u16,
    /// Bytes of an acknowledgement without SACK blocks, and of a SYN.
    pub ack_size: u16,
    /// Initial window in segments.
    pub initial_window: u32,
    /// The receiver's window in segments.
    pub receive_window: u32,
    /// Profile `linux`: the most memory in bytes that the receive buffer may take while it is tuned (`tcp_rmem[2]`); `None`:
    /// it does not bound the window.
    pub receive_buffer: Option<u64>,
    /// Profile `linux`: the most memory in bytes that the send buffer may take (`tcp_wmem[2]`); `None`: it does not bound what
    /// is outstanding.
    pub send_buffer: Option<u64>,
    /// How long an acknowledgement may wait for a second segment; `None`: each segment is acknowledged at once.
    pub delayed_ack: Option<Span>,
    /// NewReno's variant.
    pub partial_acks: PartialAcks,
    /// New segments on the first two duplicates (RFC 3042).
    pub limited_transmit: bool,
    /// Explicit congestion notification (RFC 3168), and how marks are told.
    pub ecn: Ecn,
    /// With SACK under profile `rfc`: the window shrinks to ssthresh over a round trip (proportional rate reduction, RFC 9937), in
    /// place of at once (RFC 6675 section 5).
    pub prr: bool,
    /// Where losses are found by time: the segments of a window leave one by one, as under Linux' `fq`.
    pub pacing: bool,
    /// A SYN and its acknowledgement come first.
    pub handshake: bool,
    /// Least retransmission timeout.
    pub min_rto: Span,
    /// Greatest retransmission timeout.
    pub max_rto: Span,
    /// Retransmission timeout before the first round-trip sample.
    pub initial_rto: Span,
    /// Sending waits for a random time up to this (ns-2's `overhead_`); zero: not at all.
    pub send_overhead: Span,
    /// The last segment of a write is filled up to a full one, as ns-2 counts whole packets.
    pub whole_segments: bool,
    /// The receiver opens connections and asks for what it is sent.
    pub requests: Option<Requests>,
}

impl TcpConfig {
    /// The defaults of `profile` for `scheme` (docs/profiles.md); one that does not ride on TCP is taken for NewReno.
    #[must_use]
    pub fn new(profile: Profile, scheme: &Scheme) -> TcpConfig {
        let rfc = TcpConfig {
            profile,
            recovery: scheme.recovery(profile).unwrap_or(Recovery::NewReno),
            segment: 1460,
            header: 40,
            ack_size: 40,
            initial_window: 3, // RFC 5681 section 3.1 for 1095 < SMSS <= 2190
            receive_window: 1 << 30,
            receive_buffer: None,
            send_buffer: None,
            delayed_ack: Some(Span::from_millis(200)),
            partial_acks: PartialAcks::Impatient,
            limited_transmit: true,
            ecn: TcpController::new(scheme, profile, &[]).map_or(Ecn::Off, |controller| controller.needs().ecn),
            prr: false,
            pacing: false,
            handshake: true,
            min_rto: Span::from_secs(1),
            max_rto: Span::from_secs(60),
            initial_rto: Span::from_secs(1),
            send_overhead: Span::ZERO,
            whole_segments: false,
            requests: None,
        };
        match profile {
            Profile::Rfc => rfc,
            Profile::Linux => TcpConfig {
                segment: 1448, // with time stamps (RFC 7323)
                header: 52,
                ack_size: 52,
                initial_window: 10,             // RFC 6928
                receive_buffer: Some(32 << 20), // since 6.16; 6 MiB before
                send_buffer: Some(4 << 20),
                delayed_ack: Some(Span::from_millis(40)),
                min_rto: Span::from_millis(200),
                max_rto: Span::from_secs(120),
                ..rfc
            },
            Profile::Ns2 | Profile::Ns2Linux => TcpConfig {
                segment: 1000,
                header: 0,
                initial_window: 2,
                delayed_ack: None,
                min_rto: Span::from_millis(200),
                initial_rto: Span::from_secs(3),
                whole_segments: true,
                ..rfc
            },
        }
    }

    /// Whether the first segment is a SYN without payload. ns-2's Vegas has no SYN: its first segment is data.
    #[must_use]
    pub fn bare_syn(&self) -> bool {
        self.handshake && !(self.profile == Profile::Ns2 && self.recovery == Recovery::Vegas)
    }

    /// Whether the SYN and its answer say what both ends have of ECN (RFC 9768 section 3.1); else both are taken to have what is
    /// set. ns-2's do not.
    #[must_use]
    pub fn negotiates(&self) -> bool {
        self.bare_syn() && matches!(self.profile, Profile::Rfc | Profile::Linux)
    }

    /// Whether the receiver reports blocks that arrived out of order.
    #[must_use]
    pub fn sack(&self) -> bool {
        self.recovery == Recovery::Sack || self.rack() || self.profile == Profile::Ns2Linux
    }

    /// Whether losses are found by time, and reported twice arrivals are told (RFC 8985, RFC 2883).
    #[must_use]
    pub fn rack(&self) -> bool {
        self.recovery == Recovery::Rack || self.profile == Profile::Linux
    }

    /// Bytes on the wire of a full segment.
    #[must_use]
    pub fn wire(&self) -> u16 {
        self.segment.saturating_add(self.header)
    }
}

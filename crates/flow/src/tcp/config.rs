//! TCP settings, with each profile's defaults.

use super::Requests;
use paceline_control::{Ecn, Profile, Recovery, Scheme, TcpController, WindowController};
use paceline_units::Span;

/// When partial acknowledgements restart the retransmission timer (RFC 6582 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartialAcks {
    /// Only the first one: many losses end in a timeout.
    Impatient,
    /// Each one: recovery takes a round trip per loss.
    SlowButSteady,
}

/// The settings of a connection, for both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpConfig {
    /// The implementation whose behaviour is modelled.
    pub profile: Profile,
    /// The loss recovery.
    pub recovery: Recovery,
    /// Payload of a full segment in bytes.
    pub segment: u16,
    /// Header bytes of a data segment.
    pub header: u16,
    /// Bytes of an acknowledgement without SACK blocks, and of a SYN.
    pub ack_size: u16,
    /// Initial window in segments.
    pub initial_window: u32,
    /// The receiver's window in segments.
    pub receive_window: u32,
    /// Profile `linux`: the maximum size in bytes to which the receive buffer is tuned (`tcp_rmem[2]`); `None`: it does
    /// not limit the window.
    pub receive_buffer: Option<u64>,
    /// Profile `linux`: the maximum size in bytes of the send buffer (`tcp_wmem[2]`); `None`: it does not limit
    /// outstanding data.
    pub send_buffer: Option<u64>,
    /// How long an acknowledgement may wait for a second segment; `None`: each segment is acknowledged at once.
    pub delayed_ack: Option<Span>,
    /// NewReno's variant: which partial acknowledgements restart the timer.
    pub partial_acks: PartialAcks,
    /// Send new segments on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Explicit congestion notification (RFC 3168), and how marks are fed back.
    pub ecn: Ecn,
    /// With SACK under profile `rfc`: reduce the window to ssthresh over a round trip (proportional rate reduction, RFC
    /// 9937), instead of at once (RFC 6675 section 5).
    pub prr: bool,
    /// Where losses are found by time (RACK): pace the segments of a window, as under Linux' `fq`.
    pub pacing: bool,
    /// The connection begins with a SYN and its acknowledgement.
    pub handshake: bool,
    /// Minimum retransmission timeout.
    pub min_rto: Span,
    /// Maximum retransmission timeout.
    pub max_rto: Span,
    /// Retransmission timeout before the first round-trip sample.
    pub initial_rto: Span,
    /// Upper bound of a random delay before sending (ns-2's `overhead_`); zero: no delay.
    pub send_overhead: Span,
    /// Pad the last segment of a write to a full one, as ns-2 counts whole packets.
    pub whole_segments: bool,
    /// The receiver opens connections and sends requests for the data.
    pub requests: Option<Requests>,
}

impl TcpConfig {
    /// The defaults of `profile` for `scheme` (docs/profiles.md); a scheme that does not run over TCP gets NewReno's.
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
                segment: 1448, // with timestamps (RFC 7323)
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

    /// Whether the SYN and its answer negotiate ECN (RFC 9768 section 3.1). Otherwise, as in ns-2, both ends are taken
    /// to use the configured mode.
    #[must_use]
    pub fn negotiates(&self) -> bool {
        self.bare_syn() && matches!(self.profile, Profile::Rfc | Profile::Linux)
    }

    /// Whether the receiver sends SACK blocks.
    #[must_use]
    pub fn sack(&self) -> bool {
        self.recovery == Recovery::Sack || self.rack() || self.profile == Profile::Ns2Linux
    }

    /// Whether losses are found by time (RACK, RFC 8985), and duplicates are reported (DSACK, RFC 2883).
    #[must_use]
    pub fn rack(&self) -> bool {
        self.recovery == Recovery::Rack || self.profile == Profile::Linux
    }

    /// Size of a full segment on the wire in bytes.
    #[must_use]
    pub fn wire(&self) -> u16 {
        self.segment.saturating_add(self.header)
    }
}

//! The settings of a flow with per-packet acknowledgements, with each profile's defaults.

use paceline_control::{AckSettings, Profile};
use paceline_units::Span;

/// The settings of both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct AcksConfig {
    /// What the controller's parameters say of the machine.
    pub settings: AckSettings,
    /// Payload of a full packet in bytes.
    pub segment: u16,
    /// Header bytes beside the payload.
    pub header: u16,
    /// Bytes of an acknowledgement on the wire.
    pub ack_size: u16,
    /// Each gap between packets is longer by a draw from 0 to this (ns-2's `overhead_`).
    pub send_overhead: Span,
    /// The last packet of a write is filled up to a full one, as ns-2 counts whole packets.
    pub whole_segments: bool,
}

impl AcksConfig {
    /// The defaults of `profile` (docs/profiles.md): packets of 1500 bytes with the headers of IPv4, UDP and this
    /// project's format (docs/wire/acks.md); in ns-2 1000 bytes, headers not counted.
    #[must_use]
    pub const fn new(profile: Profile, settings: AckSettings) -> AcksConfig {
        let (segment, header, ack_size, whole_segments) = match profile {
            Profile::Rfc | Profile::Linux => (1456, 44, 56, false),
            Profile::Ns2 | Profile::Ns2Linux => (1000, 0, 44, true),
        };
        AcksConfig { settings, segment, header, ack_size, send_overhead: Span::ZERO, whole_segments }
    }

    /// Bytes on the wire of a full packet.
    #[must_use]
    pub const fn wire(&self) -> u16 {
        self.segment.saturating_add(self.header)
    }
}

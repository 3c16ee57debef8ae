//! Settings of per-packet acknowledgements, with each profile's defaults.

use paceline_control::{AckSettings, Profile};
use paceline_units::Span;

/// The settings of both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct AcksConfig {
    /// The controller's requirements.
    pub settings: AckSettings,
    /// Payload of a full packet in bytes.
    pub segment: u16,
    /// Header bytes of a data packet.
    pub header: u16,
    /// Size of an acknowledgement on the wire in bytes.
    pub ack_size: u16,
    /// Extends each gap between packets by a random time from 0 to this (ns-2's `overhead_`).
    pub send_overhead: Span,
    /// Pad the last packet of a write to a full one, as ns-2 counts whole packets.
    pub whole_segments: bool,
}

impl AcksConfig {
    /// The defaults of `profile` (docs/profiles.md): packets of 1500 bytes with the headers of IPv4, UDP and Paceline's
    /// format (docs/wire/acks.md); in ns-2, 1000 bytes without headers.
    #[must_use]
    pub const fn new(profile: Profile, settings: AckSettings) -> AcksConfig {
        let (segment, header, ack_size, whole_segments) = match profile {
            Profile::Rfc | Profile::Linux => (1456, 44, 56, false),
            Profile::Ns2 | Profile::Ns2Linux => (1000, 0, 44, true),
        };
        AcksConfig { settings, segment, header, ack_size, send_overhead: Span::ZERO, whole_segments }
    }

    /// Size of a full packet on the wire in bytes.
    #[must_use]
    pub const fn wire(&self) -> u16 {
        self.segment.saturating_add(self.header)
    }
}

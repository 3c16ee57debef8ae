//! TFRC settings, with each profile's defaults.

use paceline_control::{Profile, Settings};
use paceline_packet::wire::tfrc::FRAME_LEN;

/// The settings of a TFRC flow, for both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct TfrcConfig {
    /// The controller's requirements.
    pub settings: Settings,
    /// Payload of a full packet in bytes: the segment size s of the equation (RFC 5348 section 4.1).
    pub segment: u16,
    /// Header bytes of a data packet.
    pub header: u16,
    /// Size of a report on the wire in bytes.
    pub report_size: u16,
    /// Pad the last packet of a write to a full one, as ns-2 counts whole packets.
    pub whole_segments: bool,
    /// Each write is a video frame, and each packet says which part of a frame it carries, in four more header bytes.
    pub frames: bool,
    /// Packets are ECN-capable (RFC 3168); marks count as losses (RFC 5348 section 5.1).
    pub ecn: bool,
}

impl TfrcConfig {
    /// The defaults of `profile` for a controller with these settings (docs/controllers/tfrc.md).
    #[must_use]
    pub fn new(profile: Profile, settings: Settings) -> TfrcConfig {
        // identifies the connection within the flow
        let subflow = if settings.multiple_connections { 4 } else { 0 };
        let rfc = TfrcConfig {
            settings,
            segment: 1452 - subflow,
            header: 48 + subflow,      // IPv4, UDP, and Paceline's 20 bytes
            report_size: 72 + subflow, // and a report's 44
            whole_segments: false,
            frames: false,
            ecn: false,
        };
        match profile {
            Profile::Rfc | Profile::Linux => rfc,
            Profile::Ns2 | Profile::Ns2Linux => {
                TfrcConfig { segment: 1000, header: 0, report_size: 40, whole_segments: true, ..rfc }
            }
        }
    }

    /// Sets whether the flow carries video, and adapts the sizes.
    #[must_use]
    pub fn with_frames(self, frames: bool) -> TfrcConfig {
        let more = if frames { FRAME_LEN as u16 } else { 0 };
        TfrcConfig { frames, segment: self.segment - more, header: self.header + more, ..self }
    }

    /// Size of a full packet on the wire in bytes.
    #[must_use]
    pub fn wire(&self) -> u16 {
        self.segment.saturating_add(self.header)
    }
}

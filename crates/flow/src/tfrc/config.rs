//! A TFRC flow's settings, with each profile's defaults.

use paceline_control::{Profile, Settings};
use paceline_packet::wire::tfrc::FRAME_LEN;

/// The settings of a TFRC flow, for both its ends.
#[derive(Clone, PartialEq, Debug)]
pub struct TfrcConfig {
    /// What the controller's parameters say of the machine.
    pub settings: Settings,
    /// Payload of a full packet in bytes: the segment size s of the equation (RFC 5348 section 4.1).
    pub segment: u16,
    /// Header bytes beside the payload.
    pub header: u16,
    /// Bytes of a report on the wire.
    pub report_size: u16,
    /// The last packet of a write is filled up to a full one, as ns-2 counts whole packets.
    pub whole_segments: bool,
    /// Each write is a video frame, and each packet says which part of it is in it: four bytes more of header.
    pub frames: bool,
    /// Packets may be marked (RFC 3168); marks count as losses do (RFC 5348 section 5.1).
    pub ecn: bool,
}

impl TfrcConfig {
    /// The defaults of a flow of `profile` around a controller of these settings (docs/controllers/tfrc.md).
    #[must_use]
    pub fn new(profile: Profile, settings: Settings) -> TfrcConfig {
        // which of a flow's connections a packet is of
        let subflow = if settings.several { 4 } else { 0 };
        let rfc = TfrcConfig {
            settings,
            segment: 1452 - subflow,
            header: 48 + subflow,      // IPv4, UDP, and ours of 20 bytes
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

    /// The same of a flow that carries video, if it does.
    #[must_use]
    pub fn with_frames(self, frames: bool) -> TfrcConfig {
        let more = if frames { FRAME_LEN as u16 } else { 0 };
        TfrcConfig { frames, segment: self.segment - more, header: self.header + more, ..self }
    }

    /// Bytes on the wire of a full packet.
    #[must_use]
    pub fn wire(&self) -> u16 {
        self.segment.saturating_add(self.header)
    }
}

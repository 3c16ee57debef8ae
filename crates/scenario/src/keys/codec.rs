//! Voice codecs of a scenario file.

use crate::model::Impairment;
use paceline_units::{Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A voice codec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// G.711: 160 B every 20 ms.
    #[default]
    G711,
    /// G.722: 160 B every 20 ms.
    G722,
    /// G.723.1 at 6.3 kbit/s: 24 B every 30 ms.
    #[serde(rename = "g723")]
    G723,
    /// G.729: 20 B every 20 ms.
    G729,
    /// AMR at 12.2 kbit/s, octet-aligned: 33 B every 20 ms.
    Amr,
    /// Opus at 24 kbit/s: 60 B every 20 ms.
    Opus,
}

impl Codec {
    /// Payload per packet, and the packet interval.
    #[must_use]
    pub const fn packets(self) -> (Size, Span) {
        let (bytes, ms) = match self {
            Codec::G711 | Codec::G722 => (160, 20),
            Codec::G723 => (24, 30),
            Codec::G729 => (20, 20),
            Codec::Amr => (33, 20),
            Codec::Opus => (60, 20),
        };
        (Size::from_bytes(bytes), Span::from_millis(ms))
    }

    /// Its impairment with loss concealment (ITU-T G.113, appendix I: G.711 with its appendix I, G.723.1 and G.729A
    /// with VAD, GSM-EFR, which is AMR at 12.2 kbit/s). G.107 has no values for wideband codecs.
    #[must_use]
    pub const fn impairment(self) -> Option<Impairment> {
        let (equipment, robustness) = match self {
            Codec::G711 => (0.0, 25.1),
            Codec::G723 => (15.0, 16.1),
            Codec::G729 => (11.0, 19.0),
            Codec::Amr => (5.0, 10.0),
            Codec::G722 | Codec::Opus => return None,
        };
        Some(Impairment { equipment, robustness })
    }
}

//! Parts of an encoder's table in a scenario file: its pauses and bursts, and its receiver's jitter buffer.

use paceline_units::{Rate, Ratio, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A receiver's jitter buffer: frames are shown their mean delay and a margin after their capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterBuffer {
    /// Minimum margin.
    #[serde(default)]
    #[schemars(extend("x-max" = "10 s"))]
    pub min_margin: Span,
    /// Maximum margin. At least the minimum.
    #[serde(default = "default_max_margin")]
    #[schemars(extend("x-max" = "10 s"))]
    pub max_margin: Span,
    /// A key frame is requested (PLI, RFC 4585) when the next frame has been missing for this long after packets that
    /// follow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "3 s with `rtp.nack`, else 0 s", "x-max" = "1000 s"))]
    pub key_request_after: Option<Span>,
}

/// How sizes of frames are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JitterLaw {
    /// RFC 8593's: usually near the mean, occasionally far from it.
    #[default]
    Laplace,
    /// All sizes from 1 - `jitter` to 1 + `jitter` of the mean are equally likely.
    Uniform,
}

/// The frames of a sequence at one rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EncoderTrace {
    /// Payload rate; each higher than the one before.
    #[schemars(extend("x-min" = "1 kbit/s", "x-max" = "100 Gbit/s"))]
    pub rate: Rate,
    /// Path of the file, relative to the scenario file: one line per frame, with its size in bytes last; `%` and `#`
    /// begin comments. All files have the same number of frames.
    pub file: String,
}

/// What an encoder does when its rate changes abruptly (RFC 8593, section 5.2): frames of which the first is large, and that all
/// together have the share of the rate that is theirs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EncoderBurst {
    /// Size of the first frame, including all headers, unless a mean frame is larger (`K_B`).
    #[serde(default = "burst_size")]
    #[schemars(extend("x-min" = "1 B", "x-max" = "100 MB"))]
    pub size: Size,
    /// Number of frames that the effect lasts (`K_d`).
    #[serde(default = "eight_frames")]
    #[schemars(range(min = 2, max = 1000))]
    pub frames: u32,
    /// A change is abrupt if it exceeds this share of the previous rate.
    #[serde(default = "half")]
    pub change: Ratio,
}

const fn burst_size() -> Size {
    Size(13_500)
}
const fn eight_frames() -> u32 {
    8
}
const fn half() -> Ratio {
    Ratio(0.5)
}

/// A period in which nothing is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Start of the period.
    pub from: Span,
    /// End of the period; later than `from`.
    pub to: Span,
}

const fn default_max_margin() -> Span {
    Span::from_secs(10)
}

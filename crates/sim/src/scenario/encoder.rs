//! Parts of an encoder's table in a scenario file: its pauses and bursts, and its receiver's jitter buffer.

use paceline_units::{Rate, Ratio, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A receiver's jitter buffer: frames are shown their mean delay and a margin after their capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterBuffer {
    /// The least margin.
    #[serde(default)]
    #[schemars(extend("x-max" = "10 s"))]
    pub min_margin: Span,
    /// The greatest. At least the least.
    #[serde(default = "most_margin")]
    #[schemars(extend("x-max" = "10 s"))]
    pub max_margin: Span,
    /// A key frame is asked for (PLI, RFC 4585) when the next frame has been missing for so long after packets that follow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "3 s with `rtp.nack`, else 0 s", "x-max" = "1000 s"))]
    pub key_request_after: Option<Span>,
}

/// How sizes of frames are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JitterLaw {
    /// RFC 8593's: near the mean as a rule, now and then far from it.
    #[default]
    Laplace,
    /// Each size from 1 - `jitter` to 1 + `jitter` of the mean as often as another.
    Uniform,
}

/// The frames of a sequence at one rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EncoderTrace {
    /// That rate, of payload; each higher than the one before.
    #[schemars(extend("x-min" = "1 kbit/s", "x-max" = "100 Gbit/s"))]
    pub rate: Rate,
    /// Path of the file, relative to the scenario file: a line a frame, its size in bytes last; `%` and `#` begin comments. As many frames
    /// as the others have.
    pub file: String,
}

/// What an encoder does when its rate changes abruptly (RFC 8593, section 5.2): frames of which the first is large, and that all
/// together have the share of the rate that is theirs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EncoderBurst {
    /// The first frame, all headers counted, if a mean one is not larger (`K_B`).
    #[serde(default = "burst_size")]
    #[schemars(extend("x-min" = "1 B", "x-max" = "100 MB"))]
    pub size: Size,
    /// How many frames it has (`K_d`).
    #[serde(default = "eight_frames")]
    #[schemars(range(min = 2, max = 1000))]
    pub frames: u32,
    /// Abrupt is a change by more than this share of the rate before.
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

/// A time in which nothing is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Start of the period.
    pub from: Span,
    /// End of the period; later than `from`.
    pub to: Span,
}

const fn most_margin() -> Span {
    Span::from_secs(10)
}

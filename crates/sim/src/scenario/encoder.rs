//! Parts of an encoder's table in a scenario file: its pauses, and its receiver's jitter buffer.

use paceline_units::Span;
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

/// A time in which nothing is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Its beginning.
    pub from: Span,
    /// Its end; later than `from`.
    pub to: Span,
}

const fn most_margin() -> Span {
    Span::from_secs(10)
}

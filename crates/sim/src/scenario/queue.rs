//! Queue disciplines in a scenario file.

use super::values::Limit;
use paceline_units::{Ratio, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queue discipline and its limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-kind" = "droptail"))]
pub enum Queue {
    /// First in, first out; what finds the queue full is dropped.
    Droptail {
        /// The most that waits, in packets, in bytes, or as the time in which the link sends it (1 to 1000000000
        /// packets, 1 B to 1000 GB, 1 ns to 3600 s). A time is made bytes at the link's rate; of a rate that varies at
        /// the mean of what repeats, else at the first.
        #[serde(default = "hundred_packets")]
        limit: Limit,
    },
    /// Random early detection (Floyd and Jacobson 1993), as in ns-2.
    Red {
        /// The most that waits, in packets, in bytes, or as the time in which the link sends it (1 to 1000000000
        /// packets, 1 B to 1000 GB, 1 ns to 3600 s). A time is made bytes at the link's rate; of a rate that varies at
        /// the mean of what repeats, else at the first.
        #[serde(default = "hundred_packets")]
        limit: Limit,
        /// Average queue in packets below which nothing is dropped.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.001, max = 1e9), extend("x-default" = "from the link's rate, as in ns-2"))]
        min_threshold: Option<f64>,
        /// Average queue in packets above which all (gentle: ever more) is dropped. More than `min_threshold`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.001, max = 1e9), extend("x-default" = "3 x min_threshold"))]
        max_threshold: Option<f64>,
        /// Instead of `min_threshold`: a share of `limit`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        min_share: Option<Ratio>,
        /// Instead of `max_threshold`: a share of `limit`. More than `min_share`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        max_share: Option<Ratio>,
        /// Weight of the newest queue length in the average.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1e-9, max = 1.0), extend("x-default" = "from the link's rate, as in ns-2"))]
        weight: Option<f64>,
        /// Share dropped when the average reaches `max_threshold`.
        #[serde(default = "tenth")]
        #[schemars(range(min = 1e-9, max = 1.0))]
        max_p: f64,
        /// The share rises from max_p to 1 between max_threshold and twice that, instead of at once.
        #[serde(default = "yes")]
        gentle: bool,
        /// Spaces drops: none within half the mean distance after one.
        #[serde(default = "yes")]
        wait: bool,
        /// Whether a packet's chance to be dropped and the average queue count packets or bytes.
        #[serde(default)]
        mode: RedMode,
        /// Mean packet size, for idle time and byte mode.
        #[serde(default = "kilobyte")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mean_packet: Size,
        /// Marks ECN-capable packets instead of dropping them early (RFC 3168).
        #[serde(default)]
        ecn: bool,
        /// Marks only while the probability is below this share, and drops above it; see `ecn`.
        #[serde(default = "tenth_share")]
        mark_below: Ratio,
        /// Size of the packets that idle time counts as.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "as mean_packet", "x-min" = "1 B", "x-max" = "65535 B"))]
        idle_packet: Option<Size>,
        /// Moves max_p so that the average stays between the thresholds (Floyd, Gummadi, Shenker 2001); `{}` is enough.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none: max_p stays"))]
        adaptive: Option<AdaptiveRed>,
        /// Sets thresholds and weight from the link's rate, as ns-2 does; then none of them may be given.
        #[serde(default)]
        automatic: bool,
    },
    /// Holds everything; its length is not measured.
    Unlimited {},
}

/// How adaptive RED moves max_p: up while the average is in the upper two fifths between the thresholds, down while it is
/// in the lower two. Defaults are ns-2's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveRed {
    /// What is added to max_p, but no more than a quarter of it.
    #[serde(default = "hundredth")]
    #[schemars(range(min = 1e-9, max = 1.0))]
    pub increase: f64,
    /// What max_p is multiplied by on the way down.
    #[serde(default = "nine_tenths")]
    #[schemars(range(min = 1e-9, max = 1.0))]
    pub decrease: f64,
    /// The least time between changes.
    #[serde(default = "half_second")]
    #[schemars(extend("x-min" = "1 ns", "x-max" = "3600 s"))]
    pub interval: Span,
    /// The most that max_p grows to.
    #[serde(default = "half")]
    pub top: Ratio,
    /// The least that max_p falls to. Less than `top`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "1 %; above 8 Mbit/s one packet of 1000 B in 0.1 s"))]
    pub bottom: Option<Ratio>,
}

/// What RED counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RedMode {
    /// Packets.
    #[default]
    Packets,
    /// Bytes.
    Bytes,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::Droptail { limit: hundred_packets() }
    }
}

const fn hundred_packets() -> Limit {
    Limit::Packets(100)
}
const fn kilobyte() -> Size {
    Size::from_bytes(1000)
}
const fn tenth() -> f64 {
    0.1
}
const fn tenth_share() -> Ratio {
    Ratio(0.1)
}
const fn hundredth() -> f64 {
    0.01
}
const fn nine_tenths() -> f64 {
    0.9
}
const fn half() -> Ratio {
    Ratio(0.5)
}
const fn half_second() -> Span {
    Span::from_millis(500)
}
const fn yes() -> bool {
    true
}

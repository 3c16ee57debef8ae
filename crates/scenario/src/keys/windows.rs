//! How an access point lowers advertised windows, in a scenario file.

use paceline_path::access_point::{self, DelayOf, First, Law, SapLaw, Voap, VoapModel};
use paceline_units::{Rate, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an access point lowers the advertised windows of the TCP flows that it hands on to its stations (docs/wifi.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-kind" = "voap"))]
pub enum Windows {
    /// Vegas over access point (Massaro, Palazzi, Bujari): windows follow the longest wait in the queue.
    Voap {
        /// Wait below which limited windows grow by one segment. Not more than `beta`.
        #[serde(default = "five_ms")]
        #[schemars(extend("x-max" = "60 s"))]
        alpha: Span,
        /// Wait above which limited windows shrink by one segment, and flows join them.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-max" = "60 s"))]
        beta: Span,
        /// Interval between decisions.
        #[serde(default = "fifth_of_a_second")]
        #[schemars(extend("x-min" = "1 ms", "x-max" = "60 s"))]
        interval: Span,
        /// A flow with at most this number of segments outstanding does not join.
        #[serde(default = "ten")]
        #[schemars(range(min = 0.0, max = 1e6))]
        threshold: f64,
        /// Which wait counts.
        #[serde(default)]
        delay: WaitOf,
        /// Window of a flow that joins, in segments.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 2.0, max = 1e6), extend("x-default" = "its outstanding segments"))]
        first_window: Option<f64>,
        /// Whether a limited flow is ever released.
        #[serde(default)]
        leave: Leave,
        /// Which limited windows grow while the wait is short.
        #[serde(default)]
        growth: Growth,
    },
    /// Smart access point with low advertised window (Palazzi et al.): each flow gets its share of the channel's
    /// capacity beside UDP.
    SapLaw {
        /// Capacity of the channel, in packets as the links count them.
        #[schemars(extend("x-min" = "1 kbit/s", "x-max" = "1000 Gbit/s", "examples" = ["25 Mbit/s"]))]
        capacity: Rate,
        /// Round-trip time of flows whose handshake did not show it.
        #[serde(default = "hundred_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        rtt: Span,
        /// Interval between decisions.
        #[serde(default = "two_seconds")]
        #[schemars(extend("x-min" = "1 ms", "x-max" = "60 s"))]
        interval: Span,
        /// Factor on the rate of UDP.
        #[serde(default = "tenth_more")]
        #[schemars(range(min = 1.0, max = 10.0))]
        headroom: f64,
    },
    /// The same window for all flows.
    Fixed {
        /// Maximum of outstanding data.
        #[schemars(extend("x-min" = "1 B", "x-max" = "1 GB", "examples" = ["30 kB"]))]
        window: Size,
    },
}

/// Whose wait is held against the thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitOf {
    /// The longest of all packets in the access point's queue.
    #[default]
    Queue,
    /// The longest of the flow's own packets.
    Flow,
}

/// Whether a limited flow is ever released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Leave {
    /// Never: after a pause it continues with its previous window.
    #[default]
    Never,
    /// After an interval in which it sent nothing; it may join again.
    Idle,
}

/// Which limited windows grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// Those of all active flows.
    #[default]
    All,
    /// Those that are used up to the last segment.
    Used,
}

impl Windows {
    /// The law in crate `path`.
    #[must_use]
    pub fn law(&self) -> Law {
        match *self {
            Windows::Voap { alpha, beta, interval, threshold, delay, first_window, leave, growth } => {
                Law::Voap(Voap::new(VoapModel {
                    alpha,
                    beta,
                    interval,
                    threshold,
                    delay: match delay {
                        WaitOf::Queue => DelayOf::Queue,
                        WaitOf::Flow => DelayOf::Flow,
                    },
                    first: first_window.map_or(First::Outstanding, First::Segments),
                    leave: match leave {
                        Leave::Never => access_point::Leave::Never,
                        Leave::Idle => access_point::Leave::Idle,
                    },
                    growth: match growth {
                        Growth::All => access_point::Growth::All,
                        Growth::Used => access_point::Growth::Used,
                    },
                }))
            }
            Windows::SapLaw { capacity, rtt, interval, headroom } => {
                Law::SapLaw(SapLaw { interval, headroom, ..SapLaw::new(capacity, rtt) })
            }
            Windows::Fixed { window } => Law::Fixed(window.bytes()),
        }
    }
}

const fn five_ms() -> Span {
    Span::from_millis(5)
}
const fn fifteen_ms() -> Span {
    Span::from_millis(15)
}
const fn hundred_ms() -> Span {
    Span::from_millis(100)
}
const fn fifth_of_a_second() -> Span {
    Span::from_millis(200)
}
const fn two_seconds() -> Span {
    Span::from_secs(2)
}
const fn ten() -> f64 {
    10.0
}
const fn tenth_more() -> f64 {
    1.1
}

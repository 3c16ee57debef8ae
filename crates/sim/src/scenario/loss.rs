//! Random loss in a scenario file.

use paceline_units::{Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Random loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-kind" = "uniform"))]
pub enum Loss {
    /// Each packet is lost with the same probability, independently.
    Uniform {
        /// Probability of loss.
        rate: Ratio,
        /// Which packets.
        #[serde(default)]
        on: LossOn,
        /// Flows, or groups of flows, whose packets all pass.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        except: Option<Vec<String>>,
        /// Instead of `except`: flows, or groups of flows, whose packets alone it looks at.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "all"))]
        only: Option<Vec<String>>,
        /// The times in which packets are lost, in order and apart.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(extend("x-default" = "always"))]
        during: Vec<LossTime>,
    },
    /// Bursts counted in packets: a good and a bad state, and a chance to change it after each packet (Gilbert 1960,
    /// Elliott 1963).
    GilbertElliott {
        /// Probability of loss in the good state.
        #[serde(default = "nothing")]
        good_rate: Ratio,
        /// Probability of loss in the bad state.
        #[serde(default = "everything")]
        bad_rate: Ratio,
        /// Probability of a change from good to bad, per packet.
        to_bad: Ratio,
        /// Probability of a change from bad to good, per packet.
        to_good: Ratio,
        /// Which packets.
        #[serde(default)]
        on: LossOn,
        /// Flows, or groups of flows, whose packets all pass.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        except: Option<Vec<String>>,
        /// Instead of `except`: flows, or groups of flows, whose packets alone it looks at.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "all"))]
        only: Option<Vec<String>>,
        /// The times in which packets are lost, in order and apart.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(extend("x-default" = "always"))]
        during: Vec<LossTime>,
    },
    /// Bursts counted in time: a good and a bad state, each of a fixed period, and a chance to change it at a period's end
    /// (the TFRC Veno paper's model of a wireless link).
    TwoState {
        /// Probability of loss in the good state.
        #[serde(default = "hundred_thousandth")]
        good_rate: Ratio,
        /// Probability of loss in the bad state.
        bad_rate: Ratio,
        /// Length of a period in the good state.
        #[serde(default = "eight_seconds")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "1000000 s"))]
        good_time: Span,
        /// Length of a period in the bad state.
        #[serde(default = "four_seconds")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "1000000 s"))]
        bad_time: Span,
        /// Probability that the state changes at the end of a period. More than 0.
        #[serde(default = "nineteen_of_twenty")]
        change: Ratio,
        /// How the link begins.
        #[serde(default)]
        start: LossStart,
        /// Which packets.
        #[serde(default)]
        on: LossOn,
        /// Flows, or groups of flows, whose packets all pass.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        except: Option<Vec<String>>,
        /// Instead of `except`: flows, or groups of flows, whose packets alone it looks at.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "all"))]
        only: Option<Vec<String>>,
        /// The times in which packets are lost, in order and apart.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(extend("x-default" = "always"))]
        during: Vec<LossTime>,
    },
    /// Losses that are counted out: always so many packets in a row after so many that pass. Nothing is drawn.
    Periodic {
        /// So many packets pass.
        #[schemars(range(min = 1, max = 1000000000))]
        pass: u32,
        /// Then so many in a row are lost.
        #[serde(default = "one")]
        #[schemars(range(min = 1, max = 1000000))]
        lose: u32,
        /// Of these those alone that leave the queue no later than this after the first of them; the others pass.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "all", "x-min" = "1 ns", "x-max" = "60 s"))]
        within: Option<Span>,
        /// Which packets.
        #[serde(default)]
        on: LossOn,
        /// Flows, or groups of flows, whose packets all pass.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        except: Option<Vec<String>>,
        /// Instead of `except`: flows, or groups of flows, whose packets alone it looks at.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "all"))]
        only: Option<Vec<String>>,
        /// The times in which packets are lost, in order and apart.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(extend("x-default" = "always"))]
        during: Vec<LossTime>,
    },
}

impl Loss {
    /// Its `except` and its `only`.
    #[must_use]
    pub fn flows(&self) -> (Option<&[String]>, Option<&[String]>) {
        let (Loss::Uniform { except, only, .. }
        | Loss::GilbertElliott { except, only, .. }
        | Loss::TwoState { except, only, .. }
        | Loss::Periodic { except, only, .. }) = self;
        (except.as_deref(), only.as_deref())
    }

    /// When packets are lost; empty: always.
    #[must_use]
    pub fn during(&self) -> &[LossTime] {
        let (Loss::Uniform { during, .. }
        | Loss::GilbertElliott { during, .. }
        | Loss::TwoState { during, .. }
        | Loss::Periodic { during, .. }) = self;
        during
    }

    /// Whether it looks at the packets of a flow of this name and group.
    #[must_use]
    pub fn looks_at(&self, flow: &str, group: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == flow || name == group);
        let (except, only) = self.flows();
        !except.is_some_and(named) && only.is_none_or(named)
    }
}

/// A time in which packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossTime {
    /// Its beginning.
    pub from: Span,
    /// Its end; later than `from`.
    pub to: Span,
}

/// How a link with two states begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossStart {
    /// With a period of the good state: links of one model go bad together until their changes differ.
    #[default]
    Good,
    /// Somewhere within a period of either state, drawn for each link direction.
    Anywhere,
}

/// Which packets a loss model looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossOn {
    /// Data packets that cross the link in this direction.
    Data,
    /// Acknowledgements that cross the link in this direction.
    Acks,
    /// Both.
    #[default]
    All,
}

const fn one() -> u32 {
    1
}
const fn nothing() -> Ratio {
    Ratio::ZERO
}
const fn everything() -> Ratio {
    Ratio::ONE
}
const fn hundred_thousandth() -> Ratio {
    Ratio(0.00001)
}
const fn nineteen_of_twenty() -> Ratio {
    Ratio(0.95)
}
const fn eight_seconds() -> Span {
    Span::from_secs(8)
}
const fn four_seconds() -> Span {
    Span::from_secs(4)
}

//! Random loss in a scenario file.

use paceline_units::{Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Random loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-kind" = "uniform"))]
pub enum Loss {
    /// Each packet is lost independently with the same probability.
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
        /// Instead of `except`: the only flows, or groups of flows, that can lose packets.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "all"))]
        only: Option<Vec<String>>,
        /// Periods in which packets are lost, in order, without overlap.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(extend("x-default" = "always"))]
        during: Vec<LossTime>,
    },
    /// Bursts counted in packets: a good and a bad state, which may change after each packet (Gilbert 1960, Elliott
    /// 1963).
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
        /// Instead of `except`: the only flows, or groups of flows, that can lose packets.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "all"))]
        only: Option<Vec<String>>,
        /// Periods in which packets are lost, in order, without overlap.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(extend("x-default" = "always"))]
        during: Vec<LossTime>,
    },
    /// Bursts counted in time: a good and a bad state of fixed periods, which may change at a period's end (the TFRC
    /// Veno paper's model of a wireless link).
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
        /// State in which the link begins.
        #[serde(default)]
        start: LossStart,
        /// Which packets.
        #[serde(default)]
        on: LossOn,
        /// Flows, or groups of flows, whose packets all pass.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        except: Option<Vec<String>>,
        /// Instead of `except`: the only flows, or groups of flows, that can lose packets.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "all"))]
        only: Option<Vec<String>>,
        /// Periods in which packets are lost, in order, without overlap.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(extend("x-default" = "always"))]
        during: Vec<LossTime>,
    },
    /// Deterministic losses: `lose` packets in a row after each `pass` packets.
    Periodic {
        /// Number of packets that pass.
        #[schemars(range(min = 1, max = 1000000000))]
        pass: u32,
        /// Number of packets in a row that are then lost.
        #[serde(default = "one")]
        #[schemars(range(min = 1, max = 1000000))]
        lose: u32,
        /// Only those of them that leave the queue within this time of the first are lost; the others pass.
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
        /// Instead of `except`: the only flows, or groups of flows, that can lose packets.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "all"))]
        only: Option<Vec<String>>,
        /// Periods in which packets are lost, in order, without overlap.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(extend("x-default" = "always"))]
        during: Vec<LossTime>,
    },
}

impl Loss {
    /// Its keys `except` and `only`.
    #[must_use]
    pub fn flows(&self) -> (Option<&[String]>, Option<&[String]>) {
        let (Loss::Uniform { except, only, .. }
        | Loss::GilbertElliott { except, only, .. }
        | Loss::TwoState { except, only, .. }
        | Loss::Periodic { except, only, .. }) = self;
        (except.as_deref(), only.as_deref())
    }

    /// Time ranges in which packets are lost; empty means always.
    #[must_use]
    pub fn during(&self) -> &[LossTime] {
        let (Loss::Uniform { during, .. }
        | Loss::GilbertElliott { during, .. }
        | Loss::TwoState { during, .. }
        | Loss::Periodic { during, .. }) = self;
        during
    }

    /// Whether it covers a flow with this name and group.
    #[must_use]
    pub fn covers(&self, flow: &str, group: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == flow || name == group);
        let (except, only) = self.flows();
        !except.is_some_and(named) && only.is_none_or(named)
    }
}

/// A period in which packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossTime {
    /// Start of the period.
    pub from: Span,
    /// End of the period; later than `from`.
    pub to: Span,
}

/// How a link with two states begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossStart {
    /// A period of the good state: links of one model go bad together until their changes differ.
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

//! Loss recovery and ECN feedback of a TCP flow in a scenario file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How TCP finds and repairs losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Fast retransmit, then slow start (Jacobson 1988).
    Tahoe,
    /// Fast recovery that ends with the first new acknowledgement (RFC 2581).
    Reno,
    /// Fast recovery through partial acknowledgements (RFC 6582).
    Newreno,
    /// Selective acknowledgements (RFC 2018, RFC 6675).
    Sack,
    /// Vegas' fine-grained timeouts on duplicate acknowledgements (Brakmo and Peterson 1995).
    Vegas,
    /// RACK-TLP: losses are found by time (RFC 8985); windows shrink by proportional rate reduction.
    Rack,
}

impl Recovery {
    /// The algorithm in crate `control`.
    #[must_use]
    pub const fn control(self) -> paceline_control::Recovery {
        match self {
            Recovery::Tahoe => paceline_control::Recovery::Tahoe,
            Recovery::Reno => paceline_control::Recovery::Reno,
            Recovery::Newreno => paceline_control::Recovery::NewReno,
            Recovery::Sack => paceline_control::Recovery::Sack,
            Recovery::Vegas => paceline_control::Recovery::Vegas,
            Recovery::Rack => paceline_control::Recovery::Rack,
        }
    }

    /// From crate `control`.
    #[must_use]
    pub const fn from_control(recovery: paceline_control::Recovery) -> Recovery {
        match recovery {
            paceline_control::Recovery::Tahoe => Recovery::Tahoe,
            paceline_control::Recovery::Reno => Recovery::Reno,
            paceline_control::Recovery::NewReno => Recovery::Newreno,
            paceline_control::Recovery::Sack => Recovery::Sack,
            paceline_control::Recovery::Vegas => Recovery::Vegas,
            paceline_control::Recovery::Rack => Recovery::Rack,
        }
    }
}

/// NewReno's two variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewrenoVariant {
    /// Only the first partial acknowledgement restarts the timer.
    Impatient,
    /// Every partial acknowledgement restarts it.
    SlowButSteady,
}

/// How a TCP receiver reports marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnFeedback {
    /// One echo per window of data (RFC 3168).
    Classic,
    /// An echo for each segment (RFC 8257, section 3.2).
    Dctcp,
    /// A count in three bits (RFC 9768).
    Accurate,
}

impl EcnFeedback {
    /// The feedback in crate `control`.
    #[must_use]
    pub const fn control(self) -> paceline_control::Ecn {
        match self {
            EcnFeedback::Classic => paceline_control::Ecn::Classic,
            EcnFeedback::Dctcp => paceline_control::Ecn::Dctcp,
            EcnFeedback::Accurate => paceline_control::Ecn::Accurate,
        }
    }

    /// From crate `control`; `None` without ECN.
    #[must_use]
    pub const fn from_control(ecn: paceline_control::Ecn) -> Option<EcnFeedback> {
        match ecn {
            paceline_control::Ecn::Off => None,
            paceline_control::Ecn::Classic => Some(EcnFeedback::Classic),
            paceline_control::Ecn::Dctcp => Some(EcnFeedback::Dctcp),
            paceline_control::Ecn::Accurate => Some(EcnFeedback::Accurate),
        }
    }
}

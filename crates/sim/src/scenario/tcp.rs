//! How a flow of TCP repairs losses, in a scenario file.

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
}

impl Recovery {
    /// The same in crate `control`.
    #[must_use]
    pub const fn control(self) -> paceline_control::Recovery {
        match self {
            Recovery::Tahoe => paceline_control::Recovery::Tahoe,
            Recovery::Reno => paceline_control::Recovery::Reno,
            Recovery::Newreno => paceline_control::Recovery::NewReno,
            Recovery::Sack => paceline_control::Recovery::Sack,
            Recovery::Vegas => paceline_control::Recovery::Vegas,
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

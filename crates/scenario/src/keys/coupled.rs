//! Coupled flows in a scenario file.

use paceline_control::coupled::CoupledAlgorithm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flows of one group begin at one host, which shares among them what their controllers find (RFC 8699).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoupledTable {
    /// Name of the group.
    pub group: String,
    /// Share of the group's rate, relative to the priorities of the others. WebRTC's very-low, low, medium and high
    /// are 1, 2, 4 and 8 (RFC 8699, section 5.2).
    #[serde(default = "one")]
    #[schemars(range(min = 0.001, max = 1000.0))]
    pub priority: f64,
    /// How the group's rate follows one flow's change; the same for all of a group.
    #[serde(default)]
    pub algorithm: Algorithm,
}

/// How a group's rate follows what one flow finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// By the change of that flow's rate (section 5.3.1).
    #[default]
    Active,
    /// Down by the same share, then not again for two round trips (section 5.3.2).
    Conservative,
}

impl Algorithm {
    /// The algorithm in crate `control`.
    #[must_use]
    pub const fn control(self) -> CoupledAlgorithm {
        match self {
            Algorithm::Active => CoupledAlgorithm::Active,
            Algorithm::Conservative => CoupledAlgorithm::Conservative,
        }
    }
}

const fn one() -> f64 {
    1.0
}

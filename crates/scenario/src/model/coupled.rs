//! Coupled flows: a host shares among them what their controllers find (RFC 8699).

use paceline_control::coupled::CoupledAlgorithm;

/// A flow's part in its group.
#[derive(Clone, PartialEq, Debug)]
pub struct CoupledModel {
    /// Name of the group.
    pub group: String,
    /// Share of the group's rate, relative to the priorities of the others.
    pub priority: f64,
    /// How the group's rate follows one flow's change.
    pub algorithm: CoupledAlgorithm,
}

//! Bundles: flows that share one flow's connection or controller.

use super::FlowModel;
use paceline_control::allocation::Claim;

/// A flow's part in its bundle.
#[derive(Clone, PartialEq, Debug)]
pub struct BundleModel {
    /// Name of the leading flow: another's, or its own.
    pub leader: String,
    /// Its claim to the bundle's rate.
    pub claim: Claim,
}

impl FlowModel {
    /// Whether another flow leads it.
    #[must_use]
    pub fn is_led(&self) -> bool {
        self.bundle.as_ref().is_some_and(|bundle| bundle.leader != self.name)
    }

    /// Whether `leader` leads it.
    #[must_use]
    pub fn goes_with(&self, leader: &FlowModel) -> bool {
        let named = self.bundle.as_ref().is_some_and(|bundle| bundle.leader == leader.name);
        named && self.instance == leader.instance && self.is_led() && !leader.is_led()
    }
}

/// The number of each flow's connection; flows of a bundle have their leader's. `None` if there is no bundle.
#[must_use]
pub fn connections(flows: &[FlowModel]) -> Option<Vec<u32>> {
    let of = |(number, flow): (usize, &FlowModel)| {
        let leads = flow.is_led().then(|| flows.iter().position(|leader| flow.goes_with(leader)));
        leads.flatten().unwrap_or(number) as u32
    };
    flows.iter().any(FlowModel::is_led).then(|| flows.iter().enumerate().map(of).collect())
}

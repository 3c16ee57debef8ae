//! Relays: flows that send on what arrives on others.

use super::FlowModel;

/// The flow that a flow relays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelayModel {
    /// Its name.
    pub of: String,
    /// Index among its instances.
    pub instance: u32,
}

impl FlowModel {
    /// Whether it relays `other`.
    #[must_use]
    pub fn sends_on(&self, other: &FlowModel) -> bool {
        self.relay.as_ref().is_some_and(|relay| relay.of == other.name && relay.instance == other.instance)
    }
}

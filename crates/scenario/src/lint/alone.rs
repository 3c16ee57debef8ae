//! Warnings about groups and bundles of a single flow.

use super::Warnings;
use crate::error::join;
use crate::keys::flow::FlowTable;
use crate::model::Model;

impl Warnings<'_> {
    /// Warns about a group of a single flow.
    pub(super) fn coupled(&mut self, path: &str, flow: &FlowTable, model: &Model) {
        let Some(coupled) = &flow.coupled else { return };
        let of = model.flows.iter().filter(|of| of.coupled.as_ref().is_some_and(|other| other.group == coupled.group));
        if of.count() == 1 {
            self.note(join(path, "coupled"), format!("has no effect: no other flow is of group `{}`", coupled.group));
        }
    }

    /// Warns about a bundle of a single flow.
    pub(super) fn bundle(&mut self, path: &str, name: &str, flow: &FlowTable) {
        if flow.bundle.is_some() && flow.leader().is_none() && !self.file.leads(name) {
            self.note(
                join(path, "bundle"),
                "has no effect: no other flow goes with this one (`bundle.with`)".to_owned(),
            );
        }
    }
}

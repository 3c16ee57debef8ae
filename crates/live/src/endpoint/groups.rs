//! The coupled flows of a driver (RFC 8699): those that were requested together and name the same group.

use super::flow::Flow;
use super::port::Port;
use crate::session::{Input, Outbox, Session};
use paceline_sim::coupling::Group;
use paceline_units::Time;
use std::collections::BTreeMap;

/// The requesting client, as far as a server distinguishes clients, and the group's name.
type Name = (usize, String);

/// The groups of a driver.
#[derive(Default)]
pub(super) struct Groups {
    of: BTreeMap<Name, Group>,
}

/// The group of a flow; `None` for a receiver, and for a flow without a group.
fn name(flow: &Flow) -> Option<Name> {
    let coupled = flow.model.coupled.as_ref().filter(|_| matches!(flow.session, Session::Sender(_)))?;
    Some((flow.requester(), coupled.group.clone()))
}

/// Called when a flow leaves and `left` remain: removes the entry of a set of flows with its last member.
pub(super) fn forget<N: Ord, T>(of: &mut BTreeMap<N, T>, name: fn(&Flow) -> Option<N>, flow: &Flow, left: &[Flow]) {
    if let Some(gone) = name(flow)
        && !left.iter().any(|flow| name(flow).as_ref() == Some(&gone))
    {
        of.remove(&gone);
    }
}

/// Index of the flow with this id.
pub(super) fn place(id: u64, flows: &[Flow]) -> Option<usize> {
    flows.iter().position(|flow| flow.new.id == id)
}

impl Groups {
    /// Adds a flow.
    pub(super) fn enters(&mut self, flow: &Flow) {
        if let (Some(name), Some(coupled)) = (name(flow), &flow.model.coupled) {
            self.of.entry(name).or_insert_with(|| Group::new(coupled)).add(flow.new.id, coupled);
        }
    }

    /// Called when a flow leaves and `left` remain. Its share goes to the others at the next event of one of them.
    pub(super) fn leaves(&mut self, flow: &Flow, left: &[Flow]) {
        forget(&mut self.of, name, flow, left);
    }

    /// Handles an event of flow `at`: if its controller has changed its rate, all flows of its group get new rates.
    pub(super) fn on_event(
        &mut self,
        at: usize,
        now: Time,
        flows: &mut [Flow],
        out: &mut Outbox,
        ports: &mut [impl Port],
    ) {
        if self.of.is_empty() {
            return;
        }
        let Some(group) = name(&flows[at]).and_then(|name| self.of.get_mut(&name)) else { return };
        if !group.on_event(flows[at].new.id, now, |id| flows[place(id, flows)?].coupled_state(now)) {
            return;
        }
        for member in 0..group.len() {
            let Some((id, rate)) = group.share(member) else { continue };
            let Some(at) = place(id, flows) else { continue };
            flows[at].input(now, Input::Share(rate), out, ports);
            group.took(member, flows[at].coupled_state(now));
        }
    }
}

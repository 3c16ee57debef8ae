//! The bundles of a driver (WebRTC's BUNDLE): flows that were requested together, one of which leads. Information for
//! another flow's session is passed here as inputs, so that event logs contain it.

use super::flow::Flow;
use super::groups::{forget, place};
use super::port::Port;
use crate::session::{Bundled, Input, Outbox, Session};
use paceline_flow::rtp::{Grant, Waiting};
use paceline_sim::bundling::Division;
use paceline_units::{Rate, Time};
use std::collections::BTreeMap;

/// Maximum number of turns given per event: further ones follow immediately, but after other flows.
const MAX_TURNS: u32 = 256;

/// The requesting client, as far as a server distinguishes clients, whether this end sends, and the leading flow's
/// name.
type Name = (usize, bool, String);

/// A bundle, by its flows' ids: led flows keep their positions permanently.
#[derive(Default)]
struct Bundle {
    leader: Option<u64>,
    led: Vec<u64>,
    /// What each flow received last: its part and the grant, or the data waiting there.
    allotted: BTreeMap<u64, (Rate, Grant)>,
    waiting: BTreeMap<u64, Waiting>,
}

/// The bundles of a driver.
#[derive(Default)]
pub(super) struct Bundles {
    of: BTreeMap<Name, Bundle>,
}

/// The bundle of a flow; `None` if it has none.
fn name(flow: &Flow) -> Option<Name> {
    let leader = flow.model.bundle.as_ref()?.leader.clone();
    Some((flow.requester(), matches!(flow.session, Session::Sender(_)), leader))
}

impl Bundles {
    /// Adds a flow.
    pub(super) fn enters(&mut self, flow: &Flow) {
        let Some(name) = name(flow) else { return };
        let bundle = self.of.entry(name).or_default();
        if flow.model.is_led() {
            bundle.led.push(flow.new.id);
        } else {
            bundle.leader = Some(flow.new.id);
        }
    }

    /// Called when a flow leaves and `left` remain.
    pub(super) fn leaves(&mut self, flow: &Flow, left: &[Flow]) {
        forget(&mut self.of, name, flow, left);
    }

    /// Handles an event of flow `at`, for the other flows of its bundle.
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
        let Some(bundle) = name(&flows[at]).and_then(|name| self.of.get_mut(&name)) else { return };
        let Some(leader) = bundle.leader.and_then(|leader| place(leader, flows)) else { return };
        if let Session::Receiver(receiver) = &mut flows[at].session {
            if let Some(packet) = receiver.take_carried() {
                flows[leader].input(now, Input::Bundled(Bundled::Carry(packet)), out, ports);
            }
            return;
        }
        bundle.wait(at, leader, now, flows, out, ports);
        bundle.turns(leader, now, flows, out, ports);
        bundle.divide(leader, now, flows, out, ports);
    }
}

impl Bundle {
    /// Reports to the leader what waits at flow `at`, unless that is the leader.
    fn wait(
        &mut self,
        at: usize,
        leader: usize,
        now: Time,
        flows: &mut [Flow],
        out: &mut Outbox,
        ports: &mut [impl Port],
    ) {
        let id = flows[at].new.id;
        let Some(place) = self.led.iter().position(|led| *led == id) else { return };
        let waiting = flows[at].waiting();
        if self.waiting.insert(id, waiting) != Some(waiting) {
            flows[leader].input(now, Input::Bundled(Bundled::Others(place as u32, waiting)), out, ports);
        }
    }

    /// Gives the turns that the leader has for other flows.
    fn turns(&mut self, leader: usize, now: Time, flows: &mut [Flow], out: &mut Outbox, ports: &mut [impl Port]) {
        for _ in 0..MAX_TURNS {
            let Some((number, turn)) = flows[leader].turn() else { return };
            let led = self.led.get(number).copied();
            let (sent, waiting) = match led.and_then(|led| place(led, flows)) {
                None => (None, Waiting::NOTHING),
                Some(at) => {
                    flows[at].input(now, Input::Bundled(Bundled::Turn(turn)), out, ports);
                    (flows[at].take_sent(), flows[at].waiting())
                }
            };
            if let Some(led) = led {
                self.waiting.insert(led, waiting);
            }
            flows[leader].input(now, Input::Bundled(Bundled::Took(sent, waiting)), out, ports);
        }
    }

    /// Divides the rate that the leader's controller allows, and passes changed parts to their flows.
    fn divide(&mut self, leader: usize, now: Time, flows: &mut [Flow], out: &mut Outbox, ports: &mut [impl Port]) {
        let Some(grant) = flows[leader].grant() else { return };
        let led = self.led.iter().filter_map(|led| place(*led, flows));
        let members: Vec<usize> = std::iter::once(leader).chain(led).collect();
        let claims = members.iter().filter_map(|at| Some(flows[*at].model.bundle.as_ref()?.claim)).collect();
        let demands: Vec<f64> = members.iter().map(|at| flows[*at].demand(now)).collect();
        let parts = Division::new(claims).parts(grant.target, &demands);
        for (at, part) in members.iter().zip(parts) {
            let Some(part) = part else { continue };
            if self.allotted.insert(flows[*at].new.id, (part, grant)) != Some((part, grant)) {
                flows[*at].input(now, Input::Bundled(Bundled::Allot(part, grant)), out, ports);
            }
        }
    }
}

//! Coupled flows of a host: a group shares the rates that its controllers calculate (RFC 8699).

use paceline_control::coupled::FlowStateExchange;
use paceline_scenario::model::{CoupledModel, FlowModel};
use paceline_units::{Rate, Span, Time};

/// The state that a source shares with its group; rates in bit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoupledState {
    /// The rate calculated by its controller.
    pub calculated: f64,
    /// Maximum rate that its application and its controller's bounds allow; infinite if neither limits it.
    pub desired: f64,
    /// Its round-trip time.
    pub rtt: Span,
}

/// A group of sources, identified by numbers.
#[derive(Debug)]
pub struct Group {
    exchange: FlowStateExchange,
    members: Vec<Member>,
}

/// A source of a group.
#[derive(Clone, Copy, Debug)]
struct Member {
    source: u64,
    /// Its controller's first rate, once it has started.
    first: Option<f64>,
}

impl Group {
    /// A group without members, with the algorithm of its first flow.
    #[must_use]
    pub fn new(first: &CoupledModel) -> Group {
        Group { exchange: FlowStateExchange::new(first.algorithm), members: Vec::new() }
    }

    /// Adds a source.
    pub fn add(&mut self, source: u64, coupled: &CoupledModel) {
        self.exchange.add(coupled.priority);
        self.members.push(Member { source, first: None });
    }

    /// Handles an event of a source; `state_of` returns the state of any member, `None` for one that sends nothing now.
    /// Returns whether all members have new rates, because the source's controller calculated another rate than it was
    /// given.
    pub fn on_event(&mut self, source: u64, now: Time, state_of: impl Fn(u64) -> Option<CoupledState>) -> bool {
        let mut own = None;
        for (place, member) in self.members.iter_mut().enumerate() {
            let Some(state) = state_of(member.source) else {
                self.exchange.remove(place);
                continue;
            };
            self.exchange.desire(place, state.desired);
            if !self.exchange.has(place) {
                self.exchange.register(place, *member.first.get_or_insert(state.calculated));
            }
            if member.source == source {
                own = Some((place, state));
            }
        }
        let Some((place, state)) = own else { return false };
        let found = state.calculated != self.exchange.rate(place);
        if found {
            self.exchange.update(place, state.calculated, state.rtt, now);
        }
        found
    }

    /// Number of members, including those that have left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether no member was ever added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// A member and its new rate; `None` if it sends nothing now.
    #[must_use]
    pub fn share(&self, place: usize) -> Option<(u64, Rate)> {
        self.exchange.has(place).then(|| (self.members[place].source, Rate(self.exchange.rate(place) as u64)))
    }

    /// Reports the rate that a member made of its share, within its own bounds.
    pub fn took(&mut self, place: usize, reported: Option<CoupledState>) {
        if let Some(state) = reported {
            self.exchange.set_actual_rate(place, state.calculated);
        }
    }
}

/// The groups of a host in the simulator.
#[derive(Debug)]
pub struct Coupling {
    groups: Vec<(String, Group)>,
    /// For each source, its group.
    of: Vec<Option<usize>>,
}

impl Coupling {
    /// For a host with these senders, numbered from 0; `None` if none is coupled.
    #[must_use]
    pub fn of(flows: &[&FlowModel]) -> Option<Box<Coupling>> {
        let mut coupling = Coupling { groups: Vec::new(), of: vec![None; flows.len()] };
        for (source, flow) in flows.iter().enumerate() {
            let Some(coupled) = &flow.coupled else { continue };
            let known = coupling.groups.iter().position(|(name, _)| *name == coupled.group);
            let at = known.unwrap_or_else(|| {
                coupling.groups.push((coupled.group.clone(), Group::new(coupled)));
                coupling.groups.len() - 1
            });
            coupling.groups[at].1.add(source as u64, coupled);
            coupling.of[source] = Some(at);
        }
        (!coupling.groups.is_empty()).then(|| Box::new(coupling))
    }

    /// The group of a source.
    pub fn group(&mut self, source: usize) -> Option<&mut Group> {
        self.of[source].map(|at| &mut self.groups[at].1)
    }
}

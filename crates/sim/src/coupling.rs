//! Coupled flows of a host: what one's controller finds is shared among all of its group (RFC 8699).

use crate::endpoint::Source;
use crate::model::FlowModel;
use paceline_control::coupled::FlowStateExchange;
use paceline_units::{Rate, Time};

/// The groups of a host.
#[derive(Debug)]
pub struct Coupling {
    groups: Vec<Group>,
    /// By source: its group and its place there.
    of: Vec<Option<(usize, usize)>>,
}

/// A group with its members.
#[derive(Debug)]
struct Group {
    exchange: FlowStateExchange,
    members: Vec<Member>,
}

/// A flow of a group.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// Its place among the host's sources.
    source: usize,
    /// Its controller's first rate, in bits a second, once it has started.
    first: Option<f64>,
}

impl Coupling {
    /// Of a host with these senders; `None` if none is coupled.
    #[must_use]
    pub fn of(flows: &[&FlowModel]) -> Option<Box<Coupling>> {
        let mut names: Vec<&str> =
            flows.iter().filter_map(|flow| Some(flow.coupled.as_ref()?.group.as_str())).collect();
        names.sort_unstable();
        names.dedup();
        let mut of = vec![None; flows.len()];
        let mut groups = Vec::with_capacity(names.len());
        for name in names {
            let all = flows.iter().enumerate().filter_map(|(source, flow)| Some((source, flow.coupled.as_ref()?)));
            let own: Vec<_> = all.filter(|(_, coupled)| coupled.group == name).collect();
            let Some((_, first)) = own.first() else { continue };
            let exchange =
                FlowStateExchange::new(first.algorithm.control(), own.iter().map(|(_, coupled)| coupled.priority));
            for (place, (source, _)) in own.iter().enumerate() {
                of[*source] = Some((groups.len(), place));
            }
            let members = own.iter().map(|(source, _)| Member { source: *source, first: None }).collect();
            groups.push(Group { exchange, members });
        }
        (!groups.is_empty()).then(|| Box::new(Coupling { groups, of }))
    }

    /// Something has happened to a source. If its controller has found another rate than it was given, all of its group have new
    /// ones: `share` gives a source its rate.
    pub fn exchange(
        &mut self,
        at: usize,
        now: Time,
        sources: &mut [Source],
        mut share: impl FnMut(&mut Source, usize, Rate),
    ) {
        let Some((group, place)) = self.of[at] else { return };
        let Group { exchange, members } = &mut self.groups[group];
        for (place, member) in members.iter_mut().enumerate() {
            let source = &sources[member.source];
            let demand = source.demand(now);
            let Some((rate, _)) = source.coupled().filter(|_| demand > 0.0) else {
                exchange.remove(place);
                continue;
            };
            exchange.desire(place, demand.min(rate.most));
            if !exchange.has(place) {
                exchange.register(place, *member.first.get_or_insert(rate.calculated));
            }
        }
        let Some((rate, rtt)) = sources[at].coupled().filter(|_| exchange.has(place)) else { return };
        if rate.calculated == exchange.rate(place) {
            return;
        }
        exchange.update(place, rate.calculated, rtt, now);
        for (place, member) in members.iter().enumerate() {
            if !exchange.has(place) {
                continue;
            }
            let source = &mut sources[member.source];
            share(source, member.source, Rate(exchange.rate(place) as u64));
            if let Some((took, _)) = source.coupled() {
                exchange.took(place, took.calculated);
            }
        }
    }
}

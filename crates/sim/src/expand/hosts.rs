//! Hosts with their access links, from the `[access]` table and flows' own values.

use crate::links::access_model;
use paceline_path::{Loss as PathLoss, On, Queue};
use paceline_random::Stream;
use paceline_scenario::Flow;
use paceline_scenario::draw::Draw;
use paceline_scenario::file::Profile;
use paceline_scenario::link::AccessTable;
use paceline_scenario::loss::Loss;
use paceline_scenario::model::{LinkDirection, Model, QueueReporting};
use paceline_units::{Rate, Ratio};

/// The access links, and the profile that decides how their queues count.
type HostAccess<'a> = (&'a AccessTable, Profile);

/// The host of a flow's sender, behind the node `from`.
pub(super) fn sending_host(
    model: &mut Model,
    flow: &Flow,
    instance: u32,
    from: usize,
    (access, profile): HostAccess<'_>,
) -> usize {
    let own = flow.access.clone().unwrap_or_default();
    let (rate, share) = own_access(flow, (own.rate.as_ref(), own.loss.as_ref()), instance, model.seed, "source");
    let access = AccessTable { rate: rate.or(access.rate), ..access.clone() };
    // One host for a whole coupled group or bundle.
    let (name, is_shared) = match &flow.coupled {
        Some(coupled) => (format!("coupled {}.source", coupled.group), true),
        None => (format!("{}[{instance}].source", flow.name), flow.bundle.is_some()),
    };
    if let Some(known) = model.nodes.iter().position(|known| is_shared && *known == name) {
        return known;
    }
    let host = host(model, name, from, &access, None, profile);
    set_access_loss(model, "up", share.filter(|_| flow.coupled.is_none()));
    host
}

/// The host of a flow's receiver, behind the node `to`.
pub(super) fn receiving_host(
    model: &mut Model,
    flow: &Flow,
    instance: u32,
    to: usize,
    (access, profile): HostAccess<'_>,
) -> usize {
    let name = format!("{}[{instance}].sink", flow.name);
    if let Some(known) = model.nodes.iter().position(|known| flow.bundle.is_some() && *known == name) {
        return known;
    }
    let (mut access, loss) = access.at_receivers();
    let own = flow.access.clone().unwrap_or_default().receiver.unwrap_or_default();
    let (rate, share) = own_access(flow, (own.rate.as_ref(), own.loss.as_ref()), instance, model.seed, "sink");
    access.rate = rate.or(access.rate);
    let shared = loss.filter(|loss| share.is_none() && loss.covers(&flow.name, &flow.group));
    let host = host(model, name, to, &access, shared.as_ref(), profile);
    set_access_loss(model, "down", share);
    host
}

/// The host of the relay at a node, shared by all flows that enter or leave the relay.
pub(super) fn relay_host(model: &mut Model, node: &str, (access, profile): HostAccess<'_>) -> usize {
    let name = format!("relay {node}");
    let known = model.nodes.iter().position(|known| *known == name);
    known.unwrap_or_else(|| {
        let router = model.node(node);
        host(model, name, router, access, None, profile)
    })
}

/// Adds a host at `router`, with its access link in both directions (`up` from the host, `down` towards it).
fn host(
    model: &mut Model,
    name: String,
    router: usize,
    access: &AccessTable,
    loss: Option<&Loss>,
    profile: Profile,
) -> usize {
    let host = model.add_node(name.clone());
    for (direction, from, to) in [(LinkDirection::UP, host, router), (LinkDirection::DOWN, router, host)] {
        let (link, own) = (format!("access {name}"), access_model(access, loss, profile));
        let limited = !matches!(own.queue, Queue::Unlimited);
        let reporting = if access.queue.is_some() && limited { QueueReporting::Always } else { QueueReporting::Never };
        model.links.push(LinkDirection {
            link,
            direction,
            from,
            to,
            model: own,
            cell: None,
            host: Some(host),
            reporting,
        });
    }
    host
}

/// Makes the access link that was added last lose this share of packets in a direction.
fn set_access_loss(model: &mut Model, direction: &str, share: Option<Ratio>) {
    let made = model.links.iter_mut().rev().take(2).find(|link| link.direction == direction);
    if let (Some(link), Some(rate)) = (made, share.filter(|share| *share > Ratio::ZERO)) {
        link.model.loss = Some(PathLoss::Uniform { rate, on: On::All });
        link.model.loss_during.clear(); // it belonged to the loss model that this one replaces
    }
}

/// A flow's own values at one of its ends: the instance's access rate and loss rate. `end` is part of the random
/// streams' names.
fn own_access(
    flow: &Flow,
    (rate, loss): (Option<&Draw<Rate>>, Option<&Draw<Ratio>>),
    instance: u32,
    seed: u64,
    end: &str,
) -> (Option<Rate>, Option<Ratio>) {
    let stream = |what: &str| Stream::new(seed, &format!("access {what} {}[{instance}].{end}", flow.name));
    let rate = rate.map(|rate| rate.of(instance, flow.count, stream("rate")));
    (rate, loss.map(|loss| loss.of(instance, flow.count, stream("loss"))))
}

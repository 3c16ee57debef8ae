//! Expands a scenario and a seed into a [`Model`]: hosts, access links, flow instances, and every per-run draw.

mod app;
mod hosts;
mod transport;

use crate::access_links;
use crate::bundling::rank_tracks;
use crate::graph::{Arc, Graph, GraphError};
use crate::links::{link_model, queue};
use crate::phases::delay_at_hosts;
use app::{app, playout, voice};
use hosts::{receiving_host, relay_host, sending_host};
use paceline_apps::Period;
use paceline_control::allocation::Claim;
use paceline_flow::Transport;
use paceline_packet::FlowId;
use paceline_path::wifi::{Access, Category, Edca};
use paceline_path::{FlowSet, Hosts, LinkModel, Queue};
use paceline_random::Stream;
use paceline_scenario::cell::CellTable;
use paceline_scenario::draw::Draw;
use paceline_scenario::file::Profile;
use paceline_scenario::flow::{AccessCategory, App};
use paceline_scenario::loss::Loss;
use paceline_scenario::model::{
    BundleModel, CellInstance, CoupledModel, Delays, FlowModel, LinkDirection, Model, Path, QueueReporting, RelayModel,
};
use paceline_scenario::queue::Queue as QueueKey;
use paceline_scenario::windows::Windows;
use paceline_scenario::{Flow, Scenario, join};
use paceline_units::{Rate, Size, Span, Time};
use std::collections::BTreeSet;
use transport::transport;

/// Why a valid scenario still cannot run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExpandError {
    /// A controller or parameter is unknown, or out of range.
    #[error("{}: {problem}", join("flow", .flow))]
    Controller {
        /// The flow.
        flow: String,
        /// What is wrong.
        problem: String,
    },
    /// A fixed round-trip time is below the path's own.
    #[error("{}.rtt: `{rtt}` must be at least what the path itself has, {own}", join("flow", .flow))]
    ShortRtt {
        /// The flow.
        flow: String,
        /// The requested round-trip time.
        rtt: Span,
        /// The path's own round-trip time.
        own: Span,
    },
    /// A flow's ends are not connected.
    #[error("{}.to: there is no way from `{from}` to `{to}`; add a link between them", join("flow", .flow))]
    Unreachable {
        /// The flow.
        flow: String,
        /// Its source.
        from: String,
        /// Its destination.
        to: String,
    },
}

impl ExpandError {
    /// The key to change, with which the message begins.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            ExpandError::Controller { flow, .. } => join("flow", flow),
            ExpandError::ShortRtt { flow, .. } => join(&join("flow", flow), "rtt"),
            ExpandError::Unreachable { flow, .. } => join(&join("flow", flow), "to"),
        }
    }
}

/// Draws a run of `scenario` under `seed`.
///
/// # Errors
/// Errors that only the whole graph shows: unreachable ends, or in a graph a fixed `rtt` below the path's own.
pub fn expand(scenario: &Scenario, seed: u64) -> Result<Model, ExpandError> {
    let mut model = Model {
        name: scenario.name().to_owned(),
        seed,
        duration: scenario.duration(),
        warmup: scenario.warmup(),
        stop_after: Vec::new(),
        backpressure: scenario.access().is_some_and(|access| access.backpressure == Some(true)),
        rate_bin: scenario.rate_bin(),
        friendliness_to: scenario.friendliness_to().map(str::to_owned),
        nodes: Vec::new(),
        links: Vec::new(),
        cells: Vec::new(),
        flows: Vec::new(),
    };
    for link in scenario.links() {
        let (from, to) = (model.node(&link.from), model.node(&link.to));
        for (direction, from, to, way) in [("forward", from, to, &link.forward), ("backward", to, from, &link.backward)]
        {
            model.links.push(LinkDirection {
                link: link.name.clone(),
                direction,
                from,
                to,
                reporting: if matches!(way.queue, QueueKey::Unlimited {}) {
                    QueueReporting::Never
                } else {
                    QueueReporting::Always
                },
                model: LinkModel { loss_of: lossy(scenario, way.loss.as_ref()), ..link_model(way, scenario.profile()) },
                cell: None,
                host: None,
            });
        }
    }
    for (name, table) in scenario.cells() {
        add_cell(&mut model, name, table, scenario.profile());
    }
    let mut wishes = Vec::new();
    for flow in scenario.flows() {
        let leader = flow.leader().and_then(|leader| scenario.flows().iter().find(|flow| flow.name == leader));
        for instance in 0..flow.count {
            let index = model.flows.len();
            let made = instance_of(&mut model, scenario, (flow, leader), instance)?;
            model.flows.push(made);
            if scenario.stop_after() == Some(flow.name.as_str()) {
                model.stop_after.push(index);
            }
            wishes.push(flow.rtt.as_ref().map(|rtt| (rtt, flow.count)));
        }
    }
    rank_tracks(&mut model.flows);
    if let Some(problem) = coupled_apart(&model) {
        return Err(problem);
    }
    let paths = routes(&model)?;
    apply_rtt(&mut model, &paths, &wishes)?;
    delay_at_hosts(&mut model, &paths, scenario.host_delay());
    if let Some(access) = scenario.access() {
        access_links::of_access(&mut model, &paths, access);
    }
    set_hosts(&mut model);
    set_categories(&mut model, &paths, scenario);
    Ok(model)
}

/// Sets the access categories of each cell that carries a flow with a category.
fn set_categories(model: &mut Model, paths: &[Path], scenario: &Scenario) {
    for (number, cell) in model.cells.iter_mut().enumerate() {
        let crosses =
            |(there, back): &Path| there.iter().chain(back).any(|link| model.links[*link].cell == Some(number));
        let flows = || model.flows.iter().zip(paths).map(|(flow, path)| (flow, crosses(path)));
        if !flows().any(|(flow, crosses)| crosses && flow.category.is_some()) {
            continue;
        }
        let category = |flow: &FlowModel| flow.category.unwrap_or(Category::BestEffort);
        let used: BTreeSet<Category> =
            flows().filter(|(_, crosses)| *crosses).map(|(flow, _)| category(flow)).collect();
        let place = |category| used.iter().position(|used| *used == category).unwrap_or(0) as u8;
        let of_flow = model.flows.iter().map(|flow| place(category(flow))).collect();
        let table = scenario.cells().get(&cell.name);
        let phy = &cell.model.phy;
        let access = |category| {
            let usual = Access::standard(category, (phy.cw_min, phy.cw_max), table.is_some_and(CellTable::is_b));
            let own = table.and_then(|table| table.edca.as_ref()?.of(category));
            (category, own.map_or(usual, |own| own.access(usual)))
        };
        let mut unused = vec![true; cell.interfaces.len() * used.len()];
        for (flow, (there, back)) in model.flows.iter().zip(paths) {
            for link in there.iter().chain(back).filter(|link| model.links[**link].cell == Some(number)) {
                let way = link - cell.first_link;
                let device = if way % 2 == 0 { 0 } else { 1 + way / 2 };
                unused[device * used.len() + usize::from(place(category(flow)))] = false;
            }
        }
        cell.unused = unused;
        cell.model.edca = Some(Edca { categories: used.iter().copied().map(access).collect(), of_flow });
    }
}

/// Passes the nodes of each flow's ends to queues that share by host.
fn set_hosts(model: &mut Model) {
    let hosts = Hosts::Of(model.flows.iter().map(|flow| [flow.source as u32, flow.sink as u32]).collect());
    let of_cells = model.cells.iter_mut().flat_map(|cell| {
        let stations = cell.model.stations.iter_mut().map(|station| &mut station.queue);
        stations.chain([&mut cell.model.queue])
    });
    let queues = model.links.iter_mut().map(|link| &mut link.model.queue).chain(of_cells);
    queues.for_each(|queue| queue.set_hosts(&hosts));
}

/// Adds a cell, and the arcs over its channel.
fn add_cell(model: &mut Model, name: &str, table: &CellTable, profile: Profile) {
    let access_point = model.node(&table.access_point);
    let number = model.cells.len();
    model.cells.push(CellInstance {
        name: name.to_owned(),
        model: table.model(&|key, rate| queue(key, rate, profile)),
        interfaces: std::iter::once(&table.access_point).chain(table.station.keys()).cloned().collect(),
        unused: Vec::new(),
        law: table.windows.as_ref().map(Windows::law),
        first_link: model.links.len(),
    });
    for station in table.station.keys() {
        let station = model.node(station);
        for (direction, from, to) in [("down", access_point, station), ("up", station, access_point)] {
            let nothing = LinkModel::new(Rate(1), Span::ZERO, Queue::Unlimited);
            let link = name.to_owned();
            model.links.push(LinkDirection {
                link,
                direction,
                from,
                to,
                model: nothing,
                cell: Some(number),
                host: None,
                reporting: QueueReporting::Never,
            });
        }
    }
}

/// The flows that a loss model covers; `None` covers all.
fn lossy(scenario: &Scenario, loss: Option<&Loss>) -> Option<FlowSet> {
    let loss = loss.filter(|loss| loss.flows() != (None, None))?;
    let instances = scenario.flows().iter().flat_map(|flow| (0..flow.count).map(move |_| flow));
    let of = (0..).zip(instances).filter(|(_, flow)| loss.covers(&flow.name, &flow.group));
    Some(of.map(|(number, _)| FlowId(number)).collect())
}

/// A flow's claim in its bundle; `app` is the application whose data it carries.
fn bundle(flow: &Flow, app: &App, transport: &Transport) -> Option<BundleModel> {
    let table = flow.bundle.as_ref()?;
    let (min, max) = match app {
        App::Encoder { min_rate, max_rate, .. } => (min_rate.bps(), max_rate.bps()),
        App::Cbr { rate } | App::Video { rate, .. } => (rate.bps(), rate.bps()),
        app => match app.ticks() {
            Some((packet, interval)) => {
                let packet = app::voice_packet(packet, transport) + Size::from_bytes(transport.header().into());
                let rate = packet.bits() as f64 / interval.as_secs_f64();
                (rate, rate)
            }
            None => (0.0, f64::INFINITY),
        },
    };
    let leader = table.with.clone().unwrap_or_else(|| flow.name.clone());
    Some(BundleModel { leader, claim: Claim { min_rate: min, max_rate: max, priority: table.priority } })
}

/// An error if the flows of a coupled group do not all begin at one host.
fn coupled_apart(model: &Model) -> Option<ExpandError> {
    let coupled = || model.flows.iter().filter_map(|flow| Some((flow, &flow.coupled.as_ref()?.group)));
    coupled().find_map(|(flow, group)| {
        let (first, _) = coupled().find(|(_, other)| *other == group)?;
        let (own, other) = (&flow.ends.0, &first.ends.0);
        let problem =
            format!("coupled: it begins at `{own}` and `{}` of its group at `{other}`: one host is needed", first.name);
        (own != other).then(|| ExpandError::Controller { flow: flow.name.clone(), problem })
    })
}

fn instance_of(
    model: &mut Model,
    scenario: &Scenario,
    (flow, leader): (&Flow, Option<&Flow>),
    instance: u32,
) -> Result<FlowModel, ExpandError> {
    let access = scenario.access().map(|access| (access, scenario.profile()));
    let label = format!("{}[{instance}]", flow.name);
    let (from, to) = (model.node(&flow.from), model.node(&flow.to));
    // A flow of a bundle uses the hosts of the flow that leads it.
    let owner = leader.unwrap_or(flow);
    let (source, sink) = match access {
        None => (from, to),
        Some(access) => {
            let source = match scenario.leaves_relay(&owner.name) {
                true => relay_host(model, &flow.from, access),
                false => sending_host(model, owner, instance, from, access),
            };
            let sink = match scenario.enters_relay(&owner.name) {
                true => relay_host(model, &flow.to, access),
                false => receiving_host(model, owner, instance, to, access),
            };
            (source, sink)
        }
    };
    let draws = Stream::new(model.seed, &format!("start {label}"));
    let start = Time::ZERO + flow.start.of(instance, flow.count, draws);
    let profile = flow.profile.control();
    let mut transport =
        transport(flow).map_err(|problem| ExpandError::Controller { flow: flow.name.clone(), problem })?;
    transport.belongs_to(&label);
    let period = Period { start, stop: flow.stop.map_or(Time::NEVER, |stop| Time::ZERO + stop) };
    let origin = scenario.origin(flow);
    let (app, stream, client) =
        app((flow, &origin.app), &transport, period, Stream::new(model.seed, &format!("app {label}")));
    Ok(FlowModel {
        name: flow.name.clone(),
        instance,
        group: flow.group.clone(),
        scheme: flow.cc.clone(),
        profile: profile.name(),
        ends: (flow.from.clone(), flow.to.clone()),
        source,
        sink,
        start,
        stop: period.stop,
        app,
        carries: flow.app.name(),
        client,
        stream,
        playout: playout(flow),
        rtt_drawn: flow.rtt.as_ref().is_some_and(Draw::is_drawn),
        sender_delay: Delays::default(),
        receiver_delay: Delays::default(),
        delays: flow.delays.unwrap_or(transport.name() == "udp"),
        coupled: flow.coupled.as_ref().map(|table| CoupledModel {
            group: table.group.clone(),
            priority: table.priority,
            algorithm: table.algorithm.control(),
        }),
        bundle: bundle(flow, &origin.app, &transport),
        relay: flow
            .relayed()
            .map(|of| RelayModel { of: of.to_owned(), instance: scenario.instance_relayed(of, instance) }),
        category: flow.access_category.map(AccessCategory::category),
        default_max_rate: flow.default_max_rate(),
        voice: voice(&flow.app),
        transport,
    })
}

/// Adds the delay that a flow's `rtt` needs beyond its path's to its source's access link, half in each direction.
fn apply_rtt(model: &mut Model, paths: &[Path], wishes: &[Option<(&Draw<Span>, u32)>]) -> Result<(), ExpandError> {
    for (flow, wish) in wishes.iter().enumerate() {
        let Some((wish, count)) = *wish else { continue };
        let own = model.propagation(&paths[flow]);
        let (there, back) = &paths[flow];
        let draws = Stream::new(model.seed, &format!("rtt {}", model.flows[flow].label()));
        let rtt = wish.of(model.flows[flow].instance, count, draws);
        if rtt < own && !wish.is_drawn() {
            return Err(ExpandError::ShortRtt { flow: model.flows[flow].name.clone(), rtt, own });
        }
        let missing = rtt - own;
        for (arc, part) in [(there.first(), missing / 2), (back.last(), missing - missing / 2)] {
            let arc = *arc.expect("the ends of a flow are different nodes");
            model.links[arc].model.propagation += part;
        }
    }
    Ok(())
}

/// The forward and return paths of all flows.
///
/// # Errors
/// A flow whose ends are not connected.
pub fn routes(model: &Model) -> Result<Vec<Path>, ExpandError> {
    arcs(model).route().map_err(|error| match error {
        GraphError::Unreachable(_, _, flow) => {
            let flow = &model.flows[flow];
            ExpandError::Unreachable { flow: flow.name.clone(), from: flow.ends.0.clone(), to: flow.ends.1.clone() }
        }
        GraphError::LoopWithoutDelay(_) => unreachable!("routing does not look for loops"),
    })
}

/// The graph, as far as routing needs it.
fn arcs(model: &Model) -> Graph {
    let arc = |link: &LinkDirection| Arc {
        from: link.from,
        to: link.to,
        delay: Span::ZERO,
        keeps_order: true,
        may_fold: true,
        is_polled: false,
        medium: link.cell,
    };
    Graph {
        nodes: model.nodes.len(),
        arcs: model.links.iter().map(arc).collect(),
        flows: model.flows.iter().map(|flow| (flow.source, flow.sink)).collect(),
        apart: BTreeSet::new(),
    }
}

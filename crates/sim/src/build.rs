//! Builds elements from a [`Model`]: hosts, links and cells at the places of the plan.

use crate::bundling::Bundling;
use crate::cell::CellElement;
use crate::coupling::Coupling;
use crate::endpoint::{Sink, Source};
use crate::graph::{Arc, Graph, GraphError, Plan, Planning, Taps, Unit};
use crate::host::{EndpointListeners, Host};
use crate::host_delay::Changes;
use crate::phases::hosts_apart;
use crate::port::{Backpressure, EmissionClock};
use crate::quic_events::QuicEventLog;
use crate::rate_variation::RateMeter;
use crate::recorder::{HostRecorder, Recording};
use crate::relaying::Relaying;
use crate::tap::Tap;
use paceline_engine::{Element, Engine, Fate, Hop, Inbox, Network};
use paceline_packet::{Extras, FlowId, Packet};
use paceline_path::{Keys, Limit, Link, Measure, Pipe, QdiscLink, RateModel};
use paceline_random::{Sequence, Stream};
use paceline_scenario::model::{LinkDirection, Model, connections};
use paceline_units::{Size, Span, Time};

/// A folded link.
#[derive(Debug)]
#[repr(align(64))]
pub enum Folded {
    /// A plain link; one cache line.
    Pipe(Pipe),
    /// Any other link. One variant, so that a single comparison tells a plain link from it.
    Other(Box<Other>),
}

/// A folded link that is not plain, or a tap.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "taps are there in captures alone")]
pub enum Other {
    /// A link with a queue, losses, or a varying rate.
    Link(Link),
    /// Captures the packets that pass.
    Tap(Tap),
}

const _: () = assert!(size_of::<Folded>() == 64, "a folded link is one cache line");

impl Hop for Folded {
    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet, extras: &Extras) -> Fate {
        match self {
            Folded::Pipe(pipe) => {
                pipe.admit(packet);
                Fate::Pass
            }
            Folded::Other(other) => match &mut **other {
                Other::Link(link) => match link.send(packet) {
                    Some(fate) => fate,
                    None => admit(link, packet),
                },
                Other::Tap(tap) => {
                    // A copy, for the same reason as in `admit`.
                    let copy = *packet;
                    tap.pass(&copy, extras);
                    Fate::Pass
                }
            },
        }
    }
}

/// [`Link::admit`] on a copy; the fields that a link changes are copied back. The packet itself then need not lie in
/// memory while it is passed on: fields written one by one and then copied as a whole stall the processor, which cannot
/// forward several small stores to one large load (18 of 116 ns per delivered packet).
#[inline(always)]
fn admit(link: &mut Link, packet: &mut Packet) -> Fate {
    let mut copy = *packet;
    let fate = link.admit(&mut copy);
    packet.time = copy.time;
    packet.flags = copy.flags;
    fate
}

/// Runs a batch through a link that is not folded. A separate function, so that the link has the registers to itself.
#[inline(never)]
fn run_link(link: &mut Link, packets: &mut [Packet], network: &mut Network<Folded>) {
    if link.admit_all(packets, |packet, reason| network.drop(*packet, reason, packet.time)) {
        for packet in packets {
            network.forward(packet);
        }
        return;
    }
    for packet in packets {
        let (mut packet, at) = (*packet, packet.time);
        match link.admit(&mut packet) {
            Fate::Pass => network.forward(&packet),
            fate => network.settle(fate, packet, at),
        }
    }
}

/// Runs a batch through a link that decides at departure. Packets that leave before an arrival are released before it.
#[inline(never)]
fn run_qdisc_link(link: &mut QdiscLink, until: Time, inbox: &mut Inbox, network: &mut Network<Folded>) {
    let packets = inbox.take(until, network.routes());
    let mut onward = |fate: Fate, packet: Packet, at: Time| match fate {
        Fate::Pass => network.forward(&packet),
        fate => network.settle(fate, packet, at),
    };
    for packet in packets {
        link.advance(Time(packet.time.0 + 1), &mut onward);
        link.arrive(*packet, &mut onward);
    }
    link.advance(until, &mut onward);
}

/// A link that has no place in the engine yet.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most are plain, and each is moved once")]
enum AnyLink {
    Plain(Link),
    Qdisc(Box<QdiscLink>),
}

/// An element: a host, a link that is not folded, or a shared medium.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // in one vector; boxing would cost a cache miss per visit
pub enum Node {
    /// A host.
    Host(Host),
    /// A link that is not folded.
    Link(Box<Link>),
    /// A link whose queue decides when a packet leaves.
    Qdisc(Box<QdiscLink>),
    /// An 802.11 cell.
    Cell(Box<CellElement>),
}

impl Element for Node {
    type Hop = Folded;

    #[inline(always)]
    fn run(&mut self, until: Time, inbox: &mut Inbox, network: &mut Network<Folded>) {
        match self {
            Node::Host(host) => host.run(until, inbox, network),
            Node::Link(link) => run_link(link, inbox.take(until, network.routes()), network),
            Node::Qdisc(link) => run_qdisc_link(link, until, inbox, network),
            Node::Cell(cell) => cell.run(until, inbox, network),
        }
    }

    #[inline(always)]
    fn next_wake(&self) -> Time {
        match self {
            Node::Host(host) => host.next_wake(),
            Node::Link(_) => Time::NEVER,
            Node::Qdisc(link) => link.next_wake(),
            Node::Cell(cell) => cell.next_wake(),
        }
    }
}

/// An engine ready to run, and the places of its parts.
#[derive(Debug)]
pub struct Built {
    /// The engine.
    pub engine: Engine<Node>,
    /// What each element and folded link stands for.
    pub plan: Plan,
    /// For each node, the element that is its host, if it has one.
    pub hosts: Vec<Option<usize>>,
}

/// Builds the engine of a model.
///
/// # Errors
/// A flow without a path to its sink; a loop of links without propagation delay.
pub fn build(model: &Model, recording: Recording, planning: Planning) -> Result<Built, GraphError> {
    let measure = Measure { from: Time::ZERO + model.warmup, to: Time::ZERO + model.duration };
    let end_is_known = model.stop_after.is_empty();
    let keys = connections(&model.flows).map_or(Keys::FlowAndDirection, |of| Keys::Connections(of.into()));
    let mut links: Vec<Option<AnyLink>> =
        model.links.iter().map(|direction| Some(link(direction, model.seed, (measure, &keys), recording))).collect();
    let graph = Graph {
        nodes: model.nodes.len(),
        arcs: model
            .links
            .iter()
            .zip(&links)
            .map(|(direction, link)| {
                let (delay, keeps_order, in_one_go) = match link.as_ref().expect("all links are still here") {
                    AnyLink::Plain(link) => (link.delay_floor(), link.keeps_order(), true),
                    AnyLink::Qdisc(link) => (link.delay_floor(), link.keeps_order(), false),
                };
                Arc {
                    from: direction.from,
                    to: direction.to,
                    delay: direction.cell.map_or(delay, |cell| model.cells[cell].model.min_delay()),
                    keeps_order,
                    // A folded link is evaluated ahead of the clock. If the run may end at any moment, the link could
                    // have been measured, and have dropped packets, beyond that end. An access link is only briefly
                    // ahead.
                    may_fold: in_one_go
                        && direction.cell.is_none()
                        && (end_is_known || direction.is_pipe() || is_polled(model, direction)),
                    is_polled: is_polled(model, direction),
                    medium: direction.cell,
                }
            })
            .collect(),
        flows: model.flows.iter().map(|flow| (flow.source, flow.sink)).collect(),
        apart: hosts_apart(model),
    };
    let mut plan = graph.plan(planning)?;
    let mut folded: Vec<Folded> = plan
        .folded
        .iter()
        .map(|&arc| {
            let direction = &model.links[arc].model;
            match direction.rate {
                RateModel::Constant(rate) if model.links[arc].is_pipe() => {
                    Folded::Pipe(Pipe::new(rate, direction.propagation))
                }
                _ => {
                    let Some(AnyLink::Plain(link)) = links[arc].take() else {
                        unreachable!("an arc stands in one place, and none that decides at departure is folded")
                    };
                    Folded::Other(Box::new(Other::Link(link)))
                }
            }
        })
        .collect();
    if planning.taps != Taps::None {
        folded.extend((0..model.nodes.len()).map(|node| Folded::Other(Box::new(Other::Tap(Tap::new(node))))));
    }
    let inboxes =
        plan.fan_in.iter().map(|&fan_in| if fan_in { Inbox::fan_in(Time(plan.window.0)) } else { Inbox::in_order() });
    let ways = std::mem::take(&mut plan.ways);
    let mut network = Network::new(inboxes.collect(), folded, ways, model.flows.len());
    network.measure(measure.from, measure.to);
    let mut hosts = vec![None; model.nodes.len()];
    let mut endpoints: Vec<(Vec<usize>, Vec<usize>)> = vec![Default::default(); model.nodes.len()];
    for (i, flow) in model.flows.iter().enumerate() {
        endpoints[flow.source].0.push(i);
        endpoints[flow.sink].1.push(i);
    }
    let mut elements = Vec::with_capacity(plan.units.len());
    for (i, unit) in plan.units.iter().enumerate() {
        elements.push(match *unit {
            Unit::Arc(arc) => match links[arc].take().expect("an arc stands in one place") {
                AnyLink::Plain(link) => Node::Link(Box::new(link)),
                AnyLink::Qdisc(link) => Node::Qdisc(link),
            },
            Unit::Medium(cell) => {
                let mut element = CellElement::new(model, cell, i, measure, recording);
                element.cell.set_flow_keys(&keys);
                Node::Cell(Box::new(element))
            }
            Unit::Host(node) => {
                hosts[node] = Some(i);
                Node::Host(host(model, recording, (&plan, planning.taps), node, &endpoints[node]))
            }
        });
    }
    Ok(Built { engine: Engine::new(elements, network, plan.window), plan, hosts })
}

/// One direction of a link.
fn link(direction: &LinkDirection, seed: u64, (measure, keys): (Measure, &Keys), recording: Recording) -> AnyLink {
    let (stream, record) = (direction.stream(seed), recording.queue && direction.is_recorded());
    if direction.model.queue.decides_at_departure() {
        let mut link = Box::new(QdiscLink::new(&direction.model, measure, keys.clone(), stream));
        if record {
            link.record(recording.every);
        }
        return AnyLink::Qdisc(link);
    }
    let mut link = Link::new(&direction.model, measure, stream);
    if record {
        link.record(recording.every);
    }
    AnyLink::Plain(link)
}

/// Whether senders poll how full this link is: their host's own uplink.
fn is_polled(model: &Model, direction: &LinkDirection) -> bool {
    model.backpressure && direction.is_access() && direction.direction == LinkDirection::UP
}

/// The backlog limit of these sources' host. There is none if its link's queue decides at departure: how long a packet
/// will wait is unknown when it arrives.
fn backpressure(model: &Model, plan: &Plan, sources: &[usize]) -> Backpressure {
    let &[source] = sources else { return Backpressure::NONE };
    let flow = &model.flows[source];
    let Some(&arc) = plan.paths[source].0.first().filter(|arc| plan.folded.binary_search(arc).is_ok()) else {
        return Backpressure::NONE;
    };
    let RateModel::Constant(rate) = model.links[arc].model.rate else { return Backpressure::NONE };
    // ns-2's agents send whatever their windows allow.
    if !is_polled(model, &model.links[arc]) || flow.profile.starts_with("ns2") {
        return Backpressure::NONE;
    }
    let size = Size::from_bytes(u64::from(flow.transport.segment()) + u64::from(flow.transport.header()));
    let packet = rate.time_for(size);
    let limit = match model.links[arc].model.queue.limit() {
        None => Span::MAX,
        Some(Limit::Packets(packets)) => Span(packet.0.saturating_mul(u64::from(packets))),
        Some(Limit::Bytes(Size(bytes))) => Span(packet.0.saturating_mul(bytes / size.0)), // whole packets
    };
    Backpressure::new(packet, model.links[arc].model.propagation, limit)
}

/// The host at `node` with these flows' sources and sinks.
fn host(
    model: &Model,
    recording: Recording,
    (plan, taps): (&Plan, Taps),
    node: usize,
    (sources, sinks): &(Vec<usize>, Vec<usize>),
) -> Host {
    let id = |i: usize| FlowId(i as u32);
    let flows = |of: &[usize]| of.iter().map(|&i| &model.flows[i]).collect::<Vec<_>>();
    let (sending, receiving) = (flows(sources), flows(sinks));
    let recorder = recording.at_hosts().then(|| Box::new(HostRecorder::new(recording, &sending, &receiving)));
    let meter = model.rate_bin.map(|bin| Box::new(RateMeter::new(bin, model.warmup, &sending, &receiving)));
    let draws = Sequence::new(Stream::new(model.seed, &format!("host {}", model.nodes[node])));
    let backpressure = backpressure(model, plan, sources);
    let apart = sources.iter().chain(sinks).copied().filter(|_| plan.apart.contains(&node));
    let sources: Vec<_> =
        sources.iter().map(|&i| Source::new(&model.flows[i], model.seed, id(i), plan.cursors[i].0)).collect();
    let sinks: Vec<_> =
        sinks.iter().map(|&i| Sink::new(&model.flows[i], model.seed, id(i), plan.cursors[i].1)).collect();
    let listeners = EndpointListeners {
        coupling: Coupling::of(&sending),
        bundling: Bundling::of(&sending, &receiving),
        relaying: Relaying::of(&sending, &receiving),
        quic_events: (taps == Taps::Ends).then(|| QuicEventLog::of(node, &sources, &sinks)).flatten(),
    };
    let (clock, changes) = (EmissionClock::new(draws, backpressure, apart.map(id)), Changes::of(&sending, &receiving));
    Host::new(sources, sinks, clock, listeners, recorder, meter, changes)
}

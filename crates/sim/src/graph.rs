//! Turns nodes, links and flows into compiled paths: routing, folding, and the edges between elements.
//!
//! Knows nothing about what links and hosts do; [`crate::build`] puts the real ones in place.

use paceline_engine::{Edge, RouteStep, Routes, RunOrder, schedule};
use paceline_scenario::model::Path;
use paceline_units::Span;
use std::collections::{BTreeSet, VecDeque};

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Arc {
    /// The node it leaves.
    pub from: usize,
    /// The node it enters.
    pub to: usize,
    /// Minimum time across it.
    pub delay: Span,
    /// Whether it delivers packets in order.
    pub keeps_order: bool,
    /// Whether it may be evaluated at the moment of emission.
    pub may_fold: bool,
    /// Whether its host polls how full it is. Such an arc is folded whenever it may be, whatever [`Fold`] says.
    pub is_polled: bool,
    /// The shared medium that the arc crosses, if any. Arcs of one medium are adjacent, are not folded, and have the
    /// same delay.
    pub medium: Option<usize>,
}

/// Nodes, arcs and flows.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Count of nodes.
    pub nodes: usize,
    /// Arcs. An arc's index is its id when ties are broken.
    pub arcs: Vec<Arc>,
    /// Source and sink node of each flow.
    pub flows: Vec<(usize, usize)>,
    /// Nodes whose hosts keep packets in order within each flow, but not across flows.
    pub apart: BTreeSet<usize>,
}

/// What an element stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// The host at this node.
    Host(usize),
    /// This arc alone.
    Arc(usize),
    /// This medium, with all its arcs.
    Medium(usize),
}

/// A graph that is ready to run.
#[derive(Debug)]
pub struct Plan {
    /// The elements, in the order in which they run within a window.
    pub units: Vec<Unit>,
    /// For each element, whether its inbox must sort (several sources, or one that reorders).
    pub fan_in: Vec<bool>,
    /// Folded arcs, indexed by the numbers that [`RouteStep::folded`] takes.
    pub folded: Vec<usize>,
    /// See [`Graph::apart`].
    pub apart: BTreeSet<usize>,
    /// Compiled paths.
    pub ways: Routes,
    /// For each flow, the initial cursors of its data and of its acknowledgements.
    pub cursors: Vec<(u32, u32)>,
    /// For each flow, its index among its source host's sources and among its sink host's sinks.
    pub endpoints: Vec<(u32, u32)>,
    /// For each flow, the arcs of its forward and return paths.
    pub paths: Vec<Path>,
    /// The window.
    pub window: Span,
}

/// How to plan. Runs use the defaults; tests compare them with other arrangements.
#[derive(Clone, Copy, Debug)]
pub struct Planning {
    /// Whether to fold arcs.
    pub fold: Fold,
    /// Upper bound of the window's length, if any.
    pub window: Option<Span>,
    /// What to capture.
    pub taps: Taps,
}

/// Where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taps {
    /// Nowhere.
    None,
    /// Where packets leave and reach hosts: each path begins and ends with an extra folded link, whose number is the
    /// count of folded arcs plus the node's number.
    Hosts,
    /// As `Hosts`, and the ends of QUIC flows log events.
    Ends,
}

/// Which arcs are folded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Every arc that can be.
    Possible,
    /// None.
    Nothing,
}

impl Default for Planning {
    fn default() -> Planning {
        Planning { fold: Fold::Possible, window: None, taps: Taps::None }
    }
}

/// Why a graph cannot run. Nodes and arcs are given by index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GraphError {
    /// There is no path from the first node to the second, for this flow.
    Unreachable(usize, usize, usize),
    /// Time cannot advance around this loop of arcs: none of them has a propagation delay.
    LoopWithoutDelay(Vec<usize>),
}

/// Where a unit's packets come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Feeder {
    Host(usize),
    Arc(usize),
    Medium(usize),
}

/// The sources that feed each arc outside media, each host, and each medium.
struct Feeders {
    arcs: Vec<BTreeSet<Feeder>>,
    hosts: Vec<BTreeSet<Feeder>>,
    media: Vec<BTreeSet<Feeder>>,
}

impl Feeders {
    fn of(&self, unit: Unit) -> &BTreeSet<Feeder> {
        match unit {
            Unit::Host(node) => &self.hosts[node],
            Unit::Arc(arc) => &self.arcs[arc],
            Unit::Medium(medium) => &self.media[medium],
        }
    }
}

impl Graph {
    /// Routes all flows (fewest links, then the link that stands first in the scenario), decides which arcs are folded,
    /// and orders the elements.
    ///
    /// # Errors
    /// An unreachable sink, or a loop without delay.
    pub fn plan(&self, planning: Planning) -> Result<Plan, GraphError> {
        let paths = self.route()?;
        let sources = self.sources(&paths);
        let folded: Vec<bool> = (0..self.arcs.len())
            .map(|arc| {
                (planning.fold == Fold::Possible || self.arcs[arc].is_polled)
                    && self.arcs[arc].may_fold
                    && sources.arcs[arc].len() == 1
                    && sources.arcs[arc].iter().all(|source| self.in_order(*source))
            })
            .collect();
        let mut units: Vec<Unit> = (0..self.nodes).filter(|&n| !sources.hosts[n].is_empty()).map(Unit::Host).collect();
        units.extend((0..self.arcs.len()).filter(|&a| !folded[a] && !sources.arcs[a].is_empty()).map(Unit::Arc));
        units.extend((0..sources.media.len()).filter(|&m| !sources.media[m].is_empty()).map(Unit::Medium));
        let schedule = self.order(&units, &folded, &sources, planning.window)?;
        let units: Vec<Unit> = schedule.order.iter().map(|&i| units[i]).collect();
        let fan_in = units
            .iter()
            .map(|unit| {
                let sources = sources.of(*unit);
                sources.len() != 1 || !sources.iter().all(|source| self.in_order(*source))
            })
            .collect();
        Ok(self.compile(units, fan_in, &folded, paths, schedule.window, planning.taps))
    }

    /// Whether packets leave this source in order. A medium carries one frame after another.
    fn in_order(&self, source: Feeder) -> bool {
        match source {
            Feeder::Host(node) => !self.apart.contains(&node),
            Feeder::Medium(_) => true,
            Feeder::Arc(arc) => self.arcs[arc].keeps_order,
        }
    }

    /// The arcs of each flow's forward and return paths.
    ///
    /// # Errors
    /// A flow whose ends are not connected.
    pub fn route(&self) -> Result<Vec<Path>, GraphError> {
        let mut entering = vec![Vec::new(); self.nodes];
        for (id, arc) in self.arcs.iter().enumerate() {
            entering[arc.to].push(id);
        }
        // A node with a single entering arc is reached through that arc's origin, so the routes to hosts behind one
        // router are searched once. Sorted by destination so that only one destination's routes are in memory: all of
        // them would take nodes squared.
        let through = |to: usize| match entering[to][..] {
            [arc] if self.arcs[arc].from != to => (self.arcs[arc].from, Some(arc)),
            _ => (to, None),
        };
        let mut trips: Vec<(usize, usize, usize, usize, usize)> = Vec::with_capacity(2 * self.flows.len());
        for (flow, &(source, sink)) in self.flows.iter().enumerate() {
            trips.extend([(through(sink).0, sink, source, flow, 0), (through(source).0, source, sink, flow, 1)]);
        }
        trips.sort_unstable();
        let mut paths: Vec<[Vec<usize>; 2]> = vec![Default::default(); self.flows.len()];
        let mut towards = (usize::MAX, Vec::new());
        let mut unreachable = None;
        for (via, to, from, flow, direction) in trips {
            if towards.0 != via {
                towards = (via, self.first_arcs(&entering, via));
            }
            let path = &mut paths[flow][direction];
            let mut at = from;
            while at != via && at != to {
                let Some(arc) = towards.1[at] else {
                    unreachable = unreachable.into_iter().chain([(to, from, flow)]).min();
                    break;
                };
                path.push(arc);
                at = self.arcs[arc].to;
            }
            path.extend(through(to).1.filter(|_| at == via));
        }
        if let Some((to, from, flow)) = unreachable {
            return Err(GraphError::Unreachable(from, to, flow));
        }
        Ok(paths.into_iter().map(|[there, back]| (there, back)).collect())
    }

    /// For each node, the first arc on its path to `to`, by breadth-first search from `to`.
    fn first_arcs(&self, entering: &[Vec<usize>], to: usize) -> Vec<Option<usize>> {
        let mut first = vec![None; self.nodes];
        let mut queue = VecDeque::from([to]);
        while let Some(node) = queue.pop_front() {
            for &arc in &entering[node] {
                let from = self.arcs[arc].from;
                if from != to && first[from].is_none() {
                    first[from] = Some(arc);
                    queue.push_back(from);
                }
            }
        }
        first
    }

    /// Collects what feeds each arc, host and medium.
    fn sources(&self, paths: &[Path]) -> Feeders {
        let count = self.arcs.iter().filter_map(|arc| arc.medium).max().map_or(0, |last| last + 1);
        let mut media = vec![BTreeSet::new(); count];
        let mut arcs = vec![BTreeSet::new(); self.arcs.len()];
        let mut hosts = vec![BTreeSet::new(); self.nodes];
        for (&(source, sink), (there, back)) in self.flows.iter().zip(paths) {
            for (from, to, path) in [(source, sink, there), (sink, source, back)] {
                let mut previous = Feeder::Host(from);
                for &arc in path {
                    match self.arcs[arc].medium {
                        // Traffic between stations stays within the medium.
                        Some(medium) if previous == Feeder::Medium(medium) => {}
                        Some(medium) => {
                            media[medium].insert(previous);
                            previous = Feeder::Medium(medium);
                        }
                        None => {
                            arcs[arc].insert(previous);
                            previous = Feeder::Arc(arc);
                        }
                    }
                }
                hosts[to].insert(previous);
            }
        }
        Feeders { arcs, hosts, media }
    }

    fn order(
        &self,
        units: &[Unit],
        folded: &[bool],
        sources: &Feeders,
        limit: Option<Span>,
    ) -> Result<RunOrder, GraphError> {
        let mut host_index = vec![usize::MAX; self.nodes];
        let mut arc_index = vec![usize::MAX; self.arcs.len()];
        let mut medium_index = vec![usize::MAX; sources.media.len()];
        for (i, unit) in units.iter().enumerate() {
            match *unit {
                Unit::Host(node) => host_index[node] = i,
                Unit::Arc(arc) => arc_index[arc] = i,
                Unit::Medium(medium) => medium_index[medium] = i,
            }
        }
        let medium_delay = |medium: usize| {
            let arc = self.arcs.iter().find(|arc| arc.medium == Some(medium));
            arc.map_or(Span::ZERO, |arc| arc.delay)
        };
        let mut edges = Vec::new();
        // Edges without delay, with the arcs that each stands for.
        let mut instant: Vec<(usize, usize, Vec<usize>)> = Vec::new();
        for (to, unit) in units.iter().enumerate() {
            for &source in sources.of(*unit) {
                // Walk back over the folded arcs, each with a single source, to the element that feeds them.
                let (mut source, mut delay, mut arcs) = (source, Span::ZERO, Vec::new());
                let from = loop {
                    match source {
                        Feeder::Host(node) => break host_index[node],
                        Feeder::Medium(medium) => {
                            delay += medium_delay(medium);
                            break medium_index[medium];
                        }
                        Feeder::Arc(arc) => {
                            delay += self.arcs[arc].delay;
                            arcs.push(arc);
                            if !folded[arc] {
                                break arc_index[arc];
                            }
                            source = *sources.arcs[arc].first().expect("a folded arc has a source");
                        }
                    }
                };
                edges.push(Edge { from, to, delay });
                if delay == Span::ZERO {
                    instant.push((from, to, arcs));
                }
            }
        }
        schedule(units.len(), &edges, limit).map_err(|stuck| GraphError::LoopWithoutDelay(a_loop(&stuck, &instant)))
    }

    fn compile(
        &self,
        units: Vec<Unit>,
        fan_in: Vec<bool>,
        is_folded: &[bool],
        paths: Vec<Path>,
        window: Span,
        taps: Taps,
    ) -> Plan {
        let mut arc_ways = vec![None; self.arcs.len()];
        let mut host_elements = vec![0; self.nodes];
        for (i, unit) in units.iter().enumerate() {
            match *unit {
                Unit::Host(node) => host_elements[node] = i as u32,
                Unit::Arc(arc) => arc_ways[arc] = Some(RouteStep::element(i as u32, arc as u32)),
                Unit::Medium(medium) => {
                    for (arc, way) in arc_ways.iter_mut().enumerate() {
                        if self.arcs[arc].medium == Some(medium) {
                            *way = Some(RouteStep::element(i as u32, arc as u32));
                        }
                    }
                }
            }
        }
        let folded: Vec<usize> = (0..self.arcs.len()).filter(|&arc| is_folded[arc]).collect();
        for (i, &arc) in folded.iter().enumerate() {
            arc_ways[arc] = Some(RouteStep::folded(i as u32, arc as u32));
        }
        let mut ways = Routes::default();
        let (mut sources, mut sinks) = (vec![0u32; self.nodes], vec![0u32; self.nodes]);
        let (mut cursors, mut endpoints) = (Vec::new(), Vec::new());
        for (&(source, sink), (there, back)) in self.flows.iter().zip(&paths) {
            let (at_source, at_sink) = (sources[source], sinks[sink]);
            sources[source] += 1;
            sinks[sink] += 1;
            let mut add = |from: usize, to: usize, endpoint: u32, arcs: &[usize]| {
                let origin = (self.arcs.len() + from) as u32;
                // A tap takes the id of the arc that brings the packet to it, so the order of arrivals does not change.
                let tap = |node: usize, id: u32| {
                    (taps != Taps::None).then(|| RouteStep::folded((folded.len() + node) as u32, id))
                };
                let last = arcs.last().map_or(origin, |&arc| arc as u32);
                let mut steps: Vec<RouteStep> = tap(from, origin).into_iter().collect();
                steps.extend(arcs.iter().map(|&arc| arc_ways[arc].expect("every arc on a path has a place")));
                steps.extend(tap(to, last));
                steps.push(RouteStep::element(host_elements[to], endpoint));
                ways.add(origin, &steps)
            };
            cursors.push((add(source, sink, at_sink, there), add(sink, source, at_source, back)));
            endpoints.push((at_source, at_sink));
        }
        Plan { units, fan_in, folded, apart: self.apart.clone(), ways, cursors, endpoints, paths, window }
    }
}

/// The arcs of a loop among the elements `stuck`, each of which an `instant` edge (from, to, its arcs) enters. Elements
/// that the loop merely feeds are left out.
fn a_loop(stuck: &[usize], instant: &[(usize, usize, Vec<usize>)]) -> Vec<usize> {
    let enters = |at: usize| instant.iter().find(|(from, to, _)| *to == at && stuck.contains(from));
    let mut trail: Vec<(usize, &[usize])> = Vec::new();
    let Some(mut at) = stuck.first().copied() else { return Vec::new() };
    while let Some((from, _, arcs)) = enters(at) {
        if let Some(began) = trail.iter().position(|&(seen, _)| seen == at) {
            return trail[began..].iter().flat_map(|&(_, arcs)| arcs).copied().collect();
        }
        trail.push((at, arcs));
        at = *from;
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_random::{Sequence, Stream};

    /// The path with the fewest arcs, ties broken breadth first from the destination: as if each destination were
    /// searched alone.
    fn plain(graph: &Graph, entering: &[Vec<usize>], from: usize, to: usize) -> Option<Vec<usize>> {
        let (first, mut at, mut path) = (graph.first_arcs(entering, to), from, Vec::new());
        while at != to {
            path.push(first[at]?);
            at = graph.arcs[first[at]?].to;
        }
        Some(path)
    }

    #[test]
    fn a_shared_search_finds_the_same_routes() {
        let mut found = 0;
        for seed in 0..400 {
            let mut draws = Sequence::new(Stream::new(seed, "routes"));
            let mut below = |n: usize| (draws.unit() * n as f64) as usize;
            let nodes = 2 + below(12);
            let mut ends = Vec::new();
            for _ in 0..1 + below(2 * nodes) {
                let (a, b) = (below(nodes), below(nodes));
                ends.push((a, b));
                if below(4) > 0 {
                    ends.push((b, a));
                }
            }
            let arc = |(from, to)| Arc {
                from,
                to,
                delay: Span(1),
                keeps_order: true,
                may_fold: true,
                is_polled: false,
                medium: None,
            };
            let arcs: Vec<Arc> = ends.into_iter().filter(|(a, b)| a != b).map(arc).collect();
            let flows: Vec<(usize, usize)> =
                (0..1 + below(6)).map(|_| (below(nodes), below(nodes))).filter(|(a, b)| a != b).collect();
            let graph = Graph { nodes, arcs, flows, apart: BTreeSet::new() };
            let mut entering = vec![Vec::new(); nodes];
            for (id, arc) in graph.arcs.iter().enumerate() {
                entering[arc.to].push(id);
            }
            let way = |from, to| plain(&graph, &entering, from, to);
            let expected: Option<Vec<Path>> =
                graph.flows.iter().map(|&(source, sink)| Some((way(source, sink)?, way(sink, source)?))).collect();
            let routes = graph.route().ok();
            found += usize::from(routes.as_ref().is_some_and(|routes| !routes.is_empty()));
            assert_eq!(routes, expected, "seed {seed}");
        }
        assert!(found > 50, "only {found} of the graphs have routes");
    }
}

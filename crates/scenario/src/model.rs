//! A run, fully drawn and validated: nodes, link directions and flows as plain data.
//!
//! Crate `sim` expands a scenario and a seed into it, and builds elements from it.

mod bundle;
mod coupled;
mod delays;
mod relay;
mod voice;

pub use bundle::{BundleModel, connections};
pub use coupled::CoupledModel;
pub use delays::Delays;
use paceline_apps::playout::PlayoutModel;
use paceline_apps::stream::StreamModel;
use paceline_flow::Transport;
use paceline_path::LinkModel;
use paceline_path::access_point::Law;
use paceline_path::wifi::{Category, CellModel};
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};
pub use relay::RelayModel;
pub use voice::{Impairment, Voice};

/// The links of a flow's forward path and of its return path, by their index in [`Model::links`].
pub type Path = (Vec<usize>, Vec<usize>);

/// One run.
#[derive(Clone, Debug)]
pub struct Model {
    /// The scenario's name.
    pub name: String,
    /// The seed of all draws.
    pub seed: u64,
    /// Latest end of the run.
    pub duration: Span,
    /// Measurement of flows and queues begins here.
    pub warmup: Span,
    /// Flows, by index, whose end is also the end of the run.
    pub stop_after: Vec<usize>,
    /// Whether senders wait while their host's own link is full.
    pub backpressure: bool,
    /// Bin size for the variation of rates; `None` measures none.
    pub rate_bin: Option<Span>,
    /// The group with whose mean goodput every group's is compared.
    pub friendliness_to: Option<String>,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Directions of links.
    pub links: Vec<LinkDirection>,
    /// 802.11 cells.
    pub cells: Vec<CellInstance>,
    /// Flows.
    pub flows: Vec<FlowModel>,
}

impl Model {
    /// The number of the node of this name, which is added if there is none.
    pub fn node(&mut self, name: &str) -> usize {
        match self.nodes.iter().position(|known| known == name) {
            Some(node) => node,
            None => self.add_node(name.to_owned()),
        }
    }

    /// Adds a node, and returns its number.
    pub fn add_node(&mut self, name: String) -> usize {
        self.nodes.push(name);
        self.nodes.len() - 1
    }

    /// Propagation delay of a round trip, without queues and transmission.
    #[must_use]
    pub fn propagation(&self, (there, back): &Path) -> Span {
        there.iter().chain(back).fold(Span::ZERO, |sum, &arc| sum + self.links[arc].model.propagation)
    }

    /// The link on a path with the lowest peak rate, leaving out access links and cells.
    #[must_use]
    pub fn slowest_link(&self, there: &[usize]) -> Option<&LinkDirection> {
        let links = there.iter().map(|&arc| &self.links[arc]);
        links.filter(|link| !link.is_access() && link.cell.is_none()).min_by_key(|link| link.model.rate.peak())
    }
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkDirection {
    /// The link's name.
    pub link: String,
    /// `forward` or `backward`; for access links `up` or `down`.
    pub direction: &'static str,
    /// The node it leaves.
    pub from: usize,
    /// The node it enters.
    pub to: usize,
    /// The link's model; unused for a path over a cell's channel.
    pub model: LinkModel,
    /// The cell whose channel it crosses, if it is not a link.
    pub cell: Option<usize>,
    /// For access links, the node number of its host.
    pub host: Option<usize>,
    /// When the summary reports its queue.
    pub reporting: QueueReporting,
}

/// When the summary reports a link's queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum QueueReporting {
    /// Never: it has no limit, or never reaches it.
    Never,
    /// If it has dropped a packet, or held more than [`QueueReporting::BURST`] packets.
    IfLong,
    /// If it ever held a packet.
    IfAny,
    /// Always.
    Always,
}

impl QueueReporting {
    /// Initial window (RFC 6928), which a sender may send at once: a shorter queue is not worth a report.
    pub const BURST: u32 = 10;
}

/// An 802.11 cell.
#[derive(Clone, Debug)]
pub struct CellInstance {
    /// Its name.
    pub name: String,
    /// Its 802.11 model.
    pub model: CellModel,
    /// Its nodes: the access point's, then the stations'.
    pub interfaces: Vec<String>,
    /// For each interface, whether no flow has packets of its category there, so that it is not reported.
    pub unused: Vec<bool>,
    /// How its access point lowers advertised windows, if it does.
    pub law: Option<Law>,
    /// Index of its first arc in [`Model::links`]. Station by station: from the access point to the station, then back.
    pub first_link: usize,
}

impl CellInstance {
    /// Names of its interfaces: those of their nodes, followed by the category if each node has several.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let categories = self.model.edca.as_ref().map(|edca| edca.categories.as_slice()).unwrap_or_default();
        match categories {
            [] | [_] => self.interfaces.clone(),
            several => {
                let all = self.interfaces.iter().flat_map(|node| several.iter().map(move |of| (node, of.0.name())));
                all.map(|(node, category)| format!("{node}.{category}")).collect()
            }
        }
    }

    /// Whether results report an interface.
    #[must_use]
    pub fn is_reported(&self, interface: usize) -> bool {
        !self.unused.get(interface).is_some_and(|unused| *unused)
    }

    /// The random streams that its interfaces draw from under this seed.
    #[must_use]
    pub fn streams(&self, seed: u64) -> Vec<Stream> {
        self.names().iter().map(|name| Stream::new(seed, &format!("cell {}.{name}", self.name))).collect()
    }

    /// Name and direction of an interface's queue: cell and interface in place of the link; `forward` is away from the
    /// access point.
    #[must_use]
    pub fn queue_name(&self, interface: usize) -> (String, &'static str) {
        let direction = if interface < self.model.categories() { "forward" } else { "backward" };
        (format!("{}.{}", self.name, self.names()[interface]), direction)
    }
}

impl LinkDirection {
    /// The direction of an access link away from its host.
    pub const UP: &'static str = "up";
    /// The direction of an access link towards its host.
    pub const DOWN: &'static str = "down";

    /// Whether it is an access link, from an `[access]` table.
    #[must_use]
    pub fn is_access(&self) -> bool {
        self.host.is_some()
    }

    /// Whether its queue is measured, since the summary may report it.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.cell.is_none() && self.reporting > QueueReporting::Never
    }

    /// Whether its queue is sampled when queues are recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.cell.is_none() && self.reporting > QueueReporting::IfLong
    }

    /// Whether a [`Pipe`](paceline_path::Pipe) is enough to model it.
    #[must_use]
    pub fn is_pipe(&self) -> bool {
        self.model.is_pipe() && !self.is_measured()
    }

    /// Its name in random streams and error messages.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}.{}", self.link, self.direction)
    }

    /// The random stream that it draws from under this seed.
    #[must_use]
    pub fn stream(&self, seed: u64) -> Stream {
        Stream::new(seed, &format!("link {}", self.label()))
    }
}

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowModel {
    /// The flow's name in the scenario.
    pub name: String,
    /// Index among the flow's instances (`count`).
    pub instance: u32,
    /// The group in whose Jain index it counts.
    pub group: String,
    /// The scheme's name.
    pub scheme: String,
    /// The profile's name.
    pub profile: &'static str,
    /// Names of the nodes that the scenario gives as its ends.
    pub ends: (String, String),
    /// The node of its sender.
    pub source: usize,
    /// The node of its receiver.
    pub sink: usize,
    /// When it starts.
    pub start: Time,
    /// When its application stops.
    pub stop: Time,
    /// The transport machine, its settings and its controller.
    pub transport: Transport,
    /// The sending application.
    pub app: paceline_apps::Application,
    /// The application's kind, as scenarios name it.
    pub carries: &'static str,
    /// The client that requests the data, if the flow carries answers to requests.
    pub client: Option<paceline_apps::client::Client>,
    /// The stream that its player plays, if it carries one.
    pub stream: Option<StreamModel>,
    /// The jitter buffer of its viewer, if it carries frames that depend on each other.
    pub playout: Option<PlayoutModel>,
    /// Whether its round-trip time is drawn for each run.
    pub rtt_drawn: bool,
    /// Upper bound of the random delay that its sender's host adds to each packet.
    pub sender_delay: Delays,
    /// The same at its receiver's host, for acknowledgements and reports.
    pub receiver_delay: Delays,
    /// Whether one-way delays and interarrival times of its packets are measured.
    pub delays: bool,
    /// The group of flows at its host with which it shares rates, if any.
    pub coupled: Option<CoupledModel>,
    /// The bundle that it belongs to, if any.
    pub bundle: Option<BundleModel>,
    /// The flow that it relays, if any.
    pub relay: Option<RelayModel>,
    /// The access category of its packets in cells, both ways, if the scenario gives one.
    pub category: Option<Category>,
    /// The default upper bound of its controller's rate, if the scenario sets none.
    pub default_max_rate: Option<Rate>,
    /// Listening conditions for voice of a codec with E-model values.
    pub voice: Option<Voice>,
}

impl FlowModel {
    /// Whether it carries frames whose delays its receiver measures.
    #[must_use]
    pub fn has_frames(&self) -> bool {
        let by_quic = matches!(&self.transport, Transport::Quic { config, .. } if config.track.frames);
        by_quic || self.app.frames().is_some()
    }

    /// Its name in random streams and labels: `media[0]`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}[{}]", self.name, self.instance)
    }
}

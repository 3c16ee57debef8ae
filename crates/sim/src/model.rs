//! A run, fully drawn and validated: nodes, link directions and flows as plain data.
//!
//! [`crate::expand`] makes it of a scenario and a seed; [`crate::build`] makes elements of it.

use crate::bundling::BundleModel;
use crate::delays::Delays;
use crate::e_model::Voice;
use crate::graph::Path;
use crate::relaying::RelayModel;
use crate::scenario::coupled::CoupledTable;
use paceline_apps::playout::PlayoutModel;
use paceline_apps::stream::StreamModel;
use paceline_flow::Transport;
use paceline_path::LinkModel;
use paceline_path::access_point::Law;
use paceline_path::wifi::{Category, CellModel};
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};

/// One run.
#[derive(Clone, Debug)]
pub struct Model {
    /// The scenario's name.
    pub name: String,
    /// The seed of all draws.
    pub seed: u64,
    /// When the run ends at the latest.
    pub duration: Span,
    /// Flows and queues are measured from here on.
    pub warmup: Span,
    /// Flows (by index) whose end is also the end of the run.
    pub stop_after: Vec<usize>,
    /// Whether senders wait while their host's own link is full.
    pub backpressure: bool,
    /// Bins over which rates are taken for their variation; `None` measures none.
    pub rate_bin: Option<Span>,
    /// The group against whose mean goodput every group's is held.
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
    /// The propagation of a way there and back: its round trip without queues and transmission.
    #[must_use]
    pub fn propagation(&self, (there, back): &Path) -> Span {
        there.iter().chain(back).fold(Span::ZERO, |sum, &arc| sum + self.links[arc].model.propagation)
    }

    /// Of the links on a way that are no host's own and no cell's, the one whose peak rate is least.
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
    /// `forward` or `backward`; of access links `up` or `down`.
    pub direction: &'static str,
    /// The node it leaves.
    pub from: usize,
    /// The node it enters.
    pub to: usize,
    /// What it does; of a way over a cell's channel nothing.
    pub model: LinkModel,
    /// The cell whose channel it is a way over, if it is no link.
    pub cell: Option<usize>,
    /// The host whose own link it is, by its node's number.
    pub host: Option<usize>,
    /// When the summary reports its queue.
    pub reporting: QueueReporting,
}

/// When the summary reports a link's queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum QueueReporting {
    /// Never: it has no limit, or never reaches it.
    Never,
    /// If it has dropped anything, or held more than [`QueueReporting::BURST`] packets.
    IfLong,
    /// If it ever held a packet.
    IfAny,
    /// Always.
    Always,
}

impl QueueReporting {
    /// Packets that a sender may send at once, an initial window (RFC 6928): a queue that held no more is not worth a report.
    pub const BURST: u32 = 10;
}

/// An 802.11 cell.
#[derive(Clone, Debug)]
pub struct CellInstance {
    /// Its name.
    pub name: String,
    /// What it does.
    pub model: CellModel,
    /// Its nodes: the access point's, then the stations'.
    pub interfaces: Vec<String>,
    /// By interface: no flow has packets of its category there, so there is nothing to tell of it.
    pub unused: Vec<bool>,
    /// How its access point lowers advertised windows, if it does.
    pub law: Option<Law>,
    /// The first of its ways in [`Model::links`]: from the access point to a station, and back, station by station.
    pub first_link: usize,
}

impl CellInstance {
    /// Names of its interfaces: those of their nodes, and of categories where each node has several.
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

    /// Whether results tell of an interface.
    #[must_use]
    pub fn is_reported(&self, interface: usize) -> bool {
        !self.unused.get(interface).is_some_and(|unused| *unused)
    }

    /// The streams that its interfaces draw from under this seed.
    #[must_use]
    pub fn streams(&self, seed: u64) -> Vec<Stream> {
        self.names().iter().map(|name| Stream::new(seed, &format!("cell {}.{name}", self.name))).collect()
    }

    /// What its interface of this number is to queues: the cell and the node in place of the link, and the direction: forward is
    /// away from the access point.
    #[must_use]
    pub fn queue_name(&self, interface: usize) -> (String, &'static str) {
        let direction = if interface < self.model.categories() { "forward" } else { "backward" };
        (format!("{}.{}", self.name, self.names()[interface]), direction)
    }
}

impl LinkDirection {
    /// The direction of an access link that leaves its host.
    pub const UP: &'static str = "up";
    /// The other one.
    pub const DOWN: &'static str = "down";

    /// Whether it is a host's own link, of an `[access]` table.
    #[must_use]
    pub fn is_access(&self) -> bool {
        self.host.is_some()
    }

    /// Whether its queue is measured, since it may have to be told of.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.cell.is_none() && self.reporting > QueueReporting::Never
    }

    /// Whether its queue is sampled where queues are recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.cell.is_none() && self.reporting > QueueReporting::IfLong
    }

    /// Whether a [`Pipe`](paceline_path::Pipe) does all that is asked of it.
    #[must_use]
    pub fn is_pipe(&self) -> bool {
        self.model.is_pipe() && !self.is_measured()
    }

    /// Its name in the streams of random numbers and in error messages.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}.{}", self.link, self.direction)
    }

    /// The stream that it draws from under this seed.
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
    /// Which of several alike.
    pub instance: u32,
    /// Whose Jain index it counts for.
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
    /// The machine, its settings, and the controller on it.
    pub transport: Transport,
    /// What sends.
    pub app: paceline_apps::Application,
    /// The kind of it, as a scenario names it.
    pub carries: &'static str,
    /// What asks for it, if that is asked for.
    pub client: Option<paceline_apps::client::Client>,
    /// The stream that its player plays, if it carries one.
    pub stream: Option<StreamModel>,
    /// The jitter buffer of its viewer, if it carries frames that need each other.
    pub playout: Option<PlayoutModel>,
    /// Whether its round trip is drawn anew for each run.
    pub rtt_drawn: bool,
    /// Upper bound of the random delay with which its sender's host emits each packet.
    pub sender_delay: Delays,
    /// The same at its receiver's host, of acknowledgements and reports.
    pub receiver_delay: Delays,
    /// Whether delays and distances of its packets are measured where they arrive.
    pub delays: bool,
    /// The group of its host whose rates it shares, if it does.
    pub coupled: Option<CoupledTable>,
    /// The bundle that it is of, if it is of one.
    pub bundle: Option<BundleModel>,
    /// The flow that it sends on, if it is a relay's.
    pub relay: Option<RelayModel>,
    /// What its packets are to cells, both ways, if it says so.
    pub category: Option<Category>,
    /// Where its controller's rate ends, if nobody has said that.
    pub unsaid_bound: Option<Rate>,
    /// What its listener hears, if it is voice of a codec that the E-model has values of.
    pub voice: Option<Voice>,
}

impl FlowModel {
    /// Whether what it writes are frames whose delays its receiver measures.
    #[must_use]
    pub fn has_frames(&self) -> bool {
        let by_quic = matches!(&self.transport, Transport::Quic { config, .. } if config.track.frames);
        by_quic || self.app.frames().is_some()
    }

    /// Its name in the streams of random numbers and in labels: `media[0]`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}[{}]", self.name, self.instance)
    }
}

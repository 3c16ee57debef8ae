//! A scenario as a run needs it, with nothing left to look up elsewhere in the file.

use crate::keys::cell::CellTable;
use crate::keys::file::{File, Profile, Topology};
use crate::keys::flow::FlowTable;
use crate::keys::link::{AccessTable, LimitStep, LinkRecovery, Reorder};
use crate::keys::loss::Loss;
use crate::keys::queue::Queue;
use crate::keys::values::HostDelay;
use paceline_apps::ladder::Ladder;
use paceline_apps::video::FramesModel;
use paceline_path::{Aggregation, DelaySpike, DelayStep, DelayVariation, PolicerModel, RateModel};
use paceline_units::{Ratio, Span, Time};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;

/// A checked scenario with every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub(super) file: File,
    pub(super) links: Vec<Link>,
    pub(super) flows: Vec<Flow>,
}

/// A link and the nodes that it joins, both directions complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name; hops of a parking lot are named hop1, hop2, ...
    pub name: String,
    /// Node where the forward direction begins.
    pub from: String,
    /// Node where the forward direction ends.
    pub to: String,
    /// From `from` to `to`.
    pub forward: Direction,
    /// From `to` to `from`.
    pub backward: Direction,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// Its rate over time.
    pub rate: RateModel,
    /// One-way propagation delay; with steps, their minimum.
    pub delay: Span,
    /// Extra delay over time, ascending; empty if constant.
    pub delay_steps: Vec<DelayStep>,
    /// Its queue.
    pub queue: Queue,
    /// Changes of the queue limit, ascending.
    pub limit_steps: Vec<LimitStep>,
    /// Drops packets before the queue.
    pub policer: Option<PolicerModel>,
    /// Recovery at the link layer.
    pub recovery: Option<LinkRecovery>,
    /// Random loss.
    pub loss: Option<Loss>,
    /// Delay variation that keeps the order.
    pub delay_variation: Option<DelayVariation>,
    /// Changes of the delay variation, ascending.
    pub variation_steps: Vec<(Time, Option<DelayVariation>)>,
    /// Packets that are held back and so reordered.
    pub reorder: Option<Reorder>,
    /// Share of packets that are duplicated.
    pub duplicate: Ratio,
    /// Share of packets that are corrupted.
    pub corrupt: Ratio,
    /// Holds packets and releases them together.
    pub aggregation: Option<Aggregation>,
    /// Whether the ECN field is cleared.
    pub bleach_ecn: bool,
    /// Time ranges in which packets take longer, ascending.
    pub delay_spikes: Vec<DelaySpike>,
    /// Outages, ascending, half-open.
    pub outages: Vec<(Time, Time)>,
    /// Whether the queue's occupancy is measured.
    pub occupancy: bool,
    /// Whether each flow's part is measured.
    pub per_flow: bool,
}

/// A flow, with its name and the values that every flow has.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name in the file.
    pub name: String,
    /// Node of the sender.
    pub from: String,
    /// Node of the receiver.
    pub to: String,
    /// Its profile.
    pub profile: Profile,
    /// Its Jain group.
    pub group: String,
    /// Payload of a full segment in bytes.
    pub segment: u32,
    /// Header bytes on the wire beside it.
    pub header: u32,
    /// The frames of a recorded video.
    pub frames: Option<FramesModel>,
    /// An encoder's recorded frames at several rates, if any.
    pub ladder: Option<Ladder>,
    pub(super) table: FlowTable,
}

impl Deref for Flow {
    type Target = FlowTable;
    /// The flow's table; for an option that is `None`, the profile's value applies.
    fn deref(&self) -> &FlowTable {
        &self.table
    }
}

impl Scenario {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.file.name.as_deref().unwrap_or_default()
    }

    /// Its description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.file.description
    }

    /// The seed that the file gives.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.file.seed
    }

    /// Latest end of the run.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.file.duration
    }

    /// Nothing is measured before this time.
    #[must_use]
    pub fn warmup(&self) -> Span {
        self.file.warmup
    }

    /// The flow whose end is the end of the run.
    #[must_use]
    pub fn stop_after(&self) -> Option<&str> {
        self.file.stop_after.as_deref()
    }

    /// The default profile.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.file.profile
    }

    /// Maximum random delay that a host adds to a packet.
    #[must_use]
    pub fn host_delay(&self) -> HostDelay {
        self.file.host_delay.unwrap_or(HostDelay::Within(Span::ZERO))
    }

    /// Bin size for the variation of rates.
    #[must_use]
    pub fn rate_bin(&self) -> Option<Span> {
        self.file.rate_bin
    }

    /// The group with whose mean goodput every group's is compared.
    #[must_use]
    pub fn friendliness_to(&self) -> Option<&str> {
        self.file.friendliness_to.as_deref()
    }

    /// Shape of the network.
    #[must_use]
    pub fn topology(&self) -> Topology {
        self.file.topology
    }

    /// The links: by name, hops of a parking lot by number.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The first and last node of the chain of links in a dumbbell or parking lot; `None` in a graph.
    #[must_use]
    pub fn ends(&self) -> Option<(&str, &str)> {
        let chain =
            matches!(self.file.topology, Topology::Dumbbell | Topology::ParkingLot).then_some(self.links.as_slice())?;
        Some((&chain.first()?.from, &chain.last()?.to))
    }

    /// The 802.11 cells by name, with all values filled in.
    #[must_use]
    pub fn cells(&self) -> &BTreeMap<String, CellTable> {
        &self.file.cell
    }

    /// The access links, if flows have their own hosts.
    #[must_use]
    pub fn access(&self) -> Option<&AccessTable> {
        self.file.access.as_ref()
    }

    /// The scenario with at most this many instances of each flow; borrowed if there are no more.
    #[must_use]
    pub fn thinned(&self, max: u32) -> Cow<'_, Scenario> {
        if self.flows.iter().all(|flow| flow.count <= max) {
            return Cow::Borrowed(self);
        }
        let mut fewer = self.clone();
        fewer.flows.iter_mut().for_each(|flow| flow.table.count = flow.table.count.min(max));
        Cow::Owned(fewer)
    }

    /// The flows by name.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The file with every default filled in, except for the queue of access links ([`AccessTable::default_queue`]).
    /// Reading it results in the same scenario.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.file).unwrap_or_default()
    }

    /// What a run's result depends on, beside its seed and traces: [`Scenario::to_toml`] without name and description.
    #[must_use]
    pub fn identity(&self) -> String {
        let unnamed = File { name: None, description: String::new(), ..self.file.clone() };
        toml::to_string(&unnamed).unwrap_or_default()
    }

    /// The flow whose application wrote what this one carries: its own or, through relays, another's.
    #[must_use]
    pub fn origin<'a>(&'a self, flow: &'a Flow) -> &'a Flow {
        let mut origin = flow;
        while let Some(of) = origin.relayed().and_then(|of| self.flow(of)) {
            origin = of;
        }
        origin
    }

    fn flow(&self, name: &str) -> Option<&Flow> {
        self.flows().iter().find(|flow| flow.name == name)
    }

    /// The instance of the flow `of` that an instance of a relay sends on.
    #[must_use]
    pub fn instance_relayed(&self, of: &str, instance: u32) -> u32 {
        if self.flow(of).is_some_and(|of| of.count > 1) { instance } else { 0 }
    }

    /// Whether the connection of this flow leaves a relay.
    #[must_use]
    pub fn leaves_relay(&self, connection: &str) -> bool {
        self.file.relaying_connections().contains(connection)
    }

    /// Whether the connection of this flow ends at a relay.
    #[must_use]
    pub fn enters_relay(&self, connection: &str) -> bool {
        let relayed = self.flows().iter().filter_map(|flow| self.flow(flow.relayed()?));
        relayed.into_iter().any(|of| of.leader().unwrap_or(&of.name) == connection)
    }
}

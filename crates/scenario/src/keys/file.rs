//! The scenario file as serde reads it. The doc comment of a field is its description in the JSON Schema and in
//! docs/scenario.md; `x-default` states a default that depends on other keys, `x-min` and `x-max` bound quantities.

use super::cell::CellTable;
use super::flow::FlowTable;
use super::link::{AccessTable, LinkTable};
use super::values::HostDelay;
use paceline_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One experiment: a network, its traffic, and how long to run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Paceline scenario")]
pub struct File {
    /// Name of the scenario, for summaries and run directories.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the file's name without extension"))]
    pub name: Option<String>,
    /// Purpose of the scenario, in a sentence or two.
    #[serde(default)]
    pub description: String,
    /// Seed of every random draw. The same scenario and seed give the same results, bit for bit.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807_u64))]
    pub seed: u64,
    /// Latest end of the run.
    #[schemars(extend("x-min" = "1 us", "x-max" = "1000000 s", "examples" = ["60 s"]))]
    pub duration: Span,
    /// Measurements of flows and queues exclude everything before this instant. A stream's fill time and late packets
    /// always count from the flow's start. Less than the duration.
    #[serde(default)]
    pub warmup: Span,
    /// Name of a flow: the run also ends when all its instances are done (transfer delivered, play-out over). Checked
    /// every 10 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none"))]
    pub stop_after: Option<String>,
    /// The reference that TCP follows where references differ: default of every flow.
    #[serde(default)]
    pub profile: Profile,
    /// Delays every packet that a host emits by a time drawn uniformly from 0 to this, keeping the order of its flow.
    /// It breaks the phase effects of drop-tail queues (Floyd and Jacobson 1992). A number of packets is the time
    /// that they take on the slowest link of the flow's path at its current rate: for TCP's data at most 1 s; at most
    /// 100 us for other packets, and under controllers that pace by rate (`bbr`, `bbr3`, `c4`)
    /// (docs/decisions/host-delay.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "2 packets; 0 s in profiles ns2 and ns2-linux", "x-max" = "1 s, or 1000 packets"))]
    pub host_delay: Option<HostDelay>,
    /// Measures how much each flow's sending and receiving rates vary, over bins of this length: `send_rate_cov`,
    /// `goodput_cov`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: not measured", "x-min" = "1 us", "x-max" = "1000000 s", "examples" = ["100 ms"]))]
    pub rate_bin: Option<Span>,
    /// Name of a group of flows: every group's mean goodput is divided by this group's: `friendliness`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: not measured"))]
    pub friendliness_to: Option<String>,
    /// Shape of the network.
    #[serde(default)]
    pub topology: Topology,
    /// Number of links of a parking lot made from the template `[link.hop]`; the nodes are r0, r1, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000), extend("x-default" = "the number of links hop1, hop2, ..."))]
    pub hops: Option<u32>,
    /// The links by name. A dumbbell has one, `bottleneck`, from node `left` to node `right`; a parking lot has hop1,
    /// hop2, ... or the template `hop`; a graph has any. In a home, link NAME joins server NAME and the access point.
    pub link: BTreeMap<String, LinkTable>,
    /// 802.11 cells by name: a home has one, a graph any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-default" = "none"))]
    pub cell: BTreeMap<String, CellTable>,
    /// Links between hosts and routers: every flow instance has its own pair of hosts. Present by default in dumbbell
    /// and parking lot. In a graph or home without this table, flows sit on the named nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "present, unless the topology is a graph or a home"))]
    pub access: Option<AccessTable>,
    /// The flows by name.
    pub flow: BTreeMap<String, FlowTable>,
}

const fn one() -> u64 {
    1
}

/// Whose behaviour TCP follows where references differ (docs/profiles.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The RFCs.
    #[default]
    Rfc,
    /// ns-2's own TCP agents.
    Ns2,
    /// ns-2's TCP-Linux agents.
    Ns2Linux,
    /// A current Linux kernel.
    Linux,
}

impl Profile {
    /// Whether this is an ns-2 profile.
    #[must_use]
    pub const fn is_ns2(self) -> bool {
        matches!(self, Profile::Ns2 | Profile::Ns2Linux)
    }

    /// The profile in crate `control`.
    #[must_use]
    pub const fn control(self) -> paceline_control::Profile {
        match self {
            Profile::Rfc => paceline_control::Profile::Rfc,
            Profile::Ns2 => paceline_control::Profile::Ns2,
            Profile::Ns2Linux => paceline_control::Profile::Ns2Linux,
            Profile::Linux => paceline_control::Profile::Linux,
        }
    }

    /// The profile's name in a scenario file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.control().name()
    }
}

/// Shape of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// One bottleneck between the routers left and right.
    #[default]
    Dumbbell,
    /// Routers r0, r1, ... in a row.
    ParkingLot,
    /// Servers, each linked to the access point of an 802.11 cell, and its stations.
    Home,
    /// Any links, and 802.11 cells, between any nodes.
    Graph,
}

//! Bundles of flows in a scenario file.

use super::file::File;
use super::flow::FlowTable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Streams of one sender under one controller: as WebRTC's BUNDLE has them, or, over QUIC, as tracks of one connection (MoQ).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BundleTable {
    /// The leading flow, whose controller, pace, window, feedback and connection carry this flow's packets too. Both
    /// have the same number of instances and the same ends. Left out in the leading flow itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: this flow leads"))]
    pub with: Option<String>,
    /// Share of the rate above all streams' minimum rates, relative to the priorities of the others. Over QUIC, data
    /// of greater priority leave first and equal priorities take turns; encoders get what greater priorities leave.
    #[serde(default = "one")]
    #[schemars(range(min = 0.001, max = 1000.0))]
    pub priority: f64,
}

const fn one() -> f64 {
    1.0
}

impl FlowTable {
    /// The flow that leads its bundle, if that is another.
    #[must_use]
    pub fn leader(&self) -> Option<&str> {
        self.bundle.as_ref()?.with.as_deref()
    }

    /// Takes over from its leader what it does not set itself.
    fn inherit(&mut self, leader: &FlowTable) {
        if self.cc == super::flow::USUAL_CC {
            self.cc.clone_from(&leader.cc);
        }
        if self.params.is_empty() {
            self.params.clone_from(&leader.params);
        }
        self.profile = self.profile.or(leader.profile);
        self.ecn = self.ecn.or(leader.ecn);
        self.from = self.from.take().or_else(|| leader.from.clone());
        self.to = self.to.take().or_else(|| leader.to.clone());
        self.rtp = self.rtp.take().or_else(|| leader.rtp.clone());
        self.transport = self.transport.or(leader.transport);
        self.initial_window = self.initial_window.or(leader.initial_window);
        if self.is_quic() {
            self.quic.get_or_insert_default().inherit(&leader.quic.clone().unwrap_or_default());
        }
    }
}

impl File {
    /// Completes led flows from their leaders, and relays from the flows that they relay.
    pub(crate) fn inherit(&mut self) {
        self.inherit_from_leaders();
        if self.flow.values().any(|flow| flow.relayed().is_some()) {
            self.inherit_from_relayed();
            self.inherit_from_leaders();
        }
    }

    fn inherit_from_leaders(&mut self) {
        let led = self.flow.iter().filter_map(|(name, flow)| Some((name.clone(), flow.leader()?.to_owned())));
        for (name, leader) in led.collect::<Vec<_>>() {
            if let Some(leader) = self.flow.get(&leader).cloned()
                && let Some(flow) = self.flow.get_mut(&name)
            {
                flow.inherit(&leader);
            }
        }
    }

    /// Whether it leads other flows.
    pub(crate) fn leads(&self, name: &str) -> bool {
        self.flow.values().any(|flow| flow.leader() == Some(name))
    }
}

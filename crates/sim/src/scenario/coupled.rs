//! Coupled flows in a scenario file.

use super::error::{Mistake, join};
use super::flow::FlowTable;
use super::model::File;
use super::rules::Rules;
use super::warnings::Warnings;
use crate::model::Model;
use paceline_control::coupled::CoupledAlgorithm;
use paceline_control::{Machine, MediaController, Profile, RtpController, Scheme};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flows of one group begin at one host, which shares among them what their controllers find (RFC 8699).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoupledTable {
    /// Name of the group.
    pub group: String,
    /// Share of the group's rate, relative to the priorities of the others. WebRTC's very-low, low, medium and high
    /// are 1, 2, 4 and 8 (RFC 8699, section 5.2).
    #[serde(default = "one")]
    #[schemars(range(min = 0.001, max = 1000.0))]
    pub priority: f64,
    /// How the group's rate follows one flow's change; the same for all of a group.
    #[serde(default)]
    pub algorithm: Algorithm,
}

/// How a group's rate follows what one flow finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// By the change of that flow's rate (section 5.3.1).
    #[default]
    Active,
    /// Down by the same share, then not again for two round trips (section 5.3.2).
    Conservative,
}

impl Algorithm {
    /// The algorithm in crate `control`.
    #[must_use]
    pub const fn control(self) -> CoupledAlgorithm {
        match self {
            Algorithm::Active => CoupledAlgorithm::Active,
            Algorithm::Conservative => CoupledAlgorithm::Conservative,
        }
    }
}

const fn one() -> f64 {
    1.0
}

/// Whether a scheme's controller reports its calculated rate, and accepts another.
fn couples(scheme: &Scheme) -> bool {
    scheme.machine == Machine::Rtp
        && RtpController::new(scheme, Profile::Rfc, &[]).is_ok_and(|controller| controller.coupled().is_some())
}

impl Rules {
    /// Rules for a coupled flow.
    pub(super) fn coupled(&mut self, file: &File, path: &str, flow: &FlowTable) {
        let Some(coupled) = &flow.coupled else { return };
        let own = join(path, "coupled");
        self.name(&join(&own, "group"), &coupled.group);
        if let Ok(scheme) = flow.scheme()
            && !couples(scheme)
        {
            let problem =
                format!("`{}` takes no rate from others: use `gcc` or `nada`, or leave the table out", scheme.name);
            self.note(&*own, problem);
        }
        if flow.rtt.is_some() {
            let problem =
                "coupled flows begin at one host, whose link is as long for all: leave it out, or give links a `delay`";
            self.note(join(path, "rtt"), problem);
        }
        if flow.access.as_ref().is_some_and(|access| access.rate.is_some() || access.loss.is_some()) {
            self.note(join(path, "access"), "coupled flows begin at one host, which has the link that `[access]` says");
        }
        let mut others = file.flow.iter().filter_map(|(name, flow)| Some((name, flow.coupled.as_ref()?)));
        if let Some((name, first)) = others.find(|(_, other)| other.group == coupled.group)
            && first.algorithm != coupled.algorithm
        {
            let problem = format!("must be the same for the whole group, and flow `{name}` has another");
            self.mistakes.push(Mistake::new(join(&own, "algorithm"), problem));
        }
    }
}

impl Warnings<'_> {
    /// Warns about a group of a single flow.
    pub(super) fn coupled(&mut self, path: &str, flow: &FlowTable, model: &Model) {
        let Some(coupled) = &flow.coupled else { return };
        let of = model.flows.iter().filter(|of| of.coupled.as_ref().is_some_and(|other| other.group == coupled.group));
        if of.count() == 1 {
            self.note(join(path, "coupled"), format!("has no effect: no other flow is of group `{}`", coupled.group));
        }
    }
}

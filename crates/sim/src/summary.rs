//! The results of one run. The rows of its tables consist of the [measures](crate::measures).

pub use crate::measures::{
    ClassSummary, EngineSummary, FlowSummary, GroupSummary, InterfaceSummary, LinkFlowSummary, QueueSummary,
    StreamSummary,
};

use paceline_engine::DropReason;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The measures that every run has.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub name: String,
    /// The seed that all random draws come from.
    pub seed: u64,
    /// The scenario's duration.
    pub duration_s: f64,
    /// The warm-up, which is not measured.
    pub warmup_s: f64,
    /// When the run ended: the duration, or earlier if it waited for a flow.
    pub end_s: f64,
    /// From the end of the warm-up to the end of the run.
    pub measured_s: f64,
    /// Statistics of the engine, and the fate of all packets.
    pub engine: EngineSummary,
    /// One row per flow.
    pub flows: Vec<FlowSummary>,
    /// One row per media stream.
    pub streams: Vec<StreamSummary>,
    /// One row per link direction with a limited queue, and one per interface of a cell.
    pub queues: Vec<QueueSummary>,
    /// One row per flow and link direction, where `per_flow` is set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub link_flows: Vec<LinkFlowSummary>,
    /// One row per interface of a cell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceSummary>,
    /// One row per group of flows.
    pub groups: Vec<GroupSummary>,
    /// What a reader of the results should know beyond the measures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Something that a reader of a run's results should know and no measure shows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Notice {
    /// Its kind, for programs: one of those in docs/measures.md.
    pub kind: &'static str,
    /// The text for people: whole sentences, which name the flows or links and say what to do. Without counts, which
    /// differ between runs: equal texts are printed once.
    pub text: String,
    /// The number of named items to which it applies, if counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cases: Option<u64>,
    /// The total number of such items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

/// The measures and labels that rows of each table can have, as `TABLE` -> names. An entry of a map has the map's name
/// before its own, as in `drops_overflow`.
#[must_use]
pub fn columns() -> BTreeMap<&'static str, Vec<String>> {
    let drops = || DropReason::ALL.into_iter().map(|reason| (reason.name(), 0)).collect();
    let queue = QueueSummary {
        occupancy: (0..10).map(|tenth| (tenth, 0.0)).collect(),
        drops: drops(),
        l4s: Some(ClassSummary::default()),
        classic: Some(ClassSummary::default()),
        ..Default::default()
    };
    let group = GroupSummary { friendliness: Some(0.0), ..Default::default() };
    // The row of the run as a whole includes the engine's statistics.
    let times = ["duration_s", "warmup_s", "end_s", "measured_s"].map(str::to_owned);
    let mut run = names(&EngineSummary { drops: drops(), ..Default::default() });
    run.extend(names(&Summary::default()).into_iter().filter(|name| times.contains(name)));
    BTreeMap::from([
        ("runs", run),
        ("flows", names(&FlowSummary::default())),
        ("streams", names(&StreamSummary::default())),
        ("queues", names(&queue)),
        ("link_flows", names(&LinkFlowSummary { drops: drops(), ..Default::default() })),
        ("interfaces", names(&InterfaceSummary::default())),
        ("groups", names(&group)),
    ])
}

/// The names of a row's fields.
fn names(row: &impl Serialize) -> Vec<String> {
    let Ok(Value::Object(fields)) = serde_json::to_value(row) else { return Vec::new() };
    let named = |(name, value): (String, Value)| match value {
        Value::Object(entries) => entries.keys().map(|key| format!("{name}_{key}")).collect(),
        _ => vec![name],
    };
    fields.into_iter().flat_map(named).collect()
}

/// Jain's fairness index (Jain, Chiu, Hawe 1984); `None` without a positive value.
#[must_use]
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn jain_of_equals_is_one_and_of_one_hog_is_one_nth() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0]), None);
        assert_eq!(jain(&[]), None);
    }
}

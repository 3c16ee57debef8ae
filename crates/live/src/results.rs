//! Measurements of a run on real paths, in the form of a simulated run's summary: the same tables and names
//! (`docs/measures.md`). Measures that are unknown for real traffic are `None`.

use paceline_sim::Series;
pub use paceline_sim::measures::FlowRow;
use paceline_sim::summary::{GroupSummary, QueueSummary, StreamSummary};
use paceline_units::Time;
use serde::Serialize;

/// Summary of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LiveSummary {
    /// Name of the run.
    pub name: String,
    /// Number of the run within a series; no seed is used.
    pub seed: u64,
    /// Requested duration; `None`: until it was stopped.
    pub duration_s: Option<f64>,
    /// Duration of the excluded beginning.
    pub warmup_s: f64,
    /// When the run ended.
    pub end_s: f64,
    /// From the end of the warm-up to the end of the run.
    pub measured_s: f64,
    /// One row per flow.
    pub flows: Vec<FlowRow>,
    /// One row per media stream.
    pub streams: Vec<StreamSummary>,
    /// One row per link direction of an emulated path.
    pub queues: Vec<QueueSummary>,
    /// One row per group of flows.
    pub groups: Vec<GroupSummary>,
    /// Notes for readers of the numbers, in sentences.
    pub notes: Vec<String>,
}

impl LiveSummary {
    /// The summary of a run that ended at `end`, with the groups that its flows form.
    #[must_use]
    pub fn new(name: &str, end: Time, flows: Vec<FlowRow>) -> LiveSummary {
        let end_s = end.as_secs_f64();
        let groups = groups(&flows);
        LiveSummary {
            name: name.to_owned(),
            seed: 1,
            end_s,
            measured_s: end_s,
            flows,
            groups,
            ..LiveSummary::default()
        }
    }
}

/// Measurements and recordings of a run.
#[derive(Clone, Debug, Default)]
pub struct LiveOutput {
    /// The tables.
    pub summary: LiveSummary,
    /// The recordings.
    pub series: Vec<Series>,
}

/// The groups that flows with the same group name form.
#[must_use]
pub fn groups(flows: &[FlowRow]) -> Vec<GroupSummary> {
    let rows = flows.iter().map(|flow| (flow.group.as_str(), flow.goodput_bps, flow.bytes_delivered.unwrap_or(0)));
    paceline_sim::groups(rows, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_jains_index_and_shares() {
        let row = |group: &str, goodput_bps: f64| FlowRow {
            group: group.to_owned(),
            goodput_bps,
            bytes_delivered: Some(goodput_bps as u64),
            ..FlowRow::default()
        };
        let found = groups(&[row("a", 3.0), row("b", 2.0), row("a", 1.0)]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].jain, found[0].goodput_bps), (Some(0.8), 4.0));
        assert_eq!((found[0].flow_goodput_sd_bps, found[1].share), (1.0, Some(2.0 / 6.0)));
    }
}

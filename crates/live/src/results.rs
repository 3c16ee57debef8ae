//! What a run on real paths measured, in the shape of a simulated run's summary: the same tables, the same names
//! (`docs/measures.md`). What cannot be known of real traffic is `None`.

use paceline_sim::Series;
pub use paceline_sim::measures::FlowRow;
use paceline_sim::summary::{GroupSummary, QueueSummary, StreamSummary};
use paceline_units::Time;
use serde::Serialize;

/// Everything that was measured of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LiveSummary {
    /// What ran.
    pub name: String,
    /// Number of the run among its like; there is no seed to draw from.
    pub seed: u64,
    /// What was asked for; `None`: until it was stopped.
    pub duration_s: Option<f64>,
    /// What was left out at the beginning.
    pub warmup_s: f64,
    /// When the run ended.
    pub end_s: f64,
    /// From the end of the warm-up to the end of the run.
    pub measured_s: f64,
    /// A row a flow.
    pub flows: Vec<FlowRow>,
    /// A row a media stream.
    pub streams: Vec<StreamSummary>,
    /// A row a link direction, over an emulated path.
    pub queues: Vec<QueueSummary>,
    /// A row a group of flows.
    pub groups: Vec<GroupSummary>,
    /// What a reader of the numbers should know, in sentences.
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

/// What a run measured and recorded.
#[derive(Clone, Debug, Default)]
pub struct LiveOutput {
    /// Its tables.
    pub summary: LiveSummary,
    /// Its recordings.
    pub series: Vec<Series>,
}

/// The flows that share a group's name.
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

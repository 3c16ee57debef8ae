//! What a run on real paths measured, in the shape of a simulated run's summary: the same tables, the same names
//! (`docs/measures.md`). What cannot be known of real traffic is `None`.

use paceline_sim::Series;
use paceline_sim::summary::{GroupSummary, QueueSummary, StreamSummary};
use paceline_units::Time;
use serde::{Deserialize, Serialize};

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

/// One flow: the fields of the simulator's `FlowSummary`, then those that only real flows have.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are those of docs/measures.md")]
pub struct FlowRow {
    pub flow: String,
    pub instance: u32,
    pub group: String,
    pub cc: String,
    /// Empty where it is not known: of what another program sends.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app: String,
    pub profile: String,
    pub from: String,
    pub to: String,
    pub propagation_rtt_s: Option<f64>,
    pub start_s: f64,
    /// Not a number (in JSON null) where nothing is known of the receiver.
    pub goodput_bps: f64,
    pub throughput_bps: Option<f64>,
    pub send_rate_bps: Option<f64>,
    pub send_rate_cov: Option<f64>,
    pub goodput_cov: Option<f64>,
    pub startup_s: Option<f64>,
    pub packets_sent: Option<u64>,
    pub packets_delivered: Option<u64>,
    pub packets_lost: Option<u64>,
    pub acks_lost: Option<u64>,
    pub packets_retransmitted: Option<u64>,
    pub loss_rate: Option<f64>,
    pub receiving_ratio: Option<f64>,
    pub loss_event_rate: Option<f64>,
    pub timeouts: Option<u64>,
    pub timeout_series: Option<u64>,
    pub fast_retransmits: Option<u64>,
    pub window_cuts: Option<u64>,
    pub ecn_marks: Option<u64>,
    pub rtt_mean_s: Option<f64>,
    pub rtt_min_s: Option<f64>,
    pub rtt_max_s: Option<f64>,
    pub rtt_p50_s: Option<f64>,
    pub rtt_p95_s: Option<f64>,
    pub rtt_p99_s: Option<f64>,
    pub cwnd_mean_packets: Option<f64>,
    pub cwnd_max_packets: Option<f64>,
    pub timeout_mean_s: Option<f64>,
    pub base_rtt_mean_s: Option<f64>,
    pub bytes_delivered: Option<u64>,
    pub transfers_started: Option<u64>,
    pub transfers_completed: Option<u64>,
    pub transfers_unfinished: Option<u64>,
    pub transfer_time_mean_s: Option<f64>,
    pub transfer_time_p50_s: Option<f64>,
    pub transfer_time_p95_s: Option<f64>,
    pub transfer_time_p99_s: Option<f64>,
    pub frames_sent: Option<u64>,
    pub frames_complete: Option<u64>,
    pub complete_share: Option<f64>,
    pub frame_delay_mean_s: Option<f64>,
    pub frame_delay_p50_s: Option<f64>,
    pub frame_delay_p95_s: Option<f64>,
    pub frame_delay_p99_s: Option<f64>,
    pub frame_delay_max_s: Option<f64>,
    pub freezes: Option<u64>,
    pub freeze_s: Option<f64>,
    pub frames_reset: Option<u64>,
    pub reset_share: Option<f64>,
    pub frames_dropped: Option<u64>,
    pub dropped_share: Option<f64>,
    pub frames_skipped: Option<u64>,
    pub frames_shown: Option<u64>,
    pub frames_late: Option<u64>,
    pub frames_undecodable: Option<u64>,
    pub key_frames: Option<u64>,
    pub jitter_buffer_delay_s: Option<f64>,
    pub nacks: Option<u64>,
    pub plis: Option<u64>,
    pub feedback_share: Option<f64>,
    pub owd_mean_s: Option<f64>,
    pub owd_min_s: Option<f64>,
    pub owd_max_s: Option<f64>,
    pub owd_p50_s: Option<f64>,
    pub owd_p95_s: Option<f64>,
    pub owd_p99_s: Option<f64>,
    pub interarrival_mean_s: Option<f64>,
    pub interarrival_sd_s: Option<f64>,
    pub interarrival_p99_s: Option<f64>,
    pub interarrival_max_s: Option<f64>,
    pub jitter_s: Option<f64>,
    pub voice_rating: Option<f64>,
    pub voice_mos: Option<f64>,
    /// How long it was active.
    pub active_s: f64,
    /// How it ended, in a few words: "peer closed", "time is up".
    pub ended: Option<String>,
    /// Process that has the socket, of a connection that was watched.
    pub pid: Option<u32>,
    /// Its program.
    pub program: Option<String>,
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

    fn fields(text: &str, name: &str) -> Vec<String> {
        let body = text.split(&format!("pub struct {name} {{")).nth(1).unwrap().split("\n}").next().unwrap();
        let lines = body.lines().filter_map(|line| line.trim().strip_prefix("pub "));
        lines.map(|line| line.split(':').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_row_begins_with_the_simulators_columns() {
        let simulated = fields(include_str!("../../sim/src/summary.rs"), "FlowSummary");
        let live = fields(include_str!("results.rs"), "FlowRow");
        assert!(simulated.len() > 40);
        assert_eq!(live[..simulated.len()], simulated[..], "a new column of simulated flows belongs here too");
    }

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

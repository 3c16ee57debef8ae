//! The results of one run. Field names carry their units; `docs/measures.md` defines each measure.

use paceline_engine::DropReason;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Everything that is measured of a run unless more is asked for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub name: String,
    /// The seed that all random draws come from.
    pub seed: u64,
    /// The scenario's duration.
    pub duration_s: f64,
    /// What was left out at the beginning.
    pub warmup_s: f64,
    /// When the run ended: the duration, or earlier if it waited for a flow.
    pub end_s: f64,
    /// From the end of the warm-up to the end of the run.
    pub measured_s: f64,
    /// How the engine ran, and where all packets went.
    pub engine: EngineSummary,
    /// A row a flow.
    pub flows: Vec<FlowSummary>,
    /// A row a media stream.
    pub streams: Vec<StreamSummary>,
    /// A row a link direction with a limited queue, and a row an interface of a cell.
    pub queues: Vec<QueueSummary>,
    /// A row a flow and link direction, where it is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub link_flows: Vec<LinkFlowSummary>,
    /// A row an interface of a cell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceSummary>,
    /// A row a group of flows.
    pub groups: Vec<GroupSummary>,
    /// What a reader of these numbers should know and none of them says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Something that a reader of a run's results should know and no measure says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Notice {
    /// What it is about, for programs: one of those in docs/measures.md.
    pub kind: &'static str,
    /// The same in words: whole sentences, which name what is meant and say what to do. Without counts, which differ from
    /// run to run: equal texts are told once.
    pub text: String,
    /// How many of what it names it is true of, if it is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cases: Option<u64>,
    /// Of how many in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

/// How the engine ran.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EngineSummary {
    /// Length of a window.
    pub window_s: f64,
    /// Hosts and links that are not folded.
    pub elements: usize,
    /// Emitted by hosts in the whole run, warm-up included, as are the next four.
    pub packets_sent: u64,
    /// Handled by the hosts they were for.
    pub packets_delivered: u64,
    /// Dropped with a reason.
    pub packets_dropped: u64,
    /// The same by reason; `corrupt` is found by hosts and stands in no link's drops.
    pub drops: BTreeMap<&'static str, u64>,
    /// Copies made by impairments.
    pub packets_duplicated: u64,
    /// On their way when the run ended.
    pub packets_in_flight: u64,
}

/// One flow. What has no value (no round trip was measured, say) is `None`.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)] // the names are those of docs/measures.md
pub struct FlowSummary {
    pub flow: String,
    pub instance: u32,
    pub group: String,
    pub cc: String,
    pub app: String,
    pub profile: String,
    pub from: String,
    pub to: String,
    pub propagation_rtt_s: f64,
    pub start_s: f64,
    pub goodput_bps: f64,
    pub throughput_bps: f64,
    pub send_rate_bps: f64,
    pub send_rate_cov: Option<f64>,
    pub goodput_cov: Option<f64>,
    pub startup_s: Option<f64>,
    pub packets_sent: u64,
    pub packets_delivered: u64,
    pub packets_lost: u64,
    pub acks_lost: u64,
    pub packets_retransmitted: u64,
    pub loss_rate: Option<f64>,
    pub receiving_ratio: Option<f64>,
    pub loss_event_rate: Option<f64>,
    pub timeouts: u64,
    pub timeout_series: u64,
    pub fast_retransmits: u64,
    pub window_cuts: u64,
    pub ecn_marks: u64,
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
    pub bytes_delivered: u64,
    pub transfers_started: u64,
    pub transfers_completed: u64,
    pub transfers_unfinished: u64,
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
}

/// One media stream, from the flow's start to its end; the warm-up does not matter here.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)] // the names are those of docs/measures.md
pub struct StreamSummary {
    pub flow: String,
    pub instance: u32,
    pub began: bool,
    pub fill_s: Option<f64>,
    pub late_packets: u64,
    pub due_packets: u64,
    pub media_packets: u64,
    pub late_share: Option<f64>,
    pub undelivered_share: f64,
    pub stalls: u64,
    pub stall_s: f64,
    pub stall_share: Option<f64>,
    pub discarded_packets: u64,
    pub completed: bool,
    pub duration_s: f64,
    pub throughput_bps: f64,
}

/// One direction of a link with a limited queue. The queue is what waits, without the packet in transmission.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)] // the names are those of docs/measures.md
pub struct QueueSummary {
    pub link: String,
    pub direction: &'static str,
    pub mean_packets: f64,
    pub sd_packets: f64,
    pub mean_bytes: f64,
    pub sd_bytes: f64,
    pub max_packets: u64,
    /// If asked for: shares of the time at each tenth of the limit, by the tenth's number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub occupancy: BTreeMap<u8, f64>,
    pub utilisation: f64,
    pub arrivals: u64,
    pub departures: u64,
    pub departed_bytes: u64,
    pub drops: BTreeMap<&'static str, u64>,
    pub marks: u64,
    /// Of a discipline with two classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l4s: Option<ClassSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classic: Option<ClassSummary>,
}

/// What a class of packets had of a queue; the counts are parts of those in [`QueueSummary`].
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[allow(missing_docs)] // the names are those of docs/measures.md
pub struct ClassSummary {
    pub departures: u64,
    pub departed_bytes: u64,
    pub drops: u64,
    pub marks: u64,
    pub delay_mean_s: Option<f64>,
}

/// What a flow has of one direction of a link; the counts are parts of those in [`QueueSummary`].
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)] // the names are those of docs/measures.md
pub struct LinkFlowSummary {
    pub link: String,
    pub direction: &'static str,
    pub flow: String,
    pub instance: u32,
    pub mean_packets: f64,
    pub queue_share: Option<f64>,
    pub arrivals: u64,
    pub departures: u64,
    pub departed_bytes: u64,
    pub drop_share: Option<f64>,
    pub drops: BTreeMap<&'static str, u64>,
    pub marks: u64,
}

/// One transmitter of an 802.11 cell; its queue stands among the queues.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)] // the names are those of docs/measures.md
pub struct InterfaceSummary {
    pub cell: String,
    pub interface: String,
    pub attempts: u64,
    pub retries: u64,
    pub collisions: u64,
    pub frame_errors: u64,
    pub given_up: u64,
    pub collision_rate: Option<f64>,
    pub airtime_s: f64,
    pub airtime_share: f64,
}

/// The flows that share a group's name and were active while it was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GroupSummary {
    /// Its name.
    pub group: String,
    /// How many flows it has.
    pub flows: u64,
    /// Jain's fairness index of their goodputs: (sum x)^2 / (n sum x^2); `None` if all are zero.
    pub jain: Option<f64>,
    /// The sum of their goodputs.
    pub goodput_bps: f64,
    /// The mean of their goodputs.
    pub flow_goodput_mean_bps: f64,
    /// Standard deviation (by n) among their goodputs.
    pub flow_goodput_sd_bps: f64,
    /// Their part of the payload that all flows delivered in the measured interval; `None` if there was none.
    pub share: Option<f64>,
    /// With `friendliness_to`: their mean goodput by that of the flows of the group named; `None` without it, or if
    /// those delivered nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub friendliness: Option<f64>,
}

/// The measures and labels that rows of each table can have, as `TABLE` -> names; entries of a map as `drops_overflow`.
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
    // Of the run as a whole, with the engine's account in the same row.
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

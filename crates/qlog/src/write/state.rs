//! What a connection is at: metrics of recovery, and the parameters that it began with.

use super::event::Initiator;
use super::some_millis;
use paceline_units::{Rate, Span};
use serde::{Serialize, Serializer};

/// Joins two metrics value by value.
macro_rules! joined {
    ($now:expr, $before:expr, |$a:ident, $b:ident| $how:expr) => {
        joined!(@ $now, $before, |$a, $b| $how; min_rtt, smoothed_rtt, latest_rtt, rtt_variance, pto_count, congestion_window, bytes_in_flight, ssthresh, packets_in_flight, pacing_rate)
    };
    (@ $now:expr, $before:expr, |$a:ident, $b:ident| $how:expr; $($field:ident),*) => {
        Metrics { $($field: { let ($a, $b) = ($now.$field, $before.$field); $how }),* }
    };
}

/// Where loss recovery stands (RFC 9002). What is `None` has no value yet, or is left as it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Metrics {
    /// Least round-trip time.
    #[serde(serialize_with = "some_millis", skip_serializing_if = "Option::is_none")]
    pub min_rtt: Option<Span>,
    /// Smoothed round-trip time.
    #[serde(serialize_with = "some_millis", skip_serializing_if = "Option::is_none")]
    pub smoothed_rtt: Option<Span>,
    /// The latest sample.
    #[serde(serialize_with = "some_millis", skip_serializing_if = "Option::is_none")]
    pub latest_rtt: Option<Span>,
    /// Mean deviation of the samples (`rttvar`).
    #[serde(serialize_with = "some_millis", skip_serializing_if = "Option::is_none")]
    pub rtt_variance: Option<Span>,
    /// Probe timeouts in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pto_count: Option<u16>,
    /// The window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<u64>,
    /// Bytes in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight: Option<u64>,
    /// Slow-start threshold, in bytes; none: no loss yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u64>,
    /// Packets in flight, of all number spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_in_flight: Option<u64>,
    /// Pacing rate.
    #[serde(serialize_with = "some_bps", skip_serializing_if = "Option::is_none")]
    pub pacing_rate: Option<Rate>,
}

impl Metrics {
    /// Those that have a value, and another one than in `before`.
    pub(super) fn others_than(&self, before: &Metrics) -> Metrics {
        joined!(self, before, |now, then| if now == then { None } else { now })
    }

    /// These, and those of `before` that have no value here.
    pub(super) fn or(&self, before: &Metrics) -> Metrics {
        joined!(self, before, |now, then| now.or(then))
    }
}

/// What loss recovery and congestion control begin with (RFC 9002, A.2 and B.2).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct RecoveryParameters<'a> {
    /// The congestion controller's name: a field that the draft leaves to us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<&'a str>,
    /// Packets that must overtake one before it counts as lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering_threshold: Option<u16>,
    /// Round-trip times after which it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_threshold: Option<f32>,
    /// The timers' granularity, in whole milliseconds.
    #[serde(rename = "timer_granularity")]
    pub timer_granularity_ms: u16,
    /// The round-trip time that is assumed before the first sample.
    #[serde(serialize_with = "some_millis", skip_serializing_if = "Option::is_none")]
    pub initial_rtt: Option<Span>,
    /// Bytes of the greatest datagram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_datagram_size: Option<u32>,
    /// Bytes of the first window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_congestion_window: Option<u64>,
    /// Bytes of the least window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_congestion_window: Option<u64>,
    /// What the window is multiplied by at a loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_reduction_factor: Option<f32>,
    /// Probe timeouts whose time makes congestion persistent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_congestion_threshold: Option<u16>,
}

/// Transport parameters (RFC 9000, 18.2; RFC 9221) that matter for how fast data may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Parameters<'a> {
    /// Whose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<Initiator>,
    /// The cipher, by TLS's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cipher: Option<&'a str>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", rename = "max_idle_timeout")]
    pub max_idle_timeout_ms: Option<u64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_udp_payload_size: Option<u64>,
    /// By which the ACK frames' delays are scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_delay_exponent: Option<u64>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", rename = "max_ack_delay")]
    pub max_ack_delay_ms: Option<u64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_max_data: Option<u64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_max_stream_data_bidi_local: Option<u64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_max_stream_data_bidi_remote: Option<u64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_max_stream_data_uni: Option<u64>,
    /// Streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_max_streams_bidi: Option<u64>,
    /// Streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_max_streams_uni: Option<u64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_datagram_frame_size: Option<u64>,
    /// None are written; the list is there since a reader that is in use (the crate `qlog`) refuses the event without it.
    #[serde(rename = "unknown_parameters")]
    pub unknown: [(); 0],
}

fn some_bps<S: Serializer>(rate: &Option<Rate>, to: S) -> Result<S::Ok, S::Error> {
    rate.map(|rate| rate.0).serialize(to)
}

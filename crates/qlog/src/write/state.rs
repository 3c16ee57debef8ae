//! The state of a connection: recovery metrics, and its initial parameters.

use super::event::Initiator;
use super::some_millis;
use paceline_units::{Rate, Span};
use serde::{Serialize, Serializer};

/// Joins two sets of metrics, value by value.
macro_rules! joined {
    ($now:expr, $before:expr, |$a:ident, $b:ident| $how:expr) => {
        joined!(@ $now, $before, |$a, $b| $how; min_rtt, smoothed_rtt, latest_rtt, rtt_variance, pto_count, congestion_window, bytes_in_flight, ssthresh, packets_in_flight, pacing_rate)
    };
    (@ $now:expr, $before:expr, |$a:ident, $b:ident| $how:expr; $($field:ident),*) => {
        Metrics { $($field: { let ($a, $b) = ($now.$field, $before.$field); $how }),* }
    };
}

/// Metrics of loss recovery (RFC 9002). `None` means no value yet, or unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Metrics {
    /// Minimum round-trip time.
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
    /// The congestion window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_window: Option<u64>,
    /// Bytes in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight: Option<u64>,
    /// Slow-start threshold, in bytes; `None` before the first loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u64>,
    /// Packets in flight in all number spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_in_flight: Option<u64>,
    /// Pacing rate.
    #[serde(serialize_with = "some_bps", skip_serializing_if = "Option::is_none")]
    pub pacing_rate: Option<Rate>,
}

impl Metrics {
    /// The metrics that have a value other than in `before`.
    pub(super) fn others_than(&self, before: &Metrics) -> Metrics {
        joined!(self, before, |now, then| if now == then { None } else { now })
    }

    /// These metrics, completed from `before`.
    pub(super) fn or(&self, before: &Metrics) -> Metrics {
        joined!(self, before, |now, then| now.or(then))
    }
}

/// Initial parameters of loss recovery and congestion control (RFC 9002, A.2 and B.2).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct RecoveryParameters<'a> {
    /// The congestion controller's name: an additional field, which the draft permits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<&'a str>,
    /// kPacketThreshold: packets by which a packet must be overtaken to be declared lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering_threshold: Option<u16>,
    /// kTimeThreshold: round-trip times after which a packet is declared lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_threshold: Option<f32>,
    /// kGranularity: the timers' granularity, in whole milliseconds.
    #[serde(rename = "timer_granularity")]
    pub timer_granularity_ms: u16,
    /// kInitialRtt: the round-trip time assumed before the first sample.
    #[serde(serialize_with = "some_millis", skip_serializing_if = "Option::is_none")]
    pub initial_rtt: Option<Span>,
    /// Maximum datagram size, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_datagram_size: Option<u32>,
    /// Initial congestion window, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_congestion_window: Option<u64>,
    /// kMinimumWindow, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum_congestion_window: Option<u64>,
    /// kLossReductionFactor: factor of the window at a loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_reduction_factor: Option<f32>,
    /// kPersistentCongestionThreshold: probe timeouts that make persistent congestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_congestion_threshold: Option<u16>,
}

/// Transport parameters (RFC 9000, 18.2; RFC 9221) that affect the rate of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Parameters<'a> {
    /// The end that declared them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initiator: Option<Initiator>,
    /// The cipher suite, by TLS's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_cipher: Option<&'a str>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none", rename = "max_idle_timeout")]
    pub max_idle_timeout_ms: Option<u64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_udp_payload_size: Option<u64>,
    /// Scales the delays in ACK frames.
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
    /// Always empty; the list exists because the crate `qlog`, a reader in use, refuses the event without it.
    #[serde(rename = "unknown_parameters")]
    pub unknown: [(); 0],
}

fn some_bps<S: Serializer>(rate: &Option<Rate>, to: S) -> Result<S::Ok, S::Error> {
    rate.map(|rate| rate.0).serialize(to)
}

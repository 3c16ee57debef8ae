//! A gateway's status while it runs, and its report at the end.

use super::delay::DelayFrom;
use super::run::GatewayOptions;
use crate::host::HostReport;
use paceline_path::access_point::Law;
use serde::Serialize;

/// A connection in the last interval.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowStatus {
    /// The station's address and port.
    pub station: String,
    /// The remote address and port.
    pub remote: String,
    /// Rate of data towards the station.
    pub rate_bps: f64,
    /// The window that the station advertises.
    pub advertised_bytes: u32,
    /// The window that the gateway allows; `None` if it does not limit the connection.
    pub window_bytes: Option<u32>,
    /// The sender's bytes in flight.
    pub outstanding_bytes: u64,
    /// Minimum round-trip time, if known.
    pub rtt_s: Option<f64>,
    /// Acknowledgements whose window was lowered.
    pub lowered: u64,
}

/// Status after an interval.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Status {
    /// Time since the gateway's start.
    pub time_s: f64,
    /// The longest wait in the queue.
    pub delay_s: f64,
    /// UDP in both directions, Ethernet headers included.
    pub udp_bps: f64,
    /// Acknowledgements whose window was lowered, since the start.
    pub lowered: u64,
    /// Number of connections whose handshake the gateway did not see.
    pub left_alone: usize,
    /// The other connections with a packet in the last half minute.
    pub flows: Vec<FlowStatus>,
}

/// Report of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GatewayReport {
    /// The interface towards the stations.
    pub lan: String,
    /// `voap`, `sap-law` or `window`.
    pub algorithm: &'static str,
    /// How the data path was attached.
    pub attached: &'static str,
    /// Where the delay was measured.
    pub delay_from: &'static str,
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// Number of leftovers of an earlier gateway that were removed: filters and shapers.
    pub cleared: usize,
    /// Duration of the run.
    pub duration_s: f64,
    /// Number of intervals.
    pub intervals: u64,
    /// Mean over the intervals of the longest wait; `None` before the first interval has ended.
    pub delay_mean_s: Option<f64>,
    /// The longest wait.
    pub delay_max_s: Option<f64>,
    /// Acknowledgements whose window was lowered (with `dry_run`: would have been lowered).
    pub lowered: u64,
    /// Maximum number of concurrent connections.
    pub most_flows: usize,
    /// Packets that the queue dropped; `None` if no queue was observed.
    pub queue_drops: Option<u64>,
    /// The host's state.
    pub host: Option<HostReport>,
}

impl GatewayReport {
    pub(super) fn new(
        options: &GatewayOptions,
        attached: &'static str,
        delay: DelayFrom,
        cleared: usize,
    ) -> GatewayReport {
        GatewayReport {
            lan: options.lan.clone(),
            algorithm: match options.law {
                Law::Voap(_) => "voap",
                Law::SapLaw(_) => "sap-law",
                Law::Fixed(_) => "window",
            },
            attached,
            delay_from: delay.name(),
            dry_run: options.dry_run,
            cleared,
            duration_s: 0.0,
            intervals: 0,
            delay_mean_s: None,
            delay_max_s: None,
            lowered: 0,
            most_flows: 0,
            queue_drops: None,
            host: None,
        }
    }

    pub(super) fn take_in(&mut self, status: &Status) {
        self.intervals += 1;
        let mean = self.delay_mean_s.unwrap_or(0.0);
        self.delay_mean_s = Some(mean + (status.delay_s - mean) / self.intervals as f64);
        self.delay_max_s = Some(self.delay_max_s.unwrap_or(0.0).max(status.delay_s));
        self.lowered = status.lowered;
        self.most_flows = self.most_flows.max(status.flows.len());
    }
}

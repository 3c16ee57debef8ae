//! Google congestion control as libwebrtc has it: a rate for calls from the growth of the delay, from losses and from probes.
//!
//! Source: libwebrtc (BSD-3), as of January 2026; the code is the authority, draft-ietf-rmcat-gcc-02 (2016) knows neither
//! its loss-based part nor probes. Each part is a file of its own that names its source; the tests hold the cases and numbers
//! of libwebrtc's unit tests. Rates are in bits a second and count all headers.

pub mod aimd;
pub mod alr;
pub mod delay;
pub mod inter_arrival;
pub mod link_capacity;
pub mod loss;
pub mod network;
pub mod probe;
pub mod probe_estimate;
pub mod pushback;
pub mod send_side;
pub mod throughput;
pub mod trendline;

use paceline_units::Time;
use probe_estimate::Cluster;

/// The rate is never less: kCongestionControllerMinBitrate.
const LEAST: f64 = 5e3;

/// A packet of which feedback tells.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Told {
    /// When it left.
    pub sent: Time,
    /// When it came, by the receiver's clock; `None` if it is lost.
    pub arrived: Option<Time>,
    /// Its size in bytes.
    pub size: f64,
    /// The cluster of probes that it belongs to.
    pub cluster: Option<Cluster>,
}

impl Told {
    /// One that is no probe.
    #[must_use]
    pub fn new(sent: Time, arrived: Option<Time>, size: f64) -> Told {
        Told { sent, arrived, size, cluster: None }
    }
}

/// From `earlier` to `later` in nanoseconds; below zero if it is the other way round.
fn nanos(later: Time, earlier: Time) -> i64 {
    later.0.wrapping_sub(earlier.0) as i64
}

/// The same in milliseconds.
fn millis(later: Time, earlier: Time) -> f64 {
    nanos(later, earlier) as f64 / 1e6
}

//! Google congestion control as libwebrtc has it: a rate for calls from the growth of the delay, from losses and from probes.
//!
//! Source: libwebrtc (BSD-3), as of January 2026; the code is the authority, draft-ietf-rmcat-gcc-02 (2016) knows neither
//! its loss-based part nor probes. Each part is a file of its own that names its source; the tests hold the cases and numbers
//! of libwebrtc's unit tests. Rates are in bits a second and count all headers.

pub mod aimd;
pub mod inter_arrival;
pub mod link_capacity;
pub mod trendline;

use paceline_units::Time;

/// The rate is never less: kCongestionControllerMinBitrate.
const LEAST: f64 = 5e3;

/// From `earlier` to `later` in nanoseconds; below zero if it is the other way round.
fn nanos(later: Time, earlier: Time) -> i64 {
    later.0.wrapping_sub(earlier.0) as i64
}

/// The same in milliseconds.
fn millis(later: Time, earlier: Time) -> f64 {
    nanos(later, earlier) as f64 / 1e6
}

//! The rate that a probe has measured.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/probe_bitrate_estimator.cc.

use super::{PacketResult, nanos};
use paceline_units::{Span, Time};
use std::collections::BTreeMap;

/// Minimum share of the cluster's packets, and of its bytes, that must arrive.
const MIN_RECEIVED_PROBES_RATIO: f64 = 0.80;
/// A probe received this many times faster than it was sent is invalid.
const MAX_VALID_RATIO: f64 = 2.0;
/// A probe received slower than this share of its sending rate has saturated the bottleneck.
const MIN_RATIO_FOR_UNSATURATED_LINK: f64 = 0.9;
/// Then this share of the receive rate is used.
const TARGET_UTILIZATION_FRACTION: f64 = 0.95;
/// Maximum time in which a cluster is sent, and received; then it is forgotten.
const MAX_PROBE_INTERVAL: i64 = Span::from_secs(1).0 as i64;

/// The cluster in which a packet was sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cluster {
    /// Its number.
    pub id: u32,
    /// Its minimum number of packets.
    pub packets: u32,
    /// Its minimum number of bytes.
    pub bytes: f64,
}

#[derive(Clone, Copy, Debug)]
struct Received {
    packets: u32,
    bytes: f64,
    first_sent: Time,
    /// The last departure, and that packet's size.
    last_sent: (Time, f64),
    /// The first arrival, and that packet's size.
    first_arrival: (Time, f64),
    last_arrival: Time,
}

/// The clusters in progress.
#[derive(Clone, Debug, Default)]
pub struct ProbeBitrateEstimator {
    clusters: BTreeMap<u32, Received>,
    found: Option<f64>,
}

impl ProbeBitrateEstimator {
    /// Handles feedback on a packet. Returns the rate if its cluster now gives one, which is also kept for
    /// [`ProbeBitrateEstimator::take`].
    pub fn packet(&mut self, result: &PacketResult) -> Option<f64> {
        let (cluster, arrived) = (result.cluster?, result.arrived?);
        self.clusters.retain(|_, c| nanos(arrived, c.last_arrival) <= MAX_PROBE_INTERVAL);
        let c = self.clusters.entry(cluster.id).or_insert(Received {
            packets: 0,
            bytes: 0.0,
            first_sent: result.sent,
            last_sent: (result.sent, result.size),
            first_arrival: (arrived, result.size),
            last_arrival: arrived,
        });
        c.packets += 1;
        c.bytes += result.size;
        c.first_sent = c.first_sent.min(result.sent);
        c.last_arrival = c.last_arrival.max(arrived);
        if result.sent > c.last_sent.0 {
            c.last_sent = (result.sent, result.size);
        }
        if arrived < c.first_arrival.0 {
            c.first_arrival = (arrived, result.size);
        }
        let enough = (f64::from(cluster.packets) * MIN_RECEIVED_PROBES_RATIO).floor();
        if f64::from(c.packets) < enough || c.bytes < cluster.bytes * MIN_RECEIVED_PROBES_RATIO {
            return None;
        }
        let rate = c.rate()?;
        self.found = Some(rate);
        Some(rate)
    }

    /// The result since the last call.
    pub fn take(&mut self) -> Option<f64> {
        self.found.take()
    }
}

impl Received {
    /// The sending time does not include the last packet's, nor the receiving time the first one's: their sizes are
    /// excluded too.
    fn rate(&self) -> Option<f64> {
        let rate = |bytes: f64, time: i64| (time > 0 && time <= MAX_PROBE_INTERVAL).then(|| bytes * 8e9 / time as f64);
        let sent = rate(self.bytes - self.last_sent.1, nanos(self.last_sent.0, self.first_sent))?;
        let received = rate(self.bytes - self.first_arrival.1, nanos(self.last_arrival, self.first_arrival.0))?;
        if received > MAX_VALID_RATIO * sent {
            return None;
        }
        Some(if received < MIN_RATIO_FOR_UNSATURATED_LINK * sent {
            TARGET_UTILIZATION_FRACTION * received
        } else {
            sent.min(received)
        })
    }
}

#[cfg(test)]
mod tests {
    //! The cases and numbers of libwebrtc's probe_bitrate_estimator_unittest.cc.

    use super::*;

    const FIVE: (u32, f64) = (5, 5000.0);

    struct Case(ProbeBitrateEstimator);

    impl Case {
        /// Packets (bytes, departure, arrival in ms) of cluster `id`; returns the last one's result in bits per second.
        fn run(&mut self, id: u32, minimum: (u32, f64), packets: &[(f64, u64, u64)]) -> Option<f64> {
            let mut last = None;
            for &(size, sent, arrived) in packets {
                let at = |ms| Time(1_000_000_000_000 + ms * 1_000_000);
                let cluster = Some(Cluster { id, packets: minimum.0, bytes: minimum.1 });
                last = self.0.packet(&PacketResult { cluster, ..PacketResult::new(at(sent), Some(at(arrived)), size) });
            }
            last
        }
    }

    fn case() -> Case {
        Case(ProbeBitrateEstimator::default())
    }

    const STEADY: [(f64, u64, u64); 4] = [(1000.0, 0, 10), (1000.0, 10, 20), (1000.0, 20, 30), (1000.0, 30, 40)];

    #[track_caller]
    fn near(got: Option<f64>, want: f64) {
        let got = got.expect("a rate");
        assert!((got - want).abs() <= 10.0, "{got} instead of {want}");
    }

    #[test]
    fn one_cluster() {
        near(case().run(0, FIVE, &STEADY), 800e3);
        assert_eq!(case().run(0, FIVE, &STEADY.map(|p| (2000.0, p.1, p.2))[..3]), None, "too few packets");
        let small: Vec<_> = (0..5).map(|i| (800.0, 10 * i, 10 * i + 10)).collect();
        assert_eq!(case().run(0, (5, 6000.0), &small), None, "too few bytes");
        let small: Vec<_> = (0..6).map(|i| (150.0, 10 * i, 10 * i + 10)).collect();
        near(case().run(0, (5, 1000.0), &small), 120e3);
        let large: Vec<_> = (0..25).map(|i| (12_500.0, i, i + 5)).collect();
        near(case().run(0, (30, 312_500.0), &large), 100e6);
    }

    #[test]
    fn the_speed_of_arrival() {
        let arrivals = |at: [u64; 4]| [0, 1, 2, 3].map(|i| (1000.0, STEADY[i].1, at[i]));
        near(case().run(0, FIVE, &arrivals([15, 30, 35, 40])), 800e3);
        near(case().run(0, FIVE, &arrivals([10, 40, 70, 85])), 0.95 * 320e3);
        let fast = [(1000.0, 0, 19), (1000.0, 10, 22), (1000.0, 20, 25), (1000.0, 40, 27)];
        assert_eq!(case().run(0, FIVE, &fast), None, "more than twice as fast as sent");
        assert_eq!(case().run(0, FIVE, &arrivals([50, 50, 50, 50])), None, "all at once");
    }

    #[test]
    fn clusters_are_apart() {
        let mut case = case();
        let first = [(1000.0, 0, 10), (1000.0, 10, 20), (1000.0, 20, 30), (1000.0, 40, 60)];
        near(case.run(0, FIVE, &first), 0.95 * 480e3);
        near(case.run(0, FIVE, &[(1000.0, 50, 60)]), 640e3);
        let second = [(1000.0, 60, 70), (1000.0, 65, 77), (1000.0, 70, 84), (1000.0, 75, 90)];
        near(case.run(1, FIVE, &second), 0.95 * 1200e3);
    }

    #[test]
    fn an_old_cluster_is_forgotten() {
        let mut case = case();
        case.run(0, FIVE, &STEADY[..3]);
        let second = [(1000.0, 60, 70), (1000.0, 65, 77), (1000.0, 70, 84), (1000.0, 75, 90)];
        near(case.run(1, FIVE, &second), 0.95 * 1200e3);
        assert_eq!(case.run(0, FIVE, &[(1000.0, 6040, 6060)]), None);
    }

    #[test]
    fn the_last_to_leave_and_the_first_to_come_do_not_count() {
        let last = [STEADY[0], STEADY[1], STEADY[2], STEADY[3], (1500.0, 40, 50)];
        near(case().run(0, FIVE, &last), 800e3);
        let first = [(1500.0, 0, 10), STEADY[1], STEADY[2], STEADY[3]];
        near(case().run(0, FIVE, &first), 0.95 * 800e3);
    }

    #[test]
    fn a_result_is_taken_once() {
        let mut case = case();
        assert_eq!(case.0.take(), None);
        case.run(0, FIVE, &STEADY);
        near(case.0.take(), 800e3);
        assert_eq!(case.0.take(), None);
    }
}

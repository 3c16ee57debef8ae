//! Estimation of the bottleneck's rate from packet pairs (equation 3 of the LDA+ paper; Bolot, SIGCOMM 1993; Carter and
//! Crovella, Boston University BU-CS-96-006, 1996).
//!
//! Two packets that reach the bottleneck together leave it one service time apart: B = S / G. Cross traffic between
//! them makes the estimate too low, queues behind the bottleneck make it too high; the most frequent value is the true
//! rate.

use super::ProbeConfig;
use paceline_packet::rtcp::Probe;
use paceline_units::{Rate, Time};
use std::collections::VecDeque;

/// The packet-pair estimator.
#[derive(Clone, Debug)]
pub struct PacketPairs {
    config: ProbeConfig,
    /// The burst that is expected or arriving.
    burst: Option<Probe>,
    /// The position of its last packet so far within the burst, and when that arrived.
    last: Option<(u16, Time)>,
    /// The last estimates in bits per second.
    estimates: VecDeque<f64>,
}

impl PacketPairs {
    /// Creates an estimator without estimates.
    #[must_use]
    pub fn new(config: ProbeConfig) -> PacketPairs {
        PacketPairs { config, burst: None, last: None, estimates: VecDeque::new() }
    }

    /// Records the sender's announcement of a burst.
    pub fn announce(&mut self, burst: Probe) {
        self.burst = Some(burst);
        self.last = None;
    }

    /// Processes data packet `seq` of `size` bytes on the wire.
    #[inline]
    pub fn packet(&mut self, now: Time, seq: u16, size: u16) {
        if let Some(burst) = self.burst {
            self.measure(now, seq.wrapping_sub(burst.first), size, burst.count);
        }
    }

    #[cold]
    fn measure(&mut self, now: Time, place: u16, size: u16, count: u16) {
        if place >= count {
            // a packet from before the burst may be late; one from beyond its end ends it
            if place < u16::MAX / 2 {
                self.burst = None;
            }
            return;
        }
        if let Some((before, at)) = self.last
            && before + 1 == place
            && now > at
        {
            self.estimates.push_back(f64::from(size) * 8.0 / now.since(at).as_secs_f64());
            if self.estimates.len() > self.config.history.max(1) {
                self.estimates.pop_front();
            }
        }
        self.last = Some((place, now));
        if place + 1 == count {
            self.burst = None;
        }
    }

    /// The mean of the interval that contains the most estimates; an interval begins at an estimate and extends to
    /// `width` above it. Of several with equally many, the lowest. `None` without an estimate.
    #[must_use]
    pub fn estimate(&self) -> Option<Rate> {
        let mut sorted: Vec<f64> = self.estimates.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let mut fullest: &[f64] = &[];
        let mut end = 0;
        for (start, lowest) in sorted.iter().enumerate() {
            while end < sorted.len() && sorted[end] <= lowest * (1.0 + self.config.width) {
                end += 1;
            }
            if end - start > fullest.len() {
                fullest = &sorted[start..end];
            }
        }
        let mean = fullest.iter().sum::<f64>() / fullest.len().max(1) as f64;
        (!fullest.is_empty()).then_some(Rate((mean + 0.5) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ProbeConfig = ProbeConfig { burst: 4, width: 0.1, history: 10 };

    fn us(n: u64) -> Time {
        Time(n * 1000)
    }

    #[test]
    fn equation_3_of_consecutive_packets_of_a_burst_alone() {
        let mut pairs = PacketPairs::new(CONFIG);
        pairs.packet(us(0), 65_534, 1000);
        assert_eq!(pairs.estimate(), None, "no burst yet");
        pairs.announce(Probe { first: 65_535, count: 3 });
        pairs.packet(us(1), 65_534, 1000); // late
        pairs.packet(us(100), 65_535, 1000);
        pairs.packet(us(900), 0, 1000); // 8000 bits in 800 us
        pairs.packet(us(1700), 1, 500); // 4000 bits in 800 us
        pairs.packet(us(1701), 2, 1000); // beyond its end
        assert_eq!(pairs.estimates, [1e7, 5e6]);
        assert_eq!(pairs.estimate(), Some(Rate(5_000_000)), "of two as good the lower");
    }

    #[test]
    fn a_gap_in_the_numbers_is_no_gap_in_time() {
        let mut pairs = PacketPairs::new(CONFIG);
        pairs.announce(Probe { first: 10, count: 4 });
        pairs.packet(us(0), 10, 1000);
        pairs.packet(us(1600), 12, 1000); // 11 is lost
        pairs.packet(us(1600), 11, 1000); // or rather late
        pairs.packet(us(1600), 12, 1000); // a copy, at the same time
        assert_eq!(pairs.estimate(), None);
        pairs.packet(us(2400), 13, 1000);
        assert_eq!(pairs.estimate(), Some(Rate(10_000_000)));
        pairs.packet(us(2500), 14, 1000);
        assert_eq!(pairs.estimates.len(), 1);
    }

    #[test]
    fn the_fullest_interval_counts_and_old_estimates_go() {
        let mut pairs = PacketPairs::new(CONFIG);
        pairs.estimates = [3e6, 3.1e6, 5e6, 9.8e6, 1.0e7, 1.02e7, 2e7].into();
        assert_eq!(pairs.estimate(), Some(Rate(10_000_000)));
        for i in 0..10_u16 {
            pairs.announce(Probe { first: 2 * i, count: 2 });
            pairs.packet(us(0), 2 * i, 1000);
            pairs.packet(us(4000), 2 * i + 1, 1000);
        }
        assert_eq!(pairs.estimate(), Some(Rate(2_000_000)));
    }
}

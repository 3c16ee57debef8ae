//! Round-trip times by RFC 9002, section 5, for logs that have packets but no round-trip times.

/// Round-trip time estimates, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rtt {
    /// The latest sample, unadjusted.
    pub latest: Option<f64>,
    /// Minimum of all samples (`min_rtt`).
    pub min_rtt: Option<f64>,
    /// `smoothed_rtt`.
    pub smoothed: Option<f64>,
    /// `rttvar`.
    pub rttvar: Option<f64>,
}

impl Rtt {
    /// Adds a sample, with the peer's reported ACK delay.
    pub fn take(&mut self, sample: f64, ack_delay: f64) {
        self.latest = Some(sample);
        let min_rtt = self.min_rtt.map_or(sample, |min_rtt| min_rtt.min(sample));
        self.min_rtt = Some(min_rtt);
        let (Some(smoothed), Some(rttvar)) = (self.smoothed, self.rttvar) else {
            self.smoothed = Some(sample);
            self.rttvar = Some(sample / 2.0);
            return;
        };
        let adjusted = if sample >= min_rtt + ack_delay { sample - ack_delay } else { sample };
        self.rttvar = Some(0.75 * rttvar + 0.25 * (smoothed - adjusted).abs());
        self.smoothed = Some(0.875 * smoothed + 0.125 * adjusted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_smooths_as_the_rfc_does() {
        let mut rtt = Rtt::default();
        rtt.take(0.1, 0.02);
        assert_eq!(rtt, Rtt { latest: Some(0.1), min_rtt: Some(0.1), smoothed: Some(0.1), rttvar: Some(0.05) });
        // 200 ms, including 20 ms of ACK delay: 180 ms count.
        rtt.take(0.2, 0.02);
        assert_eq!(rtt.latest, Some(0.2));
        assert!((rtt.smoothed.unwrap() - 0.11).abs() < 1e-12);
        assert!((rtt.rttvar.unwrap() - (0.75 * 0.05 + 0.25 * 0.08)).abs() < 1e-12);
        // The delay is not subtracted if the result would be below the minimum.
        rtt.take(0.105, 0.02);
        assert!((rtt.smoothed.unwrap() - (0.875 * 0.11 + 0.125 * 0.105)).abs() < 1e-12);
    }
}

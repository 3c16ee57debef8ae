//! Observations of loss: bytes sent and lost in pieces of at least a quarter of a second.

use super::Settings;
use crate::gcc::{PacketResult, nanos};
use paceline_units::Time;

/// One observation.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Sending rate in bits per second.
    pub rate: f64,
    /// Bytes sent, and bytes of those that were lost.
    pub size: f64,
    pub lost: f64,
    /// Its number.
    id: usize,
}

impl Observation {
    fn share(&self) -> f64 {
        if self.size > 0.0 { self.lost / self.size } else { 0.0 }
    }
}

/// The last observations, in a ring at the index of their number.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    ring: Vec<Observation>,
    /// Total number of observations.
    pub count: usize,
    /// When the newest packet of the last observation was sent; initially, when the first packet was.
    pub last: Option<Time>,
    size: f64,
    lost: f64,
}

impl Observations {
    /// Adds feedback on these packets; returns whether it completes an observation.
    pub fn feedback(&mut self, results: &[PacketResult], settings: &Settings) -> bool {
        let (Some(first), Some(newest)) = (results.iter().map(|p| p.sent).min(), results.iter().map(|p| p.sent).max())
        else {
            return false;
        };
        for packet in results {
            self.size += packet.size;
            self.lost += if packet.arrived.is_none() { packet.size } else { 0.0 };
        }
        let time = nanos(newest, *self.last.get_or_insert(first));
        if time <= 0 || time < settings.observation.0 as i64 {
            return false;
        }
        self.last = Some(newest);
        let (size, lost) = (std::mem::take(&mut self.size), std::mem::take(&mut self.lost));
        let piece = Observation { rate: size * 8e9 / time as f64, size, lost, id: self.count };
        let place = self.count % settings.window;
        if place == self.ring.len() {
            self.ring.push(piece);
        } else {
            self.ring[place] = piece;
        }
        self.count += 1;
        true
    }

    /// Each observation with its weight: `factor` to the power of its age.
    pub fn weighted(&self, factor: f64) -> impl Iterator<Item = (f64, &Observation)> {
        self.ring.iter().map(move |piece| (libm::pow(factor, (self.count - 1 - piece.id) as f64), piece))
    }

    /// The share of lost bytes, weighted towards the newest observations, without the best and the worst one: a single
    /// spike does not count, unless the sending rate was much higher than usual in it.
    pub fn average_loss(&self, settings: &Settings) -> f64 {
        if self.ring.is_empty() {
            return 0.0;
        }
        let (mut all, mut lost) = (0.0, 0.0);
        let (mut best, mut worst) = ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0));
        let mut rate_of_worst = 0.0;
        for (weight, piece) in self.weighted(settings.instant_weight) {
            let (size, lost_here, share) = (weight * piece.size, weight * piece.lost, piece.share());
            all += size;
            lost += lost_here;
            if self.count > 3 && share > worst.0 {
                worst = (share, size, lost_here);
                rate_of_worst = piece.rate;
            }
            if self.count > 3 && share < best.0 {
                best = (share, size, lost_here);
            }
        }
        let trimmed = all - best.1 - worst.1;
        // with a window of two nothing remains
        if self.median_rate() * settings.median_sending_rate_factor <= rate_of_worst || trimmed <= 1e-9 * all {
            return lost / all;
        }
        (lost - best.2 - worst.2) / trimmed
    }

    fn median_rate(&self) -> f64 {
        let mut rates: Vec<f64> = self.ring.iter().map(|piece| piece.rate).filter(|&rate| rate > 0.0).collect();
        rates.sort_by(f64::total_cmp);
        let half = rates.len() / 2;
        match rates.len() {
            0 => 0.0,
            n if n % 2 == 0 => (rates[half - 1] + rates[half]) / 2.0,
            _ => rates[half],
        }
    }
}

/// The upper bound of the rate by the average loss: the more loss above an offset, the lower.
pub fn upper(average_loss: f64, max: f64, settings: &Settings) -> f64 {
    let above = average_loss - settings.instant_offset;
    if above > 0.0 { settings.instant_balance / above } else { max }
}

/// The lower bound of the rate, from the acked bitrate.
pub fn lower(acknowledged: Option<f64>, min: f64, settings: &Settings) -> f64 {
    acknowledged.map_or(0.0, |rate| settings.acknowledged_lower_bound * rate).max(min)
}

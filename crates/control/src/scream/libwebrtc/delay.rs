//! Round trip, queueing delay, and two scales that slow the window while the delay varies. Times are in microseconds.

use super::{Fated, scaled};

/// Gain of the mean round trip, and its gain while the application is limited.
const RTT_GAIN: f64 = 1.0 / 8.0;
const LIMITED_GAIN: f64 = 1.0 / 128.0;
/// Gain of the mean queueing delay, upwards.
const DELAY_GAIN: f64 = 1.0 / 4.0;
/// Gain of the means of the minimum delay and of the spread, and the value that counts as high.
const SPREAD_GAIN: f64 = 1.0 / 32.0;
const DELAY_THRESHOLD: i64 = 10_000;
/// Delays are compared among packets sent within BURST of the last one, or within LONG_BURST if no gap exceeds GAP.
const BURST: i64 = 25_000;
const LONG_BURST: i64 = 50_000;
const GAP: i64 = 3000;
/// Number of minima kept, and the duration of each (one minute).
const SLOTS: usize = 10;
const SLOT: i64 = 60_000_000;
/// If the minimum delay stays above this for this long, the queue does not drain.
const DRAINED: i64 = 5000;
const DRAIN_PERIOD: i64 = 20_000_000;
/// Means no delay.
const NONE: i64 = i64::MAX;

/// Delay measurements.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    target: i64,
    /// The mean round trip; zero before the first sample.
    pub(super) rtt: i64,
    slots: [i64; SLOTS],
    current_min: i64,
    slot_since: Option<i64>,
    above_since: Option<i64>,
    last: Option<i64>,
    /// The mean queueing delay.
    pub(super) mean: Option<i64>,
    min_queue_delay_avg: i64,
    latency_difference_avg: i64,
}

impl Delay {
    pub(super) fn new(target: i64) -> Delay {
        Delay {
            target,
            rtt: 0,
            slots: [NONE; SLOTS],
            current_min: NONE,
            slot_since: None,
            above_since: None,
            last: None,
            mean: None,
            min_queue_delay_avg: 0,
            latency_difference_avg: 0,
        }
    }

    /// Forgets everything except the round trip.
    pub(super) fn forget(&mut self) {
        *self = Delay { rtt: self.rtt, last: self.last, ..Delay::new(self.target) };
    }

    pub(super) fn update(&mut self, now: i64, packets: &[Fated], rtt: i64, limited: bool) {
        let (low, high) = of_burst(packets);
        self.current_min = self.current_min.min(low);
        let gain = if limited { LIMITED_GAIN } else { RTT_GAIN };
        self.rtt = if self.rtt == 0 { rtt } else { scaled(rtt, gain) + scaled(self.rtt, 1.0 - gain) };
        let queueing = low - self.slots.iter().copied().fold(self.current_min, i64::min);
        self.above_since = if queueing > DRAINED { self.above_since.or(Some(now)) } else { None };
        let sample = self.last.map_or(queueing, |last| queueing.min(last));
        self.last = Some(queueing);
        self.mean = Some(match self.mean {
            Some(mean) if sample >= mean => scaled(sample, DELAY_GAIN) + scaled(mean, 1.0 - DELAY_GAIN),
            _ => sample,
        });
        self.min_queue_delay_avg = averaged(self.min_queue_delay_avg, queueing);
        self.latency_difference_avg = averaged(self.latency_difference_avg, high - low);
        if self.slot_since.is_none_or(|since| now - since >= SLOT) {
            self.slots.rotate_right(1);
            self.slots[0] = self.current_min;
            self.slot_since = Some(now);
            self.current_min = NONE;
        }
    }

    /// Whether there is a queue.
    pub(super) fn is_queue(&self) -> bool {
        self.mean.is_some_and(|mean| mean > self.target / 2)
    }

    /// The queueing delay expressed as a share of marks.
    pub(super) fn alpha(&self) -> f64 {
        let half = self.target / 2;
        self.mean.map_or(1.0, |mean| ((mean - half) as f64 / half as f64).clamp(0.0, 1.0))
    }

    /// Whether the queue has been empty recently.
    pub(super) fn is_drained(&self, now: i64) -> bool {
        self.above_since.is_none_or(|since| now - since < DRAIN_PERIOD)
    }

    /// From 0.1 to 1: how well queues drain within each feedback.
    pub(super) fn scale_due_to_avg_min_delay(&self) -> f64 {
        scale_below_threshold(self.min_queue_delay_avg).clamp(0.1, 1.0)
    }

    /// The same from 0 to 1.
    pub(super) fn scale_due_to_avg_min_delay_or_zero(&self) -> f64 {
        scale_below_threshold(self.min_queue_delay_avg).clamp(0.0, 1.0)
    }

    /// From 0.1 to 1: how similar the delays of one feedback's packets are.
    pub(super) fn scale_due_to_latency_difference(&self) -> f64 {
        scale_below_threshold(self.latency_difference_avg).clamp(0.1, 1.0)
    }
}

/// 0.1 at DELAY_THRESHOLD, 1 at a quarter of it.
fn scale_below_threshold(value: i64) -> f64 {
    0.1 + scaled(DELAY_THRESHOLD - value, 1.2) as f64 / DELAY_THRESHOLD as f64
}

fn averaged(mean: i64, sample: i64) -> i64 {
    scaled(mean, 1.0 - SPREAD_GAIN) + scaled(sample.min(2 * DELAY_THRESHOLD), SPREAD_GAIN)
}

/// The minimum and maximum one-way delay of the last burst; (0, 0) if no packet was received.
fn of_burst(packets: &[Fated]) -> (i64, i64) {
    let mut arrivals = packets.iter().rev().filter_map(|packet| packet.arrival);
    let Some(last) = arrivals.next() else { return (0, 0) };
    let (mut low, mut high, mut newer) = (last.at - last.sent, last.at - last.sent, last.sent);
    for packet in arrivals {
        let (before, gap) = (last.sent - packet.sent, newer - packet.sent);
        if before > BURST && (before > LONG_BURST || gap > GAP) {
            break;
        }
        let delay = packet.at - packet.sent;
        (low, high, newer) = (low.min(delay), high.max(delay), packet.sent);
    }
    (low, high)
}

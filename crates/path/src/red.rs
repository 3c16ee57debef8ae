//! Random Early Detection.
//!
//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1(4), 1993; "gentle":
//! Floyd 2000; adaptive: Floyd, Gummadi, Shenker 2001; marking: RFC 3168. Where these leave a choice, Paceline follows
//! the behaviour of ns-2.35 (queue/red.cc): the order of checks, counting from the last drop, idle time, automatic
//! settings.

mod model;

pub use model::{AdaptiveRed, RedMode, RedModel};

use crate::DropReason;
use crate::loss::Chance;
use crate::model::Limit;
use paceline_units::{Rate, Ratio, Span};

/// A packet's arrival, and the state of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub now: u64,
    pub size: u16,
    /// Its transport is ECN-capable.
    pub capable: bool,
    /// Packets and bytes waiting.
    pub packets: u32,
    pub bytes: u64,
    /// How long the link has been idle; `None` if it is busy.
    pub idle: Option<u64>,
    /// 64 random bits.
    pub draw: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop(DropReason),
}

/// RED's state. Thresholds and average are in packets or bytes, depending on the mode.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    limit: Limit,
    min: f64,
    max: f64,
    keep: f64,
    weight: f64,
    max_p: f64,
    gentle_slope: f64,
    gentle_offset: f64,
    gentle: bool,
    wait: bool,
    bytes: bool,
    mean_packet: f64,
    /// Packets that could be sent per nanosecond of idle time.
    idle_rate: f64,
    mark_below: f64,
    adaptive: Option<(AdaptiveRed, f64)>,
    adapted: u64,
    average: f64,
    /// Packets and bytes since the last drop, and whether the average was already above the minimum at the previous
    /// arrival.
    count: u64,
    count_bytes: u64,
    above: bool,
}

impl Red {
    /// RED for a link of this nominal rate (zero counts as 1 bit/s) and propagation delay, which only determine
    /// automatic settings.
    ///
    /// # Panics
    /// If a threshold is negative, the maximum is zero or less than the minimum, the weight lies outside [0, 1], or the
    /// mean packet size is zero.
    pub(crate) fn new(model: &RedModel, rate: Rate, propagation: Span) -> Red {
        let mean_packet = model.mean_packet.bytes() as f64;
        assert!(mean_packet > 0.0, "a mean packet must have a size");
        // ns-2: ptc, the packets per second that the link carries.
        let per_second = rate.bps().max(1.0) / (8.0 * mean_packet);
        let weight = model.weight.unwrap_or_else(|| {
            let rtt = (3.0 * (propagation.as_secs_f64() + 1.0 / per_second)).max(0.1);
            1.0 - libm::exp(-1.0 / (10.0 * rtt * per_second))
        });
        let min = model.min_threshold.unwrap_or((model.target_delay.as_secs_f64() * per_second / 2.0).max(5.0));
        let max = model.max_threshold.unwrap_or(3.0 * min);
        assert!(min >= 0.0 && max >= min && max > 0.0, "RED's thresholds make no sense: {min} and {max}");
        assert!((0.0..=1.0).contains(&weight), "RED's weight must lie between 0 and 1, not {weight}");
        let bytes = model.mode == RedMode::Bytes;
        let unit = if bytes { mean_packet } else { 1.0 };
        let (min, max) = (min * unit, max * unit);
        let max_p = model.max_p.0;
        let bottom = |given: Option<Ratio>| given.map_or((80_000.0 / rate.bps().max(1.0)).min(0.01), |ratio| ratio.0);
        Red {
            limit: model.limit_as_counted(),
            min,
            max,
            keep: 1.0 - weight,
            weight,
            max_p,
            // As in ns-2, from the initial max_p even in adaptive mode.
            gentle_slope: (1.0 - max_p) / max,
            gentle_offset: 2.0 * max_p - 1.0,
            gentle: model.gentle,
            wait: model.wait,
            bytes,
            mean_packet,
            idle_rate: rate.bps().max(1.0)
                / (8e9 * model.idle_packet.unwrap_or(model.mean_packet).bytes().max(1) as f64),
            mark_below: match (model.ecn, model.mark_below) {
                (false, _) => 0.0,
                (true, None) => f64::INFINITY,
                (true, Some(ratio)) => ratio.0,
            },
            adaptive: model.adaptive.map(|adaptive| (adaptive, bottom(adaptive.bottom))),
            adapted: 0,
            average: 0.0,
            count: 0,
            count_bytes: 0,
            above: false,
        }
    }

    /// Replaces the limit.
    pub(crate) fn limit_to(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// Decides what happens to a packet.
    pub(crate) fn arrive(&mut self, packet: Arrival) -> Verdict {
        let queue = if self.bytes { packet.bytes } else { u64::from(packet.packets) };
        self.update_average(queue as f64, &packet);
        self.count += 1;
        self.count_bytes += u64::from(packet.size);
        let mut verdict = Verdict::Pass;
        // As in ns-2: more than one packet, or more than one byte.
        if self.average >= self.min && queue > 1 {
            if self.above {
                verdict = self.draw(&packet);
            } else {
                // Just crossed the minimum from below: start counting here.
                (self.count, self.count_bytes, self.above) = (1, u64::from(packet.size), true);
            }
        } else {
            self.above = false;
        }
        let full = match self.limit {
            Limit::Packets(limit) => packet.packets >= limit,
            Limit::Bytes(limit) if self.bytes => packet.bytes >= limit.0,
            Limit::Bytes(limit) => packet.bytes + u64::from(packet.size) > limit.0,
        };
        if full && packet.idle.is_none() {
            verdict = Verdict::Drop(DropReason::Overflow);
        }
        if verdict != Verdict::Pass {
            (self.count, self.count_bytes) = (0, 0);
        }
        verdict
    }

    /// Updates the weighted average. Idle time counts as the packets that could have been sent in it, each with an
    /// empty queue.
    fn update_average(&mut self, queue: f64, packet: &Arrival) {
        let missed = packet.idle.map_or(0, |span| (span as f64 * self.idle_rate) as u64);
        self.average = self.average * power(self.keep, missed + 1) + self.weight * queue;
        let Some((adaptive, bottom)) = self.adaptive else { return };
        if packet.now <= self.adapted.saturating_add(adaptive.interval.0) {
            return;
        }
        let margin = 0.4 * (self.max - self.min);
        if self.average < self.min + margin && self.max_p > bottom {
            self.max_p *= adaptive.decrease;
            self.adapted = packet.now;
        } else if self.average > self.max - margin && self.max_p < adaptive.top.0 {
            self.max_p += adaptive.increase.min(0.25 * self.max_p);
            self.adapted = packet.now;
        }
    }

    /// The probability at the current average (the paper's p_b).
    fn probability(&self) -> f64 {
        let p = if self.average < self.max {
            self.max_p * (self.average - self.min) / (self.max - self.min)
        } else if self.gentle {
            self.gentle_slope * self.average + self.gentle_offset
        } else {
            1.0
        };
        p.min(1.0)
    }

    /// Spreads the drops: uniform gaps instead of geometric ones (the paper's p_a; with `wait`, twice as far apart).
    fn spread(&self, p: f64, size: u16) -> f64 {
        // Whole packets, as in ns-2.
        let count = if self.bytes { (self.count_bytes as f64 / self.mean_packet).floor() } else { self.count as f64 };
        let due = count * p;
        let p = match (self.wait, due) {
            (true, due) if due < 1.0 => 0.0,
            (true, due) if due < 2.0 => p / (2.0 - due),
            (false, due) if due < 1.0 => p / (1.0 - due),
            _ => 1.0,
        };
        if self.bytes && p < 1.0 { (p * f64::from(size) / self.mean_packet).min(1.0) } else { p.min(1.0) }
    }

    /// Draws the verdict for a packet while the average is above the minimum.
    fn draw(&self, packet: &Arrival) -> Verdict {
        let forced = self.average >= if self.gentle { 2.0 * self.max } else { self.max };
        let p = self.probability();
        if !Chance::new(Ratio(self.spread(p, packet.size))).happens(packet.draw) {
            return Verdict::Pass;
        }
        if packet.capable && p < self.mark_below && !forced {
            return Verdict::Mark;
        }
        Verdict::Drop(if forced { DropReason::Forced } else { DropReason::Early })
    }

    #[cfg(test)]
    pub(crate) fn average(&self) -> f64 {
        self.average
    }
}

/// `base` to the power of `n`, by squaring: bit-identical on every machine.
fn power(mut base: f64, mut n: u64) -> f64 {
    let mut result = 1.0;
    while n > 0 {
        if n & 1 == 1 {
            result *= base;
        }
        base *= base;
        n >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_random::Stream;
    use paceline_units::Size;

    fn classic() -> RedModel {
        RedModel {
            min_threshold: Some(5.0),
            max_threshold: Some(15.0),
            weight: Some(0.002),
            mode: RedMode::Packets,
            mean_packet: Size(1000),
            ..RedModel::new(Limit::Packets(50))
        }
    }

    fn red(model: &RedModel) -> Red {
        Red::new(model, Rate::from_mbps(8.0), Span::from_millis(20)) // 1000 packets of 1000 bytes per second
    }

    fn arrival(packets: u32, draw: u64) -> Arrival {
        Arrival { now: 0, size: 1000, capable: false, packets, bytes: u64::from(packets) * 1000, idle: None, draw }
    }

    const LUCKY: u64 = u64::MAX;
    const UNLUCKY: u64 = 0;

    #[test]
    fn automatic_settings() {
        // ns-2: ptc = 10e6/(8*1000) = 1250/s; 5 ms * 1250 / 2 = 3.1 < 5; rtt = 3 (0.025 + 0.0008) = 0.0774 -> 0.1.
        let model = RedModel { mean_packet: Size(1000), ..RedModel::new(Limit::Packets(50)) };
        let red = Red::new(&model, Rate::from_mbps(10.0), Span::from_millis(25));
        assert_eq!((red.min, red.max), (5000.0, 15_000.0));
        assert!((red.weight - (1.0 - libm::exp(-1.0 / 1250.0))).abs() < 1e-15);
        // 100 Mbit/s with packets of 500 bytes and 100 ms: ptc 25,000; 62.5 packets; rtt 0.30012.
        let red = Red::new(&RedModel::new(Limit::Packets(50)), Rate::from_mbps(100.0), Span::from_millis(100));
        assert_eq!((red.min, red.max), (31_250.0, 93_750.0));
        assert!((red.weight - 1.332_8e-5).abs() < 1e-9, "{}", red.weight);
    }

    #[test]
    fn the_average_by_hand() {
        let mut red = red(&RedModel { weight: Some(0.25), ..classic() });
        let mut after = |packets, idle| {
            red.arrive(Arrival { idle, ..arrival(packets, LUCKY) });
            red.average()
        };
        assert_eq!(after(4, None), 1.0);
        assert_eq!(after(8, None), 0.75 + 2.0);
        // 2.5 ms idle: two packets could have been sent, and this one finds the queue empty.
        assert_eq!(after(0, Some(2_500_000)), 2.75 * 0.75 * 0.75 * 0.75);
    }

    #[test]
    fn the_probability_by_hand() {
        let mut red = red(&classic());
        for (average, p) in
            [(5.0, 0.0), (10.0, 0.05), (14.0, 0.09), (15.0, 0.1), (22.5, 0.55), (30.0, 1.0), (40.0, 1.0)]
        {
            red.average = average;
            assert!((red.probability() - p).abs() < 1e-12, "{average}");
        }
        red.gentle = false;
        red.average = 15.0;
        assert_eq!(red.probability(), 1.0);
        // p_b = 0.05: with wait nothing before 20 packets, then 0.05/(2 - 0.05 n); without, 0.05/(1 - 0.05 n).
        for (wait, count, p) in [(true, 19, 0.0), (true, 20, 0.05), (true, 30, 0.1), (true, 40, 1.0), (false, 10, 0.1)]
        {
            (red.wait, red.count) = (wait, count);
            assert!((red.spread(0.05, 1000) - p).abs() < 1e-12, "{wait} {count}");
        }
        (red.bytes, red.wait, red.count_bytes) = (true, false, 10_999);
        assert!((red.spread(0.05, 500) - 0.05).abs() < 1e-12);
    }

    /// The fraction of packets dropped while the queue stays at ten packets.
    fn share(model: &RedModel) -> f64 {
        let (mut red, draws, n) =
            (red(&RedModel { weight: Some(1.0), ..model.clone() }), Stream::new(1, "red"), 400_000);
        let drops = (0..n).filter(|&i| red.arrive(arrival(10, draws.bits(i))) != Verdict::Pass).count();
        drops as f64 / n as f64
    }

    #[test]
    fn drops_as_often_as_analysis_says() {
        // p_b = 0.05 at an average of 10. Without wait, gaps are uniform on 1..19: mean 10. With wait on 20..39: 29.5.
        // 400,000 packets give 0.4 % and 0.2 % of standard error.
        assert!((share(&RedModel { wait: false, ..classic() }) * 10.0 - 1.0).abs() < 0.015);
        assert!((share(&classic()) * 29.5 - 1.0).abs() < 0.01);
        assert_eq!(share(&RedModel { min_threshold: Some(11.0), ..classic() }), 0.0);
    }

    #[test]
    fn names_what_it_does() {
        let model = RedModel { weight: Some(1.0), wait: false, ..classic() };
        let mut red = red(&model);
        assert_eq!(red.arrive(arrival(10, UNLUCKY)), Verdict::Pass); // the first above the minimum
        assert_eq!(red.arrive(arrival(10, UNLUCKY)), Verdict::Drop(DropReason::Early));
        assert_eq!(red.arrive(arrival(31, LUCKY)), Verdict::Drop(DropReason::Forced));
        assert_eq!(red.arrive(arrival(50, LUCKY)), Verdict::Drop(DropReason::Overflow));
        assert_eq!(red.arrive(arrival(1, UNLUCKY)), Verdict::Pass);
    }

    #[test]
    fn marks_who_can_hear_it() {
        let model = RedModel { weight: Some(1.0), wait: false, ecn: true, mark_below: None, ..classic() };
        let mut red = red(&model);
        let capable = |packets| Arrival { capable: true, ..arrival(packets, UNLUCKY) };
        red.arrive(capable(10));
        assert_eq!(red.arrive(capable(10)), Verdict::Mark);
        assert_eq!(red.arrive(arrival(10, UNLUCKY)), Verdict::Drop(DropReason::Early));
        assert_eq!(red.arrive(capable(20)), Verdict::Mark);
        assert_eq!(red.arrive(capable(31)), Verdict::Drop(DropReason::Forced));
        assert_eq!(red.arrive(capable(50)), Verdict::Drop(DropReason::Overflow));
        red.mark_below = 0.1; // ns-2's default
        assert_eq!(red.arrive(capable(10)), Verdict::Mark);
        assert_eq!(red.arrive(capable(20)), Verdict::Drop(DropReason::Early));
    }

    #[test]
    fn adapts() {
        let model = RedModel { weight: Some(1.0), adaptive: Some(AdaptiveRed::default()), ..classic() };
        let mut red = red(&model);
        let mut at = |ms: u64, packets| {
            red.arrive(Arrival { now: ms * 1_000_000, ..arrival(packets, LUCKY) });
            red.max_p
        };
        assert_eq!(at(500, 6), 0.1);
        assert_eq!(at(501, 6), 0.1 * 0.9);
        assert_eq!(at(900, 14), 0.1 * 0.9);
        assert_eq!(at(1002, 14), 0.1 * 0.9 + 0.01);
        assert_eq!(at(2000, 10), 0.1 * 0.9 + 0.01);
    }
}

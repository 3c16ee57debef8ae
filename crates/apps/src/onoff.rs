//! Pareto on/off traffic: bursts of packets at a constant rate with idle periods between, both of Pareto-distributed
//! lengths.
//!
//! Many such sources together are self-similar (Taqqu, Willinger, Sherman, "Proof of a fundamental result in
//! self-similar traffic modeling", CCR 27(2), 1997). As in ns-2's `Application/Traffic/Pareto` (tools/pareto.cc): the
//! number of packets in a burst has the mean burst / interval, is rounded to the nearest integer and is at least 1. The
//! packet interval follows from the rate. An idle period lies between the interval of a burst's last packet and the
//! next burst, and before the first burst.

use crate::application::{Action, Period};
use paceline_random::{Sequence, Stream};
use paceline_units::{Rate, Size, Span, Time};

/// The maximum idle period in seconds, a cut of the distribution.
const MAX_IDLE: f64 = 1e9;
/// The maximum number of packets in a burst, a cut of the distribution.
const MAX_BURST: f64 = 1e15;

/// An on/off source's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOffModel {
    /// Payload rate within a burst.
    pub rate: Rate,
    /// Mean length of a burst.
    pub burst: Span,
    /// Mean length of an idle period.
    pub idle: Span,
    /// Shape of both Pareto distributions; above 1.
    pub shape: f64,
    /// The size of each write.
    pub packet: Size,
}

/// A Pareto on/off source.
#[derive(Clone, Debug)]
pub struct OnOff {
    model: OnOffModel,
    period: Period,
    draws: Sequence,
    /// The interval between packets in a burst.
    interval: Span,
    /// The scales (minima) of the distributions: packets per burst, before rounding, and idle time in seconds.
    scales: (f64, f64),
    /// The burst's start, the number of its packets sent, and their total number.
    burst: (Time, u64, u64),
    stopped: bool,
}

impl OnOff {
    /// The mean rate in bit/s, and the size of each write.
    pub(crate) fn pace(&self) -> (f64, Size) {
        let (burst, idle) = (self.model.burst.as_secs_f64(), self.model.idle.as_secs_f64());
        (self.model.rate.bps() * burst / (burst + idle), self.model.packet)
    }

    /// A source that is idle from the period's start to the first burst.
    #[must_use]
    pub fn new(model: OnOffModel, stream: Stream, period: Period) -> OnOff {
        let interval = model.rate.time_for(model.packet).max(Span(1));
        let of_mean = (model.shape - 1.0) / model.shape;
        let packets = model.burst.as_secs_f64() / interval.as_secs_f64();
        let mut source = OnOff {
            model,
            period,
            draws: Sequence::new(stream),
            interval,
            scales: (packets * of_mean, model.idle.as_secs_f64() * of_mean),
            burst: (period.start, 0, 0),
            stopped: false,
        };
        source.next_burst();
        source
    }

    /// Draws an idle period and the burst after it.
    fn next_burst(&mut self) {
        let (began, _, packets) = self.burst;
        let ended = began + Span(self.interval.0.saturating_mul(packets));
        let drawn = (self.scales.0 * self.draws.pareto(self.model.shape)).min(MAX_BURST);
        let silence = (self.scales.1 * self.draws.pareto(self.model.shape)).min(MAX_IDLE);
        // the interval of the very first packet, which counts before the packet
        let lead = if packets == 0 { self.interval } else { Span::ZERO };
        self.burst = (ended + lead + Span::from_secs_f64(silence), 0, (libm::floor(drawn + 0.5) as u64).max(1));
    }

    /// See [`crate::Application::next_action`].
    pub fn next_action(&mut self, now: Time) -> Action {
        if self.stopped {
            return Action::Wait;
        }
        if now >= self.period.stop {
            self.stopped = true;
            return Action::Stop;
        }
        if now < self.next_packet() {
            return Action::Wait;
        }
        self.burst.1 += 1;
        if self.burst.1 == self.burst.2 {
            self.next_burst();
        }
        Action::Send(self.model.packet)
    }

    fn next_packet(&self) -> Time {
        self.burst.0 + Span(self.interval.0.saturating_mul(self.burst.1))
    }

    /// See [`crate::Application::next_wake`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Time> {
        (!self.stopped).then(|| self.next_packet().min(self.period.stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The background traffic of the tfrc-veno paper.
    fn model(shape: f64) -> OnOffModel {
        OnOffModel {
            rate: Rate(300_000),
            burst: Span::from_millis(100),
            idle: Span::from_millis(100),
            shape,
            packet: Size(512),
        }
    }

    /// Times of the packets within `seconds`.
    fn packets(model: OnOffModel, seed: u64, seconds: f64) -> Vec<f64> {
        let period = Period { start: Time::ZERO, stop: Time::from_secs_f64(seconds) };
        let mut source = OnOff::new(model, Stream::new(seed, "pareto"), period);
        let mut times = Vec::new();
        while let Some(now) = source.next_wake() {
            match source.next_action(now) {
                Action::Send(size) => {
                    assert_eq!(size, model.packet);
                    times.push(now.as_secs_f64());
                }
                other => assert_eq!(other, Action::Stop),
            }
        }
        times
    }

    /// The number of packets in each burst but the last, and the idle periods after them.
    fn bursts(times: &[f64], interval: f64) -> Vec<(usize, f64)> {
        let mut found = Vec::new();
        let mut packets = 1;
        for pair in times.windows(2) {
            let gap = pair[1] - pair[0];
            if gap > interval * 1.0001 {
                found.push((packets, gap - interval));
                packets = 0;
            }
            packets += 1;
        }
        found
    }

    fn share(of: &[(usize, f64)], holds: impl Fn(&(usize, f64)) -> bool) -> f64 {
        of.iter().filter(|b| holds(b)).count() as f64 / of.len() as f64
    }

    /// Four standard deviations of the fraction of `n` independent events with probability `p`.
    fn four_sigma(p: f64, n: usize) -> f64 {
        4.0 * (p * (1.0 - p) / n as f64).sqrt()
    }

    #[test]
    fn tails_follow_the_law() {
        for shape in [1.5, 3.0] {
            let model = model(shape);
            let interval = 512.0 * 8.0 / 300e3;
            let found = bursts(&packets(model, 1, 20_000.0), interval);
            assert!(found.len() > 50_000);
            let min = |mean: f64| mean * (shape - 1.0) / shape;
            let beyond = |x: f64, min: f64| libm::pow(min / x, shape).min(1.0);
            for packets in [3, 6, 10, 30, 100] {
                let p = beyond(packets as f64 - 0.5, min(0.1 / interval));
                let got = share(&found, |b| b.0 >= packets);
                assert!((got - p).abs() <= four_sigma(p, found.len()), "shape {shape}, {packets} packets: {got} {p}");
            }
            for silence in [0.05, 0.1, 0.3, 1.0] {
                let p = beyond(silence, min(0.1));
                let got = share(&found, |b| b.1 > silence);
                assert!((got - p).abs() <= four_sigma(p, found.len()), "shape {shape}, {silence} s: {got} {p}");
            }
        }
    }

    #[test]
    fn the_mean_rate_follows_from_the_means() {
        // shape 3 has a finite variance, so the mean can be compared with theory; rounding adds to the mean burst
        let (model, interval) = (model(3.0), 512.0 * 8.0 / 300e3);
        let min = 0.1 / interval * 2.0 / 3.0;
        let mean: f64 = 1.0 + (2..100_000).map(|k| libm::pow(min / (k as f64 - 0.5), 3.0).min(1.0)).sum::<f64>();
        let expected = mean / (mean * interval + 0.1);
        for seed in 1..=5 {
            let got = packets(model, seed, 20_000.0).len() as f64 / 20_000.0;
            assert!((got / expected - 1.0).abs() < 0.01, "{got} {expected}");
        }
    }

    #[test]
    fn stops_and_says_no_more() {
        let times = packets(model(1.5), 3, 1.0);
        assert!(times.iter().all(|&t| t < 1.0));
        // the first idle period is at least a third of the mean, and the first packet's own interval lies before it
        assert!(times[0] >= 0.1 / 3.0 + 512.0 * 8.0 / 300e3 - 1e-9);
    }
}

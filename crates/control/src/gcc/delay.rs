//! The delay-based estimate: groups of packets, the line through their delays, and the rate that follows from it.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/delay_based_bwe.cc. Left out: a detector of its own for audio,
//! which is off there.

use super::PacketResult;
use super::aimd::AimdRateControl;
use super::inter_arrival::InterArrival;
use super::trendline::{TrendlineEstimator, Usage};
use paceline_units::{Span, Time};

/// After so long without feedback the detector begins anew: kStreamTimeOut.
const STREAM_TIMEOUT: Span = Span::from_secs(2);

/// What feedback has changed.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// The new estimate; `None` if it stays.
    pub rate: Option<f64>,
    /// Whether it is a probe's.
    pub probe: bool,
    /// Whether the queue has drained after an overuse.
    pub recovered: bool,
}

/// The estimator.
#[derive(Clone, Debug, Default)]
pub struct Delay {
    groups: InterArrival,
    line: TrendlineEstimator,
    /// The rate; its round-trip time, start and bounds are set here.
    pub aimd: AimdRateControl,
    last_feedback: Option<Time>,
    /// The last estimate, and what the detector said then.
    rate: f64,
    usage: Usage,
}

impl Delay {
    /// The last estimate; zero before the first.
    pub fn last(&self) -> f64 {
        self.rate
    }

    /// What the detector said at the last feedback.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The trend and its threshold in milliseconds.
    pub fn reading(&self) -> (f64, f64) {
        self.line.reading()
    }

    /// Feedback that came at `now` tells of these packets, in the order of their arrival; what came through, and what a probe
    /// has found.
    pub fn feedback(
        &mut self,
        results: &[PacketResult],
        now: Time,
        throughput: Option<f64>,
        probe: Option<f64>,
    ) -> Outcome {
        let (mut any_received, mut recovered) = (false, false);
        for packet in results {
            let Some(arrived) = packet.arrived else { continue };
            any_received = true;
            let before = self.line.usage();
            self.packet(packet, arrived, now);
            recovered |= before == Usage::Under && self.line.usage() == Usage::Normal;
        }
        if !any_received {
            return Outcome::default();
        }
        let outcome = self.update(now, throughput, probe, recovered);
        self.rate = outcome.rate.unwrap_or(self.rate);
        self.usage = self.line.usage();
        outcome
    }

    fn packet(&mut self, packet: &PacketResult, arrived: Time, now: Time) {
        if self.last_feedback.is_none_or(|last| now.since(last) > STREAM_TIMEOUT) {
            self.groups = InterArrival::default();
            self.line = TrendlineEstimator::default();
        }
        self.last_feedback = Some(now);
        if let Some(deltas) = self.groups.packet(packet.sent, arrived, now, packet.size) {
            self.line.group(&deltas, arrived);
        }
    }

    fn update(&mut self, now: Time, throughput: Option<f64>, probe: Option<f64>, recovered: bool) -> Outcome {
        if self.line.usage() == Usage::Over {
            return Outcome { rate: self.reduce(now, throughput), ..Outcome::default() };
        }
        if let Some(found) = probe {
            self.aimd.set(found, now);
            return Outcome { rate: self.aimd.estimate(), probe: true, recovered: false };
        }
        self.aimd.update(self.line.usage(), throughput, now);
        Outcome { rate: self.aimd.estimate(), probe: false, recovered }
    }

    fn reduce(&mut self, now: Time, throughput: Option<f64>) -> Option<f64> {
        if let Some(measured) = throughput {
            if !self.aimd.may_reduce(measured, now) {
                return None;
            }
            self.aimd.update(Usage::Over, throughput, now);
        } else {
            // nothing is measured yet: half, as far apart as reductions are
            let rate = self.aimd.estimate()?;
            if !self.aimd.may_reduce(rate / 2.0, now) {
                return None;
            }
            self.aimd.set(rate / 2.0, now);
        }
        self.aimd.estimate()
    }
}

#[cfg(test)]
mod tests;

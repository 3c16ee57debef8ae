//! The delay-based estimate: packet groups, the trendline of their delays, and the resulting rate.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/delay_based_bwe.cc. Left out: the separate detector for
//! audio, which is off there.

use super::PacketResult;
use super::aimd::AimdRateControl;
use super::inter_arrival::InterArrival;
use super::trendline::{TrendlineEstimator, Usage};
use paceline_units::{Span, Time};

/// The detector is reset after this time without feedback: kStreamTimeOut.
const STREAM_TIMEOUT: Span = Span::from_secs(2);

/// The result of feedback.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// The new estimate; `None` if unchanged.
    pub rate: Option<f64>,
    /// Whether it is a probe's result.
    pub probe: bool,
    /// Whether the queue has drained after an overuse.
    pub recovered: bool,
}

/// The estimator.
#[derive(Clone, Debug, Default)]
pub struct Delay {
    groups: InterArrival,
    line: TrendlineEstimator,
    /// The rate controller; its round-trip time, start and bounds are set through this field.
    pub aimd: AimdRateControl,
    last_feedback: Option<Time>,
    /// The last estimate, and the detector's state then.
    rate: f64,
    usage: Usage,
}

impl Delay {
    /// The last estimate; zero before the first.
    pub fn last(&self) -> f64 {
        self.rate
    }

    /// The detector's state at the last feedback.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The trend and its threshold in milliseconds.
    pub fn reading(&self) -> (f64, f64) {
        self.line.reading()
    }

    /// Handles feedback at `now` on these packets, in order of arrival, with the acked bitrate and a probe's result.
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
            // no throughput is known yet: halve, at most as often as reductions are allowed
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

//! How the loss event rate becomes a rate, in which TFRC and its relatives differ.
//!
//! The equation itself is a throughput model ([`crate::models::tfrc`]).

use crate::models::{
    BytesPerSecond, Factor, LossRate, PacketSize, PerAck, Seconds, Tfrc as Model, TfrcPath, TimeoutTerm,
};
use crate::multfrc::Rules;
use crate::{Gauges, PathView, TfrcReport};
use paceline_units::Span;

/// What the equation is evaluated for: segment size, round-trip time, timeout, and its form.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Terms {
    path: TfrcPath,
    per_ack: PerAck,
    form: TimeoutTerm,
}

impl Terms {
    /// For segments of `segment` bytes, the round-trip time R and the timeout t_RTO; `None` without a round-trip time.
    #[must_use]
    pub fn new(segment: u32, rtt: Span, timeout: Span) -> Option<Terms> {
        let path = TfrcPath {
            rtt: Seconds::try_from(rtt).ok()?,
            rto: Seconds::try_from(timeout.max(Span(1))).ok()?,
            segment: PacketSize::new(f64::from(segment.max(1))).ok()?,
        };
        Some(Terms { path, per_ack: PerAck::ONE, form: TimeoutTerm::Plain })
    }

    /// The same, for a TCP whose acknowledgements each cover this many packets (b; default 1).
    #[must_use]
    pub fn covering(self, per_ack: PerAck) -> Terms {
        Terms { per_ack, ..self }
    }

    /// The same, with this form of the timeout term.
    #[must_use]
    pub fn form(self, form: TimeoutTerm) -> Terms {
        Terms { form, ..self }
    }

    /// R in seconds.
    #[must_use]
    pub fn rtt(&self) -> f64 {
        self.path.rtt.get()
    }

    /// s in bytes.
    #[must_use]
    pub fn segment(&self) -> f64 {
        self.path.segment.get()
    }

    /// X_Bps: bytes per second of a TCP that multiplies its window by `gamma` at a loss.
    #[must_use]
    pub fn rate(&self, p: LossRate, gamma: Factor) -> f64 {
        self.model().with(gamma).rate(p, &self.path).get()
    }

    /// The same with p (1 + 32 p^2) under the root, as Zhou, Fu and Li print it in equations (21) and (22): an error,
    /// but perhaps one that their simulations had too.
    #[must_use]
    pub fn rate_as_printed(&self, p: LossRate, gamma: Factor) -> f64 {
        let (p, gamma, b) = (p.get(), gamma.get(), self.per_ack.get());
        let avoidance = self.rtt() * (2.0 * b * (1.0 - gamma) * p / (1.0 + gamma)).sqrt();
        let timeouts = 3.0 * (b * (1.0 - gamma * gamma) * p / 2.0 * p * (1.0 + 32.0 * p * p)).sqrt();
        self.segment() / (avoidance + self.path.rto.get() * timeouts)
    }

    /// X_Bps of TFRC itself (gamma = 1/2); 0 if `p` is not a loss event rate.
    #[must_use]
    pub fn tfrc_rate(&self, p: f64) -> f64 {
        LossRate::new(p).map_or(0.0, |p| self.rate(p, Factor::HALF))
    }

    /// The loss event rate at which TFRC's equation gives `rate` bytes per second, 1 below the equation's minimum: for
    /// the first loss interval (RFC 5348 section 6.3.1).
    #[must_use]
    pub fn loss_event_rate(&self, rate: f64) -> f64 {
        BytesPerSecond::new(rate).and_then(|rate| self.model().loss_rate(rate, &self.path)).map_or(1.0, LossRate::get)
    }

    fn model(&self) -> Model {
        Model { per_ack: self.per_ack, timeout_term: self.form, ..Model::RFC5348 }
    }
}

/// How a scheme computes a rate from the loss event rate.
pub trait Equation {
    /// A report arrived; `rate` is the allowed rate so far, in bytes per second.
    fn observe(&mut self, _report: &TfrcReport, _path: &PathView, _rate: f64) {}
    /// The rate in bytes per second at the loss event rate `p`.
    fn rate(&self, p: LossRate, terms: &Terms) -> f64;
    /// The law by which the flow opens more connections like this one, if it does.
    fn connections(&self) -> Option<Rules> {
        None
    }
    /// Its readings.
    fn gauges(&self, _to: &mut dyn Gauges) {}
}

/// RFC 5348's own equation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Equation for Plain {
    fn rate(&self, p: LossRate, terms: &Terms) -> f64 {
        terms.rate(p, Factor::HALF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_inverse_stands_anything(rate in any::<f64>(), segment in any::<u32>(), rtt in 1..u64::MAX) {
            let terms = Terms::new(segment, Span(rtt), Span(rtt) * 4).unwrap();
            let p = terms.loss_event_rate(rate);
            prop_assert!(p > 0.0 && p <= 1.0, "{p}");
        }
    }
}

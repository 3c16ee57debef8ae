//! TFRC's throughput equation, TFRC Veno's, and their inverse.
//!
//! Sources: RFC 5348 section 3.1; B. Zhou, C. P. Fu, V. O. K. Li, "TFRC Veno", equations (21) and (22). Those print p
//! (1 + 32 p^2) under the root; equation (16), the RFC and this file have it outside. With gamma = 1/2 the two
//! equations are the same. ns-2.35's TFRC limits the share of losses that end in timeouts to 1, as PFTK does; the RFC
//! does not.

use super::domain::Allowed;
use super::veno::roots;
use super::{BytesPerSecond, DomainError, Factor, LossRate, PacketSize, PerAck, Seconds};

/// The share of losses that end in a timeout, 3 sqrt(b (1-gamma^2) p / 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TimeoutTerm {
    /// Without limit: RFC 5348.
    #[default]
    Plain,
    /// At most 1: ns-2, PFTK.
    AtMostOne,
}

/// The equation X = s / (R sqrt(2b(1-gamma)p/(1+gamma)) + t_RTO 3 sqrt(b(1-gamma^2)p/2) p (1 + 32 p^2)).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tfrc {
    /// gamma: 1/2 for TFRC, [`super::Gamma::mean`] for TFRC Veno.
    pub gamma: Factor,
    /// b, 1 in RFC 5348.
    pub per_ack: PerAck,
    /// Whether the share in the timeout term is limited.
    pub timeout_term: TimeoutTerm,
}

/// A path, as the equation needs it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TfrcPath {
    /// R: the round-trip time.
    pub rtt: Seconds,
    /// t_RTO: the retransmission timeout that a TCP on the same path would have.
    pub rto: Seconds,
    /// s: the segment size.
    pub segment: PacketSize,
}

impl TfrcPath {
    /// With t_RTO = 4 R (RFC 5348 section 3.1).
    #[must_use]
    pub fn new(rtt: Seconds, segment: PacketSize) -> TfrcPath {
        TfrcPath { rtt, rto: rtt.times(4.0), segment }
    }
}

impl Tfrc {
    /// RFC 5348 section 3.1.
    pub const RFC5348: Tfrc = Tfrc { gamma: Factor::HALF, per_ack: PerAck::ONE, timeout_term: TimeoutTerm::Plain };
    /// ns-2.35's equation.
    pub const NS2: Tfrc = Tfrc { timeout_term: TimeoutTerm::AtMostOne, ..Tfrc::RFC5348 };

    /// The same with another gamma, as in TFRC Veno.
    #[must_use]
    pub const fn with(self, gamma: Factor) -> Tfrc {
        Tfrc { gamma, ..self }
    }

    /// X_Bps: the rate of a TCP at loss event rate `p`.
    #[must_use]
    pub fn rate(&self, p: LossRate, path: &TfrcPath) -> BytesPerSecond {
        BytesPerSecond::of(path.segment.get() / self.terms(path).at(p.get().sqrt()))
    }

    /// The loss event rate at which the equation gives `rate`: its inverse, to the last digits. RFC 5348 section 6.3.1
    /// computes the first loss interval with it.
    ///
    /// # Errors
    /// `rate` is below the equation's minimum, that at p = 1.
    pub fn loss_rate(&self, rate: BytesPerSecond, path: &TfrcPath) -> Result<LossRate, DomainError> {
        let terms = self.terms(path);
        let per_packet = path.segment.get() / rate.get();
        let max = terms.at(1.0);
        if per_packet > max {
            let min = path.segment.get() / max;
            // the minimum rate itself must give 1, whatever its last digit
            if rate.get() < min * (1.0 - 4.0 * f64::EPSILON) {
                return Err(DomainError { argument: "rate", value: rate.get(), allowed: Allowed::AtLeast(min) });
            }
            return Ok(LossRate::of(1.0));
        }
        let root = terms.solve(per_packet);
        Ok(LossRate::of(root * root))
    }

    fn terms(&self, path: &TfrcPath) -> Terms {
        let [root, share] = roots(self.per_ack, self.gamma);
        Terms {
            duplicates: path.rtt.get() * root.sqrt(),
            rto: path.rto.get(),
            share: 3.0 * share.sqrt(),
            ceiling: match self.timeout_term {
                TimeoutTerm::Plain => f64::INFINITY,
                TimeoutTerm::AtMostOne => 1.0,
            },
        }
    }
}

/// The equation's denominator, the time per packet, as a function of y = sqrt(p).
struct Terms {
    duplicates: f64,
    rto: f64,
    share: f64,
    ceiling: f64,
}

impl Terms {
    fn at(&self, y: f64) -> f64 {
        let p = y * y;
        self.duplicates * y + self.rto * (self.share * y).min(self.ceiling) * p * (1.0 + 32.0 * p * p)
    }

    fn slope(&self, y: f64) -> f64 {
        let p = y * y;
        let timeouts = if self.share * y < self.ceiling {
            self.share * p * (3.0 + 224.0 * p * p)
        } else {
            self.ceiling * y * (2.0 + 192.0 * p * p)
        };
        self.duplicates + self.rto * timeouts
    }

    /// y with `at(y)` = `time`, which is at most `at(1)`: Newton's method, with a bisection where a step would leave
    /// the bracket. The time grows faster than y, so a step along the chord from the origin ends below the root.
    fn solve(&self, time: f64) -> f64 {
        let mut high = (time / self.duplicates).min(1.0);
        let mut low = high * (time / self.at(high)).min(1.0);
        let mut y = high;
        // each step halves the bracket at least, or is Newton's, which converges from above; 100 are never reached
        for _ in 0..100 {
            let error = self.at(y) - time;
            if error == 0.0 {
                break;
            }
            if error > 0.0 {
                high = y;
            } else {
                low = y;
            }
            let newton = y - error / self.slope(y);
            let next = if newton > low && newton < high { newton } else { low + (high - low) / 2.0 };
            if (next - y).abs() <= f64::EPSILON * y {
                break;
            }
            y = next;
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(rtt: f64) -> TfrcPath {
        TfrcPath::new(Seconds::new(rtt).unwrap(), PacketSize::new(1000.0).unwrap())
    }

    fn rate(equation: Tfrc, p: f64, rtt: f64) -> f64 {
        equation.rate(LossRate::new(p).unwrap(), &path(rtt)).get()
    }

    #[test]
    fn rfc_5348_section_3_1_by_hand() {
        // sqrt(2/300) = 0.0816497, 3 sqrt(3/800) * 0.01 * (1 + 0.0032) = 0.00184300; times 0.1 and 0.4 s
        let by_hand = 1000.0 / (0.1 * 0.081_649_658_1 + 0.4 * 0.183_711_730_7 * 0.01 * 1.0032);
        assert!((rate(Tfrc::RFC5348, 0.01, 0.1) / by_hand - 1.0).abs() < 1e-9);
        // the limit applies from p = 8/27 on
        assert_eq!(rate(Tfrc::NS2, 0.2, 0.1), rate(Tfrc::RFC5348, 0.2, 0.1));
        let ceiling = 1000.0 / (0.1 * (2.0 / 6.0_f64).sqrt() + 0.4 * 0.5 * 9.0);
        assert!((rate(Tfrc::NS2, 0.5, 0.1) / ceiling - 1.0).abs() < 1e-12);
    }

    #[test]
    fn at_a_tenth_the_equations_alone_give_three_times_the_rate() {
        let veno = Tfrc::RFC5348.with(super::super::Gamma::TFRC.theta1());
        let ratio = rate(veno, 0.1, 0.164) / rate(Tfrc::RFC5348, 0.1, 0.164);
        assert!((ratio - 3.1).abs() < 0.05, "{ratio}"); // the paper prints 4 for the protocol as a whole
    }

    #[test]
    fn too_low_a_rate_has_no_loss_rate() {
        let path = path(0.1);
        let min = rate(Tfrc::RFC5348, 1.0, 0.1);
        let at = |x: f64| Tfrc::RFC5348.loss_rate(BytesPerSecond::new(x).unwrap(), &path);
        assert_eq!(at(min).unwrap().get(), 1.0);
        let error = at(min * 0.999).unwrap_err();
        assert_eq!(error.allowed, Allowed::AtLeast(min));
        assert!(error.to_string().starts_with("rate = "), "{error}");
        // every rate has a loss rate, however high the rate is
        assert!(at(f64::MAX).unwrap().get() > 0.0);
    }
}

//! gamma: the mean factor by which Veno multiplies its window at a loss.
//!
//! Source: B. Zhou, C. P. Fu, V. O. K. Li, "TFRC Veno", equations (17) to (20): Veno takes a loss as random if it has
//! fewer than beta packets in the queue, N = W (RTT - BaseRTT) / RTT < beta, and W at a loss is assumed uniform between
//! 0 and W_max.

use super::domain::Allowed;
use super::{DomainError, Factor, Seconds, Window};

/// How Veno distinguishes losses, and its factors for them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gamma {
    theta1: Factor,
    theta2: Factor,
    beta: f64,
}

impl Gamma {
    /// TCP Veno: 4/5, 1/2, 3 packets.
    pub const TCP: Gamma = Gamma::known(0.8, 0.5, 3.0);
    /// TFRC Veno: 0.95, 1/2, 3 packets.
    pub const TFRC: Gamma = Gamma::known(0.95, 0.5, 3.0);

    const fn known(theta1: f64, theta2: f64, beta: f64) -> Gamma {
        match (Factor::new(theta1), Factor::new(theta2)) {
            (Ok(theta1), Ok(theta2)) => Gamma { theta1, theta2, beta },
            _ => panic!("the factors are below 1"),
        }
    }

    /// `theta1` is the factor at a random loss, `theta2` at a congestion loss, `beta` in packets.
    ///
    /// # Errors
    /// `theta1` is below `theta2`, or `beta` is not above 0.
    pub fn new(theta1: Factor, theta2: Factor, beta: f64) -> Result<Gamma, DomainError> {
        if theta1 < theta2 {
            let allowed = Allowed::AtLeast(theta2.get());
            return Err(DomainError { argument: "theta1", value: theta1.get(), allowed });
        }
        if !(beta > 0.0 && beta < f64::INFINITY) {
            let allowed = Allowed::Fixed("above 0 packets and finite");
            return Err(DomainError { argument: "beta", value: beta, allowed });
        }
        Ok(Gamma { theta1, theta2, beta })
    }

    /// The factor at a loss that is taken as random.
    #[must_use]
    pub const fn theta1(&self) -> Factor {
        self.theta1
    }

    /// The factor at a loss that is taken as congestion, and gamma's minimum.
    #[must_use]
    pub const fn theta2(&self) -> Factor {
        self.theta2
    }

    /// P(N < beta), equation (19): the share of losses that are taken as random.
    ///
    /// # Errors
    /// `base_rtt` is above `rtt`.
    pub fn random_share(&self, rtt: Seconds, base_rtt: Seconds, w_max: Window) -> Result<f64, DomainError> {
        let queueing = rtt.get() - base_rtt.get();
        if queueing < 0.0 {
            let allowed = Allowed::AtMost(rtt.get());
            return Err(DomainError { argument: "base_rtt", value: base_rtt.get(), allowed });
        }
        if queueing == 0.0 {
            return Ok(1.0); // no queue, however large the window
        }
        Ok((self.beta * rtt.get() / (queueing * w_max.get())).min(1.0))
    }

    /// gamma, equation (20): min(theta1, theta2 + (theta1-theta2) beta RTT / ((RTT-BaseRTT) W_max)), at least theta2;
    /// theta1 at RTT = BaseRTT.
    ///
    /// # Errors
    /// `base_rtt` is above `rtt`.
    pub fn mean(&self, rtt: Seconds, base_rtt: Seconds, w_max: Window) -> Result<Factor, DomainError> {
        let share = self.random_share(rtt, base_rtt, w_max)?;
        if share >= 1.0 {
            return Ok(self.theta1);
        }
        let (theta1, theta2) = (self.theta1.get(), self.theta2.get());
        Factor::new((theta2 + (theta1 - theta2) * share).clamp(theta2, theta1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rtt: f64, base: f64, w_max: f64) -> f64 {
        let (rtt, base) = (Seconds::new(rtt).unwrap(), Seconds::new(base).unwrap());
        Gamma::TFRC.mean(rtt, base, Window::new(w_max).unwrap()).unwrap().get()
    }

    #[test]
    fn between_the_thetas() {
        assert_eq!(at(0.1, 0.1, 20.0), 0.95);
        assert_eq!(at(0.1, 0.1, f64::INFINITY), 0.95);
        assert_eq!(at(0.1, 0.09, 1.0), 0.95); // a window below beta holds fewer than beta packets
        // by hand: 3 * 0.2 / (0.05 * 40) = 0.3, and 0.5 + 0.45 * 0.3
        assert!((at(0.2, 0.15, 40.0) - 0.635).abs() < 1e-12);
        assert!(at(0.2, 0.1, f64::INFINITY) == 0.5);
    }

    #[test]
    fn mistakes() {
        let factor = |g| Factor::new(g).unwrap();
        let s = |s| Seconds::new(s).unwrap();
        let error = Gamma::new(factor(0.5), factor(0.8), 3.0).unwrap_err();
        assert_eq!(error.to_string(), "theta1 = 0.5: it must be at least 0.8");
        assert!(Gamma::new(factor(0.8), factor(0.5), f64::NAN).is_err());
        let error = Gamma::TCP.mean(s(0.1), s(0.2), Window::UNLIMITED).unwrap_err();
        assert_eq!(error.to_string(), "base_rtt = 0.2: it must be at most 0.1");
    }
}

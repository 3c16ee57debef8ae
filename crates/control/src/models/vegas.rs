//! Vegas's equilibrium without loss.
//!
//! Source: S. Low, L. Peterson, L. Wang, "Understanding Vegas: a duality model", Journal of the ACM 49(2), 2002: at
//! Vegas' equilibrium each flow keeps its own backlog in queues, so that rate x, base round-trip time d and queueing
//! delay q satisfy x q = backlog. Flows share one bottleneck in proportion to their backlogs, whatever their d. A
//! flow's backlog can be anything from alpha to beta (T. Bonald, "Comparison of TCP Reno and TCP Vegas: efficiency and
//! fairness", Performance Evaluation 36-37, 1999), so shares are unique only if the two are equal. Valid if the buffer
//! holds all backlogs and the base round-trip times are correct.

use super::domain::Allowed;
use super::{DomainError, PacketsPerSecond, Seconds};

/// The backlog of a flow in the queue in packets, and that of all flows together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backlog {
    own: f64,
    all: f64,
}

impl Backlog {
    /// `own` packets of `all`.
    ///
    /// # Errors
    /// `own` is not from 1e-15 to 1e15, or `all` is not from `own` to 1e15.
    pub fn new(own: f64, all: f64) -> Result<Backlog, DomainError> {
        if !(1e-15..=1e15).contains(&own) {
            let allowed = Allowed::Fixed("in [1e-15, 1e15] packets");
            return Err(DomainError { argument: "backlog", value: own, allowed });
        }
        if !(own..=1e15).contains(&all) {
            let allowed = if all > 1e15 { Allowed::AtMost(1e15) } else { Allowed::AtLeast(own) };
            return Err(DomainError { argument: "total_backlog", value: all, allowed });
        }
        Ok(Backlog { own, all })
    }
}

/// The equilibrium of a Vegas flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Equilibrium {
    /// Its rate, which is its share of the bottleneck.
    pub rate: PacketsPerSecond,
    /// Queueing delay in seconds, the same for all flows.
    pub queueing_delay: f64,
    /// Its window in packets: rate times base round-trip time, plus its backlog.
    pub window: f64,
}

/// The equilibrium of a flow with `backlog` at a bottleneck of `capacity`.
#[must_use]
pub fn equilibrium(capacity: PacketsPerSecond, base_rtt: Seconds, backlog: Backlog) -> Equilibrium {
    let rate = PacketsPerSecond::of(capacity.get() * (backlog.own / backlog.all));
    Equilibrium {
        rate,
        queueing_delay: backlog.all / capacity.get(),
        window: rate.get() * base_rtt.get() + backlog.own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_backlogs() {
        let capacity = PacketsPerSecond::new(1250.0).unwrap(); // 10 Mbit/s of 1000 B
        let at =
            |base: f64, own: f64| equilibrium(capacity, Seconds::new(base).unwrap(), Backlog::new(own, 6.0).unwrap());
        let (near, far) = (at(0.02, 2.0), at(0.2, 4.0));
        assert!((near.rate.get() + far.rate.get() - 1250.0).abs() < 1e-9);
        assert!((far.rate.get() / near.rate.get() - 2.0).abs() < 1e-12);
        // x q = backlog, and the window covers the whole round trip: w = x (d + q)
        assert!((near.rate.get() * near.queueing_delay - 2.0).abs() < 1e-12);
        assert!((far.window - far.rate.get() * (0.2 + far.queueing_delay)).abs() < 1e-9);
    }

    #[test]
    fn mistakes() {
        let error = Backlog::new(3.0, 2.0).unwrap_err();
        assert_eq!(error.to_string(), "total_backlog = 2: it must be at least 3");
        assert!(Backlog::new(0.0, 2.0).is_err() && Backlog::new(f64::NAN, 2.0).is_err());
        assert!(Backlog::new(1.0, f64::INFINITY).is_err());
    }
}

//! Coupled congestion control: flows of one host that share a bottleneck share their controllers' results.
//!
//! Source: RFC 8699 (S. Islam and others, "Coupled Congestion Control for RTP Media", 2020), sections 5.3.1 and 5.3.2,
//! with its names in capitals. Three details that it leaves open are decided here:
//! - A flow without a limit has an infinite desired rate (as appendix C says of bulk transfers); by section 5.2 it
//!   would be its current rate, and no flow could gain from capacity that another finds.
//! - `S_CR` is at most the sum of all desired rates, since no flow can use more.
//! - `FSE_R` is the rate that a flow has set from its share, within its own bounds
//!   ([`FlowStateExchange::set_actual_rate`]).

use paceline_units::{Span, Time};

/// How the sum of rates follows the rate that one flow's controller has calculated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CoupledAlgorithm {
    /// It changes by the same amount (section 5.3.1).
    #[default]
    Active,
    /// It decreases by the same share, and then not for two round trips (section 5.3.2), as a single flow would.
    Conservative,
}

/// A controller's report to the exchange, in bits per second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoupledRate {
    /// `CC_R`: the rate that it has calculated.
    pub calculated: f64,
    /// Its maximum rate; infinite if unlimited.
    pub max_rate: f64,
}

/// An entry of the exchange; rates in bits per second.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// `P`.
    priority: f64,
    /// `FSE_R`.
    rate: f64,
    /// `DR`.
    desired: f64,
    registered: bool,
}

/// The flow state exchange of one group (section 5.2). Flows are numbered in the order in which they were added.
#[derive(Clone, Debug)]
pub struct FlowStateExchange {
    algorithm: CoupledAlgorithm,
    flows: Vec<Entry>,
    /// `S_CR`.
    sum: f64,
    /// The timer of the conservative algorithm.
    until: Time,
}

impl FlowStateExchange {
    /// An exchange without flows.
    #[must_use]
    pub fn new(algorithm: CoupledAlgorithm) -> FlowStateExchange {
        FlowStateExchange { algorithm, flows: Vec::new(), sum: 0.0, until: Time::ZERO }
    }

    /// Adds a flow with this priority, which must be above zero; it is not registered yet.
    pub fn add(&mut self, priority: f64) {
        self.flows.push(Entry { priority, rate: 0.0, desired: f64::INFINITY, registered: false });
    }

    /// Registers a flow with its controller's first rate (step 1).
    pub fn register(&mut self, flow: usize, first: f64) {
        let entry = &mut self.flows[flow];
        (entry.rate, entry.registered) = (first, true);
        self.sum += first;
    }

    /// A flow stops or pauses (step 2). The others get its rate at the next update.
    pub fn remove(&mut self, flow: usize) {
        self.flows[flow].registered = false;
    }

    /// Whether a flow is registered.
    #[must_use]
    pub fn has(&self, flow: usize) -> bool {
        self.flows[flow].registered
    }

    /// Sets the maximum rate that a flow can use; infinite if nothing limits it.
    pub fn desire(&mut self, flow: usize, desired: f64) {
        self.flows[flow].desired = desired;
    }

    /// The rate assigned to a flow.
    #[must_use]
    pub fn rate(&self, flow: usize) -> f64 {
        self.flows[flow].rate
    }

    /// `S_CR`.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Sets the rate of a flow whose own bounds changed its share.
    pub fn set_actual_rate(&mut self, flow: usize, rate: f64) {
        self.flows[flow].rate = rate;
    }

    /// UPDATE by a registered flow: its controller's calculated rate and its round-trip time (step 3). Changes all
    /// flows' rates.
    pub fn update(&mut self, flow: usize, calculated: f64, rtt: Span, now: Time) {
        let before = self.flows[flow].rate;
        match self.algorithm {
            CoupledAlgorithm::Active => self.sum += calculated - before,
            CoupledAlgorithm::Conservative if now < self.until => {}
            CoupledAlgorithm::Conservative if calculated < before => {
                self.sum *= calculated / before;
                self.until = now + rtt * 2;
            }
            CoupledAlgorithm::Conservative => self.sum += calculated - before,
        }
        self.distribute();
    }

    /// Steps b and c: divides by priority; rate that a flow cannot use goes to the others.
    fn distribute(&mut self) {
        let here = || self.flows.iter().filter(|flow| flow.registered);
        self.sum = self.sum.clamp(0.0, here().map(|flow| flow.desired).sum());
        let (mut left, mut priorities) = (self.sum, here().map(|flow| flow.priority).sum::<f64>());
        self.flows.iter_mut().for_each(|flow| flow.rate = 0.0);
        // each pass in which a flow reaches its desired rate leaves more to the others: at most as many passes as flows
        for _ in 0..self.flows.len() {
            let mut reached = false;
            for flow in self.flows.iter_mut().filter(|flow| flow.registered && flow.rate < flow.desired) {
                let share = left * flow.priority / priorities;
                if share >= flow.desired {
                    left -= flow.desired;
                    flow.rate = flow.desired;
                    priorities -= flow.priority;
                    reached = true;
                } else {
                    flow.rate = share;
                }
            }
            if !reached {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: Span = Span::from_millis(100);

    fn at(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn exchange(algorithm: CoupledAlgorithm, priorities: &[f64]) -> FlowStateExchange {
        let mut exchange = FlowStateExchange::new(algorithm);
        priorities.iter().for_each(|priority| exchange.add(*priority));
        exchange
    }

    fn rates(exchange: &FlowStateExchange) -> Vec<f64> {
        (0..exchange.flows.len()).map(|flow| exchange.rate(flow)).collect()
    }

    /// A bulk flow at 10 Mbit/s, then a second one with half its priority: the numbers of appendix C.1, up to the point
    /// where the passive algorithm there leaves the other flow unchanged.
    fn joined(algorithm: CoupledAlgorithm) -> FlowStateExchange {
        let mut exchange = exchange(algorithm, &[1.0, 0.5]);
        exchange.register(0, 1e6);
        exchange.update(0, 10e6, RTT, at(0));
        assert_eq!(rates(&exchange), [10e6, 0.0]);
        exchange.register(1, 1e6);
        assert_eq!(exchange.sum(), 11e6);
        exchange
    }

    #[test]
    fn the_active_one_takes_what_the_flow_lost_from_the_sum() {
        let mut exchange = joined(CoupledAlgorithm::Active);
        exchange.update(0, 8e6, RTT, at(1));
        assert_eq!((exchange.sum(), rates(&exchange)), (9e6, vec![6e6, 3e6]));
        exchange.update(1, 4e6, RTT, at(2));
        assert_eq!(exchange.sum(), 10e6);
    }

    #[test]
    fn the_conservative_one_takes_the_share_and_then_waits_for_two_round_trips() {
        let mut exchange = joined(CoupledAlgorithm::Conservative);
        exchange.update(0, 8e6, RTT, at(1));
        let sum = 11e6 * 0.8;
        assert_eq!(exchange.sum(), sum);
        assert!((exchange.rate(0) - sum / 1.5).abs() < 1e-6 && (exchange.rate(1) - sum / 3.0).abs() < 1e-6);
        exchange.update(1, 1e6, RTT, at(200));
        assert_eq!(exchange.sum(), sum, "one congestion event is answered once");
        let before = exchange.rate(1);
        exchange.update(1, before + 1e6, RTT, at(201));
        assert!((exchange.sum() - sum - 1e6).abs() < 1e-6);
    }

    #[test]
    fn what_a_flow_cannot_use_is_the_others() {
        let mut exchange = exchange(CoupledAlgorithm::Active, &[1.0, 2.0, 1.0]);
        (0..3).for_each(|flow| exchange.register(flow, 3e6));
        exchange.desire(1, 2e6);
        exchange.update(0, 3e6, RTT, at(0));
        assert_eq!((exchange.sum(), rates(&exchange)), (9e6, vec![3.5e6, 2e6, 3.5e6]));
        exchange.desire(2, 1e6);
        exchange.update(0, 3.5e6, RTT, at(0));
        assert_eq!(rates(&exchange), [6e6, 2e6, 1e6]);
        // rate that no flow can use is not added
        exchange.desire(0, 4e6);
        exchange.update(0, 6e6, RTT, at(0));
        assert_eq!((exchange.sum(), rates(&exchange)), (7e6, vec![4e6, 2e6, 1e6]));
    }

    #[test]
    fn who_leaves_leaves_its_rate_to_the_others_and_who_comes_brings_its_first() {
        let mut exchange = joined(CoupledAlgorithm::Active);
        exchange.remove(0);
        exchange.update(1, 1e6, RTT, at(1));
        assert_eq!(rates(&exchange), [0.0, 11e6]);
        exchange.register(0, 1e6);
        exchange.update(0, 1e6, RTT, at(2));
        assert_eq!(rates(&exchange), [8e6, 4e6]);
    }

    /// Section 5.3.1, step 3 (c), literally; rounding errors do not count as a rest.
    fn pseudocode(sum: f64, priorities: &[f64], desired: &[f64]) -> Vec<f64> {
        let (mut rates, mut s_p) = (vec![0.0; priorities.len()], priorities.iter().sum::<f64>());
        let (mut tlo, mut ar) = (sum, 0.0);
        while tlo - ar > 1e-9 * sum && s_p > 1e-9 {
            ar = 0.0;
            for i in 0..rates.len() {
                if rates[i] < desired[i] {
                    if tlo * priorities[i] / s_p >= desired[i] {
                        tlo -= desired[i];
                        rates[i] = desired[i];
                        s_p -= priorities[i];
                    } else {
                        rates[i] = tlo * priorities[i] / s_p;
                        ar += tlo * priorities[i] / s_p;
                    }
                }
            }
        }
        rates
    }

    proptest! {
        #[test]
        fn shares_are_those_of_the_rfc(
            flows in prop::collection::vec((0.1..8.0f64, 1e4..1e7f64, any::<bool>()), 1..8),
            sum in 1e4..1e7f64,
        ) {
            let priorities: Vec<f64> = flows.iter().map(|flow| flow.0).collect();
            let desired: Vec<f64> = flows.iter().map(|flow| if flow.2 { flow.1 } else { f64::INFINITY }).collect();
            let mut exchange = exchange(CoupledAlgorithm::Active, &priorities);
            for (flow, desired) in desired.iter().enumerate() {
                exchange.register(flow, sum / flows.len() as f64);
                exchange.desire(flow, *desired);
            }
            exchange.update(0, sum / flows.len() as f64, RTT, at(0));
            let all = sum.min(desired.iter().sum());
            let want = pseudocode(all, &priorities, &desired);
            for (got, want) in rates(&exchange).iter().zip(&want) {
                prop_assert!((got - want).abs() <= 1e-6 * all, "{got} {want}");
            }
            prop_assert!((rates(&exchange).iter().sum::<f64>() - all).abs() <= 1e-6 * all);
        }
    }
}

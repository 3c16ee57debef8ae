//! SAP-LAW: smart access point with low advertised window.
//!
//! C. E. Palazzi et al., *What's in That Magic Box?*, IEEE Trans. Consumer Electronics 52(4), 2006, and *A Smart Access
//! Point Solution for Heterogeneous Flows*, ICUMT 2009; the law is eq. 1 of the VoAP paper. It needs the channel's
//! capacity and the flows' round-trip times in advance.

use super::{Decision, FlowReport, Interval};
use paceline_units::{Rate, Span};

/// SAP-LAW's parameters; each decision uses one interval alone.
///
/// Eq. 1 gives `maxTCPrate_i = (C - UDP) RTT_i / (a_1 + ... + a_n)` with `a_k = RTT_k / avg.RTTmin`. Its right side is
/// a rate times a time: with C in bytes per second it is a window in bytes, which gives flow i the rate `(C - UDP) /
/// (a_1 + ... + a_n)`. With the average over the same flows the sum is n, and all flows have the same rate. Paceline
/// reads it this way. (The authors' kernel code has no factor of RTT.)
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SapLaw {
    /// C: the channel's capacity.
    pub capacity: Rate,
    /// The round-trip time of flows with an unknown one.
    pub rtt: Span,
    /// The time between decisions; the authors' code keeps it between 1.5 and 3 s.
    pub interval: Span,
    /// UDP's rate in the interval is multiplied by this; the authors' code has 1.1.
    pub headroom: f64,
}

impl SapLaw {
    /// The parameters with the authors' interval and headroom.
    #[must_use]
    pub const fn new(capacity: Rate, rtt: Span) -> SapLaw {
        SapLaw { capacity, rtt, interval: Span::from_millis(2000), headroom: 1.1 }
    }

    pub(super) fn decide(&self, interval: &Interval, flows: &[FlowReport], decisions: &mut Vec<Decision>) {
        let free = ((self.capacity.bps() - self.headroom * interval.unresponsive.bps()) / 8.0).max(0.0);
        let rtt = |f: &FlowReport| f.rtt.unwrap_or(self.rtt).as_secs_f64();
        let active = |f: &&FlowReport| f.sent > 0;
        let count = flows.iter().filter(active).count().max(1) as f64;
        let mean = flows.iter().filter(active).map(rtt).sum::<f64>() / count;
        let sum = flows.iter().filter(active).map(|f| rtt(f) / mean).sum::<f64>().max(1.0);
        decisions.extend(flows.iter().map(|f| Decision { flow: f.flow, window: Some((free * rtt(f) / sum) as u64) }));
    }
}

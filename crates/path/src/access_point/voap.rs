//! VoAP: Vegas over access point.
//!
//! M. Massaro, C. E. Palazzi, A. Bujari: *Exploiting TCP Vegas' Algorithm to Improve Real-Time Multimedia
//! Applications*, section III. The available text lacks the paper's flow chart (its Fig. 1); where the text leaves a
//! choice open, it is a parameter here.

use super::{Decision, FlowReport, Interval};
use paceline_units::Span;
use std::collections::BTreeMap;

/// Which wait is compared with the thresholds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayOf {
    /// The maximum over all packets in the outgoing queue: the paper's ifqdel.
    #[default]
    Queue,
    /// The maximum over the flow's own packets; if unknown, the queue's.
    Flow,
}

/// The first window of a flow that joins the limited ones (the paper's AWNDbase).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum First {
    /// The flow's outstanding data at that time.
    #[default]
    Outstanding,
    /// A fixed number of segments.
    Segments(f64),
}

/// Whether a limited flow can become unlimited again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Leave {
    /// Never: after a pause it resumes with its old window.
    #[default]
    Never,
    /// After an interval without a packet; it may join again like any other flow.
    Idle,
}

/// Which limited windows grow while the queue is short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Growth {
    /// Those of all active flows.
    #[default]
    All,
    /// Those used up to the last segment. Otherwise a window grows without bound while something else (the flow's cwnd,
    /// its application) limits the flow, and has no effect when it should.
    Used,
}

/// VoAP's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VoapModel {
    /// Below this wait, limited windows grow by one segment.
    pub alpha: Span,
    /// Above this wait, limited windows shrink by one segment, and flows join.
    pub beta: Span,
    /// T: the time between decisions.
    pub interval: Span,
    /// A flow with at most this many segments outstanding is not limited, so that slow start stays fast.
    pub threshold: f64,
    /// Which wait is used.
    pub delay: DelayOf,
    /// A flow's first window.
    pub first: First,
    /// Whether a limited flow can become unlimited again.
    pub leave: Leave,
    /// Which windows grow.
    pub growth: Growth,
}

/// VoAP's state: the limited flows with their windows.
#[derive(Clone, PartialEq, Debug)]
pub struct Voap {
    model: VoapModel,
    limited: BTreeMap<u32, Limited>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Limited {
    /// AWND(i), in segments.
    window: f64,
    /// Whether it sent anything in the last interval.
    active: bool,
    /// Whether it stays among the limited flows.
    seen: bool,
}

/// The lower bound of windows, in segments.
const MIN_WINDOW: f64 = 2.0;

impl Default for VoapModel {
    fn default() -> VoapModel {
        VoapModel {
            alpha: Span::from_millis(5),
            beta: Span::from_millis(15),
            interval: Span::from_millis(200),
            threshold: 10.0,
            delay: DelayOf::default(),
            first: First::default(),
            leave: Leave::default(),
            growth: Growth::default(),
        }
    }
}

impl Voap {
    /// VoAP without limited flows.
    #[must_use]
    pub const fn new(model: VoapModel) -> Voap {
        Voap { model, limited: BTreeMap::new() }
    }

    /// The time between decisions.
    #[must_use]
    pub const fn interval(&self) -> Span {
        self.model.interval
    }

    pub(super) fn decide(&mut self, interval: &Interval, flows: &[FlowReport], decisions: &mut Vec<Decision>) {
        let share = self.share(flows);
        for flow in flows {
            let wait = match self.model.delay {
                DelayOf::Queue => interval.longest_wait,
                DelayOf::Flow => flow.longest_wait.unwrap_or(interval.longest_wait),
            };
            let segment = f64::from(flow.segment.max(1));
            let outstanding = flow.outstanding as f64 / segment;
            match self.limited.get_mut(&flow.flow) {
                Some(limited) if flow.sent > 0 => {
                    let used = self.model.growth == Growth::All || outstanding + 1.0 >= limited.window;
                    if wait > self.model.beta {
                        limited.window -= 1.0;
                    } else if wait >= self.model.alpha {
                        limited.window = (limited.window + share) / 2.0;
                    } else if used {
                        limited.window += 1.0;
                    }
                    limited.window = limited.window.min(flow.advertised as f64 / segment).max(MIN_WINDOW);
                }
                None if wait > self.model.beta && outstanding > self.model.threshold => {
                    let window = match self.model.first {
                        First::Outstanding => outstanding,
                        First::Segments(segments) => segments,
                    };
                    let window = window.min(flow.advertised as f64 / segment).max(MIN_WINDOW);
                    self.limited.insert(flow.flow, Limited { window, active: true, seen: true });
                }
                Some(_) | None => {}
            }
            let window = self.limited.get(&flow.flow).map(|l| l.window as u64 * u64::from(flow.segment.max(1)));
            decisions.push(Decision { flow: flow.flow, window });
        }
    }

    /// The target of each active flow: the sum of the limited windows (totalWindow) over the number of active flows
    /// among them. The window of a flow that has just become idle still counts in this interval's sum, and so goes to
    /// the others; after that it no longer counts.
    fn share(&mut self, flows: &[FlowReport]) -> f64 {
        for limited in self.limited.values_mut() {
            limited.seen = false;
        }
        let (mut total, mut active) = (0.0, 0_u32);
        for flow in flows {
            let Some(limited) = self.limited.get_mut(&flow.flow) else { continue };
            let was = std::mem::replace(&mut limited.active, flow.sent > 0);
            limited.seen = limited.active || self.model.leave == Leave::Never;
            active += u32::from(limited.active);
            if was || limited.active {
                total += limited.window;
            }
        }
        // A flow that has gone entirely also leaves its share.
        total += self.limited.values().filter(|l| !l.seen && l.active).map(|l| l.window).sum::<f64>();
        self.limited.retain(|_, limited| limited.seen);
        total / f64::from(active.max(1))
    }
}

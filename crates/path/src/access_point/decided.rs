//! What an access point has decided, interval by interval, for those who want to see it afterwards.

use super::{Decision, FlowReport};
use paceline_units::{Span, Time};

/// What was measured of a TCP flow in one interval, and what was decided at its end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decided {
    /// The interval's end.
    pub at: Time,
    /// Whose.
    pub flow: u32,
    /// The window that its receiver advertises, in segments.
    pub advertised: f64,
    /// What its window is lowered to from now on, in segments; `None` leaves it to the receiver.
    pub window: Option<f64>,
    /// What its sender had outstanding, in segments.
    pub outstanding: f64,
    /// The longest time that a packet of any flow waited in the queue.
    pub longest_wait: Span,
    /// The longest that one of its own did; `None` if it sent nothing.
    pub own_wait: Option<Span>,
}

impl Decided {
    /// What follows for one flow.
    pub(super) fn new(at: Time, longest_wait: Span, report: &FlowReport, decision: &Decision) -> Decided {
        let segment = f64::from(report.segment.max(1));
        let window = decision.window.map(|bytes| bytes / u64::from(report.segment.max(1)));
        Decided {
            at,
            flow: report.flow,
            advertised: report.advertised as f64 / segment,
            window: window.map(|segments| segments as f64),
            outstanding: report.outstanding as f64 / segment,
            longest_wait,
            own_wait: report.longest_wait,
        }
    }
}

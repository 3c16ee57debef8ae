//! A record of an access point's decisions, interval by interval.

use super::{Decision, FlowReport};
use paceline_units::{Span, Time};

/// The measurements of a TCP flow in one interval, and the decision at its end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decided {
    /// The interval's end.
    pub at: Time,
    /// The flow's number.
    pub flow: u32,
    /// The window that its receiver advertises, in segments.
    pub advertised: f64,
    /// The size that its window is lowered to from now on, in segments; `None` leaves it to the receiver.
    pub window: Option<f64>,
    /// The sender's outstanding data, in segments.
    pub outstanding: f64,
    /// The maximum wait of any flow's packet in the queue.
    pub longest_wait: Span,
    /// The maximum wait of its own packets; `None` if it sent nothing.
    pub own_wait: Option<Span>,
}

impl Decided {
    /// The record for one flow.
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

//! Per-flow counters of a link, if requested: packets, drops, marks, and the flow's part of the queue.

use crate::backlog::Exit;
use crate::meter::Measure;
use crate::{DropReason, Drops};
use paceline_packet::FlowId;
use paceline_units::Size;
use std::collections::VecDeque;

/// A link's measurements of one flow; defined as in [`LinkReport`](crate::LinkReport), of which they are parts.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FlowReport {
    /// Time-weighted mean of the packets waiting.
    pub mean_packets: f64,
    /// Packets that reached the queue.
    pub arrivals: u64,
    /// Packets that left the queue and crossed the link.
    pub departures: u64,
    /// Their bytes.
    pub departed_bytes: Size,
    /// Packets that did not cross, by reason.
    pub drops: Drops,
    /// Packets marked (ECN).
    pub marks: u64,
}

/// The counters of one flow.
#[derive(Clone, Copy, Debug, Default)]
struct FlowCounters {
    report: FlowReport,
    waiting: u64,
    /// The time up to which `area` is computed.
    reached: u64,
    /// Packets waiting, times nanoseconds, within the measured interval.
    area: u128,
}

/// The counters of all flows. Events must come in order of time.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    window: Measure,
    flows: Vec<FlowCounters>,
    /// Waiting packets whose departure is known: when, and how they leave.
    ahead: VecDeque<(u64, Leaving)>,
}

/// A packet that leaves the queue for the transmitter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub flow: FlowId,
    pub size: u16,
    pub exit: Exit,
}

impl FlowCounters {
    /// Extends the area to `at`.
    fn integrate(&mut self, at: u64, window: Measure) {
        let (from, to) = (self.reached.max(window.from.0), at.min(window.to.0));
        self.area += u128::from(self.waiting) * u128::from(to.saturating_sub(from));
        self.reached = at;
    }
}

impl Shares {
    pub(crate) fn new(window: Measure) -> Shares {
        Shares { window, flows: Vec::new(), ahead: VecDeque::new() }
    }

    fn of(&mut self, flow: FlowId) -> &mut FlowCounters {
        let number = flow.0 as usize;
        if number >= self.flows.len() {
            self.flows.resize(number + 1, FlowCounters::default());
        }
        &mut self.flows[number]
    }

    /// The flow's counters, if `at` lies in the measured interval.
    fn counts(&mut self, flow: FlowId, at: u64) -> Option<&mut FlowReport> {
        let measured = self.window.from.0 <= at && at < self.window.to.0;
        let counters = self.of(flow);
        measured.then_some(&mut counters.report)
    }

    fn change(&mut self, flow: FlowId, at: u64, by: i64) {
        let window = self.window;
        let counters = self.of(flow);
        counters.integrate(at, window);
        counters.waiting = counters.waiting.checked_add_signed(by).expect("only what waits leaves");
    }

    /// A packet reaches the queue.
    pub(crate) fn arrive(&mut self, flow: FlowId, at: u64) {
        self.counts(flow, at).into_iter().for_each(|report| report.arrivals += 1);
    }

    /// A packet that does not wait is dropped.
    pub(crate) fn refuse(&mut self, flow: FlowId, at: u64, reason: DropReason) {
        self.counts(flow, at).into_iter().for_each(|report| report.drops[reason] += 1);
    }

    /// A packet is marked.
    pub(crate) fn mark(&mut self, flow: FlowId, at: u64) {
        self.counts(flow, at).into_iter().for_each(|report| report.marks += 1);
    }

    /// A packet begins to wait.
    pub(crate) fn enter(&mut self, flow: FlowId, at: u64) {
        self.change(flow, at, 1);
    }

    /// A waiting packet is dropped.
    pub(crate) fn drop_waiting(&mut self, flow: FlowId, at: u64, reason: DropReason) {
        self.change(flow, at, -1);
        self.refuse(flow, at, reason);
    }

    /// A packet goes to the transmitter without waiting.
    pub(crate) fn pass(&mut self, at: u64, Leaving { flow, size, exit }: Leaving) {
        let Some(report) = self.counts(flow, at) else { return };
        match exit {
            Exit::Crosses => {
                report.departures += 1;
                report.departed_bytes.0 += u64::from(size);
            }
            Exit::Lost => report.drops[DropReason::Loss] += 1,
            Exit::Outage => report.drops[DropReason::Outage] += 1,
        }
    }

    /// A waiting packet goes to the transmitter.
    pub(crate) fn leave(&mut self, at: u64, leaving: Leaving) {
        self.change(leaving.flow, at, -1);
        self.pass(at, leaving);
    }

    /// A packet begins to wait; it will leave at `start`, no earlier than other packets with a known departure.
    pub(crate) fn will_leave(&mut self, now: u64, start: u64, leaving: Leaving) {
        self.enter(leaving.flow, now);
        self.ahead.push_back((start, leaving));
    }

    /// Lets packets with a known departure at or before `now` leave.
    pub(crate) fn release(&mut self, now: u64) {
        while let Some(&(start, leaving)) = self.ahead.front()
            && start <= now
        {
            self.ahead.pop_front();
            self.leave(start, leaving);
        }
    }

    /// Closes the counters at `end`, after all earlier events; returns reports indexed by flow number.
    pub(crate) fn finish(&mut self, end: u64) -> Vec<FlowReport> {
        // departures at the end itself lie outside
        if let Some(before) = end.checked_sub(1) {
            self.release(before);
        }
        let window = self.window;
        let length = end.min(window.to.0).saturating_sub(window.from.0);
        let report = |counters: &mut FlowCounters| {
            counters.integrate(end, window);
            let mean_packets = if length > 0 { counters.area as f64 / length as f64 } else { 0.0 };
            FlowReport { mean_packets, ..counters.report }
        };
        self.flows.iter_mut().map(report).collect()
    }
}

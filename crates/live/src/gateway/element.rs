//! The access point as an element of an emulated path: the law and the Rust version of the data path, applied to
//! passing frames.
//!
//! Its stations are at the path's near end: it processes frames from the far end before they enter the queue towards
//! the stations, and the stations' ACKs when they leave their devices.

use super::registry::Registry;
use super::table::{Control, Counter};
use super::window_clamp::WindowClamp;
use crate::clock::monotonic;
use paceline_path::access_point::{Interval, Law};
use paceline_units::{Rate, Span, Time};
use serde::Serialize;

/// An access point on a path.
#[derive(Debug)]
pub struct PathAccessPoint {
    law: Law,
    clamp: WindowClamp,
    registry: Registry,
    next: Time,
    /// Minimum delay of frames to the near end: that of the path without queueing.
    min_delay: Span,
    longest: Span,
    report: AccessPointReport,
}

/// Statistics of an access point on a path.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct AccessPointReport {
    /// Number of intervals.
    pub intervals: u64,
    /// Mean over the intervals of the longest wait above the minimum; `None` before the first interval has ended.
    pub delay_mean_s: Option<f64>,
    /// The longest wait.
    pub delay_max_s: Option<f64>,
    /// Acknowledgements whose window was lowered.
    pub lowered: u64,
    /// Maximum number of concurrent connections.
    pub most_flows: usize,
}

impl PathAccessPoint {
    /// An access point at time zero.
    #[must_use]
    pub fn new(law: &Law) -> PathAccessPoint {
        let mut clamp = WindowClamp::new();
        clamp.control = Control { deadline: u64::MAX, ..Control::of(law) };
        PathAccessPoint {
            law: law.clone(),
            clamp,
            registry: Registry::default(),
            next: Time::ZERO + law.interval(),
            min_delay: Span(u64::MAX),
            longest: Span::ZERO,
            report: AccessPointReport::default(),
        }
    }

    /// Processes a frame on its way from the far end to the stations.
    pub fn forward(&mut self, frame: &[u8]) {
        self.clamp.forward(monotonic(), frame);
    }

    /// Processes a frame from a station, and may lower its window.
    pub fn back(&mut self, frame: &mut [u8]) {
        self.clamp.back(monotonic(), frame);
    }

    /// Records the delay of a frame from the far end to the near end.
    pub fn took(&mut self, span: Span) {
        self.min_delay = self.min_delay.min(span);
        self.longest = self.longest.max(span);
    }

    /// When [`PathAccessPoint::decide`] is due next.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.next
    }

    /// Ends an interval if it is due.
    pub fn decide(&mut self, now: Time) {
        if now < self.next {
            return;
        }
        self.next = now + self.law.interval();
        let states: Vec<_> = self.clamp.flows().map(|(key, state)| (*key, *state)).collect();
        let taken = self.registry.take_in(&states, now, self.clamp.control.interval);
        self.clamp.control.interval = self.clamp.control.interval.wrapping_add(1);
        let rate = self.registry.udp_rate(&self.clamp.counts());
        let longest = std::mem::replace(&mut self.longest, Span::ZERO);
        let wait = Span(longest.0.saturating_sub(self.min_delay.0));
        let measured = Interval { longest_wait: wait, unresponsive: Rate::from_bps(rate as u64) };
        let keeper = &mut self.clamp;
        let decided = self.registry.decide(&mut self.law, &measured, &taken.reports, &mut |key, window| {
            keeper.clamp(*key, window);
            Ok(())
        });
        debug_assert!(decided.is_ok(), "nothing here can be refused");
        for key in self.registry.take_gone() {
            keeper.forget(&key);
        }
        let report = &mut self.report;
        report.intervals += 1;
        let (mean, wait_s) = (report.delay_mean_s.unwrap_or(0.0), wait.as_secs_f64());
        report.delay_mean_s = Some(mean + (wait_s - mean) / report.intervals as f64);
        report.delay_max_s = Some(report.delay_max_s.unwrap_or(0.0).max(wait_s));
        report.most_flows = report.most_flows.max(taken.reports.len());
    }

    /// The statistics so far.
    #[must_use]
    pub fn report(&self) -> AccessPointReport {
        AccessPointReport { lowered: self.clamp.counts()[Counter::Lowered as usize], ..self.report }
    }
}

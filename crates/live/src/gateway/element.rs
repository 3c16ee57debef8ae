//! The access point as a part of an emulated path: the law and the data path's twin, over frames that pass.
//!
//! Its stations are at the path's near end: it stands where frames from the far end enter the queue towards them, and
//! where their ACKs come out of their devices.

use super::keeper::WindowKeeper;
use super::registry::Registry;
use super::table::{Control, Counter};
use crate::clock::monotonic;
use paceline_path::access_point::{Interval, Law};
use paceline_units::{Rate, Span, Time};
use serde::Serialize;

/// An Ethernet header, which UDP's bytes are counted with.
const ETHERNET: u64 = 14;

/// An access point on a path.
#[derive(Debug)]
pub struct PathAccessPoint {
    law: Law,
    keeper: WindowKeeper,
    registry: Registry,
    next: Time,
    last: Time,
    udp: u64,
    /// The least time that a frame took to the near end: the path's own.
    least: Span,
    longest: Span,
    report: AccessPointReport,
}

/// What an access point on a path did.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct AccessPointReport {
    /// Intervals.
    pub intervals: u64,
    /// Mean of the intervals' longest waits, above the least.
    pub delay_mean_s: f64,
    /// The longest wait.
    pub delay_max_s: f64,
    /// Acknowledgements whose window was lowered.
    pub lowered: u64,
    /// The most connections at a time.
    pub most_flows: usize,
}

impl PathAccessPoint {
    /// At time zero.
    #[must_use]
    pub fn new(law: &Law) -> PathAccessPoint {
        let mut keeper = WindowKeeper::new();
        let window = match law {
            Law::Fixed(window) => u32::try_from(*window).unwrap_or(u32::MAX),
            _ => 0,
        };
        keeper.control = Control { deadline: u64::MAX, window, interval: 1, ..Control::default() };
        PathAccessPoint {
            law: law.clone(),
            keeper,
            registry: Registry::default(),
            next: Time::ZERO + law.interval(),
            last: Time::ZERO,
            udp: 0,
            least: Span(u64::MAX),
            longest: Span::ZERO,
            report: AccessPointReport::default(),
        }
    }

    /// A frame from the far end is on its way to the stations.
    pub fn forward(&mut self, frame: &[u8]) {
        self.keeper.forward(monotonic(), frame);
    }

    /// A frame from a station; its window may be lowered.
    pub fn back(&mut self, frame: &mut [u8]) {
        self.keeper.back(monotonic(), frame);
    }

    /// A frame has taken so long from the far end to the near end.
    pub fn took(&mut self, span: Span) {
        self.least = self.least.min(span);
        self.longest = self.longest.max(span);
    }

    /// When [`PathAccessPoint::decide`] has something to do.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.next
    }

    /// Ends an interval if its time has come.
    pub fn decide(&mut self, now: Time) {
        if now < self.next {
            return;
        }
        self.next = now + self.law.interval();
        let over = now.since(self.last).as_secs_f64();
        self.last = now;
        let states: Vec<_> = self.keeper.flows().map(|(key, state)| (*key, *state)).collect();
        let taken = self.registry.take_in(&states, now, self.keeper.control.interval);
        self.keeper.control.interval = self.keeper.control.interval.wrapping_add(1);
        let counts = self.keeper.counts();
        let count = |counter: Counter| counts[counter as usize];
        let packets = count(Counter::UdpDown) + count(Counter::UdpUp);
        let udp = count(Counter::UdpDownBytes) + count(Counter::UdpUpBytes) + ETHERNET * packets;
        let rate = (udp - self.udp) as f64 * 8.0 / over.max(1e-6);
        self.udp = udp;
        let longest = std::mem::replace(&mut self.longest, Span::ZERO);
        let wait = Span(longest.0.saturating_sub(self.least.0));
        let measured = Interval { longest_wait: wait, unresponsive: Rate::from_bps(rate as u64) };
        let mut decisions = Vec::new();
        self.law.decide(&measured, &taken.reports, &mut decisions);
        let keeper = &mut self.keeper;
        if !matches!(self.law, Law::Fixed(_)) {
            let clamped = self.registry.clamp(&decisions, &mut |key, window| {
                keeper.clamp(*key, window);
                Ok(())
            });
            debug_assert!(clamped.is_ok(), "nothing here can be refused");
        }
        for key in self.registry.take_gone() {
            keeper.forget(&key);
        }
        let report = &mut self.report;
        report.intervals += 1;
        report.delay_mean_s += (wait.as_secs_f64() - report.delay_mean_s) / report.intervals as f64;
        report.delay_max_s = report.delay_max_s.max(wait.as_secs_f64());
        report.most_flows = report.most_flows.max(taken.reports.len());
    }

    /// What it did.
    #[must_use]
    pub fn report(&self) -> AccessPointReport {
        AccessPointReport { lowered: self.keeper.counts()[Counter::Lowered as usize], ..self.report }
    }
}

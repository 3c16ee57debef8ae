//! An interface's counters: for its measured interval, its recording, and the end of the run.

use super::interface::Interface;
use crate::backlog::Departed;
use crate::meter::{Measure, Meter, Series, Snapshot};
use crate::{DropReason, LinkReport, Totals};
use paceline_units::Span;

/// A transmitter's counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InterfaceCounts {
    /// Exchanges that it began: a data frame (in 802.11n also with several packets) or a BlockAckReq, with or without
    /// RTS.
    pub attempts: u64,
    /// Exchanges that were not the first for their packet.
    pub retries: u64,
    /// Exchanges that began together with another device's.
    pub collisions: u64,
    /// Exchanges without a collision in which a frame, or a part of an aggregate, arrived damaged.
    pub frame_errors: u64,
    /// How long the medium carried its exchanges, including responses and the spaces before them; in a collision, until
    /// it waited for the response.
    pub airtime: Span,
}

impl InterfaceCounts {
    /// The difference from `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &InterfaceCounts) -> InterfaceCounts {
        InterfaceCounts {
            attempts: self.attempts - earlier.attempts,
            retries: self.retries - earlier.retries,
            collisions: self.collisions - earlier.collisions,
            frame_errors: self.frame_errors - earlier.frame_errors,
            airtime: self.airtime - earlier.airtime,
        }
    }
}

/// An interface's measurements. Its queue is the waiting packets, without those that are pending or held at the
/// transmitter; utilisation is its share of the medium's time.
#[derive(Clone, PartialEq, Debug)]
pub struct InterfaceReport {
    /// Its queue. A packet departs when its ACK has arrived, or when it is given up.
    pub queue: LinkReport,
    /// Its transmitter's counts in the measured interval.
    pub counts: InterfaceCounts,
}

/// An interface sampled at a fixed interval; each row but the first covers the interval before it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Samples {
    /// The sampling times and the queue.
    pub queue: Series,
    /// The transmitter's counts since the previous row.
    pub counts: Vec<InterfaceCounts>,
    /// The maximum wait of the packets that left the queue since the previous row.
    pub longest_wait: Vec<Span>,
}

/// An interface's meter and counts.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    pub(super) meter: Meter,
    /// The counts at both ends of the measured interval.
    ends: [InterfaceCounts; 2],
    before: InterfaceCounts,
    counts: Vec<InterfaceCounts>,
    longest_wait: Vec<Span>,
}

impl Counters {
    pub(super) fn new(measure: Measure) -> Counters {
        let meter = Meter::new(measure);
        Counters { meter, ends: Default::default(), before: Default::default(), counts: vec![], longest_wait: vec![] }
    }
}

impl Interface {
    /// The counters of everything before `time`.
    fn snapshot(&mut self, time: u64) -> Snapshot {
        self.queue.level.integrate(time, &mut ());
        let mut departed = Departed::default();
        (departed.packets[0], departed.bytes[0]) = self.departed;
        Snapshot {
            time,
            arrivals: self.queue.arrivals,
            refused: self.queue.dropped,
            marks: self.queue.marks(),
            classes: self.queue.classes(),
            departed,
            integrals: self.queue.level.integrals,
            idle: time.saturating_sub(self.counts.airtime.0),
            max: self.queue.max,
        }
    }

    /// Runs the meter at `time`, before other events at `time`.
    pub(super) fn cross(&mut self, time: u64) {
        if self.counters.meter.from.is_none() && self.counters.meter.window.from.0 <= time {
            self.counters.meter.from = Some(self.snapshot(time));
            self.counters.ends[0] = self.counts;
            self.queue.max = self.queue.len();
        }
        if self.counters.meter.to.is_none() && self.counters.meter.window.to.0 <= time {
            self.counters.meter.to = Some(self.snapshot(time));
            self.counters.ends[1] = self.counts;
        }
        if self.counters.meter.next_sample <= time {
            let (packets, bytes) = (self.queue.len(), self.queue.bytes());
            self.counters.meter.sample(time, packets, bytes);
            self.counters.counts.push(self.counts.since(&self.counters.before));
            self.counters.before = self.counts;
            self.counters.longest_wait.push(self.queue.take_longest_wait());
        }
    }

    /// The recorded samples.
    pub(super) fn take_samples(&mut self) -> Samples {
        Samples {
            queue: core::mem::take(&mut self.counters.meter.series),
            counts: core::mem::take(&mut self.counters.counts),
            longest_wait: core::mem::take(&mut self.counters.longest_wait),
        }
    }

    /// Closes the measurement at `end`, up to which [`Interface::cross`] has been called.
    ///
    /// # Panics
    /// If a packet vanished: arrivals must equal departures, drops and packets held here.
    pub(super) fn finish(&mut self, end: u64) -> InterfaceReport {
        let closing = self.snapshot(end);
        let (departures, _, drops) = closing.outcome();
        let waiting = self.holding();
        let arrivals = self.queue.arrivals;
        assert_eq!(arrivals, departures + drops.total() + waiting, "an interface lost count of its packets");
        let totals = Totals { arrivals, departures, drops, waiting, ..Totals::default() };
        let (to, last) = match self.counters.meter.to {
            Some(to) => (to, self.counters.ends[1]),
            None => (closing, self.counts),
        };
        let (from, first) = match self.counters.meter.from {
            Some(from) => (from, self.counters.ends[0]),
            None => (to, last),
        };
        debug_assert!(drops[DropReason::Loss] == 0, "a cell's losses are those of retries");
        InterfaceReport { queue: to.report(&from, None, totals), counts: last.since(&first) }
    }
}

//! A link's measurements: the queue over time, and the fates of packets.
//!
//! A meter keeps running totals from time zero and records them at both ends of the measured interval. The link may be
//! evaluated ahead of the global clock, so every count goes by the timestamps of events.

use crate::backlog::Departed;
use crate::flow_counters::FlowReport;
use crate::qdisc::ClassCounts;
use crate::queue_level::Integrals;
use crate::{DropReason, Drops};
use paceline_units::{Ratio, Size, Span, Time};
use std::collections::VecDeque;

/// The measured interval: `[from, to)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measure {
    /// The first instant.
    pub from: Time,
    /// The end, exclusive; [`Time::NEVER`]: until the link is finished.
    pub to: Time,
}

impl Measure {
    /// The whole run.
    pub const ALL: Measure = Measure { from: Time::ZERO, to: Time::NEVER };
}

/// A link's measurements. A packet counts as an arrival, or as dropped by the queue, when it reaches the queue. It
/// counts as a departure, or as lost (by the loss model or an outage), when it leaves the queue, which is when its
/// transmission begins. The queue is the waiting packets, without the one in transmission.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkReport {
    /// The interval measured: as requested, but no longer than the link was used.
    pub measured: Measure,
    /// Time-weighted mean of the packets waiting.
    pub mean_packets: f64,
    /// Time-weighted standard deviation of the packets waiting.
    pub sd_packets: f64,
    /// Time-weighted mean of the bytes waiting.
    pub mean_bytes: f64,
    /// Time-weighted standard deviation of the bytes waiting.
    pub sd_bytes: f64,
    /// The maximum number of packets that waited at once.
    pub max_packets: u32,
    /// If requested: the fractions of time in which the queue held from k to k + 1 tenths of its limit (upper edge
    /// exclusive, except that the last tenth includes the full queue).
    pub occupancy: Option<[f64; 10]>,
    /// The fraction of time in which a packet was in transmission. With a varying rate: the bytes sent as a fraction of
    /// the link's capacity.
    pub utilisation: Ratio,
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
    /// For a discipline with two classes: the counts of L4S and of Classic.
    pub classes: Option<[ClassCounts; 2]>,
    /// If requested: each flow's part, indexed by flow number up to the highest that arrived.
    pub flows: Vec<FlowReport>,
    /// Counts of the whole run.
    pub totals: Totals,
}

/// Counts of a whole run, from time zero until the link was finished.
/// arrivals = departures + drops + waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Packets that reached the queue.
    pub arrivals: u64,
    /// Packets that left the queue and crossed the link.
    pub departures: u64,
    /// Packets that did not cross, by reason.
    pub drops: Drops,
    /// Packets in the queue at the end.
    pub waiting: u64,
    /// Packets held back by reordering.
    pub reordered: u64,
    /// Packets that arrive twice.
    pub duplicated: u64,
    /// Packets that arrive damaged.
    pub corrupted: u64,
}

/// The queue sampled at a fixed interval, from time zero. At the instant of a sample, departures count as gone, and
/// arrivals as not yet there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Series {
    /// The sampling times.
    pub time: Vec<Time>,
    /// Packets waiting.
    pub packets: Vec<u32>,
    /// Bytes waiting.
    pub bytes: Vec<u64>,
    /// Mean waiting time of the packets that left since the previous sample; zero if none left.
    pub delay: Vec<Span>,
}

/// How long packets waited in a queue until their transmission began, from time zero. A packet that found the link idle
/// waited for zero; packets dropped by the queue are excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    packets: u64,
    /// Nanoseconds.
    sum: u128,
    max_wait: u64,
}

impl Waits {
    fn add(&mut self, wait: u64) {
        self.packets += 1;
        self.sum += u128::from(wait);
        self.max_wait = self.max_wait.max(wait);
    }

    /// The mean; `None` without a packet.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        self.sum.checked_div(u128::from(self.packets)).map(|mean| Span(mean as u64))
    }

    /// The maximum; `None` without a packet.
    #[must_use]
    pub fn max(&self) -> Option<Span> {
        (self.packets > 0).then_some(Span(self.max_wait))
    }
}

/// The counters of everything before an instant.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Snapshot {
    pub time: u64,
    pub arrivals: u64,
    /// Dropped by the queue or before it.
    pub refused: Drops,
    pub marks: u64,
    pub classes: Option<[ClassCounts; 2]>,
    pub departed: Departed,
    pub integrals: Integrals,
    /// Nanoseconds in which the link had nothing to send.
    pub idle: u64,
    pub max: u32,
}

impl Snapshot {
    /// Packets that left the queue and crossed, their bytes, and all drops.
    pub(crate) fn outcome(&self) -> (u64, u64, Drops) {
        let mut drops = self.refused;
        drops[DropReason::Loss] = self.departed.packets[1];
        drops[DropReason::Outage] = self.departed.packets[2];
        (self.departed.packets[0], self.departed.bytes[0], drops)
    }

    /// The report on the time between `from` and `self`. `capacity`: the bytes that a link of varying rate could have
    /// carried.
    pub(crate) fn report(&self, from: &Snapshot, capacity: Option<u128>, totals: Totals) -> LinkReport {
        let length = (self.time - from.time) as f64;
        let moments = |i: usize| {
            if length == 0.0 {
                return (0.0, 0.0);
            }
            let mean = (self.integrals.first[i] - from.integrals.first[i]) / length;
            let square = (self.integrals.second[i] - from.integrals.second[i]) / length;
            (mean, (square - mean * mean).max(0.0).sqrt())
        };
        let ((mean_packets, sd_packets), (mean_bytes, sd_bytes)) = (moments(0), moments(1));
        let share = match capacity {
            None if length == 0.0 => 0.0,
            None => 1.0 - (self.idle - from.idle) as f64 / length,
            Some(0) => 0.0,
            Some(bytes) => {
                let used: u64 = (0..4).map(|i| self.departed.bytes[i] - from.departed.bytes[i]).sum();
                used as f64 / bytes as f64
            }
        };
        let ((departures, bytes, mut drops), (departures_before, bytes_before, before)) =
            (self.outcome(), from.outcome());
        for reason in DropReason::ALL {
            drops[reason] -= before[reason];
        }
        LinkReport {
            measured: Measure { from: Time(from.time), to: Time(self.time) },
            mean_packets,
            sd_packets,
            mean_bytes,
            sd_bytes,
            max_packets: self.max,
            occupancy: None,
            utilisation: Ratio(share.clamp(0.0, 1.0)),
            arrivals: self.arrivals - from.arrivals,
            departures: departures - departures_before,
            departed_bytes: Size(bytes - bytes_before),
            drops,
            marks: self.marks - from.marks,
            classes: self.classes.map(|now| {
                let before = from.classes.unwrap_or_default();
                [0, 1].map(|class| now[class].since(&before[class]))
            }),
            flows: Vec::new(),
            totals,
        }
    }
}

/// A meter: its snapshots, samples and waits, and the next instants at which it must act.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    pub window: Measure,
    pub from: Option<Snapshot>,
    pub to: Option<Snapshot>,
    pub every: Span,
    pub next_sample: u64,
    pub series: Series,
    pub waits: Waits,
    /// Packets that have left since the last sample, and the sum of their waits.
    left: (u64, u64),
    /// Known future departures: when, and after what wait.
    ahead: VecDeque<(u64, u64)>,
}

impl Meter {
    pub(crate) fn new(window: Measure) -> Meter {
        let (series, ahead) = (Series::default(), VecDeque::new());
        let (every, next_sample) = (Span::ZERO, u64::MAX);
        let waits = Waits::default();
        Meter { window, from: None, to: None, every, next_sample, series, waits, left: (0, 0), ahead }
    }

    /// Requests a sample every `every`, from time zero.
    ///
    /// # Panics
    /// If `every` is zero.
    pub(crate) fn record(&mut self, every: Span) {
        assert!(every > Span::ZERO, "the interval of a recording must not be zero");
        self.every = every;
        self.next_sample = 0;
    }

    /// A packet leaves now, after `wait`.
    pub(crate) fn waited(&mut self, wait: u64) {
        self.waits.add(wait);
        self.leave(wait);
    }

    fn leave(&mut self, wait: u64) {
        self.left = (self.left.0 + 1, self.left.1 + wait);
    }

    /// A packet will leave at `start`, after `wait`.
    pub(crate) fn will_leave(&mut self, start: u64, wait: u64) {
        self.waits.add(wait);
        if self.every > Span::ZERO {
            self.ahead.push_back((start, wait));
        }
    }

    /// Takes the sample that is due.
    pub(crate) fn sample(&mut self, time: u64, packets: u32, bytes: u64) {
        while let Some(&(start, wait)) = self.ahead.front()
            && start <= time
        {
            self.ahead.pop_front();
            self.leave(wait);
        }
        let (left, waits) = core::mem::take(&mut self.left);
        self.series.delay.push(Span(waits.checked_div(left).unwrap_or(0)));
        self.series.time.push(Time(time));
        self.series.packets.push(packets);
        self.series.bytes.push(bytes);
        self.next_sample = time.saturating_add(self.every.0);
    }

    /// Removes samples after `end`.
    pub(crate) fn cut(&mut self, end: Time) {
        let kept = self.series.time.partition_point(|&time| time <= end);
        self.series.time.truncate(kept);
        self.series.packets.truncate(kept);
        self.series.bytes.truncate(kept);
        self.series.delay.truncate(kept);
    }

    /// The next instant at which the meter must act.
    pub(crate) fn next(&self) -> u64 {
        let from = if self.from.is_none() { self.window.from.0 } else { u64::MAX };
        let to = if self.to.is_none() { self.window.to.0.max(self.window.from.0) } else { u64::MAX };
        from.min(to).min(self.next_sample)
    }
}

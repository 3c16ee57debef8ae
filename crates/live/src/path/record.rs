//! What an emulated path records: its lateness, counts of frames, queues and delays over time.

use super::capture::{Capturing, PathCapture};
use super::emulator::{Counts, DirectionResult, LinkResult, Release, Side};
use super::flow_losses::FlowLosses;
use crate::clock::{Clock, Lateness, histogram};
use crate::gateway::AccessPointReport;
use crate::host::HostReport;
use hdrhistogram::Histogram;
use paceline_sim::Series;
use paceline_sim::summary::QueueSummary;
use paceline_units::{Span, Time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;

/// Report of an emulated path.
#[derive(Debug, Serialize)]
pub struct PathReport {
    /// The path's name.
    pub name: String,
    /// Seed of its random draws.
    pub seed: u64,
    /// Duration of the run.
    pub duration_s: f64,
    /// Unmeasured time before the flows began.
    pub set_up_s: f64,
    /// Why it ended early, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Frame counts per direction.
    pub directions: Vec<DirectionReport>,
    /// The links.
    pub queues: Vec<PathQueue>,
    /// Time from when a frame was due to leave until it was passed to the device.
    pub lag: Lateness,
    /// Lateness of the emulator's wake-ups, when it had to wait.
    pub wake: Lateness,
    /// The host's state during the run.
    pub host: HostReport,
    /// The capture, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureReport>,
    /// Statistics of the access point, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_point: Option<AccessPointReport>,
    /// Recordings over time: tables `queue` (per link), as in a simulated run, and `delay` (per direction).
    #[serde(skip)]
    pub series: Vec<Series>,
    /// Flows' losses, by CLOCK_MONOTONIC.
    #[serde(skip)]
    pub lost: FlowLosses,
}

/// One direction of an emulated path.
#[derive(Clone, Debug, Serialize)]
pub struct DirectionReport {
    /// `forward` is from the near end to the far end.
    pub direction: &'static str,
    /// Frames that entered.
    pub entered: u64,
    /// Their bytes.
    pub entered_bytes: u64,
    /// Copies made by impairments.
    pub duplicated: u64,
    /// Frames that left.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Frames on the path at the end.
    pub in_flight: u64,
    /// Dropped frames by reason: a link's, `malformed` (not a complete IP packet), `memory` (no memory in the
    /// emulator), `device` (not accepted at the other end).
    pub drops: BTreeMap<&'static str, u64>,
    /// Time from a frame's arrival until it was due to leave: the path's own delay, without lag.
    pub delay: Lateness,
    /// Minimum of that delay, i.e. without queueing; `None` without a frame.
    pub delay_min_s: Option<f64>,
}

/// A link: its row as in a simulated run, and the waiting times in its queue until transmission began.
#[derive(Clone, Debug, Serialize)]
pub struct PathQueue {
    /// The link's row of a simulated run.
    #[serde(flatten)]
    pub queue: QueueSummary,
    /// Mean waiting time; `None` without a packet.
    pub delay_mean_s: Option<f64>,
    /// Maximum waiting time.
    pub delay_max_s: Option<f64>,
}

/// Statistics of a capture.
#[derive(Clone, Debug, Serialize)]
pub struct CaptureReport {
    /// Packets in the file.
    pub packets: u64,
    /// Packets missing because the disk was too slow.
    pub missing: u64,
    /// Why writing the file failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Records while the emulator runs.
pub(super) struct Recorder {
    lag: Histogram<u64>,
    delays: [Delays; 2],
    capture: Option<Capturing>,
}

impl Recorder {
    /// A recorder; `every` is the interval of recordings over time.
    pub(super) fn new(clock: Clock, every: Option<Span>, capture: Option<PathCapture<'_>>) -> io::Result<Recorder> {
        Ok(Recorder {
            lag: histogram(),
            delays: [Delays::new("forward", every), Delays::new("backward", every)],
            capture: capture.map(|capture| Capturing::begin(&capture, clock)).transpose()?,
        })
    }

    /// Restarts the measurement with another clock; the capture continues.
    pub(super) fn restart(&mut self, clock: Clock) {
        self.lag = histogram();
        self.delays.iter_mut().for_each(Delays::restart);
        self.capture.iter_mut().for_each(|capture| capture.change(clock));
    }

    /// Records a frame that entered.
    #[inline]
    pub(super) fn entered(&mut self, side: Side, at: Time, frame: &[u8]) {
        if let Some(capture) = &mut self.capture {
            capture.packet(side, at, true, frame);
        }
    }

    /// Records a frame that left at `at`.
    #[inline]
    pub(super) fn released(&mut self, release: &Release<'_>, at: Time) {
        self.lag.saturating_record(at.since(release.due).0);
        self.delays[release.side.other() as usize].frame(release.entered, release.due);
        if let Some(capture) = &mut self.capture {
            capture.packet(release.side, at, false, release.frame);
        }
    }

    /// Adds the measurements to `report`.
    pub(super) fn finish(self, directions: [DirectionResult; 2], end: Time, mut report: PathReport) -> PathReport {
        report.lag = Lateness::of(&self.lag);
        report.capture = self.capture.map(Capturing::finish);
        for (direction, delays) in directions.into_iter().zip(self.delays) {
            report.directions.push(DirectionReport {
                delay: Lateness::of(&delays.all),
                delay_min_s: (!delays.all.is_empty()).then(|| Span(delays.all.min()).as_secs_f64()),
                ..DirectionReport::of(direction.from, &direction.counts)
            });
            for LinkResult { model, report: measured, waits, series } in direction.links {
                report.queues.push(PathQueue {
                    queue: QueueSummary::of(&model, &measured),
                    delay_mean_s: waits.mean().map(Span::as_secs_f64),
                    delay_max_s: waits.max().map(Span::as_secs_f64),
                });
                if !series.time.is_empty() {
                    report.series.push(Series::of_queue(&model, &series, end));
                }
            }
            report.series.extend(delays.finish());
        }
        report
    }
}

impl DirectionReport {
    fn of(from: Side, counts: &Counts) -> DirectionReport {
        DirectionReport {
            direction: direction(from),
            entered: counts.entered,
            entered_bytes: counts.entered_bytes,
            duplicated: counts.duplicated,
            delivered: counts.delivered,
            delivered_bytes: counts.delivered_bytes,
            in_flight: counts.in_flight,
            drops: counts.by_reason(),
            delay: Lateness::default(),
            delay_min_s: None,
        }
    }
}

const fn direction(from: Side) -> &'static str {
    match from {
        Side::Near => "forward",
        Side::Far => "backward",
    }
}

/// The delays of one direction: all of them, and their mean and maximum in each interval.
struct Delays {
    all: Histogram<u64>,
    every: Option<Span>,
    series: Series,
    /// The current interval: its number, frames, sum and maximum in nanoseconds.
    current: (u64, u64, u128, u64),
}

impl Delays {
    fn new(direction: &str, every: Option<Span>) -> Delays {
        let every = every.map(|every| Span(every.0.max(1)));
        Delays { all: histogram(), every, series: Delays::table(direction.to_owned()), current: (0, 0, 0, 0) }
    }

    fn table(direction: String) -> Series {
        Series::new("delay", vec![("direction", direction)], &["time_s", "packets", "delay_mean_s", "delay_max_s"])
    }

    fn restart(&mut self) {
        let direction = self.series.labels.swap_remove(0).1;
        *self = Delays { all: histogram(), every: self.every, series: Delays::table(direction), current: (0, 0, 0, 0) };
    }

    fn frame(&mut self, entered: Time, due: Time) {
        let delay = due.since(entered).0;
        self.all.saturating_record(delay);
        let Some(every) = self.every else { return };
        let number = due.0 / every.0;
        if number != self.current.0 {
            self.close(every);
            self.current.0 = number;
        }
        let (_, frames, sum, max) = &mut self.current;
        (*frames, *sum, *max) = (*frames + 1, *sum + u128::from(delay), delay.max(*max));
    }

    /// Writes the current interval's row, with the time of its end; an interval without frames has none.
    fn close(&mut self, every: Span) {
        let (number, frames, sum, max) = self.current;
        if frames > 0 {
            let end = Time((number + 1).saturating_mul(every.0)).as_secs_f64();
            self.series.push(&[end, frames as f64, sum as f64 / frames as f64 / 1e9, max as f64 / 1e9]);
        }
        self.current = (number, 0, 0, 0);
    }

    fn finish(mut self) -> Option<Series> {
        self.close(self.every?);
        let has_rows = self.series.columns.iter().any(|(_, values)| !values.is_empty());
        has_rows.then_some(self.series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_by_interval() {
        let ms = |n: u64| Time(n * 1_000_000);
        let mut delays = Delays::new("forward", Some(Span::from_millis(10)));
        for (entered, due) in [(0, 4), (1, 7), (20, 25)] {
            delays.frame(ms(entered), ms(due));
        }
        assert_eq!(delays.all.len(), 3);
        let series = delays.finish().unwrap();
        let columns: Vec<&[f64]> = series.columns.iter().map(|(_, values)| &values[..]).collect();
        assert_eq!(columns, [&[0.01, 0.03][..], &[2.0, 1.0], &[0.005, 0.005], &[0.006, 0.005]]);
        let mut none = Delays::new("forward", None);
        none.frame(ms(0), ms(4));
        assert!(none.finish().is_none());
    }
}

//! Time series that were asked for. What nobody asked for is not recorded and costs nothing.

use crate::endpoint::{Sink, Source};
use paceline_control::Gauges;
use paceline_units::{Span, Time};

/// What to record, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recording {
    /// Congestion windows.
    pub cwnd: bool,
    /// Queue lengths.
    pub queue: bool,
    /// Goodput per interval.
    pub rate: bool,
    /// Levels of play-out buffers.
    pub playout: bool,
    /// The sampling interval.
    pub every: Span,
}

impl Recording {
    /// Names of the series.
    pub const NAMES: [&'static str; 4] = ["cwnd", "queue", "rate", "playout"];
    /// Record nothing.
    pub const NOTHING: Recording =
        Recording { cwnd: false, queue: false, rate: false, playout: false, every: Span::from_millis(20) };

    /// Records the series of these names.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn of<'a>(names: &[&'a str], every: Span) -> Result<Recording, &'a str> {
        let mut recording = Recording { every: Span(every.0.max(1)), ..Recording::NOTHING };
        for name in names {
            match *name {
                "cwnd" => recording.cwnd = true,
                "queue" => recording.queue = true,
                "rate" => recording.rate = true,
                "playout" => recording.playout = true,
                other => return Err(other),
            }
        }
        Ok(recording)
    }

    /// Whether hosts have something to sample.
    #[must_use]
    pub const fn at_hosts(&self) -> bool {
        self.cwnd || self.rate || self.playout
    }
}

/// One recorded table: for one flow, or one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its kind: one of [`Recording::NAMES`].
    pub table: &'static str,
    /// What it belongs to, as (column, value): flow and instance, or link and direction.
    pub labels: Vec<(&'static str, String)>,
    /// Columns with units in their names, all of one length.
    pub columns: Vec<(&'static str, Vec<f64>)>,
}

impl Series {
    /// An empty table with these columns.
    #[must_use]
    pub fn new(table: &'static str, labels: Vec<(&'static str, String)>, columns: &[&'static str]) -> Series {
        Series { table, labels, columns: columns.iter().map(|name| (*name, Vec::new())).collect() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[f64]) {
        for ((_, column), value) in self.columns.iter_mut().zip(row) {
            column.push(*value);
        }
    }
}

/// Samples the endpoints of one host at every multiple of the interval.
#[derive(Debug)]
pub struct HostRecorder {
    recording: Recording,
    next: Time,
    windows: Vec<Series>,
    rates: Vec<(Series, u64)>,
    playouts: Vec<Option<Series>>,
}

type Labels = Vec<(&'static str, String)>;

impl HostRecorder {
    /// For a host whose sources and sinks have these labels; of the sinks, those with a player are marked.
    #[must_use]
    pub fn new(recording: Recording, sources: Vec<Labels>, sinks: Vec<(Labels, bool)>) -> HostRecorder {
        let windows = sources.into_iter().filter(|_| recording.cwnd);
        let rates = sinks.iter().filter(|_| recording.rate);
        let playouts = sinks.iter().filter(|_| recording.playout);
        HostRecorder {
            recording,
            next: Time::ZERO,
            windows: windows
                .map(|labels| {
                    Series::new(
                        "cwnd",
                        labels,
                        &["time_s", "cwnd_packets", "ssthresh_packets", "srtt_s", "in_flight_packets"],
                    )
                })
                .collect(),
            rates: rates
                .map(|(labels, _)| (Series::new("rate", labels.clone(), &["time_s", "goodput_bps"]), 0))
                .collect(),
            playouts: playouts
                .map(|(labels, player)| player.then(|| Series::new("playout", labels.clone(), &["time_s", "buffer_s"])))
                .collect(),
        }
    }

    /// When to sample next.
    #[must_use]
    pub fn next_sample(&self) -> Time {
        self.next
    }

    /// Takes one sample of everything.
    pub fn sample(&mut self, now: Time, sources: &[Source], sinks: &[Sink]) {
        let time = now.as_secs_f64();
        for (series, source) in self.windows.iter_mut().zip(sources) {
            if source.has_started() {
                let mut row = WindowRow::default();
                source.sender.gauges(&mut row);
                series.push(&[time, row.cwnd, row.ssthresh, row.srtt, row.in_flight]);
            }
        }
        for ((series, before), sink) in self.rates.iter_mut().zip(sinks) {
            let bytes = sink.receiver.stats().bytes;
            if now > Time::ZERO {
                series.push(&[time, (bytes - *before) as f64 * 8.0 / self.recording.every.as_secs_f64()]);
            }
            *before = bytes;
        }
        for (series, sink) in self.playouts.iter_mut().zip(sinks) {
            if let (Some(series), Some(level)) = (series, sink.buffered(now)) {
                series.push(&[time, level.as_secs_f64()]);
            }
        }
        self.next = now + self.recording.every;
    }

    /// What was recorded.
    #[must_use]
    pub fn into_series(self) -> Vec<Series> {
        let rates = self.rates.into_iter().map(|(series, _)| series);
        self.windows.into_iter().chain(rates).chain(self.playouts.into_iter().flatten()).collect()
    }
}

#[derive(Default)]
struct WindowRow {
    cwnd: f64,
    ssthresh: f64,
    srtt: f64,
    in_flight: f64,
}

impl Gauges for WindowRow {
    fn gauge(&mut self, name: &'static str, value: f64) {
        match name {
            "cwnd" => self.cwnd = value,
            "ssthresh" => self.ssthresh = value,
            "srtt" => self.srtt = value,
            "in_flight" => self.in_flight = value,
            _ => {}
        }
    }
}

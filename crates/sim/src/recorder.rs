//! Requested time series. A series that is not requested costs nothing.

use crate::endpoint::{Sink, Source};
use crate::gauges::Gauged;
use paceline_flow::SenderStats;
use paceline_flow::machine::Transport;
use paceline_path::access_point::Decided;
use paceline_path::wifi::Samples;
use paceline_scenario::model::{CellInstance, FlowModel, LinkDirection, Model};
use paceline_units::{Span, Time};
use std::borrow::Cow;

/// What to record, and how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recording {
    /// Congestion windows.
    pub cwnd: bool,
    /// Queue lengths.
    pub queue: bool,
    /// State from RTCP reports, and the rate that follows from it.
    pub rtcp: bool,
    /// Goodput and sending rate per interval.
    pub rate: bool,
    /// Data sent so far.
    pub sequence: bool,
    /// Senders' counts of packets, losses and round trips per interval.
    pub losses: bool,
    /// Gauges of senders with per-packet acknowledgements, as `cwnd`, `rtcp` and `tfrc` are those of the other
    /// machines.
    pub acks: bool,
    /// Gauges of TFRC senders.
    pub tfrc: bool,
    /// Levels of play-out buffers.
    pub playout: bool,
    /// One-way delay, jitter and interarrival times, of flows that measure them.
    pub arrivals: bool,
    /// Delays of encoders' frames.
    pub frames: bool,
    /// Activity of cells' transmitters.
    pub airtime: bool,
    /// Window decisions of cells' access points, one row per decision.
    pub windows: bool,
    /// The sampling interval.
    pub every: Span,
}

impl Recording {
    /// Names of the series.
    pub const NAMES: [&'static str; 13] = [
        "cwnd", "queue", "rate", "rtcp", "sequence", "losses", "acks", "tfrc", "playout", "arrivals", "frames",
        "airtime", "windows",
    ];
    /// Records nothing.
    pub const NOTHING: Recording = Recording {
        cwnd: false,
        queue: false,
        rtcp: false,
        rate: false,
        sequence: false,
        losses: false,
        acks: false,
        tfrc: false,
        playout: false,
        arrivals: false,
        frames: false,
        airtime: false,
        windows: false,
        every: Span::from_millis(20),
    };

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
                "rtcp" => recording.rtcp = true,
                "sequence" => recording.sequence = true,
                "losses" => recording.losses = true,
                "acks" => recording.acks = true,
                "tfrc" => recording.tfrc = true,
                "playout" => recording.playout = true,
                "arrivals" => recording.arrivals = true,
                "frames" => recording.frames = true,
                "airtime" => recording.airtime = true,
                "windows" => recording.windows = true,
                other => return Err(other),
            }
        }
        Ok(recording)
    }

    /// Records the series of these names, a row every `every_s` seconds. For front ends.
    ///
    /// # Errors
    /// A message: an unknown name, or an interval shorter than a nanosecond or longer than a hundred years.
    pub fn sampled<'a>(names: impl IntoIterator<Item = &'a str>, every_s: f64) -> Result<Recording, String> {
        if !(1e-9..=3.2e9).contains(&every_s) {
            return Err(format!("record_every_s = {every_s} is not in 1e-9 to 3.2e9"));
        }
        let names: Vec<&str> = names.into_iter().collect();
        Recording::of(&names, Span::from_secs_f64(every_s)).map_err(|unknown| {
            let known = Recording::NAMES.join(", ");
            format!("record: there is no `{unknown}`; there are {known}")
        })
    }

    /// The series that a run of this model can contain.
    #[must_use]
    pub fn possible(model: &Model) -> Vec<&'static str> {
        let on = |machine: &str| model.flows.iter().any(|flow| flow.transport.name() == machine);
        let there = |name: &&str| match *name {
            "cwnd" => on("tcp") || on("quic"),
            "acks" | "tfrc" => on(name),
            "rtcp" => on("rtp"),
            "queue" => !model.cells.is_empty() || model.links.iter().any(LinkDirection::is_recorded),
            "playout" => model.flows.iter().any(|flow| flow.stream.is_some()),
            "arrivals" => model.flows.iter().any(|flow| flow.delays),
            "frames" => model.flows.iter().any(FlowModel::has_frames),
            "airtime" => !model.cells.is_empty(),
            "windows" => model.cells.iter().any(|cell| cell.law.is_some()),
            _ => true,
        };
        Recording::NAMES.into_iter().filter(there).collect()
    }

    /// The table for the gauges of a flow's sender, if it is recorded. It depends on the machine.
    #[must_use]
    pub fn gauges_of(&self, flow: &FlowModel) -> Option<&'static str> {
        let (wanted, table) = match &flow.transport {
            Transport::Quic { .. } | Transport::Tcp { .. } => (self.cwnd, "cwnd"),
            Transport::Acks { .. } => (self.acks, "acks"),
            Transport::Tfrc { .. } => (self.tfrc, "tfrc"),
            Transport::Rtp { .. } => (self.rtcp, "rtcp"),
            Transport::Udp(_) => return None,
        };
        wanted.then_some(table)
    }

    /// Whether hosts have something to sample.
    #[must_use]
    pub const fn at_hosts(&self) -> bool {
        let sending = self.cwnd || self.rate || self.rtcp || self.sequence || self.losses || self.acks || self.tfrc;
        sending || self.playout || self.arrivals || self.frames
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
    pub columns: Vec<(Cow<'static, str>, Vec<f64>)>,
}

impl Series {
    /// An empty table with these columns.
    #[must_use]
    pub fn new(table: &'static str, labels: Vec<(&'static str, String)>, columns: &[&'static str]) -> Series {
        Series { table, labels, columns: columns.iter().map(|name| ((*name).into(), Vec::new())).collect() }
    }

    /// The queue of one direction of a link, up to `end`: table `queue`.
    #[must_use]
    pub fn of_queue(link: &LinkDirection, recorded: &paceline_path::Series, end: Time) -> Series {
        Series::of_queue_named((link.link.clone(), link.direction), recorded, end)
    }

    /// The queue of this link and direction, up to `end`: table `queue`.
    fn of_queue_named(
        (link, direction): (String, &'static str),
        recorded: &paceline_path::Series,
        end: Time,
    ) -> Series {
        let labels = vec![("link", link), ("direction", direction.to_owned())];
        let mut table = Series::new("queue", labels, &["time_s", "packets", "bytes", "delay_s"]);
        let levels = recorded.packets.iter().zip(&recorded.bytes).zip(&recorded.delay);
        for (time, ((packets, bytes), delay)) in recorded.time.iter().zip(levels) {
            if *time <= end {
                table.push(&[time.as_secs_f64(), f64::from(*packets), *bytes as f64, delay.as_secs_f64()]);
            }
        }
        table
    }

    /// The series of one interface of a cell, up to `end`: tables `queue` and `airtime`, if they are recorded.
    #[must_use]
    pub fn of_interface(
        cell: &CellInstance,
        interface: usize,
        recorded: &Samples,
        recording: Recording,
        end: Time,
    ) -> Vec<Series> {
        let queue = || Series::of_queue_named(cell.queue_name(interface), &recorded.queue, end);
        let airtime = || {
            let labels = vec![("cell", cell.name.clone()), ("interface", cell.names().swap_remove(interface))];
            let mut table = Series::new("airtime", labels, AIRTIME);
            let every = recording.every.as_secs_f64();
            let rows = recorded.queue.time.iter().zip(&recorded.counts).zip(&recorded.longest_wait);
            // The first row has no interval before it.
            for ((time, counts), wait) in rows.skip(1).filter(|((time, _), _)| **time <= end) {
                let of = |count: u64| count as f64;
                table.push(&[
                    time.as_secs_f64(),
                    counts.airtime.as_secs_f64() / every,
                    of(counts.attempts),
                    of(counts.retries),
                    of(counts.collisions),
                    wait.as_secs_f64(),
                ]);
            }
            table
        };
        let queue = recording.queue.then(queue);
        queue.into_iter().chain(recording.airtime.then(airtime)).collect()
    }

    /// An access point's decisions on these flows' windows up to `end`: a table `windows` for each flow that has any.
    #[must_use]
    pub fn of_windows(flows: &[FlowModel], decided: &[Decided], end: Time) -> Vec<Series> {
        let mut tables: Vec<Option<Series>> = vec![None; flows.len()];
        for one in decided.iter().filter(|one| one.at <= end) {
            let number = one.flow as usize;
            let table = tables[number].get_or_insert_with(|| Series::new("windows", labels(&flows[number]), WINDOWS));
            table.push(&[
                one.at.as_secs_f64(),
                one.advertised,
                one.window.map_or(f64::NAN, |window| window.min(one.advertised)),
                one.outstanding,
                one.longest_wait.as_secs_f64(),
                one.own_wait.map_or(f64::NAN, Span::as_secs_f64),
                f64::from(u8::from(one.window.is_some())),
            ]);
        }
        tables.into_iter().flatten().collect()
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[f64]) {
        for ((_, column), value) in self.columns.iter_mut().zip(row) {
            column.push(*value);
        }
    }
}

/// Name of the table of sending rates before it becomes part of table `rate`: a flow's ends lie on two hosts.
pub const SENDING: &str = "rate of sending";

/// Samples the endpoints of one host at every multiple of the interval.
#[derive(Debug)]
pub struct HostRecorder {
    recording: Recording,
    next: Time,
    /// One per source; `None` for those whose gauges are not recorded.
    gauged: Vec<Option<Gauged>>,
    sequences: Vec<Series>,
    losses: Vec<(Series, Counters)>,
    sendings: Vec<(Series, u64)>,
    /// One per sink.
    goodputs: Vec<(Series, u64)>,
    playouts: Vec<Option<Series>>,
    arrivals: Vec<Option<Series>>,
    /// With each flow's stop time, after which no frames are shown.
    frames: Vec<(Option<Series>, Time)>,
}

pub(crate) fn labels(flow: &FlowModel) -> Vec<(&'static str, String)> {
    vec![("flow", flow.name.clone()), ("instance", flow.instance.to_string())]
}

impl HostRecorder {
    /// For a host with the sources and sinks of these flows.
    #[must_use]
    pub fn new(recording: Recording, sources: &[&FlowModel], sinks: &[&FlowModel]) -> HostRecorder {
        let gauged = |flow: &&FlowModel| recording.gauges_of(flow).map(|table| Gauged::new(table, flow));
        let all = |wanted: bool, of: &[&FlowModel], table, columns: &[&'static str]| {
            let wanted = of.iter().filter(|_| wanted);
            wanted.map(|flow| Series::new(table, labels(flow), columns)).collect::<Vec<_>>()
        };
        let some =
            |wanted: bool, of: &[&FlowModel], has: &dyn Fn(&FlowModel) -> bool, table, columns: &[&'static str]| {
                let wanted = of.iter().filter(|_| wanted);
                wanted.map(|flow| has(flow).then(|| Series::new(table, labels(flow), columns))).collect::<Vec<_>>()
            };
        let from_zero = |series: Vec<Series>| series.into_iter().map(|series| (series, 0)).collect();
        let losses = all(recording.losses, sources, "losses", LOSSES);
        let frames = some(recording.frames, sinks, &FlowModel::has_frames, "frames", FRAMES);
        HostRecorder {
            recording,
            next: Time::ZERO,
            gauged: sources.iter().map(gauged).collect(),
            sequences: all(recording.sequence, sources, "sequence", &["time_s", "sequence_packets", "sent_packets"]),
            losses: losses.into_iter().map(|series| (series, Counters::default())).collect(),
            sendings: from_zero(all(recording.rate, sources, SENDING, &["time_s", "send_rate_bps"])),
            goodputs: from_zero(all(recording.rate, sinks, "rate", &["time_s", "goodput_bps"])),
            playouts: some(recording.playout, sinks, &|flow| flow.stream.is_some(), "playout", &["time_s", "buffer_s"]),
            arrivals: some(recording.arrivals, sinks, &|flow| flow.delays, "arrivals", ARRIVALS),
            frames: frames.into_iter().zip(sinks).map(|(series, flow)| (series, flow.stop)).collect(),
        }
    }

    /// When to sample next.
    #[must_use]
    pub fn next_sample(&self) -> Time {
        self.next
    }

    /// Takes one sample of everything.
    pub fn sample(&mut self, now: Time, sources: &[Source], sinks: &mut [Sink]) {
        let time = now.as_secs_f64();
        for (gauged, source) in self.gauged.iter_mut().zip(sources) {
            if let Some(gauged) = gauged.as_mut().filter(|_| source.has_started()) {
                gauged.sample(time, |to| source.gauges(to));
            }
        }
        for (series, source) in self.sequences.iter_mut().zip(sources) {
            if source.has_started() {
                let stats = source.sender.stats();
                let first_time = stats.packets_sent - stats.retransmitted;
                series.push(&[time, first_time as f64, stats.packets_sent as f64]);
            }
        }
        for ((series, before), source) in self.losses.iter_mut().zip(sources) {
            let counters = Counters::of(source.sender.stats());
            if source.has_started() && now > Time::ZERO {
                series.push(&counters.row(time, before, source.sender.congestion_window()));
                // Packets sent at time zero belong to the first interval.
                *before = counters;
            }
        }
        let every = self.recording.every.as_secs_f64();
        let rate = |(series, before): &mut (Series, u64), bytes: u64| {
            if now > Time::ZERO {
                series.push(&[time, (bytes - *before) as f64 * 8.0 / every]);
            }
            *before = bytes;
        };
        for (series, source) in self.sendings.iter_mut().zip(sources) {
            rate(series, source.sender.stats().bytes_sent());
        }
        for (series, sink) in self.goodputs.iter_mut().zip(&*sinks) {
            rate(series, sink.receiver.stats().bytes);
        }
        for (series, sink) in self.playouts.iter_mut().zip(&*sinks) {
            if let (Some(series), Some(level)) = (series, sink.buffered(now)) {
                series.push(&[time, level.as_secs_f64()]);
            }
        }
        for (series, sink) in self.arrivals.iter_mut().zip(&mut *sinks) {
            if let (Some(series), Some([mean, max, widest, jitter])) = (series, sink.sample_arrivals())
                && now > Time::ZERO
            {
                series.push(&[time, mean, max, widest, jitter]);
            }
        }
        for ((series, stop), sink) in self.frames.iter_mut().zip(sinks) {
            if let (Some(series), Some([frames, mean, max, stands])) = (series, sink.sample_frames(now.min(*stop)))
                && now > Time::ZERO
            {
                series.push(&[time, frames, mean, max, stands]);
            }
        }
        self.next = now + self.recording.every;
    }

    /// The recorded series.
    #[must_use]
    pub fn into_series(self) -> Vec<Series> {
        let rates = self.sendings.into_iter().chain(self.goodputs).map(|(series, _)| series);
        let some = self
            .gauged
            .into_iter()
            .map(|gauged| gauged.map(Gauged::into_series))
            .chain(self.playouts)
            .chain(self.arrivals)
            .chain(self.frames.into_iter().map(|(series, _)| series))
            .flatten();
        let losses = self.losses.into_iter().map(|(series, _)| series);
        some.chain(self.sequences).chain(losses).chain(rates).collect()
    }
}

/// Columns of table `arrivals`; NaN means unknown.
const ARRIVALS: &[&str] = &["time_s", "owd_s", "owd_max_s", "interarrival_max_s", "jitter_s"];

/// Columns of table `frames`; delays are NaN in intervals without frames.
const FRAMES: &[&str] = &["time_s", "frames", "frame_delay_s", "frame_delay_max_s", "picture_age_s"];

/// Columns of table `airtime`; all but the first describe the interval that ends at that time.
const AIRTIME: &[&str] = &["time_s", "airtime_share", "attempts", "retries", "collisions", "longest_wait_s"];

/// Columns of table `windows`, for the interval that ends at that time. A window that is not lowered is NaN, and so is
/// the wait if no packet waited.
pub const WINDOWS: &[&str] = &[
    "time_s",
    "advertised_packets",
    "window_packets",
    "outstanding_packets",
    "longest_wait_s",
    "own_wait_s",
    "limited",
];

/// Columns of table `losses`; each row describes the interval that ends at its time.
const LOSSES: &[&str] = &[
    "time_s",
    "packets_sent",
    "packets_retransmitted",
    "fast_retransmits",
    "timeout_series",
    "rtt_samples",
    "rtt_mean_s",
    "base_rtt_samples",
    "base_rtt_mean_s",
    "cwnd_packets",
];

/// A sender's counters at one time, as table `losses` needs them.
#[derive(Clone, Copy, Default, Debug)]
struct Counters {
    sent: u64,
    retransmitted: u64,
    fast_retransmits: u64,
    timeout_series: u64,
    rtt_count: u64,
    rtt_sum: Span,
    bases: u64,
    base_sum: f64,
}

impl Counters {
    fn of(stats: &SenderStats) -> Counters {
        let (bases, base_sum) = stats.base_rtts();
        Counters {
            sent: stats.packets_sent,
            retransmitted: stats.retransmitted,
            fast_retransmits: stats.fast_retransmits,
            timeout_series: stats.first_timeouts,
            rtt_count: stats.rtt_count,
            rtt_sum: stats.rtt_sum,
            bases,
            base_sum,
        }
    }

    /// The row for the interval since `before`, with the congestion window at its end. A mean without samples is NaN,
    /// and so is a missing window.
    fn row(&self, time: f64, before: &Counters, cwnd: Option<f64>) -> [f64; 10] {
        let (rtts, bases) = (self.rtt_count - before.rtt_count, self.bases - before.bases);
        let mean = |sum: f64, count: u64| if count > 0 { sum / count as f64 } else { f64::NAN };
        [
            time,
            (self.sent - before.sent) as f64,
            (self.retransmitted - before.retransmitted) as f64,
            (self.fast_retransmits - before.fast_retransmits) as f64,
            (self.timeout_series - before.timeout_series) as f64,
            rtts as f64,
            mean((self.rtt_sum - before.rtt_sum).as_secs_f64(), rtts),
            bases as f64,
            mean(self.base_sum - before.base_sum, bases),
            cwnd.unwrap_or(f64::NAN),
        ]
    }
}

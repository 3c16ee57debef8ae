//! One run from beginning to end.

use crate::build::{Built, Folded, Node, Other, build};
use crate::cell::CellElement;
use crate::endpoint::{Sink, Source};
use crate::expand::ExpandError;
use crate::gauges::Gauged;
use crate::graph::{GraphError, Planning, Taps, Unit};
use crate::host::Host;
use crate::recorder::{Recording, SENDING, Series, WINDOWS};
use crate::report::{self, Before};
use crate::summary::Summary;
use crate::tap::{Capture, Pending};
use paceline_control::Failure;
use paceline_path::access_point::Law;
use paceline_path::wifi::InterfaceReport;
use paceline_path::{Link, LinkReport, QdiscLink};
use paceline_scenario::join;
use paceline_scenario::model::{FlowModel, Model};
use paceline_units::{Span, Time};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Observer of a run. Called a few hundred times per run; a run without one pays nothing.
pub trait Watching: fmt::Debug {
    /// Whether to end the run now, without a result.
    fn is_cancelled(&self) -> bool;
    /// Receives the share of the duration that has been simulated.
    fn progress(&self, share: f64);
}

/// Lets another thread follow a run's progress and cancel it.
#[derive(Debug, Default)]
pub struct Watch {
    cancelled: AtomicBool,
    /// Simulated share of the duration, in millionths.
    progress: AtomicU64,
}

impl Watch {
    /// Asks the run to end soon, without a result.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// The share of the duration that has been simulated.
    #[must_use]
    pub fn progress(&self) -> f64 {
        self.progress.load(Ordering::Relaxed) as f64 / 1e6
    }
}

impl Watching for Watch {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn progress(&self, share: f64) {
        self.progress.store((share * 1e6) as u64, Ordering::Relaxed);
    }
}

/// How to run a model.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions<'a> {
    /// What to record.
    pub recording: Recording,
    /// Observer, if any.
    pub watch: Option<&'a dyn Watching>,
    /// How to arrange elements; the default is the fast arrangement.
    pub planning: Planning,
    /// How to schedule elements; the default is the fast schedule.
    pub schedule: ScheduleKind,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        RunOptions {
            recording: Recording::NOTHING,
            watch: None,
            planning: Planning::default(),
            schedule: ScheduleKind::Windows,
        }
    }
}

/// How elements are scheduled. Both give the same results, bit for bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScheduleKind {
    /// Window by window.
    Windows,
    /// Event by event. Slow; for tests.
    Events,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// The measures.
    pub summary: Summary,
    /// The recorded series.
    pub series: Vec<Series>,
}

/// Why a run has no result.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RunError {
    /// The observer cancelled it.
    #[error("the run was cancelled")]
    Cancelled,
    /// The capture refused further packets.
    #[error("the capture ended the run")]
    CaptureEnded,
    /// The scenario does not describe a network that can run.
    #[error(transparent)]
    Scenario(#[from] ExpandError),
    /// Links form a loop without any propagation delay.
    #[error(
        "{key}: packets could go round in no time, since {links} without propagation delay; write for example `delay = \"10 ms\"`"
    )]
    LoopWithoutDelay {
        /// The key to change.
        key: String,
        /// The links of the loop; at least one needs a delay.
        links: String,
    },
    /// A controller that is not compiled in failed.
    #[error(transparent)]
    Controller(#[from] Failure),
    /// The recordings would not fit in memory.
    #[error(
        "the recordings would hold {values} numbers, more than {MAX_RECORDED}: record fewer kinds, or every {every} s at \
         the least"
    )]
    TooMuchRecorded {
        /// Total of numbers in all recordings.
        values: u64,
        /// The shortest sampling interval that fits, in seconds, rounded up to whole milliseconds.
        every: f64,
    },
    /// The access points' decisions would not fit in memory.
    #[error(
        "the recording `windows` would hold {values} numbers, more than {MAX_RECORDED}: leave it out, or give `windows` of \
         the cell a longer `interval`"
    )]
    TooManyDecisions {
        /// Count of numbers in that recording.
        values: u64,
    },
}

impl RunError {
    /// The key to change, with which the message begins; `None` if no single key is at fault.
    #[must_use]
    pub fn key(&self) -> Option<String> {
        match self {
            RunError::Scenario(error) => Some(error.key()),
            RunError::LoopWithoutDelay { key, .. } => Some(key.clone()),
            _ => None,
        }
    }
}

/// Maximum count of numbers, of 8 bytes each, that one run may record.
const MAX_RECORDED: u64 = 250_000_000;

/// Checks that the requested recordings fit in memory.
fn check_recording(model: &Model, recording: Recording) -> Result<(), RunError> {
    let flows = model.flows.len() as u64;
    let streams = model.flows.iter().filter(|flow| flow.stream.is_some()).count() as u64;
    let queues = model.links.iter().filter(|link| link.is_recorded()).count() as u64;
    let interfaces =
        model.cells.iter().map(|cell| (cell.interfaces.len() * cell.model.categories()) as u64).sum::<u64>();
    let on = |machine: &str| model.flows.iter().filter(|flow| flow.transport.name() == machine).count() as u64;
    let columns = [
        (recording.rate, 5 * flows), // two tables until the end of the run joins them
        (recording.sequence, 3 * flows),
        (recording.losses, 10 * flows),
        (recording.playout, 2 * streams),
        (recording.arrivals, 5 * model.flows.iter().filter(|flow| flow.delays).count() as u64),
        (recording.frames, 5 * model.flows.iter().filter(|flow| flow.has_frames()).count() as u64),
        (recording.queue, 4 * (queues + interfaces)),
        (recording.airtime, 6 * interfaces),
    ];
    let columns: u64 = columns.iter().filter(|(wanted, _)| *wanted).map(|(_, columns)| columns).sum();
    let gauged =
        |flow: &FlowModel| recording.gauges_of(flow).map_or(0, |table| Gauged::new(table, flow).width() as u64);
    let columns = columns + model.flows.iter().map(gauged).sum::<u64>();
    // A row of `windows` is one decision, so the sampling interval does not matter.
    let each =
        |law: &Law| (WINDOWS.len() as u64 * on("tcp")).saturating_mul(model.duration.0 / law.interval().0.max(1));
    let decided = model.cells.iter().filter_map(|cell| cell.law.as_ref()).map(each).fold(0, u64::saturating_add);
    let decided = if recording.windows { decided } else { 0 };
    if decided > MAX_RECORDED {
        return Err(RunError::TooManyDecisions { values: decided });
    }
    let values = columns.saturating_mul(model.duration.0 / recording.every.0).saturating_add(decided);
    if values <= MAX_RECORDED {
        return Ok(());
    }
    let every = model.duration.as_secs_f64() * columns as f64 / (MAX_RECORDED - decided).max(1) as f64;
    Err(RunError::TooMuchRecorded { values, every: (every * 1e3).ceil() / 1e3 })
}

/// Runs a model to its end.
///
/// # Errors
/// The run was cancelled, its graph cannot run, or its recordings would not fit in memory.
///
/// # Panics
/// If a packet vanished: sent + duplicated = delivered + dropped + in flight is checked at the end of every run.
pub fn run(model: &Model, options: &RunOptions<'_>) -> Result<RunOutput, RunError> {
    run_with(model, options, &mut None)
}

/// Runs a model to its end and passes `capture` every packet that leaves a host or arrives at one, and events at the
/// ends of QUIC flows if it wants them.
///
/// # Errors
/// As [`run`], and if the capture ended the run.
///
/// # Panics
/// As [`run`].
pub fn run_captured(model: &Model, options: &RunOptions<'_>, capture: &mut dyn Capture) -> Result<RunOutput, RunError> {
    let taps = if capture.wants_notes() { Taps::Ends } else { Taps::Hosts };
    let planning = Planning { taps, ..options.planning };
    let sources = model.flows.iter().map(|flow| flow.source);
    run_with(model, &RunOptions { planning, ..*options }, &mut Some(Pending::new(capture, sources)))
}

fn run_with(model: &Model, options: &RunOptions<'_>, pending: &mut Option<Pending<'_>>) -> Result<RunOutput, RunError> {
    if model.flows.iter().any(|flow| flow.transport.is_foreign()) {
        return Failure::caught(|| run_to_end(model, options, pending))?;
    }
    run_to_end(model, options, pending)
}

fn run_to_end(
    model: &Model,
    options: &RunOptions<'_>,
    pending: &mut Option<Pending<'_>>,
) -> Result<RunOutput, RunError> {
    check_recording(model, options.recording)?;
    let mut built = build(model, options.recording, options.planning).map_err(|error| in_words(model, error))?;
    let (warm, latest) = (Time::ZERO + model.warmup, Time::ZERO + model.duration);
    advance(&mut built, model, options, pending, warm)?;
    let before = Before::take(model, &mut built, warm);
    let end = if model.stop_after.is_empty() {
        advance(&mut built, model, options, pending, latest)?;
        latest
    } else {
        until_done(&mut built, model, options, pending, latest)?
    };
    let summary = summary_of(model, &mut built, &before, end);
    let series = take_series(model, built, options.recording, end);
    Ok(RunOutput { summary, series })
}

/// The summary of a run that ends at `end`.
pub(crate) fn summary_of(model: &Model, built: &mut Built, before: &Before, end: Time) -> Summary {
    let links = finish_links(model, built, end);
    let cells = cells(built).into_iter().map(|(cell, element)| (cell, element.cell.finish(end))).collect();
    check_identity(built);
    report::summary(model, built, before, &Places { links, cells }, end)
}

/// Checks what only the whole graph shows: whether the model can run.
///
/// # Errors
/// Links that form a loop without delay.
pub fn check(model: &Model) -> Result<(), RunError> {
    let built = build(model, Recording::NOTHING, Planning::default());
    built.map(drop).map_err(|error| in_words(model, error))
}

/// Simulates up to `to`, in steps, and polls the observer between steps.
fn advance(
    built: &mut Built,
    model: &Model,
    options: &RunOptions<'_>,
    pending: &mut Option<Pending<'_>>,
    to: Time,
) -> Result<(), RunError> {
    if options.schedule == ScheduleKind::Events {
        built.engine.run_by_events(to);
        return hand_over(built, pending);
    }
    if options.watch.is_none() && pending.is_none() {
        built.engine.run(to);
        return Ok(());
    }
    // A step is about 100,000 packets: a long run or a fast link then keeps the observer waiting only briefly, and
    // sparse packets cause few polls. A user's controller may take a millisecond per packet, so its steps are shorter.
    let is_foreign = model.flows.iter().any(|flow| flow.transport.is_foreign());
    let (packets, shortest) = if is_foreign { (500, SHORTEST_STEP / 100) } else { (100_000, SHORTEST_STEP) };
    let longest = Span((model.duration.0 / 500).max(shortest.0));
    let mut step = shortest;
    while built.engine.now() < to {
        if options.watch.is_some_and(Watching::is_cancelled) {
            return Err(RunError::Cancelled);
        }
        let before = built.engine.network.totals().sent;
        built.engine.run((built.engine.now() + step).min(to));
        hand_over(built, pending)?;
        let sent = built.engine.network.totals().sent - before;
        step = if sent < packets { Span(step.0 * 2).min(longest) } else { Span(step.0 / 2).max(shortest) };
        if let Some(watch) = options.watch {
            watch.progress(built.engine.now().0 as f64 / model.duration.0 as f64);
        }
    }
    Ok(())
}

/// Passes the packets and events since the last call to the capture, if there is one.
fn hand_over(built: &mut Built, pending: &mut Option<Pending<'_>>) -> Result<(), RunError> {
    let Some(pending) = pending else { return Ok(()) };
    let now = built.engine.now();
    let mut notes = Vec::new();
    for element in built.engine.elements_mut() {
        if let Node::Host(host) = element {
            notes.extend(host.take_quic_events());
        }
    }
    let taps = built.engine.network.hops_mut().iter_mut().filter_map(|hop| match hop {
        Folded::Other(other) => match &mut **other {
            Other::Tap(tap) => Some(tap),
            Other::Link(_) => None,
        },
        Folded::Pipe(_) => None,
    });
    if pending.hand_over(taps, notes, now).is_break() { Err(RunError::CaptureEnded) } else { Ok(()) }
}

/// Minimum simulated time between two polls of the observer.
const SHORTEST_STEP: Span = Span::from_millis(10);

/// Polling interval of a run that waits for flows to finish.
const POLL_INTERVAL: Span = Span::from_millis(10);

/// Simulates until the flows in `stop_after` are done, polling at every multiple of [`POLL_INTERVAL`].
fn until_done(
    built: &mut Built,
    model: &Model,
    options: &RunOptions<'_>,
    pending: &mut Option<Pending<'_>>,
    latest: Time,
) -> Result<Time, RunError> {
    let mut now = Time::ZERO + model.warmup;
    while now < latest {
        if model.stop_after.iter().all(|&flow| ends(model, built, flow).is_done(now)) {
            return Ok(now);
        }
        now = Time((now.0 / POLL_INTERVAL.0 + 1) * POLL_INTERVAL.0).min(latest);
        advance(built, model, options, pending, now)?;
    }
    Ok(latest)
}

/// The two ends of a flow.
pub(crate) struct Ends<'a> {
    pub(crate) source: &'a Source,
    pub(crate) sink: &'a Sink,
    /// Variation of the sending and receiving rates, if measured.
    pub(crate) variation: (Option<f64>, Option<f64>),
    /// When the flow's start-up ended, if measured.
    pub(crate) started_up: Option<Time>,
}

impl Ends<'_> {
    /// Whether the flow is done: all of its data are acknowledged, or its player has finished.
    fn is_done(&self, now: Time) -> bool {
        self.sink.player_is_done(now).unwrap_or_else(|| self.source.is_done())
    }
}

fn host(built: &Built, node: usize) -> &Host {
    match built.hosts[node].map(|i| &built.engine.elements()[i]) {
        Some(Node::Host(host)) => host,
        _ => unreachable!("the ends of flows are hosts"),
    }
}

/// Both ends of flow number `flow`.
pub(crate) fn ends<'a>(model: &Model, built: &'a Built, flow: usize) -> Ends<'a> {
    let (source, sink) = built.plan.endpoints[flow];
    let from = host(built, model.flows[flow].source);
    let to = host(built, model.flows[flow].sink);
    let sending = from.meter.as_ref().and_then(|meter| meter.sending(source as usize));
    let receiving = to.meter.as_ref().and_then(|meter| meter.receiving(sink as usize));
    Ends {
        source: &from.sources[source as usize],
        sink: &to.sinks[sink as usize],
        variation: (sending, receiving),
        started_up: to.meter.as_ref().and_then(|meter| meter.started_up(sink as usize)),
    }
}

/// A link as it stands in the engine.
enum Placed<'a> {
    Plain(&'a mut Link),
    Qdisc(&'a mut QdiscLink),
}

impl Placed<'_> {
    fn finish(&mut self, end: Time) -> LinkReport {
        match self {
            Placed::Plain(link) => link.finish(end),
            Placed::Qdisc(link) => link.finish(end),
        }
    }

    fn take_series(&mut self) -> paceline_path::Series {
        match self {
            Placed::Plain(link) => link.take_series(),
            Placed::Qdisc(link) => link.take_series(),
        }
    }
}

/// All links by arc, folded or not.
fn links(built: &mut Built) -> Vec<(usize, Placed<'_>)> {
    let mut links = Vec::new();
    let (elements, network) = built.engine.parts_mut();
    for (unit, element) in built.plan.units.iter().zip(elements) {
        match (unit, element) {
            (Unit::Arc(arc), Node::Link(link)) => links.push((*arc, Placed::Plain(link))),
            (Unit::Arc(arc), Node::Qdisc(link)) => links.push((*arc, Placed::Qdisc(link))),
            _ => {}
        }
    }
    for (arc, hop) in built.plan.folded.iter().zip(network.hops_mut()) {
        if let Folded::Other(other) = hop
            && let Other::Link(link) = &mut **other
        {
            links.push((*arc, Placed::Plain(link)));
        }
    }
    links.sort_by_key(|(arc, _)| *arc);
    links
}

/// The cells in order of their numbers.
fn cells(built: &mut Built) -> Vec<(usize, &mut CellElement)> {
    let (elements, _) = built.engine.parts_mut();
    let cells = built.plan.units.iter().zip(elements).filter_map(|(unit, element)| match (unit, element) {
        (Unit::Medium(cell), Node::Cell(element)) => Some((*cell, &mut **element)),
        _ => None,
    });
    let mut cells: Vec<_> = cells.collect();
    cells.sort_by_key(|(cell, _)| *cell);
    cells
}

/// Measurements of links (by arc) and cells.
pub(crate) struct Places {
    pub(crate) links: Vec<(usize, LinkReport)>,
    pub(crate) cells: Vec<(usize, Vec<InterfaceReport>)>,
}

fn finish_links(model: &Model, built: &mut Built, end: Time) -> Vec<(usize, LinkReport)> {
    let links = links(built).into_iter().filter(|(arc, _)| model.links[*arc].is_measured());
    links.map(|(arc, mut link)| (arc, link.finish(end))).collect()
}

/// Count of packets in flight, including those in cells and those queued at links that decide at departure.
pub(crate) fn in_flight(built: &Built) -> u64 {
    let waiting = built.engine.elements().iter().map(|element| match element {
        Node::Qdisc(link) => link.waiting(),
        Node::Cell(element) => element.cell.holding(),
        Node::Host(_) | Node::Link(_) => 0,
    });
    built.engine.network.in_flight() + waiting.sum::<u64>()
}

/// Asserts that no packet vanished: each is delivered, dropped with a reason, or in flight.
fn check_identity(built: &Built) {
    let totals = built.engine.network.totals();
    let in_flight = in_flight(built);
    assert_eq!(
        totals.sent + totals.duplicated,
        totals.delivered + totals.dropped.total() + in_flight,
        "packets vanished: {totals:?}, {in_flight} in flight"
    );
}

fn take_series(model: &Model, mut built: Built, recording: Recording, end: Time) -> Vec<Series> {
    let mut series = Vec::new();
    for (arc, mut link) in links(&mut built) {
        let recorded = link.take_series();
        if recorded.time.is_empty() {
            continue;
        }
        series.push(Series::of_queue(&model.links[arc], &recorded, end));
    }
    for (number, element) in cells(&mut built) {
        let cell = &model.cells[number];
        for (interface, samples) in element.cell.take_samples().iter().enumerate().filter(|(i, _)| cell.is_reported(*i))
        {
            series.extend(Series::of_interface(cell, interface, samples, recording, end));
        }
        series.extend(Series::of_windows(&model.flows, &element.take_decided(), end));
    }
    for element in built.engine.elements_mut() {
        if let Node::Host(host) = element
            && let Some(recorder) = host.recorder.take()
        {
            series.extend(recorder.into_series());
        }
    }
    series.sort_by(|a, b| (a.table, &a.labels).cmp(&(b.table, &b.labels)));
    join_rates(series)
}

/// Joins the sending rate, recorded at the source, and the goodput, recorded at the sink, into one table per flow.
fn join_rates(series: Vec<Series>) -> Vec<Series> {
    let (sending, mut series): (Vec<_>, Vec<_>) = series.into_iter().partition(|one| one.table == SENDING);
    // Both lists are in the order of their labels.
    let rates = series.iter_mut().filter(|one| one.table == "rate");
    for (rate, sent) in rates.zip(sending) {
        debug_assert_eq!(rate.labels, sent.labels);
        rate.columns.extend(sent.columns.into_iter().filter(|(name, _)| *name != "time_s"));
    }
    series
}

pub(crate) fn in_words(model: &Model, error: GraphError) -> RunError {
    match error {
        GraphError::Unreachable(from, to, flow) => ExpandError::Unreachable {
            flow: model.flows[flow].name.clone(),
            from: model.nodes[from].clone(),
            to: model.nodes[to].clone(),
        }
        .into(),
        GraphError::LoopWithoutDelay(arcs) => {
            let mut arcs: Vec<&str> = arcs.iter().map(|&arc| model.links[arc].link.as_str()).collect();
            arcs.sort_unstable();
            arcs.dedup();
            // Access links have no tables of their own in the scenario.
            let mut links: Vec<&str> = arcs.iter().copied().filter(|name| !name.starts_with("access ")).collect();
            let key =
                links.first().map_or_else(|| "access.delay".to_owned(), |name| join(&join("link", name), "delay"));
            if links.len() < arcs.len() {
                links.push("access");
            }
            let are = if links.len() == 1 { "is" } else { "are all" };
            RunError::LoopWithoutDelay { key, links: format!("{} {are}", crate::diagnostics::in_words(&links)) }
        }
    }
}

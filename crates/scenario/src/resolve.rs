//! Makes a scenario of a document: checks it, fills in defaults, reads the traces that it names.

use crate::document::Document;
use crate::error::{Mistake, ScenarioError, join};
use crate::fill::{fill, fill_access};
use crate::keys::draw::Draw;
use crate::keys::file::{File, Topology};
use crate::keys::flow::{App, FlowTable, FrameFormat};
use crate::keys::link::{
    BackwardTable, DelayVariation as VariationKey, LinkTable, RateTrace, TraceEnd, TraceFormat, forward,
};
use crate::rules::Rules;
use crate::scenario::{Direction, Flow, Link, Scenario};
use crate::walk::{Node, walk};
use paceline_apps::ladder::Ladder;
use paceline_apps::video::FramesModel;
use paceline_control::Scheme;
use paceline_path::trace::{AtEnd, Format, Trace, read as read_trace};
use paceline_path::wifi::Ht;
use paceline_path::{Aggregation, DelaySpike, DelayStep, DelayVariation, PolicerModel, RateModel, Schedule};
use paceline_units::{Rate, Ratio, Span, Time};
use toml::Value;

impl Scenario {
    /// Checks a document. `read` returns the text of a trace file by its name in the scenario, or an error.
    ///
    /// # Errors
    /// Every mistake found, with file, line, key, value, and what is allowed.
    pub fn check(
        document: &Document,
        read: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Scenario, ScenarioError> {
        Scenario::check_with(document, read, &[])
    }

    /// The same for a scenario whose flows may name schemes that are not compiled in.
    ///
    /// # Errors
    /// As [`Scenario::check`].
    pub fn check_with(
        document: &Document,
        read: &mut dyn FnMut(&str) -> Result<String, String>,
        foreign: &[&'static Scheme],
    ) -> Result<Scenario, ScenarioError> {
        let mut table = Value::Table(document.table.clone());
        let mut mistakes = Vec::new();
        walk(&mut table, Node::root(), "", &mut mistakes);
        if !mistakes.is_empty() {
            return Err(document.error(mistakes));
        }
        let mut file: File = serde_path_to_error::deserialize(table).map_err(|error| {
            let path = error.path().to_string();
            document.error(vec![Mistake::new(path, error.into_inner().message().to_owned())])
        })?;
        file.inherit();
        file.name(foreign);
        let mut mistakes = Rules::check(&file);
        let stem = document.stem().to_owned();
        if mistakes.is_empty() {
            file.note_default_bounds(|key| document.says(key));
            fill(&mut file, &stem);
            let links = links(&file, read, &mut mistakes);
            let fastest = fastest(&file, &links);
            fill_access(&mut file, fastest);
            let flows = flows(&file, read, &mut mistakes);
            mistakes.extend(rtts_below_path(&file, &links, &flows));
            if mistakes.is_empty() {
                return Ok(Scenario { file, links, flows });
            }
        }
        Err(document.error(mistakes))
    }
}

fn links(file: &File, read: &mut dyn FnMut(&str) -> Result<String, String>, mistakes: &mut Vec<Mistake>) -> Vec<Link> {
    let mut made = Vec::new();
    let mut add = |name: String, table: &LinkTable, key: &str, ends: (String, String)| {
        let mut way = |way: &BackwardTable, key: &str| direction(way, key, read, mistakes);
        let ahead = way(&forward(table), key);
        let back = table.backward.as_deref().cloned().unwrap_or_default();
        let back = way(&back, &join(key, "backward"));
        made.push(Link { name, from: ends.0, to: ends.1, forward: ahead, backward: back });
    };
    match file.topology {
        Topology::ParkingLot => {
            for hop in 1..=file.hops.unwrap_or(0) {
                let name = format!("hop{hop}");
                let key = if file.link.contains_key(&name) { &name } else { "hop" };
                if let Some(table) = file.link.get(key) {
                    let ends = (format!("r{}", hop - 1), format!("r{hop}"));
                    add(name.clone(), table, &join("link", key), ends);
                }
            }
        }
        Topology::Dumbbell | Topology::Graph | Topology::Home => {
            let access_point = file.cell.values().next().map(|cell| cell.access_point.clone());
            for (name, table) in &file.link {
                let [from, to] = table.between.clone().unwrap_or_else(|| match &access_point {
                    Some(access_point) => [name.clone(), access_point.clone()],
                    None => ["left".into(), "right".into()],
                });
                add(name.clone(), table, &join("link", name), (from, to));
            }
        }
    }
    made
}

/// Maximum rate of any link or station at any time.
fn fastest(file: &File, links: &[Link]) -> Rate {
    let links = links.iter().flat_map(|link| [link.forward.rate.peak(), link.backward.rate.peak()]);
    let stations = file.cell.values().flat_map(|cell| cell.station.values());
    let stations = stations.filter_map(|station| station.ht().map(Ht::rate).or(station.rate));
    links.chain(stations).max().unwrap_or_default()
}

fn direction(
    way: &BackwardTable,
    key: &str,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
    mistakes: &mut Vec<Mistake>,
) -> Direction {
    let mut made = |at: &str, rate: Result<RateModel, String>| {
        rate.unwrap_or_else(|problem| {
            mistakes.push(Mistake::new(join(key, at), problem));
            RateModel::Constant(Rate::from_bps(1))
        })
    };
    let rate = if let Some(source) = &way.rate_trace {
        let rate = read(&source.file).and_then(|text| trace(source, &text));
        made("rate_trace", rate.map_err(|problem| format!("`{}`: {problem}", source.file)))
    } else if let Some(steps) = &way.rate_schedule {
        let steps: Vec<(Time, Rate)> = steps.iter().map(|step| (Time::ZERO + step.at, step.rate)).collect();
        let schedule = Schedule::new(&steps, None).map_err(|error| error.to_string());
        made("rate_schedule", schedule.map(RateModel::Schedule))
    } else {
        RateModel::Constant(way.rate.unwrap_or(Rate::from_bps(1)))
    };
    let (delay, delay_steps) = delays(way);
    let (delay_variation, variation_steps) = variations(way);
    Direction {
        rate,
        delay,
        delay_steps,
        queue: way.queue.clone().unwrap_or_default(),
        limit_steps: way.limit_schedule.clone().unwrap_or_default(),
        policer: way.policer.map(|policer| PolicerModel { rate: policer.rate, burst: policer.burst }),
        recovery: way.recovery,
        loss: way.loss.clone(),
        delay_variation,
        variation_steps,
        reorder: way.reorder,
        duplicate: way.duplicate.map_or(Ratio::ZERO, |share| share.rate),
        corrupt: way.corrupt.map_or(Ratio::ZERO, |share| share.rate),
        aggregation: way.aggregation.map(|held| Aggregation {
            interval: held.interval,
            from: Time::ZERO + held.from,
            to: held.to.map_or(Time::NEVER, |to| Time::ZERO + to),
        }),
        bleach_ecn: way.bleach_ecn,
        delay_spikes: way
            .delay_spike
            .iter()
            .map(|spike| DelaySpike { from: Time::ZERO + spike.from, to: Time::ZERO + spike.to, extra: spike.extra })
            .collect(),
        outages: way.outage.iter().map(|o| (Time::ZERO + o.from, Time::ZERO + o.to)).collect(),
        occupancy: way.occupancy,
        per_flow: way.per_flow,
    }
}

/// The minimum delay, and the steps beyond it. A schedule with a constant delay has no steps.
fn delays(way: &BackwardTable) -> (Span, Vec<DelayStep>) {
    let steps = way.delay_schedule.as_deref().unwrap_or_default();
    let Some(min) = steps.iter().map(|step| step.delay).min() else {
        return (way.delay.unwrap_or_default(), Vec::new());
    };
    if steps.iter().all(|step| step.delay == min) {
        return (min, Vec::new());
    }
    let steps = steps.iter().map(|step| DelayStep {
        at: Time::ZERO + step.at,
        extra: step.delay - min,
        overtakes: step.overtakes,
    });
    (min, steps.collect())
}

/// The initial delay variation, and its changes.
fn variations(way: &BackwardTable) -> (Option<DelayVariation>, Vec<(Time, Option<DelayVariation>)>) {
    let made = |variation| match variation {
        VariationKey::Uniform { max } => (max > Span::ZERO).then_some(DelayVariation::Uniform(max)),
        VariationKey::BadWifi { average } => Some(DelayVariation::BadWifi(average)),
        VariationKey::Gaussian { deviation, bound } => Some(DelayVariation::Gaussian { deviation, bound }),
    };
    let mut steps: Vec<_> = way
        .delay_variation_schedule
        .iter()
        .flatten()
        .map(|step| (Time::ZERO + step.at, step.variation.and_then(made)))
        .collect();
    let first = match steps.first() {
        Some(&(Time::ZERO, first)) => {
            steps.remove(0);
            first
        }
        _ => way.delay_variation.and_then(made),
    };
    let varies = first.is_some() || steps.iter().any(|(_, variation)| variation.is_some());
    (first, if varies { steps } else { Vec::new() })
}

fn trace(source: &RateTrace, text: &str) -> Result<RateModel, String> {
    let end = match source.end {
        TraceEnd::Loop => AtEnd::Repeat,
        TraceEnd::Hold => AtEnd::Hold,
    };
    let format = match source.format {
        TraceFormat::Mahimahi => Some(Format::Mahimahi),
        TraceFormat::SecondsMbit => Some(Format::SecondsMbit),
        TraceFormat::Csv => Some(Format::Csv),
        TraceFormat::Json => Some(Format::Json),
        TraceFormat::Iperf3 => Some(Format::Iperf3),
        TraceFormat::Auto => None,
    };
    let made = match (read_trace(text, format).map_err(|error| error.to_string())?, source.end) {
        (Trace::Opportunities(_), TraceEnd::Hold) => {
            return Err("a mahimahi trace always begins again: `end` must be `loop`".to_owned());
        }
        (Trace::Opportunities(found), TraceEnd::Loop) => return Ok(RateModel::Opportunities(found)),
        (Trace::Recorded(found), _) => found.schedule(end),
    };
    made.map(RateModel::Schedule).map_err(|error| error.to_string())
}

fn flows(file: &File, read: &mut dyn FnMut(&str) -> Result<String, String>, mistakes: &mut Vec<Mistake>) -> Vec<Flow> {
    let ladders: Vec<Option<Ladder>> =
        file.flow.iter().map(|(name, table)| ladder(name, table, read, mistakes)).collect();
    let mut frames = |name: &str, table: &FlowTable| {
        let App::VideoTrace { file, format, frame_rate } = &table.app else { return None };
        let rate = (*format == FrameFormat::Sizes).then_some(*frame_rate);
        let made = read(file).and_then(|text| FramesModel::parse(&text, rate));
        let key = || join(&join(&join("flow", name), "app"), "file");
        made.map_err(|problem| mistakes.push(Mistake::new(key(), format!("`{file}`: {problem}")))).ok()
    };
    let flow = |((name, table), ladder): ((&String, &FlowTable), Option<Ladder>)| Flow {
        frames: frames(name, table),
        ladder,
        name: name.clone(),
        from: table.from.clone().unwrap_or_default(),
        to: table.to.clone().unwrap_or_default(),
        profile: table.profile.unwrap_or(file.profile),
        group: table.group.clone().unwrap_or_else(|| name.clone()),
        segment: table.segment.map_or(0, |size| size.bytes() as u32),
        header: table.header.map_or(0, |size| size.bytes() as u32),
        table: table.clone(),
    };
    file.flow.iter().zip(ladders).map(flow).collect()
}

/// An encoder's recorded frames at several rates.
fn ladder(
    name: &str,
    table: &FlowTable,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
    mistakes: &mut Vec<Mistake>,
) -> Option<Ladder> {
    let App::Encoder { traces, skip_frames, frame_rate, .. } = &table.app else { return None };
    if traces.is_empty() {
        return None;
    }
    let key = |number: usize| format!("{}[{number}].file", join(&join(&join("flow", name), "app"), "traces"));
    let mut rungs = Vec::new();
    for (number, trace) in traces.iter().enumerate() {
        let made = read(&trace.file).and_then(|text| FramesModel::parse(&text, Some(*frame_rate)));
        match made {
            Ok(model) => {
                let sizes = model.frames.iter().map(|(_, size)| u32::try_from(size.bytes()).unwrap_or(u32::MAX));
                rungs.push((trace.rate, sizes.collect()));
            }
            Err(problem) => mistakes.push(Mistake::new(key(number), format!("`{}`: {problem}", trace.file))),
        }
    }
    if rungs.len() < traces.len() {
        return None;
    }
    let made = Ladder::new(rungs, *skip_frames as usize);
    made.map_err(|(number, problem)| mistakes.push(Mistake::new(key(number), problem))).ok()
}

/// Mistakes for a fixed `rtt` below the path's own. The path is known here only in a chain of routers; elsewhere the
/// code that routes must check.
fn rtts_below_path(file: &File, links: &[Link], flows: &[Flow]) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let Some(access) =
        file.access.as_ref().filter(|_| matches!(file.topology, Topology::Dumbbell | Topology::ParkingLot))
    else {
        return mistakes;
    };
    let place = |node: &str| links.iter().position(|link| link.from == node).unwrap_or(links.len());
    for flow in flows {
        let (a, b) = (place(&flow.from), place(&flow.to));
        let crossed = links.get(a.min(b)..a.max(b)).unwrap_or_default();
        let hosts = (access.delay + access.at_receivers().0.delay) * 2;
        let own = crossed.iter().fold(hosts, |sum, link| sum + link.forward.delay + link.backward.delay);
        if let Some(rtt) = flow.rtt.as_ref().filter(|rtt| !rtt.is_drawn()).and_then(Draw::minimum)
            && rtt < own
        {
            let key = join(&join("flow", &flow.name), "rtt");
            mistakes.push(Mistake::new(key, format!("`{rtt}` must be at least what the path itself has, {own}")));
        }
    }
    mistakes
}

impl Document {
    /// The file's name without folders and extension.
    fn stem(&self) -> &str {
        let name = self.file.rsplit(['/', '\\']).next().unwrap_or("");
        let stem = name.strip_suffix(".toml").unwrap_or(name);
        if stem.is_empty() { "scenario" } else { stem }
    }
}

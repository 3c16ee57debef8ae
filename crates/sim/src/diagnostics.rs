//! Diagnostics of a run: what a reader of its results should know and no measure shows; see [`Notice`].
//!
//! Each kind is a function here, and a row in docs/measures.md.

use crate::end_of_run::cut_off;
use crate::gauges::reading;
use crate::phases::phases_decide;
use crate::summary::{FlowSummary, Notice, StreamSummary};
use paceline_control::Controller as _;
use paceline_control::registry::TcpController;
use paceline_flow::Transport;
use paceline_path::LinkReport;
use paceline_scenario::model::{Model, Path};
use paceline_units::{Rate, Time};
use std::collections::BTreeMap;

/// Results of a run's measured interval.
pub struct RunResults<'a> {
    /// Reports of links, with their numbers.
    pub links: &'a [(usize, LinkReport)],
    /// Bytes on the wire that arrived, for each flow; `None` if it was not active then.
    pub bytes: &'a [Option<u64>],
    /// The flows' results.
    pub flows: &'a [FlowSummary],
    /// The gauge of this name at the end of the run, from the sender of a flow (by number) or its controller.
    pub gauge: &'a dyn Fn(usize, &'static str) -> Option<f64>,
    /// The streams' results.
    pub streams: &'a [StreamSummary],
    /// The end of the run.
    pub end: Time,
}

/// The notices of a run; `paths` are the flows' arcs, forward and back.
pub fn notices(model: &Model, paths: &[Path], results: &RunResults) -> Vec<Notice> {
    let mut notices = Vec::new();
    access_not_faster(model, paths, &mut notices);
    phases_decide(model, paths, results, &mut notices);
    cut_off(model, results, &mut notices);
    limited_by_default(model, results, &mut notices);
    competes_alone(model, paths, results, &mut notices);
    notices
}

/// Which hosts of a flow have such an access link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ends {
    Both,
    Sender,
    Receiver,
}

/// Access links that are no faster than the slowest of the other links on their flow's path.
fn access_not_faster(model: &Model, paths: &[Path], notices: &mut Vec<Notice>) {
    // Keyed by the text's variables: one line for all flows with the same.
    let mut found: BTreeMap<(Ends, Rate, &str, Rate), Vec<&str>> = BTreeMap::new();
    for (flow, (there, _)) in model.flows.iter().zip(paths) {
        let links = || there.iter().map(|&arc| &model.links[arc]);
        let own = |end: usize| links().find(|link| link.host == Some(end)).map(|link| link.model.rate.peak());
        let Some(bottleneck) = model.slowest_link(there) else { continue };
        let slowest = bottleneck.model.rate.peak();
        let slow = |end: usize| own(end).filter(|&rate| rate <= slowest);
        let said = match (slow(flow.source), slow(flow.sink)) {
            (Some(a), Some(b)) if a == b => vec![(Ends::Both, a)],
            (a, b) => {
                a.map(|rate| (Ends::Sender, rate)).into_iter().chain(b.map(|rate| (Ends::Receiver, rate))).collect()
            }
        };
        for (ends, rate) in said {
            let names = found.entry((ends, rate, &bottleneck.link, slowest)).or_default();
            if names.last() != Some(&flow.name.as_str()) {
                names.push(&flow.name);
            }
        }
    }
    for ((ends, rate, bottleneck, slowest), flows) in found {
        let (owner, what, key) = match ends {
            Ends::Both => ("The", "senders are held back, or packets queue, at the hosts", "access.rate"),
            Ends::Sender => {
                ("The senders'", "senders are held back, or packets queue, at their own hosts", "access.rate")
            }
            Ends::Receiver => ("The receivers'", "packets queue before the receivers", "access.receiver.rate"),
        };
        notices.push(Notice {
            kind: "access-not-faster",
            text: format!(
                "{owner} access links of {} run at {rate}, no faster than `{bottleneck}` ({slowest}): {what}, and the queue \
                 of `{bottleneck}` does not show it. Unless that is meant, leave out `{key}`, or give a higher one.",
                in_words(&flows),
            ),
            cases: None,
            of: None,
        });
    }
}

/// A flow that sends at least this share of its maximum rate is limited by it.
const LIMITED_SHARE: f64 = 0.95;

/// Flows limited by their controller's default maximum rate.
fn limited_by_default(model: &Model, results: &RunResults, notices: &mut Vec<Notice>) {
    let mut found: BTreeMap<Rate, Vec<&str>> = BTreeMap::new();
    for (flow, summary) in model.flows.iter().zip(results.flows) {
        let bound = flow.default_max_rate.filter(|bound| summary.send_rate_bps >= LIMITED_SHARE * bound.bps());
        let Some(names) = bound.map(|bound| found.entry(bound).or_default()) else { continue };
        if names.last() != Some(&flow.name.as_str()) {
            names.push(&flow.name);
        }
    }
    for (bound, flows) in found {
        notices.push(Notice {
            kind: "held-by-default",
            text: format!(
                "{} could not send more than {bound}: that is where the rate ends by default. Give `app.max_rate` of an encoder, which \
                 the controller follows, or `max_rate` in `params`.",
                in_words(&flows),
            ),
            cases: None,
            of: None,
        });
    }
}

/// Minimum share of a link's bytes with which flows have the link to themselves.
const OWN: f64 = 0.9;
/// Where only Copa flows compete, their queue stays below this multiple of their summed 1/delta (NSDI 2018, section 3).
const SAWTOOTH: f64 = 2.5;
/// Minimum share of the run in competitive mode: less may be a single oscillation of the queue.
const LONG: f64 = 0.1;

/// Totals over the Copa flows on a link.
#[derive(Default)]
struct Copas<'a> {
    names: Vec<&'a str>,
    /// Maximum time of any of them in competitive mode, in seconds.
    competed: f64,
    /// Sum of their 1/delta: the queue that they aim at, in packets and in bytes.
    packets: f64,
    bytes: f64,
    arrived: u64,
}

/// Copa flows in competitive mode at a link whose queue no other flow fills, because they have not seen it empty
/// (docs/controllers/copa.md).
fn competes_alone(model: &Model, paths: &[Path], results: &RunResults, notices: &mut Vec<Notice>) {
    let mut found: BTreeMap<usize, Copas> = BTreeMap::new();
    for (index, (flow, path)) in model.flows.iter().zip(paths).enumerate() {
        let Some(aim) = copas_aim(&flow.transport) else { continue };
        let competed = (results.gauge)(index, "competed").unwrap_or(0.0);
        for &arc in &path.0 {
            let of = found.entry(arc).or_default();
            if of.names.last() != Some(&flow.name.as_str()) {
                of.names.push(&flow.name);
            }
            of.competed = of.competed.max(competed);
            of.packets += aim;
            of.bytes += aim * f64::from(flow.transport.segment() + flow.transport.header());
            of.arrived += results.bytes[index].unwrap_or(0);
        }
    }
    for (id, report) in results.links {
        let Some(of) = found.remove(id).filter(|of| of.competed >= LONG * results.end.as_secs_f64()) else { continue };
        let alone = of.arrived as f64 >= OWN * report.departed_bytes.bytes() as f64;
        if !alone || report.mean_bytes <= SAWTOOTH * of.bytes {
            continue;
        }
        let link = &model.links[*id].link;
        notices.push(Notice {
            kind: "competes-alone",
            text: format!(
                "{} competed for `{link}`, whose queue nobody else fills: in the mean it was longer than the {} packets that Copa \
                 alone goes up to. Where 1/delta of all flows, here {} packets, is much of what the path holds, they do not \
                 see the queue empty, and take that for others' doing. Give `competitive = false` in `params`.",
                in_words(&of.names),
                tenths(SAWTOOTH * of.packets),
                tenths(of.packets),
            ),
            cases: None,
            of: None,
        });
    }
}

/// The queue, in packets, that a Copa flow aims at.
fn copas_aim(transport: &Transport) -> Option<f64> {
    match transport {
        Transport::Quic { controller: TcpController::Copa(copa), .. }
        | Transport::Tcp { controller: TcpController::Copa(copa), .. } => {
            reading("delta", |to| copa.gauges(to)).map(f64::recip)
        }
        _ => None,
    }
}

fn tenths(number: f64) -> f64 {
    (10.0 * number).round() / 10.0
}

/// "`a`, `b` and 3 more".
pub fn in_words(names: &[&str]) -> String {
    const MAX_NAMES: usize = 4;
    let mut words: Vec<String> = names.iter().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
    if names.len() > MAX_NAMES {
        words.push(format!("{} more", names.len() - MAX_NAMES));
    }
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

//! What a reader of a run's results should know and no measure says: see [`Notice`].
//!
//! A kind is a function here, and a row in docs/measures.md.

use crate::cut::cut_off;
use crate::graph::Path;
use crate::model::Model;
use crate::phases::phases_decide;
use crate::summary::{FlowSummary, Notice, StreamSummary};
use paceline_path::LinkReport;
use paceline_units::{Rate, Time};
use std::collections::BTreeMap;

/// What a run showed in its measured interval.
pub struct Seen<'a> {
    /// What links, by number, report of themselves.
    pub links: &'a [(usize, LinkReport)],
    /// Bytes on the wire that arrived of each flow; `None` if it was not there then.
    pub bytes: &'a [Option<u64>],
    /// What became of the flows.
    pub flows: &'a [FlowSummary],
    /// What became of the streams.
    pub streams: &'a [StreamSummary],
    /// When it ended.
    pub end: Time,
}

/// What there is to say of a run; `paths` are the flows' arcs, there and back.
pub fn notices(model: &Model, paths: &[Path], seen: &Seen) -> Vec<Notice> {
    let mut notices = Vec::new();
    access_not_faster(model, paths, &mut notices);
    phases_decide(model, paths, seen, &mut notices);
    cut_off(model, seen, &mut notices);
    held_by_default(model, seen, &mut notices);
    notices
}

/// Which hosts of a flow have such a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ends {
    Both,
    Sender,
    Receiver,
}

/// Hosts' own links that are no faster than the slowest of the others on the way of their flow's data.
fn access_not_faster(model: &Model, paths: &[Path], notices: &mut Vec<Notice>) {
    // by what is said of them: a line for flows alike
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
        let (whose, what, key) = match ends {
            Ends::Both => ("The", "senders are held back, or packets queue, at the hosts", "access.rate"),
            Ends::Sender => {
                ("The senders'", "senders are held back, or packets queue, at their own hosts", "access.rate")
            }
            Ends::Receiver => ("The receivers'", "packets queue before the receivers", "access.receiver.rate"),
        };
        notices.push(Notice {
            kind: "access-not-faster",
            text: format!(
                "{whose} access links of {} run at {rate}, no faster than `{bottleneck}` ({slowest}): {what}, and the queue \
                 of `{bottleneck}` does not show it. Unless that is meant, leave out `{key}`, or give a higher one.",
                in_words(&flows),
            ),
            cases: None,
            of: None,
        });
    }
}

/// A flow that sends so much of the greatest rate is held there.
const HELD: f64 = 0.95;

/// Flows that send as much as their controller's greatest rate lets them, which nobody has set.
fn held_by_default(model: &Model, seen: &Seen, notices: &mut Vec<Notice>) {
    let mut found: BTreeMap<Rate, Vec<&str>> = BTreeMap::new();
    for (flow, summary) in model.flows.iter().zip(seen.flows) {
        let bound = flow.unsaid_bound.filter(|bound| summary.send_rate_bps >= HELD * bound.bps());
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

/// "`a`, `b` and 3 more".
pub fn in_words(names: &[&str]) -> String {
    const MOST: usize = 4;
    let mut words: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    if names.len() > MOST {
        words.push(format!("{} more", names.len() - MOST));
    }
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

//! What the end of a run cuts off, and which measures therefore leave it out.

use crate::diagnostics::RunResults;
use crate::summary::{FlowSummary, Notice, StreamSummary};
use paceline_apps::Application;
use paceline_scenario::model::Model;
use paceline_units::Time;
use std::collections::BTreeMap;

/// Reports streams and transfers that the run did not wait for, and groups without a reference.
pub fn cut_off(model: &Model, results: &RunResults, notices: &mut Vec<Notice>) {
    streams(model, results, notices);
    transfers(model, results, notices);
    no_reference(model, results, notices);
}

/// Cases per flow name: how many apply, out of how many.
fn by_flow<'a>(cases: impl Iterator<Item = (&'a str, bool)>) -> Vec<(&'a str, u64, u64)> {
    let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (flow, is) in cases {
        let (count, of) = found.entry(flow).or_default();
        *count += u64::from(is);
        *of += 1;
    }
    found.into_iter().filter(|(_, (count, _))| *count > 0).map(|(flow, (count, of))| (flow, count, of)).collect()
}

/// Advice for a run that is too short.
fn longer(model: &Model, end: Time, flow: &str) -> String {
    if end < Time::ZERO + model.duration {
        // The text is the same in all runs, whenever each of them ended.
        return format!("It ended by `stop_after`: leave that out, or let it name `{flow}`.");
    }
    format!("Give it a longer `duration` than {}.", model.duration)
}

fn streams(model: &Model, results: &RunResults, notices: &mut Vec<Notice>) {
    for (name, count, of) in by_flow(results.streams.iter().map(|stream| (stream.flow.as_str(), stream.is_cut()))) {
        let medium = model.flows.iter().find(|flow| flow.name == name).and_then(|flow| flow.stream);
        let lasts = medium.map(|medium| format!(", of {} each,", medium.length)).unwrap_or_default();
        notices.push(Notice {
            kind: "streams-cut",
            text: format!(
                "The run ends before streams of `{name}`{lasts} are over: those count up to then, and one that has not \
                 begun to play counts as late, or stalled, altogether. {}",
                longer(model, results.end, name)
            ),
            cases: Some(count),
            of: Some(of),
        });
    }
}

impl StreamSummary {
    /// Whether more data could have arrived: it is incomplete, and its play-out has not ended.
    fn is_cut(&self) -> bool {
        !(self.completed || self.began && self.due_packets == self.media_packets)
    }
}

/// Reports unfinished transfers of a given size. Web transfers do not count, since some are in progress at any time.
fn transfers(model: &Model, results: &RunResults, notices: &mut Vec<Notice>) {
    let sized = model.flows.iter().zip(results.flows).filter(|(flow, _)| match &flow.app {
        Application::Ftp(ftp) => ftp.transfers().is_some(),
        _ => false,
    });
    let unfinished = |row: &FlowSummary| row.transfers_completed == 0;
    for (name, count, of) in by_flow(sized.map(|(flow, row)| (flow.name.as_str(), unfinished(row)))) {
        notices.push(Notice {
            kind: "transfers-cut",
            text: format!(
                "The run ends before transfers of `{name}` are complete: `transfer_time_mean_s` leaves those out. {}",
                longer(model, results.end, name)
            ),
            cases: Some(count),
            of: Some(of),
        });
    }
}

/// Reports a reference group that delivered nothing. No number can express that: nothing is less friendly.
fn no_reference(model: &Model, results: &RunResults, notices: &mut Vec<Notice>) {
    let Some(name) = &model.friendliness_to else { return };
    let delivered = |flow: &FlowSummary| flow.group == *name && flow.goodput_bps > 0.0;
    if !results.flows.iter().any(delivered) {
        notices.push(Notice {
            kind: "no-reference",
            text: format!(
                "The flows of group `{name}`, against which friendliness is held (`friendliness_to`), delivered nothing \
                 in the measured interval: it has no value then, and means over runs leave these out."
            ),
            cases: None,
            of: None,
        });
    }
}

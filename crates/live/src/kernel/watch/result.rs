//! What a watch shows while it runs, and its result at the end.

use super::{Connection, Counts, MAX_CONNECTIONS, Watching};
use crate::kernel::log::Direction;
use crate::kernel::tcp_info::State;
use crate::results::{FlowRow, LiveOutput, LiveSummary};
use paceline_units::Span;
use serde::Serialize;
use std::collections::BTreeMap;

/// The connections being followed now.
#[derive(Clone, Debug, Default, Serialize)]
pub struct View {
    /// Time since the watch began.
    pub time_s: f64,
    /// Open connections.
    pub connections: Vec<Line>,
    /// Number of ended connections.
    pub ended: usize,
}

/// The current state of one connection.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "the names are those of the recording `kernel`")]
pub struct Line {
    pub program: Option<String>,
    pub pid: Option<u32>,
    pub local: String,
    pub peer: String,
    pub cc: String,
    pub state: Option<&'static str>,
    /// Payload acknowledged by the peer, over the last second.
    pub out_bps: f64,
    /// Payload received, over the last second.
    pub in_bps: f64,
    pub srtt_s: Option<f64>,
    pub cwnd_packets: Option<u32>,
    pub retransmits: Option<u32>,
}

impl Watching {
    pub(super) fn view(&self) -> View {
        let line = |&at: &usize| {
            let Connection { socket, log, owner, .. } = &self.connections[at];
            let info = log.last().map(|sample| sample.info).unwrap_or_default();
            let (out, into) = log.recent(Span::from_secs(1));
            Line {
                program: owner.as_ref().map(|owner| owner.program.clone()),
                pid: owner.as_ref().map(|owner| owner.pid),
                local: socket.local.to_string(),
                peer: socket.peer.to_string(),
                cc: socket.congestion_control.clone().unwrap_or_default(),
                state: info.state.map(State::name),
                out_bps: out.bps(),
                in_bps: into.bps(),
                srtt_s: info.srtt.map(Span::as_secs_f64),
                cwnd_packets: info.cwnd_packets,
                retransmits: info.retransmitted_packets,
            }
        };
        View {
            time_s: self.clock.now().as_secs_f64(),
            connections: self.open.iter().map(line).collect(),
            ended: self.connections.len() - self.open.len(),
        }
    }

    /// The watch as a run: one flow per connection, named after its program, in the direction of most of its payload.
    #[must_use]
    pub fn finish(self, name: &str) -> LiveOutput {
        let end = self.clock.now();
        let notes = self.notes();
        let mut instances: BTreeMap<String, u32> = BTreeMap::new();
        let (mut flows, mut series) = (Vec::new(), Vec::new());
        for Connection { socket, log, owner, ended, .. } in &self.connections {
            let flow = owner.as_ref().map_or("tcp", |owner| owner.program.as_str());
            let next = instances.entry(flow.to_owned()).or_default();
            let instance = *next;
            *next += 1;
            let direction = log.direction();
            let (from, to) = match direction {
                Direction::Out => (socket.local, socket.peer),
                Direction::In => (socket.peer, socket.local),
            };
            flows.push(FlowRow {
                flow: flow.to_owned(),
                instance,
                group: flow.to_owned(),
                cc: socket.congestion_control.clone().unwrap_or_default(),
                from: from.to_string(),
                to: to.to_string(),
                ended: Some(if ended.is_some() { "closed" } else { "open" }.to_owned()),
                pid: owner.as_ref().map(|owner| owner.pid),
                program: owner.as_ref().map(|owner| owner.program.clone()),
                ..log.row(direction, ended.unwrap_or(end))
            });
            series.extend(log.series(flow, instance, direction));
        }
        let duration_s = self.options.duration.map(Span::as_secs_f64);
        LiveOutput { summary: LiveSummary { duration_s, notes, ..LiveSummary::new(name, end, flows) }, series }
    }

    /// Warnings for readers of the results.
    fn notes(&self) -> Vec<String> {
        let Counts { missed, strays, beyond, thinned } = self.counts;
        let mut notes = Vec::new();
        if strays > 0 {
            notes.push(format!(
                "{strays} short connections of the host ended before it was known whose they were: watch their port, or search more often"
            ));
        }
        if beyond > 0 {
            notes.push(format!("{beyond} connections beyond the first {MAX_CONNECTIONS} were not followed"));
        }
        if missed > 0 {
            notes.push(format!("{missed} readings were missed: the host was busy, or the interval is too short"));
        }
        if thinned > 0 {
            notes.push(format!(
                "the log grew long: readings are {:.3} s apart in its end",
                self.options.every.as_secs_f64()
            ));
        }
        match &self.ends {
            None => notes.push("the kernel does not tell of ended connections: their last readings are up to an interval old".to_owned()),
            Some(ends) if ends.overruns > 0 => notes.push(format!(
                "{} times the kernel told of more ended connections than could be taken: some last readings are up to an interval old",
                ends.overruns
            )),
            Some(_) => {}
        }
        notes
    }
}

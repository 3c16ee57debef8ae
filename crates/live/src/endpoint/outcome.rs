//! Result of a client's run: the halves of its flows joined into tables, and notes about the run.

use super::control::Direction;
use super::half::{Half, joined, recordings};
use super::options::{RequestedFlow, SendOptions};
use crate::host::HostReport;
use crate::results::{LiveOutput, LiveSummary};
use crate::session::{End, Reported};
use paceline_units::Time;
use serde::Serialize;
use std::net::SocketAddr;

/// Application of a kernel-TCP flow: a transfer without an end.
const BULK: &str = "ftp";

/// Result of a run, and notes about it.
#[derive(Debug)]
pub struct LiveRun {
    /// Tables and recordings.
    pub output: LiveOutput,
    /// The host's state, and each flow's lateness of datagrams and drops.
    pub notes: Notes,
}

/// Notes about a run that its tables do not contain.
#[derive(Clone, Debug, Serialize)]
pub struct Notes {
    /// The server's address.
    pub server: String,
    /// This host.
    pub host: Option<HostReport>,
    /// The flows, in the order of the table.
    pub flows: Vec<FlowNotes>,
}

/// Notes about one flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowNotes {
    /// Its name.
    pub flow: String,
    /// Index among flows of the same name.
    pub instance: u32,
    /// How it ended at its sender.
    pub sender_ended: String,
    /// How it ended at its receiver.
    pub receiver_ended: String,
    /// Whether both ends ended as intended.
    pub well: bool,
    /// Median lateness of timed datagrams (s).
    pub late_p50_s: Option<f64>,
    /// 99th percentile of their lateness (s).
    pub late_p99_s: Option<f64>,
    /// Datagrams at either end that were not a message of the flow.
    pub garbage: u64,
    /// Implausible messages at either end.
    pub disregarded: u64,
    /// Datagrams beyond the granted rate or the kernel's buffers.
    pub no_room: u64,
    /// When its data began by the sender's CLOCK_MONOTONIC (s), if only part of the flow is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_s: Option<f64>,
    /// The reports of a receiver of plain RTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// Why a log written here stops before the flow ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_cut: Option<String>,
}

impl FlowNotes {
    /// The notes about a flow with these two halves.
    pub(super) fn of(requested: &RequestedFlow, sender: &Half, receiver: &Half) -> FlowNotes {
        let both = |of: fn(&Half) -> u64| of(sender).saturating_add(of(receiver));
        FlowNotes {
            flow: requested.name.clone(),
            instance: requested.instance,
            sender_ended: sender.ended.clone(),
            receiver_ended: receiver.ended.clone(),
            well: sender.well && receiver.well,
            late_p50_s: sender.late.map(|late| late.0),
            late_p99_s: sender.late.map(|late| late.1),
            garbage: both(|half| half.dropped.0),
            disregarded: both(|half| half.dropped.1),
            no_room: both(|half| half.dropped.2),
            began_s: sender.began_s,
            reported: sender.reported,
            log_cut: sender.log_cut.clone().or_else(|| receiver.log_cut.clone()),
        }
    }
}

/// Joins the halves; an end without results has the end reason `unknown`.
pub(super) fn results(
    options: &SendOptions,
    server: SocketAddr,
    host: Option<HostReport>,
    (near, far): (&[Option<Half>], &[Option<Half>]),
    unknown: String,
) -> LiveRun {
    let (mut rows, mut series, mut streams, mut flows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let nothing = Half { ended: unknown, ..Half::default() };
    let mut end = 0.0f64;
    for ((requested, near), far) in options.flows.iter().zip(near).zip(far) {
        let (near, far) = (near.as_ref().unwrap_or(&nothing), far.as_ref().unwrap_or(&nothing));
        let (sender, receiver, from, to) = match requested.offer.direction {
            Direction::Forward => (near, far, "here", options.host.as_str()),
            Direction::Reverse => (far, near, options.host.as_str(), "here"),
        };
        let from_s = requested.offer.measure.map_or(0.0, |measure| measure.from().as_secs_f64());
        let mut receiver = receiver.clone();
        if options.beginning.is_some() {
            receiver.align_delays(sender); // the path below runs on this machine, and so does the other end
        }
        let receiver = &receiver;
        let mut row = joined(sender, receiver, from_s, requested.offer.spec.for_ms as f64 / 1e3);
        (row.flow, row.instance, row.group) = (requested.name.clone(), requested.instance, requested.name.clone());
        (row.from, row.to) = (from.to_owned(), to.to_owned());
        if row.cc.is_empty() {
            (row.cc, row.app, row.profile) = (near.row.cc.clone(), near.row.app.clone(), near.row.profile.clone());
        }
        if requested.offer.kernel.is_some() {
            row.app = BULK.to_owned(); // its socket does not know
        }
        end = end.max(near.end_s);
        series.extend(recordings(sender, receiver, &requested.name, requested.instance));
        if let Some(stream) = &receiver.stream {
            let mut stream = stream.clone();
            (stream.flow, stream.instance) = (requested.name.clone(), requested.instance);
            streams.push(stream);
        }
        flows.push(FlowNotes::of(requested, sender, receiver));
        rows.push(row);
    }
    let mut summary = LiveSummary::new("live", Time::from_secs_f64(end), rows);
    summary.streams = streams;
    let longest = options.flows.iter().map(|requested| requested.offer.spec.for_ms).max().unwrap_or(0);
    summary.duration_s = Some(longest as f64 / 1e3);
    LiveRun { output: LiveOutput { summary, series }, notes: Notes { server: server.to_string(), host, flows } }
}

/// An end that stopped although nobody here stopped it did not end well: its reason says where and when. If this end
/// found the peer's port closed because of that, before the peer's last datagrams arrived, this is not a second
/// failure: this end counts as done.
pub(super) fn stopped_there(near: Option<&mut Half>, far: &mut Half, host: &str) {
    if far.ended != End::Stopped.to_string() {
        return;
    }
    far.ended = format!("stopped at {host}, {:.1} s after its data began", far.end_s);
    far.well = false;
    if let Some(near) = near.filter(|near| near.ended == End::Unreachable.to_string()) {
        (near.ended, near.well) = (End::Done.to_string(), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end: End) -> Half {
        Half { ended: end.to_string(), well: matches!(end, End::Done | End::Stopped), end_s: 3.21, ..Half::default() }
    }

    /// Also for a flow without any result.
    #[test]
    fn a_flow_of_the_kernels_says_what_it_carries() {
        use crate::endpoint::control::Offer;
        use crate::session::{Family, FlowSpec, ForeignSchemes};
        let (settings, foreign) = (Vec::new(), ForeignSchemes::default());
        let spec = FlowSpec { settings, for_ms: 1000, seed: 1, family: Family::V4, name: None, foreign };
        let flows = [Some("cubic".to_owned()), None].map(|kernel| RequestedFlow {
            name: "a".to_owned(),
            instance: 0,
            offer: Offer { spec: spec.clone(), direction: Direction::Reverse, kernel, measure: None },
        });
        let options = SendOptions {
            host: "there".to_owned(),
            port: 1,
            key: None,
            flows: flows.into(),
            logs: None,
            qlogs: None,
            results: None,
            ports: None,
            beginning: None,
        };
        let mut half = ended(End::Done);
        half.row.cc = "cubic".to_owned();
        for (near, far) in [(None, None), (Some(half.clone()), None), (None, Some(half))] {
            let (near, far) = ([near.clone(), near], [far.clone(), far]);
            let run = results(&options, "127.0.0.1:1".parse().unwrap(), None, (&near, &far), "gone".to_owned());
            let apps: Vec<_> = run.output.summary.flows.iter().map(|flow| &*flow.app).collect();
            assert_eq!(apps, ["ftp", ""]);
        }
    }

    #[test]
    fn a_server_that_was_stopped_says_so_alone() {
        let there = "stopped at far.example, 3.2 s after its data began";
        for (here, far, said) in [
            (End::Done, End::Stopped, ("done", true, there)),
            (End::Unreachable, End::Stopped, ("done", true, there)),
            (End::Silence, End::Stopped, (&*End::Silence.to_string(), false, there)),
            (End::Unreachable, End::Done, (&*End::Unreachable.to_string(), false, "done")),
        ] {
            let (mut near, mut far) = (ended(here), ended(far));
            stopped_there(Some(&mut near), &mut far, "far.example");
            assert_eq!((&*near.ended, near.well, &*far.ended), said);
        }
        let mut far = ended(End::Stopped);
        stopped_there(None, &mut far, "far.example");
        assert_eq!((&*far.ended, far.well), (there, false));
    }
}

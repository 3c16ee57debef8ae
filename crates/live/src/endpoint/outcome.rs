//! What a client's run came to: the halves of its flows joined into tables, and what is to be remembered beside them.

use super::client::{SendOptions, Wanted};
use super::control::Direction;
use super::half::{Half, joined, recordings};
use crate::host::HostReport;
use crate::results::{LiveOutput, LiveSummary};
use crate::session::{End, Reported};
use paceline_units::Time;
use serde::Serialize;
use std::net::SocketAddr;

/// What a flow of the kernel's TCP carries: a transfer without an end.
const BULK: &str = "ftp";

/// What a run came to, and what is to be remembered of it.
#[derive(Debug)]
pub struct LiveRun {
    /// Tables and recordings.
    pub output: LiveOutput,
    /// The host's state, and of each flow how late its datagrams left and what was dropped.
    pub notes: Notes,
}

/// What is to be remembered of a run beside its tables.
#[derive(Clone, Debug, Serialize)]
pub struct Notes {
    /// The server's address.
    pub server: String,
    /// This host.
    pub host: Option<HostReport>,
    /// The flows, in the order of the table.
    pub flows: Vec<FlowNotes>,
}

/// Of one flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowNotes {
    /// Its name.
    pub flow: String,
    /// Which of several alike.
    pub instance: u32,
    /// How it ended at its sender.
    pub sender_ended: String,
    /// How it ended at its receiver.
    pub receiver_ended: String,
    /// Whether both ended as they were meant to.
    pub well: bool,
    /// Timed datagrams: how late they left in the median (s).
    pub late_p50_s: Option<f64>,
    /// The 99th percentile (s).
    pub late_p99_s: Option<f64>,
    /// Datagrams at either end that were no message of the flow.
    pub garbage: u64,
    /// Messages at either end that could not be true.
    pub disregarded: u64,
    /// Datagrams that the granted rate, or the kernel, had no room for.
    pub no_room: u64,
    /// When its data began at its sender by CLOCK_MONOTONIC there (s), of a flow that is measured from an instant to an instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_s: Option<f64>,
    /// What a receiver of plain RTP has reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// Why a log that was written here ends before the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_cut: Option<String>,
}

impl FlowNotes {
    /// Of a flow's two halves.
    pub(super) fn of(wanted: &Wanted, sender: &Half, receiver: &Half) -> FlowNotes {
        let both = |of: fn(&Half) -> u64| of(sender).saturating_add(of(receiver));
        FlowNotes {
            flow: wanted.name.clone(),
            instance: wanted.instance,
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

/// Joins the halves; an end of which nothing came has ended as is said to be `unknown`.
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
    for ((wanted, near), far) in options.flows.iter().zip(near).zip(far) {
        let (near, far) = (near.as_ref().unwrap_or(&nothing), far.as_ref().unwrap_or(&nothing));
        let (sender, receiver, from, to) = match wanted.offer.direction {
            Direction::Forward => (near, far, "here", options.host.as_str()),
            Direction::Reverse => (far, near, options.host.as_str(), "here"),
        };
        let from_s = wanted.offer.measure.map_or(0.0, |measure| measure.from().as_secs_f64());
        let mut receiver = receiver.clone();
        if options.beginning.is_some() {
            receiver.align_delays(sender); // the path below is on this machine, and so is the other end
        }
        let receiver = &receiver;
        let mut row = joined(sender, receiver, from_s, wanted.offer.spec.for_ms as f64 / 1e3);
        (row.flow, row.instance, row.group) = (wanted.name.clone(), wanted.instance, wanted.name.clone());
        (row.from, row.to) = (from.to_owned(), to.to_owned());
        if row.cc.is_empty() {
            (row.cc, row.app, row.profile) = (near.row.cc.clone(), near.row.app.clone(), near.row.profile.clone());
        }
        if wanted.offer.kernel.is_some() {
            row.app = BULK.to_owned(); // its socket does not say
        }
        end = end.max(near.end_s);
        series.extend(recordings(sender, receiver, &wanted.name, wanted.instance));
        if let Some(stream) = &receiver.stream {
            let mut stream = stream.clone();
            (stream.flow, stream.instance) = (wanted.name.clone(), wanted.instance);
            streams.push(stream);
        }
        flows.push(FlowNotes::of(wanted, sender, receiver));
        rows.push(row);
    }
    let mut summary = LiveSummary::new("live", Time::from_secs_f64(end), rows);
    summary.streams = streams;
    let longest = options.flows.iter().map(|wanted| wanted.offer.spec.for_ms).max().unwrap_or(0);
    summary.duration_s = Some(longest as f64 / 1e3);
    LiveRun { output: LiveOutput { summary, series }, notes: Notes { server: server.to_string(), host, flows } }
}

/// An end that was stopped although nobody here wanted it did not end well: it says who stopped it, and when. That its port
/// was gone before its last datagrams had said so is no other fault: the end here is done, as if they had come first.
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

    /// Also of a flow of which no end has come.
    #[test]
    fn a_flow_of_the_kernels_says_what_it_carries() {
        use crate::endpoint::control::Offer;
        use crate::session::{Family, FlowSpec, ForeignSchemes};
        let (settings, foreign) = (Vec::new(), ForeignSchemes::default());
        let spec = FlowSpec { settings, for_ms: 1000, seed: 1, family: Family::V4, name: None, foreign };
        let flows = [Some("cubic".to_owned()), None].map(|kernel| Wanted {
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

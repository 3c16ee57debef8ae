//! qlog files.

use crate::run::{RunOutput, of_series};
use crate::{InternalError, panics};
use flate2::read::MultiGzDecoder;
use paceline_live::results::{FlowRow, LiveSummary};
use paceline_qlog::read::{Connection, Ended, Error, Reader, Reading, Way};
use paceline_sim::Series;
use paceline_units::{Span, Time};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
#[expect(clippy::disallowed_types, reason = "the crate that has files")]
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::rc::Rc;

/// Bytes between two checks for signals.
const SIGNAL_CHECK_BYTES: usize = 1 << 20;

fn defect(what: &str) -> PyErr {
    InternalError::new_err(format!("Paceline has a defect: {what}. Please report it with the log."))
}

/// Reads qlog files, each with the name of its flow. Returns the run's tables and recordings, and further contents as
/// JSON: `states` (names of the numbers in that column), `skipped` (counts of unread events, by name), `events` (count
/// of events read), and for each connection its `file`, `vantage`, `group`, and which values are `derived`.
///
/// Raises ValueError for a file that is no qlog, and OSError.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
pub fn qlog(py: Python<'_>, files: Vec<(PathBuf, String)>, every_s: f64, name: &str) -> PyResult<(RunOutput, String)> {
    if !(0.0..=3.2e9).contains(&every_s) {
        return Err(PyValueError::new_err(format!("every_s = {every_s} is not in 0 to 3.2e9")));
    }
    let read = py.detach(|| panics::guarded(|| read_all(&files, Span::from_secs_f64(every_s))));
    let reading = read.map_err(|panic| defect(&panic))??;
    let about = json!({
        "states": reading.states,
        "skipped": reading.skipped,
        "events": reading.events,
        "connections": reading.connections.iter().map(|connection| json!({
            "file": connection.file,
            "vantage": connection.vantage,
            "group": connection.group,
            "packet_bytes": connection.packet_bytes,
            "derived": connection.derived,
        })).collect::<Vec<_>>(),
    });
    let names: BTreeMap<String, &str> =
        files.iter().map(|(path, flow)| (path.display().to_string(), flow.as_str())).collect();
    let (summary, series) = as_run(reading, &names, name);
    let summary_json = serde_json::to_string(&summary).map_err(|error| defect(&error.to_string()))?;
    Ok((RunOutput { summary_json, series: of_series(py, series)? }, about.to_string()))
}

#[expect(clippy::disallowed_types, reason = "the crate that has files")]
fn read_all(files: &[(PathBuf, String)], every: Span) -> PyResult<Reading> {
    let mut reader = Reader::new(every);
    for (path, _) in files {
        let raised: Rc<RefCell<Option<PyErr>>> = Rc::default();
        let read = reader.read(&path.display().to_string(), &mut || {
            let mut file = File::open(path)?;
            let mut magic = [0; 2];
            let begins = file.read(&mut magic)?;
            file.seek(SeekFrom::Start(0))?;
            let whole: Box<dyn Read> =
                if begins == 2 && magic == [0x1f, 0x8b] { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
            Ok(Box::new(Interruptible { from: whole, since: 0, raised: Rc::clone(&raised) }))
        });
        let raised = raised.borrow_mut().take();
        match (raised, read) {
            (Some(error), _) => return Err(error),
            (None, Ok(())) => {}
            (None, Err(error @ Error::Io { .. })) => return Err(PyOSError::new_err(error.to_string())),
            (None, Err(error)) => return Err(PyValueError::new_err(error.to_string())),
        }
    }
    Ok(reader.finish())
}

/// Ends a long reading on a signal for Python, such as Ctrl-C.
struct Interruptible {
    from: Box<dyn Read>,
    since: usize,
    raised: Rc<RefCell<Option<PyErr>>>,
}

impl Read for Interruptible {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.since >= SIGNAL_CHECK_BYTES {
            self.since = 0;
            if let Err(error) = Python::attach(|py| py.check_signals()) {
                *self.raised.borrow_mut() = Some(error);
                return Err(io::Error::other("the reading was ended"));
            }
        }
        let read = self.from.read(to)?;
        self.since += read;
        Ok(read)
    }
}

/// The result in the form of a run on real paths: one flow per connection, named after its file.
fn as_run(reading: Reading, names: &BTreeMap<String, &str>, name: &str) -> (LiveSummary, Vec<Series>) {
    let mut instances: BTreeMap<String, u32> = BTreeMap::new();
    let (mut flows, mut series) = (Vec::new(), Vec::new());
    let mut end = Time::ZERO;
    for connection in reading.connections {
        let flow = names.get(&connection.file).map_or("quic", |name| *name).to_owned();
        let next = instances.entry(flow.clone()).or_default();
        let instance = *next;
        *next += 1;
        end = end.max(connection.end);
        flows.push(FlowRow { flow: flow.clone(), instance, group: flow.clone(), ..row(&connection) });
        series.extend(connection.tables.into_iter().map(|table| Series {
            table: table.name,
            labels: vec![("flow", flow.clone()), ("instance", instance.to_string())],
            columns: table.columns.into_iter().map(|(name, values)| (name.into(), values)).collect(),
        }));
    }
    (LiveSummary { notes: reading.notes, ..LiveSummary::new(name, end, flows) }, series)
}

/// A connection's measures in the direction of most of its payload, with the names left empty.
fn row(connection: &Connection) -> FlowRow {
    let measures = connection.measures;
    let active_s = connection.end.since(connection.start).as_secs_f64();
    let per_second = |bytes: u64| if active_s > 0.0 { bytes as f64 * 8.0 / active_s } else { 0.0 };
    let out = connection.way == Way::Out;
    let (from, to) =
        if out { (&connection.local, &connection.remote) } else { (&connection.remote, &connection.local) };
    let payload = if out { measures.delivered_bytes } else { measures.taken_bytes };
    let both = FlowRow {
        cc: connection.congestion_control.clone().unwrap_or_default(),
        profile: "qlog".to_owned(),
        from: from.clone(),
        to: to.clone(),
        start_s: connection.start.as_secs_f64(),
        active_s,
        ended: Some(
            match connection.ended {
                Ended::Closed => "closed",
                Ended::Open => "open",
                Ended::Cut => "cut",
            }
            .to_owned(),
        ),
        goodput_bps: payload.map_or(f64::NAN, per_second),
        bytes_delivered: payload,
        packets_delivered: measures.packets_received,
        rtt_mean_s: measures.rtt_mean_s,
        rtt_min_s: measures.rtt_min_s,
        rtt_max_s: measures.rtt_max_s,
        ..FlowRow::default()
    };
    if !out {
        // The log does not show the peer's sender; its window is that of the other direction.
        return FlowRow { cc: String::new(), ..both };
    }
    let share = |part: Option<u64>, of: Option<u64>| Some(part? as f64 / of.filter(|of| *of > 0)? as f64);
    FlowRow {
        send_rate_bps: measures.sent_bytes.map(per_second),
        packets_sent: measures.packets_sent,
        packets_delivered: measures.packets_delivered,
        packets_lost: measures.packets_lost,
        loss_rate: share(measures.packets_lost, measures.packets_sent),
        packets_retransmitted: measures.packets_retransmitted,
        ecn_marks: measures.ecn_marks,
        timeouts: measures.timeouts,
        cwnd_mean_packets: measures.cwnd_mean_packets,
        cwnd_max_packets: measures.cwnd_max_packets,
        ..both
    }
}

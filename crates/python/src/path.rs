//! Emulated paths in real time, and programs over them.

use crate::run::{Series, of_series};
use crate::{InternalError, PathError, ScenarioError, panics};
use paceline_live::gateway::RawOptions;
use paceline_live::netns::{self, EndError, Ended, Far, Kind, Plan, RunError};
use paceline_live::path::{self, FlowLosses, PathCapture, PathReport, PathSpec, RelayOptions, Side};
use paceline_live::results::LiveSummary;
use paceline_live::start_signal::Beginning;
use paceline_units::{Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Names, summaries and texts of the built-in paths.
#[pyfunction]
pub fn path_profiles() -> Vec<(&'static str, String, &'static str)> {
    path::profiles().iter().map(|profile| (profile.name, profile.summary(), profile.text)).collect()
}

/// A path that has been read and checked.
#[pyclass(frozen, module = "paceline._core")]
pub struct Path {
    spec: PathSpec,
}

#[pymethods]
impl Path {
    /// The path that `word` names, with values at TOML paths replaced. `ports` is the near end's port of the file's
    /// first flow, if its flows use the path.
    #[staticmethod]
    #[pyo3(signature = (word, values = vec![], seed = None, ports = None))]
    #[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
    fn load(word: &str, values: Vec<(String, String)>, seed: Option<u64>, ports: Option<u16>) -> PyResult<Path> {
        let loaded = panics::guarded(|| {
            let (mut document, folder) = PathSpec::open(word).map_err(|error| error.to_string())?;
            for (key, value) in &values {
                document.set(key, value).map_err(|error| error.to_string())?;
            }
            PathSpec::of_run(document, &folder, seed, ports).map_err(|error| error.to_string())
        });
        let spec = loaded.map_err(|panic| defect(&panic))?.map_err(ScenarioError::new_err)?;
        Ok(Path { spec })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.spec.name
    }

    #[getter]
    fn description(&self) -> &str {
        &self.spec.description
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.spec.seed
    }

    /// Keys of its links without effect, or hardly the intended one: one line each, with file, line and key.
    #[getter]
    fn warnings(&self) -> Vec<&str> {
        self.spec.warnings.iter().map(String::as_str).collect()
    }
}

/// Ends paths from another thread.
#[pyclass(frozen, module = "paceline._core")]
pub struct PathStop {
    stop: Arc<path::Stop>,
}

#[pymethods]
impl PathStop {
    #[new]
    fn new() -> PyResult<PathStop> {
        Ok(PathStop { stop: Arc::new(path::Stop::new()?) })
    }

    /// Ends the programs of all paths that received this, as SIGTERM would.
    fn stop(&self) {
        self.stop.stop();
    }

    /// Whether `stop` was called.
    #[getter]
    fn stopped(&self) -> bool {
        self.stop.is_stopped()
    }
}

/// Results of a path.
#[pyclass(frozen, module = "paceline._core")]
pub struct PathOutput {
    #[pyo3(get)]
    summary_json: String,
    #[pyo3(get)]
    series: Vec<Py<Series>>,
    #[pyo3(get)]
    status: i32,
    lost: FlowLosses,
}

#[pymethods]
impl PathOutput {
    /// Count of data packets from or to the near end, of the flow with `port` there, that were dropped from `from_s` to
    /// `to_s` (CLOCK_MONOTONIC).
    fn lost(&self, port: u16, from_near: bool, from_s: f64, to_s: f64) -> u64 {
        let side = if from_near { Side::Near } else { Side::Far };
        self.lost.count(port, side, Time::from_secs_f64(from_s)..Time::from_secs_f64(to_s))
    }
}

/// Runs a command over a path until it ends, without the interpreter lock.
///
/// `far` is a shell command for the far end, with its output to the descriptor `far_output`; with `host`, the far end
/// is this host. `capture` is a file, and the number of bytes to keep per packet. With `stop`, signals are not handled.
/// `beginning` is a pipe to create, at which flows report that they begin.
#[pyfunction]
#[pyo3(signature = (path, command, *, far = None, far_output = 2, host = false, device = "any", limit_s = None,
    ipv4 = false, record_every_s = None, capture = None, stop = None, access_point = None, beginning = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn run_path(
    py: Python<'_>,
    path: &Path,
    command: Vec<OsString>,
    far: Option<OsString>,
    far_output: i32,
    host: bool,
    device: &str,
    limit_s: Option<f64>,
    ipv4: bool,
    record_every_s: Option<f64>,
    capture: Option<(PathBuf, usize)>,
    stop: Option<Py<PathStop>>,
    access_point: Option<&str>,
    beginning: Option<PathBuf>,
) -> PyResult<PathOutput> {
    let law = access_point.map(RawOptions::law_of).transpose();
    let law = law.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let kind = match device {
        "any" => Kind::Any,
        "tun" => Kind::Tun,
        "packet" => Kind::Packet,
        other => return Err(PyValueError::new_err(format!("no device `{other}`; there are any, tun, packet"))),
    };
    let far = match (far, host) {
        (Some(line), false) => Far::Program(line, far_output),
        (None, true) => Far::Host,
        (None, false) => Far::Nobody,
        (Some(_), true) => return Err(PyValueError::new_err("the far end is the host, or has a command")),
    };
    let span = |name: &str, seconds: Option<f64>| match seconds {
        Some(seconds) if !(1e-4..=1e8).contains(&seconds) => {
            Err(PyValueError::new_err(format!("{name} = {seconds} is not in 1e-4 to 1e8")))
        }
        seconds => Ok(seconds.map(Span::from_secs_f64)),
    };
    let ender = stop.map(|stop| Arc::clone(&stop.get().stop));
    let plan = Plan { command, far, kind, ipv4, limit: span("limit_s", limit_s)?, ender };
    let beginning = beginning.map(|pipe| Beginning::new(&pipe)).transpose()?;
    let record = span("record_every_s", record_every_s)?;
    let spec = &path.spec;
    let finished = py.detach(|| {
        panics::guarded(|| {
            netns::run(&plan, |mut near, mut far, clock, stop| {
                let capture = capture.as_ref().map(|(path, snap)| PathCapture { path, snap: *snap });
                let access_point = law.as_ref();
                let options = RelayOptions {
                    clock,
                    record,
                    capture,
                    access_point,
                    beginning: beginning.as_ref(),
                    ..RelayOptions::default()
                };
                path::run(spec, &mut near, &mut far, &options, stop)
            })
        })
    });
    let mut ended = finished.map_err(|panic| defect(&panic))?.map_err(failed)?;
    let series = std::mem::take(&mut ended.measured.series);
    Ok(PathOutput {
        summary_json: summary(&ended).map_err(|error| defect(&error.to_string()))?.to_string(),
        series: of_series(py, series)?,
        status: ended.status.code(),
        lost: ended.measured.lost,
    })
}

/// The summary of a run whose flows are unknown, with the emulator's report under `path`.
fn summary(ended: &Ended<PathReport>) -> serde_json::Result<Value> {
    let report = &ended.measured;
    let end = Time::ZERO + Span::from_secs_f64(report.duration_s);
    let mut summary = LiveSummary::new(&report.name, end, Vec::new());
    summary.seed = report.seed;
    let mut summary = serde_json::to_value(summary)?;
    summary["queues"] = serde_json::to_value(&report.queues)?;
    let mut path = serde_json::to_value(report)?;
    let without: Vec<Value> = ended
        .without
        .iter()
        .map(|(side, refused)| json!({ "end": side.name(), "call": refused.call.name(), "why": refused.to_string() }))
        .collect();
    if let Some(path) = path.as_object_mut() {
        path.remove("queues");
        path.insert("start".into(), json!(netns::start_text(ended.start)));
        path.insert("command_start_s".into(), json!(ended.began.as_secs_f64()));
        path.insert("status".into(), json!(ended.status.code()));
        path.insert("limited".into(), json!(ended.limited));
        path.insert("far_status".into(), json!(ended.far_status.map(netns::Status::code)));
        path.insert("devices".into(), json!(ended.devices));
        path.insert("lost_before".into(), json!(ended.lost));
        path.insert("without".into(), Value::Array(without));
    }
    summary["path"] = path;
    Ok(summary)
}

fn defect(what: &str) -> PyErr {
    InternalError::new_err(format!("Paceline has a defect: {what}. Please report it with the path."))
}

/// The exception: its message, and a shell's exit code for the failure.
fn failed(error: RunError) -> PyErr {
    let code = match &error {
        RunError::Program(_, _, refused) if refused.errno == ENOENT => 127,
        RunError::Program(..) => 126,
        RunError::End(_, EndError::Interrupted(number)) => 128 + number,
        _ => 1,
    };
    PathError::new_err((error.to_string(), code))
}

/// "No such file or directory", by errno(3).
const ENOENT: i32 = 2;

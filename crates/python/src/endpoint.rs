//! Flows between hosts: `paceline serve` and `paceline send`.

use crate::own_controllers::scheme::Scheme;
use crate::run::RunOutput;
use crate::{InternalError, LiveError, live, panics};
use paceline_control::rtp::FeedbackFormat;
use paceline_live::endpoint::control::{Direction, Measure, Offer};
use paceline_live::endpoint::{self, Key, LiveRun, RequestedFlow, RtpTarget, SendError, SendOptions, ServeOptions};
use paceline_live::quic::LogQuota;
use paceline_live::session::{Family, FlowSpec, ForeignSchemes, RtpPeer};
use paceline_units::{Rate, Span};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A handle on `send` from another thread.
#[pyclass(frozen, module = "paceline._core")]
#[derive(Default)]
pub struct SendWatch {
    watch: Arc<paceline_live::endpoint::SendWatch>,
}

#[pymethods]
impl SendWatch {
    #[new]
    fn new() -> SendWatch {
        SendWatch::default()
    }

    /// Ends the flows; measurements so far are kept.
    fn stop(&self) {
        self.watch.stop();
    }

    /// The flows' current state, as JSON.
    fn shown_json(&self) -> String {
        serde_json::to_string(&self.watch.shown()).unwrap_or_else(|_| "[]".to_owned())
    }
}

/// A flow requested by Python: name, instance, settings, milliseconds, seed, whether it is sent from here, the kernel's
/// congestion control, and its name within its bundle.
type FlowRequest = (String, u32, Vec<(String, String)>, u64, u64, bool, Option<String>, Option<String>);

/// The schemes that Python supplies.
fn foreign_schemes(schemes: &[Py<Scheme>]) -> ForeignSchemes {
    ForeignSchemes { schemes: schemes.iter().map(|scheme| scheme.get().core).collect(), flow: String::new() }
}

fn requested(
    (name, instance, settings, for_ms, seed, forward, kernel, bundle): FlowRequest,
    foreign: &ForeignSchemes,
) -> RequestedFlow {
    // The family is replaced by that of the host's resolved address.
    let foreign = ForeignSchemes { flow: format!("{name}[{instance}]"), ..foreign.clone() };
    let spec = FlowSpec { settings, for_ms, seed, family: Family::V4, name: bundle, foreign };
    let direction = if forward { Direction::Forward } else { Direction::Reverse };
    RequestedFlow { name, instance, offer: Offer { spec, direction, kernel, measure: None } }
}

/// Runs flows to and from a server; returns measurements, and notes as JSON. `measure` is the start and the end of
/// measuring, in milliseconds, and the interval of recordings in microseconds. `results` is a folder of the server for
/// its results, `ports` the local port of the first flow, `beginning` the pipe at which the path below waits for the
/// flows to begin, and `qlogs` a folder for logs of QUIC connections that begin here.
#[pyfunction]
#[pyo3(signature = (host, port, flows, watch, key = None, logs = None, measure = None, results = None,
    ports = None, beginning = None, schemes = vec![], qlogs = None))]
#[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn send(
    py: Python<'_>,
    host: String,
    port: u16,
    flows: Vec<FlowRequest>,
    watch: Py<SendWatch>,
    key: Option<Key>,
    logs: Option<PathBuf>,
    measure: Option<(u64, u64, u64)>,
    results: Option<PathBuf>,
    ports: Option<u16>,
    beginning: Option<PathBuf>,
    schemes: Vec<Py<Scheme>>,
    qlogs: Option<PathBuf>,
) -> PyResult<(RunOutput, String)> {
    let foreign = foreign_schemes(&schemes);
    let mut flows: Vec<RequestedFlow> = flows.into_iter().map(|request| requested(request, &foreign)).collect();
    let measure = measure.map(|(from_ms, to_ms, every_us)| Measure { from_ms, to_ms, every_us });
    flows.iter_mut().for_each(|flow| flow.offer.measure = measure);
    let options = SendOptions { host, port, key, flows, logs, qlogs, results, ports, beginning };
    outcome(py, py.detach(|| panics::guarded(|| endpoint::send(&options, &watch.get().watch))))
}

/// Mistakes in a flow between hosts: keys of its table, and what to do about each.
#[pyfunction]
#[pyo3(signature = (flow, schemes = vec![]))]
#[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
pub fn live_mistakes(flow: FlowRequest, schemes: Vec<Py<Scheme>>) -> Vec<(String, String)> {
    let Err(error) = requested(flow, &foreign_schemes(&schemes)).offer.spec.model() else { return Vec::new() };
    let own = |key: &str| {
        let within = key.strip_prefix("flow.").and_then(|key| key.split_once('.'));
        within.map_or(key, |(_, own)| own).to_owned()
    };
    error.mistakes.into_iter().map(|mistake| (own(&mistake.key), mistake.problem)).collect()
}

/// A receiver of plain RTP: host, its RTP and RTCP ports, the local ones, the payload type, the extension ID of
/// transport-wide sequence numbers.
type Receiver = (String, u16, u16, u16, u16, u8, u8);

/// Sends a flow to a receiver of plain RTP; returns measurements, and notes as JSON.
#[pyfunction]
#[pyo3(signature = (receiver, flow, watch, logs = None, schemes = vec![]))]
#[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
pub fn send_rtp(
    py: Python<'_>,
    receiver: Receiver,
    flow: FlowRequest,
    watch: Py<SendWatch>,
    logs: Option<PathBuf>,
    schemes: Vec<Py<Scheme>>,
) -> PyResult<(RunOutput, String)> {
    let (host, rtp_port, rtcp_port, local_rtp_port, local_rtcp_port, payload_type, transport_id) = receiver;
    let peer = RtpPeer { payload_type, transport_id };
    let target = RtpTarget { host, rtp_port, rtcp_port, local_rtp_port, local_rtcp_port, peer };
    let requested = requested(flow, &foreign_schemes(&schemes));
    outcome(py, py.detach(|| panics::guarded(|| endpoint::send_rtp(&target, &requested, logs, &watch.get().watch))))
}

/// Converts a run's result for Python.
fn outcome(py: Python<'_>, done: Result<Result<LiveRun, SendError>, String>) -> PyResult<(RunOutput, String)> {
    match done {
        Err(panic) => Err(InternalError::new_err(format!("Paceline has a defect: {panic}. Please report it."))),
        Ok(Err(SendError::Controller(failure))) => Err(crate::ControllerError::new_err(failure.to_string())),
        Ok(Err(SendError::Flow(why))) => Err(crate::ScenarioError::new_err(why)),
        Ok(Err(error)) => Err(LiveError::new_err(error.to_string())),
        Ok(Ok(run)) => {
            let defect = |error: serde_json::Error| InternalError::new_err(error.to_string());
            let notes = serde_json::to_string(&run.notes).map_err(defect)?;
            Ok((live::output(py, run.output)?, notes))
        }
    }
}

/// A handle on `receive` from another thread.
#[pyclass(frozen, module = "paceline._core")]
#[derive(Default)]
pub struct ListenWatch {
    watch: Arc<endpoint::ListenWatch>,
}

#[pymethods]
impl ListenWatch {
    #[new]
    fn new() -> ListenWatch {
        ListenWatch::default()
    }

    /// Ends it soon; measurements so far are kept.
    fn stop(&self) {
        self.watch.stop();
    }

    /// The streams' current state, as JSON.
    fn shown_json(&self) -> String {
        serde_json::to_string(&self.watch.shown()).unwrap_or_else(|_| "[]".to_owned())
    }
}

/// Receives from a sender of plain RTP: `bind` is the local RTP address, `feedback` "twcc" or "rfc8888" in addition to
/// reports, `for_s` the duration from the first packet. Returns measurements, and notes as JSON.
#[pyfunction]
#[pyo3(signature = (bind, rtcp_port, watch, peer_rtcp_port = None, feedback = None, transport_id = 1, for_s = None))]
#[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
pub fn receive(
    py: Python<'_>,
    bind: &str,
    rtcp_port: u16,
    watch: Py<ListenWatch>,
    peer_rtcp_port: Option<u16>,
    feedback: Option<&str>,
    transport_id: u8,
    for_s: Option<f64>,
) -> PyResult<(RunOutput, String)> {
    let bind = bind.parse().map_err(|_| PyValueError::new_err(format!("{bind} is no address with a port")))?;
    let feedback = match feedback {
        None => None,
        Some("twcc") => Some(FeedbackFormat::Transport),
        Some("rfc8888") => Some(FeedbackFormat::Rfc8888),
        Some(other) => return Err(PyValueError::new_err(format!("feedback {other} is neither twcc nor rfc8888"))),
    };
    let lasts = for_s.map(|seconds| Span::from_secs_f64(seconds.clamp(0.0, 864_000.0)));
    let options = endpoint::ListenOptions { bind, rtcp_port, peer_rtcp_port, feedback, transport_id, lasts };
    outcome(py, py.detach(|| panics::guarded(|| endpoint::listen(&options, &watch.get().watch))))
}

/// A server of flows.
#[pyclass(frozen, module = "paceline._core")]
pub struct Server {
    server: Mutex<Option<paceline_live::endpoint::Server>>,
    address: String,
    stop: AtomicBool,
    lines: Arc<Mutex<Vec<String>>>,
}

/// Default memory limit of a server, in bytes.
const MEMORY: u64 = 1_000_000_000;
/// Maximum lines that wait to be read.
const MAX_LINES: usize = 1000;

#[pymethods]
impl Server {
    /// Listens on `bind`, an address with a port.
    #[new]
    #[pyo3(signature = (bind, max_rate_bps, max_duration_s, max_sessions, key = None, results = None, max_memory_bytes = MEMORY, schemes = vec![], qlogs = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        bind: &str,
        max_rate_bps: u64,
        max_duration_s: f64,
        max_sessions: usize,
        key: Option<Key>,
        results: Option<PathBuf>,
        max_memory_bytes: u64,
        schemes: Vec<Py<Scheme>>,
        qlogs: Option<(PathBuf, u64, u64)>,
    ) -> PyResult<Server> {
        let bind = bind
            .parse()
            .map_err(|_| PyValueError::new_err(format!("{bind} is no address with a port, as [::]:5050")))?;
        let (max_rate, max_duration) = (Rate::from_bps(max_rate_bps), Span::from_secs_f64(max_duration_s));
        let qlogs = qlogs.map(|(folder, files, bytes)| {
            let quota = LogQuota::within(&folder, files, bytes);
            let quota = quota.map_err(|error| LiveError::new_err(format!("{}: {error}", folder.display())))?;
            PyResult::Ok((folder, Arc::new(quota)))
        });
        let options = ServeOptions {
            bind,
            key,
            max_rate,
            max_duration,
            max_sessions,
            max_memory: max_memory_bytes,
            results,
            qlogs: qlogs.transpose()?,
            schemes: foreign_schemes(&schemes),
        };
        let lines = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&lines);
        let say = Box::new(move |line: &str| {
            let mut lines = theirs.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() < MAX_LINES {
                lines.push(line.to_owned());
            }
        });
        let server = paceline_live::endpoint::Server::start(options, say)
            .map_err(|error| LiveError::new_err(error.to_string()))?;
        let address = server.address().to_string();
        Ok(Server { server: Mutex::new(Some(server)), address, stop: AtomicBool::new(false), lines })
    }

    /// The address on which it listens.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// Serves until `stop`. Call it once.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(server) = server else { return Ok(()) };
        match py.detach(|| panics::guarded(|| server.run(&self.stop))) {
            Err(panic) => Err(InternalError::new_err(format!("Paceline has a defect: {panic}. Please report it."))),
            Ok(done) => done.map_err(|error| LiveError::new_err(error.to_string())),
        }
    }

    /// Ends `run` soon.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Log lines since the last call.
    fn lines(&self) -> Vec<String> {
        core::mem::take(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Replays an event log in a new session; returns inputs, datagrams, seconds, and the bytes of an incomplete record at
/// its end.
#[pyfunction]
pub fn replay(path: PathBuf) -> PyResult<(u64, u64, f64, usize)> {
    let log = std::fs::read(&path)?;
    match panics::guarded(|| paceline_live::session::replay(&log)) {
        Err(panic) => Err(InternalError::new_err(format!("Paceline has a defect: {panic}. Please report it."))),
        Ok(Err(error)) => Err(LiveError::new_err(format!("{}: {error}", path.display()))),
        Ok(Ok(done)) => Ok((done.inputs, done.datagrams, done.end.as_secs_f64(), done.unread)),
    }
}

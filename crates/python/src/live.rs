//! Runs on real paths.

use crate::run::{RunOutput, Series};
use crate::{InternalError, panics};
use paceline_live::clock::Clock;
use paceline_live::host::{HostReport, HostState};
use paceline_live::kernel::watch::{Control, MAX_READINGS, Options, Selection, WatchError, Watching};
use paceline_live::results::LiveOutput;
use paceline_units::Span;
use pyo3::exceptions::{PyOSError, PyPermissionError, PyProcessLookupError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

fn defect(what: &str) -> PyErr {
    InternalError::new_err(format!("Paceline has a defect: {what}. Please report it."))
}

/// A run's tables and recordings for Python.
pub fn output(py: Python<'_>, output: LiveOutput) -> PyResult<RunOutput> {
    let summary_json = serde_json::to_string(&output.summary).map_err(|error| defect(&error.to_string()))?;
    let series = output.series.into_iter().map(|series| Py::new(py, Series { series })).collect::<PyResult<_>>()?;
    Ok(RunOutput { summary_json, series })
}

/// A span given in seconds, at least a tenth of a millisecond.
fn span(name: &str, seconds: f64) -> PyResult<Span> {
    if (1e-4..=3.2e9).contains(&seconds) {
        return Ok(Span::from_secs_f64(seconds));
    }
    Err(PyValueError::new_err(format!("{name} = {seconds} is not in 1e-4 to 3.2e9")))
}

/// Watches other programs' connections.
#[pyclass(frozen, module = "paceline._core")]
pub struct TcpWatch {
    watching: Mutex<Option<Watching>>,
    control: Control,
}

#[pymethods]
impl TcpWatch {
    /// Lists the present connections.
    #[new]
    #[pyo3(signature = (whose, numbers, every_s, search_every_s, duration_s = None))]
    fn new(
        py: Python<'_>,
        whose: &str,
        numbers: Vec<u32>,
        every_s: f64,
        search_every_s: f64,
        duration_s: Option<f64>,
    ) -> PyResult<TcpWatch> {
        let port = |n: u32| match u16::try_from(n) {
            Ok(port) if port > 0 => Ok(port),
            _ => Err(PyValueError::new_err(format!("there is no port {n}: ports are 1 to 65535"))),
        };
        let selection = match whose {
            "all" => Selection::All,
            "ports" => Selection::Ports(numbers.into_iter().map(port).collect::<PyResult<_>>()?),
            "processes" => Selection::Processes(numbers),
            "children" => Selection::Children,
            other => return Err(PyValueError::new_err(format!("whose: there is no `{other}`"))),
        };
        let options = Options {
            selection,
            every: span("every_s", every_s)?,
            search_every: span("search_every_s", search_every_s)?,
            duration: duration_s.map(|seconds| span("duration_s", seconds)).transpose()?,
            max_readings: MAX_READINGS,
        };
        let opened = py.detach(|| panics::guarded(|| Watching::open(options, Clock::start())));
        let watching = opened.map_err(|panic| defect(&panic))?.map_err(|error| match &error {
            WatchError::NoProcess(_) => PyProcessLookupError::new_err(error.to_string()),
            WatchError::NotAllowed { .. } | WatchError::Namespace { .. } => {
                PyPermissionError::new_err(error.to_string())
            }
            WatchError::System { .. } => PyOSError::new_err(error.to_string()),
        })?;
        Ok(TcpWatch { watching: Mutex::new(Some(watching)), control: Control::default() })
    }

    /// Watches until the end, without the interpreter lock.
    fn run(&self, py: Python<'_>, name: &str) -> PyResult<RunOutput> {
        let taken = self.watching.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut watching) = taken else { return Err(PyRuntimeError::new_err("this watch has run")) };
        let done = py.detach(|| {
            panics::guarded(|| {
                let failed = watching.run(&self.control).err();
                let mut output = watching.finish(name);
                // Readings up to the failure are kept.
                output.summary.notes.extend(failed.map(|error| format!("the watch ended early: {error}")));
                output
            })
        });
        output(py, done.map_err(|panic| defect(&panic))?)
    }

    /// Ends it at once.
    fn stop(&self) {
        self.control.stop.store(true, Ordering::Relaxed);
    }

    /// Ends it when the open connections have ended, within a second.
    fn finish(&self) {
        self.control.finish.store(true, Ordering::Relaxed);
    }

    /// The watched connections, as JSON.
    fn view(&self) -> PyResult<String> {
        serde_json::to_string(&self.control.view()).map_err(|error| defect(&error.to_string()))
    }
}

/// The host's state while something runs in real time.
#[pyclass(frozen, module = "paceline._core")]
pub struct HostWatch {
    before: HostState,
}

#[pymethods]
impl HostWatch {
    /// Begins now.
    #[new]
    fn new() -> PyResult<HostWatch> {
        Ok(HostWatch { before: HostState::now()? })
    }

    /// The state at the beginning and now, and the share of stolen time in between, as JSON.
    fn report(&self) -> PyResult<String> {
        let report = HostReport::since(self.before.clone())?;
        serde_json::to_string(&report).map_err(|error| defect(&error.to_string()))
    }
}

/// Makes orphaned descendants children of this process (or no longer), so that it can find what a command leaves
/// running.
#[pyfunction]
pub fn adopt_orphans(adopt: bool) -> PyResult<()> {
    Ok(paceline_live::kernel::socket_owners::adopt_orphans(adopt)?)
}

//! Running a scenario.

use crate::scenario::Scenario;
use crate::{Cancelled, ControllerError, InternalError, ScenarioError, panics};
use paceline_live::capture::{self, CaptureError, CaptureFile, Written};
use paceline_sim::{Recording, RunError, RunOptions};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::sync::Arc;

/// A handle on a run from another thread.
#[pyclass(frozen, module = "paceline._core")]
#[derive(Default)]
pub struct Watch {
    watch: Arc<paceline_sim::Watch>,
}

#[pymethods]
impl Watch {
    #[new]
    fn new() -> Watch {
        Watch::default()
    }

    /// Makes the run raise Cancelled soon.
    fn cancel(&self) {
        self.watch.cancel();
    }

    /// The simulated share of the duration.
    #[getter]
    fn progress(&self) -> f64 {
        self.watch.progress()
    }
}

/// One recorded time series.
#[pyclass(frozen, module = "paceline._core")]
pub struct Series {
    pub(crate) series: paceline_sim::Series,
}

#[pymethods]
impl Series {
    /// Its kind.
    #[getter]
    fn table(&self) -> &'static str {
        self.series.table
    }

    /// What it belongs to.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let labels = PyDict::new(py);
        for (name, value) in &self.series.labels {
            labels.set_item(name, value)?;
        }
        Ok(labels)
    }

    /// Little-endian 64-bit floats by column name.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, values) in &self.series.columns {
            let bytes = PyBytes::new_with(py, values.len() * 8, |to| {
                for (slot, value) in to.chunks_exact_mut(8).zip(values) {
                    slot.copy_from_slice(&value.to_le_bytes());
                }
                Ok(())
            })?;
            columns.set_item(name.as_ref(), bytes)?;
        }
        Ok(columns)
    }
}

/// Series as Python objects.
pub fn of_series(py: Python<'_>, series: Vec<paceline_sim::Series>) -> PyResult<Vec<Py<Series>>> {
    series.into_iter().map(|series| Py::new(py, Series { series })).collect()
}

/// Measurements and recordings of a run.
#[pyclass(frozen, module = "paceline._core")]
pub struct RunOutput {
    #[pyo3(get)]
    pub(crate) summary_json: String,
    #[pyo3(get)]
    pub(crate) series: Vec<Py<Series>>,
}

/// Runs a scenario to its end, without the interpreter lock.
#[pyfunction]
#[pyo3(signature = (scenario, seed, record, record_every_s, watch = None, pcap = None, qlog = None))]
#[expect(clippy::needless_pass_by_value, clippy::too_many_arguments, reason = "how Python's arguments arrive")]
pub fn run(
    py: Python<'_>,
    scenario: &Scenario,
    seed: u64,
    record: Vec<String>,
    record_every_s: f64,
    watch: Option<Py<Watch>>,
    pcap: Option<(PathBuf, Vec<String>)>,
    qlog: Option<PathBuf>,
) -> PyResult<RunOutput> {
    let names = record.iter().map(String::as_str);
    let recording = Recording::sampled(names, record_every_s).map_err(PyValueError::new_err)?;
    let checked = Arc::clone(&scenario.checked);
    let finished = py.detach(|| {
        panics::guarded(|| {
            let options =
                RunOptions { recording, watch: watch.as_ref().map(|w| &*w.get().watch as _), ..RunOptions::default() };
            let pcap = pcap.as_ref().map(|(path, hosts)| CaptureFile { path, hosts });
            let output = if pcap.is_none() && qlog.is_none() {
                paceline_sim::simulate(&checked, seed, &options).map_err(CaptureError::Run)?
            } else {
                capture::simulate(&checked, seed, &options, &Written { pcap, qlog: qlog.as_deref() })?
            };
            let summary = serde_json::to_string(&output.summary);
            Ok((summary, output.series))
        })
    });
    let name = scenario.checked.name();
    let defect = |what: &str| {
        InternalError::new_err(format!(
            "Paceline has a defect: {what}. Please report it with the scenario `{name}` and seed {seed}."
        ))
    };
    match finished {
        Err(panic) => Err(defect(&panic)),
        Ok(Err(CaptureError::File(path, error))) => {
            let number = error.raw_os_error().unwrap_or(0);
            Err(PyOSError::new_err((number, words_of(&error), path)))
        }
        Ok(Err(
            error @ (CaptureError::NoHost(..)
            | CaptureError::NotEmpty(_)
            | CaptureError::NothingToLog
            | CaptureError::Requests(_)),
        )) => Err(PyValueError::new_err(error.to_string())),
        Ok(Err(CaptureError::Run(RunError::Controller(failure)))) => {
            Err(ControllerError::new_err(format!("{name}, seed {seed}: {failure}")))
        }
        Ok(Err(CaptureError::Run(RunError::Cancelled))) => Err(Cancelled::new_err("the run was cancelled")),
        Ok(Err(CaptureError::Run(error))) => Err(ScenarioError::new_err(format!("{name}: {error}"))),
        Ok(Ok((Err(error), _))) => Err(defect(&error.to_string())),
        Ok(Ok((Ok(summary_json), series))) => Ok(RunOutput { summary_json, series: of_series(py, series)? }),
    }
}

/// The system's message for an error, without its number, which Python adds.
fn words_of(error: &std::io::Error) -> String {
    let words = error.to_string();
    words.split(" (os error").next().unwrap_or_default().to_owned()
}

//! The Linux gateway: `paceline gateway`.

use crate::{InternalError, LiveError, panics};
use paceline_live::gateway::{self, GatewayError, GatewayOptions, RawOptions};
use paceline_live::path::Stop;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Maximum intervals that wait to be read; the oldest are dropped.
const MAX_INTERVALS: usize = 100;

/// A gateway whose options have been read and checked.
#[pyclass(frozen, module = "paceline._core")]
pub struct Gateway {
    options: GatewayOptions,
    stop: Stop,
    shown: Mutex<Vec<String>>,
}

fn refused(error: &GatewayError) -> PyErr {
    match error {
        GatewayError::Options(_) | GatewayError::NoInterface { .. } => PyValueError::new_err(error.to_string()),
        other => LiveError::new_err(other.to_string()),
    }
}

/// Drops for good all privileges that a gateway does not need, for the calling thread and those that it starts
/// afterwards.
#[pyfunction]
pub fn keep_gateway_privileges() -> PyResult<()> {
    gateway::privileges::keep_needed().map_err(|error| refused(&error))
}

fn defect(what: &str) -> PyErr {
    InternalError::new_err(format!("Paceline has a defect: {what}. Please report it."))
}

#[pymethods]
impl Gateway {
    /// From its options as text, in a JSON object.
    #[new]
    fn new(words_json: &str) -> PyResult<Gateway> {
        let words: RawOptions =
            serde_json::from_str(words_json).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let options = words.options().map_err(|error| refused(&error))?;
        Ok(Gateway { options, stop: Stop::new()?, shown: Mutex::new(Vec::new()) })
    }

    /// Runs until it is stopped or its time is over, without the interpreter lock. Call it once. Returns the report, as
    /// JSON.
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        let mut show = |status: &gateway::Status| {
            let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            if shown.len() >= MAX_INTERVALS {
                shown.remove(0);
            }
            shown.extend(serde_json::to_string(status));
        };
        match py.detach(|| panics::guarded(|| gateway::run(&self.options, &self.stop, &mut show))) {
            Err(panic) => Err(defect(&panic)),
            Ok(Err(error)) => Err(refused(&error)),
            Ok(Ok(report)) => serde_json::to_string(&report).map_err(|error| defect(&error.to_string())),
        }
    }

    /// Ends `run` soon.
    fn stop(&self) {
        self.stop.stop();
    }

    /// The intervals since the last call, each as JSON.
    fn shown(&self) -> Vec<String> {
        std::mem::take(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

//! Environments for reinforcement learning: several at once, stepped without the interpreter lock, with observations in
//! NumPy's memory.

use crate::scenario::Scenario;
use crate::{ControllerError, InternalError, ScenarioError, panics};
use paceline_live::worker_pool::WorkerPool;
use paceline_sim::RunError;
use paceline_sim::environment::{Acts, Driver, Environment, FEATURES, Step, Stepped};
use paceline_units::Span;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

/// Names of a step's features, in order.
#[pyfunction]
pub fn features() -> Vec<&'static str> {
    FEATURES.to_vec()
}

/// Several environments of one scenario, each with its own run.
#[pyclass(frozen, module = "paceline._core")]
pub struct Environments {
    /// None: closed.
    pool: Mutex<Option<WorkerPool<Environment>>>,
    many: usize,
    duration_s: f64,
}

/// Result of a step or a reset.
type StepResult = Result<Stepped, RunError>;

#[pymethods]
impl Environments {
    /// `many` environments of a scenario, in which the agent controls `flow`: `acts` is "window" or "rate", and a step
    /// lasts `step_s` seconds or `step_segments` acknowledged segments. `workers` threads, including the caller's, step
    /// them, each its own. With a `baseline`, the controller of that name drives the flow, and decisions have no
    /// effect.
    #[new]
    #[pyo3(signature = (scenario, flow, acts, many = 1, step_s = None, step_segments = None, workers = 1, baseline = None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        flow: &str,
        acts: &str,
        many: usize,
        step_s: Option<f64>,
        step_segments: Option<u32>,
        workers: usize,
        baseline: Option<String>,
    ) -> PyResult<Environments> {
        let acts = match acts {
            "window" => Acts::Window,
            "rate" => Acts::Rate,
            other => return Err(PyValueError::new_err(format!("acts = {other}: window or rate"))),
        };
        let step = match (step_s, step_segments) {
            (Some(seconds), None) if (1e-5..=1e4).contains(&seconds) => Step::Time(Span::from_secs_f64(seconds)),
            (None, Some(segments)) if segments > 0 => Step::Segments(segments),
            _ => return Err(PyValueError::new_err("a step is of 10 us to 10000 s, or of one segment or more")),
        };
        let driver = baseline.map_or(Driver::Agent(acts), Driver::Baseline);
        let all = scenario.environments(py, many.max(1), (flow, &driver, step))?;
        let duration_s = all[0].duration().as_secs_f64();
        let many = all.len();
        Ok(Environments { pool: Mutex::new(Some(WorkerPool::new(all, workers)?)), many, duration_s })
    }

    /// Number of environments.
    #[getter]
    fn many(&self) -> usize {
        self.many
    }

    /// Duration of a run, in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.duration_s
    }

    /// Begins runs in these environments with these seeds, and writes the observations at the flow's start to their
    /// rows of `told`.
    #[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
    fn reset(&self, py: Python<'_>, which: Vec<usize>, seeds: Vec<u64>, told: PyBuffer<f64>) -> PyResult<()> {
        if which.len() != seeds.len() || which.iter().any(|place| *place >= self.many) {
            return Err(PyValueError::new_err(format!("environments 0 to {}, and a seed for each", self.many - 1)));
        }
        let done = self.each(py, move |place, environment| {
            let of = which.iter().position(|wanted| *wanted == place)?;
            Some(environment.reset(seeds[of]))
        })?;
        self.fill(py, done, &told, None)
    }

    /// A step in each environment whose decision is not NaN; `decisions` are in segments or bit/s. Writes observations
    /// to the rows of `told`, and to those of `ends` whether the flow has sent all its data, and whether the run is
    /// over.
    #[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
    fn step(&self, py: Python<'_>, decisions: PyBuffer<f64>, told: PyBuffer<f64>, ends: PyBuffer<u8>) -> PyResult<()> {
        let decisions = decisions.to_vec(py)?;
        if decisions.len() != self.many {
            return Err(PyValueError::new_err(format!("{} decisions for {} environments", decisions.len(), self.many)));
        }
        let decisions: Arc<[f64]> = decisions.into();
        let done = self.each(py, move |place, environment| {
            let decision = decisions[place];
            (!decision.is_nan()).then(|| environment.step(decision))
        })?;
        self.fill(py, done, &told, Some(&ends))
    }

    /// The summary of this environment's run as JSON; ends the run. None unless the run is over or its flow is done.
    fn summary_json(&self, py: Python<'_>, place: usize) -> PyResult<Option<String>> {
        let mut done = self.each(py, move |at, environment| (at == place).then(|| environment.summary()))?;
        let found = if place < done.len() { done.swap_remove(place) } else { None };
        let summary = found.unwrap_or(Ok(None)).map_err(|error| wrong(place, error))?;
        let written = summary.map(|summary| serde_json::to_string(&summary)).transpose();
        written.map_err(defect)
    }

    /// Ends the threads and drops the environments; later steps raise an error.
    fn close(&self, py: Python<'_>) {
        py.detach(|| *self.pool.lock().unwrap_or_else(PoisonError::into_inner) = None);
    }
}

impl Environments {
    /// Does the same in each environment, with one thread per worker and without the interpreter lock; a panic becomes
    /// an exception.
    fn each<R: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl Fn(usize, &mut Environment) -> R + Clone + Send + 'static,
    ) -> PyResult<Vec<R>> {
        let done = py.detach(|| {
            panics::guarded(|| {
                let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
                let pool = pool.as_mut().ok_or("these environments are closed: make them anew")?;
                pool.each(move |place, one| panics::guarded(|| work(place, one)))
            })
        });
        let steps = done.map_err(defect)?.map_err(PyValueError::new_err)?;
        steps.into_iter().collect::<Result<_, _>>().map_err(defect)
    }

    fn fill(
        &self,
        py: Python<'_>,
        done: Vec<Option<StepResult>>,
        features: &PyBuffer<f64>,
        ends: Option<&PyBuffer<u8>>,
    ) -> PyResult<()> {
        let width = FEATURES.len();
        let (mut rows, mut flags) = (features.to_vec(py)?, ends.map(|ends| ends.to_vec(py)).transpose()?);
        if rows.len() != self.many * width || flags.as_ref().is_some_and(|flags| flags.len() != 2 * self.many) {
            let shapes = format!("told has the shape ({}, {width}), ends ({}, 2)", self.many, self.many);
            return Err(PyValueError::new_err(shapes));
        }
        for (place, stepped) in done.into_iter().enumerate() {
            let Some(stepped) = stepped else { continue };
            let stepped = stepped.map_err(|error| wrong(place, error))?;
            rows[place * width..][..width].copy_from_slice(&stepped.features);
            if let Some(flags) = &mut flags {
                flags[2 * place] = stepped.is_done.into();
                flags[2 * place + 1] = stepped.is_over.into();
            }
        }
        features.copy_from_slice(py, &rows)?;
        if let (Some(ends), Some(flags)) = (ends, flags) {
            ends.copy_from_slice(py, &flags)?;
        }
        Ok(())
    }
}

/// The exception for a defect in Paceline.
fn defect(what: impl Display) -> PyErr {
    InternalError::new_err(format!("Paceline has a defect: {what}. Please report it."))
}

/// The exception for an error of the environment at this place.
fn wrong(place: usize, error: RunError) -> PyErr {
    match error {
        RunError::Controller(failure) => ControllerError::new_err(failure.to_string()),
        RunError::Cancelled => PyValueError::new_err(format!("environment {place} has no run: reset it first")),
        other => ScenarioError::new_err(other.to_string()),
    }
}

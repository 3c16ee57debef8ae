//! A controller of TFRC's machine in Python.

use super::events::{self, PathView};
use super::window::MAX_RATE;
use super::{Base, Callbacks, GaugeNames, usable};
use paceline_control::foreign::{ControllerArgs, Paced};
use paceline_control::tfrc::MAX_BACKOFF;
use paceline_control::{Controller, Gauges, PathView as View, RateController as Kind, Settings, TfrcEvent};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Base of controllers that set a rate based on a receiver's reports.
#[pyclass(extends = Base, subclass, module = "paceline")]
#[derive(Debug)]
pub struct RateController {
    /// In bit/s.
    rate: f64,
    /// In bit/s; None means the rate.
    pacing: Option<f64>,
    in_slow_start: bool,
}

#[pymethods]
impl RateController {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        py: Python<'_>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let own = RateController { rate: 1.0, pacing: None, in_slow_start: true };
        Ok(PyClassInitializer::from(Base::by_hand(py)?).add_subclass(own))
    }

    #[getter]
    fn rate_bps(&self) -> f64 {
        self.rate
    }

    #[setter]
    fn set_rate_bps(&mut self, value: f64) -> PyResult<()> {
        self.rate = usable("rate_bps", value, 1.0, MAX_RATE, "bit/s")?;
        Ok(())
    }

    #[getter]
    fn pacing_bps(&self) -> f64 {
        self.pacing.unwrap_or(self.rate)
    }

    #[setter]
    fn set_pacing_bps(&mut self, value: Option<f64>) -> PyResult<()> {
        self.pacing = value.map(|value| usable("pacing_bps", value, 1.0, MAX_RATE, "bit/s")).transpose()?;
        Ok(())
    }

    #[getter]
    fn in_slow_start(&self) -> bool {
        self.in_slow_start
    }

    #[setter]
    fn set_in_slow_start(&mut self, value: bool) {
        self.in_slow_start = value;
    }
}

/// A Python object as a controller.
struct Called {
    callbacks: Callbacks,
    object: Py<RateController>,
    on_feedback: Py<PyAny>,
    settings: Settings,
    /// Both in bytes/s.
    rate: f64,
    pacing: f64,
    in_slow_start: bool,
}

/// A controller around an object whose `__init__` has run.
pub fn controller(
    object: &Bound<'_, RateController>,
    args: &ControllerArgs,
    gauges: GaugeNames,
    settings: Settings,
) -> PyResult<Box<Paced>> {
    Ok(Box::new(Called {
        callbacks: Callbacks::new(args, gauges),
        on_feedback: object.as_any().getattr("on_feedback")?.unbind(),
        settings,
        rate: 1.0,
        pacing: 1.0,
        in_slow_start: true,
        object: object.clone().unbind(),
    }))
}

impl Controller for Called {
    type Feedback = TfrcEvent;

    fn on_feedback(&mut self, feedback: &TfrcEvent, path: &View) {
        let (rate, pacing, in_slow_start) = self.callbacks.call(path.now, |py| {
            self.on_feedback.call1(py, (events::of_tfrc(py, feedback)?, PathView::of(path)))?;
            let own = self.object.borrow(py);
            Ok((own.rate, own.pacing.unwrap_or(own.rate), own.in_slow_start))
        });
        // A sender must not be silent for longer (RFC 5348 section 4.3).
        let min = f64::from(path.segment.max(1)) / MAX_BACKOFF;
        (self.rate, self.pacing, self.in_slow_start) = ((rate / 8.0).max(min), (pacing / 8.0).max(min), in_slow_start);
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.bits_per_second("allowed", self.rate * 8.0);
        self.callbacks.gauges(self.object.as_any(), to);
    }
}

impl Kind for Called {
    fn rate(&self) -> f64 {
        self.rate
    }

    fn pacing(&self) -> f64 {
        self.pacing
    }

    fn in_slow_start(&self) -> bool {
        self.in_slow_start
    }

    fn settings(&self) -> Settings {
        self.settings
    }
}

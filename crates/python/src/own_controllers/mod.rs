//! Controllers written in Python: a class becomes a scheme, an instance a controller.
//!
//! The machine reads a controller's window or rate for every packet, so these values are stored in the object's Rust
//! half. The base classes [`window::WindowController`], [`rate::RateController`] and [`media::MediaController`] reject
//! unusable values on assignment, and only events call Python. Start reading at `window.rs`.

pub mod events;
pub mod media;
pub mod random;
pub mod rate;
pub mod scheme;
pub mod window;

use paceline_control::foreign::ControllerArgs;
use paceline_control::{Failure, GaugeUnit, Gauges};
use paceline_units::Time;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use random::Random;
use std::cell::Cell;

/// Adds the classes to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    events::add(module)?;
    module.add_class::<random::Random>()?;
    module.add_class::<scheme::Scheme>()?;
    module.add_class::<Base>()?;
    module.add_class::<window::WindowController>()?;
    module.add_class::<rate::RateController>()?;
    module.add_class::<media::MediaController>()
}

/// The attributes that every controller's object has before its own `__init__` runs.
#[pyclass(subclass, get_all, name = "_Controller", module = "paceline._core")]
#[derive(Debug)]
pub struct Base {
    pub random: Py<Random>,
    pub flow: String,
    pub profile: &'static str,
}

impl Base {
    /// For an object that is created directly, as in tests.
    pub fn by_hand(py: Python<'_>) -> PyResult<Base> {
        let random = Py::new(py, Random::of(paceline_random::Stream::new(0, "controller")))?;
        Ok(Base { random, flow: String::new(), profile: paceline_control::Profile::Rfc.name() })
    }
}

/// Checks that a machine can use a number that a controller has set.
pub fn usable(name: &str, value: f64, min: f64, max: f64, unit: &str) -> PyResult<f64> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(PyValueError::new_err(format!("{name} = {value} is not from {min} to {max:e} {unit}")))
}

/// The gauges of one scheme: attributes by name and unit.
pub type GaugeNames = &'static [(&'static str, GaugeUnit)];

/// What all controllers in Python share: their flow, their gauges, and how they fail.
#[derive(Debug)]
pub struct Callbacks {
    flow: String,
    gauges: GaugeNames,
    /// Time of the last call, for errors when gauges are read.
    now: Cell<Time>,
}

impl Callbacks {
    pub fn new(args: &ControllerArgs, gauges: GaugeNames) -> Callbacks {
        Callbacks { flow: args.flow.clone(), gauges, now: Cell::new(Time::ZERO) }
    }

    /// Calls into Python; an exception ends the run.
    #[inline]
    pub fn call<T>(&self, now: Time, work: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
        self.now.set(now);
        match Python::attach(work) {
            Ok(done) => done,
            Err(error) => self.fail(&error),
        }
    }

    #[cold]
    fn fail(&self, error: &PyErr) -> ! {
        let problem = Python::attach(|py| traceback(py, error));
        Failure { flow: self.flow.clone(), at: self.now.get(), problem }.end_run()
    }

    /// Reports the attributes that the class names as gauges.
    pub fn gauges(&self, object: &Py<PyAny>, to: &mut dyn Gauges) {
        if self.gauges.is_empty() {
            return;
        }
        let values = self.call(self.now.get(), |py| {
            let object = object.bind(py);
            let value = |(name, _): &(&'static str, GaugeUnit)| -> PyResult<f64> {
                Ok(object.getattr(*name)?.extract::<Option<f64>>()?.unwrap_or(f64::NAN))
            };
            self.gauges.iter().map(value).collect::<PyResult<Vec<f64>>>()
        });
        for ((name, unit), value) in self.gauges.iter().zip(values) {
            to.gauge(name, *unit, value);
        }
    }
}

/// An exception as Python shows it.
fn traceback(py: Python<'_>, error: &PyErr) -> String {
    let value = error.value(py);
    // PyO3 keeps the traceback separate from the exception.
    let whole = value.setattr("__traceback__", error.traceback(py));
    let lines = whole
        .and_then(|()| py.import("traceback"))
        .and_then(|module| module.call_method1("format_exception", (value,)))
        .and_then(|lines| lines.extract::<Vec<String>>());
    let text = lines.map_or_else(|_| error.to_string(), |lines| lines.concat());
    format!("\n{}", text.trim_end())
}

/// A method of an object, if it has it.
pub fn method(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Py<PyAny>>> {
    Ok(object.getattr_opt(name)?.map(Bound::unbind))
}

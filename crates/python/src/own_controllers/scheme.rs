//! A Python class as a scheme: its name, its parameters, its needs of the machine, and how its objects are created.

use super::media::{self, MediaController};
use super::random::Random;
use super::rate::{self, RateController};
use super::window::{self, WindowController};
use super::{Base, GaugeNames};
use crate::{ControllerError, InternalError, panics};
use paceline_control::Settings;
use paceline_control::conformance;
use paceline_control::foreign::{ControllerArgs, Foreign, Maker};
use paceline_control::monitor_interval::Every;
use paceline_control::registry;
use paceline_control::rtp::{FeedbackConfig, FeedbackFormat, RtpFeedback};
use paceline_control::{
    Ecn, Failure, GaugeUnit, Kind, Machine, Needs, Parameter, Profile, Recovery, RtpSettings, Scheme as Core, Setting,
};
use paceline_random::Stream;
use paceline_units::Span;
use pyo3::PyClass;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;
use std::path::PathBuf;

const PROFILES: usize = Profile::ALL.len();

/// A scheme supplied by Python.
#[pyclass(frozen, module = "paceline._core")]
#[derive(Debug)]
pub struct Scheme {
    pub core: &'static Core,
}

/// Leaks a value: schemes are few, and every flow refers to its scheme.
fn for_ever<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn text(value: &Value) -> &'static str {
    for_ever(value.as_str().unwrap_or_default().to_owned())
}

fn wrong(what: &str) -> PyErr {
    PyValueError::new_err(format!("a scheme's description: {what}"))
}

fn unit(name: &str) -> PyResult<GaugeUnit> {
    Ok(match name {
        "" | "1" => GaugeUnit::One,
        "packets" => GaugeUnit::Packets,
        "bytes" => GaugeUnit::Bytes,
        "s" => GaugeUnit::Seconds,
        "bps" => GaugeUnit::BitsPerSecond,
        _ => return Err(wrong(&format!("there is no unit {name} of gauges"))),
    })
}

fn parameter(of: &Value) -> PyResult<Parameter> {
    let number = |key: &str| of[key].as_f64().ok_or_else(|| wrong(key));
    let (name, doc) = (text(&of["name"]), text(&of["doc"]));
    Ok(match of["kind"].as_str() {
        Some("number") => {
            let bounds = (number("least")?, number("most")?);
            Parameter::number(name, [number("default")?; PROFILES], bounds, text(&of["unit"]), doc)
        }
        Some("whole") => {
            Parameter::whole(name, [number("default")?; PROFILES], (number("least")?, number("most")?), doc)
        }
        Some("switch") => Parameter::switch(name, [of["default"].as_bool().unwrap_or(false); PROFILES], doc),
        Some("choice") => {
            let names: Vec<&'static str> = of["choices"].as_array().into_iter().flatten().map(text).collect();
            let place = names.iter().position(|name| of["default"].as_str() == Some(name));
            let default = place.ok_or_else(|| wrong("default"))? as f64;
            Parameter::choice(name, [default; PROFILES], for_ever(names), doc)
        }
        _ => return Err(wrong("kind")),
    })
}

fn needs(of: &Value) -> Needs {
    let is = |name: &str| of["needs"].as_array().is_some_and(|all| all.iter().any(|need| need == name));
    let ecn = match of["ecn"].as_str() {
        Some("classic") => Ecn::Classic,
        Some("dctcp") => Ecn::Dctcp,
        Some("accurate") => Ecn::Accurate,
        _ => Ecn::Off,
    };
    Needs {
        deliveries: is("deliveries"),
        pacing: is("pacing") || is("rate_leads"),
        rate_clocked: is("rate_leads"),
        ecn,
        l4s: is("l4s"),
    }
}

/// How often it is called, if not at each event.
fn every(of: &Value) -> PyResult<Option<Every>> {
    Ok(match &of["every"] {
        Value::Null => None,
        Value::String(round) if round == "round trip" => Some(Every::RoundTrip),
        Value::Number(seconds) => Some(Every::Time(Span::from_secs_f64(seconds.as_f64().unwrap_or(0.0)))),
        other => return Err(wrong(&format!("every {other}"))),
    })
}

fn rtp_settings(of: &Value) -> RtpSettings {
    let usual = RtpSettings::default();
    let span = |key: &str| of[key].as_f64().map(Span::from_secs_f64);
    let format = match of["feedback_format"].as_str() {
        Some("twcc") => FeedbackFormat::Transport,
        _ => FeedbackFormat::Rfc8888,
    };
    let reports = of["feedback"] == "reports";
    RtpSettings {
        probes: of["measures_bottleneck"] == true,
        silence: of["silence"].as_u64().unwrap_or(0) as u32,
        feedback: if reports { RtpFeedback::Reports } else { RtpFeedback::Arrivals },
        feedback_interval: span("feedback_interval_s").unwrap_or(usual.feedback_interval),
        feedback_config: FeedbackConfig { format, ..FeedbackConfig::PLAIN },
        report_sent: of["tells_sending"] == true,
        tick: span("timer_s").unwrap_or(Span::ZERO),
        burst: span("burst_s").unwrap_or(Span::ZERO),
        l4s: of["l4s"] == true,
        even: of["even"] == true,
        ..usual
    }
}

/// Creates objects of one class.
struct Objects {
    class: Py<PyAny>,
    parameters: &'static [Parameter],
    gauges: GaugeNames,
}

impl Objects {
    /// A new object with every controller's attributes, whose `__init__` has run.
    fn object<'py, C: PyClass>(
        &self,
        py: Python<'py>,
        args: &ControllerArgs,
        stream: Stream,
    ) -> PyResult<Bound<'py, C>> {
        let class = self.class.bind(py);
        let object = class.call_method1("__new__", (class,))?.cast_into::<C>()?;
        let random = Py::new(py, Random::of(stream))?;
        *object.as_any().cast::<Base>()?.borrow_mut() =
            Base { random, flow: args.flow.clone(), profile: args.profile.name() };
        let values = PyDict::new(py);
        for (parameter, value) in self.parameters.iter().zip(&args.values) {
            match (parameter.kind, parameter.setting(*value)) {
                (Kind::Whole { .. }, Setting::Number(number)) => values.set_item(parameter.name, number as i64)?,
                (_, Setting::Number(number)) => values.set_item(parameter.name, number)?,
                (_, Setting::Switch(on)) => values.set_item(parameter.name, on)?,
                (_, Setting::Name(name)) => values.set_item(parameter.name, name)?,
            }
        }
        object.as_any().call_method("__init__", (), Some(&values))?;
        Ok(object)
    }
}

/// The maker for each kind: creates an object, and a controller around it.
macro_rules! maker {
    ($objects:ident, $class:ident, $module:ident, $settings:expr) => {{
        let settings = $settings;
        Box::new(move |args: &ControllerArgs, stream: Stream| {
            Python::attach(|py| {
                let object = $objects.object::<$class>(py, args, stream);
                object
                    .and_then(|object| $module::controller(&object, args, $objects.gauges, settings))
                    .map_err(|error| super::traceback(py, &error))
            })
        })
    }};
}

#[pymethods]
impl Scheme {
    /// From a class and its description as JSON: see `paceline.own_controllers`.
    #[new]
    fn new(class: Py<PyAny>, description: &str) -> PyResult<Scheme> {
        let of: Value = serde_json::from_str(description).map_err(|error| wrong(&error.to_string()))?;
        let parameters: Vec<Parameter> =
            of["parameters"].as_array().into_iter().flatten().map(parameter).collect::<PyResult<_>>()?;
        let parameters: &'static [Parameter] = for_ever(parameters);
        let own: Vec<(&'static str, GaugeUnit)> = of["gauges"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, of)| Ok((&**for_ever(name.clone()), unit(of.as_str().unwrap_or_default())?)))
            .collect::<PyResult<_>>()?;
        let kind = of["machine"].as_str();
        let mut all = match kind {
            Some("tcp") => vec![("cwnd", GaugeUnit::Packets), ("ssthresh", GaugeUnit::Packets)],
            _ => vec![("allowed", GaugeUnit::BitsPerSecond)],
        };
        all.extend(&own);
        let objects = Objects { class, parameters, gauges: for_ever(own) };
        let (machine, maker) = match kind {
            Some("tcp") => {
                let found = of["recovery"].as_str().and_then(Recovery::from_name);
                let recovery = found.ok_or_else(|| wrong("recovery"))?;
                let needs = needs(&of);
                let every = every(&of)?;
                // Profiles ns2-linux and linux each have a single way of recovery.
                let machine = Machine::Tcp([recovery, recovery, Recovery::Sack, Recovery::Rack]);
                (machine, Maker::Window(maker!(objects, WindowController, window, (needs, every)), needs))
            }
            Some("tfrc") => {
                let settings = Settings::PLAIN;
                (Machine::Tfrc, Maker::Rate(maker!(objects, RateController, rate, settings), settings))
            }
            Some("rtp") => {
                let settings = rtp_settings(&of);
                (Machine::Rtp, Maker::Media(maker!(objects, MediaController, media, settings), settings))
            }
            _ => return Err(wrong("machine")),
        };
        let foreign: &'static Foreign = for_ever(Foreign { gauges: all, maker });
        Ok(Scheme {
            core: for_ever(Core {
                name: text(&of["name"]),
                summary: text(&of["summary"]),
                source: text(&of["source"]),
                machine,
                parameters,
                foreign: Some(foreign),
            }),
        })
    }

    /// From a controller in a shared library, whose code may run from now on. Raises ValueError.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
    fn library(path: PathBuf, controller: Option<&str>, name: &str) -> PyResult<Scheme> {
        let core = paceline_library::load(&path, controller, name);
        Ok(Scheme { core: core.map_err(|error| PyValueError::new_err(format!("`{name}` {error}")))? })
    }

    /// Its description, in the form of `paceline.controllers()`, as JSON.
    fn json(&self) -> String {
        paceline_sim::describe::scheme(self.core).to_string()
    }

    /// Its name in scenarios.
    #[getter]
    fn name(&self) -> &'static str {
        self.core.name
    }
}

/// Passes `events` events with extreme values to a new controller. Raises ValueError if a machine cannot use its state.
#[pyfunction]
#[pyo3(signature = (cc, seed, events, own = None))]
pub fn extremes(py: Python<'_>, cc: &str, seed: u64, events: u32, own: Option<Py<Scheme>>) -> PyResult<()> {
    let core = match own {
        Some(own) => own.get().core,
        None => registry::scheme(cc).map_err(|error| PyValueError::new_err(error.to_string()))?,
    };
    let outcome =
        py.detach(|| panics::guarded(|| Failure::caught(|| conformance::extremes(core, Profile::Rfc, seed, events))));
    match outcome {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(unfit))) => Err(PyValueError::new_err(unfit.to_string())),
        Ok(Err(failure)) => Err(ControllerError::new_err(failure.problem)),
        Err(panic) => {
            Err(InternalError::new_err(format!("Paceline has a defect: {panic}. Please report it with {cc}.")))
        }
    }
}

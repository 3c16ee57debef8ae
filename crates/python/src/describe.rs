//! What can be written in a scenario.

use paceline_control::{Idle, Kind, Parameter, Profile, Scheme, Setting};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// The JSON Schema of scenario files.
#[pyfunction]
pub fn schema_json() -> String {
    paceline_sim::scenario::schema_json()
}

/// A parameter's value as a scenario has it.
fn shown(parameter: &Parameter, value: f64) -> Value {
    match parameter.setting(value) {
        Setting::Number(number) => json!(number),
        Setting::Switch(on) => json!(on),
        Setting::Name(name) => json!(name),
    }
}

/// When a parameter changes nothing, in words.
fn no_effect(scheme: &Scheme, idle: Idle) -> String {
    let other = scheme.parameters.iter().find(|p| p.name == idle.other());
    let text = |value: f64| other.map_or_else(|| value.to_string(), |p| p.setting(value).to_string());
    match idle {
        Idle::Beside(name, value) => format!("with {name} = {}", text(value)),
        Idle::Unless(name, value) => format!("unless {name} = {}", text(value)),
    }
}

/// The registered schemes as JSON.
#[pyfunction]
pub fn schemes() -> String {
    Value::Array(paceline_control::registry::schemes().map(described).collect()).to_string()
}

/// A scheme with its parameters.
pub fn described(scheme: &Scheme) -> Value {
    let parameters: Vec<Value> = scheme.parameters.iter().map(|p| parameter(scheme, p)).collect();
    let machine = scheme.machine.name();
    let (name, summary, source) = (scheme.name, scheme.summary, scheme.source);
    json!({ "name": name, "summary": summary, "source": source, "machine": machine, "params": parameters })
}

fn parameter(scheme: &Scheme, p: &Parameter) -> Value {
    let default = |profile: Profile| shown(p, p.default[profile as usize]);
    let defaults: serde_json::Map<String, Value> =
        Profile::ALL.iter().map(|&profile| (profile.name().to_owned(), default(profile))).collect();
    let mut entry = json!({
        "name": p.name,
        "default": default(Profile::Rfc),
        "defaults": defaults,
        "unit": p.unit(),
        "doc": p.doc,
    });
    let (kind, bounds) = match p.kind {
        Kind::Number { min, max, .. } => ("number", Some((min, max))),
        Kind::Whole { min, max } => ("whole", Some((min, max))),
        Kind::Switch => ("switch", None),
        Kind::Choice(names) => {
            entry["names"] = json!(names);
            ("choice", None)
        }
    };
    entry["kind"] = json!(kind);
    if let Some((min, max)) = bounds {
        entry["min"] = json!(min);
        entry["max"] = json!(max);
    }
    if let Some(idle) = p.idle {
        entry["no_effect"] = json!(no_effect(scheme, idle));
    }
    entry
}

/// The measures and labels that the rows of each table can have, as JSON.
#[pyfunction]
pub fn columns_json() -> String {
    json!(paceline_sim::summary::columns()).to_string()
}

/// What the results of this core depend on beside scenario and seed: its version, and a hash of its sources.
#[pyfunction]
pub fn build() -> String {
    format!("{}+{}", env!("CARGO_PKG_VERSION"), env!("PACELINE_SOURCES"))
}

/// The version of the core; one with the checks of the dev profile says so, for it is not to be timed.
#[pyfunction]
pub fn version() -> &'static str {
    if cfg!(debug_assertions) { concat!(env!("CARGO_PKG_VERSION"), "+dev") } else { env!("CARGO_PKG_VERSION") }
}

//! What can be written in a scenario.

use paceline_control::Profile;
use pyo3::prelude::*;
use serde_json::{Value, json};

/// The JSON Schema of scenario files.
#[pyfunction]
pub fn schema_json() -> String {
    paceline_sim::scenario::schema_json()
}

/// The registered schemes as JSON.
#[pyfunction]
pub fn schemes() -> String {
    let list: Vec<Value> = paceline_control::registry::schemes()
        .map(|scheme| {
            let parameters: Vec<Value> = scheme
                .parameters
                .iter()
                .map(|p| {
                    let defaults: serde_json::Map<String, Value> = Profile::ALL
                        .iter()
                        .map(|profile| (profile.name().to_owned(), json!(p.default[*profile as usize])))
                        .collect();
                    json!({
                        "name": p.name,
                        "default": p.default[Profile::Rfc as usize],
                        "defaults": defaults,
                        "min": p.min,
                        "max": p.max,
                        "unit": p.unit,
                        "doc": p.doc,
                    })
                })
                .collect();
            json!({ "name": scheme.name, "summary": scheme.summary, "source": scheme.source, "params": parameters })
        })
        .collect();
    Value::Array(list).to_string()
}

/// The version of the core.
#[pyfunction]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

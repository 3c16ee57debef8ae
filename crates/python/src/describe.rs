//! What a scenario may contain, and what results contain.

use pyo3::prelude::*;

/// The JSON Schema of scenario files.
#[pyfunction]
pub fn schema_json() -> String {
    paceline_scenario::schema_json()
}

/// The registered schemes as JSON.
#[pyfunction]
pub fn schemes() -> String {
    paceline_sim::describe::schemes().to_string()
}

/// The measures and labels that the rows of each table can have, as JSON.
#[pyfunction]
pub fn columns_json() -> String {
    paceline_sim::describe::columns().to_string()
}

/// The measures by table, with units, types, scatter and meanings, as JSON.
#[pyfunction]
pub fn measures_json() -> String {
    paceline_sim::measures::describe().to_string()
}

/// What this core's results depend on, besides scenario and seed: its version, and a hash of its sources.
#[pyfunction]
pub fn build() -> String {
    format!("{}+{}", env!("CARGO_PKG_VERSION"), env!("PACELINE_SOURCES"))
}

/// The core's version. A build with the dev profile's checks says so, because timing it would mislead.
#[pyfunction]
pub fn version() -> &'static str {
    paceline_sim::describe::VERSION
}

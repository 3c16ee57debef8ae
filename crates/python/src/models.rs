//! Throughput models over columns of numbers.

use crate::{InternalError, panics};
use paceline_control::models::catalog;
use paceline_units::{Rate, Size, Span};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

/// The models as JSON.
#[pyfunction]
pub fn models() -> String {
    paceline_sim::describe::models().to_string()
}

fn numbers(column: &[u8]) -> Vec<f64> {
    column.chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().expect("eight bytes"))).collect()
}

/// Evaluates a model, or its inverse, without the interpreter lock. Columns are little-endian 64-bit floats.
#[pyfunction]
#[pyo3(signature = (name, columns, *, inverse = false))]
#[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
pub fn model<'py>(
    py: Python<'py>,
    name: &str,
    columns: Vec<PyBackedBytes>,
    inverse: bool,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let columns: Vec<Vec<f64>> = columns.iter().map(|c| numbers(c)).collect();
    let found = py
        .detach(|| panics::guarded(|| catalog::over(name, &columns, inverse)))
        .map_err(|what| InternalError::new_err(format!("model `{name}`: {what}; please report it")))?
        .map_err(PyValueError::new_err)?;
    let bytes = |column: &Vec<f64>| column.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    Ok(found.iter().map(|column| PyBytes::new(py, &bytes(column))).collect())
}

/// A quantity as a number in its unit: "s" seconds, "B" bytes, "bit/s" bits per second.
#[pyfunction]
pub fn quantity(text: &str, unit: &str) -> PyResult<f64> {
    let parsed = match unit {
        "s" => text.parse::<Span>().map(Span::as_secs_f64),
        "B" => text.parse::<Size>().map(|size| size.bytes() as f64),
        "bit/s" => text.parse::<Rate>().map(Rate::bps),
        other => return Err(PyValueError::new_err(format!("unit = {other}: it must be s, B or bit/s"))),
    };
    parsed.map_err(|error| PyValueError::new_err(error.to_string()))
}

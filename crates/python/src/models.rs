//! Throughput models over columns of numbers.

use crate::{InternalError, panics};
use paceline_control::models::catalog::{self, Argument, Default, Evaluate, MODELS, Model};
use paceline_units::{Rate, Size, Span};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use serde_json::{Value, json};

/// The models as JSON.
#[pyfunction]
pub fn models() -> String {
    let argument = |a: &Argument| {
        let default = match a.default {
            Default::Required => Value::Null,
            Default::Value(value) if value.is_finite() => json!(value),
            Default::Value(_) => json!("inf"),
            Default::FourRtt => json!("4 rtt_s"),
        };
        json!({ "name": a.name, "doc": a.doc, "default": default })
    };
    let model = |m: &Model| {
        json!({
            "name": m.name,
            "summary": m.summary,
            "source": m.source,
            "arguments": m.arguments.iter().map(argument).collect::<Vec<_>>(),
            "results": m.results,
            "inverse": m.inverse.is_some(),
        })
    };
    Value::Array(MODELS.iter().map(model).collect()).to_string()
}

fn named(name: &str) -> PyResult<&'static Model> {
    catalog::model(name).ok_or_else(|| {
        let known: Vec<&str> = MODELS.iter().map(|m| m.name).collect();
        PyValueError::new_err(format!("there is no model `{name}`; there are {}", known.join(", ")))
    })
}

fn numbers(column: &[u8]) -> Vec<f64> {
    column.chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().expect("eight bytes"))).collect()
}

/// Row by row: `columns` hold the arguments as little-endian 64-bit floats, all of one length; so do the results.
fn evaluate(evaluate: Evaluate, results: usize, columns: &[Vec<f64>]) -> Result<Vec<Vec<u8>>, String> {
    let rows = columns[0].len();
    let mut found = vec![Vec::with_capacity(rows * 8); results];
    let (mut row, mut to) = (vec![0.0; columns.len()], vec![0.0; results]);
    for i in 0..rows {
        for (slot, column) in row.iter_mut().zip(columns) {
            *slot = column[i];
        }
        evaluate(&row, &mut to).map_err(|error| error.to_string())?;
        for (column, value) in found.iter_mut().zip(&to) {
            column.extend_from_slice(&value.to_le_bytes());
        }
    }
    Ok(found)
}

/// Evaluates a model, or its inverse, without the interpreter lock.
#[pyfunction]
#[pyo3(signature = (name, columns, *, inverse = false))]
#[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
pub fn model<'py>(
    py: Python<'py>,
    name: &str,
    columns: Vec<PyBackedBytes>,
    inverse: bool,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let model = named(name)?;
    let (function, results) = match (inverse, model.inverse) {
        (false, _) => (model.evaluate, model.results.len()),
        (true, Some(function)) => (function, 1),
        (true, None) => return Err(PyValueError::new_err(format!("model `{name}` has no inverse"))),
    };
    let columns: Vec<Vec<f64>> = columns.iter().map(|c| numbers(c)).collect();
    if columns.len() != model.arguments.len() || columns.iter().any(|c| c.len() != columns[0].len()) {
        let wanted = model.arguments.len();
        return Err(PyValueError::new_err(format!("model `{name}` wants {wanted} columns of one length")));
    }
    let found = py
        .detach(|| panics::guarded(|| evaluate(function, results, &columns)))
        .map_err(|what| InternalError::new_err(format!("model `{name}`: {what}; please report it")))?
        .map_err(PyValueError::new_err)?;
    Ok(found.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
}

/// A quantity with its unit as a number: "s" seconds, "B" bytes, "bit/s" bits per second.
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

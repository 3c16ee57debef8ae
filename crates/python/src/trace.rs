//! Rate traces, as links read them.

use crate::{InternalError, panics};
use paceline_path::trace::{Format, Trace, read};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A trace's contents: its format, its duration (s), times (s), at each the bytes of an opportunity or the rate from
/// then on (bit/s), and its latencies (s).
type TraceSummary = (&'static str, f64, Vec<f64>, Vec<f64>, Vec<f64>);

/// Reads a trace in the format of this name; without one, the format is detected.
///
/// Raises ValueError for an invalid trace, with the place of the mistake.
#[pyfunction]
#[pyo3(signature = (text, format = None))]
pub fn trace(py: Python<'_>, text: &str, format: Option<&str>) -> PyResult<TraceSummary> {
    let known = |name: &str| Format::ALL.into_iter().find(|format| format.name() == name);
    let format = match format {
        None => None,
        Some(name) => Some(known(name).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            PyValueError::new_err(format!("format {name:?} is none of {names}"))
        })?),
    };
    let found = py.detach(|| panics::guarded(|| read(text, format)));
    let found = found.map_err(|panic| {
        InternalError::new_err(format!("Paceline has a defect: {panic}. Please report it with the trace."))
    })?;
    let found = found.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let name = format.or_else(|| Format::of(text)).map_or("", Format::name);
    Ok(match found {
        Trace::Opportunities(found) => {
            let slots: Vec<_> = found.slots().map(|(at, size)| (at.as_secs_f64(), size.bytes() as f64)).collect();
            let lasts = slots.last().map_or(0.0, |(at, _)| *at);
            let (times, bytes) = slots.into_iter().unzip();
            (name, lasts, times, bytes, Vec::new())
        }
        Trace::Recorded(found) => {
            let times = found.steps.iter().map(|step| step.at.as_secs_f64()).collect();
            let rates = found.steps.iter().map(|step| step.rate.bps()).collect();
            let latencies = found.steps.iter().filter_map(|step| step.latency.map(|it| it.as_secs_f64())).collect();
            (name, found.lasts.as_secs_f64(), times, rates, latencies)
        }
    })
}

//! The extension module `paceline._core`: scenarios, runs and throughput models for Python.
//!
//! Thin on purpose: it turns Python's arguments into calls of `paceline-live` and `paceline-sim`, their errors into
//! exceptions, and their panics into `InternalError`. It releases the interpreter lock during a run.
//! `python/paceline/_core.pyi` has its types. The real-time part needs Linux and is left out elsewhere
//! (`python/paceline/live/linux.py` tells the user). Start reading at `run.rs`.

mod calls;
mod describe;
#[cfg(target_os = "linux")]
mod endpoint;
mod environment;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(target_os = "linux")]
mod live;
mod models;
mod own_controllers;
mod panics;
#[cfg(target_os = "linux")]
mod path;
mod qlog;
mod run;
mod scenario;
mod trace;

use pyo3::prelude::*;

// The package's exceptions, which share one base.
pyo3::import_exception!(paceline.errors, Cancelled);
pyo3::import_exception!(paceline.errors, ControllerError);
pyo3::import_exception!(paceline.errors, InternalError);
pyo3::import_exception!(paceline.errors, LiveError);
pyo3::import_exception!(paceline.errors, PathError);
pyo3::import_exception!(paceline.errors, ScenarioError);

/// Paceline's core.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    panics::keep_to_ourselves();
    module.add_class::<scenario::Scenario>()?;
    module.add_function(wrap_pyfunction!(scenario::edit, module)?)?;
    own_controllers::add(module)?;
    module.add_class::<environment::Environments>()?;
    module.add_function(wrap_pyfunction!(environment::features, module)?)?;
    module.add_function(wrap_pyfunction!(own_controllers::scheme::extremes, module)?)?;
    module.add_class::<calls::CallLog>()?;
    module.add_function(wrap_pyfunction!(qlog::qlog, module)?)?;
    module.add_class::<run::Watch>()?;
    module.add_class::<run::Series>()?;
    module.add_class::<run::RunOutput>()?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(describe::schema_json, module)?)?;
    module.add_function(wrap_pyfunction!(describe::schemes, module)?)?;
    module.add_function(wrap_pyfunction!(describe::version, module)?)?;
    module.add_function(wrap_pyfunction!(describe::build, module)?)?;
    module.add_function(wrap_pyfunction!(describe::columns_json, module)?)?;
    module.add_function(wrap_pyfunction!(describe::measures_json, module)?)?;
    module.add_function(wrap_pyfunction!(models::models, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace, module)?)?;
    module.add_function(wrap_pyfunction!(models::model, module)?)?;
    module.add_function(wrap_pyfunction!(models::quantity, module)?)?;
    #[cfg(target_os = "linux")]
    in_real_time(module)?;
    Ok(())
}

/// Adds what needs Linux.
#[cfg(target_os = "linux")]
fn in_real_time(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<endpoint::SendWatch>()?;
    module.add_class::<endpoint::ListenWatch>()?;
    module.add_function(wrap_pyfunction!(endpoint::receive, module)?)?;
    module.add_class::<endpoint::Server>()?;
    module.add_class::<gateway::Gateway>()?;
    module.add_function(wrap_pyfunction!(gateway::keep_gateway_privileges, module)?)?;
    module.add_class::<path::Path>()?;
    module.add_class::<path::PathOutput>()?;
    module.add_class::<path::PathStop>()?;
    module.add_class::<live::TcpWatch>()?;
    module.add_class::<live::HostWatch>()?;
    module.add_function(wrap_pyfunction!(endpoint::replay, module)?)?;
    module.add_function(wrap_pyfunction!(endpoint::live_mistakes, module)?)?;
    module.add_function(wrap_pyfunction!(endpoint::send, module)?)?;
    module.add_function(wrap_pyfunction!(endpoint::send_rtp, module)?)?;
    module.add_function(wrap_pyfunction!(live::adopt_orphans, module)?)?;
    module.add_function(wrap_pyfunction!(path::path_profiles, module)?)?;
    module.add_function(wrap_pyfunction!(path::run_path, module)?)?;
    Ok(())
}

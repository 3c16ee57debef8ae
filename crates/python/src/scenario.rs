//! Scenarios, with the files they come from.

use crate::own_controllers::scheme::Scheme;
use crate::{InternalError, ScenarioError, panics};
use paceline_live::scenario::{open, trace};
use paceline_scenario::{self as core, Document, Mistake};
use paceline_sim::CheckedScenario;
use paceline_sim::environment::{Driver, Environment, Step};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Prefix of the names of controllers in shared libraries.
const LIBRARY: &str = core::OWN[1];

/// Classes of controllers, by the names that flows use for them.
type Classes = Vec<(String, Py<PyAny>)>;
/// Schemes that are not compiled in.
type Foreign = Vec<&'static paceline_control::Scheme>;
/// Files that have been read, by name.
type Known<'a> = std::collections::BTreeMap<&'a str, &'a str>;

/// A checked scenario; `set` and `set_all` return changed copies.
#[pyclass(frozen, module = "paceline._core")]
pub struct Scenario {
    document: Document,
    file: String,
    base: PathBuf,
    /// The trace files that were read: name and text.
    traces: Vec<(String, String)>,
    /// Classes of controllers that its flows name, other than those in files.
    classes: Classes,
    /// The schemes of its flows that are not compiled in.
    foreign: Foreign,
    /// Its settings without effect.
    warnings: Vec<String>,
    /// What the end of each of its runs cuts off.
    cut_short: Vec<String>,
    /// The series that its runs can record.
    recordable: Vec<&'static str>,
    pub checked: Arc<core::Scenario>,
}

impl Scenario {
    /// Checks a document. `known` are files that have been read before: a scenario keeps the contents that it was
    /// loaded with.
    fn check(
        py: Python<'_>,
        document: Document,
        file: String,
        base: PathBuf,
        known: &[(String, String)],
        classes: Classes,
    ) -> PyResult<Scenario> {
        let (foreign, mut traces) = own_controllers(py, &document, &base, known, &classes)?;
        let mut read = |name: &str| {
            let text = match known.iter().find(|(of, _)| of == name) {
                Some((_, text)) => text.clone(),
                None => trace(&base.join(name))?,
            };
            traces.push((name.to_owned(), text.clone()));
            Ok(text)
        };
        // Errors that only the expanded scenario shows are raised here too, so that no sweep starts with an invalid
        // point.
        let loaded = tried(|| CheckedScenario::check(&document, &mut read, &foreign))?;
        traces.dedup();
        let CheckedScenario { scenario, warnings, cut_short, recordable } = loaded;
        let checked = Arc::new(scenario);
        Ok(Scenario { document, file, base, traces, classes, foreign, warnings, cut_short, recordable, checked })
    }
}

impl Scenario {
    /// A number of environments of it, with `driver` driving a flow in each.
    pub fn environments(
        &self,
        py: Python<'_>,
        many: usize,
        (flow, driver, step): (&str, &Driver, Step),
    ) -> PyResult<Vec<Environment>> {
        let (mut foreign, mut known) = (self.foreign.clone(), self.traces.clone());
        if let Driver::Baseline(name) = driver {
            // The baseline may be a class or a file that no flow of the scenario names.
            let mut document = self.document.clone();
            tried(|| document.hand_over(flow, name))?;
            let (schemes, files) = own_controllers(py, &document, &self.base, &known, &self.classes)?;
            known.extend(files);
            foreign.extend(schemes.into_iter().filter(|own| self.foreign.iter().all(|there| there.name != own.name)));
        }
        let mut read = |name: &str| {
            let text = known.iter().find(|(of, _)| of == name).map(|(_, text)| text.clone());
            text.ok_or_else(|| format!("{name} was not read when the scenario was loaded"))
        };
        let mut make = || Environment::new(self.document.clone(), &mut read, &foreign, (flow, driver.clone(), step));
        (0..many).map(|_| tried(&mut make)).collect()
    }
}

/// The schemes that flows name as classes or files, and the files read for them: name and text.
fn own_controllers(
    py: Python<'_>,
    document: &Document,
    base: &Path,
    known: &[(String, String)],
    classes: &Classes,
) -> PyResult<(Foreign, Vec<(String, String)>)> {
    let (mut foreign, mut read) = (Foreign::new(), Vec::new());
    for (key, cc) in document.controllers() {
        let class = classes.iter().find(|(name, _)| *name == cc).map(|(_, class)| class);
        let own = class.is_some() || core::OWN.iter().any(|prefix| cc.starts_with(prefix));
        if !own || foreign.iter().any(|scheme| scheme.name == cc) {
            continue;
        }
        let find = py.import("paceline.own_controllers")?.getattr("find")?;
        let known: Known<'_> = known.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let found = find.call1((&cc, base.to_string_lossy(), known, class)).and_then(|found| {
            let (scheme, files): (Py<Scheme>, Vec<(String, String)>) = found.extract()?;
            Ok((scheme.get().core, files))
        });
        match found {
            Ok((scheme, files)) => {
                foreign.push(scheme);
                read.extend(files);
            }
            Err(error) if error.is_instance_of::<PyValueError>(py) => {
                let mistake = Mistake::of_lines(key, error.value(py).to_string());
                return Err(ScenarioError::new_err(document.error(vec![mistake]).to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((foreign, read))
}

/// The result of `work`, with its error or panic as an exception.
fn tried<T, E: ToString>(work: impl FnOnce() -> Result<T, E>) -> PyResult<T> {
    match panics::guarded(work) {
        Ok(result) => result.map_err(|error| ScenarioError::new_err(error.to_string())),
        Err(panic) => {
            Err(InternalError::new_err(format!("Paceline has a defect: {panic}. Please report it with the scenario.")))
        }
    }
}

/// Sets and removes keys in scenario text; comments, order and layout stay. `changes` is JSON: pairs of a path and a
/// value; null removes the key.
#[pyfunction]
pub fn edit(text: &str, changes: &str) -> PyResult<String> {
    tried(|| core::edit::edit_by_json(text, changes))
}

/// Sets the values at these paths, one after the other.
fn put(document: &mut Document, values: &[(String, String)]) -> PyResult<()> {
    values.iter().try_for_each(|(path, value)| tried(|| document.set(path, value)))
}

#[pymethods]
impl Scenario {
    /// Reads a TOML file and its trace files. `values` replace values at TOML paths before the check.
    #[staticmethod]
    #[pyo3(signature = (path, values = vec![], classes = vec![]))]
    #[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
    fn load(py: Python<'_>, path: &str, values: Vec<(String, String)>, classes: Classes) -> PyResult<Scenario> {
        let mut document = tried(|| open(Path::new(path)))?;
        put(&mut document, &values)?;
        let base = Path::new(path).parent().unwrap_or(Path::new("")).to_path_buf();
        Scenario::check(py, document, path.to_owned(), base, &[], classes)
    }

    /// Reads TOML text, as `load` reads a file; trace files are looked up from `base_dir`.
    #[staticmethod]
    #[pyo3(signature = (text, base_dir, name, values = vec![], classes = vec![]))]
    #[expect(clippy::needless_pass_by_value, reason = "how Python's arguments arrive")]
    fn parse(
        py: Python<'_>,
        text: &str,
        base_dir: &str,
        name: &str,
        values: Vec<(String, String)>,
        classes: Classes,
    ) -> PyResult<Scenario> {
        let mut document = tried(|| Document::parse(text, name))?;
        put(&mut document, &values)?;
        Scenario::check(py, document, name.to_owned(), base_dir.into(), &[], classes)
    }

    /// Restores a pickled scenario.
    #[new]
    #[pyo3(signature = (text, base_dir, name, traces, classes = vec![]))]
    fn new(
        py: Python<'_>,
        text: &str,
        base_dir: &str,
        name: String,
        traces: Vec<(String, String)>,
        classes: Classes,
    ) -> PyResult<Scenario> {
        let document = tried(|| Document::parse(text, &name))?;
        Scenario::check(py, document, name, base_dir.into(), &traces, classes)
    }

    /// Arguments for `new`: its text, with its traces, so that it can be unpickled where their files are missing.
    fn __getnewargs__(&self, py: Python<'_>) -> (String, String, &str, Vec<(String, String)>, Classes) {
        let base = self.base.to_string_lossy().into_owned();
        (self.document.to_toml(), base, &self.file, self.traces.clone(), self.classes(py))
    }

    /// Whether both are the same with every default filled in, including their traces.
    fn __eq__(&self, other: &Scenario) -> bool {
        self.to_toml() == other.to_toml() && self.traces == other.traces
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.to_toml().hash(&mut hasher);
        hasher.finish()
    }

    /// A copy with the value at a TOML path replaced.
    fn set(&self, path: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Scenario> {
        self.set_all((vec![(path, value)]).into_pyobject(path.py())?.as_any())
    }

    /// A copy with several values replaced and then checked: a mapping as `paceline.load` takes for `changes`, or
    /// pairs.
    fn set_all(&self, values: &Bound<'_, PyAny>) -> PyResult<Scenario> {
        let written = values.py().import("paceline.scenarios.scenario")?.call_method1("toml_values", (values,))?;
        let changes: Vec<(String, String)> = written.extract()?;
        let mut document = self.document.clone();
        put(&mut document, &changes)?;
        let py = values.py();
        Scenario::check(py, document, self.file.clone(), self.base.clone(), &self.traces, self.classes(py))
    }

    /// The scenario with every default filled in.
    fn to_toml(&self) -> String {
        self.checked.to_toml()
    }

    /// The same for a path, whose flows do not run: with controllers that are not compiled in replaced.
    fn path_toml(&self) -> PyResult<String> {
        let mut document = tried(|| Document::parse(&self.checked.to_toml(), &self.file))?;
        document.without(|cc| self.foreign.iter().any(|scheme| scheme.name == cc));
        Ok(document.to_toml())
    }

    /// The same without name and description: what a run's result depends on, besides its seed and traces.
    fn identity(&self) -> String {
        self.checked.identity()
    }

    #[getter]
    fn name(&self) -> &str {
        self.checked.name()
    }

    /// The file that it was read from, as in messages.
    #[getter]
    fn file(&self) -> &str {
        &self.file
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.checked.seed()
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.checked.duration().as_secs_f64()
    }

    /// The first and last node of the chain of links; None in a graph.
    #[getter]
    fn ends(&self) -> Option<(&str, &str)> {
        self.checked.ends()
    }

    /// Number of flows, counting each instance.
    #[getter]
    fn instances(&self) -> u64 {
        self.checked.flows().iter().map(|flow| u64::from(flow.count)).sum()
    }

    /// The sum of the rates of all links in both directions (bit/s), as far as they can be filled. A direction in which
    /// no flow begins carries only receivers' packets, no more than the packets of the other direction.
    #[getter]
    fn rates_bps(&self) -> f64 {
        let far = self.checked.ends().map(|(_, far)| far);
        let from_far = |flow: &core::Flow| Some(flow.from.as_str()) == far;
        let forth = far.is_none() || !self.checked.flows().iter().all(from_far);
        let back = far.is_none() || self.checked.flows().iter().any(from_far);
        let filled = |own: f64, other: f64, loaded: bool| if loaded { own } else { own.min(other) };
        let both = |link: &core::Link| {
            let (there, here) = (link.forward.rate.nominal().bps(), link.backward.rate.nominal().bps());
            filled(there, here, forth) + filled(here, there, back)
        };
        self.checked.links().iter().map(both).sum()
    }

    /// Estimated core seconds of a run, without recording (`paceline_sim::cost`).
    fn core_seconds(&self) -> PyResult<f64> {
        let message = |error: paceline_sim::ExpandError| format!("{}: {error}", self.file);
        tried(|| {
            let model = paceline_sim::expand(&self.checked, self.checked.seed()).map_err(message)?;
            paceline_sim::cost::core_seconds(&model).map_err(message)
        })
    }

    /// Why no real path can have its links; None if one can.
    #[cfg(target_os = "linux")]
    fn unreal(&self) -> Option<String> {
        paceline_live::path::needs_names(&self.checked)
    }

    /// When each flow instance starts under a seed: name, instance, nanoseconds.
    fn starts(&self, seed: u64) -> PyResult<Vec<(String, u32, u64)>> {
        tried(|| {
            let model = paceline_sim::expand(&self.checked, seed).map_err(|error| format!("{}: {error}", self.file))?;
            Ok::<_, String>(model.flows.into_iter().map(|flow| (flow.name, flow.instance, flow.start.0)).collect())
        })
    }

    /// Keys without effect, or hardly the intended one: one line each, with file, line and key.
    #[getter]
    fn warnings(&self) -> Vec<&str> {
        self.warnings.iter().map(String::as_str).collect()
    }

    /// Streams and transfers that the end of each of its runs cuts off: one line each.
    #[getter]
    fn cut_short(&self) -> Vec<&str> {
        self.cut_short.iter().map(String::as_str).collect()
    }

    /// The series that its runs can record.
    #[getter]
    fn recordable(&self) -> Vec<&str> {
        self.recordable.clone()
    }

    /// The same scenario with these classes for controllers that its flows name.
    fn with_classes(&self, py: Python<'_>, classes: Classes) -> PyResult<Scenario> {
        let (document, file, base) = (self.document.clone(), self.file.clone(), self.base.clone());
        Scenario::check(py, document, file, base, &self.traces, classes)
    }

    /// Classes of controllers that its flows name, other than those in files.
    #[getter]
    fn classes(&self, py: Python<'_>) -> Classes {
        self.classes.iter().map(|(name, class)| (name.clone(), class.clone_ref(py))).collect()
    }

    /// The schemes that are not compiled in.
    #[getter]
    fn schemes(&self) -> Vec<Scheme> {
        self.foreign.iter().map(|core| Scheme { core }).collect()
    }

    /// Whether its runs call Python: those of one process then take turns.
    #[getter]
    fn in_python(&self) -> bool {
        self.foreign.iter().any(|scheme| !scheme.name.starts_with(LIBRARY))
    }

    /// Names of the flows.
    fn flow_names(&self) -> Vec<&str> {
        self.checked.flows().iter().map(|flow| flow.name.as_str()).collect()
    }

    /// The trace files that the links follow: name and text of each.
    fn traces(&self) -> Vec<(&str, &str)> {
        self.traces.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
    }

    fn __repr__(&self) -> String {
        format!("<Scenario {}>", self.checked.name())
    }
}

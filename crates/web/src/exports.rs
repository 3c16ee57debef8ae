//! The interface for JavaScript.

use crate::scenario::{self, Checked, Refusal};
use js_sys::{Array, Float64Array, Function, JSON, Object, Reflect};
use paceline_scenario::edit::edit_by_json;
use paceline_sim::{Recording, RunOptions, Watching, describe, simulate};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** One thing that is wrong with a scenario. Without a line: it does not stand in the text. */
export interface Mistake { line?: number; column?: number; key: string; problem: string; }
/** What `new Scenario` throws. `message` has a line for each mistake; `missing` are the files to be given. */
export interface Refusal { message: string; mistakes: Mistake[]; missing: string[]; }
/** What `run` throws. After a failure that is `spent` this instance must not be used again: make a new one. */
export interface Failure { message: string; spent?: boolean; }
/** One recorded table: for one flow, or one direction of a link. All columns are of one length. */
export interface Series { table: string; labels: Record<string, string>; columns: Record<string, Float64Array>; }
"#;

/// The version of the simulator.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    describe::VERSION.to_owned()
}

/// The JSON Schema of scenario files.
#[wasm_bindgen]
#[must_use]
pub fn schema() -> String {
    paceline_scenario::schema_json()
}

/// The registered schemes with their parameters, as JSON.
#[wasm_bindgen]
#[must_use]
pub fn schemes() -> String {
    describe::schemes().to_string()
}

/// The measures by table, with units, types, scatter and meanings, as JSON.
#[wasm_bindgen]
#[must_use]
pub fn measures() -> String {
    paceline_sim::measures::describe().to_string()
}

/// The throughput models with their arguments, as JSON.
#[wasm_bindgen]
#[must_use]
pub fn models() -> String {
    describe::models().to_string()
}

/// Evaluates a throughput model, or its inverse, over columns of equal length: one for each argument in, one for each
/// result out.
///
/// # Errors
/// An Error with a message.
#[wasm_bindgen]
#[expect(clippy::needless_pass_by_value, reason = "how JavaScript's arguments arrive")]
pub fn model(name: &str, columns: Vec<Float64Array>, inverse: bool) -> Result<Vec<Float64Array>, JsError> {
    let columns: Vec<Vec<f64>> = columns.iter().map(Float64Array::to_vec).collect();
    let found =
        paceline_control::models::catalog::over(name, &columns, inverse).map_err(|error| JsError::new(&error))?;
    Ok(found.iter().map(|column| Float64Array::from(column.as_slice())).collect())
}

/// Sets and removes keys in scenario text; comments, order and layout stay. `changes` is JSON: pairs of a path
/// (`flow."a b".cc`, `rate_schedule[0].rate`) and a value; null removes the key.
///
/// # Errors
/// An Error with a message.
#[wasm_bindgen]
pub fn edit(text: &str, changes: &str) -> Result<String, JsError> {
    edit_by_json(text, changes).map_err(|error| JsError::new(&error))
}

/// A checked scenario.
#[wasm_bindgen]
pub struct Scenario {
    checked: Checked,
}

#[wasm_bindgen]
impl Scenario {
    /// Checks scenario text. `file` is its name in messages, `files` are the texts of the traces that it names, and
    /// `values` are set before the check, as with `--set`.
    ///
    /// # Errors
    /// A `Refusal` with every mistake.
    #[wasm_bindgen(constructor)]
    pub fn new(
        text: &str,
        file: &str,
        #[wasm_bindgen(unchecked_param_type = "Record<string, string>")] files: &Object,
        #[wasm_bindgen(unchecked_param_type = "[string, string][]")] values: &Array,
    ) -> Result<Scenario, JsValue> {
        let files: BTreeMap<String, String> = Object::entries(files).iter().map(|entry| pair(&entry)).collect();
        let values: Vec<(String, String)> = values.iter().map(|entry| pair(&entry)).collect();
        match scenario::check((text, file), &files, &values) {
            Ok(checked) => Ok(Scenario { checked }),
            Err(refusal) => Err(thrown(&refusal_json(&refusal))),
        }
    }

    /// Its description, as JSON.
    #[must_use]
    pub fn described(&self) -> String {
        self.checked.described().to_string()
    }

    /// Runs it to its end. `record` names series, `every_s` is the interval of their rows in seconds. `progress`
    /// receives the simulated share, at most a hundred times; what it throws ends the run and is rethrown here.
    ///
    /// # Errors
    /// A `Failure`.
    #[expect(clippy::needless_pass_by_value, reason = "how JavaScript's arguments arrive")]
    pub fn run(
        &self,
        seed: u64,
        record: Vec<String>,
        every_s: f64,
        #[wasm_bindgen(unchecked_optional_param_type = "(share: number) => void")] progress: Option<Function>,
    ) -> Result<RunOutput, JsValue> {
        let fail = |message: String| thrown(&json!({ "message": message }));
        let recording = Recording::sampled(record.iter().map(String::as_str), every_s).map_err(fail)?;
        let callback = progress.map(|to| ProgressCallback { to, share: Cell::new(0.0), thrown: RefCell::default() });
        let watch = callback.as_ref().map(|callback| callback as &dyn Watching);
        let scenario = &self.checked.loaded.scenario;
        let output = simulate(scenario, seed, &RunOptions { recording, watch, ..RunOptions::default() });
        if let Some(value) = callback.and_then(|callback| callback.thrown.take()) {
            return Err(value);
        }
        let output = output.map_err(|error| fail(format!("{}: {error}", scenario.name())))?;
        let summary = serde_json::to_string(&output.summary).map_err(|error| fail(error.to_string()))?;
        Ok(RunOutput { summary, series: output.series })
    }
}

/// Measurements and recordings of a run.
#[wasm_bindgen]
pub struct RunOutput {
    summary: String,
    series: Vec<paceline_sim::Series>,
}

#[wasm_bindgen]
impl RunOutput {
    /// The measures, as JSON.
    #[must_use]
    pub fn summary(&self) -> String {
        self.summary.clone()
    }

    /// The recorded series: copies, which can be transferred.
    ///
    /// # Errors
    /// None that a page could cause.
    #[wasm_bindgen(unchecked_return_type = "Series[]")]
    pub fn series(&self) -> Result<Array, JsValue> {
        self.series.iter().map(table).collect()
    }
}

fn table(series: &paceline_sim::Series) -> Result<JsValue, JsValue> {
    let (labels, columns) = (Object::new(), Object::new());
    for (name, value) in &series.labels {
        Reflect::set(&labels, &(*name).into(), &value.into())?;
    }
    for (name, values) in &series.columns {
        Reflect::set(&columns, &name.as_ref().into(), &Float64Array::from(values.as_slice()))?;
    }
    let table = Object::new();
    Reflect::set(&table, &"table".into(), &series.table.into())?;
    Reflect::set(&table, &"labels".into(), &labels)?;
    Reflect::set(&table, &"columns".into(), &columns)?;
    Ok(table.into())
}

/// A pair of strings, from an array of two.
fn pair(entry: &JsValue) -> (String, String) {
    let entry = Array::from(entry);
    (entry.get(0).as_string().unwrap_or_default(), entry.get(1).as_string().unwrap_or_default())
}

/// A value that JavaScript can throw and post to another thread: a plain object, because errors lose their own keys
/// there.
fn thrown(value: &Value) -> JsValue {
    JSON::parse(&value.to_string()).unwrap_or_default()
}

fn refusal_json(refusal: &Refusal) -> Value {
    let mistake = |m: &paceline_scenario::Mistake| {
        let mut mistake = json!({ "key": m.key, "problem": m.problem });
        for (name, number) in [("line", m.line), ("column", m.column)] {
            if let Some(number) = number {
                mistake[name] = json!(number);
            }
        }
        mistake
    };
    let mistakes: Vec<Value> = refusal.error.mistakes.iter().map(mistake).collect();
    json!({ "message": refusal.error.to_string(), "mistakes": mistakes, "missing": refusal.missing })
}

/// Reports a run's progress to a JavaScript function.
#[derive(Debug)]
struct ProgressCallback {
    to: Function,
    share: Cell<f64>,
    thrown: RefCell<Option<JsValue>>,
}

impl Watching for ProgressCallback {
    fn is_cancelled(&self) -> bool {
        self.thrown.borrow().is_some()
    }

    fn progress(&self, share: f64) {
        if share >= self.share.get() + 0.01 {
            self.share.set(share);
            self.thrown.replace(self.to.call1(&JsValue::NULL, &share.into()).err());
        }
    }
}

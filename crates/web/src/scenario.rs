//! Scenarios in a page: text, and the texts of the files that it names.

use paceline_scenario::{Document, Mistake, OWN, ScenarioError};
use paceline_sim::CheckedScenario;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A scenario that can run.
#[derive(Debug)]
pub struct Checked {
    /// The scenario, with its warnings.
    pub loaded: CheckedScenario,
    /// Names of the files that it uses.
    files: Vec<String>,
}

/// Why a scenario cannot run.
#[derive(Debug)]
pub struct Refusal {
    /// Every mistake.
    pub error: ScenarioError,
    /// Files that it names and the page did not pass.
    pub missing: Vec<String>,
}

/// Checks scenario text, named `file` in messages, after setting some values.
///
/// # Errors
/// Every mistake in it, and every file that it lacks.
pub fn check(
    (text, file): (&str, &str),
    files: &BTreeMap<String, String>,
    values: &[(String, String)],
) -> Result<Checked, Box<Refusal>> {
    let refused = |error| Box::new(Refusal { error, missing: Vec::new() });
    let mut document = Document::parse(text, file).map_err(refused)?;
    for (path, value) in values {
        document.set(path, value).map_err(refused)?;
    }
    let own = document.controllers().into_iter().filter(|(_, cc)| OWN.iter().any(|prefix| cc.starts_with(prefix)));
    let own: Vec<Mistake> = own
        .map(|(key, cc)| {
            let problem = format!(
                "`{cc}` is a controller of your own, which a page cannot run: use `paceline run`, or name one of the schemes"
            );
            Mistake::new(key, problem)
        })
        .collect();
    if !own.is_empty() {
        return Err(refused(document.error(own)));
    }
    let (mut used, mut missing) = (Vec::new(), Vec::new());
    let mut read = |name: &str| {
        let known = if files.contains_key(name) { &mut used } else { &mut missing };
        if known.iter().all(|known| known != name) {
            known.push(name.to_owned());
        }
        files.get(name).cloned().ok_or_else(|| "is not here: give the file".to_owned())
    };
    match CheckedScenario::check(&document, &mut read, &[]) {
        Ok(loaded) => Ok(Checked { loaded, files: used }),
        Err(error) => Err(Box::new(Refusal { error, missing })),
    }
}

impl Checked {
    /// Its description. A seed beyond JavaScript's numbers is a string; `BigInt` takes both.
    #[must_use]
    pub fn described(&self) -> Value {
        let CheckedScenario { scenario, warnings, cut_short, recordable } = &self.loaded;
        let seed = scenario.seed();
        json!({
            "name": scenario.name(),
            "seed": if seed < 1 << 53 { json!(seed) } else { json!(seed.to_string()) },
            "duration_s": scenario.duration().as_secs_f64(),
            "warmup_s": scenario.warmup().as_secs_f64(),
            "warnings": warnings,
            "cut_short": cut_short,
            "recordable": recordable,
            "files": self.files,
            "filled": filled(&scenario.to_toml()),
            "toml": scenario.to_toml(),
        })
    }
}

/// TOML as JSON.
fn filled(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).unwrap_or_default();
    serde_json::to_value(table).unwrap_or_default()
}

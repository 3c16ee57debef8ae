//! A fully checked scenario: the file itself, and the network that it describes.

use crate::expand::{expand, routes};
use crate::recorder::Recording;
use crate::run::{self, RunError};
use paceline_control::Scheme;
use paceline_scenario::{Document, Mistake, Scenario, ScenarioError};

/// Maximum instances of a flow that are checked. They differ only in their draws, and more would show nothing new.
const MAX_INSTANCES: u32 = 1000;

/// A checked scenario, with what front ends report about it.
#[derive(Clone, Debug)]
pub struct CheckedScenario {
    /// The scenario.
    pub scenario: Scenario,
    /// Settings without effect: one line each, with file, line and key.
    pub warnings: Vec<String>,
    /// What the end of each of its runs cuts off: one line each.
    pub cut_short: Vec<String>,
    /// The series that its runs can record.
    pub recordable: Vec<&'static str>,
}

impl CheckedScenario {
    /// Checks a document. `read` returns the text of a trace file by its name, or an error; `foreign` are schemes that
    /// are not compiled in.
    ///
    /// # Errors
    /// Every mistake found in it, or the first that only the expanded scenario shows.
    pub fn check(
        document: &Document,
        read: &mut dyn FnMut(&str) -> Result<String, String>,
        foreign: &[&'static Scheme],
    ) -> Result<CheckedScenario, ScenarioError> {
        let scenario = Scenario::check_with(document, read, foreign)?;
        let wrong = |error: RunError| {
            let (key, text) = (error.key().unwrap_or_default(), error.to_string());
            let problem = text.strip_prefix(&key).map_or(text.as_str(), |rest| rest.trim_start_matches(": "));
            document.error(vec![Mistake::new(key, problem)])
        };
        let model = expand(&scenario.thinned(MAX_INSTANCES), scenario.seed()).map_err(|error| wrong(error.into()))?;
        run::check(&model).map_err(wrong)?;
        let paths = routes(&model).map_err(|error| wrong(error.into()))?;
        let warnings = scenario.warnings(document, &model, &paths);
        let cut_short = scenario.cut_short(document, &model, &paths);
        Ok(CheckedScenario { scenario, warnings, cut_short, recordable: Recording::possible(&model) })
    }
}

//! What is only warned of in a scenario file has a file in tests/warnings and, beside it, the warnings that it must get.
//! `PACELINE_BLESS=1` writes them anew: read the diff before you keep it.
#![allow(clippy::disallowed_methods, reason = "a test reads its files")]

#[path = "../../scenario/tests/messages.rs"]
mod messages;

use messages::{checked, hold};
use paceline_sim::{expand, routes};
use std::path::Path;

#[test]
fn warnings() {
    hold("warnings", 5, |name, text| {
        let (document, scenario) = checked(name, text).unwrap();
        let model = expand(&scenario, 1).unwrap();
        let paths = routes(&model).unwrap();
        let mut said = scenario.warnings(&document, &model, &paths);
        said.extend(scenario.cut_short(&document, &model, &paths));
        said.join("\n")
    });
}

#[test]
fn a_manifest_gets_no_warning_of_what_it_spells_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/warnings");
    let (_, scenario) = checked("none.toml", &std::fs::read_to_string(folder.join("none.toml")).unwrap()).unwrap();
    let (document, again) = checked("manifest.toml", &scenario.to_toml()).unwrap();
    let model = expand(&again, 1).unwrap();
    assert_eq!(again.warnings(&document, &model, &routes(&model).unwrap()), Vec::<String>::new());
}

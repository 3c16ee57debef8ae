//! docs/scenario.md is what the schema says. `PACELINE_BLESS=1` writes it anew.
#![allow(clippy::disallowed_methods, reason = "a test reads its files")]

use paceline_scenario::{reference, schema_json};
use std::path::Path;

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let page = reference();
    if std::env::var("PACELINE_BLESS").is_ok_and(|v| v == "1") {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "docs/scenario.md is stale: PACELINE_BLESS=1 cargo test -p paceline-scenario docs::");
}

#[test]
fn every_key_is_described() {
    fn look(schema: &serde_json::Value, place: &str) {
        if let Some(properties) = schema.get("properties").and_then(|p| p.as_object()) {
            for (key, property) in properties {
                assert!(key == "kind" || property.get("description").is_some(), "{place}.{key} has no description");
            }
        }
        // a condition describes nothing
        for (key, inner) in schema.as_object().into_iter().flatten().filter(|(key, _)| *key != "if") {
            look(inner, &format!("{place}.{key}"));
        }
        for inner in schema.as_array().into_iter().flatten() {
            look(inner, place);
        }
    }
    look(&serde_json::from_str(&schema_json()).unwrap(), "");
}

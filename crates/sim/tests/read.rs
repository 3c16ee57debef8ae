//! A scenario out of its text, for the other tests.

use paceline_scenario::{Document, Scenario};

/// A good one, which names no files.
pub fn scenario(text: &str) -> Scenario {
    checked(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The scenario, or what is wrong with it.
pub fn checked(text: &str) -> Result<Scenario, String> {
    let document = Document::parse(text, "test.toml").map_err(|error| error.to_string())?;
    Scenario::check(&document, &mut |_| Err("no files".into())).map_err(|error| error.to_string())
}

//! The scenario reader handles any text; a scenario that it accepts can be written, and reads the same.

use paceline_scenario::{Document, Scenario};

/// The target `scenario`.
pub fn scenario(bytes: &[u8]) {
    let text = crate::text(bytes);
    let Ok(document) = Document::parse(text, "fuzz.toml") else { return };
    let mut read = |file: &str| {
        if file.len().is_multiple_of(2) { Ok("0\n3\n".to_owned()) } else { Err("no such file".to_owned()) }
    };
    match Scenario::check(&document, &mut read) {
        Err(error) => assert!(!error.mistakes.is_empty()),
        Ok(scenario) => {
            let again = Document::parse(&scenario.to_toml(), "fuzz.toml").expect("what is written is TOML");
            let again = Scenario::check(&again, &mut read).expect("what is written is good");
            assert_eq!(scenario, again);
        }
    }
}

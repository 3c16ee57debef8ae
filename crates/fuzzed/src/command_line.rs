//! Arbitrary text as command-line input: quantities, a gateway's options, a scenario key with its value.

use core::fmt::{Debug, Display};
use core::str::FromStr;
use paceline_live::gateway::RawOptions;
use paceline_live::path::{Folder, PathSpec};
use paceline_scenario::{Document, Scenario};
use paceline_units::{ParseError, Rate, Ratio, Size, Span};
use std::path::PathBuf;

const SCENARIO: &str = "duration = \"1 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\n[flow.a]\n";

/// A quantity that is read can be written, and reads the same: to the unit where floating-point numbers are precise
/// enough, else to their last digit.
fn quantity<T: FromStr<Err = ParseError> + Display + Debug>(text: &str, base: impl Fn(T) -> u64) {
    match text.parse::<T>() {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(value) => {
            let written = value.to_string();
            let (first, again) = (base(value), base(written.parse().expect("what is written is a quantity")));
            assert!(first.abs_diff(again) <= first >> 51, "{text:?}: {written}: {first} and {again}");
        }
    }
}

fn gateway(text: &str) {
    let _ = RawOptions::law_of(text);
    let mut words = RawOptions::default();
    for pair in text.split_ascii_whitespace() {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match words.place(name) {
            Some(place) => *place = Some(value.to_owned()),
            None => words.dry_run |= name == "dry-run",
        }
    }
    if let Err(error) = words.options() {
        assert!(!error.to_string().is_empty());
    }
}

/// As keys for `--set`; the result as a scenario, and as a path.
fn keys(text: &str) {
    let mut document = Document::parse(SCENARIO, "words").expect("it stands above");
    for line in text.lines().take(8) {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if let Err(error) = document.set(key, value) {
            assert!(!error.mistakes.is_empty());
        }
    }
    let mut no_files = |_: &str| Err("no such file".to_owned());
    let Ok(scenario) = Scenario::check(&document, &mut no_files) else { return };
    // Flows are created one by one. The scenario names no files now.
    if scenario.flows().iter().all(|flow| flow.count < 100) {
        let _ = PathSpec::of(document, &Folder::Files(PathBuf::new()));
    }
}

/// The target `command_line`.
pub fn command_line(bytes: &[u8]) {
    let text = crate::text(bytes);
    quantity::<Span>(text, |span| span.0);
    quantity::<Rate>(text, |rate| rate.0);
    quantity::<Size>(text, |size| size.0);
    if let Ok(share) = text.parse::<Ratio>() {
        assert!((0.0..=1.0).contains(&share.0));
        assert_eq!(share.to_string().parse::<Ratio>().map(|again| again.0), Ok(share.0));
    }
    gateway(text);
    keys(text);
}

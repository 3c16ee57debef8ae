//! Every kind of mistake in a scenario file has a file in tests/mistakes and, beside it, the message that it must get.
//! `PACELINE_BLESS=1` writes the messages anew: read the diff before you keep it.
#![allow(clippy::disallowed_methods, reason = "a test reads its files")]

use paceline_sim::scenario::{Document, Scenario};
use std::path::Path;

fn message(name: &str, text: &str) -> String {
    let read: &mut dyn FnMut(&str) -> Result<String, String> = &mut |file| match file {
        "good.down" => Ok("0\n5\n10\n".into()),
        "bad.down" => Ok("0\n5\nfive\n".into()),
        _ => Err("there is no such file".into()),
    };
    match Document::parse(text, name).and_then(|document| Scenario::check(&document, read)) {
        Ok(_) => "no mistake found".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn messages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let bless = std::env::var("PACELINE_BLESS").is_ok_and(|v| v == "1");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    names.sort();
    assert!(names.len() >= 60, "{} files", names.len());
    let mut differences = String::new();
    for path in names {
        let name = path.file_name().unwrap().to_str().unwrap();
        let got = message(name, &std::fs::read_to_string(&path).unwrap()) + "\n";
        let expected = path.with_extension("txt");
        if bless {
            std::fs::write(&expected, &got).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != got {
            differences += &format!("--- {name}\n{got}");
        }
    }
    assert!(differences.is_empty(), "other messages than in tests/mistakes:\n{differences}");
}

//! Scenarios in a folder of the crate's tests, each with the message that it must get in a file beside it.
#![allow(clippy::disallowed_methods, reason = "a test reads its files")]

use paceline_scenario::{Document, Scenario, ScenarioError};
use std::path::Path;

/// Checks a scenario, whose trace files are these.
pub fn checked(name: &str, text: &str) -> Result<(Document, Scenario), ScenarioError> {
    let read: &mut dyn FnMut(&str) -> Result<String, String> = &mut |file| match file {
        "good.down" => Ok("0\n5\n10\n".into()),
        "bad.down" => Ok("0\n5\nfive\n".into()),
        "fast.json" => Ok(r#"[{"duration_ms": 500, "bandwidth_kbps": 720000, "latency_ms": 9}]"#.into()),
        "bad.csv" => Ok("time_s,rate\n0,5\n".into()),
        "frames" => Ok("0 1000\n0.04 2000\n".into()),
        "more frames" => Ok("100\n200\n300\n".into()),
        _ => Err("there is no such file".into()),
    };
    let document = Document::parse(text, name)?;
    let scenario = Scenario::check(&document, read)?;
    Ok((document, scenario))
}

/// Holds what `said` of each scenario in a folder against the text beside it.
pub fn hold(folder: &str, least: usize, said: impl Fn(&str, &str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let bless = std::env::var("PACELINE_BLESS").is_ok_and(|v| v == "1");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    names.sort();
    assert!(names.len() >= least, "{} files", names.len());
    let mut differences = String::new();
    for path in names {
        let name = path.file_name().unwrap().to_str().unwrap();
        let got = said(name, &std::fs::read_to_string(&path).unwrap()) + "\n";
        let expected = path.with_extension("txt");
        if bless {
            std::fs::write(&expected, &got).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != got {
            differences += &format!("--- {name}\n{got}");
        }
    }
    assert!(differences.is_empty(), "other messages than in {}:\n{differences}", folder.display());
}

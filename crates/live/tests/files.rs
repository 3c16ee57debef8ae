//! Every scenario file of the repository is good, and says the same when it is written out in full.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test reads its files")]

use paceline_live::scenario::{check, load, open};
use paceline_scenario::Document;
use paceline_sim::{RunOptions, simulate};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The scenario files in a folder: those that give a network, and no controller that a front end has to load.
fn scenarios(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root().join(folder)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.retain(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.contains("[link.") && !text.contains("cc = \"python:")
    });
    paths.sort();
    paths
}

fn all() -> Vec<PathBuf> {
    ["examples", "bench/scenarios", "papers/vegas-streaming"].iter().flat_map(|folder| scenarios(folder)).collect()
}

#[test]
fn all_are_good_and_read_back_the_same() {
    assert!(scenarios("examples").len() >= 15);
    for path in all() {
        let scenario = load(&path).unwrap_or_else(|error| panic!("{error}"));
        let text = scenario.to_toml();
        let document = Document::parse(&text, "again.toml").unwrap();
        let again = check(&document, path.parent().unwrap()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(scenario, again, "{}", path.display());
        assert_eq!(text, again.to_toml());
    }
}

#[test]
fn examples_run() {
    for path in scenarios("examples") {
        let scenario = load(&path).unwrap_or_else(|error| panic!("{error}"));
        simulate(&scenario, 1, &RunOptions::default()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    let folder = std::env::temp_dir().join(format!("paceline-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let message = |path: &Path| load(path).unwrap_err().to_string();
    assert!(
        message(&folder.join("none.toml")).contains("none.toml: cannot be read: "),
        "{}",
        message(&folder.join("none.toml"))
    );
    assert!(message(&folder).contains("cannot be read: "));
    std::fs::write(folder.join("latin.toml"), b"# a\nname = \"caf\xe9\"\n").unwrap();
    assert!(message(&folder.join("latin.toml")).ends_with("latin.toml: is not UTF-8 text (line 2)"));
    let text = "duration = \"1 s\"\n[link.bottleneck]\nrate_trace = { file = \"bad.down\" }\nbackward.rate = \"1 Mbit/s\"\n[flow.a]\n";
    std::fs::write(folder.join("trace.toml"), text).unwrap();
    assert!(
        message(&folder.join("trace.toml"))
            .contains("trace.toml:3: link.bottleneck.rate_trace: `bad.down`: cannot be read")
    );
    std::fs::write(folder.join("bad.down"), "1\n2\nx\n").unwrap();
    assert!(message(&folder.join("trace.toml")).contains("`bad.down`: line 3: expected "));
    assert!(open(&folder.join("trace.toml")).is_ok());
    std::fs::remove_dir_all(&folder).unwrap();
}

//! All that fuzzing has kept goes through the targets again: of each its corpus, its regressions, and files of the project that are inputs
//! too. What fails is named as `fuzz/corpus/TARGET.txt:LINE`, or as the file it is.
#![cfg(target_os = "linux")]

#[path = "../../../tests/needs.rs"]
mod needs;

use paceline_fuzzed::{TARGETS, Target, program_ready};
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The bytes that a line of a corpus stands for: ASCII as it is but for `\\`, `\t`, `\r`, `\n` and `\xNN`.
fn unpacked(line: &str) -> Result<Vec<u8>, String> {
    let (mut bytes, mut rest) = (Vec::new(), line.as_bytes());
    while let [first, more @ ..] = rest {
        rest = more;
        bytes.push(match (first, rest) {
            (b'\\', [b'x', high, low, more @ ..]) => {
                rest = more;
                let digits = [*high, *low].map(char::from).map(|digit| digit.to_digit(16));
                let [Some(high), Some(low)] = digits else { return Err("no such number".to_owned()) };
                (high << 4 | low) as u8
            }
            (b'\\', [kind, more @ ..]) => {
                rest = more;
                match kind {
                    b'\\' => b'\\',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'n' => b'\n',
                    other => return Err(format!("no such escape: {}", other.escape_ascii())),
                }
            }
            (b' '..=b'~', _) if *first != b'\\' => *first,
            _ => return Err("no printable ASCII".to_owned()),
        });
    }
    Ok(bytes)
}

/// A folder of the project whose files are inputs too, as `fuzz/run` has them.
fn more_inputs(target: &str) -> Option<PathBuf> {
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).expect("it is there");
    let manifest: toml::Table = manifest.parse().expect("it is TOML");
    let folder = manifest["package"]["metadata"]["inputs"].get(target)?;
    Some(root().join(folder.as_str().expect("a folder")))
}

/// The files of a folder, by name; none if it is not there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("it can be listed").path());
    let mut files: Vec<PathBuf> = found.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The inputs of a target, each with its name.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let packed = root().join(format!("fuzz/corpus/{target}.txt"));
    let text = fs::read_to_string(&packed)
        .unwrap_or_else(|error| panic!("fuzz/corpus/{target}.txt: {error}: fuzz/run, then fuzz/run --merge {target}"));
    let of_line = |(at, line)| {
        let name = format!("fuzz/corpus/{target}.txt:{}", at + 1);
        let bytes = unpacked(line).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, bytes)
    };
    let mut inputs: Vec<_> = text.lines().enumerate().map(of_line).collect();
    assert!(!inputs.is_empty(), "fuzz/corpus/{target}.txt is empty");
    for folder in more_inputs(target).into_iter().chain([root().join("fuzz/regressions").join(target)]) {
        for path in files(&folder) {
            inputs.push((path.display().to_string(), fs::read(&path).expect("it can be read")));
        }
    }
    inputs
}

fn replay(name: &str) {
    let target: Target = TARGETS.iter().find(|(target, _)| *target == name).expect("it is in the table").1;
    let inputs = inputs(name);
    let broken: Vec<&str> = inputs
        .iter()
        .filter(|(_, bytes)| catch_unwind(AssertUnwindSafe(|| target(bytes))).is_err())
        .map(|(name, _)| name.as_str())
        .collect();
    assert!(broken.is_empty(), "{name}: {} of {} inputs: {broken:#?}", broken.len(), inputs.len());
}

macro_rules! replays {
    ($($target:ident)*) => {
        const REPLAYED: &[&str] = &[$(stringify!($target)),*];
        $(
            #[test]
            fn $target() {
                if stringify!($target) != "program" || needs::have("root") && needs::probed("BPF", program_ready().is_ok()) {
                    replay(stringify!($target));
                }
            }
        )*
    };
}

replays! {
    command_line control event_log frames gateway kernel listener program qlog quic scenario session trace wire_rtcp wire_rtp
    wire_tfrc
}

#[test]
fn every_target_is_replayed_and_nothing_is_kept_for_others() {
    let targets: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(REPLAYED, targets);
    let built: Vec<PathBuf> = files(&root().join("fuzz/fuzz_targets"));
    let stem = |path: &PathBuf| path.file_stem().expect("it has a name").to_string_lossy().into_owned();
    assert_eq!(built.iter().map(stem).collect::<Vec<_>>(), targets);
    let corpora = files(&root().join("fuzz/corpus"));
    assert_eq!(corpora.iter().map(stem).collect::<Vec<_>>(), targets);
    for entry in fs::read_dir(root().join("fuzz/regressions")).expect("it is there") {
        let name = entry.expect("it can be listed").file_name().to_string_lossy().into_owned();
        assert!(targets.contains(&name.as_str()), "fuzz/regressions/{name}: no such target");
    }
}

#[test]
fn a_corpus_has_no_input_twice() {
    for (target, _) in TARGETS {
        let text = fs::read_to_string(root().join(format!("fuzz/corpus/{target}.txt"))).expect("it is there");
        let lines: BTreeSet<&str> = text.lines().collect();
        assert_eq!(lines.len(), text.lines().count(), "{target}");
    }
}

#[test]
fn lines_stand_for_bytes() {
    assert_eq!(unpacked(r"a b\\\t\r\n\x00\xfF").as_deref(), Ok(&b"a b\\\t\r\n\x00\xff"[..]));
    for wrong in ["\\", r"\q", r"\x", r"\x1", r"\xg0", "\t", "\u{e9}"] {
        assert!(unpacked(wrong).is_err(), "{wrong:?}");
    }
}

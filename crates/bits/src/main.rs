//! Runs scenarios and prints a hash of each run's results, to compare processors.
//!
//! `paceline-bits < CASES` reads one line per run: its name, the scenario file, and changes `PATH=VALUE`, separated by
//! tabs. It prints `NAME,HASH`. `paceline-bits NAME < CASES` prints the summary of that run instead, as JSON, to find
//! what differs. `tests/platforms.py` builds it for other processors and systems, so it depends on the simulator alone.

#![allow(clippy::disallowed_methods)] // a program at the edge may read files

use paceline_scenario::Document;
use paceline_sim::{CheckedScenario, Recording, RunOptions, RunOutput, Series, simulate};
use paceline_units::Span;
use std::error::Error;
use std::path::Path;

/// How often series are sampled.
const EVERY: Span = Span::from_millis(250);

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().nth(1);
    for line in std::io::read_to_string(std::io::stdin())?.lines() {
        let mut words = line.split('\t');
        let name = words.next().unwrap_or_default();
        if wanted.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        let file = words.next().ok_or_else(|| format!("{name} has no file"))?;
        let output = ran(file, words).map_err(|error| format!("{name}: {error}"))?;
        let summary = serde_json::to_string(&output.summary)?;
        match wanted {
            Some(_) => println!("{summary}"),
            None => println!("{name},{:016x}", hash(&summary, &output.series)),
        }
    }
    Ok(())
}

/// Runs a scenario with its own seed, and records everything that it can.
fn ran<'a>(file: &str, changes: impl Iterator<Item = &'a str>) -> Result<RunOutput, Box<dyn Error>> {
    let mut document = Document::parse(&std::fs::read_to_string(file)?, file)?;
    for change in changes {
        let (path, value) = change.split_once('=').ok_or_else(|| format!("{change}: PATH=VALUE is wanted"))?;
        document.set(path, value)?;
    }
    let folder = Path::new(file).parent().unwrap_or(Path::new("."));
    let mut read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let loaded = CheckedScenario::check(&document, &mut read, &[])?;
    let recording = Recording::of(&loaded.recordable, EVERY)?;
    let options = RunOptions { recording, ..RunOptions::default() };
    Ok(simulate(&loaded.scenario, loaded.scenario.seed(), &options)?)
}

/// 64-bit FNV-1a over the summary's text and the bits of every recorded number. All NaN count as one, because
/// processors differ in the sign of the NaN that they produce.
fn hash(summary: &str, series: &[Series]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    take(summary.as_bytes());
    for one in series {
        take(one.table.as_bytes());
        for (_, label) in &one.labels {
            take(label.as_bytes());
        }
        for (column, values) in &one.columns {
            take(column.as_bytes());
            for value in values {
                let value = if value.is_nan() { f64::NAN } else { *value };
                take(&value.to_bits().to_le_bytes());
            }
        }
    }
    hash
}

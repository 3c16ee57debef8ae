//! Runs a scenario file and prints its summary as JSON; on stderr the time that the simulation itself took, and on
//! Linux the process's peak memory.
//!
//! `cargo run --release -p paceline-sim --example simulate -- FILE [SEED] [PATH=VALUE ...]`

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // an example at the edge: it reads a file and a clock

use paceline_scenario::{Document, Scenario};
use paceline_sim::{RunOptions, simulate};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("which scenario file?")?;
    let mut document = Document::parse(&std::fs::read_to_string(&file)?, &file)?;
    let (mut seed, mut repeat) = (None, 1);
    for argument in arguments {
        match argument.split_once('=') {
            Some(("repeat", n)) => repeat = n.parse()?,
            Some((path, value)) => document.set(path, value)?,
            None => seed = Some(argument.parse()?),
        }
    }
    let folder = Path::new(&file).parent().unwrap_or(Path::new("."));
    let mut read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let scenario = Scenario::check(&document, &mut read)?;
    let seed = seed.unwrap_or(scenario.seed());
    let mut best = f64::INFINITY;
    let mut output = None;
    for _ in 0..repeat {
        let begin = Instant::now();
        output = Some(simulate(&scenario, seed, &RunOptions::default())?);
        best = best.min(begin.elapsed().as_secs_f64());
    }
    let summary = output.ok_or("repeat must be at least 1")?.summary;
    let departures: u64 = summary.queues.iter().filter(|q| q.direction == "forward").map(|q| q.departures).sum();
    println!("{}", serde_json::to_string(&summary)?);
    eprintln!("{best:.4} s, {:.1} ns per packet over the measured queues", best * 1e9 / departures.max(1) as f64);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        eprintln!("peak memory {}", peak.trim());
    }
    Ok(())
}

//! A run's packets as a capture file (pcapng), as `tcpdump` would take them at every host.
//!
//! One interface a host, named after it: a packet stands in the file where it leaves a host and, if it was not lost,
//! where it reaches one. Only headers are kept of it (`docs/capture.md`). Look first at [`simulate`].

mod frames;
pub(crate) mod pcapng;
mod tcp;
mod tfrc;
mod udp;

use frames::Frames;
use paceline_sim::model::Model;
use paceline_sim::{Capture, Captured, RunError, RunOptions, RunOutput, Scenario, expand, run_captured};
use pcapng::Pcapng;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to capture, and where to.
#[derive(Clone, Copy, Debug)]
pub struct CaptureFile<'a> {
    /// The file, which is replaced if it is there.
    pub path: &'a Path,
    /// Names of the hosts to capture at; none: all.
    pub hosts: &'a [String],
}

/// Why there is no result, or no whole capture.
#[derive(Debug)]
pub enum CaptureError {
    /// The run failed or was cancelled. The file has what was captured until then.
    Run(RunError),
    /// The file could not be written.
    File(io::Error),
    /// There is no such host; with the names of those that are there.
    NoHost(String, Vec<String>),
}

impl core::fmt::Display for CaptureError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            CaptureError::Run(error) => error.fmt(f),
            CaptureError::File(error) => error.fmt(f),
            CaptureError::NoHost(name, hosts) => {
                const SHOWN: usize = 12;
                let shown: Vec<String> = hosts.iter().take(SHOWN).map(|host| format!("`{host}`")).collect();
                let more = if hosts.len() > SHOWN { ", ..." } else { "" };
                write!(f, "there is no host `{name}` with a flow; there are {}{more}", shown.join(", "))
            }
        }
    }
}

impl core::error::Error for CaptureError {}

/// Runs a scenario once, with this seed, and writes its packets: under another name beside the file, which takes its place
/// when the run has ended or was cancelled. If it cannot be written whole, what was there before stays.
///
/// # Errors
/// [`CaptureError`].
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    options: &RunOptions<'_>,
    to: &CaptureFile<'_>,
) -> Result<RunOutput, CaptureError> {
    let model = expand(scenario, seed).map_err(|error| CaptureError::Run(error.into()))?;
    let interfaces = interfaces(&model, to.hosts)?;
    let part = part_of(to.path);
    let written = write(&model, options, interfaces, part.as_deref().unwrap_or(to.path));
    let Some(part) = part else { return written };
    let done = match written {
        Err(CaptureError::File(error)) => Err(CaptureError::File(error)),
        done => std::fs::rename(&part, to.path).map_err(CaptureError::File).and(done),
    };
    if matches!(done, Err(CaptureError::File(_))) {
        // a part is of no use, and the error that is told says why there is no more
        let _ = std::fs::remove_file(&part);
    }
    done
}

/// Where a file is written before it is whole; none for a pipe or a device, into which all goes at once.
fn part_of(path: &Path) -> Option<PathBuf> {
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return None;
    }
    let name = path.file_name()?.to_string_lossy();
    Some(path.with_file_name(format!(".{name}.{}.part", std::process::id())))
}

fn write(
    model: &Model,
    options: &RunOptions<'_>,
    interfaces: Vec<Option<u32>>,
    path: &Path,
) -> Result<RunOutput, CaptureError> {
    #[expect(clippy::disallowed_types, reason = "the crate that writes files")]
    let file = std::fs::File::create(path).map_err(CaptureError::File)?;
    let mut writing = Writing::begin(BufWriter::new(file), model, interfaces).map_err(CaptureError::File)?;
    let done = run_captured(model, options, &mut writing);
    match (writing.finish(), done) {
        (Err(error), _) => Err(CaptureError::File(error)),
        (Ok(()), Err(error)) => Err(CaptureError::Run(error)),
        (Ok(()), Ok(output)) => Ok(output),
    }
}

/// For each node the number of its interface, if it is captured at.
fn interfaces(model: &Model, hosts: &[String]) -> Result<Vec<Option<u32>>, CaptureError> {
    let mut has_flows = vec![false; model.nodes.len()];
    for flow in &model.flows {
        has_flows[flow.source] = true;
        has_flows[flow.sink] = true;
    }
    let with_flows = || model.nodes.iter().zip(&has_flows).filter(|(_, has)| **has).map(|(name, _)| name);
    if let Some(unknown) = hosts.iter().find(|name| !with_flows().any(|node| node == *name)) {
        return Err(CaptureError::NoHost(unknown.clone(), with_flows().cloned().collect()));
    }
    let mut next = 0;
    let number = |(name, has): (&String, &bool)| {
        let wanted = *has && (hosts.is_empty() || hosts.contains(name));
        wanted.then(|| {
            next += 1;
            next - 1
        })
    };
    Ok(model.nodes.iter().zip(&has_flows).map(number).collect())
}

/// A capture that is being written.
struct Writing<W: Write> {
    file: Pcapng<W>,
    interfaces: Vec<Option<u32>>,
    frames: Frames,
    bytes: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> Writing<W> {
    fn begin(to: W, model: &Model, interfaces: Vec<Option<u32>>) -> io::Result<Writing<W>> {
        let captured = model.nodes.iter().zip(&interfaces).filter(|(_, interface)| interface.is_some());
        let captured: Vec<&str> = captured.map(|(name, _)| name.as_str()).collect();
        let names = model.nodes.iter().enumerate().map(|(node, name)| (frames::address(node), name.as_str()));
        let file = Pcapng::begin(to, &captured, &names.collect::<Vec<_>>())?;
        Ok(Writing { file, interfaces, frames: Frames::new(model), bytes: Vec::new(), failed: None })
    }

    fn write(&mut self, captured: &Captured) -> io::Result<()> {
        let Some((way, original_len)) = self.frames.next(captured, &mut self.bytes) else { return Ok(()) };
        let Some(interface) = self.interfaces[captured.node] else { return Ok(()) };
        let at = Duration::from_nanos(captured.packet.time.0);
        self.file.write(interface, at, way, &self.bytes, original_len)
    }

    /// Writes what is still in memory.
    fn finish(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.file.flush(),
        }
    }
}

impl<W: Write> Capture for Writing<W> {
    fn packet(&mut self, captured: &Captured) -> ControlFlow<()> {
        match self.write(captured) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

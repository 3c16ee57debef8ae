//! A run's packets as a capture file (pcapng), as `tcpdump` would write them at every host, and logs of its QUIC
//! connections.
//!
//! There is one interface per host, named after it: a packet appears in the file when it leaves a host and, unless it
//! was lost, when it reaches one. Only its headers are kept (`docs/capture.md`). Logs have one file per connection and
//! end (`docs/qlog.md`). Start with [`simulate`].

mod content;
mod error;
mod frames;
pub(crate) mod pcapng;
mod qlog;
mod tcp;
mod tfrc;
mod udp;

pub use error::CaptureError;

use error::failed;
use frames::Frames;
use paceline_flow::Transport;
use paceline_scenario::Scenario;
use paceline_scenario::model::{FlowModel, Model};
use paceline_sim::{Capture, Captured, QuicEvent, RunOptions, RunOutput, expand, run_captured};
use pcapng::Pcapng;
use qlog::Logs;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files written during a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written<'a> {
    /// A capture of its packets.
    pub pcap: Option<CaptureFile<'a>>,
    /// A folder for logs of its QUIC connections; it must be empty, and is created if it does not exist.
    pub qlog: Option<&'a Path>,
}

/// What to capture, and the destination.
#[derive(Clone, Copy, Debug)]
pub struct CaptureFile<'a> {
    /// The file; an existing one is replaced.
    pub path: &'a Path,
    /// Names of the hosts to capture at; empty: all.
    pub hosts: &'a [String],
}

/// Runs a scenario once, with this seed, and writes its packets and logs. Packets are first written to a temporary file
/// beside the destination, which it replaces when the run has ended or was cancelled. If it cannot be written
/// completely, the old file stays.
///
/// # Errors
/// [`CaptureError`].
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    options: &RunOptions<'_>,
    to: &Written<'_>,
) -> Result<RunOutput, CaptureError> {
    let model = expand(scenario, seed).map_err(|error| CaptureError::Run(error.into()))?;
    let halves =
        |flow: &&FlowModel| matches!(&flow.transport, Transport::Tcp { config, .. } if config.requests.is_some());
    if let Some(flow) = model.flows.iter().find(halves).filter(|_| to.pcap.is_some()) {
        return Err(CaptureError::Requests(flow.name.clone()));
    }
    let interfaces = to.pcap.map(|pcap| interfaces(&model, pcap.hosts)).transpose()?;
    let logs = to.qlog.map(|folder| Logs::begin(&model, folder)).transpose()?;
    let (Some(pcap), Some(interfaces)) = (to.pcap, interfaces) else { return write(&model, options, None, logs) };
    let part = part_of(pcap.path);
    let packets = Writing::create(part.as_deref().unwrap_or(pcap.path), &model, interfaces);
    let written = packets.map_err(failed(pcap.path)).and_then(|packets| {
        let packets = Some((packets, pcap.path));
        write(&model, options, packets, logs)
    });
    let Some(part) = part else { return written };
    let done = match written {
        Err(error @ CaptureError::File(..)) => Err(error),
        done => std::fs::rename(&part, pcap.path).map_err(failed(pcap.path)).and(done),
    };
    if matches!(done, Err(CaptureError::File(..))) {
        // a partial file is useless, and the reported error explains the failure
        let _ = std::fs::remove_file(&part);
    }
    done
}

/// The temporary file for a destination; `None` for a pipe or a device, which is written directly.
fn part_of(path: &Path) -> Option<PathBuf> {
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return None;
    }
    let name = path.file_name()?.to_string_lossy();
    Some(path.with_file_name(format!(".{name}.{}.part", std::process::id())))
}

/// Runs the model and writes the requested files.
fn write(
    model: &Model,
    options: &RunOptions<'_>,
    packets: Option<(Writing, &Path)>,
    logs: Option<Logs<'_>>,
) -> Result<RunOutput, CaptureError> {
    let mut takers = Takers { packets, logs, failed: None };
    let done = run_captured(model, options, &mut takers);
    match (takers.finish(), done) {
        (Err(error), _) => Err(error),
        (Ok(()), Err(error)) => Err(CaptureError::Run(error)),
        (Ok(()), Ok(output)) => Ok(output),
    }
}

/// The destinations of a run's output.
struct Takers<'a> {
    packets: Option<(Writing, &'a Path)>,
    logs: Option<Logs<'a>>,
    failed: Option<CaptureError>,
}

impl Takers<'_> {
    /// Flushes buffered output.
    fn finish(self) -> Result<(), CaptureError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if let Some((packets, path)) = self.packets {
            packets.finish().map_err(failed(path))?;
        }
        self.logs.map_or(Ok(()), Logs::finish)
    }

    fn went(&mut self, how: Result<(), CaptureError>) -> ControlFlow<()> {
        match how {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

impl Capture for Takers<'_> {
    fn packet(&mut self, captured: &Captured) -> ControlFlow<()> {
        let mut how = Ok(());
        if let Some((packets, path)) = &mut self.packets {
            how = packets.write(captured).map_err(failed(path));
        }
        if let Some(logs) = self.logs.as_mut().filter(|_| how.is_ok()) {
            how = logs.packet(captured);
        }
        self.went(how)
    }

    fn wants_notes(&self) -> bool {
        self.logs.is_some()
    }

    fn on_quic_event(&mut self, noted: &QuicEvent) -> ControlFlow<()> {
        let how = self.logs.as_mut().map_or(Ok(()), |logs| logs.noted(noted));
        self.went(how)
    }
}

/// For each node the number of its interface, if it is captured.
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

#[expect(clippy::disallowed_types, reason = "the crate that writes files")]
type File = std::fs::File;

/// A capture being written.
struct Writing {
    file: Pcapng<BufWriter<File>>,
    interfaces: Vec<Option<u32>>,
    frames: Frames,
    bytes: Vec<u8>,
}

impl Writing {
    fn create(path: &Path, model: &Model, interfaces: Vec<Option<u32>>) -> io::Result<Writing> {
        let to = BufWriter::new(File::create(path)?);
        let captured = model.nodes.iter().zip(&interfaces).filter(|(_, interface)| interface.is_some());
        let captured: Vec<&str> = captured.map(|(name, _)| name.as_str()).collect();
        let names = model.nodes.iter().enumerate().map(|(node, name)| (frames::address(node), name.as_str()));
        let file = Pcapng::begin(to, &captured, &names.collect::<Vec<_>>())?;
        Ok(Writing { file, interfaces, frames: Frames::new(model), bytes: Vec::new() })
    }

    fn write(&mut self, captured: &Captured) -> io::Result<()> {
        let Some((direction, original_len)) = self.frames.next(captured, &mut self.bytes) else { return Ok(()) };
        let Some(interface) = self.interfaces[captured.node] else { return Ok(()) };
        let at = Duration::from_nanos(captured.packet.time.0);
        self.file.write(interface, at, direction, &self.bytes, original_len)
    }

    /// Flushes buffered output.
    fn finish(mut self) -> io::Result<()> {
        self.file.flush()
    }
}

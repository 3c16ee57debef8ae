//! A capture of an emulated path, as `tcpdump` would write it at either end. A separate thread writes it: a slow disk
//! makes it incomplete, but never delays the path.

use super::emulator::Side;
use super::record::CaptureReport;
use crate::capture::pcapng::{Direction, Pcapng};
use crate::clock::Clock;
use paceline_units::{Span, Time};
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What to capture, and the destination.
#[derive(Clone, Copy, Debug)]
pub struct PathCapture<'a> {
    /// The file; an existing one is replaced. It has an interface `near` and an interface `far`; times are wall-clock
    /// times.
    pub path: &'a Path,
    /// Number of bytes kept of each packet.
    pub snap: usize,
}

/// Bytes passed to the thread at once.
const HANDED: usize = 64 << 10;
/// Maximum number of such pieces that wait for the disk.
const PIECES: usize = 256;
/// Maximum time that a packet waits to be passed on, while others arrive.
const PATIENCE: Span = Span::from_secs(1);

/// Collects bytes and passes them to the thread.
struct Hand {
    bytes: Vec<u8>,
    to: SyncSender<Vec<u8>>,
}

impl Hand {
    /// Passes on the collected bytes.
    fn pass(&mut self) -> Passed {
        match self.to.try_send(core::mem::take(&mut self.bytes)) {
            Ok(()) => Passed::Over,
            Err(TrySendError::Full(bytes)) => {
                self.bytes = bytes;
                Passed::Later
            }
            Err(TrySendError::Disconnected(_)) => Passed::Nowhere,
        }
    }
}

enum Passed {
    Over,
    /// The thread is too slow.
    Later,
    /// The thread has ended with an error, which joining it returns.
    Nowhere,
}

impl Write for Hand {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.pass() {
            Passed::Nowhere => Err(io::ErrorKind::BrokenPipe.into()),
            Passed::Over | Passed::Later => Ok(()),
        }
    }
}

/// A capture in progress.
pub(super) struct Capturing {
    file: Pcapng<Hand>,
    snap: usize,
    unix_at_zero: u64,
    thread: JoinHandle<io::Result<()>>,
    packets: u64,
    /// Packets that have not been passed on yet.
    pending: u64,
    missing: u64,
    handed: Time,
}

impl Capturing {
    pub(super) fn begin(capture: &PathCapture<'_>, clock: Clock) -> io::Result<Capturing> {
        #[expect(clippy::disallowed_types, reason = "the crate that writes files")]
        let mut file = std::fs::File::create(capture.path)?;
        let (to, from) = sync_channel::<Vec<u8>>(PIECES);
        let write = move || from.iter().try_for_each(|bytes| file.write_all(&bytes));
        let thread = thread::Builder::new().name("path-capture".into()).spawn(write)?;
        Ok(Capturing {
            file: Pcapng::begin(Hand { bytes: Vec::new(), to }, &[Side::Near.name(), Side::Far.name()], &[])?,
            snap: capture.snap,
            unix_at_zero: clock.unix_at_zero(),
            thread,
            packets: 0,
            pending: 0,
            missing: 0,
            handed: Time::ZERO,
        })
    }

    /// Switches to another clock, from whose zero times count from now on.
    pub(super) fn change(&mut self, clock: Clock) {
        self.unix_at_zero = clock.unix_at_zero();
        self.handed = Time::ZERO;
    }

    /// Records a packet at `side`: one that enters the path there (leaves the host), or one that reaches the host.
    pub(super) fn packet(&mut self, side: Side, at: Time, enters: bool, frame: &[u8]) {
        let is_due = self.file.to().bytes.len() >= HANDED || at.since(self.handed) >= PATIENCE;
        if is_due {
            match self.file.to().pass() {
                Passed::Over => self.packets += core::mem::take(&mut self.pending),
                Passed::Later => {
                    self.missing += 1;
                    return;
                }
                Passed::Nowhere => self.missing += core::mem::take(&mut self.pending),
            }
            self.handed = at;
        }
        let direction = if enters { Direction::Out } else { Direction::In };
        let time = Duration::from_nanos(self.unix_at_zero + at.0);
        let kept = &frame[..frame.len().min(self.snap)];
        match self.file.write(side as u32, time, direction, kept, frame.len() as u32) {
            Ok(()) => self.pending += 1,
            Err(_) => self.missing += 1,
        }
    }

    /// Waits until everything is written.
    pub(super) fn finish(mut self) -> CaptureReport {
        let rest = core::mem::take(&mut self.file.to().bytes);
        match self.file.to().to.send(rest) {
            Ok(()) => self.packets += self.pending,
            Err(_) => self.missing += self.pending,
        }
        drop(self.file);
        let failure = match self.thread.join() {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("the capture is incomplete: {error}")),
            Err(_) => Some("the capture is incomplete".to_owned()),
        };
        CaptureReport { packets: self.packets, missing: self.missing, failure }
    }
}

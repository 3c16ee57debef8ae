//! Announces over a named pipe when the flows over a path begin, from the process that runs them to the one that runs
//! the path.
//!
//! A program needs a second to start, and agreeing on flows takes a round trip. A path emulated for a scenario starts
//! its time with the flows', so that the times in a schedule also apply to the flows.

use crate::clock::Clock;
use paceline_units::Time;
use rustix::fs::{CWD, Mode, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The path's end of the pipe.
#[derive(Debug)]
pub struct Beginning {
    pipe: OwnedFd,
}

impl Beginning {
    /// Creates the pipe `path`.
    ///
    /// # Errors
    /// `mkfifo(3)`'s and `open(2)`'s.
    pub fn new(path: &Path) -> io::Result<Beginning> {
        rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // open for reading and writing: otherwise a pipe without a writer yet would read as end of file
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Beginning { pipe: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// When the flows began, by CLOCK_MONOTONIC in nanoseconds; `None` if they have not begun, or this was returned
    /// before.
    pub fn take(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        // so few bytes are transferred atomically (pipe(7), PIPE_BUF)
        match rustix::io::read(&self.pipe, &mut bytes) {
            Ok(8) => Some(u64::from_ne_bytes(bytes)),
            _ => None,
        }
    }
}

/// The flows' end of the pipe, used by the first flow to begin.
#[derive(Debug)]
pub struct Announcer {
    pipe: OwnedFd,
    clock: Clock,
    reported: AtomicBool,
}

impl Announcer {
    /// Opens the pipe `path`; `clock` is the clock of the announced times.
    ///
    /// # Errors
    /// `open(2)`'s: ENXIO if no path has it open.
    pub fn new(path: &Path, clock: Clock) -> io::Result<Announcer> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Announcer { pipe: rustix::fs::open(path, flags, Mode::empty())?, clock, reported: AtomicBool::new(false) })
    }

    /// Announces that a flow's data begin at `at`. Call it before the first of them is sent.
    pub fn say(&self, at: Time) {
        if !self.reported.swap(true, Ordering::Relaxed) {
            let at = self.clock.monotonic_at_zero() + at.0;
            // errors are ignored: the path has ended
            let _ = rustix::io::write(&self.pipe, &at.to_ne_bytes());
        }
    }

    /// Announces that the data begin now.
    pub fn say_now(&self) {
        self.say(self.clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_beginning_is_told_once() {
        let folder = std::env::temp_dir().join(format!("paceline-beginning-{}", std::process::id()));
        let _ = std::fs::remove_file(&folder);
        let clock = Clock::start();
        assert!(Announcer::new(&folder, clock).is_err(), "there is no path");
        let path = Beginning::new(&folder).unwrap();
        assert_eq!(path.take(), None);
        let flows = Announcer::new(&folder, clock).unwrap();
        assert_eq!(path.take(), None);
        flows.say(Time(5));
        flows.say(Time(9));
        assert_eq!((path.take(), path.take()), (Some(clock.monotonic_at_zero() + 5), None));
        drop(path);
        assert!(Announcer::new(&folder, clock).is_err(), "it has gone");
        std::fs::remove_file(&folder).unwrap();
    }
}

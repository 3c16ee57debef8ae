//! When the flows over a path begin, told by whoever runs them to whoever runs the path, over a named pipe.
//!
//! A program needs a second to start and flows a round trip to be agreed on. A path that is emulated for a scenario begins its
//! time with theirs, so that a schedule's instants are the flows' too.

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
    /// Makes the pipe `path`.
    ///
    /// # Errors
    /// `mkfifo(3)`'s and `open(2)`'s.
    pub fn new(path: &Path) -> io::Result<Beginning> {
        rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        // read and write: a pipe that nobody has opened for writing yet is no end of file
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Beginning { pipe: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// When the flows began, by CLOCK_MONOTONIC in nanoseconds; `None`: they have not, or it was said before.
    pub fn take(&self) -> Option<u64> {
        let mut bytes = [0; 8];
        // so few bytes come whole or not at all (pipe(7), PIPE_BUF)
        match rustix::io::read(&self.pipe, &mut bytes) {
            Ok(8) => Some(u64::from_ne_bytes(bytes)),
            _ => None,
        }
    }
}

/// The end of the flows, which the first of them to begin uses.
#[derive(Debug)]
pub struct Announcer {
    pipe: OwnedFd,
    clock: Clock,
    reported: AtomicBool,
}

impl Announcer {
    /// Opens the pipe `path`; `clock` is that of the instants to be told.
    ///
    /// # Errors
    /// `open(2)`'s: ENXIO if no path listens.
    pub fn new(path: &Path, clock: Clock) -> io::Result<Announcer> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Announcer { pipe: rustix::fs::open(path, flags, Mode::empty())?, clock, reported: AtomicBool::new(false) })
    }

    /// The data of a flow begin at `at`. To be said before the first of them leaves.
    pub fn say(&self, at: Time) {
        if !self.reported.swap(true, Ordering::Relaxed) {
            let at = self.clock.monotonic_at_zero() + at.0;
            // a path that is gone has nothing to begin
            let _ = rustix::io::write(&self.pipe, &at.to_ne_bytes());
        }
    }

    /// They begin now.
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

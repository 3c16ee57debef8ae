//! Signals that arrive while a path runs: they are for its program, and Paceline must outlive it.

use super::call::{Attempt, Call};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::sync::atomic::{AtomicI32, Ordering};

/// Signals that would end Paceline.
const CAUGHT: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The handler's pipe; negative if signals are not caught.
static WRITER: AtomicI32 = AtomicI32::new(-1);

/// A received signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Signal {
    pub(super) number: i32,
    /// Whether the terminal sent it (Ctrl-C), and therefore also to the program.
    pub(super) of_terminal: bool,
}

/// Catches signals until it is dropped.
pub(super) struct Caught {
    reader: OwnedFd,
    _writer: OwnedFd,
    before: Vec<(i32, libc::sigaction)>,
}

extern "C" fn handle(number: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a complete structure (SA_SIGINFO).
    let code = unsafe { (*info).si_code };
    let bytes = [number as u8, u8::from(code > 0)];
    let errno = std::io::Error::last_os_error().raw_os_error();
    // SAFETY: two bytes, to a non-blocking descriptor. errno is restored for the interrupted code.
    unsafe {
        libc::write(WRITER.load(Ordering::Relaxed), bytes.as_ptr().cast(), bytes.len());
        *libc::__errno_location() = errno.unwrap_or(0);
    }
}

impl Caught {
    /// Starts catching signals; `None` if another path of this process does.
    pub(super) fn new() -> Attempt<Option<Caught>> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(Call::Pipe.with())?;
        if WRITER.compare_exchange(-1, writer.as_raw_fd(), Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return Ok(None);
        }
        let mut caught = Caught { reader, _writer: writer, before: Vec::new() };
        for number in CAUGHT {
            // SAFETY: complete structures; the handler does only what signal-safety(7) allows.
            let result = unsafe {
                let mut action = std::mem::zeroed::<libc::sigaction>();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                let mut before = std::mem::zeroed::<libc::sigaction>();
                let result = libc::sigaction(number, std::ptr::null(), &raw mut before);
                // signals ignored when Paceline was started (nohup, a shell's background) stay ignored
                if result == 0 && before.sa_sigaction != libc::SIG_IGN {
                    caught.before.push((number, before));
                    libc::sigaction(number, &raw const action, std::ptr::null_mut())
                } else {
                    result
                }
            };
            Call::SignalAction.check(result)?;
        }
        Ok(Some(caught))
    }

    /// The next received signal, if any.
    pub(super) fn next(&self) -> Option<Signal> {
        let mut bytes = [0; 2];
        match rustix::io::read(&self.reader, &mut bytes) {
            Ok(2) => Some(Signal { number: bytes[0].into(), of_terminal: bytes[1] != 0 }),
            _ => None,
        }
    }
}

impl AsFd for Caught {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        for (number, before) in &self.before {
            // SAFETY: restores the previous action.
            unsafe { libc::sigaction(*number, before, std::ptr::null_mut()) };
        }
        WRITER.store(-1, Ordering::SeqCst);
    }
}

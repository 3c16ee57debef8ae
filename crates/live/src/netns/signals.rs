//! Signals that come while a path runs: they are for its program, and Paceline must outlive it.

use super::call::{Attempt, Call};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::sync::atomic::{AtomicI32, Ordering};

/// Those that would end Paceline.
const CAUGHT: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Where the handler writes; negative if nobody catches signals.
static WRITER: AtomicI32 = AtomicI32::new(-1);

/// A signal that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Signal {
    pub(super) number: i32,
    /// The terminal sent it (Ctrl-C), and so sent it to the program too.
    pub(super) of_terminal: bool,
}

/// Catches signals as long as it lives.
pub(super) struct Caught {
    reader: OwnedFd,
    _writer: OwnedFd,
    before: Vec<(i32, libc::sigaction)>,
}

extern "C" fn handle(number: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands over a whole structure (SA_SIGINFO).
    let code = unsafe { (*info).si_code };
    let bytes = [number as u8, u8::from(code > 0)];
    let errno = std::io::Error::last_os_error().raw_os_error();
    // SAFETY: two bytes, to a descriptor that does not block. errno is given back to what was interrupted.
    unsafe {
        libc::write(WRITER.load(Ordering::Relaxed), bytes.as_ptr().cast(), bytes.len());
        *libc::__errno_location() = errno.unwrap_or(0);
    }
}

impl Caught {
    /// Begins to catch; `None` if another path of this process does.
    pub(super) fn new() -> Attempt<Option<Caught>> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(Call::Pipe.with())?;
        if WRITER.compare_exchange(-1, writer.as_raw_fd(), Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return Ok(None);
        }
        let mut caught = Caught { reader, _writer: writer, before: Vec::new() };
        for number in CAUGHT {
            // SAFETY: whole structures; the handler does only what signal-safety(7) allows.
            let result = unsafe {
                let mut action = std::mem::zeroed::<libc::sigaction>();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                let mut before = std::mem::zeroed::<libc::sigaction>();
                let result = libc::sigaction(number, std::ptr::null(), &raw mut before);
                // What whoever started Paceline had it ignore (nohup, a shell's background) stays ignored.
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

    /// The next that came, if any.
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
            // SAFETY: gives back what was there.
            unsafe { libc::sigaction(*number, before, std::ptr::null_mut()) };
        }
        WRITER.store(-1, Ordering::SeqCst);
    }
}

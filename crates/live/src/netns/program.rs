//! A program in the form that `execve(2)` needs, prepared before its process exists.

use std::cell::Cell;
use std::ffi::{CString, OsStr, OsString, c_char};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// A program to run at an end of a path.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program, looked up in PATH if it has no slash, and its arguments.
    pub words: Vec<OsString>,
    /// Changes to this process's environment variables; `None` removes a variable.
    pub environment: Vec<(String, Option<String>)>,
    /// Destination of its output.
    pub output: Output,
}

/// Destination of a program's output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Inherits this process's standard input, output and error.
    Inherited,
    /// Reads from /dev/null; standard output and error go to this descriptor.
    To(i32),
}

/// The environment variable with the start of the path's clock: seconds since 1970, with nine decimals.
const START: &[u8] = b"PACELINE_START=";

/// Nanoseconds since 1970 in the form of [`START`].
#[must_use]
pub fn start_text(nanoseconds: u64) -> String {
    digits(nanoseconds).map(char::from).collect()
}

/// The same without allocating: one to eleven digits of seconds, and the decimals.
fn digits(nanoseconds: u64) -> impl Iterator<Item = u8> {
    let digit = move |power: u32| b'0' + (nanoseconds / 10_u64.pow(power) % 10) as u8;
    let seconds = (9..20).rev().skip_while(move |&power| power > 9 && nanoseconds / 10_u64.pow(power) == 0).map(digit);
    seconds.chain([b'.']).chain((0..9).rev().map(digit))
}

/// Null-terminated arrays with stable addresses.
pub(super) struct Program {
    /// Paths to try one after another.
    paths: Vec<CString>,
    #[expect(dead_code, reason = "what `argument_pointers` point to")]
    arguments: Vec<CString>,
    #[expect(dead_code, reason = "what `environment_pointers` point to")]
    environment: Vec<CString>,
    argument_pointers: Vec<*const c_char>,
    environment_pointers: Vec<*const c_char>,
    /// [`START`], its value, and zeros after it: the value is set after the program's process exists.
    start: Box<[Cell<u8>]>,
    pub(super) output: Output,
}

impl Program {
    /// Prepares a program; returns the word that contains a zero byte as the error.
    pub(super) fn new(command: &Command) -> Result<Program, OsString> {
        let c_string = |bytes: Vec<u8>| CString::new(bytes.clone()).map_err(|_| OsString::from_vec(bytes));
        let arguments =
            command.words.iter().map(|word| c_string(word.as_bytes().to_vec())).collect::<Result<_, _>>()?;
        let name = command.words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let paths: Vec<CString> = candidates(name).into_iter().map(c_string).collect::<Result<_, _>>()?;
        let mut environment = Vec::new();
        for (key, value) in std::env::vars_os() {
            let is_ours = key.as_bytes() == &START[..START.len() - 1];
            if !is_ours && !command.environment.iter().any(|(name, _)| key == OsStr::new(name)) {
                environment.push(c_string([key.as_bytes(), b"=", value.as_bytes()].concat())?);
            }
        }
        for (key, value) in &command.environment {
            if let Some(value) = value {
                environment.push(c_string(format!("{key}={value}").into_bytes())?);
            }
        }
        let start: Box<[Cell<u8>]> = START.iter().copied().chain([0; 32]).map(Cell::new).collect();
        let pointers = |strings: &Vec<CString>, more: Option<*const c_char>| {
            strings.iter().map(|string| string.as_ptr()).chain(more).chain([std::ptr::null()]).collect::<Vec<_>>()
        };
        Ok(Program {
            argument_pointers: pointers(&arguments, None),
            environment_pointers: pointers(&environment, Some(start.as_ptr().cast::<c_char>())),
            start,
            paths,
            arguments,
            environment,
            output: command.output,
        })
    }

    /// Sets the start of the path's clock in the environment, in nanoseconds since 1970. Does not allocate.
    pub(super) fn set_start(&self, nanoseconds: u64) {
        for (place, digit) in self.start[START.len()..].iter().zip(digits(nanoseconds)) {
            place.set(digit);
        }
    }

    /// Executes the program; returns the error number if that fails. Does not allocate.
    pub(super) fn execute(&self) -> i32 {
        let mut why = libc::ENOENT;
        for path in &self.paths {
            // SAFETY: the arrays end with a null pointer, and their strings live as long as `self`.
            unsafe { libc::execve(path.as_ptr(), self.argument_pointers.as_ptr(), self.environment_pointers.as_ptr()) };
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            // Like `execvp(3)`: EACCES does not stop the search, but is reported if no other path works.
            match errno {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => why = errno,
                _ => return errno,
            }
        }
        why
    }
}

/// The paths at which a program of this name may be.
fn candidates(name: &OsStr) -> Vec<Vec<u8>> {
    if name.as_bytes().contains(&b'/') {
        return vec![name.as_bytes().to_vec()];
    }
    if name.is_empty() {
        return vec![];
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let join = |folder: std::path::PathBuf| Path::new(&folder).join(name).into_os_string().into_vec();
    std::env::split_paths(&path).map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_beginning_as_text() {
        for (nanoseconds, text) in [
            (0, "0.000000000"),
            (1_500_000_007, "1.500000007"),
            (1_763_845_200_000_000_120, "1763845200.000000120"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            assert_eq!(start_text(nanoseconds), text);
        }
    }
}

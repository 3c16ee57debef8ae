//! A program as `execve(2)` wants it, prepared before there is a process for it.

use std::ffi::{CString, OsStr, OsString, c_char};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// What to run at an end of a path.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program, looked up in PATH if it has no slash, and its arguments.
    pub words: Vec<OsString>,
    /// Variables of the environment beside this process's.
    pub environment: Vec<(String, String)>,
    /// Where its output goes.
    pub output: Output,
}

/// Where a program's output goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Standard input, output and errors are this process's.
    Inherited,
    /// It reads nothing, and standard output and errors go to this descriptor.
    To(i32),
}

/// Null-terminated arrays that stay where they are.
pub(super) struct Program {
    /// Paths to try one after the other.
    paths: Vec<CString>,
    #[expect(dead_code, reason = "what `argument_pointers` point to")]
    arguments: Vec<CString>,
    #[expect(dead_code, reason = "what `environment_pointers` point to")]
    environment: Vec<CString>,
    argument_pointers: Vec<*const c_char>,
    environment_pointers: Vec<*const c_char>,
    pub(super) output: Output,
}

impl Program {
    /// The name of a program that has a zero byte in it is the error.
    pub(super) fn new(command: &Command) -> Result<Program, OsString> {
        let c_string = |bytes: Vec<u8>| CString::new(bytes.clone()).map_err(|_| OsString::from_vec(bytes));
        let arguments =
            command.words.iter().map(|word| c_string(word.as_bytes().to_vec())).collect::<Result<_, _>>()?;
        let name = command.words.first().map_or(OsStr::new(""), OsString::as_os_str);
        let paths: Vec<CString> = candidates(name).into_iter().map(c_string).collect::<Result<_, _>>()?;
        let mut environment = Vec::new();
        for (key, value) in std::env::vars_os() {
            if !command.environment.iter().any(|(name, _)| key == OsStr::new(name)) {
                environment.push(c_string([key.as_bytes(), b"=", value.as_bytes()].concat())?);
            }
        }
        for (key, value) in &command.environment {
            environment.push(c_string(format!("{key}={value}").into_bytes())?);
        }
        let pointers = |strings: &Vec<CString>| {
            strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect::<Vec<_>>()
        };
        Ok(Program {
            argument_pointers: pointers(&arguments),
            environment_pointers: pointers(&environment),
            paths,
            arguments,
            environment,
            output: command.output,
        })
    }

    /// Becomes the program; gives why it did not. Does not allocate.
    pub(super) fn execute(&self) -> i32 {
        let mut why = libc::ENOENT;
        for path in &self.paths {
            // SAFETY: the arrays end with a null pointer, and their strings live as long as `self`.
            unsafe { libc::execve(path.as_ptr(), self.argument_pointers.as_ptr(), self.environment_pointers.as_ptr()) };
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            // As `execvp(3)` does: what may not be run is not a reason to stop looking, but the one to tell.
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

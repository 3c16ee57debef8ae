//! Scenario files on disk.

use paceline_scenario::{Document, Scenario, ScenarioError};
use std::io::Read as _;
use std::path::Path;

/// Maximum size of a scenario file in bytes.
const MAX_SCENARIO: u64 = 16 << 20;
/// Maximum size of a trace file in bytes.
const MAX_TRACE: u64 = 512 << 20;

/// Reads and validates a scenario file, and the trace files that it names.
///
/// # Errors
/// Every mistake in it, or why a file cannot be read.
pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
    check(&open(path)?, path.parent().unwrap_or(Path::new("")))
}

/// Parses a scenario file as TOML, so that keys can still be set.
///
/// # Errors
/// A syntax error, or why the file cannot be read.
pub fn open(path: &Path) -> Result<Document, ScenarioError> {
    let shown = path.display().to_string();
    let text = read(path, MAX_SCENARIO).map_err(|problem| ScenarioError::of_file(&shown, &problem))?;
    Document::parse(&text, &shown)
}

/// Validates a scenario whose trace file paths are relative to `folder`.
///
/// # Errors
/// Every mistake in it, or why a trace file cannot be read.
pub fn check(document: &Document, folder: &Path) -> Result<Scenario, ScenarioError> {
    Scenario::check(document, &mut |file| trace(&folder.join(file)))
}

/// The text of a trace file.
///
/// # Errors
/// Why it cannot be read.
pub fn trace(path: &Path) -> Result<String, String> {
    read(path, MAX_TRACE)
}

/// Reads a text file of at most `max` bytes; the error is a message.
fn read(path: &Path, max: u64) -> Result<String, String> {
    // a pipe would block the reader until somebody writes, and be empty for the next reader
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        return Err("is not a regular file: write what it gives to one, and name that".into());
    }
    let mut bytes = Vec::new();
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    // kernel files look regular, but some block the reader (/proc/kmsg)
    #[cfg(target_os = "linux")]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path);
    let read = file.and_then(|file| {
        if file.metadata()?.is_dir() {
            return Err(std::io::ErrorKind::IsADirectory.into());
        }
        file.take(max + 1).read_to_end(&mut bytes)
    });
    if let Err(error) = read {
        let error = error.to_string();
        // "No such file or directory (os error 2)": the number is of no use
        return Err(format!("cannot be read: {}", error.split(" (os error").next().unwrap_or(&error)));
    }
    if bytes.len() as u64 > max {
        return Err(format!("is larger than {} MB", max >> 20));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count() + 1;
        format!("is not UTF-8 text (line {line})")
    })?;
    Ok(text)
}

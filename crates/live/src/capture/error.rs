//! Why a capture failed.

use paceline_sim::RunError;
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no result, or no complete capture.
#[derive(Debug)]
pub enum CaptureError {
    /// The run failed or was cancelled. The files contain what was captured until then.
    Run(RunError),
    /// This file, or one in this folder, could not be written.
    File(PathBuf, io::Error),
    /// The folder for logs is not empty.
    NotEmpty(PathBuf),
    /// Logs were requested, but no flow uses QUIC.
    NothingToLog,
    /// This flow has requests over TCP, which captures do not support.
    Requests(String),
    /// There is no such host; with the names of the existing ones.
    NoHost(String, Vec<String>),
}

impl core::fmt::Display for CaptureError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            CaptureError::Run(error) => error.fmt(f),
            CaptureError::File(path, error) => write!(f, "{}: {error}", path.display()),
            CaptureError::NotEmpty(folder) => {
                write!(
                    f,
                    "{} is not empty, and logs of two runs would mix: name another folder, or empty it",
                    folder.display()
                )
            }
            CaptureError::NothingToLog => {
                f.write_str("no flow is over QUIC, so there is nothing to log: give one `transport = \"quic\"`")
            }
            CaptureError::Requests(flow) => {
                write!(
                    f,
                    "flow `{flow}` has requests over TCP, and a capture cannot show both halves of such a connection: \
                     capture it without `request`, or over QUIC"
                )
            }
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

/// An error with this file or in this folder.
pub(super) fn failed(path: &Path) -> impl Fn(io::Error) -> CaptureError {
    move |error| CaptureError::File(path.to_owned(), error)
}

//! Flows over real QUIC: wraps `quinn-proto`'s connection state machine as one of Paceline's machines.
//!
//! quinn-proto reads no clock and no socket: `link` passes it the flow's time and datagrams, and reads datagrams and
//! the next timer from it. [`Sending`] and [`Receiving`] are the two ends for a source and a sink
//! ([`ForeignSender`](paceline_flow::ForeignSender)). `frames` encodes media frames in streams and datagrams, [`keys`]
//! authenticates the ends, `settings` converts a scenario's keys to quinn-proto's settings, `watch` observes the calls
//! to the congestion controller. `docs/live.md`, "Over QUIC", describes what is carried and how this differs from the
//! simulator's machine.

mod close_reason;
pub mod frames;
pub mod keys;
mod link;
mod log_quota;
mod packet_numbers;
mod qlog;
mod receiving;
mod sending;
mod settings;
mod watch;

pub use close_reason::CloseReason;
pub use keys::{Fingerprint, Keys, OwnKey};
pub use log_quota::LogQuota;
pub use receiving::Receiving;
pub use sending::Sending;
pub use settings::{SPARE, unsupported};

use crate::session::controller_calls::CallLog;
use crate::session::{CaptureClock, Side};
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

/// State that a machine shares with its session, beside what every machine reports.
#[derive(Debug, Default)]
pub struct Shared {
    /// Why the connection was lost, if it was.
    pub(crate) lost: OnceLock<CloseReason>,
    /// The first capture time sent or received, and when it was captured or arrived.
    pub(crate) captures: OnceLock<CaptureClock>,
    /// Set by the session: where to log the connections.
    pub(crate) logged: OnceLock<Logged>,
    /// Set by the session: the log of calls to the congestion control.
    pub(crate) calls: OnceLock<Mutex<CallLog>>,
    /// Why one of these logs ended before the flow.
    pub(crate) cut: OnceLock<String>,
}

impl Shared {
    /// Records that a write error ended this log, which is complete up to there.
    pub(crate) fn cut_log(&self, log: impl Display, error: &io::Error) {
        let _ = self.cut.set(format!("{log}: {error}"));
    }
}

/// Where the logs (qlog) of a flow's connections are written.
#[derive(Clone, Debug)]
pub struct Place {
    /// An existing folder.
    pub folder: PathBuf,
    /// Prefix of the files' names; must not come from another host.
    pub name: String,
    /// The quota for them, at a server.
    pub quota: Option<Arc<LogQuota>>,
}

impl Place {
    /// The file for the flow's `count`th connection at this end. The flow's sender opens it, and is therefore QUIC's
    /// client.
    #[must_use]
    pub fn path(&self, side: Side, count: u32) -> PathBuf {
        let later = if count > 1 { format!(".{count}") } else { String::new() };
        let role = match side {
            Side::Sender => "client",
            Side::Receiver => "server",
        };
        self.folder.join(format!("{}{later}-{role}.sqlog", self.name))
    }

    /// Checks that files can be written there, so that an error is reported before anything is sent.
    ///
    /// # Errors
    /// The system's, about the folder.
    pub(crate) fn checked(self) -> Result<Place, String> {
        let probe = self.folder.join(format!("{}.probe", self.name));
        let tried = std::fs::write(&probe, []).and_then(|()| std::fs::remove_file(probe));
        tried.map_err(|error| format!("{}: {error}", self.folder.display()))?;
        Ok(self)
    }
}

/// Where and how a flow's connections are logged.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Where the files are.
    pub place: Place,
    /// The trace's title.
    pub title: String,
    /// The flow's controller.
    pub scheme: String,
}

//! Flows over real QUIC: `quinn-proto`'s state machine of a connection as a machine of ours.
//!
//! quinn-proto reads no clock and no socket: `link` gives it the flow's time and datagrams, and takes datagrams and the next timer
//! from it. [`Sending`] and [`Receiving`] are the two ends as a source and a sink have them
//! ([`ForeignSender`](paceline_flow::ForeignSender)); `frames` is how media frames stand in streams and datagrams; [`keys`] is
//! who may speak to whom; `settings` makes of a scenario's keys what quinn-proto has for them; `watch` sees what its congestion
//! controller is told. `docs/live.md`, "Over QUIC", says what is carried and what is otherwise than in the simulator's machine.

pub mod frames;
pub mod keys;
mod link;
mod log_quota;
mod lost;
mod numbers;
mod qlog;
mod receiving;
mod sending;
mod settings;
mod watch;

pub use keys::{Fingerprint, Keys, OwnKey};
pub use log_quota::LogQuota;
pub use lost::Lost;
pub use receiving::Receiving;
pub use sending::Sending;
pub use settings::{SPARE, unsupported};

use crate::session::calls::CallLog;
use crate::session::{CaptureClock, Side};
use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

/// What a machine tells the session around it, beside what every machine tells.
#[derive(Debug, Default)]
pub struct Shared {
    /// Why the connection is over, if not because it was to be.
    pub(crate) lost: OnceLock<Lost>,
    /// The first time of capture that was told, and when that was, or when it came.
    pub(crate) captures: OnceLock<CaptureClock>,
    /// Told it: where its connections are logged.
    pub(crate) logged: OnceLock<Logged>,
    /// Told it: the log of what its congestion control is told.
    pub(crate) calls: OnceLock<Mutex<CallLog>>,
    /// Why one of these logs ends before the flow does.
    pub(crate) cut: OnceLock<String>,
}

impl Shared {
    /// What the disk does not take ends this log: what was written is whole up to there.
    pub(crate) fn cut_log(&self, log: impl Display, error: &io::Error) {
        let _ = self.cut.set(format!("{log}: {error}"));
    }
}

/// Where the logs (qlog) of a flow's connections go.
#[derive(Clone, Debug)]
pub struct Place {
    /// A folder that is there.
    pub folder: PathBuf,
    /// With what the files' names begin: nothing that another host says.
    pub name: String,
    /// How much of them there may be, at a server.
    pub quota: Option<Arc<LogQuota>>,
}

impl Place {
    /// The file of the flow's `count`th connection at this end of it. The flow's sender opens it: it is QUIC's client.
    #[must_use]
    pub fn path(&self, side: Side, count: u32) -> PathBuf {
        let later = if count > 1 { format!(".{count}") } else { String::new() };
        let role = match side {
            Side::Sender => "client",
            Side::Receiver => "server",
        };
        self.folder.join(format!("{}{later}-{role}.sqlog", self.name))
    }

    /// The same, if files can be written there: what cannot be is said before anything is sent.
    ///
    /// # Errors
    /// What the system says of the folder.
    pub(crate) fn checked(self) -> Result<Place, String> {
        let probe = self.folder.join(format!("{}.probe", self.name));
        let tried = std::fs::write(&probe, []).and_then(|()| std::fs::remove_file(probe));
        tried.map_err(|error| format!("{}: {error}", self.folder.display()))?;
        Ok(self)
    }
}

/// Where a flow's connections are logged, and as what.
#[derive(Clone, Debug)]
pub struct Logged {
    /// Where.
    pub place: Place,
    /// The trace's title.
    pub title: String,
    /// Of the flow's controller.
    pub scheme: String,
}

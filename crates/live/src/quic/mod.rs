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
mod lost;
mod qlog;
mod receiving;
mod sending;
mod settings;
mod watch;

pub use keys::{Fingerprint, Keys, OwnKey};
pub use lost::Lost;
pub use receiving::Receiving;
pub use sending::Sending;
pub use settings::unsupported;

use crate::session::CaptureClock;
use crate::session::calls::CallLog;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

/// What a machine tells the session around it, beside what every machine tells.
#[derive(Debug, Default)]
pub struct Told {
    /// Why the connection is over, if not because it was to be.
    pub(crate) lost: OnceLock<Lost>,
    /// The first time of capture that was told, and when that was, or when it came.
    pub(crate) captures: OnceLock<CaptureClock>,
    /// Told it: where its connections are logged.
    pub(crate) logged: OnceLock<Logged>,
    /// Told it: the log of what its congestion control is told.
    pub(crate) calls: OnceLock<Mutex<CallLog>>,
}

/// Where a flow's connections are logged (qlog), and as what.
#[derive(Clone, Debug)]
pub struct Logged {
    /// A folder that is there.
    pub folder: PathBuf,
    /// With what the files' names begin.
    pub name: String,
    /// The trace's title.
    pub title: String,
    /// Of the flow's controller.
    pub scheme: String,
}

impl Logged {
    /// The file of the flow's `count`th connection.
    #[must_use]
    pub fn path(&self, count: u32) -> PathBuf {
        let later = if count > 1 { format!(".{count}") } else { String::new() };
        self.folder.join(format!("{}{later}-client.sqlog", self.name))
    }
}

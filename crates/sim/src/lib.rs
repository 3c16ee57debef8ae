//! Turns a scenario into a run, and a run into its results.
//!
//! Crate `scenario` reads and validates the file. [`expand()`] draws one run of it as plain data
//! ([`model`](paceline_scenario::model)). [`build()`] plans the graph ([`graph`]) and places hosts and links in it.
//! [`run()`] simulates and collects the [`summary`] and the recorded series. Uses scenario, flow, path and apps; does no
//! I/O. Start reading at [`simulate`].

mod access_links;
pub mod arrivals;
pub mod build;
pub mod bundling;
mod cell;
pub mod checked;
pub mod cost;
pub mod coupling;
pub mod describe;
mod diagnostics;
pub mod e_model;
mod end_of_run;
pub mod endpoint;
pub mod environment;
pub mod expand;
pub mod gauges;
pub mod graph;
pub mod host;
pub mod host_delay;
mod links;
pub mod measures;
mod phases;
mod port;
pub mod quic_events;
pub mod rate_variation;
pub mod recorder;
pub mod relaying;
mod report;
pub mod run;
pub mod summary;
pub mod tap;
mod timers;

pub use build::build;
pub use checked::CheckedScenario;
pub use expand::{ExpandError, expand, routes};
pub use quic_events::{QuicEvent, QuicEventKind};
pub use recorder::{Recording, Series};
pub use report::groups;
pub use run::{RunError, RunOptions, RunOutput, ScheduleKind, Watch, Watching, run, run_captured};
pub use summary::Summary;
pub use tap::{Capture, Captured};

use paceline_scenario::Scenario;

/// Runs a scenario once, with this seed.
///
/// # Errors
/// Errors that only the whole graph shows (unconnected ends, loops without delay), or cancellation.
pub fn simulate(scenario: &Scenario, seed: u64, options: &RunOptions<'_>) -> Result<RunOutput, RunError> {
    run(&expand(scenario, seed)?, options)
}

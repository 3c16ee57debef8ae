//! The scenario file: read, checked, with every default filled in.
//!
//! [`Document`] is the file as TOML, in which keys can still be set; [`mod@edit`] changes its text and keeps the layout. [`Scenario::check`] validates it against the
//! schema (`walk`), then against the rules that a schema cannot express (`rules`). It returns a [`Scenario`] with every
//! value that a run needs, or all mistakes at once. [`Scenario::warnings`] lists keys without effect.
//!
//! The serde model ([`model`], [`link`], [`mod@cell`], [`queue`], [`loss`], [`draw`], [`flow`]) is the single source,
//! together with the registry for controllers' parameters ([`parameters`]): the JSON Schema and docs/scenario.md are
//! generated from it. This module reads no files; it requests trace files by name.

pub mod app;
mod bounds;
pub mod bundle;
pub mod cell;
mod codec;
pub mod coupled;
mod docs;
mod document;
pub mod draw;
mod edca;
pub mod edit;
pub mod encoder;
mod error;
mod fill;
pub mod flow;
pub mod link;
pub mod loss;
pub mod model;
mod named;
pub mod parameters;
pub mod queue;
pub mod quic;
mod relay;
pub mod repair;
pub mod request;
mod resolve;
pub mod rtp;
mod rules;
mod rules_cell;
pub(crate) mod rules_machine;
mod rules_network;
mod rules_quic;
pub mod values;
mod walk;
mod warnings;
mod warnings_cut;
mod warnings_ecn;
mod warnings_edca;
mod warnings_late;
mod warnings_trace;
pub mod windows;

pub use docs::reference;
pub use document::{Document, Step, joined, split};
pub use error::{Mistake, ScenarioError, escaped, join};
pub use named::OWN;
pub use resolve::{Direction, Flow, Link, Scenario};

/// The JSON Schema of a scenario file (draft 2020-12), indented.
#[must_use]
pub fn schema_json() -> String {
    serde_json::to_string_pretty(walk::schema()).unwrap_or_default()
}

//! The scenario file: read, checked, with every default filled in; and a run of it, as plain data.
//!
//! [`Document`] is the file as TOML, in which keys can still be set; [`mod@edit`] changes its text and keeps the layout. [`Scenario::check`] validates it against the
//! schema (`walk`), then against the rules that a schema cannot express (`rules`). It returns a [`Scenario`] with every
//! value that a run needs, or all mistakes at once. [`Scenario::warnings`] (`lint`) lists keys without effect in a run.
//! Crate `sim` expands a scenario into that run, a [`model`].
//!
//! The serde model (`keys`: [`file`], [`link`], [`mod@cell`], [`queue`], [`loss`], [`draw`], [`flow`]) is the single
//! source, together with the registry for controllers' parameters ([`parameters`]): the JSON Schema and
//! docs/scenario.md are generated from it. This crate reads no files; it requests trace files by name.
//!
//! Arrows go down: lint, resolve, scenario, rules, fill, document, walk, keys, error and model. Only lint and keys use the
//! model, which uses none of them.

mod docs;
mod document;
pub mod edit;
mod error;
mod fill;
mod keys;
mod lint;
pub mod model;
mod resolve;
mod rules;
mod scenario;
mod walk;

pub use docs::reference;
pub use document::{Document, Step, joined, split};
pub use error::{Mistake, ScenarioError, escaped, join};
pub use keys::named::OWN;
pub use keys::{
    app, bundle, cell, coupled, draw, encoder, file, flow, link, loss, parameters, queue, quic, repair, request, rtp,
    values, windows,
};
pub use rules::marks_frames;
pub use scenario::{Direction, Flow, Link, Scenario};

/// The JSON Schema of a scenario file (draft 2020-12), indented.
#[must_use]
pub fn schema_json() -> String {
    serde_json::to_string_pretty(walk::schema()).unwrap_or_default()
}

//! The simulator for browsers: scenarios, runs, throughput models and edits of scenario text for JavaScript.
//!
//! Thin on purpose, as the Python module is: it turns JavaScript's values into calls of `paceline-sim`, and results into
//! JSON text and typed arrays; [`edit`](mod@edit) alone is its own. No clock, no files: a page hands in the traces. One
//! instance is single-threaded and takes at most 1 GiB; its memory grows as a run needs and never shrinks, so that a page
//! that recorded much starts a new worker. After a defect an instance is spent (`defects.rs`). Look first at `scenario.rs`.

mod defects;
pub mod edit;
mod exports;
pub mod scenario;

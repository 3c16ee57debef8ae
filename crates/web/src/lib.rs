//! The simulator for browsers: scenarios, runs, throughput models and edits of scenario text for JavaScript.
//!
//! Thin on purpose, as the Python module is: it turns JavaScript's values into calls of `paceline-sim`, and results
//! into JSON text and typed arrays. No clock, no files: a page passes in the traces. An instance is single-threaded and
//! takes at most 1 GiB. Its memory grows as a run needs and never shrinks, so a page that recorded much starts a new
//! worker. After a defect an instance is unusable (`defects.rs`). Start reading at `scenario.rs`.

mod defects;
mod exports;
pub mod scenario;

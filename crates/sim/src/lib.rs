//! From a scenario to a run.

pub mod scenario;

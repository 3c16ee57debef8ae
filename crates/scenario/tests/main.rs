//! The integration tests of this crate: one program, as each would be linked with the whole library anew.

mod docs;
mod edit;
mod messages;
mod mistakes;
mod scenario;
mod scenario_fuzz;

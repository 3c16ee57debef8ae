//! The integration tests of this crate: one program, as each would be linked with the whole library anew.

mod ns2_pareto;
mod player;
mod senders;

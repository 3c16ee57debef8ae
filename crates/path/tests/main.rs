//! The integration tests of this crate: one program, as each would be linked with the whole library anew.

mod admissions;
mod against_naive;
mod aggregation;
mod behaviour;
mod bianchi;
mod cake_vectors;
mod dcf;
mod dualpi2;
mod dualpi2_vectors;
mod edca;
mod limit_in_time;
mod qdisc_link;
mod traces;

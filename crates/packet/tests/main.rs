//! The integration tests of this crate: one program, as each would be linked with the whole library anew.

mod compounds;
mod samples;
mod wire_rtcp;
mod wire_rtp;
mod wire_tfrc;
mod wire_twcc;

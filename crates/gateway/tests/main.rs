//! The integration tests of this crate: one program, as each would be linked with the whole library anew.

mod gateway;
mod hardening;
mod home;
mod laws;
#[path = "../../../tests/needs.rs"]
mod needs;
#[path = "../../../tests/realtime.rs"]
mod realtime;

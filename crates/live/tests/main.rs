//! The integration tests of this crate: one program, as each would be linked with the whole library anew.

mod capture;
mod endpoints;
mod endpoints_path;
mod files;
mod gateway_program;
mod kernel_flow;
mod kernel_watch;
#[path = "../../../tests/needs.rs"]
mod needs;
mod netns;
mod path_core;
mod path_profiles;
mod path_relay;
mod qlog;
#[path = "../../../tests/realtime.rs"]
mod realtime;
mod session;

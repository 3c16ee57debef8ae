//! The bodies of the fuzz targets (`fuzz/`): each takes arbitrary bytes, and panics if the code under test is wrong.
//! `tests/replay.rs` runs them on inputs kept from fuzzing.
//!
//! Uses calls and live, and their dependencies. Start reading at [`TARGETS`].

// The fuzzed part of live needs Linux.
#![cfg(target_os = "linux")]

mod command_line;
mod control;
mod event_log;
pub mod flow;
mod frames;
mod gateway;
mod kernel;
mod listener;
mod program;
mod qlog;
mod quic;
mod scenario;
mod session;
mod trace;
mod wire_rtcp;
mod wire_rtp;
mod wire_tfrc;

pub use command_line::command_line;
pub use control::control;
pub use event_log::event_log;
pub use frames::frames;
pub use gateway::gateway;
pub use kernel::kernel;
pub use listener::listener;
pub use program::{program, program_ready};
pub use qlog::qlog;
pub use quic::quic;
pub use scenario::scenario;
pub use session::session;
pub use trace::trace;
pub use wire_rtcp::wire_rtcp;
pub use wire_rtp::wire_rtp;
pub use wire_tfrc::wire_tfrc;

/// A target: takes arbitrary bytes, and panics if something is wrong.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 16] = [
    ("command_line", command_line),
    ("control", control),
    ("event_log", event_log),
    ("frames", frames),
    ("gateway", gateway),
    ("kernel", kernel),
    ("listener", listener),
    ("program", program),
    ("qlog", qlog),
    ("quic", quic),
    ("scenario", scenario),
    ("session", session),
    ("trace", trace),
    ("wire_rtcp", wire_rtcp),
    ("wire_rtp", wire_rtp),
    ("wire_tfrc", wire_tfrc),
];

/// The input of a text parser: the bytes as far as they are valid UTF-8.
fn text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

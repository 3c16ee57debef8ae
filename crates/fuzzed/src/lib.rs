//! The bodies of the fuzz targets (`fuzz/`): each takes any bytes, and panics if what reads them does something wrong. `tests/replay.rs`
//! gives them what fuzzing has kept.
//!
//! Uses calls and live, and what those use. Look first at [`TARGETS`].

// What is fuzzed is the part of live that takes Linux.
#![cfg(target_os = "linux")]

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
mod words;

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
pub use words::words;

/// What a target is: any bytes in, a panic if something is wrong.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 16] = [
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
    ("words", words),
];

/// The text that an input of a reader of text is: as much of it as is UTF-8.
fn text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

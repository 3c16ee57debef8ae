//! qlog, the log of QUIC connections (draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events).
//!
//! [`Writer`] turns [`Event`]s into a file of the current drafts (JSON text sequences, `.sqlog`); who calls it, a simulated
//! sender or a real one, is nothing to it. No clock, no files: bytes go to [`std::io::Write`]. Uses units. Look first at
//! [`write`].

pub mod write;

pub use write::{Event, Frame, Packet, Trace, Writer};

//! qlog, the log of QUIC connections (draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events): written, and read.
//!
//! [`Writer`] turns [`Event`]s into a file of the current drafts (JSON text sequences, `.sqlog`); who calls it, a simulated
//! sender or a real one, is nothing to it. [`Reader`] takes what any QUIC program has written, the old forms too, and tells
//! what became of each connection over time. No clock, no files: bytes go to [`std::io::Write`] and come from
//! [`std::io::Read`]. Uses units. Look first at [`write`] for the one, at [`read`] for the other; docs/qlog.md says what is
//! read and derived.

pub mod read;
pub mod write;

pub use read::{Connection, Error, Reader, Reading, Table, Way};
pub use write::{Event, Frame, Packet, Trace, Writer};

//! qlog, the log of QUIC connections (draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events): a writer and
//! a reader.
//!
//! [`Writer`] turns [`Event`]s of a simulated or real endpoint into a file of the current drafts (JSON text sequences,
//! `.sqlog`). [`Reader`] reads the logs of any QUIC program, also in the older forms, and reports on each connection
//! over time. No clock, no files: bytes go to [`std::io::Write`] and come from [`std::io::Read`]. Uses units. Start
//! reading at [`write`] or [`read`]; docs/qlog.md says what is read and derived.

pub mod read;
pub mod write;

pub use read::{Connection, Error, Reader, Reading, Table, Way};
pub use write::{Event, Frame, Packet, Trace, Writer};

//! Handshake sizes of TLS 1.3 (RFC 8446), over TCP and within QUIC (RFC 9001). Keys and certificates are not modelled.

/// Bytes of a ClientHello of current browsers and libraries; over QUIC its datagram is padded to 1200 (RFC 9000 section
/// 14.1).
pub(crate) const HELLO: u64 = 320;
/// Bytes of a server's answer with a chain of two certificates, and of an answer that resumes a session.
pub(crate) const ANSWER: u64 = 2800;
pub(crate) const RESUMED: u64 = 250;
/// Bytes of the client's Finished.
pub(crate) const FINISHED: u64 = 36;

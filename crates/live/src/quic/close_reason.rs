//! Why a connection was lost.

use core::fmt::{Display, Formatter, Result};
use quinn_proto::ConnectionError;

/// Why a connection was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The other end supports no QUIC version that this end supports (RFC 9000 section 6).
    Version,
    /// An end's key is not the one that the other end expects.
    Key,
    /// The other end uses another protocol over QUIC (RFC 7301).
    Protocol,
    /// The other end violated a limit or a rule, detected here: an error of RFC 9000 section 20.1, or of TLS from 0x100
    /// on.
    Here(u64),
    /// The same, detected there.
    There(u64),
    /// The other end's application closed it with this code.
    Closed(u64),
    /// The other end no longer knows the connection (a stateless reset, RFC 9000 section 10.3).
    Reset,
    /// The connection could not be opened.
    Failed,
}

/// TLS alerts with which an end rejects a key (RFC 8446 section 6): bad_certificate, unsupported_certificate,
/// certificate_unknown, unknown_ca, access_denied, decrypt_error, certificate_required.
const OF_KEYS: [u64; 7] = [42, 43, 46, 48, 49, 51, 116];
/// no_application_protocol.
const OF_PROTOCOLS: u64 = 120;

impl CloseReason {
    /// Classifies quinn's error; `None` if the connection ended as intended, or because it was idle.
    pub(super) fn of(error: &ConnectionError) -> Option<CloseReason> {
        let tls = |code: u64, other: CloseReason| match code.checked_sub(0x100) {
            Some(alert) if OF_KEYS.contains(&alert) => CloseReason::Key,
            Some(OF_PROTOCOLS) => CloseReason::Protocol,
            _ => other,
        };
        Some(match error {
            ConnectionError::VersionMismatch => CloseReason::Version,
            ConnectionError::TransportError(error) => {
                let code = u64::from(error.code);
                tls(code, CloseReason::Here(code))
            }
            ConnectionError::ConnectionClosed(close) => {
                let code = u64::from(close.error_code);
                if code == 0 {
                    return None;
                }
                tls(code, CloseReason::There(code))
            }
            ConnectionError::ApplicationClosed(close) => match close.error_code.into_inner() {
                0 => return None,
                code => CloseReason::Closed(code),
            },
            ConnectionError::Reset => CloseReason::Reset,
            ConnectionError::TimedOut | ConnectionError::LocallyClosed => return None,
            ConnectionError::CidsExhausted => CloseReason::Failed,
        })
    }
}

/// An error's name (RFC 9000 section 20.1), in words.
fn words(code: u64) -> String {
    let name = match code {
        0x1 => "its program failed",
        0x2 => "it takes no connection",
        0x3 => "more was sent than its window allows (FLOW_CONTROL_ERROR): `quic.receive_window`, `quic.stream_window`",
        0x4 => "more streams were opened than it allows (STREAM_LIMIT_ERROR): `quic.max_streams`",
        0x5 => "a frame came for a stream in the wrong state (STREAM_STATE_ERROR)",
        0x6 => "a stream's size changed (FINAL_SIZE_ERROR)",
        0x7 => "a frame could not be read (FRAME_ENCODING_ERROR)",
        0x8 => "its settings could not be read (TRANSPORT_PARAMETER_ERROR)",
        0xa => "a rule of QUIC was broken (PROTOCOL_VIOLATION)",
        0x10 => "there is no path (NO_VIABLE_PATH)",
        0x100..=0x1ff => return format!("the handshake failed: TLS alert {}", code - 0x100),
        _ => return format!("error {code:#x} of RFC 9000"),
    };
    name.to_owned()
}

impl Display for CloseReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            CloseReason::Version => f.write_str("the other end speaks no version of QUIC that is spoken here (version 1)"),
            CloseReason::Key => f.write_str(
                "the key of what answers over QUIC is not the one that was agreed on: somebody else is between the two ends",
            ),
            CloseReason::Protocol => f.write_str("what answers over QUIC is of another version of Paceline, or something else"),
            CloseReason::Here(code) => write!(f, "QUIC: the other end broke off what was agreed on: {}", words(code)),
            CloseReason::There(code) => write!(f, "QUIC: the other end has ended the connection: {}", words(code)),
            CloseReason::Closed(code) => write!(f, "QUIC: the other end has closed the connection with code {code}"),
            CloseReason::Reset => f.write_str("QUIC: the other end does not know the connection any more: its program was started anew"),
            CloseReason::Failed => f.write_str("QUIC: no connection could be opened"),
        }
    }
}

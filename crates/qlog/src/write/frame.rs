//! QUIC frames (RFC 9000, 19; RFC 9221) as the draft writes them.

use super::{is_false, some_millis};
use paceline_units::Span;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// A frame of a packet. Lengths are those of its content, without its own fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are RFC 9000's")]
pub enum Frame<'a> {
    Padding {
        #[serde(rename = "raw", serialize_with = "carried_alone")]
        length: u64,
    },
    Ping,
    /// `ranges`: smallest and largest packet number of each range, inclusive, in any order; at least one range.
    Ack {
        #[serde(rename = "ack_delay", serialize_with = "some_millis", skip_serializing_if = "Option::is_none")]
        delay: Option<Span>,
        #[serde(rename = "acked_ranges", serialize_with = "acked_ranges")]
        ranges: &'a [(u64, u64)],
        #[serde(flatten)]
        ecn: Option<EcnCounts>,
    },
    ResetStream {
        #[serde(rename = "stream_id")]
        id: u64,
        #[serde(flatten)]
        error: ErrorCode,
        final_size: u64,
    },
    StopSending {
        #[serde(rename = "stream_id")]
        id: u64,
        #[serde(flatten)]
        error: ErrorCode,
    },
    Crypto {
        offset: u64,
        #[serde(rename = "raw", serialize_with = "carried")]
        length: u64,
    },
    Stream {
        #[serde(rename = "stream_id")]
        id: u64,
        offset: u64,
        #[serde(rename = "raw", serialize_with = "carried")]
        length: u64,
        #[serde(skip_serializing_if = "is_false")]
        fin: bool,
    },
    MaxData {
        maximum: u64,
    },
    MaxStreamData {
        #[serde(rename = "stream_id")]
        id: u64,
        maximum: u64,
    },
    MaxStreams {
        #[serde(rename = "stream_type")]
        kind: StreamKind,
        maximum: u64,
    },
    DataBlocked {
        limit: u64,
    },
    StreamDataBlocked {
        #[serde(rename = "stream_id")]
        id: u64,
        limit: u64,
    },
    StreamsBlocked {
        #[serde(rename = "stream_type")]
        kind: StreamKind,
        limit: u64,
    },
    /// `connection_id` in hexadecimal.
    NewConnectionId {
        sequence_number: u64,
        retire_prior_to: u64,
        connection_id: &'a str,
    },
    RetireConnectionId {
        sequence_number: u64,
    },
    PathChallenge,
    PathResponse,
    ConnectionClose {
        #[serde(flatten)]
        error: CloseError,
        #[serde(skip_serializing_if = "str::is_empty")]
        reason: &'a str,
    },
    HandshakeDone,
    Datagram {
        #[serde(rename = "raw", serialize_with = "carried")]
        length: u64,
    },
    /// An extension's frame, by its type number.
    Unknown {
        #[serde(rename = "frame_type_bytes")]
        kind: u64,
    },
}

impl<'a> Frame<'a> {
    /// An ACK frame without ECN counts.
    #[must_use]
    pub const fn ack(delay: Span, ranges: &'a [(u64, u64)]) -> Frame<'a> {
        Frame::Ack { delay: Some(delay), ranges, ecn: None }
    }
}

/// ECN counts of an ACK frame (RFC 9000, 19.3.2): packets received so far in that number space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct EcnCounts {
    /// With ECT(0).
    pub ect0: u64,
    /// With ECT(1).
    pub ect1: u64,
    /// With ECN-CE.
    pub ce: u64,
}

/// The ECN field of an IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs, reason = "RFC 3168's names")]
pub enum Ecn {
    #[serde(rename = "Not-ECT")]
    NotEct,
    #[serde(rename = "ECT(0)")]
    Ect0,
    #[serde(rename = "ECT(1)")]
    Ect1,
    #[serde(rename = "CE")]
    Ce,
}

/// Whether one end or both may send on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    /// Both ends.
    Bidirectional,
    /// Only the end that opened it.
    Unidirectional,
}

impl StreamKind {
    /// The kind of a stream, by its ID (RFC 9000, 2.1).
    #[must_use]
    pub const fn of(id: u64) -> StreamKind {
        if id & 2 == 0 { StreamKind::Bidirectional } else { StreamKind::Unidirectional }
    }
}

/// An application's error code. The draft has no names for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorCode(pub u64);

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("error", "unknown")?;
        map.serialize_entry("error_code", &self.0)?;
        map.end()
    }
}

/// The error code with which a connection was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseError {
    /// A transport error (RFC 9000, 20.1).
    Transport(u64),
    /// An application error.
    Application(u64),
}

/// Names from RFC 9000, 20.1, by code; it has no others below `CRYPTO_ERROR`.
const TRANSPORT: [&str; 17] = [
    "no_error",
    "internal_error",
    "connection_refused",
    "flow_control_error",
    "stream_limit_error",
    "stream_state_error",
    "final_size_error",
    "frame_encoding_error",
    "transport_parameter_error",
    "connection_id_limit_error",
    "protocol_violation",
    "invalid_token",
    "application_error",
    "crypto_buffer_exceeded",
    "key_update_error",
    "aead_limit_reached",
    "no_viable_path",
];

impl CloseError {
    /// The draft's name, and the code if there is no name.
    pub(super) fn words(self) -> (String, Option<u64>) {
        match self {
            CloseError::Transport(code @ 0x100..=0x1ff) => (format!("crypto_error_0x{code:03x}"), None),
            CloseError::Transport(code) => {
                let name = usize::try_from(code).ok().and_then(|code| TRANSPORT.get(code));
                name.map_or_else(|| ("unknown".to_owned(), Some(code)), |name| ((*name).to_owned(), None))
            }
            CloseError::Application(code) => ("unknown".to_owned(), Some(code)),
        }
    }
}

impl Serialize for CloseError {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (name, code) = self.words();
        let space = if matches!(self, CloseError::Transport(_)) { "transport" } else { "application" };
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("error_space", space)?;
        map.serialize_entry("error", &name)?;
        if let Some(code) = code {
            map.serialize_entry("error_code", &code)?;
        }
        map.end()
    }
}

/// The draft's RawInfo with one field.
#[derive(Serialize)]
pub(super) struct Raw {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_length: Option<u64>,
}

impl Raw {
    pub(super) const fn of(length: u64) -> Raw {
        Raw { length: Some(length), payload_length: None }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn carried<S: Serializer>(length: &u64, to: S) -> Result<S::Ok, S::Error> {
    Raw::of(*length).serialize(to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn carried_alone<S: Serializer>(length: &u64, to: S) -> Result<S::Ok, S::Error> {
    Raw { length: None, payload_length: Some(*length) }.serialize(to)
}

/// `[4]`, or `[2, 3]` for more than one packet.
fn acked_ranges<S: Serializer>(ranges: &&[(u64, u64)], to: S) -> Result<S::Ok, S::Error> {
    struct Range(u64, u64);
    impl Serialize for Range {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            if self.0 == self.1 { [self.0].serialize(to) } else { [self.0, self.1].serialize(to) }
        }
    }
    to.collect_seq(ranges.iter().map(|&(first, last)| Range(first.min(last), first.max(last))))
}

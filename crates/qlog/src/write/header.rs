//! The beginning of a log.

use super::{FILE_SCHEMA, QUIC_SCHEMA};
use serde::Serialize;

/// What a log says about itself and the connection; all fields are optional.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trace<'a> {
    /// A short title; empty if none.
    pub title: &'a str,
    /// A description; empty if none.
    pub description: &'a str,
    /// The vantage point.
    pub vantage: Vantage<'a>,
    /// The connection's name: the client's first destination connection ID in hexadecimal, as the draft requires.
    pub group_id: Option<&'a str>,
    /// Approximate wall-clock time at the log's beginning, in RFC 3339's format. Simulated time has none.
    pub wall_clock_time: Option<&'a str>,
    /// The program and its version: "paceline 0.1.0".
    pub code_version: Option<&'a str>,
    /// The system it ran on.
    pub system: Option<SystemInfo>,
    /// Event schemas in addition to [`QUIC_SCHEMA`].
    pub more_schemas: &'a [&'a str],
}

/// The vantage point of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Vantage<'a> {
    /// A name; empty if none.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: &'a str,
    /// The end that logged.
    #[serde(rename = "type")]
    pub kind: VantageKind,
}

impl<'a> Vantage<'a> {
    /// For the client.
    #[must_use]
    pub const fn client(name: &'a str) -> Vantage<'a> {
        Vantage { name, kind: VantageKind::Client }
    }

    /// For the server.
    #[must_use]
    pub const fn server(name: &'a str) -> Vantage<'a> {
        Vantage { name, kind: VantageKind::Server }
    }
}

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VantageKind {
    /// The end that opened it.
    Client,
    /// The end that accepted it.
    Server,
    /// Unknown.
    #[default]
    Unknown,
}

/// Where a program runs (main schema, SystemInformation).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SystemInfo {
    /// The processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_id: Option<u32>,
    /// The process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u32>,
    /// The thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<u32>,
}

/// The drafts' QlogFileSeq.
#[derive(Serialize)]
pub(super) struct Header<'a> {
    file_schema: &'static str,
    serialization_format: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    title: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    trace: TraceSeq<'a>,
}

#[derive(Serialize)]
struct TraceSeq<'a> {
    common_fields: CommonFields<'a>,
    vantage_point: Vantage<'a>,
    event_schemas: Vec<&'a str>,
}

#[derive(Serialize)]
struct CommonFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    group_id: Option<&'a str>,
    time_format: &'static str,
    reference_time: ReferenceTime<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_info: Option<SystemInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_version: Option<&'a str>,
}

#[derive(Serialize)]
struct ReferenceTime<'a> {
    clock_type: &'static str,
    epoch: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_clock_time: Option<&'a str>,
}

impl<'a> Trace<'a> {
    pub(super) fn header(&self) -> Header<'a> {
        Header {
            file_schema: FILE_SCHEMA,
            serialization_format: "application/qlog+json-seq",
            title: self.title,
            description: self.description,
            trace: TraceSeq {
                common_fields: CommonFields {
                    group_id: self.group_id,
                    time_format: "relative_to_epoch",
                    // The clock counts from the log's beginning, which the draft calls monotonic.
                    reference_time: ReferenceTime {
                        clock_type: "monotonic",
                        epoch: "unknown",
                        wall_clock_time: self.wall_clock_time,
                    },
                    system_info: self.system,
                    code_version: self.code_version,
                },
                vantage_point: self.vantage,
                event_schemas: [QUIC_SCHEMA].iter().chain(self.more_schemas).copied().collect(),
            },
        }
    }
}

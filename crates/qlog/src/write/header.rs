//! What a log begins with.

use super::{FILE_SCHEMA, QUIC_SCHEMA};
use serde::Serialize;

/// What a log says of itself and of the connection; all of it may be left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Trace<'a> {
    /// A short name of the whole; empty: none.
    pub title: &'a str,
    /// More of it; empty: none.
    pub description: &'a str,
    /// Whose log it is.
    pub vantage: Vantage<'a>,
    /// Names the connection: the destination connection ID that the client chose first, in hexadecimal, as the draft asks.
    pub group_id: Option<&'a str>,
    /// Calendar time at the log's beginning, as RFC 3339 writes it; about. Simulated time has none.
    pub wall_clock_time: Option<&'a str>,
    /// What ran: "paceline 0.1.0".
    pub code_version: Option<&'a str>,
    /// Where it ran.
    pub system: Option<SystemInfo>,
    /// Schemas of events beside [`QUIC_SCHEMA`].
    pub more_schemas: &'a [&'a str],
}

/// Whose log it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Vantage<'a> {
    /// A name; empty: none.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: &'a str,
    /// Which end.
    #[serde(rename = "type")]
    pub kind: VantageKind,
}

impl<'a> Vantage<'a> {
    /// Of the end that began the connection.
    #[must_use]
    pub const fn client(name: &'a str) -> Vantage<'a> {
        Vantage { name, kind: VantageKind::Client }
    }

    /// Of the end that accepted it.
    #[must_use]
    pub const fn server(name: &'a str) -> Vantage<'a> {
        Vantage { name, kind: VantageKind::Server }
    }
}

/// Which end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VantageKind {
    /// The one that began it.
    Client,
    /// The one that accepted it.
    Server,
    /// Not known.
    #[default]
    Unknown,
}

/// Where a program runs (main schema, SystemInformation).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SystemInfo {
    /// Which processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_id: Option<u32>,
    /// Which process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u32>,
    /// Which thread.
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
                    // A clock that counts from the log's beginning, which is what the draft calls monotonic.
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

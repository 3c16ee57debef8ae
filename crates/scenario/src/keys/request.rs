//! Requests in a scenario file: what a client sends before it receives anything.

use super::flow::App;
use paceline_units::{Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The receiver opens connections and asks for what it is sent, over TCP as HTTP/1.1 has it, over QUIC as HTTP/3: a request travels the way
/// back, and the answer begins when it has come.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestTable {
    /// Bytes of a request. Browsers' have 200 B to more than 2 kB, most 700 to 800 B (the SPDY whitepaper).
    #[serde(default = "request_size")]
    #[schemars(extend("x-min" = "1 B", "x-max" = "1 MB"))]
    pub size: Size,
    /// Over TCP: a TLS 1.3 handshake follows TCP's and takes another round trip (RFC 8446).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "true, unless `handshake = false`; QUIC always has TLS"))]
    pub tls: Option<bool>,
    /// For app `stream`: playing time that one request covers. The player requests the next piece when the previous
    /// one has arrived and `client_buffer` has room for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: one request for the whole medium, sent as without requests", "x-min" = "1 ms", "x-max" = "1000 s"))]
    pub piece: Option<Span>,
}

/// The usual size of a browser's request.
const fn request_size() -> Size {
    Size::from_bytes(700)
}

impl RequestTable {
    /// Whether TLS's handshake follows TCP's; `handshake` says whether TCP has one.
    #[must_use]
    pub fn has_tls(&self, handshake: bool) -> bool {
        handshake && self.tls.unwrap_or(true)
    }
}

impl App {
    /// Its requests, if its receiver requests what it receives.
    #[must_use]
    pub fn request(&self) -> Option<&RequestTable> {
        match self {
            App::Web { request, .. } | App::Stream { request, .. } => request.as_ref(),
            _ => None,
        }
    }
}

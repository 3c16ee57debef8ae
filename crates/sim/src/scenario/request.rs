//! Requests in a scenario file: what a client sends before it receives anything.

use super::error::join;
use super::flow::{App, FlowTable, WebArrivals};
use super::model::{File, Profile};
use super::quic::{CarriageKey, HandshakeKey};
use super::rules::Rules;
use super::values::ClientBuffer;
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

impl Rules {
    /// Rules for a flow with requests.
    pub(super) fn request(&mut self, file: &File, path: &str, flow: &FlowTable, profile: Profile) {
        let Some(request) = flow.app.request() else { return };
        let at = join(&join(path, "app"), "request");
        let quic = flow.quic.clone().unwrap_or_default();
        if profile.is_ns2() {
            let problem =
                format!("is not there under profile `{}`, as ns-2 has none: use `rfc` or `linux`", profile.name());
            self.note(&at, problem);
        }
        if flow.bundle.is_some() {
            self.note(&at, "needs a connection of its own, which its receiver opens: leave `bundle` out");
        }
        if !flow.is_quic() && file.cell.values().any(|cell| cell.windows.is_some()) {
            let problem = "opens connections from the station, and the access point's law reads those that the sender opens: leave the cell's `windows` out, or use `transport = \"quic\"`";
            self.note(&at, problem);
        }
        let opens = if flow.is_quic() { quic.handshake != HandshakeKey::Done } else { flow.handshake != Some(false) };
        let key = if flow.is_quic() { "quic.handshake" } else { "handshake" };
        if !opens && matches!(flow.app, App::Web { arrivals: WebArrivals::Think, .. }) {
            let problem = format!(
                "opens a connection for each page, but `{key}` has none: use `arrivals = \"think-persistent\"`"
            );
            self.note(&at, problem);
        }
        match request.tls {
            Some(_) if flow.is_quic() => {
                self.note(join(&at, "tls"), "is TCP's: QUIC's handshake has TLS in it; leave the key out");
            }
            Some(true) if !opens => {
                self.note(join(&at, "tls"), "follows TCP's handshake: leave `handshake = false` out")
            }
            _ => {}
        }
        if flow.is_quic() && quic.carriage.is_some_and(|carriage| carriage != CarriageKey::StreamEach) {
            let problem = "an answer comes on the stream of its request: use `stream-each`, or leave it out";
            self.note(join(&join(path, "quic"), "carriage"), problem);
        }
        self.pieces(&at, flow, request.piece);
    }

    /// Rules for the pieces that a player requests.
    fn pieces(&mut self, at: &str, flow: &FlowTable, piece: Option<Span>) {
        let Some(piece) = piece else { return };
        let App::Stream { media_rate, length, buffer, client_buffer, .. } = flow.app else {
            return self.note(join(at, "piece"), "is of app `stream`, which has a playing time: leave it out");
        };
        let start = Size::from_bytes(((media_rate * length).bytes() as f64 * buffer.0) as u64);
        let needed = Size::from_bytes(start.bytes() + (media_rate * piece).bytes());
        if let ClientBuffer::Limited(size) = client_buffer
            && size < needed
        {
            let problem = format!(
                "`{piece}` does not fit into `client_buffer`, `{size}`, beside the {start} that `buffer` waits for: that must be at least {needed}"
            );
            self.note(join(at, "piece"), problem);
        }
    }
}

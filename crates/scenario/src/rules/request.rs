//! Rules for requests.

use super::Rules;
use crate::error::join;
use crate::keys::file::{File, Profile};
use crate::keys::flow::{App, FlowTable, WebArrivals};
use crate::keys::quic::{CarriageKey, HandshakeKey};
use crate::keys::values::ClientBuffer;
use paceline_units::{Size, Span};

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

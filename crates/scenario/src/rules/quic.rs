//! Rules for flows over QUIC: keys that only TCP has, and what applications need of streams.

use super::Rules;
use super::machine::tcp_keys;
use crate::error::join;
use crate::keys::file::Profile;
use crate::keys::flow::{App, FlowTable};
use crate::keys::quic::{CarriageKey, QuicTable};
use paceline_control::{Machine, Scheme};
use paceline_packet::quic::INITIAL_DATAGRAM;
use paceline_units::{Size, Span};

impl Rules {
    /// Rules for `transport`, and for the connection's table.
    pub(super) fn quic(&mut self, path: &str, flow: &FlowTable, scheme: &Scheme, profile: Profile) {
        if flow.transport.is_some() && !matches!(scheme.machine, Machine::Tcp(_)) {
            let problem = format!(
                "is for controllers that set a window; `{}` has a transport of its own, {}: leave the key out",
                scheme.name,
                scheme.machine.name()
            );
            return self.note(join(path, "transport"), problem);
        }
        if !flow.is_quic() {
            if flow.quic.is_some() {
                self.note(
                    join(path, "quic"),
                    "goes with `transport = \"quic\"` alone: set that, or leave the table out",
                );
            }
            return;
        }
        if profile.is_ns2() {
            let problem = format!("`quic` is not there under profile `{}`; use `rfc` or `linux`", profile.name());
            self.note(join(path, "transport"), problem);
        }
        if scheme.name == "tahoe" {
            let problem =
                "`tahoe` is a way in which TCP repairs losses, and QUIC has its own: use `newreno`, Reno's window";
            self.note(join(path, "cc"), problem);
        }
        let others = [
            ("ack_size", flow.ack_size.is_some()),
            ("send_overhead", flow.send_overhead > Span::ZERO),
            ("kernel", flow.kernel),
        ];
        // Of TCP's keys, QUIC has only the initial window.
        let of_tcp = tcp_keys(flow).into_iter().filter(|(key, _)| *key != "initial_window").chain(others);
        for (key, _) in of_tcp.filter(|(_, given)| *given) {
            let instead = match key {
                "receive_window" | "handshake" => format!("; QUIC's is `quic.{key}`"),
                "delayed_ack" => "; QUIC's is `quic.max_ack_delay`".to_owned(),
                _ => "; leave the key out".to_owned(),
            };
            self.note(join(path, key), format!("is TCP's{instead}"));
        }
        if let Some(size) = flow.segment.filter(|size| *size < Size::from_bytes(INITIAL_DATAGRAM.into())) {
            let problem = format!(
                "`{size}` must be at least {INITIAL_DATAGRAM} B, which every path of QUIC takes (RFC 9000, 14)"
            );
            self.note(join(path, "segment"), problem);
        }
        if matches!(flow.app, App::Encoder { jitter_buffer: Some(_), .. }) {
            let problem =
                "asks for key frames by RTCP, which QUIC has not: leave it out, or use a `cc` of RTP, as `nada`";
            self.note(join(&join(path, "app"), "jitter_buffer"), problem);
        }
        self.carriage(path, flow, &flow.quic.clone().unwrap_or_default());
    }

    /// Rules for the carriage of the application's writes.
    fn carriage(&mut self, path: &str, flow: &FlowTable, table: &QuicTable) {
        let at = join(path, "quic");
        let carriage = table.carriage.unwrap_or_else(|| QuicTable::usual_carriage(&flow.app));
        let key = join(&at, "carriage");
        let all = matches!(flow.app, App::Ftp { .. } | App::Stream { .. } | App::Web { .. });
        match carriage {
            CarriageKey::Stream => {}
            CarriageKey::Datagrams if all => {
                self.note(key, "`datagrams` are not sent again, and this application needs every byte: use a stream");
            }
            CarriageKey::StreamEach | CarriageKey::Datagrams if matches!(flow.app, App::Ftp { size: None, .. }) => {
                self.note(key, "an endless transfer is one write without end: use `stream`");
            }
            CarriageKey::StreamPerGroup
                if !matches!(flow.app, App::Encoder { .. } | App::Relay { .. } | App::Video { .. }) =>
            {
                self.note(
                    key,
                    "`stream-per-group` needs key frames, which only `encoder` and `video` tell of: leave it out",
                );
            }
            CarriageKey::StreamEach | CarriageKey::StreamPerGroup | CarriageKey::Datagrams => {}
        }
        if table.deadline.is_some() && all {
            let problem = "gives up what is late, and this application needs every byte: leave it out";
            self.note(join(&at, "deadline"), problem);
        } else if table.deadline.is_some() && carriage == CarriageKey::Stream {
            let problem =
                "resets a stream, and all that is written is one: use `carriage = \"stream-each\"`, or leave it out";
            self.note(join(&at, "deadline"), problem);
        }
        if let (Some(all), Some(one)) = (table.receive_window, table.stream_window)
            && one > all
        {
            let problem = format!("`{one}` must be at most `receive_window`, `{all}`");
            self.note(join(&at, "stream_window"), problem);
        }
    }
}

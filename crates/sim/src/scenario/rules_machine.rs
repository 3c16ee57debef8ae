//! What a flow may say depends on the machine that its controller rides on: keys that only TCP has, and applications that
//! need what a machine does not do.

use super::error::join;
use super::flow::{App, FlowTable};
use super::rules::Rules;
use paceline_control::{Machine, Scheme};
use paceline_units::Span;

impl Rules {
    /// A flow of a machine other than TCP.
    pub(super) fn machine(&mut self, path: &str, flow: &FlowTable, scheme: &Scheme) {
        let of_tcp = [
            ("initial_window", flow.initial_window.is_some()),
            ("receive_window", flow.receive_window.is_some()),
            ("delayed_ack", flow.delayed_ack.is_some()),
            ("recovery", flow.recovery.is_some()),
            ("newreno", flow.newreno.is_some()),
            ("limited_transmit", flow.limited_transmit.is_some()),
            ("min_rto", flow.min_rto.is_some()),
            ("handshake", flow.handshake.is_some()),
            ("send_overhead", flow.send_overhead > Span::ZERO),
        ];
        let not_of_udp = [("ack_size", flow.ack_size.is_some()), ("ecn", flow.ecn.is_some())];
        let of_others = if scheme.machine == Machine::Udp { &not_of_udp[..] } else { &[] };
        for (key, _) in of_tcp.iter().chain(of_others).filter(|(_, given)| *given) {
            self.note(join(path, key), format!("is not there for `{}`; leave the key out", scheme.name));
        }
        let kind = join(&join(path, "app"), "kind");
        match &flow.app {
            App::Web { .. } | App::Stream { .. } => {
                let kind_of_app = if matches!(flow.app, App::Web { .. }) { "web" } else { "stream" };
                self.note(
                    kind,
                    format!(
                        "`{kind_of_app}` needs every byte to arrive, but `{}` does not send again what was lost: use \
                         a `cc` of TCP",
                        scheme.name
                    ),
                );
            }
            App::Ftp { .. } if scheme.machine == Machine::Udp => {
                self.note(
                    kind,
                    "`ftp` leaves the rate to congestion control, and `udp` has none: it needs another `cc`",
                );
            }
            App::Ftp { .. } | App::Pareto { .. } => {}
        }
    }
}

//! Rules that depend on the machine of a flow's controller: keys of TCP alone, and applications that need what a
//! machine does not support.

use super::Rules;
use crate::error::join;
use crate::keys::file::Profile as ScenarioProfile;
use crate::keys::flow::{App, FlowTable};
use crate::keys::parameters::given;
use crate::keys::rtp::ReportTiming;
use paceline_control::{
    Law, Machine, MediaController, Profile, RateController, RtpController, RtpFeedback, RtpSettings, Scheme,
    TfrcController,
};
use paceline_flow::rtp::FeedbackFormat;
use paceline_units::Span;

/// The problem if a scheme must carry video frames and cannot.
pub(super) fn no_frames(scheme: &Scheme) -> String {
    let quic = if matches!(scheme.machine, Machine::Tcp(_)) { ", or give it `transport = \"quic\"`" } else { "" };
    format!(
        "`encoder` writes video frames, which `{}` does not tell of: use a `cc` of RTP, as `nada`, or `tfrc`{quic}",
        scheme.name
    )
}

/// Whether a scheme's machine marks which packets belong to a video frame, so that it can carry an `encoder`.
#[must_use]
pub fn marks_frames(scheme: &Scheme) -> bool {
    let one = || TfrcController::new(scheme, Profile::Rfc, &[]).is_ok_and(|tfrc| !tfrc.settings().multiple_connections);
    scheme.machine == Machine::Rtp || scheme.machine == Machine::Tfrc && one()
}

/// A scheme's settings for RTP's machine, if it runs on it.
fn rtp_settings(scheme: &Scheme) -> Option<RtpSettings> {
    RtpController::new(scheme, Profile::Rfc, &[]).ok().map(|controller| controller.settings())
}

/// Whether a scheme on RTP's machine needs each packet's arrival time.
pub(super) fn wants_arrivals(scheme: &Scheme) -> bool {
    rtp_settings(scheme).is_some_and(|settings| settings.feedback == RtpFeedback::Arrivals)
}

/// A scheme's default format of feedback on arrivals.
pub(super) fn feedback_of(scheme: &Scheme) -> Option<FeedbackFormat> {
    rtp_settings(scheme).map(|settings| settings.feedback_config.format)
}

/// Whether a scheme needs an application that writes frames.
pub(super) fn wants_frames(scheme: &Scheme) -> bool {
    rtp_settings(scheme).is_some_and(|settings| settings.frames)
}

/// Whether a TFRC flow follows ns-2's law.
fn is_ns2s(flow: &FlowTable, scheme: &Scheme, profile: ScenarioProfile) -> bool {
    TfrcController::new(scheme, profile.control(), &given(flow, scheme))
        .is_ok_and(|tfrc| tfrc.settings().law == Law::Ns2)
}

/// A flow's keys that only TCP has, and whether each is given.
pub(super) fn tcp_keys(flow: &FlowTable) -> [(&'static str, bool); 13] {
    [
        ("initial_window", flow.initial_window.is_some()),
        ("receive_window", flow.receive_window.is_some()),
        ("receive_buffer", flow.receive_buffer.is_some()),
        ("send_buffer", flow.send_buffer.is_some()),
        ("delayed_ack", flow.delayed_ack.is_some()),
        ("recovery", flow.recovery.is_some()),
        ("newreno", flow.newreno.is_some()),
        ("limited_transmit", flow.limited_transmit.is_some()),
        ("prr", flow.prr.is_some()),
        ("pacing", flow.pacing.is_some()),
        ("min_rto", flow.min_rto.is_some()),
        ("ecn_feedback", flow.ecn_feedback.is_some()),
        ("handshake", flow.handshake.is_some()),
    ]
}

impl Rules {
    /// Rules for a flow on a machine other than TCP.
    pub(super) fn machine(&mut self, path: &str, flow: &FlowTable, scheme: &Scheme, profile: ScenarioProfile) {
        let of_tcp = tcp_keys(flow);
        // UDP has no reports; RTCP packets have fixed sizes; of these machines, only TFRC and RTP react to marks, and
        // only the machine with per-packet acknowledgements adds to its gaps.
        let overhead = ("send_overhead", flow.send_overhead > Span::ZERO);
        let rare = [("ecn", flow.ecn.is_some()), overhead, ("ack_size", flow.ack_size.is_some())];
        let of_others = match scheme.machine {
            Machine::Acks => &rare[..1],
            Machine::Rtp => &rare[1..],
            Machine::Udp => &rare[..],
            Machine::Tcp(_) => &[],
            Machine::Tfrc => &rare[1..2],
        };
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
            App::Ftp { limited, .. } if !limited.is_empty() && !matches!(scheme.machine, Machine::Tcp(_)) => {
                let problem =
                    format!("needs TCP, which `{}` does not control: leave it out, or use a `cc` of TCP", scheme.name);
                self.note(join(&join(path, "app"), "limited"), problem);
            }
            app if !matches!(app, App::Encoder { .. }) && wants_frames(scheme) => {
                let problem = format!("`{}` sizes video frames, which only `encoder` writes: use that", scheme.name);
                self.note(kind, problem);
            }
            App::Encoder { .. } if !marks_frames(scheme) => {
                self.note(kind, no_frames(scheme));
            }
            App::Encoder { .. } if scheme.machine == Machine::Tfrc && is_ns2s(flow, scheme, profile) => {
                let problem = format!(
                    "`encoder` writes video frames, for which ns-2's header of `{}` has no field: use `law = \"rfc5348\"`",
                    scheme.name
                );
                self.note(kind, problem);
            }
            App::Encoder { jitter_buffer: Some(_), .. } if scheme.machine == Machine::Tfrc => {
                let problem = format!(
                    "asks for key frames by RTCP, which `{}` has not: leave it out, or use a `cc` of RTP, as `nada`",
                    scheme.name
                );
                self.note(join(&join(path, "app"), "jitter_buffer"), problem);
            }
            App::Cbr { .. }
            | App::Encoder { .. }
            | App::Ftp { .. }
            | App::Game { .. }
            | App::Pareto { .. }
            | App::Relay { .. }
            | App::Video { .. }
            | App::VideoTrace { .. }
            | App::Voice { .. } => {}
        }
    }

    /// Rules for a flow that the kernel's TCP carries in real time.
    pub(super) fn kernel(&mut self, path: &str, flow: &FlowTable, scheme: &Scheme, profile: ScenarioProfile) {
        let at = join(path, "kernel");
        if !matches!(scheme.machine, Machine::Tcp(_)) {
            self.note(at, format!("the kernel has no `{}`: use a `cc` of TCP, or leave the key out", scheme.name));
        } else if profile != ScenarioProfile::Linux {
            self.note(at, format!("goes with profile `linux`, not `{}`", profile.name()));
        } else if !matches!(&flow.app, App::Ftp { size: None, limited } if limited.is_empty()) {
            self.note(at, "goes with an endless transfer alone: app `ftp` without a size, and without `limited`");
        }
    }

    /// Rules for an RTP session, which only RTP's machine has.
    pub(super) fn rtp(&mut self, path: &str, flow: &FlowTable, scheme: &Scheme) {
        let Some(rtp) = &flow.rtp else { return };
        let at = join(path, "rtp");
        if matches!(flow.app, App::Encoder { .. }) && scheme.machine == Machine::Tfrc {
            return; // for an encoder's flow, only a warning
        }
        if scheme.machine != Machine::Rtp {
            self.note(at, format!("is not there for `{}`; leave the table out", scheme.name));
            return;
        }
        if rtp.timing == ReportTiming::Reduced && rtp.report_interval.is_some() {
            let problem = "follows from `bandwidth` with timing `reduced`; leave it out";
            self.note(join(&at, "report_interval"), problem);
        }
        for (key, _) in rtp.of_arrivals().iter().filter(|(_, given)| *given && !wants_arrivals(scheme)) {
            self.note(join(&at, key), format!("is not there for `{}`; leave the key out", scheme.name));
        }
        let feedback = rtp.format().or_else(|| feedback_of(scheme));
        if rtp.nack && (!wants_arrivals(scheme) || feedback != Some(FeedbackFormat::Transport)) {
            let problem = match wants_arrivals(scheme) {
                true => "goes with `feedback = \"twcc\"` alone, whose numbers are those of all packets: use that, or leave the key out".to_owned(),
                false => format!("is not there for `{}`, which has no feedback on arrivals; leave the key out", scheme.name),
            };
            self.note(join(&at, "nack"), problem);
        }
        if rtp.ecn_reports == Some(true) && (flow.ecn != Some(true) || rtp.nack) {
            let problem = match rtp.nack {
                true => "goes without `nack`, whose retransmissions have a source of their own: leave one of both out",
                false => "tells of no marks without `ecn = true`: set that, or leave it out",
            };
            self.note(join(&at, "ecn_reports"), problem);
        }
        if rtp.probe_burst == 1 {
            self.note(join(&at, "probe_burst"), "`1` makes no pair: it must be 0 (no probing), or from 2 to 100");
        }
    }
}

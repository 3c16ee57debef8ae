//! Builds a flow's transport machine from the scenario.

use paceline_control::{AckController, AcksController, Allocated, Ecn};
use paceline_control::{Machine, MediaController, RateController, RtpController, TcpController, TfrcController};
use paceline_flow::Transport;
use paceline_flow::acks::AcksConfig;
use paceline_flow::quic::QuicConfig;
use paceline_flow::rtp::RtpConfig;
use paceline_flow::tcp::{PartialAcks, Requests, TcpConfig};
use paceline_flow::tfrc::TfrcConfig;
use paceline_flow::udp::UdpConfig;
use paceline_scenario::Flow;
use paceline_scenario::flow::App;
use paceline_scenario::parameters::given;
use paceline_scenario::repair::{NewrenoVariant, Recovery as RecoveryKey};
use paceline_scenario::request::RequestTable;
use paceline_scenario::rtp::RtpTable;
use paceline_scenario::values::{ClientBuffer, DelayedAck};
use paceline_units::Span;
/// The machine that the scheme runs on, configured from the scenario.
pub(super) fn transport(flow: &Flow) -> Result<Transport, String> {
    let scheme = flow.scheme().map_err(|error| error.to_string())?;
    let profile = flow.profile.control();
    let params = given(flow, scheme);
    Ok(match scheme.machine {
        Machine::Acks => {
            let controller = AcksController::new(scheme, profile, &params).map_err(|error| error.to_string())?;
            Transport::Acks { config: acks_config(flow, AcksConfig::new(profile, controller.settings())), controller }
        }
        Machine::Rtp => {
            let controller = RtpController::new(scheme, profile, &params).map_err(|error| error.to_string())?;
            let controller = match flow.leader() {
                Some(_) => RtpController::Allocated(Box::new(Allocated::new(controller.settings()))),
                None => controller,
            };
            Transport::Rtp { config: rtp_config(flow, RtpConfig::new(profile, controller.settings())), controller }
        }
        Machine::Tcp(_) if flow.is_quic() => Transport::Quic {
            config: quic_config(flow, QuicConfig::new(profile, scheme)),
            controller: TcpController::new(scheme, profile, &params).map_err(|error| error.to_string())?,
        },
        Machine::Tcp(_) => Transport::Tcp {
            config: tcp_config(flow, TcpConfig::new(profile, scheme)),
            controller: TcpController::new(scheme, profile, &params).map_err(|error| error.to_string())?,
        },
        Machine::Tfrc => {
            let controller = TfrcController::new(scheme, profile, &params).map_err(|error| error.to_string())?;
            Transport::Tfrc { config: tfrc_config(flow, TfrcConfig::new(profile, controller.settings())), controller }
        }
        Machine::Udp => {
            let defaults = UdpConfig::new(profile);
            let whole_segments = defaults.whole_segments && !flow.app.has_own_sizes();
            Transport::Udp(UdpConfig { segment: flow.segment as u16, header: flow.header as u16, whole_segments })
        }
    })
}

/// The profile's settings, overridden by the scenario.
fn acks_config(flow: &Flow, defaults: AcksConfig) -> AcksConfig {
    AcksConfig {
        segment: flow.segment as u16,
        header: flow.header as u16,
        ack_size: flow.ack_size.map_or(defaults.ack_size, |size| size.bytes() as u16),
        send_overhead: flow.send_overhead,
        ..defaults
    }
}

/// Whether TCP's segments are ECN-capable, and how marks are fed back; `usual` is the controller's own setting.
fn ecn(flow: &Flow, usual: Ecn) -> Ecn {
    match flow.ecn.unwrap_or(usual.is_on()) {
        false => Ecn::Off,
        true => match flow.ecn_feedback {
            Some(table) => table.control(),
            None if usual.is_on() => usual,
            None => Ecn::Classic,
        },
    }
}

/// The profile's settings, overridden by the scenario.
fn rtp_config(flow: &Flow, defaults: RtpConfig) -> RtpConfig {
    let session = flow.rtp.clone().unwrap_or_default();
    let sound = flow.bundle.is_some() && matches!(flow.app, App::Voice { .. });
    let session = RtpTable { nack: session.nack && !sound, ..session };
    session.config(RtpConfig {
        sound,
        bundled: flow.leader().is_some(),
        segment: flow.segment as u16,
        header: flow.header as u16,
        ecn: flow.ecn.unwrap_or(defaults.ecn),
        frames: matches!(flow.app, App::Encoder { .. }),
        frame_period: match flow.app {
            App::Encoder { frame_rate, .. } => Span::from_secs_f64(1.0 / frame_rate),
            _ => Span::ZERO,
        },
        ..defaults
    })
}

/// The profile's settings, overridden by the scenario.
fn tfrc_config(flow: &Flow, defaults: TfrcConfig) -> TfrcConfig {
    TfrcConfig {
        segment: flow.segment as u16,
        header: flow.header as u16,
        report_size: flow.ack_size.map_or(defaults.report_size, |size| size.bytes() as u16),
        frames: matches!(flow.app, App::Encoder { .. }),
        ecn: flow.ecn.unwrap_or(defaults.ecn),
        ..defaults
    }
}

/// The default settings, overridden by the scenario.
fn quic_config(flow: &Flow, defaults: QuicConfig) -> QuicConfig {
    let usual = QuicConfig {
        datagram: flow.segment as u16,
        header: flow.header as u16,
        initial_window: flow.initial_window,
        ecn: flow.ecn.unwrap_or(defaults.ecn),
        is_led: flow.leader().is_some(),
        ..defaults
    };
    flow.quic.clone().unwrap_or_default().config(&flow.app, usual)
}

/// The profile's settings, overridden by the scenario.
fn tcp_config(flow: &Flow, defaults: TcpConfig) -> TcpConfig {
    let handshake = flow.handshake.unwrap_or(defaults.handshake);
    let requests = |table: &RequestTable| Requests { bytes: table.size.bytes(), tls: table.has_tls(handshake) };
    TcpConfig {
        segment: flow.segment as u16,
        header: flow.header as u16,
        ack_size: flow.ack_size.map_or(defaults.ack_size, |size| size.bytes() as u16),
        initial_window: flow.initial_window.unwrap_or(defaults.initial_window),
        receive_window: flow.receive_window.unwrap_or(defaults.receive_window),
        receive_buffer: flow.receive_buffer.map_or(defaults.receive_buffer, ClientBuffer::bytes),
        send_buffer: flow.send_buffer.map_or(defaults.send_buffer, ClientBuffer::bytes),
        delayed_ack: match flow.delayed_ack {
            None => defaults.delayed_ack,
            Some(DelayedAck::Off) => None,
            Some(DelayedAck::Within(span)) => Some(span),
        },
        recovery: flow.recovery.map_or(defaults.recovery, RecoveryKey::control),
        partial_acks: match flow.newreno {
            None => defaults.partial_acks,
            Some(NewrenoVariant::Impatient) => PartialAcks::Impatient,
            Some(NewrenoVariant::SlowButSteady) => PartialAcks::SlowButSteady,
        },
        limited_transmit: flow.limited_transmit.unwrap_or(defaults.limited_transmit),
        ecn: ecn(flow, defaults.ecn),
        prr: flow.prr.unwrap_or(defaults.prr),
        pacing: flow.pacing.unwrap_or(defaults.pacing),
        min_rto: flow.min_rto.unwrap_or(defaults.min_rto),
        handshake,
        requests: flow.app.request().map(requests),
        send_overhead: flow.send_overhead,
        ..defaults
    }
}

//! A flow whose connections are logged.

use paceline_control::{TcpController, WindowController};
use paceline_flow::Transport;
use paceline_flow::quic::QuicConfig;
use paceline_qlog::write::{Initiator, Parameters, RecoveryParameters};
use paceline_scenario::model::Model;
use paceline_units::Span;

/// Properties common to both ends of a flow.
pub(super) struct Flow {
    pub(super) number: usize,
    /// Prefix of its files' names.
    pub(super) name: String,
    pub(super) title: String,
    /// Whether its receiver opens connections, in order to send requests.
    pub(super) receiver_requests: bool,
    /// The hosts of the opening and of the accepting end.
    pub(super) hosts: [String; 2],
    scheme: String,
    pub(super) config: QuicConfig,
    /// Whether ECN-capable packets are sent with ECT(1).
    pub(super) l4s: bool,
}

impl Flow {
    /// The flow with this number; `None` if it does not use QUIC.
    pub(super) fn of(model: &Model, number: usize) -> Option<Flow> {
        let flow = &model.flows[number];
        let Transport::Quic { config, controller } = &flow.transport else { return None };
        let receiver_requests = config.request.is_some();
        let ends = if receiver_requests { [flow.sink, flow.source] } else { [flow.source, flow.sink] };
        let alone = model.flows.iter().filter(|other| other.name == flow.name).count() == 1;
        Some(Flow {
            number,
            name: if alone { flow.name.clone() } else { format!("{}.{}", flow.name, flow.instance) },
            title: format!("{}, seed {}: {}, {}", model.name, model.seed, flow.label(), flow.scheme),
            receiver_requests,
            hosts: ends.map(|node| model.nodes[node].clone()),
            scheme: flow.scheme.clone(),
            config: config.clone(),
            l4s: TcpController::needs(controller).l4s,
        })
    }

    /// The transport parameters of an end; both declare the same.
    pub(super) fn parameters(&self, initiator: Initiator) -> Parameters<'static> {
        let config = &self.config;
        let pushed = !self.receiver_requests;
        let milliseconds = |span: Span| span.0 / 1_000_000;
        Parameters {
            initiator: Some(initiator),
            max_idle_timeout_ms: Some(config.idle_timeout.map_or(0, milliseconds)),
            max_udp_payload_size: Some(config.datagram.into()),
            ack_delay_exponent: Some(3),
            max_ack_delay_ms: Some(milliseconds(config.max_ack_delay)),
            initial_max_data: Some(config.receive_window),
            initial_max_stream_data_uni: pushed.then_some(config.stream_window),
            initial_max_streams_uni: pushed.then_some(config.max_streams.into()),
            initial_max_stream_data_bidi_local: self.receiver_requests.then_some(config.stream_window),
            initial_max_stream_data_bidi_remote: self.receiver_requests.then_some(config.stream_window),
            initial_max_streams_bidi: self.receiver_requests.then_some(config.max_streams.into()),
            ..Parameters::default()
        }
    }

    /// RFC 9002's constants, and the flow's settings of them.
    pub(super) fn recovery(&self) -> RecoveryParameters<'_> {
        RecoveryParameters {
            congestion_control: Some(&self.scheme),
            reordering_threshold: Some(3),
            time_threshold: Some(1.125),
            timer_granularity_ms: 1,
            initial_rtt: Some(Span::from_millis(333)),
            max_datagram_size: Some(self.config.datagram.into()),
            initial_congestion_window: Some(self.config.initial_window()),
            minimum_congestion_window: Some(2 * u64::from(self.config.datagram)),
            loss_reduction_factor: None,
            persistent_congestion_threshold: Some(3),
        }
    }
}

//! Converts a scenario's keys to quinn-proto's settings.

use paceline_control::{TcpController, WindowController as _};
use paceline_flow::quic::{Carriage, Handshake, QuicConfig};
use paceline_packet::wire::tfrc;
use paceline_units::Span;
use quinn_proto::congestion::ControllerFactory;
use quinn_proto::{
    AckFrequencyConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig, IdleTimeout, RandomConnectionIdGenerator,
    TransportConfig, VarInt,
};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of bytes that an end buffers: unacknowledged data at a sender, data received out of order at a
/// receiver.
const MAX_BUFFERED: u64 = 6 << 20;
/// Maximum number of the other end's concurrent streams.
const MAX_STREAMS: u32 = 1 << 14;
/// Maximum number of datagrams buffered by quinn: which one is sent next is decided when there is room for it.
const DATAGRAMS: usize = 2;
/// Creates an end's congestion controllers.
pub(super) type Controllers = Arc<dyn ControllerFactory + Send + Sync>;

/// Difference in bytes between [`QuicConfig::payload`] and what quinn sends in one packet. A write at the end of a
/// stream's data reserves 8 bytes for its length where 2 would suffice, and far into a stream its offset takes 8 bytes,
/// not 4; the stream's number takes 1 byte, not 2.
pub const SPARE: u16 = 6 + 4 - 1;

/// QUIC version 1 (RFC 9000).
const VERSION: u32 = 1;
/// Length of a connection ID in bytes.
const ID_LEN: usize = 8;

/// Which of these settings, or of this controller's needs, a real connection does not support: the key, and what to do
/// about it.
#[must_use]
pub fn unsupported(config: &QuicConfig, controller: &TcpController) -> Option<(&'static str, &'static str)> {
    if controller.needs().ecn.counts() {
        return Some((
            "cc",
            "counts the packets that were marked, and quinn, which carries real flows, tells only that some were: choose another",
        ));
    }
    match config.handshake {
        Handshake::OneRtt => None,
        Handshake::Done => Some((
            "quic.handshake",
            "`done` is there in the simulator alone: a real connection begins with its handshake; use `one-rtt`",
        )),
        Handshake::ZeroRtt => Some((
            "quic.handshake",
            "`zero-rtt` resumes a session of before, and real flows have none: use `one-rtt`, or `paceline run`",
        )),
    }
}

/// Generates connection IDs such that no packet with a short header, which begins with 0x40 to 0x7f and the ID, looks
/// like a setup or close message.
#[derive(Debug)]
struct Ids(RandomConnectionIdGenerator);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        loop {
            let id = self.0.generate_cid();
            if id.first() != Some(&tfrc::MAGIC[1]) {
                return id;
            }
        }
    }

    fn cid_len(&self) -> usize {
        ID_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.0)
}

fn var_int(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

/// Settings of an endpoint.
pub(super) fn endpoint() -> EndpointConfig {
    let mut secret = [0; 32];
    // the key for stateless resets: without random bytes there are no keys either, and no connection
    let _ = getrandom::fill(&mut secret);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
    let mut config = EndpointConfig::new(Arc::new(key));
    config.supported_versions(vec![VERSION]);
    config.grease_quic_bit(false); // it distinguishes packets from setup and close messages
    config.cid_generator(|| Box::new(Ids(RandomConnectionIdGenerator::new(ID_LEN))));
    config
}

/// Settings of a connection with this congestion control at this end.
pub(super) fn transport(config: &QuicConfig, controllers: Controllers) -> TransportConfig {
    let mut to = TransportConfig::default();
    to.congestion_controller_factory(controllers);
    // packets have the flow's configured size: path MTU discovery is not part of the experiment
    to.initial_mtu(config.datagram).min_mtu(config.datagram).mtu_discovery_config(None);
    to.enable_segmentation_offload(false);
    to.max_idle_timeout(
        config
            .idle_timeout
            .map(|span| IdleTimeout::try_from(duration(span)).unwrap_or_else(|_| IdleTimeout::from(VarInt::MAX))),
    );
    to.receive_window(var_int(config.receive_window.min(MAX_BUFFERED)));
    to.stream_receive_window(var_int(config.stream_window.min(MAX_BUFFERED)));
    to.max_concurrent_uni_streams(config.max_streams.min(MAX_STREAMS).into());
    to.max_concurrent_bidi_streams(VarInt::from_u32(0));
    to.send_window(MAX_BUFFERED);
    // streams of equal priority are sent in the order in which they were opened, as in the simulator's machine
    to.send_fairness(false);
    let of_datagrams = config.track.carriage == Carriage::Datagrams;
    to.datagram_receive_buffer_size(of_datagrams.then_some(MAX_BUFFERED as usize));
    to.datagram_send_buffer_size(DATAGRAMS * (usize::from(config.datagram) + 64));
    if (config.ack_threshold, config.max_ack_delay) != (2, Span::from_millis(25)) {
        // the sender requests it (draft-ietf-quic-ack-frequency); quinn has no setting for the receiver's own
        let mut frequency = AckFrequencyConfig::default();
        frequency.ack_eliciting_threshold(u32::from(config.ack_threshold.saturating_sub(1)).into());
        frequency.max_ack_delay(Some(duration(config.max_ack_delay)));
        to.ack_frequency_config(Some(frequency));
    }
    to
}

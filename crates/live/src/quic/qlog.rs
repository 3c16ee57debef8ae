//! The log (qlog) of a real connection at the flow's sender, which opens it and has the congestion control, or at its
//! receiver.
//!
//! quinn's own qlog contains neither acknowledgements nor sizes of received packets, and gives round trips in seconds.
//! So the log is written from the datagrams that pass here and from the calls to the controller. These identify packets
//! by their send times, which [`super::link`] makes distinct. Only quinn knows the contents of packets: frames are left
//! out.

#![expect(clippy::disallowed_types, reason = "quinn's times are Instants; and the crate that writes files")]

use super::frames::take;
use super::log_quota::Bounded;
use super::watch::PacketFate;
use super::{CloseReason, Logged, Shared};
use crate::session::Side;
use paceline_flow::quic::QuicConfig;
use paceline_qlog::write::{
    CloseError, CloseTrigger, ConnectionState, Endpoint, Event, Initiator, LossTrigger, Metrics, Packet, PacketKind,
    PacketName, Parameters, RecoveryParameters, Space, Trace, Vantage, Writer,
};
use paceline_quinn::{Phase, State};
use paceline_units::{Rate, Span, Time};
use quinn_proto::ConnectionError;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of packets with unknown fate that are tracked: more than any window holds.
const MAX_OUTSTANDING: usize = 1 << 17;

/// A packet that is neither acknowledged nor lost yet.
#[derive(Clone, Copy, Debug)]
struct Out {
    left: Instant,
    kind: PacketKind,
    number: u64,
}

/// A log being written. A write error ends it, not the flow: the log is complete up to there.
pub(super) struct Log {
    shared: Arc<Shared>,
    path: PathBuf,
    writer: Option<Writer<Bounded<File>>>,
    out: VecDeque<Out>,
    /// The next numbers of Initial and Handshake packets, which are consecutive.
    next: [u64; 2],
    phase: Option<Phase>,
    closed: bool,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("out", &self.out.len()).finish_non_exhaustive()
    }
}

impl Log {
    /// Begins the log of a flow's `count`th connection at this end; `None` if it is not to be logged, or cannot be.
    pub(super) fn begin(now: Time, shared: &Arc<Shared>, side: Side, count: u32, config: &QuicConfig) -> Option<Log> {
        let to = shared.logged.get()?;
        let path = to.place.path(side, count);
        let mut log = Log::create(shared, to, side, path.clone())
            .inspect_err(|error| shared.cut_log(path.display(), error))
            .ok()?;
        let mut hosts = ["sender", "receiver"].map(|host| Endpoint { address: Some(host), ..Endpoint::default() });
        if side == Side::Receiver {
            hosts.reverse();
        }
        let [local, remote] = hosts;
        log.write(now, &Event::ConnectionStarted { local, remote });
        log.write(
            now,
            &Event::ParametersSet(Parameters {
                initiator: Some(Initiator::Local),
                max_idle_timeout_ms: Some(config.idle_timeout.map_or(0, |span| span.0 / 1_000_000)),
                ..Parameters::default()
            }),
        );
        if side == Side::Sender {
            log.write(now, &Event::RecoveryParametersSet(recovery(&to.scheme, config)));
        }
        log.write(now, &Event::ConnectionStateUpdated { new: ConnectionState::HandshakeStarted });
        Some(log)
    }

    /// Creates a file with the log's header.
    fn create(shared: &Arc<Shared>, to: &Logged, side: Side, path: PathBuf) -> io::Result<Log> {
        let vantage = match side {
            Side::Sender => Vantage::client("sender"),
            Side::Receiver => Vantage::server("receiver"),
        };
        let trace = Trace {
            title: &to.title,
            vantage,
            code_version: Some(concat!("paceline ", env!("CARGO_PKG_VERSION"))),
            ..Trace::default()
        };
        let room = to.place.quota.clone();
        room.as_ref().map_or(Ok(()), |room| room.take_file())?;
        let file = Bounded { to: File::create(&path)?, quota: room };
        // a log without its header is useless
        let writer = Writer::new(file, &trace).inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        let shared = Arc::clone(shared);
        Ok(Log { shared, path, writer: Some(writer), out: VecDeque::new(), next: [0; 2], phase: None, closed: false })
    }

    fn write(&mut self, now: Time, event: &Event<'_>) {
        let Some(writer) = &mut self.writer else { return };
        if let Err(error) = writer.write(now, event) {
            self.shared.cut_log(self.path.display(), &error);
            self.writer = None;
        }
    }

    /// Logs a received datagram. Packet numbers are encrypted (RFC 9001 section 5.4).
    pub(super) fn received(&mut self, now: Time, bytes: &[u8]) {
        for (kind, size) in packets(bytes) {
            self.write(now, &Event::PacketReceived(Packet::unnumbered(kind, size)));
        }
    }

    /// Logs a sent datagram, which quinn identifies by the time `left`. `last` is the number of its last packet.
    pub(super) fn sent(&mut self, now: Time, bytes: &[u8], left: Instant, last: u64, elicits: bool) {
        let all = packets(bytes);
        for (place, &(kind, size)) in all.iter().enumerate() {
            let is_last = place + 1 == all.len();
            let next = match kind {
                PacketKind::Initial => &mut self.next[0],
                _ => &mut self.next[1],
            };
            let number = if is_last { last } else { *next };
            if matches!(kind, PacketKind::Initial | PacketKind::Handshake) {
                *next = number + 1;
            }
            self.write(now, &Event::PacketSent(Packet::new(kind, number, size, &[])));
            if is_last && elicits {
                self.out.push_back(Out { left, kind, number });
            }
        }
        if self.out.len() > MAX_OUTSTANDING {
            self.out.pop_front();
        }
    }

    /// Logs the reports to the controller, and its state after them.
    pub(super) fn packet_fates(&mut self, now: Time, fates: &[PacketFate], state: Option<State>, in_flight: u64) {
        for fate in fates {
            match fate {
                PacketFate::Acked(left) => self.acked(now, left),
                PacketFate::Lost(newest) => self.lost(now, *newest),
            }
        }
        let Some(state) = state else { return };
        if self.phase != Some(state.phase) {
            let changed = Event::CongestionStateUpdated {
                old: self.phase.map(Phase::name),
                new: state.phase.name(),
                trigger: None,
            };
            self.write(now, &changed);
            self.phase = Some(state.phase);
        }
        let rtt = Some(state.rtt).filter(|rtt| rtt.is_known());
        let metrics = Metrics {
            min_rtt: rtt.map(|rtt| rtt.min_rtt),
            smoothed_rtt: rtt.map(|rtt| rtt.smoothed_rtt),
            latest_rtt: rtt.map(|rtt| rtt.latest_rtt),
            rtt_variance: rtt.map(|rtt| rtt.rttvar),
            congestion_window: Some(state.window),
            bytes_in_flight: Some(in_flight),
            ssthresh: state.threshold,
            pacing_rate: state.pacing_rate.map(|rate| Rate((rate * 8.0) as u64)),
            ..Metrics::default()
        };
        self.write(now, &Event::RecoveryMetricsUpdated(metrics));
    }

    /// Logs packets, identified by their send times, as acknowledged.
    fn acked(&mut self, now: Time, left: &[Instant]) {
        let mut acked: Vec<_> = left
            .iter()
            .filter_map(|left| {
                let place = self.out.binary_search_by(|out| out.left.cmp(left)).ok()?;
                self.out.remove(place)
            })
            .collect();
        acked.sort_unstable_by_key(|out| (out.kind as u8, out.number));
        for of_kind in acked.chunk_by(|one, next| one.kind == next.kind) {
            let numbers: Vec<_> = of_kind.iter().map(|out| out.number).collect();
            self.write(now, &Event::PacketsAcked { space: space(of_kind[0].kind), numbers: &numbers });
        }
    }

    /// Logs the packet sent at that time, and all of its packet number space before it, as lost.
    fn lost(&mut self, now: Time, newest: Instant) {
        // the packet itself may only contain an ACK: those lost with it were sent before
        let Some(kind) = self.out.iter().rfind(|out| out.left <= newest).map(|out| out.kind) else { return };
        let (lost, out): (Vec<Out>, Vec<Out>) = self.out.iter().partition(|out| out.kind == kind && out.left <= newest);
        self.out = out.into();
        for Out { number, .. } in lost {
            let packet = PacketName { kind, number: Some(number) };
            // quinn does not report which of the two thresholds applied
            let trigger: Option<LossTrigger> = None;
            self.write(now, &Event::PacketLost { packet, frames: &[], is_mtu_probe_packet: false, trigger });
        }
    }

    /// Logs the end of the handshake.
    pub(super) fn connected(&mut self, now: Time) {
        self.write(now, &Event::ConnectionStateUpdated { new: ConnectionState::HandshakeComplete });
    }

    /// Logs the end of the connection.
    pub(super) fn closed(&mut self, now: Time, why: &ConnectionError) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let (initiator, code, trigger) = match (CloseReason::of(why), why) {
            (Some(CloseReason::Here(code)), _) => (Initiator::Local, Some(code), CloseTrigger::Error),
            (Some(CloseReason::There(code) | CloseReason::Closed(code)), _) => {
                (Initiator::Remote, Some(code), CloseTrigger::Error)
            }
            (Some(_), _) => (Initiator::Local, None, CloseTrigger::Error),
            (None, ConnectionError::TimedOut) => (Initiator::Local, None, CloseTrigger::IdleTimeout),
            (None, ConnectionError::LocallyClosed) => (Initiator::Local, Some(0), CloseTrigger::Application),
            (None, _) => (Initiator::Remote, Some(0), CloseTrigger::Application),
        };
        let error = code.map(CloseError::Transport);
        self.write(
            now,
            &Event::ConnectionClosed { initiator: Some(initiator), error, reason: "", trigger: Some(trigger) },
        );
        self.write(now, &Event::ConnectionStateUpdated { new: ConnectionState::Closed });
        if let Some(Err(error)) = self.writer.as_mut().map(Writer::flush) {
            self.shared.cut_log(self.path.display(), &error);
            self.writer = None;
        }
    }
}

fn recovery<'a>(scheme: &'a str, config: &QuicConfig) -> RecoveryParameters<'a> {
    RecoveryParameters {
        congestion_control: Some(scheme),
        reordering_threshold: Some(3),
        time_threshold: Some(1.125),
        timer_granularity_ms: 1,
        initial_rtt: Some(Span::from_millis(333)),
        max_datagram_size: Some(config.datagram.into()),
        initial_congestion_window: Some(config.initial_window()),
        minimum_congestion_window: Some(2 * u64::from(config.datagram)),
        loss_reduction_factor: None,
        persistent_congestion_threshold: Some(3),
    }
}

const fn space(kind: PacketKind) -> Space {
    match kind {
        PacketKind::Initial => Space::Initial,
        PacketKind::Handshake => Space::Handshake,
        _ => Space::ApplicationData,
    }
}

/// The types and sizes of the packets in a datagram, from their headers (RFC 9000 section 17). Parsing stops at invalid
/// data.
fn packets(mut bytes: &[u8]) -> Vec<(PacketKind, u64)> {
    let mut all = Vec::new();
    while let Some(first) = bytes.first() {
        let kind = match (first & 0x80, first >> 4 & 3) {
            (0, _) => PacketKind::OneRtt,
            (_, 0) => PacketKind::Initial,
            (_, 1) => PacketKind::ZeroRtt,
            (_, 2) => PacketKind::Handshake,
            _ => PacketKind::Retry,
        };
        let size = match kind {
            PacketKind::OneRtt | PacketKind::Retry => Some(bytes.len()),
            _ => long_size(bytes, kind == PacketKind::Initial).filter(|size| *size <= bytes.len()),
        };
        let Some(size) = size else { return all };
        all.push((kind, size as u64));
        bytes = &bytes[size..];
    }
    all
}

/// The size of a packet with a long header; an Initial packet has a token.
fn long_size(bytes: &[u8], has_token: bool) -> Option<usize> {
    let mut rest = bytes.get(5..)?;
    for _ in 0..2 {
        rest = rest.get(1 + usize::from(*rest.first()?)..)?;
    }
    if has_token {
        let (token, after) = take(rest)?;
        rest = after.get(usize::try_from(token).ok()?..)?;
    }
    let (length, after) = take(rest)?;
    (bytes.len() - after.len()).checked_add(usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn long(kind: u8, token: Option<&[u8]>, length: u8) -> Vec<u8> {
        let mut packet = vec![0xc0 | kind << 4, 0, 0, 0, 1, 2, 9, 9, 3, 8, 8, 8];
        if let Some(token) = token {
            packet.push(token.len() as u8);
            packet.extend_from_slice(token);
        }
        packet.push(length);
        packet.resize(packet.len() + usize::from(length), 7);
        packet
    }

    #[test]
    fn a_datagram_is_its_packets() {
        let all = [long(0, Some(&[5; 4]), 30), long(2, None, 50), vec![0x40; 33]];
        let kinds = [PacketKind::Initial, PacketKind::Handshake, PacketKind::OneRtt];
        let sizes: Vec<_> = kinds.into_iter().zip(all.iter().map(|packet| packet.len() as u64)).collect();
        assert_eq!(packets(&all.concat()), sizes);
        // a truncated packet is not listed
        assert_eq!(packets(&all.concat()[..60]), sizes[..1]);
        assert_eq!(packets(&[0xf0; 40]), [(PacketKind::Retry, 40)]);
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let all: u64 = packets(&bytes).iter().map(|(_, size)| size).sum();
            prop_assert!(all <= bytes.len() as u64);
        }
    }
}

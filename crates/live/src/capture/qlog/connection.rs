//! The log of one connection at one of its ends.

use super::flow::Flow;
use paceline_flow::quic::{CongestionState, Recovery, Stage};
use paceline_packet::{Flags, Packet};
use paceline_qlog::write::{
    CloseError, CloseTrigger, ConnectionState, DropTrigger, Endpoint, Event, Initiator, Metrics, Trace, Vantage, Writer,
};
use paceline_units::Time;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A log being written.
pub(super) struct Connection {
    log: Writer<Pieces>,
    /// The number of its opener's first packet, which identifies the connection.
    pub(super) base: u32,
    stage: Stage,
    state: Option<CongestionState>,
    /// The error with which the other end closed the connection.
    closed_by_peer: Option<u32>,
    /// Whether the handshake was confirmed; later confirmations are ignored.
    confirmed: bool,
    /// Received packet numbers, one bit each.
    received: Vec<u64>,
}

impl Connection {
    /// Begins the log of a connection, the `count`th of its flow, whose opener's first packet has the number `base`;
    /// `opens` selects the opening end.
    pub(super) fn begin(
        now: Time,
        opens: bool,
        (base, count): (u32, u32),
        flow: &Flow,
        folder: &Path,
    ) -> io::Result<Connection> {
        let later = if count > 1 { format!(".{count}") } else { String::new() };
        let end = if opens { "client" } else { "server" };
        let path = folder.join(format!("{}{later}-{end}.sqlog", flow.name));
        let hosts = &flow.hosts;
        let (local, remote) = if opens { (&hosts[0], &hosts[1]) } else { (&hosts[1], &hosts[0]) };
        let group = format!("{:08x}{base:08x}", flow.number);
        let trace = Trace {
            title: &flow.title,
            vantage: if opens { Vantage::client(local) } else { Vantage::server(local) },
            group_id: Some(&group),
            code_version: Some(concat!("paceline ", env!("CARGO_PKG_VERSION"))),
            ..Trace::default()
        };
        let mut log = Writer::new(Pieces::create(path)?, &trace)?;
        // simulated hosts have names instead of addresses, which the draft allows
        let [local, remote] = [local, remote].map(|host| Endpoint { address: Some(host), ..Endpoint::default() });
        let started = Event::ConnectionStarted { local, remote };
        log.write(now, &started)?;
        log.write(now, &Event::ParametersSet(flow.parameters(Initiator::Local)))?;
        log.write(now, &Event::RecoveryParametersSet(flow.recovery()))?;
        let stage = Stage::Idle;
        Ok(Connection { log, base, stage, state: None, closed_by_peer: None, confirmed: false, received: Vec::new() })
    }

    /// Logs that the handshake is confirmed.
    pub(super) fn confirm(&mut self, now: Time) -> io::Result<()> {
        if core::mem::replace(&mut self.confirmed, true) {
            return Ok(());
        }
        self.write(now, &Event::ConnectionStateUpdated { new: ConnectionState::HandshakeConfirmed })
    }

    /// Adds an event.
    pub(super) fn write(&mut self, now: Time, event: &Event<'_>) -> io::Result<()> {
        self.log.write(now, event)
    }

    /// Why a packet that reaches this end is dropped, if it is; `of_opener`: its numbers begin at [`Connection::base`].
    pub(super) fn refuses(&mut self, packet: &Packet, of_opener: bool) -> Option<DropTrigger> {
        if packet.flags.has(Flags::CORRUPT) {
            return Some(DropTrigger::DecryptionFailure);
        }
        if self.is_closed() || of_opener && packet.seq < self.base {
            return Some(DropTrigger::ConnectionUnknown);
        }
        let (word, bit) = (packet.seq as usize / 64, 1 << (packet.seq % 64));
        if self.received.len() <= word {
            self.received.resize(word + 1, 0);
        }
        let seen = self.received[word] & bit != 0;
        self.received[word] |= bit;
        seen.then_some(DropTrigger::Duplicate)
    }

    fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Finished | Stage::Failed(_) | Stage::Over)
    }

    /// Records the error with which the other end has closed the connection.
    pub(super) fn was_closed(&mut self, code: u32) {
        self.closed_by_peer.get_or_insert(code);
    }

    /// Logs changes of the recovery state.
    pub(super) fn recovery(&mut self, now: Time, recovery: &Recovery, flow: &Flow) -> io::Result<()> {
        if recovery.stage != self.stage {
            self.stage = recovery.stage;
            self.stage_changed(now, flow)?;
        }
        if recovery.state != self.state {
            if let Some(new) = recovery.state {
                let changed =
                    Event::CongestionStateUpdated { old: self.state.map(word), new: word(new), trigger: None };
                self.log.write(now, &changed)?;
            }
            self.state = recovery.state;
        }
        self.log.write(now, &Event::RecoveryMetricsUpdated(metrics(recovery)))
    }

    fn stage_changed(&mut self, now: Time, flow: &Flow) -> io::Result<()> {
        let state = match self.stage {
            Stage::Idle => return Ok(()),
            Stage::Opening => ConnectionState::HandshakeStarted,
            Stage::Established => {
                // the other end's parameters arrive with the handshake
                self.log.write(now, &Event::ParametersSet(flow.parameters(Initiator::Remote)))?;
                ConnectionState::HandshakeComplete
            }
            Stage::Finished | Stage::Failed(_) | Stage::Over => {
                self.log.write(now, &self.end())?;
                ConnectionState::Closed
            }
        };
        self.log.write(now, &Event::ConnectionStateUpdated { new: state })
    }

    /// How it ended.
    fn end(&self) -> Event<'static> {
        let (initiator, code, trigger) = match (self.stage, self.closed_by_peer) {
            (Stage::Failed(code), _) => (Initiator::Local, Some(code), CloseTrigger::Error),
            (Stage::Finished, _) => (Initiator::Local, Some(0), CloseTrigger::Application),
            (_, Some(0)) => (Initiator::Remote, Some(0), CloseTrigger::Application),
            (_, Some(code)) => (Initiator::Remote, Some(code), CloseTrigger::Error),
            (_, None) => (Initiator::Local, None, CloseTrigger::IdleTimeout),
        };
        let error = code.map(|code| CloseError::Transport(code.into()));
        Event::ConnectionClosed { initiator: Some(initiator), error, reason: "", trigger: Some(trigger) }
    }

    /// Flushes buffered data.
    pub(super) fn finish(self) -> io::Result<()> {
        self.log.finish().map(drop)
    }
}

/// RFC 9002's names of these states.
const fn word(state: CongestionState) -> &'static str {
    match state {
        CongestionState::SlowStart => "slow_start",
        CongestionState::Recovery => "recovery",
        CongestionState::CongestionAvoidance => "congestion_avoidance",
    }
}

fn metrics(recovery: &Recovery) -> Metrics {
    let rtt = Some(recovery.rtt).filter(|rtt| rtt.is_known());
    Metrics {
        min_rtt: rtt.map(|rtt| rtt.min_rtt),
        smoothed_rtt: rtt.map(|rtt| rtt.smoothed_rtt),
        latest_rtt: rtt.map(|rtt| rtt.latest_rtt),
        rtt_variance: rtt.map(|rtt| rtt.rttvar),
        pto_count: Some(u16::try_from(recovery.probe_count).unwrap_or(u16::MAX)),
        congestion_window: Some(recovery.window),
        bytes_in_flight: Some(recovery.in_flight),
        ssthresh: recovery.threshold,
        packets_in_flight: Some(recovery.packets_in_flight.into()),
        pacing_rate: recovery.pacing_rate,
    }
}

/// A file that is open only during a write: a run may have more logs than a process may have open files.
struct Pieces(PathBuf);

impl Pieces {
    /// Creates or truncates the file.
    fn create(path: PathBuf) -> io::Result<Pieces> {
        #[expect(clippy::disallowed_types, reason = "the crate that writes files")]
        std::fs::File::create(&path)?;
        Ok(Pieces(path))
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        std::fs::OpenOptions::new().append(true).open(&self.0)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

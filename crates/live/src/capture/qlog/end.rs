//! The logs at one end of a flow: a file for each of its connections.

use super::connection::Connection;
use super::flow::Flow;
use super::packets::Content;
use paceline_flow::quic::{Recovery, Stage};
use paceline_packet::Flags;
use paceline_qlog::write::{Event, LossTrigger, Packet, PacketKind, PacketName};
use paceline_sim::{Captured, QuicEvent, QuicEventKind};
use paceline_units::Time;
use std::io;
use std::path::Path;

/// One end.
pub(super) struct End {
    /// Whether it opens connections: the flow's sender, or its receiver if that sends requests.
    opens: bool,
    now: Option<Connection>,
    /// Number of connections so far.
    count: u32,
}

impl End {
    pub(super) fn new(opens: bool) -> End {
        End { opens, now: None, count: 0 }
    }

    /// The log of the connection whose opener's first packet has the number `base`; begins it if it is later than the
    /// current one.
    fn connection(&mut self, now: Time, base: u32, flow: &Flow, folder: &Path) -> io::Result<&mut Connection> {
        if self.now.as_ref().is_none_or(|connection| base > connection.base) {
            self.finish()?;
            self.count += 1;
            self.now = Some(Connection::begin(now, self.opens, (base, self.count), flow, folder)?);
        }
        self.now.as_mut().ok_or_else(|| io::Error::other("the log was not begun"))
    }

    /// Logs a packet that leaves or reaches this end.
    pub(super) fn packet(&mut self, captured: &Captured, flow: &Flow, folder: &Path) -> io::Result<()> {
        let packet = &captured.packet;
        let content = Content::of(captured.extra.as_ref());
        let of_opener = packet.flags.has(Flags::ACK) == flow.receiver_requests;
        // the opener's first packets identify their connection
        let named = content.connection().filter(|_| of_opener && !packet.flags.has(Flags::CORRUPT));
        let base = named.or_else(|| self.now.as_ref().map(|connection| connection.base)).unwrap_or(0);
        let leaves = of_opener == self.opens;
        let connection = self.connection(packet.time, base, flow, folder)?;
        let size = u64::from(packet.size.saturating_sub(flow.config.header));
        if !leaves && let Some(trigger) = connection.refuses(packet, of_opener) {
            return connection.write(packet.time, &Event::PacketDropped { size, trigger });
        }
        let frames = content.frames(flow.l4s);
        let logged = Packet::new(content.kind(), packet.seq.into(), size, &frames);
        let event = if leaves { Event::PacketSent(logged) } else { Event::PacketReceived(logged) };
        connection.write(packet.time, &event)?;
        if content.confirms() {
            connection.confirm(packet.time)?;
        }
        if let Some(code) = content.closes().filter(|_| !leaves) {
            connection.was_closed(code);
        }
        Ok(())
    }

    /// Logs an event at this end.
    pub(super) fn noted(&mut self, noted: &QuicEvent, flow: &Flow, folder: &Path) -> io::Result<()> {
        match noted.what {
            QuicEventKind::Lost(lost) => {
                let Some(connection) = &mut self.now else { return Ok(()) };
                let trigger =
                    if lost.by_number { LossTrigger::ReorderingThreshold } else { LossTrigger::TimeThreshold };
                let packet = PacketName { kind: PacketKind::OneRtt, number: Some(lost.number.into()) };
                let lost =
                    Event::PacketLost { packet, frames: &[], is_mtu_probe_packet: false, trigger: Some(trigger) };
                connection.write(noted.time, &lost)
            }
            QuicEventKind::Recovery(Recovery { stage: Stage::Idle, .. }) => Ok(()),
            QuicEventKind::Recovery(recovery) => {
                // the accepting end learns of a connection from a packet, which was logged before
                let known = self.now.as_ref().map_or(0, |connection| connection.base);
                let base = if self.opens { recovery.connection } else { known };
                self.connection(noted.time, base, flow, folder)?.recovery(noted.time, &recovery, flow)
            }
        }
    }

    /// Flushes buffered data.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.now.take().map_or(Ok(()), Connection::finish)
    }
}

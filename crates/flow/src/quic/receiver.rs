//! The end that answers, as a host sees it.

use super::connection::{Connection, End};
use super::{Object, QuicConfig, TrackArrivals};
use crate::{ReceiverStats, Transmit};
use paceline_control::TcpController;
use paceline_packet::quic::StreamPiece;
use paceline_packet::{Extra, Packet};
use paceline_random as random;
use paceline_units::Time;

/// The receiving end of a flow over QUIC. It sends acknowledgements, and what raises limits; its own congestion control, of the
/// same law, has nothing to do.
#[derive(Debug)]
pub struct QuicReceiver {
    pub(super) connection: Connection,
}

impl QuicReceiver {
    /// A receiver.
    #[must_use]
    pub fn new(config: &QuicConfig, controller: TcpController, stream: random::Stream) -> QuicReceiver {
        QuicReceiver { connection: Connection::new(End::Answerer, config, controller, stream) }
    }

    /// A packet of the sender has come; `extra` is its side record.
    #[inline]
    pub fn on_packet(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        match extra {
            Some(Extra::QuicStream(piece)) if self.takes_in_order(now, packet, piece) => {
                self.acknowledge(now, out);
            }
            _ => self.on_any(now, packet, extra, out),
        }
    }

    /// The fast path of [`QuicReceiver::on_packet`]: data that follow, and nothing out of the ordinary. `true`: they have been taken,
    /// and [`QuicReceiver::acknowledge`] is all that is left to do; `false`: nothing has been done.
    #[inline]
    pub fn takes_in_order(&mut self, now: Time, packet: &Packet, piece: &StreamPiece) -> bool {
        self.connection.on_data_in_order(now, packet, piece)
    }

    /// Sends the acknowledgement that is due, if one is. Returns what [`QuicReceiver::next_wake`] says then.
    #[inline]
    pub fn acknowledge(&mut self, now: Time, out: &mut impl Transmit) -> Time {
        if self.connection.received.due() <= now {
            self.connection.send_ack(now, out);
        }
        self.next_wake()
    }

    #[inline(never)]
    fn on_any(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        let connection = &mut self.connection;
        if !connection.on_packet(now, packet, extra) {
            return;
        }
        if connection.has_frames() || connection.violation.is_some() {
            connection.pump(now, out);
        } else {
            self.acknowledge(now, out);
        }
    }

    /// The time that [`QuicReceiver::next_wake`] named has come; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.connection.next_wake() <= now {
            self.connection.on_timer(now, out);
        }
    }

    /// When [`QuicReceiver::on_timer`] should be called.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.connection.next_wake()
    }

    /// Whether [`QuicReceiver::take_objects`] has any.
    #[inline]
    #[must_use]
    pub fn has_objects(&self) -> bool {
        !self.connection.incoming.objects.is_empty()
    }

    /// Frames that have come to their end since the last call, in that order; of the first track, if it leads others.
    pub fn take_objects(&mut self) -> impl Iterator<Item = Object> + '_ {
        self.connection.incoming.objects.drain(..)
    }

    /// What has come of a track that it leads.
    pub fn take_track(&mut self, track: u8) -> TrackArrivals {
        let bytes = self.connection.led_bytes.get(usize::from(track) - 1).copied().unwrap_or(0);
        let all = core::mem::take(&mut self.connection.incoming.led);
        let (objects, others) = all.into_iter().partition(|object| object.track == track);
        self.connection.incoming.led = others;
        TrackArrivals { bytes, objects }
    }

    /// Counts up to now.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.connection.arrived
    }
}

//! The end that receives a flow's data, as a host sees it.

use super::connection::{Connection, Phase};
use super::outgoing::Kind;
use super::{Object, QuicConfig, RelayedData, TrackArrivals};
use crate::{ReceiverStats, Transmit};
use paceline_control::TcpController;
use paceline_packet::quic::StreamPiece;
use paceline_packet::{Extra, Packet, Stamp};
use paceline_random as random;
use paceline_units::Time;

/// The receiving end of a flow over QUIC. It sends acknowledgements and raises flow-control limits; with requests, it
/// opens connections and sends them. It has congestion control of its own, by the same controller, with little to do.
#[derive(Debug)]
pub struct QuicReceiver {
    pub(super) connection: Connection,
    /// Requests that wait until a stream may be opened for them; and the number of requests on earlier connections.
    waiting: u32,
    earlier_requests: u32,
}

impl QuicReceiver {
    /// Creates a receiver.
    #[must_use]
    pub fn new(config: &QuicConfig, controller: TcpController, stream: random::Stream) -> QuicReceiver {
        QuicReceiver { connection: Connection::new(true, config, controller, stream), waiting: 0, earlier_requests: 0 }
    }

    /// Sends a request on a new stream. `fresh`: on a new connection; everything requested before must have arrived. A
    /// closed connection is also replaced.
    pub fn request(&mut self, fresh: bool, now: Time, out: &mut impl Transmit) {
        let connection = &mut self.connection;
        let began = connection.space.base > 0 || connection.phase != Phase::Idle;
        if began && fresh || connection.phase == Phase::Closed {
            self.earlier_requests += connection.outgoing.opened();
            connection.begin(connection.loss.sent_packets.next(), connection.received.next());
        }
        connection.open(now);
        self.waiting += 1;
        self.open_requests(now);
        self.connection.pump(now, out);
    }

    /// Whether it sends requests.
    #[inline]
    #[must_use]
    pub fn sends_requests(&self) -> bool {
        self.connection.config.request.is_some()
    }

    /// Opens streams for waiting requests, as far as allowed.
    fn open_requests(&mut self, now: Time) {
        let connection = &mut self.connection;
        let Some(bytes) = connection.config.request else { return };
        while self.waiting > 0 && connection.outgoing.may_open() {
            let place = connection.outgoing.open(Kind { rank: 0, track: 0 });
            connection.outgoing.write_frame(place, bytes, (Stamp::at(now), Time::NEVER), false, true);
            self.waiting -= 1;
        }
    }

    /// The numbers of requests whose answers were completed since the last call; requests are numbered from 0.
    pub fn take_answers(&mut self) -> impl Iterator<Item = u32> + '_ {
        let before = self.earlier_requests;
        self.connection.incoming.objects.drain(..).map(move |answer| before + answer.number)
    }

    /// Processes a packet of the sender; `extra` is its side record.
    #[inline]
    pub fn on_packet(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        match extra {
            Some(Extra::QuicStream(piece)) if self.takes_in_order(now, packet, piece) => {
                if self.owes(now) {
                    self.acknowledge(now, out);
                }
            }
            _ => self.on_any(now, packet, extra, out),
        }
    }

    /// The fast path of [`QuicReceiver::on_packet`] for stream data in the common case. `true`: the data was taken;
    /// only [`QuicReceiver::acknowledge`] remains, if [`QuicReceiver::owes`] returns true. `false`: nothing was done.
    #[inline]
    pub fn takes_in_order(&mut self, now: Time, packet: &Packet, piece: &StreamPiece) -> bool {
        self.connection.on_data_in_order(now, packet, piece)
    }

    /// Whether an acknowledgement is due.
    #[inline]
    #[must_use]
    pub fn owes(&self, now: Time) -> bool {
        self.connection.received.due() <= now
    }

    /// Sends an acknowledgement. Returns the new value of [`QuicReceiver::next_wake`].
    #[inline]
    pub fn acknowledge(&mut self, now: Time, out: &mut impl Transmit) -> Time {
        self.connection.send_ack(now, out);
        self.next_wake()
    }

    #[inline(never)]
    fn on_any(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        let connection = &mut self.connection;
        if !connection.on_packet(now, packet, extra) {
            return;
        }
        if self.waiting > 0 {
            self.open_requests(now);
        }
        let connection = &mut self.connection;
        // before the other end's address is validated, arriving bytes allow more to be sent
        if connection.has_frames()
            || connection.closing.violation.is_some()
            || connection.handshake.unvalidated.is_some()
        {
            connection.pump(now, out);
        } else if self.owes(now) {
            self.acknowledge(now, out);
        }
    }

    /// The time that [`QuicReceiver::next_wake`] returned has arrived; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.connection.next_wake() <= now {
            self.connection.on_timer(now, out);
        }
    }

    /// When to call [`QuicReceiver::on_timer`].
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.connection.next_wake()
    }

    /// Whether [`QuicReceiver::take_objects`] would return any.
    #[inline]
    #[must_use]
    pub fn has_objects(&self) -> bool {
        !self.connection.incoming.objects.is_empty()
    }

    /// Frames completed since the last call, in order of completion; if it leads other flows, only of the first track.
    pub fn take_objects(&mut self) -> impl Iterator<Item = Object> + '_ {
        self.connection.incoming.objects.drain(..)
    }

    /// The received data of a track that it leads.
    pub fn take_track(&mut self, track: u8) -> TrackArrivals {
        let bytes = self.connection.stats.led_bytes.get(usize::from(track) - 1).copied().unwrap_or(0);
        let all = core::mem::take(&mut self.connection.incoming.led);
        let (objects, others) = all.into_iter().partition(|object| object.track == track);
        self.connection.incoming.led = others;
        TrackArrivals { bytes, objects }
    }

    /// Collects received data for a relay: [`QuicReceiver::take_portions`] returns it from now on.
    pub fn relay(&mut self) {
        self.connection.incoming.portions.get_or_insert_default();
    }

    /// Data of all tracks received since the last call, if it is relayed.
    pub fn take_portions(&mut self) -> Vec<RelayedData> {
        self.connection.incoming.portions.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Counters up to now.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.connection.stats.received
    }
}

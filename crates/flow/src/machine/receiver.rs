//! The receiving end of each machine.

use crate::acks::AcksReceiver;
use crate::foreign::ForeignReceiver;
use crate::multfrc::MultfrcReceiver;
use crate::quic::{QuicReceiver, TrackReceiver};
use crate::rtp::RtpReceiver;
use crate::tcp::{TcpClient, TcpReceiver};
use crate::tfrc::TfrcReceiver;
use crate::udp::UdpReceiver;
use crate::{ReceiverStats, Segment, Transmit};
use paceline_packet::{Extra, Packet};
use paceline_units::Time;

/// The receiving end of a flow.
#[derive(Debug)]
pub enum Receiver {
    /// Per-packet acknowledgements.
    Acks(Box<AcksReceiver>),
    /// A receiver that another crate implements.
    Foreign(Box<dyn ForeignReceiver>),
    /// QUIC.
    Quic(Box<QuicReceiver>),
    /// RTP.
    Rtp(Box<RtpReceiver>),
    /// TCP.
    Tcp(TcpReceiver),
    /// TCP, on a connection that it opens to send requests.
    TcpClient(Box<TcpClient>),
    /// TFRC.
    Tfrc(Box<TfrcReceiver>),
    /// Several TFRC connections in one flow (MulTFRC).
    Multfrc(Box<MultfrcReceiver>),
    /// A track of another flow's QUIC connection.
    Track(Box<TrackReceiver>),
    /// UDP.
    Udp(Box<UdpReceiver>),
}

const _: () = assert!(size_of::<Receiver>() == size_of::<TcpReceiver>(), "the tag must find room in TCP's receiver");

impl Receiver {
    /// The fast path for a data packet without a side record: see [`TcpReceiver::on_data_in_order`]. Returns the
    /// segment to send; no timer is pending then. `None`: nothing was done, and the packet must go to
    /// [`Receiver::on_data`].
    #[inline(always)]
    pub fn on_data_in_order(&mut self, now: Time, packet: &Packet) -> Option<Segment> {
        match self {
            Receiver::Tcp(tcp) => tcp.on_data_in_order(now, packet),
            _ => None,
        }
    }

    /// Processes a data packet; `extra` is its side record. Returns the new value of [`Receiver::next_wake`].
    pub fn on_data(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) -> Time {
        match self {
            Receiver::Quic(quic) => {
                quic.on_packet(now, packet, extra, out);
                quic.next_wake()
            }
            Receiver::Foreign(foreign) => foreign.next_wake(),
            Receiver::Rtp(rtp) => {
                rtp.on_data(now, packet, extra, out);
                rtp.next_wake()
            }
            Receiver::Acks(acks) => {
                acks.on_data(now, packet, out);
                Time::NEVER
            }
            Receiver::Tcp(tcp) => {
                tcp.on_data(now, packet, out);
                tcp.next_wake()
            }
            Receiver::TcpClient(client) => {
                client.on_packet(now, packet, extra.and_then(Extra::tcp), out);
                client.next_wake()
            }
            Receiver::Tfrc(tfrc) => {
                tfrc.on_data(now, packet, extra, out);
                tfrc.next_wake()
            }
            Receiver::Multfrc(multfrc) => {
                multfrc.on_data(now, packet, extra, out);
                multfrc.next_wake()
            }
            Receiver::Track(_) => Time::NEVER, // the connection's own flow handles its packets
            Receiver::Udp(udp) => {
                udp.on_data(now, packet);
                Time::NEVER
            }
        }
    }

    /// The application sends a request, on a new connection if `fresh`; machines without requests ignore it.
    pub fn request(&mut self, fresh: bool, now: Time, out: &mut impl Transmit) {
        match self {
            Receiver::Quic(quic) => quic.request(fresh, now, out),
            Receiver::TcpClient(client) => client.request(fresh, now, out),
            _ => {}
        }
    }

    /// The time that [`Receiver::next_wake`] returned has arrived; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        match self {
            Receiver::Quic(quic) => quic.on_timer(now, out),
            Receiver::Foreign(foreign) => foreign.on_timer(now),
            Receiver::Rtp(rtp) => rtp.on_timer(now, out),
            Receiver::Tcp(tcp) => tcp.on_timer(now, out),
            Receiver::TcpClient(client) => client.on_timer(now, out),
            Receiver::Tfrc(tfrc) => tfrc.on_timer(now, out),
            Receiver::Multfrc(multfrc) => multfrc.on_timer(now, out),
            Receiver::Acks(_) | Receiver::Track(_) | Receiver::Udp(_) => {}
        }
    }

    /// When to call [`Receiver::on_timer`]; the time may move later without notice.
    #[inline(always)]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        match self {
            Receiver::Quic(quic) => quic.next_wake(),
            Receiver::Foreign(foreign) => foreign.next_wake(),
            Receiver::Rtp(rtp) => rtp.next_wake(),
            Receiver::Tcp(tcp) => tcp.next_wake(),
            Receiver::TcpClient(client) => client.next_wake(),
            Receiver::Tfrc(tfrc) => tfrc.next_wake(),
            Receiver::Multfrc(multfrc) => multfrc.next_wake(),
            Receiver::Acks(_) | Receiver::Track(_) | Receiver::Udp(_) => Time::NEVER,
        }
    }

    /// Counters up to now.
    #[inline]
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        match self {
            Receiver::Quic(quic) => quic.stats(),
            Receiver::Foreign(foreign) => foreign.stats(),
            Receiver::Rtp(rtp) => rtp.stats(),
            Receiver::Acks(acks) => acks.stats(),
            Receiver::Tcp(tcp) => tcp.stats(),
            Receiver::TcpClient(client) => client.stats(),
            Receiver::Tfrc(tfrc) => tfrc.stats(),
            Receiver::Multfrc(multfrc) => multfrc.stats(),
            Receiver::Track(track) => track.stats(),
            Receiver::Udp(udp) => udp.stats(),
        }
    }
}

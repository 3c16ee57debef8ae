//! The protocol machine of a flow, as a host drives it: [`Transport`] names it, with its settings; [`Sender`] and
//! [`Receiver`] are its two ends.
//!
//! TCP's ends lie in the enums themselves, because a host iterates over thousands of them; the others are boxed. The
//! enums need no separate tag: the compiler puts it into a niche, a vector's capacity, in a cache line that TCP touches
//! anyway.

mod receiver;

pub use receiver::Receiver;

use crate::acks::{AcksConfig, AcksReceiver, AcksSender};
use crate::foreign::ForeignSender;
use crate::multfrc::{MultfrcReceiver, MultfrcSender};
use crate::quic::{QuicConfig, QuicReceiver, QuicSender, TrackSender, TrackWrite};
use crate::rtp::{RtpConfig, RtpReceiver, RtpSender};
use crate::tcp::{Burst, TcpClient, TcpConfig, TcpReceiver, TcpSender, TcpServer};
use crate::tfrc::{TfrcConfig, TfrcReceiver, TfrcSender};
use crate::udp::{UdpConfig, UdpReceiver, UdpSender};
use crate::{SenderStats, Transmit};
use paceline_control::{
    AcksController, Gauges, RateController, RtpController, TcpController, TfrcController, WindowController,
};
use paceline_packet::{Extra, Packet};
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};

/// The protocol machine of a flow, with its settings.
#[derive(Clone, Debug)]
pub enum Transport {
    /// Per-packet acknowledgements without retransmission.
    Acks {
        /// The settings of both ends.
        config: AcksConfig,
        /// The controller, ready to start.
        controller: AcksController,
    },
    /// QUIC.
    Quic {
        /// The settings of both ends.
        config: QuicConfig,
        /// The controller, ready to start.
        controller: TcpController,
    },
    /// RTP.
    Rtp {
        /// The settings of both ends.
        config: RtpConfig,
        /// The controller, ready to start.
        controller: RtpController,
    },
    /// TCP.
    Tcp {
        /// The settings of both ends.
        config: TcpConfig,
        /// The controller, ready to start.
        controller: TcpController,
    },
    /// TFRC, or several TFRC connections in one flow if the controller requires it (MulTFRC).
    Tfrc {
        /// The settings of both ends.
        config: TfrcConfig,
        /// The controller, ready to start.
        controller: TfrcController,
    },
    /// Datagrams without congestion control.
    Udp(UdpConfig),
}

impl Transport {
    /// Creates the sending end; `stream` supplies its few random draws.
    #[must_use]
    pub fn sender(&self, stream: Stream) -> Sender {
        match self {
            Transport::Rtp { config, controller } => {
                Sender::Rtp(Box::new(RtpSender::new(config, controller.clone(), stream)))
            }
            Transport::Quic { config, .. } if config.is_led => Sender::Track(Box::new(TrackSender::new(config.wire()))),
            Transport::Quic { config, controller } => {
                Sender::Quic(Box::new(QuicSender::new(config, controller.clone(), stream)))
            }
            Transport::Acks { config, controller } => {
                Sender::Acks(Box::new(AcksSender::new(config, controller.clone(), stream)))
            }
            Transport::Tcp { config, controller } => match config.requests {
                Some(requests) => {
                    Sender::TcpServer(Box::new(TcpServer::new(config, requests, controller.clone(), stream)))
                }
                None => Sender::Tcp(TcpSender::new(config, controller.clone(), stream)),
            },
            Transport::Tfrc { config, controller } => {
                let controller = controller.clone();
                match controller.connections() {
                    None => Sender::Tfrc(Box::new(TfrcSender::new(config, controller, stream))),
                    Some(rules) => Sender::Multfrc(Box::new(MultfrcSender::new(config, rules, controller, stream))),
                }
            }
            Transport::Udp(config) => Sender::Udp(Box::new(UdpSender::new(config))),
        }
    }

    /// Creates the receiving end; `stream` supplies its few random draws.
    #[must_use]
    pub fn receiver(&self, stream: Stream) -> Receiver {
        match self {
            Transport::Rtp { config, .. } => Receiver::Rtp(Box::new(RtpReceiver::new(config, stream))),
            Transport::Quic { config, .. } if config.is_led => Receiver::Track(Box::default()),
            Transport::Quic { config, controller } => {
                Receiver::Quic(Box::new(QuicReceiver::new(config, controller.clone(), stream)))
            }
            Transport::Acks { config, .. } => Receiver::Acks(Box::new(AcksReceiver::new(config))),
            Transport::Tcp { config, .. } => match config.requests {
                Some(requests) => Receiver::TcpClient(Box::new(TcpClient::new(config, requests, stream))),
                None => Receiver::Tcp(TcpReceiver::new(config)),
            },
            Transport::Tfrc { config, .. } if config.settings.multiple_connections => {
                Receiver::Multfrc(Box::new(MultfrcReceiver::new(config)))
            }
            Transport::Tfrc { config, .. } => Receiver::Tfrc(Box::new(TfrcReceiver::new(config))),
            Transport::Udp(config) => Receiver::Udp(Box::new(UdpReceiver::new(config))),
        }
    }

    /// Names the flow, for the messages of a foreign controller.
    pub fn belongs_to(&mut self, flow: &str) {
        match self {
            Transport::Tcp { controller: TcpController::Foreign(foreign), .. }
            | Transport::Quic { controller: TcpController::Foreign(foreign), .. } => foreign.belongs_to(flow),
            Transport::Tfrc { controller: TfrcController::Foreign(foreign), .. } => foreign.belongs_to(flow),
            Transport::Rtp { controller: RtpController::Foreign(foreign), .. } => foreign.belongs_to(flow),
            _ => {}
        }
    }

    /// Whether the controller is a foreign one, not compiled in.
    #[must_use]
    pub const fn is_foreign(&self) -> bool {
        matches!(
            self,
            Transport::Tcp { controller: TcpController::Foreign(_), .. }
                | Transport::Quic { controller: TcpController::Foreign(_), .. }
                | Transport::Tfrc { controller: TfrcController::Foreign(_), .. }
                | Transport::Rtp { controller: RtpController::Foreign(_), .. }
        )
    }

    /// The machine's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Transport::Quic { .. } => "quic",
            Transport::Rtp { .. } => "rtp",
            Transport::Acks { .. } => "acks",
            Transport::Tcp { .. } => "tcp",
            Transport::Tfrc { .. } => "tfrc",
            Transport::Udp(_) => "udp",
        }
    }

    /// Payload of a full segment in bytes; for QUIC, the UDP payload of a full packet.
    #[must_use]
    pub const fn segment(&self) -> u16 {
        match self {
            Transport::Quic { config, .. } => config.datagram,
            Transport::Rtp { config, .. } => config.segment,
            Transport::Acks { config, .. } => config.segment,
            Transport::Tcp { config, .. } => config.segment,
            Transport::Tfrc { config, .. } => config.segment,
            Transport::Udp(config) => config.segment,
        }
    }

    /// Header bytes of a data packet on the wire.
    #[must_use]
    pub const fn header(&self) -> u16 {
        match self {
            Transport::Quic { config, .. } => config.header,
            Transport::Rtp { config, .. } => config.header,
            Transport::Acks { config, .. } => config.header,
            Transport::Tcp { config, .. } => config.header,
            Transport::Tfrc { config, .. } => config.header,
            Transport::Udp(config) => config.header,
        }
    }

    /// Whether the remainder of a write is padded to a whole segment, as in ns-2.
    #[must_use]
    pub const fn whole_segments(&self) -> bool {
        match self {
            Transport::Quic { .. } => false,
            Transport::Rtp { config, .. } => config.whole_segments,
            Transport::Acks { config, .. } => config.whole_segments,
            Transport::Tcp { config, .. } => config.whole_segments,
            Transport::Tfrc { config, .. } => config.whole_segments,
            Transport::Udp(config) => config.whole_segments,
        }
    }
}

/// The sending end of a flow.
///
/// A host starts it and passes it the application's writes, the packets that arrive from the receiver, and the time.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "TCP's hot state lies in the host's own vector")]
pub enum Sender {
    /// Per-packet acknowledgements.
    Acks(Box<AcksSender>),
    /// A sender that another crate implements.
    Foreign(Box<dyn ForeignSender>),
    /// QUIC.
    Quic(Box<QuicSender>),
    /// RTP.
    Rtp(Box<RtpSender>),
    /// TCP.
    Tcp(TcpSender),
    /// TCP, on a connection that the receiver opens to send requests.
    TcpServer(Box<TcpServer>),
    /// TFRC.
    Tfrc(Box<TfrcSender>),
    /// Several TFRC connections in one flow (MulTFRC).
    Multfrc(Box<MultfrcSender>),
    /// A track of another flow's QUIC connection.
    Track(Box<TrackSender>),
    /// UDP.
    Udp(Box<UdpSender>),
}

const _: () = assert!(size_of::<Sender>() == size_of::<TcpSender>(), "the tag must find room in TCP's sender");

impl Sender {
    /// Starts the flow. Data supplied earlier has waited for this.
    pub fn start(&mut self, now: Time, out: &mut impl Transmit) {
        match self {
            Sender::Quic(quic) => quic.start(now, out),
            Sender::Foreign(foreign) => foreign.start(now),
            Sender::Rtp(rtp) => rtp.start(now, out),
            Sender::Acks(acks) => acks.start(now, out),
            Sender::Tcp(tcp) => tcp.start(now, out),
            Sender::TcpServer(_) => {} // the client opens the connection
            Sender::Tfrc(tfrc) => tfrc.start(now, out),
            Sender::Multfrc(multfrc) => multfrc.start(now, out),
            Sender::Udp(udp) => udp.start(now, out),
            Sender::Track(_) => {}
        }
    }

    /// The application writes `bytes`.
    pub fn supply(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        match self {
            Sender::Quic(quic) => quic.supply(bytes, false, now, out),
            Sender::Foreign(foreign) => foreign.supply(bytes, false, now),
            Sender::Rtp(rtp) => rtp.supply(bytes, now, out),
            Sender::Acks(acks) => acks.supply(bytes, now, out),
            Sender::Tcp(tcp) => tcp.supply(bytes, now, out),
            Sender::TcpServer(server) => server.supply(bytes, now, out),
            Sender::Tfrc(tfrc) => tfrc.supply(bytes, now, out),
            Sender::Multfrc(multfrc) => multfrc.supply(bytes, now, out),
            Sender::Udp(udp) => udp.supply(bytes, now, out),
            Sender::Track(track) => track.write(TrackWrite::Frame { bytes, captured: now, key: false }),
        }
    }

    /// The application writes `bytes` of the answer to a request; `last` marks the end of the answer. Machines without
    /// requests treat it as an ordinary write.
    pub fn answer(&mut self, request: u32, bytes: u64, last: bool, now: Time, out: &mut impl Transmit) {
        match self {
            Sender::Quic(quic) => quic.answer(request, bytes, last, now, out),
            other => other.supply(bytes, now, out),
        }
    }

    /// The number of the next request that has arrived and was not yet returned; requests are numbered from 0.
    pub fn take_request(&mut self) -> Option<u32> {
        match self {
            Sender::Quic(quic) => quic.take_request(),
            Sender::TcpServer(server) => server.take_request(),
            _ => None,
        }
    }

    /// The application always has data. A machine without a rate of its own (UDP) then sends nothing.
    pub fn supply_endless(&mut self, now: Time, out: &mut impl Transmit) {
        match self {
            Sender::Quic(quic) => quic.supply_endless(now, out),
            Sender::Foreign(foreign) => foreign.supply_endless(now),
            Sender::Rtp(rtp) => rtp.supply_endless(now, out),
            Sender::Acks(acks) => acks.supply_endless(now, out),
            Sender::Tcp(tcp) => tcp.supply_endless(now, out),
            Sender::Tfrc(tfrc) => tfrc.supply_endless(now, out),
            Sender::Multfrc(multfrc) => multfrc.supply_endless(now, out),
            Sender::Track(track) => track.write(TrackWrite::Endless),
            Sender::TcpServer(_) | Sender::Udp(_) => {}
        }
    }

    /// The application withdraws unsent data, and may write again. Only TCP, QUIC and foreign senders can do this.
    pub fn withdraw(&mut self) {
        match self {
            Sender::Foreign(foreign) => foreign.withdraw(),
            Sender::Quic(quic) => quic.withdraw(),
            Sender::Tcp(tcp) => tcp.withdraw(),
            Sender::Track(track) => track.write(TrackWrite::Withdraw { stops: false }),
            _ => {}
        }
    }

    /// The application stops: unsent data is discarded.
    pub fn stop(&mut self) {
        match self {
            Sender::Quic(quic) => quic.stop(),
            Sender::Foreign(foreign) => foreign.stop(),
            Sender::Rtp(rtp) => rtp.stop(),
            Sender::Acks(acks) => acks.stop(),
            Sender::Tcp(tcp) => tcp.stop(),
            Sender::TcpServer(server) => server.stop(),
            Sender::Tfrc(tfrc) => tfrc.stop(),
            Sender::Multfrc(multfrc) => multfrc.stop(),
            Sender::Track(track) => track.write(TrackWrite::Withdraw { stops: true }),
            Sender::Udp(udp) => udp.stop(),
        }
    }

    /// Resets the sender: no history, nothing supplied. Statistics continue to count. Call [`Sender::start`] next.
    pub fn restart(&mut self, now: Time) {
        match self {
            Sender::Quic(quic) => quic.restart(now),
            Sender::Foreign(foreign) => foreign.restart(now),
            Sender::Rtp(rtp) => rtp.restart(now),
            Sender::Acks(acks) => acks.restart(now),
            Sender::Tcp(tcp) => tcp.restart(now),
            Sender::Tfrc(tfrc) => tfrc.restart(now),
            Sender::Multfrc(multfrc) => multfrc.restart(now),
            Sender::Udp(udp) => udp.restart(),
            Sender::TcpServer(_) | Sender::Track(_) => {} // the connection is managed by the client or by another flow
        }
    }

    /// The fast path for the most common packets from the receiver, those without a side record: see
    /// [`TcpSender::on_ack_in_order`]. Returns the segments to send and the new value of [`Sender::next_wake`]. `None`:
    /// nothing was done, and the packet must go to [`Sender::on_ack`].
    #[inline(always)]
    pub fn on_ack_in_order(&mut self, now: Time, packet: &Packet) -> Option<(Burst, Time)> {
        match self {
            Sender::Tcp(tcp) => tcp.on_ack_in_order(now, packet).map(|burst| (burst, tcp.timer())),
            _ => None,
        }
    }

    /// Processes a packet from the receiver, an acknowledgement or a report; `extra` is its side record. Returns the
    /// new value of [`Sender::next_wake`], which saves a second dispatch on the machine.
    pub fn on_ack(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) -> Time {
        match self {
            Sender::Tcp(tcp) => {
                let options = match extra {
                    Some(Extra::Tcp(options)) => Some(options),
                    _ => None,
                };
                tcp.on_ack_out_of_line(now, packet, options, out);
                tcp.next_wake()
            }
            other => other.on_report(now, packet, extra, out),
        }
    }

    /// [`Sender::on_ack`] for machines other than TCP. TCP is tested first, because a jump table takes five times as
    /// long as a comparison.
    #[inline(never)]
    fn on_report(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) -> Time {
        match self {
            Sender::Quic(quic) => {
                quic.on_packet(now, packet, extra, out);
                quic.next_wake()
            }
            Sender::Foreign(foreign) => foreign.next_wake(),
            Sender::Rtp(rtp) => {
                rtp.on_rtcp(now, packet, extra, out);
                rtp.next_wake()
            }
            Sender::Acks(acks) => {
                acks.on_ack(now, packet, extra);
                acks.next_wake()
            }
            Sender::Tfrc(tfrc) => {
                tfrc.on_report(now, packet, extra, out);
                tfrc.next_wake()
            }
            Sender::Multfrc(multfrc) => {
                multfrc.on_report(now, packet, extra, out);
                multfrc.next_wake()
            }
            Sender::TcpServer(server) => {
                let options = extra.and_then(Extra::tcp);
                server.on_packet(now, packet, options, out);
                server.next_wake()
            }
            Sender::Tcp(_) | Sender::Track(_) | Sender::Udp(_) => Time::NEVER,
        }
    }

    /// The time that [`Sender::next_wake`] returned has arrived; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        match self {
            Sender::Quic(quic) => quic.on_timer(now, out),
            Sender::Foreign(foreign) => foreign.on_timer(now),
            Sender::Rtp(rtp) => rtp.on_timer(now, out),
            Sender::Acks(acks) => acks.on_timer(now, out),
            Sender::Tcp(tcp) => tcp.on_timer(now, out),
            Sender::TcpServer(server) => server.on_timer(now, out),
            Sender::Tfrc(tfrc) => tfrc.on_timer(now, out),
            Sender::Multfrc(multfrc) => multfrc.on_timer(now, out),
            Sender::Track(_) | Sender::Udp(_) => {}
        }
    }

    /// When to call [`Sender::on_timer`]; the time may move later without notice.
    #[inline(always)]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        match self {
            Sender::Tcp(tcp) => tcp.next_wake(), // first, as in `on_ack`
            other => other.next_wake_of_others(),
        }
    }

    #[inline(never)]
    fn next_wake_of_others(&self) -> Time {
        match self {
            Sender::Quic(quic) => quic.next_wake(),
            Sender::Foreign(foreign) => foreign.next_wake(),
            Sender::Rtp(rtp) => rtp.next_wake(),
            Sender::Acks(acks) => acks.next_wake(),
            Sender::Tfrc(tfrc) => tfrc.next_wake(),
            Sender::Multfrc(multfrc) => multfrc.next_wake(),
            Sender::TcpServer(server) => server.next_wake(),
            Sender::Tcp(_) | Sender::Track(_) | Sender::Udp(_) => Time::NEVER,
        }
    }

    /// The target rate for an encoder, in bits a second including all headers; `None` if the controller sets none.
    #[must_use]
    pub fn target(&self) -> Option<Rate> {
        match self {
            Sender::Quic(quic) => quic.target(),
            Sender::Foreign(foreign) => foreign.target(),
            Sender::Rtp(rtp) => rtp.target(),
            Sender::Tfrc(tfrc) => tfrc.target(),
            Sender::Track(track) => track.target(),
            _ => None,
        }
    }

    /// How long the queued data takes to leave at the allowed rate; zero for a machine that carries no encoder.
    #[must_use]
    pub fn queueing(&self) -> Span {
        match self {
            Sender::Quic(quic) => quic.queueing(),
            Sender::Foreign(foreign) => foreign.queueing(),
            Sender::Rtp(rtp) => rtp.queueing(),
            Sender::Tfrc(tfrc) => tfrc.queueing(),
            Sender::Track(track) => track.queueing(),
            _ => Span::ZERO,
        }
    }

    /// Whether everything supplied is done: acknowledged, or, by a machine that never retransmits, sent.
    #[inline]
    #[must_use]
    pub fn acked_all(&self) -> bool {
        match self {
            Sender::Quic(quic) => quic.acked_all(),
            Sender::Foreign(foreign) => foreign.acked_all(),
            Sender::Rtp(rtp) => rtp.acked_all(),
            Sender::Acks(acks) => acks.acked_all(),
            Sender::Tcp(tcp) => tcp.acked_all(),
            Sender::TcpServer(server) => server.answers().acked_all(),
            Sender::Tfrc(tfrc) => tfrc.acked_all(),
            Sender::Multfrc(multfrc) => multfrc.acked_all(),
            Sender::Track(track) => track.acked_all(),
            Sender::Udp(udp) => udp.has_started(),
        }
    }

    /// The number of entries kept for single writes or frames that wait to be sent or acknowledged. Writes that fill
    /// packets need no entry.
    #[must_use]
    pub fn remembered_writes(&self) -> usize {
        match self {
            Sender::Quic(quic) => quic.remembered_writes(),
            Sender::Foreign(foreign) => foreign.remembered_writes(),
            Sender::Rtp(rtp) => rtp.remembered_writes(),
            Sender::Acks(acks) => acks.remembered_writes(),
            Sender::Tcp(tcp) => tcp.remembered_writes(),
            Sender::TcpServer(server) => server.answers().remembered_writes(),
            Sender::Tfrc(tfrc) => tfrc.remembered_writes(),
            Sender::Multfrc(multfrc) => multfrc.remembered_writes(),
            Sender::Track(track) => track.remembered_writes(),
            Sender::Udp(_) => 0,
        }
    }

    /// Counters up to now; call [`Sender::account`] first to complete the integrals.
    #[inline]
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        match self {
            Sender::Quic(quic) => quic.stats(),
            Sender::Foreign(foreign) => foreign.stats(),
            Sender::Rtp(rtp) => rtp.stats(),
            Sender::Acks(acks) => acks.stats(),
            Sender::Tcp(tcp) => tcp.stats(),
            Sender::TcpServer(server) => server.stats(),
            Sender::Tfrc(tfrc) => tfrc.stats(),
            Sender::Multfrc(multfrc) => multfrc.stats(),
            Sender::Track(track) => track.stats(),
            Sender::Udp(udp) => udp.stats(),
        }
    }

    /// Starts a measurement: [`SenderStats::since`] relative to the current counters is then exact, extremes included.
    pub fn begin_measuring(&mut self) {
        let stats = match self {
            Sender::Quic(quic) => quic.stats_mut(),
            Sender::Foreign(foreign) => foreign.stats_mut(),
            Sender::Rtp(rtp) => rtp.stats_mut(),
            Sender::Acks(acks) => acks.stats_mut(),
            Sender::Tcp(tcp) => tcp.stats_mut(),
            Sender::TcpServer(server) => server.stats_mut(),
            Sender::Tfrc(tfrc) => tfrc.stats_mut(),
            Sender::Multfrc(multfrc) => multfrc.stats_mut(),
            Sender::Track(track) => track.stats_mut(),
            Sender::Udp(udp) => udp.stats_mut(),
        };
        stats.begin_measuring();
    }

    /// Advances the integrals in [`Sender::stats`] to `now`.
    pub fn account(&mut self, now: Time) {
        match self {
            Sender::Quic(quic) => quic.account(now),
            Sender::Foreign(foreign) => foreign.account(now),
            Sender::Rtp(rtp) => rtp.account(now),
            Sender::Acks(acks) => acks.account(now),
            Sender::Tcp(tcp) => tcp.account(now),
            Sender::TcpServer(server) => server.account(now),
            Sender::Tfrc(tfrc) => tfrc.account(now),
            Sender::Multfrc(multfrc) => multfrc.account(now),
            Sender::Track(_) | Sender::Udp(_) => {}
        }
    }

    /// The congestion window in packets; `None` for a machine without a window.
    #[must_use]
    pub fn congestion_window(&self) -> Option<f64> {
        match self {
            Sender::Foreign(foreign) => Some(foreign.congestion_window()),
            Sender::Quic(quic) => Some(quic.congestion_window()),
            Sender::Tcp(tcp) => Some(tcp.controller().window()),
            Sender::TcpServer(server) => Some(server.answers().controller().window()),
            _ => None,
        }
    }

    /// Reports to `to` the values to plot.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        match self {
            Sender::Quic(quic) => quic.gauges(to),
            Sender::Foreign(foreign) => foreign.gauges(to),
            Sender::Rtp(rtp) => rtp.gauges(to),
            Sender::Acks(acks) => acks.gauges(to),
            Sender::Tcp(tcp) => tcp.gauges(to),
            Sender::TcpServer(server) => server.answers().gauges(to),
            Sender::Tfrc(tfrc) => tfrc.gauges(to),
            Sender::Multfrc(multfrc) => multfrc.gauges(to),
            Sender::Track(_) | Sender::Udp(_) => {}
        }
    }
}

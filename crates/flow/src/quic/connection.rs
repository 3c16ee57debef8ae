//! One end of a connection: its state, arriving packets, timers. `ack` processes acknowledgements, `loss_detection`
//! declares packets lost, `assemble` builds packets.
//!
//! There is a single packet number space for the handshake and the data. Keys are not modelled.

use super::datagrams::{Datagrams, Part};
use super::ecn::Validation;
use super::handshake::HandshakeState;
use super::incoming::{Grant, Incoming, Object, Violation};
use super::loss_detection::LossDetection;
use super::outgoing::{FIRST_BIDIRECTIONAL, FIRST_UNIDIRECTIONAL, Outgoing};
use super::received::Received;
use super::{Congestion, Handshake, QuicConfig};
use crate::tls::HELLO;
use crate::{ReceiverStats, SenderStats, Transmit};
use paceline_control::TcpController;
use paceline_packet::quic::{Frame, StreamPiece};
use paceline_packet::{Extra, Packet};
use paceline_random as random;
use paceline_units::{Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// The role in the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// It opens the connection: the flow's sender, or the receiver of a flow with requests.
    Client,
    /// It accepts the connection.
    Server,
}

/// The phase of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Not begun.
    Idle,
    /// The handshake is under way.
    Opening,
    /// Data may be sent.
    Established,
    /// The connection is closed.
    Closed,
}

/// The numbers that identify the connection among those of the flow. Both ends number their packets in one packet number
/// space (RFC 9000 section 12.3) that continues over the flow's connections.
#[derive(Debug)]
pub(super) struct NumberSpace {
    /// The number of the connection's first packet, for this end and for the other.
    pub(super) base: u32,
    peer_base: u32,
    /// The first number of the server's packets is unknown, except that it follows the previous connection's.
    peer_base_unknown: bool,
}

/// Timers besides the loss detection timer and the acknowledgement's.
#[derive(Debug)]
pub(super) struct Timers {
    /// When pacing or the host's interface allows the next packet.
    pub(super) resumes: Time,
    /// When the connection times out if nothing arrives.
    idle_at: Time,
    /// A packet has arrived since a sent packet restarted the idle timer.
    pub(super) received_since_restart: bool,
    /// When the next deadline of a stream, a datagram or a waiting frame expires.
    pub(super) next_deadline: Time,
    /// When the deadline of the first frame expires that waits for a stream.
    pub(super) waiting_due: Time,
}

impl Timers {
    /// No timer is set.
    const fn new() -> Timers {
        Timers {
            resumes: Time::NEVER,
            idle_at: Time::NEVER,
            received_since_restart: true,
            next_deadline: Time::NEVER,
            waiting_due: Time::NEVER,
        }
    }
}

/// The end of the connection (RFC 9000 section 10.2).
#[derive(Debug)]
pub(super) struct Closing {
    /// The error of the other end that closes it.
    pub(super) violation: Option<Violation>,
    /// When this end last sent CONNECTION_CLOSE, and whether it must send it again.
    pub(super) close_sent_at: Time,
    pub(super) resend_close: bool,
}

impl Closing {
    const fn new() -> Closing {
        Closing { violation: None, close_sent_at: Time::NEVER, resend_close: false }
    }
}

/// The statistics of a flow, over all its connections.
#[derive(Debug)]
pub(super) struct Statistics {
    /// Of sent packets and of the first track; of received packets.
    pub(super) sent: SenderStats,
    pub(super) received: ReceiverStats,
    /// Of the other tracks: sent, and the bytes received.
    pub(super) led: Vec<SenderStats>,
    pub(super) led_bytes: Vec<u64>,
    /// Streams reset at their deadline.
    pub(super) reset_streams: u64,
    /// Packets that were declared lost and acknowledged later.
    pub(super) spurious: u64,
}

impl Statistics {
    /// Nothing has happened; full packets have `wire` bytes.
    fn new(wire: u16) -> Statistics {
        Statistics {
            sent: SenderStats::new(wire),
            received: ReceiverStats::default(),
            led: Vec::new(),
            led_bytes: Vec::new(),
            reset_streams: 0,
            spurious: 0,
        }
    }
}

/// What each connection's congestion control is made from.
#[derive(Clone, Debug)]
struct Template {
    controller: TcpController,
    stream: random::Stream,
}

impl Template {
    fn congestion(&self, config: &QuicConfig, base: u32) -> Congestion {
        let stream = self.stream.fork(u64::from(base));
        let controller = self.controller.clone();
        Congestion::new(controller, config.profile, config.datagram, config.initial_window(), stream)
    }
}

/// The state of one end.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) end: End,
    /// It is the flow's receiver: its packets take the reverse path.
    pub(super) receives: bool,
    pub(super) config: Arc<QuicConfig>,
    template: Template,
    /// The application has stopped.
    pub(super) stopped: bool,
    pub(super) stats: Statistics,
    pub(super) phase: Phase,
    pub(super) space: NumberSpace,
    pub(super) congestion: Congestion,
    /// The congestion window, not the application, limited sending.
    pub(super) is_cwnd_limited: bool,
    pub(super) loss: LossDetection,
    pub(super) received: Received,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    /// Frames that wait to be sent, other than those of the fields around it.
    pub(super) control: VecDeque<Frame>,
    pub(super) handshake: HandshakeState,
    pub(super) datagrams: Datagrams,
    pub(super) ecn: Validation,
    pub(super) timers: Timers,
    pub(super) closing: Closing,
    grants: Vec<Grant>,
}

impl Connection {
    /// Creates the sender's or the receiver's end of a flow. The end that sends requests opens the connection.
    pub(super) fn new(
        receives: bool,
        config: &QuicConfig,
        controller: TcpController,
        stream: random::Stream,
    ) -> Connection {
        Connection::numbered(receives, Arc::new(config.clone()), Template { controller, stream }, 0, 0)
    }

    /// Creates an end of a connection; its packets are numbered from `base`, the other end's from `peer_base`.
    fn numbered(receives: bool, config: Arc<QuicConfig>, template: Template, base: u32, peer_base: u32) -> Connection {
        let has_requests = config.request.is_some();
        let end = if receives == has_requests { End::Client } else { End::Server };
        let phase = if config.handshake == Handshake::Done { Phase::Established } else { Phase::Idle };
        let congestion = template.congestion(&config, base);
        let first_id = if has_requests { FIRST_BIDIRECTIONAL } else { FIRST_UNIDIRECTIONAL };
        let incoming = Incoming::new(config.receive_window, config.stream_window, config.max_streams);
        // an end that only acknowledges sends no markable packets
        let sends = end == End::Client || has_requests;
        Connection {
            end,
            receives,
            stopped: false,
            stats: Statistics::new(config.wire()),
            phase,
            space: NumberSpace {
                base,
                peer_base,
                peer_base_unknown: base > 0 && end == End::Client && has_requests && phase == Phase::Idle,
            },
            is_cwnd_limited: false,
            loss: LossDetection::new(base, congestion.needs().deliveries),
            congestion,
            received: Received::new(config.first_ack_threshold(), config.max_ack_delay, peer_base),
            outgoing: Outgoing::new(first_id, config.receive_window, config.stream_window, config.max_streams),
            incoming: match end {
                _ if !has_requests => incoming,
                End::Client => incoming.for_client(),
                End::Server => incoming.for_server(),
            },
            control: VecDeque::new(),
            handshake: HandshakeState::new(end, &config),
            datagrams: Datagrams::default(),
            ecn: Validation::new(config.ecn && sends),
            timers: Timers::new(),
            closing: Closing::new(),
            grants: Vec::new(),
            config,
            template,
        }
    }

    /// Begins a new connection of the flow; its packets are numbered from `base`, the other end's from `peer_base`.
    pub(super) fn begin(&mut self, base: u32, peer_base: u32) {
        let next = Connection::numbered(self.receives, self.config.clone(), self.template.clone(), base, peer_base);
        let mut old = core::mem::replace(self, next);
        self.incoming.portions = old.incoming.end();
        self.received.next_ping = old.received.next_ping;
        self.datagrams.next_number = old.datagrams.next_number;
        (self.stopped, self.stats) = (old.stopped, old.stats);
    }

    /// The counters of a track.
    #[inline]
    pub(super) fn sent_of(&mut self, track: u8) -> &mut SenderStats {
        if track == 0 { &mut self.stats.sent } else { &mut self.stats.led[usize::from(track) - 1] }
    }

    /// The counter of a track's bytes delivered to the application.
    #[inline]
    fn bytes_of(&mut self, track: u8) -> &mut u64 {
        if track == 0 { &mut self.stats.received.bytes } else { self.bytes_of_led(usize::from(track) - 1) }
    }

    #[cold]
    fn bytes_of_led(&mut self, place: usize) -> &mut u64 {
        if place >= self.stats.led_bytes.len() {
            self.stats.led_bytes.resize(place + 1, 0);
        }
        &mut self.stats.led_bytes[place]
    }

    /// Opens the connection: the client sends its ClientHello.
    pub(super) fn open(&mut self, now: Time) {
        self.stats.sent.begin(now);
        if self.phase == Phase::Idle && self.end == End::Client {
            self.phase = Phase::Opening;
            self.handshake.crypto.write(HELLO);
        }
        self.alive(now);
    }

    /// Whether application data may be sent.
    #[inline]
    pub(super) fn sends_data(&self) -> bool {
        self.phase == Phase::Established || self.sends_early()
    }

    /// Whether application data is sent before the handshake is complete (0-RTT).
    #[inline]
    pub(super) fn sends_early(&self) -> bool {
        self.phase == Phase::Opening && self.end == End::Client && self.config.handshake == Handshake::ZeroRtt
    }

    /// Whether nothing of this connection has been acknowledged yet.
    #[inline]
    pub(super) fn is_unacked(&self) -> bool {
        self.loss.acked_end == self.space.base
    }

    /// Whether the other end may not know yet that a new connection has replaced the previous one.
    #[inline]
    pub(super) fn is_restart_unconfirmed(&self) -> bool {
        self.space.base > 0 && self.is_unacked() && self.end == End::Client
    }

    /// Restarts the idle timer: a packet arrived, or the first ack-eliciting packet since then was sent (RFC 9000
    /// section 10.1).
    #[inline]
    pub(super) fn alive(&mut self, now: Time) {
        if let Some(timeout) = self.config.idle_timeout {
            let min_timeout = self.loss.rtt.probe_timeout(self.config.max_ack_delay) * 3;
            self.timers.idle_at = now + timeout.max(min_timeout);
        }
    }

    /// The fast path of [`Connection::on_packet`] for stream data in the common case. `false`: nothing was done.
    #[inline(always)]
    pub(super) fn on_data_in_order(&mut self, now: Time, packet: &Packet, piece: &StreamPiece) -> bool {
        let steady = self.phase == Phase::Established
            && self.handshake.unvalidated.is_none()
            && self.config.idle_timeout.is_none();
        if !(steady && self.received.may_be_new(packet.seq)) {
            return false;
        }
        let Some(given) = self.incoming.newest_piece(piece) else { return false };
        self.stats.received.on_received(now, packet.size);
        *self.bytes_of(piece.track) += given;
        if !self.received.note_in_order(now, packet.seq, packet.flags) {
            // its data is new, so the packet is not a duplicate
            self.received.note(now, packet.seq, packet.flags);
            self.received.want(now, packet.seq, packet.flags, false);
            self.stats.received.marks += u64::from(packet.flags.has(paceline_packet::Flags::CE));
        }
        true
    }

    /// The fast path of [`Connection::on_packet`] for a non-ack-eliciting packet with the next number. `false`: nothing
    /// was done.
    #[inline]
    pub(super) fn note_silent_in_order(&mut self, packet: &Packet) -> bool {
        let steady = self.phase == Phase::Established && self.config.idle_timeout.is_none();
        if !(steady && self.received.note_silent_in_order(packet)) {
            return false;
        }
        self.stats.received.on_received(packet.time, packet.size);
        true
    }

    /// Processes a packet of the other end; `extra` is its side record. Returns whether it was used: it belongs to this
    /// connection and is no duplicate.
    pub(super) fn on_packet(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>) -> bool {
        let frames: &[Frame] = match extra {
            Some(Extra::Quic(frames)) => frames,
            _ => &[],
        };
        let last = self.stats.received.last;
        self.stats.received.on_received(now, packet.size);
        let brings = match extra {
            Some(Extra::QuicStream(piece)) => piece.length > 0,
            _ => frames.iter().any(Frame::has_data),
        };
        if !brings {
            self.stats.received.last = last; // acknowledgements and the close do not extend the flow's duration
        }
        self.stats.received.marks += u64::from(packet.flags.has(paceline_packet::Flags::CE));
        if let [Frame::Crypto { connection, .. }, ..] | [Frame::Early { connection, .. }, ..] = *frames
            && self.end == End::Server
            && (connection > self.space.peer_base || self.phase == Phase::Idle)
        {
            self.begin(self.loss.sent_packets.next(), connection);
            if self.phase == Phase::Idle {
                self.phase = Phase::Opening;
            }
        }
        if packet.seq < self.space.peer_base || self.phase == Phase::Idle {
            return false;
        }
        if self.phase == Phase::Closed {
            return self.closes_again(now, frames);
        }
        if self.space.peer_base_unknown {
            // the server's handshake contains its first number; packets before it belong to the previous connection
            let Some(&Frame::Crypto { connection, .. }) = frames.first().filter(|_| packet.seq >= self.space.peer_base)
            else {
                return false;
            };
            if connection < self.space.peer_base {
                return false;
            }
            (self.space.peer_base, self.space.peer_base_unknown) = (connection, false);
            self.received.start_at(connection);
        }
        if !self.received.note(now, packet.seq, packet.flags) {
            self.stats.received.duplicates += 1;
            return false;
        }
        if let Some((received, _)) = &mut self.handshake.unvalidated {
            *received += u64::from(packet.size.saturating_sub(self.config.header));
        }
        self.alive(now);
        self.timers.received_since_restart = true;
        match extra {
            Some(Extra::QuicStream(piece)) => {
                self.received.want(now, packet.seq, packet.flags, false);
                self.on_piece(piece);
            }
            Some(Extra::QuicAck(range)) => {
                self.on_ack(now, range, &[]);
                if self.receives {
                    self.arm(now); // the receiver may have nothing to send
                }
            }
            _ => self.on_frames(now, packet, frames),
        }
        true
    }

    #[inline(never)]
    fn on_frames(&mut self, now: Time, packet: &Packet, frames: &[Frame]) {
        if frames.iter().any(Frame::elicits_ack) {
            let crypto = frames.iter().any(|frame| matches!(frame, Frame::Crypto { .. }));
            self.received.want(now, packet.seq, packet.flags, crypto);
        }
        for frame in frames {
            self.on_frame(now, frame);
        }
    }

    fn on_frame(&mut self, now: Time, frame: &Frame) {
        match *frame {
            Frame::Ack(range, ref more) => {
                self.on_ack(now, &range, more);
                self.arm(now); // this end may have nothing to send
            }
            Frame::Stream(ref piece) => self.on_piece(piece),
            Frame::Crypto { offset, length, .. } => self.on_crypto(u64::from(offset), u64::from(length)),
            Frame::Datagram { length, number, offset, captured, last, key, track } => {
                *self.bytes_of(track) += u64::from(length);
                let part = Part { offset, length, last };
                if let Some(size) = self.datagrams.assembly.part(number, part) {
                    self.incoming.push_datagram(Object { captured, number, size, key, reset: false, track });
                }
            }
            Frame::AckFrequency { threshold, delay } => {
                self.received.set_frequency(threshold, Span::from_micros(u64::from(delay)));
            }
            Frame::MaxData(limit) => self.outgoing.set_max_data(limit),
            Frame::MaxStreamData { stream, limit } => self.outgoing.set_limit(stream, limit),
            Frame::MaxStreams(limit) => self.outgoing.set_max_streams(limit),
            Frame::ResetStream { stream, size } => {
                if let Err(violation) = self.incoming.reset(stream, size, &mut self.grants) {
                    self.violate(violation);
                }
                self.grant();
            }
            Frame::Close { .. } => self.close(),
            Frame::HandshakeDone
            | Frame::DataBlocked(_)
            | Frame::Early { .. }
            | Frame::Padding(_)
            | Frame::Ping
            | Frame::StreamDataBlocked { .. }
            | Frame::StreamsBlocked(_) => {}
        }
    }

    #[inline]
    fn on_piece(&mut self, piece: &StreamPiece) {
        match self.incoming.piece(piece, &mut self.grants) {
            Ok((bytes, again)) => {
                *self.bytes_of(piece.track) += bytes;
                self.stats.received.duplicates += u64::from(again);
            }
            Err(violation) => self.violate(violation),
        }
        if !self.grants.is_empty() {
            self.grant();
        }
    }

    /// Streams were acknowledged completely: if they were answers, the other end may open more.
    #[cold]
    pub(super) fn completed(&mut self) {
        if self.config.request.is_some() && self.end == End::Server {
            self.incoming.on_answer_acked(&mut self.grants);
            self.grant();
        }
    }

    #[cold]
    fn violate(&mut self, violation: Violation) {
        self.closing.violation = Some(violation);
    }

    #[cold]
    fn grant(&mut self) {
        self.control.extend(self.grants.drain(..).map(Grant::frame));
    }

    /// A packet that arrives more than a round trip after the close was sent shows that the other end does not know of
    /// it. Returns whether to send the close again. A real end need not answer for ever (RFC 9000 section 10.2.1), but
    /// its host then does, by a stateless reset (10.3). An end that has sent a close itself gets no more answers
    /// (10.2.2).
    #[cold]
    fn closes_again(&mut self, now: Time, frames: &[Frame]) -> bool {
        if frames.iter().any(|frame| matches!(frame, Frame::Close { .. })) {
            self.closing.close_sent_at = Time::NEVER;
        }
        self.closing.resend_close =
            self.closing.close_sent_at < Time::NEVER && now >= self.closing.close_sent_at + self.loss.rtt.smoothed_rtt;
        self.closing.resend_close
    }

    /// Closes the connection: nothing but the close is sent, and arriving data is ignored.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
        (self.loss.timer, self.loss.loss_time, self.timers.resumes, self.timers.idle_at) =
            (Time::NEVER, Time::NEVER, Time::NEVER, Time::NEVER);
        (self.timers.next_deadline, self.timers.waiting_due) = (Time::NEVER, Time::NEVER);
        self.received.end();
        self.control.clear();
    }

    /// When to call [`Connection::on_timer`].
    #[inline]
    pub(super) fn next_wake(&self) -> Time {
        self.loss
            .timer
            .min(self.received.due())
            .min(self.timers.resumes)
            .min(self.timers.idle_at.min(self.timers.next_deadline))
    }

    /// Handles expired timers; a call too early does nothing.
    pub(super) fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.phase == Phase::Closed {
            return;
        }
        if self.timers.idle_at <= now {
            return self.close();
        }
        if self.timers.next_deadline <= now {
            self.expire(now);
        }
        if self.loss.timer <= now {
            self.stats.sent.advance(now, self.window_packets());
            if self.loss.loss_time <= now {
                self.detect_losses(now);
            } else {
                self.probe();
            }
        }
        self.pump(now, out);
    }

    /// The congestion window in full datagrams.
    #[inline]
    pub(super) fn window_packets(&self) -> f64 {
        self.congestion.window_datagrams()
    }
}

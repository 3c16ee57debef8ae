//! One end of a connection: its state, arriving packets, timers. `ack` processes acknowledgements, `assemble` builds
//! packets.
//!
//! There is a single packet number space for the handshake and the data. Keys are not modelled.

use super::datagrams::{Assembly, Part, Waiting};
use super::ecn::Validation;
use super::handshake::{AMPLIFICATION, CryptoOut};
use super::incoming::{Grant, Incoming, Object, Violation};
use super::outgoing::{FIRST_BIDIRECTIONAL, FIRST_UNIDIRECTIONAL, Outgoing};
use super::ranges::Ranges;
use super::received::Received;
use super::sent::{Carried, SentLog};
use super::{Congestion, Handshake, QuicConfig, Rtt};
use crate::tls::HELLO;
use crate::{ReceiverStats, SenderStats, Transmit};
use paceline_control::TcpController;
use paceline_packet::quic::{Frame, StreamPiece};
use paceline_packet::{Extra, Packet};
use paceline_random as random;
use paceline_units::{Span, Time};
use std::collections::VecDeque;

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

/// A packet that was declared lost.
#[derive(Debug)]
pub(super) struct LostPacket {
    pub(super) number: u32,
    pub(super) sent: Time,
    pub(super) carried: Carried,
    /// It was lost in the last recovery period.
    pub(super) counts: bool,
}

/// The state of one end.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) end: End,
    pub(super) phase: Phase,
    /// It is the flow's receiver: its packets take the reverse path.
    pub(super) receives: bool,
    /// The first number of the server's packets is unknown, except that it follows the previous connection's.
    peer_base_unknown: bool,
    /// The congestion window, not the application, limited sending.
    pub(super) is_cwnd_limited: bool,
    pub(super) config: Box<QuicConfig>,
    pub(super) congestion: Congestion,
    pub(super) rtt: Rtt,
    pub(super) log: SentLog,
    /// Packets recently declared lost; they may still be acknowledged.
    pub(super) lost: Vec<LostPacket>,
    /// One past the largest number acknowledged; `base` before the first.
    pub(super) acked_end: u32,
    /// The number of outstanding packets, all ack-eliciting; when the last one left.
    pub(super) out: u32,
    pub(super) time_of_last_ack_eliciting_packet: Time,
    /// When the next packet is declared lost by time; when the loss detection timer expires.
    pub(super) loss_time: Time,
    pub(super) timer: Time,
    pub(super) pto_count: u32,
    /// The number of packets to send regardless of the window.
    pub(super) probes: u8,
    /// When the first round-trip sample was taken: earlier losses establish no persistent congestion.
    pub(super) first_sample: Time,
    pub(super) received: Received,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    pub(super) control: VecDeque<Frame>,
    pub(super) crypto: CryptoOut,
    pub(super) crypto_in: Ranges,
    pub(super) datagrams: VecDeque<Waiting>,
    pub(super) datagram_number: u32,
    assembly: Assembly,
    pub(super) ecn: Validation,
    /// The number of the connection's first packet, for this end and for the other.
    pub(super) base: u32,
    peer_base: u32,
    /// Bytes received and sent before the other end's address is validated; `None` after that.
    pub(super) unvalidated: Option<(u64, u64)>,
    /// When pacing or the host's interface allows the next packet.
    pub(super) resumes: Time,
    /// When the connection times out if nothing arrives.
    idle_at: Time,
    /// A packet has arrived since a sent packet restarted the idle timer.
    pub(super) received_since_restart: bool,
    /// When to send the next PING, so that the other end acknowledges this end's acknowledgements.
    pub(super) next_ping: Time,
    /// When the next deadline of a stream, a datagram or a waiting frame expires.
    pub(super) next_deadline: Time,
    /// When the deadline of the first frame expires that waits for a stream.
    pub(super) waiting_due: Time,
    pub(super) stopped: bool,
    pub(super) violation: Option<Violation>,
    /// When this end last sent CONNECTION_CLOSE, and whether it must send it again.
    pub(super) close_sent_at: Time,
    pub(super) resend_close: bool,
    /// `stats`: of packets and of the first track; `arrived`: of received packets. Below: of the other tracks, sent and
    /// received.
    pub(super) stats: SenderStats,
    pub(super) arrived: ReceiverStats,
    pub(super) led: Vec<SenderStats>,
    pub(super) led_bytes: Vec<u64>,
    pub(super) reset_streams: u64,
    pub(super) spurious: u64,
    fresh: TcpController,
    stream: random::Stream,
    /// The packets that the current acknowledgement newly acknowledges.
    pub(super) newly: Vec<super::ack::Newly>,
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
        let end = if receives == config.request.is_some() { End::Client } else { End::Server };
        let congestion = Connection::congestion(config, &controller, stream, 0);
        let mut connection = Connection {
            end,
            phase: Phase::Idle,
            receives,
            peer_base_unknown: false,
            is_cwnd_limited: false,
            log: SentLog::default(),
            congestion,
            rtt: Rtt::default(),
            lost: Vec::new(),
            acked_end: 0,
            out: 0,
            time_of_last_ack_eliciting_packet: Time::ZERO,
            loss_time: Time::NEVER,
            timer: Time::NEVER,
            pto_count: 0,
            probes: 0,
            first_sample: Time::NEVER,
            received: Received::new(config.first_ack_threshold(), config.max_ack_delay),
            outgoing: Outgoing::new(0, 0, 0, 0),
            incoming: Incoming::new(0, 0, 0),
            control: VecDeque::new(),
            crypto: CryptoOut::default(),
            crypto_in: Ranges::default(),
            datagrams: VecDeque::new(),
            datagram_number: 0,
            assembly: Assembly::default(),
            ecn: Validation::new(false),
            base: 0,
            peer_base: 0,
            unvalidated: None,
            resumes: Time::NEVER,
            idle_at: Time::NEVER,
            received_since_restart: true,
            next_ping: Time::ZERO,
            next_deadline: Time::NEVER,
            waiting_due: Time::NEVER,
            stopped: false,
            close_sent_at: Time::NEVER,
            resend_close: false,
            violation: None,
            stats: SenderStats::new(config.wire()),
            arrived: ReceiverStats::default(),
            led: Vec::new(),
            led_bytes: Vec::new(),
            reset_streams: 0,
            spurious: 0,
            config: Box::new(config.clone()),
            fresh: controller,
            stream,
            newly: Vec::new(),
            grants: Vec::new(),
        };
        connection.begin(0, 0);
        connection
    }

    fn congestion(config: &QuicConfig, fresh: &TcpController, stream: random::Stream, base: u32) -> Congestion {
        let stream = stream.fork(u64::from(base));
        Congestion::new(fresh.clone(), config.profile, config.datagram, config.initial_window(), stream)
    }

    /// Begins a new connection; its packets are numbered from `base`, the other end's from `peer_base`.
    pub(super) fn begin(&mut self, base: u32, peer_base: u32) {
        let config = &self.config;
        self.phase = if config.handshake == Handshake::Done { Phase::Established } else { Phase::Idle };
        self.is_cwnd_limited = false;
        self.congestion = Connection::congestion(config, &self.fresh, self.stream, base);
        self.rtt = Rtt::default();
        self.log = SentLog::new(base, self.congestion.needs().deliveries);
        self.lost.clear();
        self.acked_end = base;
        self.out = 0;
        (self.loss_time, self.timer) = (Time::NEVER, Time::NEVER);
        (self.pto_count, self.probes) = (0, 0);
        self.first_sample = Time::NEVER;
        self.received = Received::new(config.first_ack_threshold(), config.max_ack_delay);
        self.received.start_at(peer_base);
        let portions = self.incoming.end();
        let first_id = if config.request.is_some() { FIRST_BIDIRECTIONAL } else { FIRST_UNIDIRECTIONAL };
        self.outgoing = Outgoing::new(first_id, config.receive_window, config.stream_window, config.max_streams);
        let incoming = Incoming::new(config.receive_window, config.stream_window, config.max_streams);
        self.incoming = match (config.request, self.end) {
            (None, _) => incoming,
            (Some(_), End::Client) => incoming.for_client(),
            (Some(_), End::Server) => incoming.for_server(),
        };
        self.incoming.portions = portions;
        self.control.clear();
        self.crypto = CryptoOut::default();
        self.crypto_in.clear();
        self.datagrams.clear();
        self.assembly = Assembly::default();
        // an end that only acknowledges sends no markable packets
        let sends = self.end == End::Client || config.request.is_some();
        self.ecn = Validation::new(config.ecn && sends);
        (self.base, self.peer_base) = (base, peer_base);
        let validates = self.end == End::Server && config.handshake != Handshake::Done;
        // a client that resumes a session and sends requests in its first flight presents an address token (RFC 9000
        // section 8.1.3)
        let known = config.request.is_some() && config.handshake == Handshake::ZeroRtt;
        self.unvalidated = validates.then_some((if known { u64::MAX / (2 * AMPLIFICATION) } else { 0 }, 0));
        self.peer_base_unknown =
            base > 0 && self.end == End::Client && config.request.is_some() && self.phase == Phase::Idle;
        self.resumes = Time::NEVER;
        (self.idle_at, self.received_since_restart) = (Time::NEVER, true);
        (self.next_deadline, self.waiting_due) = (Time::NEVER, Time::NEVER);
        self.violation = None;
        (self.close_sent_at, self.resend_close) = (Time::NEVER, false);
    }

    /// The counters of a track.
    #[inline]
    pub(super) fn sent_of(&mut self, track: u8) -> &mut SenderStats {
        if track == 0 { &mut self.stats } else { &mut self.led[usize::from(track) - 1] }
    }

    /// The counter of a track's bytes delivered to the application.
    #[inline]
    fn bytes_of(&mut self, track: u8) -> &mut u64 {
        if track == 0 { &mut self.arrived.bytes } else { self.bytes_of_led(usize::from(track) - 1) }
    }

    #[cold]
    fn bytes_of_led(&mut self, place: usize) -> &mut u64 {
        if place >= self.led_bytes.len() {
            self.led_bytes.resize(place + 1, 0);
        }
        &mut self.led_bytes[place]
    }

    /// Opens the connection: the client sends its ClientHello.
    pub(super) fn open(&mut self, now: Time) {
        self.stats.begin(now);
        if self.phase == Phase::Idle && self.end == End::Client {
            self.phase = Phase::Opening;
            self.crypto.write(HELLO);
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
        self.acked_end == self.base
    }

    /// Whether the other end may not know yet that a new connection has replaced the previous one.
    #[inline]
    pub(super) fn is_restart_unconfirmed(&self) -> bool {
        self.base > 0 && self.is_unacked() && self.end == End::Client
    }

    /// Restarts the idle timer: a packet arrived, or the first ack-eliciting packet since then was sent (RFC 9000
    /// section 10.1).
    #[inline]
    pub(super) fn alive(&mut self, now: Time) {
        if let Some(timeout) = self.config.idle_timeout {
            let min_timeout = self.rtt.probe_timeout(self.config.max_ack_delay) * 3;
            self.idle_at = now + timeout.max(min_timeout);
        }
    }

    /// The fast path of [`Connection::on_packet`] for stream data in the common case. `false`: nothing was done.
    #[inline(always)]
    pub(super) fn on_data_in_order(&mut self, now: Time, packet: &Packet, piece: &StreamPiece) -> bool {
        let steady =
            self.phase == Phase::Established && self.unvalidated.is_none() && self.config.idle_timeout.is_none();
        if !(steady && self.received.may_be_new(packet.seq)) {
            return false;
        }
        let Some(given) = self.incoming.newest_piece(piece) else { return false };
        self.arrived.on_received(now, packet.size);
        *self.bytes_of(piece.track) += given;
        if !self.received.note_in_order(now, packet.seq, packet.flags) {
            // its data is new, so the packet is not a duplicate
            self.received.note(now, packet.seq, packet.flags);
            self.received.want(now, packet.seq, packet.flags, false);
            self.arrived.marks += u64::from(packet.flags.has(paceline_packet::Flags::CE));
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
        self.arrived.on_received(packet.time, packet.size);
        true
    }

    /// Processes a packet of the other end; `extra` is its side record. Returns whether it was used: it belongs to this
    /// connection and is no duplicate.
    pub(super) fn on_packet(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>) -> bool {
        let frames: &[Frame] = match extra {
            Some(Extra::Quic(frames)) => frames,
            _ => &[],
        };
        let last = self.arrived.last;
        self.arrived.on_received(now, packet.size);
        let brings = match extra {
            Some(Extra::QuicStream(piece)) => piece.length > 0,
            _ => frames.iter().any(Frame::has_data),
        };
        if !brings {
            self.arrived.last = last; // acknowledgements and the close do not extend the flow's duration
        }
        self.arrived.marks += u64::from(packet.flags.has(paceline_packet::Flags::CE));
        if let [Frame::Crypto { connection, .. }, ..] | [Frame::Early { connection, .. }, ..] = *frames
            && self.end == End::Server
            && (connection > self.peer_base || self.phase == Phase::Idle)
        {
            self.begin(self.log.next(), connection);
            if self.phase == Phase::Idle {
                self.phase = Phase::Opening;
            }
        }
        if packet.seq < self.peer_base || self.phase == Phase::Idle {
            return false;
        }
        if self.phase == Phase::Closed {
            return self.closes_again(now, frames);
        }
        if self.peer_base_unknown {
            // the server's handshake contains its first number; packets before it belong to the previous connection
            let Some(&Frame::Crypto { connection, .. }) = frames.first().filter(|_| packet.seq >= self.peer_base)
            else {
                return false;
            };
            if connection < self.peer_base {
                return false;
            }
            (self.peer_base, self.peer_base_unknown) = (connection, false);
            self.received.start_at(connection);
        }
        if !self.received.note(now, packet.seq, packet.flags) {
            self.arrived.duplicates += 1;
            return false;
        }
        if let Some((received, _)) = &mut self.unvalidated {
            *received += u64::from(packet.size.saturating_sub(self.config.header));
        }
        self.alive(now);
        self.received_since_restart = true;
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
                if let Some(size) = self.assembly.part(number, part) {
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
                self.arrived.duplicates += u64::from(again);
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
        self.violation = Some(violation);
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
            self.close_sent_at = Time::NEVER;
        }
        self.resend_close = self.close_sent_at < Time::NEVER && now >= self.close_sent_at + self.rtt.smoothed_rtt;
        self.resend_close
    }

    /// Closes the connection: nothing but the close is sent, and arriving data is ignored.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
        (self.timer, self.loss_time, self.resumes, self.idle_at) = (Time::NEVER, Time::NEVER, Time::NEVER, Time::NEVER);
        (self.next_deadline, self.waiting_due) = (Time::NEVER, Time::NEVER);
        self.received.end();
        self.control.clear();
    }

    /// When to call [`Connection::on_timer`].
    #[inline]
    pub(super) fn next_wake(&self) -> Time {
        self.timer.min(self.received.due()).min(self.resumes).min(self.idle_at.min(self.next_deadline))
    }

    /// Handles expired timers; a call too early does nothing.
    pub(super) fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.phase == Phase::Closed {
            return;
        }
        if self.idle_at <= now {
            return self.close();
        }
        if self.next_deadline <= now {
            self.expire(now);
        }
        if self.timer <= now {
            self.stats.advance(now, self.window_packets());
            if self.loss_time <= now {
                self.detect_losses(now);
            } else {
                self.probe();
            }
        }
        self.pump(now, out);
    }

    /// Handles a probe timeout (RFC 9002 section 6.2.4): sends two packets, with new data or else with the oldest
    /// outstanding data.
    #[cold]
    fn probe(&mut self) {
        self.pto_count += 1;
        self.stats.timeouts += 1;
        if self.pto_count == 1 {
            self.stats.first_timeouts += 1;
            self.stats.first_timeout_sum += self.rtt.probe_timeout(self.config.max_ack_delay);
        }
        self.probes = if self.out == 0 { 1 } else { 2 };
        let waits = self.sends_data() && (self.outgoing.rank().is_some() || !self.datagrams.is_empty());
        // before anything is acknowledged, the oldest data is the handshake's, without which the other end can process
        // nothing (section 6.2.1: probes for it come first)
        if !waits || self.is_unacked() {
            self.send_oldest_again(2);
        }
        if self.is_unacked() && self.pto_count >= 3 {
            self.ecn.all_lost();
        }
    }

    /// Sets the timer for losses and probes (SetLossDetectionTimer). If a new sample has shortened the probe timeout so
    /// that it has passed, it expires now, not in the past.
    #[inline]
    pub(super) fn arm(&mut self, now: Time) {
        self.timer = if self.phase == Phase::Closed {
            Time::NEVER
        } else if self.loss_time < Time::NEVER {
            self.loss_time
        } else if self.unvalidated.is_some() && self.is_amplifying(self.largest()) {
            Time::NEVER // nothing may be sent before more arrives (RFC 9002 section 6.2.2.1)
        } else if self.out > 0 || self.end == End::Client && self.phase == Phase::Opening {
            let delay = if self.phase == Phase::Established { self.config.max_ack_delay } else { Span::ZERO };
            now.max(
                self.time_of_last_ack_eliciting_packet + self.rtt.probe_timeout(delay) * (1 << self.pto_count.min(20)),
            )
        } else {
            Time::NEVER
        };
    }

    /// The congestion window in full datagrams.
    #[inline]
    pub(super) fn window_packets(&self) -> f64 {
        self.congestion.window_datagrams()
    }
}

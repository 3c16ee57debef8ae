//! One end of a connection: what it knows, what comes, what time does. `ack` has what acknowledgements do, `assemble` how packets
//! are made.
//!
//! Packet numbers are in one space: those of the handshake are not told from the others, and keys are not there.

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

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// It opens the connection: the flow's sender, or the receiver of one with requests.
    Opener,
    /// It answers.
    Answerer,
}

/// How far the connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Not begun.
    Idle,
    /// The handshake is under way.
    Opening,
    /// Data may be sent.
    Established,
    /// It is over.
    Closed,
}

/// A packet that was taken for lost.
#[derive(Debug)]
pub(super) struct LostPacket {
    pub(super) number: u32,
    pub(super) sent: Time,
    pub(super) carried: Carried,
    /// In the last recovery period.
    pub(super) counts: bool,
}

/// The state of one end.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) end: End,
    pub(super) phase: Phase,
    /// It is the flow's receiver: its packets go back.
    pub(super) receives: bool,
    /// The answerer's numbers are not known yet, beyond those of the connection before.
    peer_base_unknown: bool,
    /// The window, not the application, was what limited sending.
    pub(super) limited: bool,
    pub(super) config: Box<QuicConfig>,
    pub(super) congestion: Congestion,
    pub(super) rtt: Rtt,
    pub(super) log: SentLog,
    /// What was taken for lost not long ago: it may come after all.
    pub(super) lost: Vec<LostPacket>,
    /// One past the greatest number acknowledged; `base` before there is one.
    pub(super) acked_end: u32,
    /// Packets that are out, all of which want an acknowledgement; when the last of them left.
    pub(super) out: u32,
    pub(super) time_of_last_ack_eliciting_packet: Time,
    /// When the next packet is taken for lost by time; when the other end is asked for an acknowledgement.
    pub(super) loss_time: Time,
    pub(super) timer: Time,
    pub(super) pto_count: u32,
    /// So many packets leave whatever the window says.
    pub(super) probes: u8,
    /// When there was a first round trip: losses before it are no persistent congestion.
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
    /// The first packet of the connection, of either end.
    pub(super) base: u32,
    peer_base: u32,
    /// What came and left before the other end's address was validated; `None` once it is.
    pub(super) unvalidated: Option<(u64, u64)>,
    /// When pacing, or the host's interface, lets the next packet leave.
    pub(super) resumes: Time,
    /// When the connection ends if nothing comes.
    idle_at: Time,
    /// Something has come since the idle timer began anew with what left.
    pub(super) received_since_restart: bool,
    /// When the other end is next asked to say that it has seen acknowledgements.
    pub(super) next_ping: Time,
    /// When the next stream is reset.
    pub(super) next_deadline: Time,
    /// When the first frame is too old that waits for a stream.
    pub(super) waiting_due: Time,
    pub(super) stopped: bool,
    pub(super) violation: Option<Violation>,
    /// When this end last said that it is over, and whether the other end has not heard it.
    pub(super) close_sent_at: Time,
    pub(super) unheard_close: bool,
    /// Of packets, and of what the first track writes; the same of what the others write, and what has come of them.
    pub(super) stats: SenderStats,
    pub(super) arrived: ReceiverStats,
    pub(super) led: Vec<SenderStats>,
    pub(super) led_bytes: Vec<u64>,
    pub(super) reset_streams: u64,
    pub(super) spurious: u64,
    fresh: TcpController,
    stream: random::Stream,
    /// What the acknowledgement that is being read tells of for the first time.
    pub(super) newly: Vec<super::ack::Newly>,
    grants: Vec<Grant>,
}

impl Connection {
    /// The sender's or the receiver's end of a flow. Who asks opens the connection.
    pub(super) fn new(
        receives: bool,
        config: &QuicConfig,
        controller: TcpController,
        stream: random::Stream,
    ) -> Connection {
        let end = if receives == config.request.is_some() { End::Opener } else { End::Answerer };
        let congestion = Connection::congestion(config, &controller, stream, 0);
        let mut connection = Connection {
            end,
            phase: Phase::Idle,
            receives,
            peer_base_unknown: false,
            limited: false,
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
            unheard_close: false,
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

    /// A fresh connection, whose packets are numbered from `base` on, the other end's from `peer_base`.
    pub(super) fn begin(&mut self, base: u32, peer_base: u32) {
        let config = &self.config;
        self.phase = if config.handshake == Handshake::Done { Phase::Established } else { Phase::Idle };
        self.limited = false;
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
            (Some(_), End::Opener) => incoming.asking(),
            (Some(_), End::Answerer) => incoming.answering(),
        };
        self.incoming.portions = portions;
        self.control.clear();
        self.crypto = CryptoOut::default();
        self.crypto_in.clear();
        self.datagrams.clear();
        self.assembly = Assembly::default();
        // an end that only acknowledges has nothing that could be marked
        let sends = self.end == End::Opener || config.request.is_some();
        self.ecn = Validation::new(config.ecn && sends);
        (self.base, self.peer_base) = (base, peer_base);
        let validates = self.end == End::Answerer && config.handshake != Handshake::Done;
        // of a client that resumes a session and asks in its first flight a token tells where it is (RFC 9000 section 8.1.3)
        let known = config.request.is_some() && config.handshake == Handshake::ZeroRtt;
        self.unvalidated = validates.then_some((if known { u64::MAX / (2 * AMPLIFICATION) } else { 0 }, 0));
        self.peer_base_unknown =
            base > 0 && self.end == End::Opener && config.request.is_some() && self.phase == Phase::Idle;
        self.resumes = Time::NEVER;
        (self.idle_at, self.received_since_restart) = (Time::NEVER, true);
        (self.next_deadline, self.waiting_due) = (Time::NEVER, Time::NEVER);
        self.violation = None;
        (self.close_sent_at, self.unheard_close) = (Time::NEVER, false);
    }

    /// The counts of a track.
    #[inline]
    pub(super) fn sent_of(&mut self, track: u8) -> &mut SenderStats {
        if track == 0 { &mut self.stats } else { &mut self.led[usize::from(track) - 1] }
    }

    /// Bytes that the application has of a track.
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

    /// The opener says hello.
    pub(super) fn open(&mut self, now: Time) {
        self.stats.begin(now);
        if self.phase == Phase::Idle && self.end == End::Opener {
            self.phase = Phase::Opening;
            self.crypto.write(HELLO);
        }
        self.alive(now);
    }

    /// Whether data may be sent.
    #[inline]
    pub(super) fn sends_data(&self) -> bool {
        self.phase == Phase::Established || self.sends_early()
    }

    /// Whether they are sent before the handshake is done.
    #[inline]
    pub(super) fn sends_early(&self) -> bool {
        self.phase == Phase::Opening && self.end == End::Opener && self.config.handshake == Handshake::ZeroRtt
    }

    /// Whether nothing of the connection has been acknowledged.
    #[inline]
    pub(super) fn is_unacked(&self) -> bool {
        self.acked_end == self.base
    }

    /// Whether the other end may not know yet that this is another connection than the one before.
    #[inline]
    pub(super) fn is_unheard(&self) -> bool {
        self.base > 0 && self.is_unacked() && self.end == End::Opener
    }

    /// Something came, or is the first since then that left to be acknowledged: the idle timer begins anew (RFC 9000 section 10.1).
    #[inline]
    pub(super) fn alive(&mut self, now: Time) {
        if let Some(timeout) = self.config.idle_timeout {
            let min_timeout = self.rtt.probe_timeout(self.config.max_ack_delay) * 3;
            self.idle_at = now + timeout.max(min_timeout);
        }
    }

    /// The fast path of [`Connection::on_packet`]: data of a stream, and nothing out of the ordinary. `false`: nothing has been done.
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
            // its data are new: so is it
            self.received.note(now, packet.seq, packet.flags);
            self.received.want(now, packet.seq, packet.flags, false);
            self.arrived.marks += u64::from(packet.flags.has(paceline_packet::Flags::CE));
        }
        true
    }

    /// The fast path of [`Connection::on_packet`] for a packet that wants no acknowledgement, the next of all. `false`: nothing has
    /// been done.
    #[inline]
    pub(super) fn note_silent_in_order(&mut self, packet: &Packet) -> bool {
        let steady = self.phase == Phase::Established && self.config.idle_timeout.is_none();
        if !(steady && self.received.note_silent_in_order(packet)) {
            return false;
        }
        self.arrived.on_received(packet.time, packet.size);
        true
    }

    /// A packet of the other end has come; `extra` is its side record. Gives whether it is of use: not of another connection, and
    /// not a copy.
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
            self.arrived.last = last; // a flow is not over later for its acknowledgements and its end
        }
        self.arrived.marks += u64::from(packet.flags.has(paceline_packet::Flags::CE));
        if let [Frame::Crypto { connection, .. }, ..] | [Frame::Early { connection, .. }, ..] = *frames
            && self.end == End::Answerer
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
            // the answerer's handshake says where its numbers begin; what comes before it is of the connection before
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
                    self.arm(now); // it may have nothing to send
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
                self.arm(now); // it may have nothing to send
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

    /// Streams were acknowledged to their end: where they were answers, others may be opened.
    #[cold]
    pub(super) fn completed(&mut self) {
        if self.config.request.is_some() && self.end == End::Answerer {
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

    /// What comes after the end tells that the other end does not know of it, if it left a round trip after that was said: gives whether
    /// it is to be told again. A real end does not answer for ever (RFC 9000 section 10.2.1), but then its host does, by a stateless
    /// reset (10.3); who has said the same is answered no more (10.2.2).
    #[cold]
    fn closes_again(&mut self, now: Time, frames: &[Frame]) -> bool {
        if frames.iter().any(|frame| matches!(frame, Frame::Close { .. })) {
            self.close_sent_at = Time::NEVER;
        }
        self.unheard_close = self.close_sent_at < Time::NEVER && now >= self.close_sent_at + self.rtt.smoothed_rtt;
        self.unheard_close
    }

    /// It is over: nothing is sent or taken any more, but that it is.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
        (self.timer, self.loss_time, self.resumes, self.idle_at) = (Time::NEVER, Time::NEVER, Time::NEVER, Time::NEVER);
        (self.next_deadline, self.waiting_due) = (Time::NEVER, Time::NEVER);
        self.received.end();
        self.control.clear();
    }

    /// When [`Connection::on_timer`] is needed.
    #[inline]
    pub(super) fn next_wake(&self) -> Time {
        self.timer.min(self.received.due()).min(self.resumes).min(self.idle_at.min(self.next_deadline))
    }

    /// The time has come, or an earlier one.
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

    /// The probe timer has expired (RFC 9002 section 6.2.4): two packets leave, with new data or else what is oldest.
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
        // what is oldest of a connection of which nothing was acknowledged has the handshake, without which nothing else is read
        // (section 6.2.1: its probes come first)
        if !waits || self.is_unacked() {
            self.send_oldest_again(2);
        }
        if self.is_unacked() && self.pto_count >= 3 {
            self.ecn.all_lost();
        }
    }

    /// Sets the timer of losses and probes (SetLossDetectionTimer). A probe timeout that a new round trip made shorter may be over by
    /// now: it is due now, not before what has come since.
    #[inline]
    pub(super) fn arm(&mut self, now: Time) {
        self.timer = if self.phase == Phase::Closed {
            Time::NEVER
        } else if self.loss_time < Time::NEVER {
            self.loss_time
        } else if self.unvalidated.is_some() && self.is_amplifying(self.largest()) {
            Time::NEVER // nothing may leave before something comes (RFC 9002 section 6.2.2.1)
        } else if self.out > 0 || self.end == End::Opener && self.phase == Phase::Opening {
            let delay = if self.phase == Phase::Established { self.config.max_ack_delay } else { Span::ZERO };
            now.max(
                self.time_of_last_ack_eliciting_packet + self.rtt.probe_timeout(delay) * (1 << self.pto_count.min(20)),
            )
        } else {
            Time::NEVER
        };
    }

    /// The window in full datagrams.
    #[inline]
    pub(super) fn window_packets(&self) -> f64 {
        self.congestion.window_datagrams()
    }
}

//! Outgoing packets: when one may be sent, and its contents.

use super::connection::{Connection, End, Phase};
use super::datagrams::Waiting;
use super::incoming::Violation;
use super::outgoing::Offer;
use super::sent::Carried;
use crate::{Segment, Transmit};
use paceline_packet::quic::{AckRange, Frame, INITIAL_DATAGRAM, LONG_HEADER, StreamPiece, short_header, varint};
use paceline_packet::{Extra, Flags, Stamp};
use paceline_units::{Span, Time};

/// Minimum bytes left in a packet that are worth another stream frame.
const WORTHWHILE: u16 = 32;

/// Upper bound in bytes of an acknowledgement before the other end's address is validated.
const LONGEST_ACK: u16 = 200;

/// The contents of a packet.
struct Contents {
    frames: Box<[Frame]>,
    /// UDP payload.
    bytes: u16,
    ack_eliciting: bool,
    /// It carries data that was sent before.
    again: bool,
}

impl Connection {
    /// Sends all packets that may be sent.
    pub(super) fn pump(&mut self, now: Time, out: &mut impl Transmit) {
        self.timers.resumes = Time::NEVER;
        if self.is_plain() {
            self.pump_stream(now, out);
        } else if matches!(self.phase, Phase::Idle | Phase::Closed) {
            if core::mem::take(&mut self.closing.resend_close) {
                self.say_close(now, out);
            }
            return;
        } else {
            self.pump_any(now, out);
        }
        self.arm(now);
    }

    /// Whether only stream data is to be sent.
    #[inline]
    fn is_plain(&self) -> bool {
        let quiet = !self.received.is_wanted() && self.control.is_empty() && self.datagrams.waiting.is_empty();
        quiet
            && self.loss.probes == 0
            && !self.is_restart_unconfirmed()
            && self.is_steady()
            && self.closing.violation.is_none()
            && !self.handshake.crypto.is_ready()
    }

    /// Whether the handshake is complete and the connection is not about to end.
    #[inline]
    fn is_steady(&self) -> bool {
        self.phase == Phase::Established && self.handshake.unvalidated.is_none() && !self.stopped
    }

    /// Sends stream data only.
    #[inline]
    fn pump_stream(&mut self, now: Time, out: &mut impl Transmit) {
        let datagram = self.config.datagram;
        while self.outgoing.is_ready() {
            if !self.has_room(now, out) {
                return;
            }
            let header = short_header(self.unacknowledged());
            if let Some(piece) = self.outgoing.take_full(datagram - header) {
                self.emit_piece(now, &piece, datagram, false, out);
            } else if !self.send_pieces(now, header, out) {
                break;
            }
        }
        self.note_app_limited();
    }

    /// Sends a packet with the next stream data; `false`: there is none that may be sent.
    #[inline(never)]
    fn send_pieces(&mut self, now: Time, header: u16, out: &mut impl Transmit) -> bool {
        let datagram = self.config.datagram;
        let Some(Offer { piece, again, size }) = self.outgoing.take(datagram - header) else { return false };
        let bytes = header + size;
        if datagram - bytes < WORTHWHILE || !self.outgoing.is_ready() {
            self.emit_piece(now, &piece, bytes, again, out);
        } else {
            let made = self.fill(header, vec![Frame::Stream(piece)], again);
            self.emit(now, made.frames, made.bytes, made.again, out);
        }
        true
    }

    /// Sends packets with any contents.
    #[inline(never)]
    fn pump_any(&mut self, now: Time, out: &mut impl Transmit) {
        loop {
            let waits = self.has_frames();
            if !waits && self.loss.probes == 0 {
                self.note_app_limited();
                break;
            }
            if self.is_amplifying(self.largest()) || self.loss.probes == 0 && !self.has_room(now, out) {
                break;
            }
            if !self.send(now, out) {
                self.note_app_limited();
                break;
            }
        }
        if self.received.due() <= now {
            if self.is_amplifying(LONGEST_ACK) {
                self.received.end(); // the other end's next packet allows it
            } else {
                self.send_ack(now, out);
            }
        }
        let settled = || {
            self.stopped && self.loss.ack_eliciting_in_flight == 0 && self.outgoing.is_settled() && !self.has_frames()
        };
        if self.closing.violation.is_some() || settled() {
            self.say_close(now, out);
        }
    }

    /// Whether any ack-eliciting frame waits.
    #[inline]
    pub(super) fn has_frames(&self) -> bool {
        self.sends_data() && (self.outgoing.is_ready() || !self.datagrams.waiting.is_empty())
            || !self.control.is_empty()
            || self.handshake.crypto.is_ready()
    }

    /// Whether window, pacing and the host's interface allow a packet; if not, sets when to try again.
    #[inline]
    fn has_room(&mut self, now: Time, out: &impl Transmit) -> bool {
        if self.congestion.in_flight() + u64::from(self.config.datagram) > self.congestion.window() {
            self.is_cwnd_limited = true;
            return false;
        }
        let due = self.congestion.due(now);
        if due > now {
            self.is_cwnd_limited = self.would_fill();
            self.timers.resumes = due;
            return false;
        }
        if let Some(until) = out.full_until() {
            self.timers.resumes = until;
            return false;
        }
        true
    }

    /// Whether the packets that pacing holds back would fill the window (RFC 9002 section 7.8).
    #[inline(never)]
    fn would_fill(&self) -> bool {
        let (window, in_flight) = (self.congestion.window(), self.congestion.in_flight());
        let waiting: u64 = self.datagrams.waiting.iter().map(|waiting| waiting.left).sum();
        let short = (window + 1).saturating_sub(in_flight + waiting + u64::from(self.config.datagram));
        self.outgoing.offers(short)
    }

    /// Nothing is left to send: records whether the application, and not the window, is the limit.
    #[inline]
    fn note_app_limited(&mut self) {
        let room = self.congestion.window().saturating_sub(self.congestion.in_flight());
        if room > u64::from(self.config.datagram) {
            self.is_cwnd_limited = false;
            self.congestion.on_app_limited();
        }
    }

    /// Sends an ack-eliciting packet; `false`: there was nothing for one.
    fn send(&mut self, now: Time, out: &mut impl Transmit) -> bool {
        let made = self.assemble(now, short_header(self.unacknowledged()));
        if !made.ack_eliciting {
            // limits allow no data, but a pending acknowledgement is sent
            self.leave_unwatched(now, made, out);
            return false;
        }
        self.emit(now, made.frames, made.bytes, made.again, out);
        true
    }

    /// Assembles a packet of any waiting frames.
    #[inline(never)]
    fn assemble(&mut self, now: Time, header: u16) -> Contents {
        let mut frames = Vec::new();
        let mut header = header;
        let datagram = self.largest();
        if self.sends_early() {
            frames.push(Frame::Early { connection: self.space.base, zero_rtt: true });
        } else if self.is_restart_unconfirmed() && self.phase == Phase::Established {
            frames.push(Frame::Early { connection: self.space.base, zero_rtt: false });
        }
        if self.received.is_wanted()
            && let Some(range) = self.received.take(now)
        {
            frames.push(Frame::Ack(range, self.received.more()));
        }
        let mut again = false;
        if self.handshake.crypto.is_ready() {
            header = LONG_HEADER;
            let used = header + frames.iter().map(Frame::size).sum::<u16>();
            let max = datagram.saturating_sub(used + 1 + 2 + 2);
            if let Some((run, was_sent)) = self.handshake.crypto.take(u64::from(max)) {
                again = was_sent;
                let length = (run.end - run.start) as u16;
                // first, so that the other end can assign the packet to its connection at once
                frames.insert(0, Frame::Crypto { connection: self.space.base, offset: run.start as u32, length });
            }
        }
        let used = |frames: &[Frame]| header + frames.iter().map(Frame::size).sum::<u16>();
        while let Some(size) = self.control.front().map(Frame::size) {
            if used(&frames) + size > datagram {
                break;
            }
            frames.extend(self.control.pop_front());
        }
        self.fill(header, frames, again)
    }

    /// Adds datagrams that fit into `room` and have no lower priority than the streams; returns the bytes that they
    /// take. A datagram larger than a packet is split (fragmentation is left to the application: RFC 9221 section 5).
    fn add_datagrams(&mut self, frames: &mut Vec<Frame>, room: u16) -> u16 {
        let first = self.outgoing.rank().unwrap_or(u8::MAX);
        let mut taken = 0;
        while let Some(waiting) = self.datagrams.waiting.front_mut().filter(|waiting| waiting.rank <= first) {
            let room = room - taken;
            let max = room.saturating_sub(1 + 2);
            let length = waiting.left.min(u64::from(max)) as u16;
            // a datagram that fits into a packet is not split to fill up another one
            let whole = u64::from(self.config.datagram - LONG_HEADER);
            if length == 0 || u64::from(length) < waiting.left && waiting.left <= whole && room < whole as u16 {
                break;
            }
            waiting.left -= u64::from(length);
            let last = waiting.left == 0;
            let Waiting { captured, key, offset, number, track, .. } = *waiting;
            waiting.offset += u32::from(length);
            frames.push(Frame::Datagram { length, number, offset, captured, last, key, track });
            taken += 1 + varint(u64::from(length)) + length;
            if last {
                self.datagrams.waiting.pop_front();
                self.timers.next_deadline = self.deadline();
            }
        }
        taken
    }

    /// Fills the rest of the packet with datagrams and stream data; a probe without data gets a PING.
    fn fill(&mut self, header: u16, mut frames: Vec<Frame>, mut again: bool) -> Contents {
        let mut bytes = header + frames.iter().map(Frame::size).sum::<u16>();
        if self.sends_data() {
            loop {
                if !self.datagrams.waiting.is_empty() {
                    let room = self.config.datagram.saturating_sub(bytes);
                    bytes += self.add_datagrams(&mut frames, room);
                }
                // each stream frame has a length field of two bytes
                let room = self.config.datagram.checked_sub(bytes + 2).filter(|&room| room >= WORTHWHILE);
                let Some(room) = room else { break };
                let Some(offer) = self.outgoing.take(room) else { break };
                again |= offer.again;
                let frame = Frame::Stream(offer.piece);
                bytes += frame.size();
                frames.push(frame);
            }
        }
        let mut eliciting = frames.iter().any(Frame::elicits_ack);
        if !eliciting && self.loss.probes > 0 {
            frames.push(Frame::Ping);
            bytes += 1;
            eliciting = true;
        }
        let answers = self.end == End::Server && matches!(frames.first(), Some(Frame::Crypto { .. }));
        if (answers || self.fills_up()) && bytes < INITIAL_DATAGRAM {
            frames.push(Frame::Padding(INITIAL_DATAGRAM - bytes));
            bytes = INITIAL_DATAGRAM;
        }
        Contents { frames: frames.into_boxed_slice(), bytes, ack_eliciting: eliciting, again }
    }

    /// Sends a packet with only an acknowledgement. If there are holes, it adds a PING once per round trip: when that
    /// is acknowledged, the holes need not be reported again (RFC 9000 section 13.2.4).
    pub(super) fn send_ack(&mut self, now: Time, out: &mut impl Transmit) {
        let Some(range) = self.received.take(now) else { return };
        self.stats.received.acks += 1;
        if self.received.has_holes() || self.fills_up() {
            return self.send_any_ack(now, range, out);
        }
        let size = short_header(self.unacknowledged()) + range.size(&[]);
        self.leave_forgotten(now, size, Extra::QuicAck(range), out);
    }

    /// [`Connection::send_ack`] when there are holes, or the packet must be padded.
    #[inline(never)]
    fn send_any_ack(&mut self, now: Time, range: AckRange, out: &mut impl Transmit) {
        let more = if self.received.has_more() { self.received.more() } else { Box::default() };
        let size = short_header(self.unacknowledged()) + range.size(&more);
        let pings =
            self.received.has_holes() && now >= self.received.next_ping && self.loss.ack_eliciting_in_flight == 0;
        if pings {
            self.received.next_ping = now + self.loss.rtt.smoothed_rtt.max(Span::from_millis(1));
            let frames: Box<[Frame]> = Box::new([Frame::Ack(range, more), Frame::Ping]);
            self.emit(now, frames, size + 1, false, out);
            return self.arm(now);
        }
        if self.fills_up() && size < INITIAL_DATAGRAM {
            let padding = Frame::Padding(INITIAL_DATAGRAM - size);
            let frames: Box<[Frame]> = Box::new([Frame::Ack(range, more), padding]);
            return self.leave_forgotten(now, INITIAL_DATAGRAM, Extra::Quic(frames), out);
        }
        let extra =
            if more.is_empty() { Extra::QuicAck(range) } else { Extra::Quic(Box::new([Frame::Ack(range, more)])) };
        self.leave_forgotten(now, size, extra, out);
    }

    /// The size limit of packets: before the other end's address is validated, what every path carries.
    pub(super) fn largest(&self) -> u16 {
        let max = if self.handshake.unvalidated.is_some() { INITIAL_DATAGRAM } else { u16::MAX };
        self.config.datagram.min(max)
    }

    /// Whether this end's packets are Initial ones, which are padded: until enough bytes arrive, the other end may not
    /// answer (RFC 9000 sections 8.1 and 14.1).
    fn fills_up(&self) -> bool {
        self.end == End::Client && self.phase == Phase::Opening
    }

    /// Sends a non-ack-eliciting packet, if it has an acknowledgement or a close.
    #[cold]
    fn leave_unwatched(&mut self, now: Time, made: Contents, out: &mut impl Transmit) {
        if made.frames.iter().any(|frame| matches!(frame, Frame::Ack(..) | Frame::Close { .. })) {
            self.leave_forgotten(now, made.bytes, Extra::Quic(made.frames), out);
        }
    }

    /// Sends a non-ack-eliciting packet, of which only the number is kept.
    fn leave_forgotten(&mut self, now: Time, bytes: u16, extra: Extra, out: &mut impl Transmit) {
        let number = self.loss.sent_packets.push_silent(now, bytes);
        self.leave(now, number, bytes, Flags::NONE, extra, out);
    }

    /// Sends CONNECTION_CLOSE and closes the connection (RFC 9000 section 10.2).
    #[cold]
    fn say_close(&mut self, now: Time, out: &mut impl Transmit) {
        let frame = Frame::Close { code: self.closing.violation.map_or(0, Violation::code) };
        let bytes = short_header(self.unacknowledged()) + frame.size();
        self.leave_forgotten(now, bytes, Extra::Quic(Box::new([frame])), out);
        self.close();
        self.closing.close_sent_at = now;
    }

    /// The number of unacknowledged packet numbers, which sets the length of the encoded number.
    #[inline]
    fn unacknowledged(&self) -> u32 {
        self.loss.sent_packets.next() - self.loss.acked_end
    }

    /// Sends a packet with ack-eliciting frames.
    #[inline(never)]
    fn emit(&mut self, now: Time, frames: Box<[Frame]>, bytes: u16, again: bool, out: &mut impl Transmit) {
        let ect = self.leave_watched(now, Extra::Quic(frames.clone()), bytes, again, out);
        self.watch(now, bytes, ect, out).fill(Carried::Frames(frames));
        self.loss.probes = self.loss.probes.saturating_sub(1);
    }

    /// [`Connection::emit`] for a packet with data of one stream only, when no probe is due.
    #[inline(always)]
    fn emit_piece(&mut self, now: Time, piece: &StreamPiece, bytes: u16, again: bool, out: &mut impl Transmit) {
        let ect = self.leave_watched(now, Extra::QuicStream(*piece), bytes, again, out);
        self.watch(now, bytes, ect, out).fill(Carried::Stream(*piece));
    }

    /// Transmits a packet that [`Connection::watch`] then records; returns whether it is ECN-capable.
    #[inline(always)]
    fn leave_watched(&mut self, now: Time, extra: Extra, bytes: u16, again: bool, out: &mut impl Transmit) -> bool {
        let ect = self.config.ecn && self.ecn.leaves();
        let mut flags = if again { Flags::RETRANSMISSION } else { Flags::NONE };
        if ect {
            let l4s = self.congestion.needs().l4s;
            flags = flags.with(if l4s { Flags::ECT.with(Flags::L4S) } else { Flags::ECT });
        }
        self.stats.sent.retransmitted += u64::from(again);
        self.leave(now, self.loss.sent_packets.next(), bytes, flags, extra, out);
        ect
    }

    /// Records the last packet as in flight; returns the place for its contents.
    #[inline(always)]
    fn watch(&mut self, now: Time, bytes: u16, ect: bool, out: &impl Transmit) -> &mut Carried {
        let left = out.left(now);
        self.congestion.pace(now, bytes);
        self.loss.ack_eliciting_in_flight += 1;
        self.loss.time_of_last_ack_eliciting_packet = left;
        if self.timers.received_since_restart {
            self.timers.received_since_restart = false;
            self.alive(now);
        }
        match self.congestion.on_sent(left, self.loss.sent_packets.next(), bytes) {
            None => self.loss.sent_packets.push(left, bytes, ect),
            Some(snapshot) => self.loss.sent_packets.push_sampled(left, bytes, ect, snapshot),
        }
    }

    #[inline(always)]
    fn leave(&mut self, now: Time, number: u32, bytes: u16, flags: Flags, extra: Extra, out: &mut impl Transmit) {
        let size = bytes + self.config.header;
        if let Some((_, left)) = &mut self.handshake.unvalidated {
            *left += u64::from(bytes);
        }
        let flags = if self.receives { flags.with(Flags::ACK) } else { flags };
        self.stats.sent.sent(size);
        out.transmit(Segment { seq: number, stamp: Stamp::at(now), size, flags, extra: Some(extra) });
    }
}

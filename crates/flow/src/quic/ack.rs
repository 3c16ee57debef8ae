//! Processing of acknowledgements: arrivals, and their effect on the window (RFC 9002, appendix A.7).

use super::Snapshot;
use super::connection::{Connection, End, Phase};
use super::loss_detection::LostPacket;
use super::rtt::between;
use super::sent::{Carried, State};
use paceline_packet::Block;
use paceline_packet::quic::{AckRange, Frame, StreamPiece};
use paceline_units::{Span, Time};

/// A newly acknowledged packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newly {
    number: u32,
    sent: Time,
    bytes: u16,
    left: Snapshot,
}

impl Connection {
    /// Processes an acknowledgement; `more` has the ranges after the first two, newest first.
    pub(super) fn on_ack(&mut self, now: Time, range: &AckRange, more: &[Block]) {
        if range.largest >= self.loss.sent_packets.next() || range.largest < self.space.base {
            return; // of a packet never sent, or of another connection
        }
        self.sample(now, range);
        self.congestion.on_ack_begin(&self.loss.rtt);
        self.loss.acked_end = self.loss.acked_end.max(range.largest + 1);
        if !self.loss.lost.is_empty() {
            self.note_late(now, range, more);
        }
        if range.smallest <= self.loss.sent_packets.base() && !self.config.ecn {
            self.take_oldest(now, range.largest);
        } else {
            self.take_any(now, range, more);
        }
    }

    /// Processes an acknowledgement of all packets up to `largest`, the most common case.
    #[inline]
    fn take_oldest(&mut self, now: Time, largest: u32) {
        let before = self.loss.sent_packets.base();
        if before > largest {
            return;
        }
        self.stats.sent.advance(now, self.window_packets());
        for number in before..=largest {
            let Some(packet) = self.loss.sent_packets.pop() else { break };
            let (sent, bytes, out) = (packet.sent, packet.bytes, packet.state == State::Out);
            if let &Carried::Stream(piece) = &packet.carried {
                self.piece_acked(&piece);
            } else {
                let carried = core::mem::replace(&mut packet.carried, Carried::Nothing);
                self.arrived_at_last(&carried);
            }
            if out {
                self.loss.ack_eliciting_in_flight -= 1;
                let left = self.loss.sent_packets.snapshot(number);
                self.congestion.on_acked(now, left, sent, number, bytes);
            }
        }
        self.loss.sent_packets.prune();
        self.loss.loss_time = Time::NEVER;
        self.acked_some(now);
    }

    /// Ends the processing of newly acknowledged packets: the window grows.
    #[inline]
    fn acked_some(&mut self, now: Time) {
        self.congestion.on_ack_end(now, self.is_cwnd_limited);
        // a client keeps its backoff during the handshake: the server may only be slow to answer (section 6.2.1)
        if self.phase == Phase::Established || self.end == End::Server {
            self.loss.pto_count = 0;
        }
    }

    /// Processes any other acknowledgement; losses are detected before the window grows, as in OnAckReceived.
    #[inline(never)]
    fn take_any(&mut self, now: Time, range: &AckRange, more: &[Block]) {
        let base = self.loss.sent_packets.base();
        let mut capable = 0;
        for range in ranges(range, more) {
            for number in (range.start as u32).max(base)..range.end as u32 {
                capable += u32::from(self.packet_acked(number));
            }
        }
        self.read_marks(now, range, capable);
        self.detect_losses(now);
        if !self.loss.newly_acked.is_empty() {
            self.stats.sent.advance(now, self.window_packets());
            for newly in self.loss.newly_acked.drain(..) {
                let Newly { number, sent, bytes, ref left } = newly;
                self.congestion.on_acked(now, left, sent, number, bytes);
            }
            self.acked_some(now);
        }
        self.loss.sent_packets.prune();
    }

    /// Takes a round-trip sample if the largest number is newly acknowledged (section 5.1).
    #[inline]
    fn sample(&mut self, now: Time, range: &AckRange) {
        if range.largest < self.loss.acked_end {
            return;
        }
        let Some(packet) = self.loss.sent_packets.get_mut(range.largest) else { return };
        if packet.state != State::Out {
            return;
        }
        let latest = between(packet.sent, now);
        let delay = Span::from_micros(u64::from(range.delay)).min(self.config.max_ack_delay);
        if !self.loss.rtt.is_known() {
            self.loss.first_rtt_sample = now;
        }
        self.loss.rtt.sample(latest, delay);
        self.stats.sent.round_trip(latest);
    }

    /// Marks a packet as acknowledged. Returns whether it is newly acknowledged and was ECN-capable.
    fn packet_acked(&mut self, number: u32) -> bool {
        let left = *self.loss.sent_packets.snapshot(number);
        let Some(packet) = self.loss.sent_packets.get_mut(number).filter(|packet| packet.state == State::Out) else {
            return false;
        };
        let (sent, bytes, ect) = (packet.sent, packet.bytes, packet.ect);
        packet.state = State::Acked;
        let carried = core::mem::replace(&mut packet.carried, Carried::Nothing);
        self.arrived_at_last(&carried);
        self.loss.ack_eliciting_in_flight -= 1;
        self.loss.newly_acked.push(Newly { number, sent, bytes, left });
        ect
    }

    /// Processes the arrival of a packet's contents.
    #[inline(always)]
    fn arrived_at_last(&mut self, carried: &Carried) {
        match carried {
            Carried::Stream(piece) => self.piece_acked(piece),
            Carried::Nothing => {}
            Carried::Frames(frames) => frames.iter().for_each(|frame| self.frame_acked(frame)),
        }
    }

    #[inline(always)]
    fn piece_acked(&mut self, piece: &StreamPiece) {
        let gain = self.outgoing.acked(piece);
        self.sent_of(piece.track).bytes_acked += gain.bytes;
        if gain.completed {
            self.completed();
        }
    }

    fn frame_acked(&mut self, frame: &Frame) {
        match *frame {
            Frame::Stream(ref piece) => self.piece_acked(piece),
            Frame::Crypto { offset, length, .. } => {
                let start = u64::from(offset);
                self.handshake.crypto.acked(start..start + u64::from(length));
            }
            Frame::Datagram { length, track, .. } => self.sent_of(track).bytes_acked += u64::from(length),
            Frame::Ack(range, _) => self.received.on_ack_acked(range.largest),
            Frame::ResetStream { stream, .. } => self.outgoing.reset_acked(stream),
            _ => {}
        }
    }

    /// Processes acknowledgements of packets that were declared lost; drops packets lost long ago.
    #[cold]
    fn note_late(&mut self, now: Time, range: &AckRange, more: &[Block]) {
        let keep = self.loss.rtt.probe_timeout(self.config.max_ack_delay) * 3;
        let is_old = |lost: &LostPacket| between(lost.sent, now) > keep;
        // the oldest is the first
        if !self.loss.lost.first().is_some_and(is_old) && !acknowledges_any(range, more, &self.loss.lost) {
            return;
        }
        let mut received = false;
        let mut kept = core::mem::take(&mut self.loss.lost);
        kept.retain(|lost| {
            if acknowledges(range, more, lost.number) {
                self.stats.spurious += 1;
                received |= lost.counts;
                self.arrived_at_last(&lost.carried);
                return false;
            }
            !is_old(lost)
        });
        let all = !kept.iter().any(|lost| lost.counts);
        self.loss.lost = kept;
        if received && all && self.congestion.undoable().is_some() {
            self.congestion.on_spurious(now);
        }
    }

    /// Processes the ECN counts of an acknowledgement; `capable` newly acknowledged packets were sent with ECT.
    #[inline]
    fn read_marks(&mut self, now: Time, range: &AckRange, capable: u32) {
        if !self.config.ecn || self.loss.newly_acked.is_empty() {
            return;
        }
        let marked = self.ecn.on_ecn_counts(range.ect, range.ce, capable);
        let acked = self.loss.newly_acked.len() as u32;
        if let Some(newest) = self.loss.newly_acked.last() {
            self.congestion.on_marks(now, acked, marked, newest.sent);
        }
    }
}

/// Whether an acknowledgement contains this packet.
#[inline]
fn acknowledges(range: &AckRange, more: &[Block], number: u32) -> bool {
    let within = |block: &Block| (block.start..block.end).contains(&number);
    (range.smallest..=range.largest).contains(&number) || within(&range.older) || more.iter().any(within)
}

/// Whether it contains any of these, which are sorted by number.
#[inline]
fn acknowledges_any(range: &AckRange, more: &[Block], lost: &[LostPacket]) -> bool {
    let holds_one = |start: u32, end: u32| {
        let newest = lost.last().is_some_and(|lost| lost.number >= start);
        newest && lost[lost.partition_point(|lost| lost.number < start)].number < end
    };
    let within = |block: &Block| holds_one(block.start, block.end);
    holds_one(range.smallest, range.largest + 1) || within(&range.older) || more.iter().any(within)
}

/// The blocks of an acknowledgement as ranges, oldest first.
#[inline]
fn ranges<'a>(range: &AckRange, more: &'a [Block]) -> impl Iterator<Item = core::ops::Range<u64>> + use<'a> {
    let first = u64::from(range.smallest)..u64::from(range.largest) + 1;
    let of = |block: &Block| u64::from(block.start)..u64::from(block.end);
    more.iter().rev().map(of).chain([of(&range.older), first])
}

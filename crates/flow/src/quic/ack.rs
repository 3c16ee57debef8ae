//! Processing of acknowledgements: arrivals, losses, and their effect on the window (RFC 9002 section 6, appendix A).

use super::Snapshot;
use super::connection::{Connection, End, LostPacket, Phase};
use super::incoming::Grant;
use super::rtt::between;
use super::sent::{Carried, State};
use paceline_packet::Block;
use paceline_packet::quic::{AckRange, Frame, StreamPiece};
use paceline_units::{Span, Time};

/// kPacketThreshold.
const PACKET_THRESHOLD: u32 = 3;

/// A newly acknowledged packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newly {
    number: u32,
    sent: Time,
    bytes: u16,
    left: Snapshot,
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug)]
struct Lost {
    number: u32,
    sent: Time,
    bytes: u16,
}

impl Connection {
    /// Processes an acknowledgement; `more` has the ranges after the first two, newest first.
    pub(super) fn on_ack(&mut self, now: Time, range: &AckRange, more: &[Block]) {
        if range.largest >= self.log.next() || range.largest < self.base {
            return; // of a packet never sent, or of another connection
        }
        self.sample(now, range);
        self.congestion.on_ack_begin(&self.rtt);
        self.acked_end = self.acked_end.max(range.largest + 1);
        if !self.lost.is_empty() {
            self.note_late(now, range, more);
        }
        if range.smallest <= self.log.base() && !self.config.ecn {
            self.take_oldest(now, range.largest);
        } else {
            self.take_any(now, range, more);
        }
    }

    /// Processes an acknowledgement of all packets up to `largest`, the most common case.
    #[inline]
    fn take_oldest(&mut self, now: Time, largest: u32) {
        let before = self.log.base();
        if before > largest {
            return;
        }
        self.stats.advance(now, self.window_packets());
        for number in before..=largest {
            let Some(packet) = self.log.pop() else { break };
            let (sent, bytes, out) = (packet.sent, packet.bytes, packet.state == State::Out);
            if let &Carried::Stream(piece) = &packet.carried {
                self.piece_acked(&piece);
            } else {
                let carried = core::mem::replace(&mut packet.carried, Carried::Nothing);
                self.arrived_at_last(&carried);
            }
            if out {
                self.out -= 1;
                let left = self.log.snapshot(number);
                self.congestion.on_acked(now, left, sent, number, bytes);
            }
        }
        self.log.prune();
        self.loss_time = Time::NEVER;
        self.acked_some(now);
    }

    /// Ends the processing of newly acknowledged packets: the window grows.
    #[inline]
    fn acked_some(&mut self, now: Time) {
        self.congestion.on_ack_end(now, self.is_cwnd_limited);
        // a client keeps its backoff during the handshake: the server may only be slow to answer (section 6.2.1)
        if self.phase == Phase::Established || self.end == End::Server {
            self.pto_count = 0;
        }
    }

    /// Processes any other acknowledgement; losses are detected before the window grows, as in OnAckReceived.
    #[inline(never)]
    fn take_any(&mut self, now: Time, range: &AckRange, more: &[Block]) {
        let base = self.log.base();
        let mut capable = 0;
        for range in ranges(range, more) {
            for number in (range.start as u32).max(base)..range.end as u32 {
                capable += u32::from(self.packet_acked(number));
            }
        }
        self.read_marks(now, range, capable);
        self.detect_losses(now);
        if !self.newly.is_empty() {
            self.stats.advance(now, self.window_packets());
            for newly in self.newly.drain(..) {
                let Newly { number, sent, bytes, ref left } = newly;
                self.congestion.on_acked(now, left, sent, number, bytes);
            }
            self.acked_some(now);
        }
        self.log.prune();
    }

    /// Takes a round-trip sample if the largest number is newly acknowledged (section 5.1).
    #[inline]
    fn sample(&mut self, now: Time, range: &AckRange) {
        if range.largest < self.acked_end {
            return;
        }
        let Some(packet) = self.log.get_mut(range.largest) else { return };
        if packet.state != State::Out {
            return;
        }
        let latest = between(packet.sent, now);
        let delay = Span::from_micros(u64::from(range.delay)).min(self.config.max_ack_delay);
        if !self.rtt.is_known() {
            self.first_sample = now;
        }
        self.rtt.sample(latest, delay);
        self.stats.round_trip(latest);
    }

    /// Marks a packet as acknowledged. Returns whether it is newly acknowledged and was ECN-capable.
    fn packet_acked(&mut self, number: u32) -> bool {
        let left = *self.log.snapshot(number);
        let Some(packet) = self.log.get_mut(number).filter(|packet| packet.state == State::Out) else { return false };
        let (sent, bytes, ect) = (packet.sent, packet.bytes, packet.ect);
        packet.state = State::Acked;
        let carried = core::mem::replace(&mut packet.carried, Carried::Nothing);
        self.arrived_at_last(&carried);
        self.out -= 1;
        self.newly.push(Newly { number, sent, bytes, left });
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
                self.crypto.acked(start..start + u64::from(length));
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
        let keep = self.rtt.probe_timeout(self.config.max_ack_delay) * 3;
        let is_old = |lost: &LostPacket| between(lost.sent, now) > keep;
        // the oldest is the first
        if !self.lost.first().is_some_and(is_old) && !acknowledges_any(range, more, &self.lost) {
            return;
        }
        let mut received = false;
        let mut kept = core::mem::take(&mut self.lost);
        kept.retain(|lost| {
            if acknowledges(range, more, lost.number) {
                self.spurious += 1;
                received |= lost.counts;
                self.arrived_at_last(&lost.carried);
                return false;
            }
            !is_old(lost)
        });
        let all = !kept.iter().any(|lost| lost.counts);
        self.lost = kept;
        if received && all && self.congestion.undoable().is_some() {
            self.congestion.on_spurious(now);
        }
    }

    /// Processes the ECN counts of an acknowledgement; `capable` newly acknowledged packets were sent with ECT.
    #[inline]
    fn read_marks(&mut self, now: Time, range: &AckRange, capable: u32) {
        if !self.config.ecn || self.newly.is_empty() {
            return;
        }
        let marked = self.ecn.on_ecn_counts(range.ect, range.ce, capable);
        let acked = self.newly.len() as u32;
        if let Some(newest) = self.newly.last() {
            self.congestion.on_marks(now, acked, marked, newest.sent);
        }
    }

    /// Declares packets lost, by the packet threshold of 3 or the time threshold of 9/8 round trips (section 6.1).
    pub(super) fn detect_losses(&mut self, now: Time) {
        self.loss_time = Time::NEVER;
        if self.is_unacked() {
            return;
        }
        let largest = self.acked_end - 1;
        let delay = self.rtt.loss_delay();
        let mut lost = Vec::new();
        while let Some((number, packet)) = self.log.first_out(largest) {
            if packet.sent + delay > now && largest < number + PACKET_THRESHOLD {
                self.loss_time = packet.sent + delay;
                break;
            }
            packet.state = State::Lost;
            let carried = core::mem::replace(&mut packet.carried, Carried::Nothing);
            lost.push(Lost { number, sent: packet.sent, bytes: packet.bytes });
            let sent = packet.sent;
            self.out -= 1;
            self.send_again(&carried);
            self.lost.push(LostPacket { number, sent, carried, counts: true });
        }
        if let Some(newest) = lost.last() {
            self.lose(now, &lost, newest.sent);
        }
    }

    /// Whether enough packets sent after this one have been acknowledged that it counts as lost.
    pub(super) fn is_overtaken(&self, number: u32) -> bool {
        self.acked_end > number + PACKET_THRESHOLD
    }

    /// Reports these losses to the congestion control; the newest was sent at `newest`.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, now: Time, lost: &[Lost], newest: Time) {
        self.stats.advance(now, self.window_packets());
        for packet in lost {
            let left = self.log.snapshot(packet.number);
            self.congestion.on_lost(left, packet.number, packet.bytes);
        }
        let before = self.congestion.undoable();
        self.congestion.on_congestion(now, newest);
        if self.congestion.undoable() != before {
            let first = lost[0].number;
            self.lost.iter_mut().filter(|old| old.number < first).for_each(|old| old.counts = false);
            self.stats.fast_retransmits += 1;
        }
        if self.is_persistent(lost) {
            self.congestion.on_persistent(now);
        }
        self.log.prune();
    }

    /// Whether two of these were sent more than three probe timeouts apart, with nothing acknowledged between them
    /// (section 7.6).
    fn is_persistent(&self, lost: &[Lost]) -> bool {
        let after = lost.iter().skip_while(|packet| packet.sent <= self.first_sample);
        let longest = self.rtt.persistent(self.config.max_ack_delay);
        let (mut begin, mut last): (Option<Time>, u32) = (None, 0);
        for packet in after {
            let mut between_them = last + 1..packet.number;
            let whole = begin.is_some()
                && between_them.all(|n| self.log.get(n).is_none_or(|packet| packet.state != State::Acked));
            let from = begin.filter(|_| whole).unwrap_or(packet.sent);
            begin = Some(from);
            last = packet.number;
            if between(from, packet.sent) > longest {
                return true;
            }
        }
        false
    }

    /// Queues the contents of a lost packet that are still needed for retransmission (RFC 9000 section 13.3).
    fn send_again(&mut self, carried: &Carried) {
        match carried {
            Carried::Nothing => {}
            Carried::Stream(piece) => self.outgoing.lost(piece),
            Carried::Frames(frames) => frames.iter().for_each(|frame| self.send_frame_again(frame)),
        }
    }

    fn send_frame_again(&mut self, frame: &Frame) {
        let grant = match *frame {
            Frame::Stream(ref piece) => return self.outgoing.lost(piece),
            Frame::Crypto { offset, length, .. } => {
                let start = u64::from(offset);
                return self.crypto.lost(start..start + u64::from(length));
            }
            Frame::HandshakeDone | Frame::ResetStream { .. } | Frame::AckFrequency { .. } => {
                return self.control.push_back(frame.clone());
            }
            Frame::MaxData(limit) => Grant::Data(limit),
            Frame::MaxStreamData { stream, limit } => Grant::Stream(stream, limit),
            Frame::MaxStreams(limit) => Grant::Streams(limit),
            _ => return,
        };
        if let Some(frame) = self.incoming.current(grant).map(Grant::frame)
            && !self.control.contains(&frame)
        {
            self.control.push_back(frame);
        }
    }

    /// Queues the contents of the oldest outstanding packets again, without declaring them lost.
    pub(super) fn send_oldest_again(&mut self, max: usize) {
        let oldest: Vec<Carried> = self.log.out().take(max).map(|(_, packet)| packet.carried.clone()).collect();
        oldest.iter().for_each(|carried| self.send_again(carried));
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

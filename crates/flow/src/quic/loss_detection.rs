//! Loss detection: which packets count as lost, the probe timeout and the timer of both (RFC 9002 section 6, appendix A).

use super::Rtt;
use super::ack::Newly;
use super::connection::{Connection, End, Phase};
use super::incoming::Grant;
use super::rtt::between;
use super::sent::{Carried, SentLog, State};
use paceline_packet::quic::Frame;
use paceline_units::{Span, Time};

/// kPacketThreshold.
const PACKET_THRESHOLD: u32 = 3;

/// A packet that was declared lost and may still be acknowledged.
#[derive(Debug)]
pub(super) struct LostPacket {
    pub(super) number: u32,
    pub(super) sent: Time,
    pub(super) carried: Carried,
    /// It was lost in the last recovery period.
    pub(super) counts: bool,
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug)]
struct Lost {
    number: u32,
    sent: Time,
    bytes: u16,
}

/// The state of loss detection (appendix A.3).
#[derive(Debug)]
pub(super) struct LossDetection {
    pub(super) rtt: Rtt,
    pub(super) sent_packets: SentLog,
    /// Packets recently declared lost; they may still be acknowledged.
    pub(super) lost: Vec<LostPacket>,
    /// One past the largest number acknowledged (largest_acked_packet); the connection's first number before that.
    pub(super) acked_end: u32,
    /// The number of outstanding packets, all ack-eliciting; when the last one left.
    pub(super) ack_eliciting_in_flight: u32,
    pub(super) time_of_last_ack_eliciting_packet: Time,
    /// When the next packet is declared lost by time; when the loss detection timer expires.
    pub(super) loss_time: Time,
    pub(super) timer: Time,
    pub(super) pto_count: u32,
    /// The number of packets to send regardless of the window.
    pub(super) probes: u8,
    /// When the first round-trip sample was taken: earlier losses establish no persistent congestion.
    pub(super) first_rtt_sample: Time,
    /// The packets that the current acknowledgement newly acknowledges.
    pub(super) newly_acked: Vec<Newly>,
}

impl LossDetection {
    /// The state before the first packet, whose number is `base`; `samples`: the controller needs delivery samples.
    pub(super) fn new(base: u32, samples: bool) -> LossDetection {
        LossDetection {
            rtt: Rtt::default(),
            sent_packets: SentLog::new(base, samples),
            lost: Vec::new(),
            acked_end: base,
            ack_eliciting_in_flight: 0,
            time_of_last_ack_eliciting_packet: Time::ZERO,
            loss_time: Time::NEVER,
            timer: Time::NEVER,
            pto_count: 0,
            probes: 0,
            first_rtt_sample: Time::NEVER,
            newly_acked: Vec::new(),
        }
    }

    /// Whether enough packets sent after this one have been acknowledged that it counts as lost.
    pub(super) fn is_overtaken(&self, number: u32) -> bool {
        self.acked_end > number + PACKET_THRESHOLD
    }

    /// Whether two of these were sent more than three probe timeouts apart, with nothing acknowledged between them
    /// (section 7.6); the peer delays acknowledgements by at most `max_ack_delay`.
    fn is_persistent(&self, lost: &[Lost], max_ack_delay: Span) -> bool {
        let after = lost.iter().skip_while(|packet| packet.sent <= self.first_rtt_sample);
        let longest = self.rtt.persistent(max_ack_delay);
        let (mut begin, mut last): (Option<Time>, u32) = (None, 0);
        for packet in after {
            let mut between_them = last + 1..packet.number;
            let whole = begin.is_some()
                && between_them.all(|n| self.sent_packets.get(n).is_none_or(|packet| packet.state != State::Acked));
            let from = begin.filter(|_| whole).unwrap_or(packet.sent);
            begin = Some(from);
            last = packet.number;
            if between(from, packet.sent) > longest {
                return true;
            }
        }
        false
    }
}

impl Connection {
    /// Declares packets lost, by the packet threshold of 3 or the time threshold of 9/8 round trips (section 6.1).
    pub(super) fn detect_losses(&mut self, now: Time) {
        self.loss.loss_time = Time::NEVER;
        if self.is_unacked() {
            return;
        }
        let largest = self.loss.acked_end - 1;
        let delay = self.loss.rtt.loss_delay();
        let mut lost = Vec::new();
        while let Some((number, packet)) = self.loss.sent_packets.first_out(largest) {
            if packet.sent + delay > now && largest < number + PACKET_THRESHOLD {
                self.loss.loss_time = packet.sent + delay;
                break;
            }
            packet.state = State::Lost;
            let carried = core::mem::replace(&mut packet.carried, Carried::Nothing);
            lost.push(Lost { number, sent: packet.sent, bytes: packet.bytes });
            let sent = packet.sent;
            self.loss.ack_eliciting_in_flight -= 1;
            self.send_again(&carried);
            self.loss.lost.push(LostPacket { number, sent, carried, counts: true });
        }
        if let Some(newest) = lost.last() {
            self.lose(now, &lost, newest.sent);
        }
    }

    /// Reports these losses to the congestion control; the newest was sent at `newest`.
    #[cold]
    #[inline(never)]
    fn lose(&mut self, now: Time, lost: &[Lost], newest: Time) {
        self.stats.sent.advance(now, self.window_packets());
        for packet in lost {
            let left = self.loss.sent_packets.snapshot(packet.number);
            self.congestion.on_lost(left, packet.number, packet.bytes);
        }
        let before = self.congestion.undoable();
        self.congestion.on_congestion(now, newest);
        if self.congestion.undoable() != before {
            let first = lost[0].number;
            self.loss.lost.iter_mut().filter(|old| old.number < first).for_each(|old| old.counts = false);
            self.stats.sent.fast_retransmits += 1;
        }
        if self.loss.is_persistent(lost, self.config.max_ack_delay) {
            self.congestion.on_persistent(now);
        }
        self.loss.sent_packets.prune();
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
                return self.handshake.crypto.lost(start..start + u64::from(length));
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
        let oldest: Vec<Carried> =
            self.loss.sent_packets.out().take(max).map(|(_, packet)| packet.carried.clone()).collect();
        oldest.iter().for_each(|carried| self.send_again(carried));
    }

    /// Handles a probe timeout (RFC 9002 section 6.2.4): sends two packets, with new data or else with the oldest
    /// outstanding data.
    #[cold]
    pub(super) fn probe(&mut self) {
        self.loss.pto_count += 1;
        self.stats.sent.timeouts += 1;
        if self.loss.pto_count == 1 {
            self.stats.sent.first_timeouts += 1;
            self.stats.sent.first_timeout_sum += self.loss.rtt.probe_timeout(self.config.max_ack_delay);
        }
        self.loss.probes = if self.loss.ack_eliciting_in_flight == 0 { 1 } else { 2 };
        let waits = self.sends_data() && (self.outgoing.rank().is_some() || !self.datagrams.waiting.is_empty());
        // before anything is acknowledged, the oldest data is the handshake's, without which the other end can process
        // nothing (section 6.2.1: probes for it come first)
        if !waits || self.is_unacked() {
            self.send_oldest_again(2);
        }
        if self.is_unacked() && self.loss.pto_count >= 3 {
            self.ecn.all_lost();
        }
    }

    /// Sets the timer for losses and probes (SetLossDetectionTimer). If a new sample has shortened the probe timeout so
    /// that it has passed, it expires now, not in the past.
    #[inline]
    pub(super) fn arm(&mut self, now: Time) {
        self.loss.timer = if self.phase == Phase::Closed {
            Time::NEVER
        } else if self.loss.loss_time < Time::NEVER {
            self.loss.loss_time
        } else if self.handshake.unvalidated.is_some() && self.is_amplifying(self.largest()) {
            Time::NEVER // nothing may be sent before more arrives (RFC 9002 section 6.2.2.1)
        } else if self.loss.ack_eliciting_in_flight > 0 || self.end == End::Client && self.phase == Phase::Opening {
            let delay = if self.phase == Phase::Established { self.config.max_ack_delay } else { Span::ZERO };
            now.max(
                self.loss.time_of_last_ack_eliciting_packet
                    + self.loss.rtt.probe_timeout(delay) * (1 << self.loss.pto_count.min(20)),
            )
        } else {
            Time::NEVER
        };
    }
}

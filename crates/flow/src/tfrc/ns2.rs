//! ns-2.35's receiver (`Agent/TFRCSink` with its defaults: weighted intervals, `NumFeedback_` 1, `PreciseLoss_`).
//!
//! What differs from RFC 5348: one later packet tells of a loss; times are the sender's, taken from the stamps; a loss
//! event must be later than a round-trip time and seen by a packet that was sent after the report of the one before
//! (`round_id`); late packets are ignored; a packet is answered if a round-trip time has passed since the last report,
//! and a timer of 1.5 round-trip times does the rest; the intervals are counted when a report is made.

use super::TfrcConfig;
use super::history::{Fewer, IntervalWeights};
use super::receiver::{Measured, PacketOutcome};
use paceline_control::models::{PerAck, TimeoutTerm};
use paceline_control::tfrc::equation::Terms;
use paceline_packet::{Ns2Data, Packet, TfrcData, TfrcMore};
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// `DEFAULT_NUMSAMPLES`: closed intervals that count.
const INTERVALS: usize = 8;

/// ns-2's state.
#[derive(Debug)]
pub(super) struct Ns2Receiver {
    segment: u32,
    /// b of the equation.
    per_ack: PerAck,
    weights: IntervalWeights,
    /// One past the highest number that has come, and when that packet was sent.
    next: u32,
    sent: Time,
    /// What the newest packet's header says.
    rtt: Span,
    timeout: Span,
    round: u32,
    /// When the first packet of the last loss event was sent, and the round of the packet that told of it.
    lost_at: Time,
    lost_round: Option<u32>,
    /// A loss has been seen.
    seen_loss: bool,
    /// First packets of loss events that the intervals do not show yet.
    events: Vec<u32>,
    /// Packets up to here are counted in the intervals.
    counted: u32,
    /// Packets since the last loss event; closed intervals with their discounts.
    open: f64,
    closed: Vec<(f64, f64)>,
    /// What the closed intervals will be discounted by at the next loss event.
    discount: f64,
    p: f64,
    /// When the packets of the last round-trip times came, unmarked ones only.
    arrivals: VecDeque<Time>,
    /// Since the last report; when that was made; when the last packet came.
    received: u64,
    reported: Time,
    arrived: Time,
    due: Time,
    started: bool,
}

impl Ns2Receiver {
    pub(super) fn new(config: &TfrcConfig) -> Ns2Receiver {
        Ns2Receiver {
            segment: u32::from(config.segment.max(1)),
            per_ack: config.settings.per_ack,
            // minDiscountRatio_
            weights: IntervalWeights {
                threshold: if config.settings.discounting { 0.5 } else { 1.0 },
                fewer: Fewer::BesideAll,
            },
            next: 0,
            sent: Time::ZERO,
            rtt: Span::ZERO,
            timeout: Span::ZERO,
            round: 0,
            lost_at: Time::ZERO,
            lost_round: None,
            seen_loss: false,
            events: Vec::new(),
            counted: 0,
            open: 0.0,
            closed: Vec::new(),
            discount: 1.0,
            p: 0.0,
            arrivals: VecDeque::new(),
            received: 0,
            reported: Time::ZERO,
            arrived: Time::ZERO,
            due: Time::NEVER,
            started: false,
        }
    }

    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    pub(super) fn loss_event_rate(&self) -> f64 {
        self.p
    }

    /// Whether the sender had a round-trip time, and `seq` lies beyond all that has come: without one it has begun afresh.
    pub(super) fn follows(&self, seq: u32) -> bool {
        self.rtt > Span::ZERO && seq >= self.next
    }

    /// A packet has come.
    pub(super) fn on_packet(&mut self, now: Time, packet: &Packet, marked: bool, data: &TfrcData) -> PacketOutcome {
        let seq = packet.seq;
        self.received += 1;
        if !core::mem::replace(&mut self.started, true) {
            // what came before the first packet is nobody's loss
            self.next = seq;
            self.counted = seq;
        }
        if seq < self.next {
            return PacketOutcome { new: false, report: None };
        }
        let sent = now - packet.stamp.elapsed(now);
        let header = match data.more {
            TfrcMore::Ns2(header) => header,
            _ => Ns2Data { timeout: data.rtt * 4, round: 0, urgent: false },
        };
        (self.rtt, self.timeout, self.round) = (data.rtt, header.timeout, header.round);
        self.arrived = now;
        let mut at_once = header.urgent;
        let gap = seq > self.next;
        let mut event = false;
        if marked && self.is_new(sent) {
            self.begin(seq, sent);
            event = true;
        }
        if gap {
            event |= self.gap(seq, sent);
        }
        if !marked {
            self.arrived_unmarked(now);
        }
        self.next = seq + 1;
        self.sent = sent;
        let mut given = None;
        if !self.seen_loss && (gap || event) {
            at_once = true;
            self.seen_loss = true;
            given = Some(self.first_loss(now, sent));
        }
        at_once |= event || self.rtt > Span::ZERO && now.since(self.reported) >= self.rtt;
        let report = if at_once { self.report(now, given) } else { None };
        PacketOutcome { new: true, report }
    }

    /// The packets from the next expected one up to `seq`, sent at `sent`, are lost: says whether an event begins.
    #[cold]
    fn gap(&mut self, seq: u32, sent: Time) -> bool {
        if self.lost_round.is_some_and(|round| self.round <= round) {
            return false;
        }
        let before = self.next - 1; // the first packet makes no gap, so there is one before
        let spacing = sent.since(self.sent).0 as f64 / f64::from(seq - before);
        // the first one that is late enough; there is no second, for all have the round of this packet
        let since = (self.lost_at + self.rtt).since(self.sent).0 as f64;
        let mut i = self.next;
        if spacing > 0.0 {
            i = i.max(before.saturating_add((since / spacing) as u32));
        }
        while i < seq {
            let at = self.sent + Span((f64::from(i - before) * spacing) as u64);
            if self.is_new(at) {
                self.begin(i, at);
                return true;
            }
            if spacing == 0.0 {
                return false;
            }
            i += 1;
        }
        false
    }

    fn is_new(&self, at: Time) -> bool {
        at.since(self.lost_at) > self.rtt && self.lost_round.is_none_or(|round| self.round > round)
    }

    fn begin(&mut self, seq: u32, at: Time) {
        self.lost_at = at;
        self.lost_round = Some(self.round);
        self.events.push(seq);
    }

    fn arrived_unmarked(&mut self, now: Time) {
        // more than any round-trip time that could be asked for before the next packet
        let kept = self.rtt * 8 + Span::from_millis(1);
        while self.arrivals.front().is_some_and(|&at| now.since(at) > kept) {
            self.arrivals.pop_front();
        }
        // the walk over the history stops before the flow's first packet
        if self.next > 0 {
            self.arrivals.push_back(now);
        }
    }

    /// `adjust_history`: the intervals begin with one that gives the rate that data came at.
    #[cold]
    fn first_loss(&mut self, now: Time, sent: Time) -> f64 {
        self.events.clear();
        self.lost_at = sent;
        self.lost_round = Some(self.round);
        let p = self.inverse(self.throughput(now) * f64::from(self.segment));
        self.closed = vec![((1.0 / p).floor(), 1.0)];
        self.open = 0.0;
        p
    }

    /// The equation's inverse as ns-2 finds it: halving steps from 1/2 on, until the rate is right to 5 %.
    fn inverse(&self, rate: f64) -> f64 {
        let Some(terms) = Terms::new(self.segment, self.rtt, self.timeout) else { return 1.0 };
        let terms = terms.covering(self.per_ack).form(TimeoutTerm::AtMostOne);
        let (mut p, mut step) = (0.5, 0.25);
        for _ in 0..=30 {
            let got = terms.half(p).min(25e6);
            if got > 0.95 * rate && got < 1.05 * rate {
                break;
            }
            p += if got > rate { step } else { -step };
            step /= 2.0;
        }
        p
    }

    /// `est_thput`: packets a second.
    fn throughput(&self, now: Time) -> f64 {
        let elapsed = now.since(self.reported);
        if self.rtt == Span::ZERO {
            return 1.0;
        }
        if elapsed >= self.rtt {
            return if self.received > 0 { self.received as f64 / elapsed.as_secs_f64() } else { 1.0 };
        }
        let count = self.arrivals.iter().rev().take_while(|&&at| at + self.rtt > self.arrived).count();
        if count > 0 { count as f64 / self.rtt.as_secs_f64() } else { 1.0 }
    }

    /// `est_loss_WALI`: counts the packets since the last report into the intervals.
    fn estimate(&mut self) -> f64 {
        for i in 0..self.events.len() {
            let first = self.events[i];
            // the lost packet is the last of the interval that it ends
            let length = self.open + f64::from((first + 1).saturating_sub(self.counted));
            self.counted = self.counted.max(first + 1);
            self.open = 0.0;
            for interval in &mut self.closed {
                interval.1 *= self.discount;
            }
            self.discount = 1.0;
            self.closed.insert(0, (length, 1.0));
            self.closed.truncate(INTERVALS);
        }
        self.events.clear();
        self.open += f64::from(self.next.saturating_sub(self.counted));
        self.counted = self.next;
        if self.closed.is_empty() {
            return 0.0;
        }
        self.discount = self.weights.discount(self.open, &self.closed);
        self.weights.loss_event_rate(self.open, &self.closed)
    }

    /// Makes a report, unless nothing has come since the last one; in any case the timer starts again.
    fn report(&mut self, now: Time, given: Option<f64>) -> Option<Measured> {
        if self.rtt > Span::ZERO {
            self.due = now + self.rtt.mul_f64(1.5);
        }
        if self.arrived < self.reported {
            return None;
        }
        self.p = match given {
            Some(p) => p,
            None => self.estimate(),
        };
        let receive_rate = self.throughput(now) * f64::from(self.segment);
        self.reported = now;
        self.received = 0;
        Some(Measured { next: self.next, receive_rate, loss_event_rate: self.p.clamp(0.0, 1.0) })
    }

    pub(super) fn on_timer(&mut self, now: Time) -> Option<Measured> {
        if now < self.due {
            return None;
        }
        let report = self.report(now, None);
        if report.is_none() || self.due <= now {
            // nothing has come, and what comes next is answered at once: a round-trip time will have passed
            self.due = Time::NEVER;
        }
        report
    }
}

//! ns-2.35's receiver (`Agent/TFRCSink` with its defaults: weighted intervals, `NumFeedback_` 1, `PreciseLoss_`).
//!
//! The differences from RFC 5348:
//!
//! - A loss is detected by one later packet.
//! - Times are the sender's, from the timestamps.
//! - A new loss event must be more than a round-trip time later, and detected by a packet sent after the report on the
//!   previous one (`round_id`).
//! - Late packets are ignored.
//! - A packet is reported at once if a round-trip time has passed since the last report; otherwise, a timer of 1.5
//!   round-trip times is used.
//! - The intervals are counted when a report is made.

use super::TfrcConfig;
use super::loss_history::{Fewer, IntervalWeights};
use super::receiver::{Measured, PacketOutcome};
use paceline_control::models::{PerAck, TimeoutTerm};
use paceline_control::tfrc::equation::Terms;
use paceline_packet::{Ns2Data, Packet, TfrcData, TfrcMore};
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// `DEFAULT_NUMSAMPLES`: the number of closed intervals that count.
const INTERVALS: usize = 8;

/// The state of ns-2's receiver.
#[derive(Debug)]
pub(super) struct Ns2Receiver {
    segment: u32,
    /// b of the equation.
    per_ack: PerAck,
    weights: IntervalWeights,
    /// One past the highest number received, and when that packet was sent.
    next: u32,
    sent: Time,
    /// The fields of the newest packet's header.
    rtt: Span,
    timeout: Span,
    round: u32,
    /// When the first packet of the last loss event was sent, and the round of the packet that detected it.
    lost_at: Time,
    lost_round: Option<u32>,
    /// A loss has been detected.
    seen_loss: bool,
    /// First packets of loss events not yet included in the intervals.
    events: Vec<u32>,
    /// Packets below this are included in the intervals.
    counted: u32,
    /// Packets since the last loss event; closed intervals with their discount factors.
    open: f64,
    closed: Vec<(f64, f64)>,
    /// The discount factor applied to the closed intervals at the next loss event.
    discount: f64,
    p: f64,
    /// Arrival times of unmarked packets in the last round-trip times.
    arrivals: VecDeque<Time>,
    /// Packets since the last report; when that was made; when the last packet arrived.
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

    /// Whether `seq` is above everything received, and the sender had a round-trip time: if it has none now, it has
    /// restarted.
    pub(super) fn follows(&self, seq: u32) -> bool {
        self.rtt > Span::ZERO && seq >= self.next
    }

    /// Processes a packet.
    pub(super) fn on_packet(&mut self, now: Time, packet: &Packet, marked: bool, data: &TfrcData) -> PacketOutcome {
        let seq = packet.seq;
        self.received += 1;
        if !core::mem::replace(&mut self.started, true) {
            // packets before the first one received do not count as lost
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

    /// Processes the loss of the packets from the next expected one up to `seq`, which was sent at `sent`; returns
    /// whether a loss event begins.
    #[cold]
    fn gap(&mut self, seq: u32, sent: Time) -> bool {
        if self.lost_round.is_some_and(|round| self.round <= round) {
            return false;
        }
        let before = self.next - 1; // the first packet makes no gap, so there is one before
        let spacing = sent.since(self.sent).0 as f64 / f64::from(seq - before);
        // the first one that is late enough; there is no second one, since all have the round of this packet
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
        // more than any round-trip time that can be queried before the next packet
        let kept = self.rtt * 8 + Span::from_millis(1);
        while self.arrivals.front().is_some_and(|&at| now.since(at) > kept) {
            self.arrivals.pop_front();
        }
        // ns-2's search of the history stops before the flow's first packet
        if self.next > 0 {
            self.arrivals.push_back(now);
        }
    }

    /// `adjust_history`: begins the intervals with one that gives the receive rate.
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

    /// The inverse of the equation by ns-2's method: halving steps from 1/2, until the rate is within 5 %.
    fn inverse(&self, rate: f64) -> f64 {
        let Some(terms) = Terms::new(self.segment, self.rtt, self.timeout) else { return 1.0 };
        let terms = terms.covering(self.per_ack).form(TimeoutTerm::AtMostOne);
        let (mut p, mut step) = (0.5, 0.25);
        for _ in 0..=30 {
            let got = terms.tfrc_rate(p).min(25e6);
            if got > 0.95 * rate && got < 1.05 * rate {
                break;
            }
            p += if got > rate { step } else { -step };
            step /= 2.0;
        }
        p
    }

    /// `est_thput`: the receive rate in packets per second.
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

    /// `est_loss_WALI`: adds the packets since the last report to the intervals.
    fn estimate(&mut self) -> f64 {
        for i in 0..self.events.len() {
            let first = self.events[i];
            // the lost packet is the last one of the interval that it ends
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

    /// Makes a report, unless nothing has arrived since the last one; restarts the timer in any case.
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
            // nothing has arrived; the next packet will be reported at once, since a round-trip time will have passed
            self.due = Time::NEVER;
        }
        report
    }
}

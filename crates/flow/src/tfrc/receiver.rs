//! The receiving end (RFC 5348 section 6).

use super::TfrcConfig;
use super::loss_detection::{Gaps, Place};
use super::loss_history::{Fewer, Indication, IntervalWeights, LossHistory};
use super::ns2::Ns2Receiver;
use super::receive_rate::ReceiveRate;
use crate::{Arrived, ReceiverStats, Segment, Transmit};
use paceline_control::Law;
use paceline_control::models::PerAck;
use paceline_control::tfrc::equation::Terms;
use paceline_packet::{Extra, Flags, Packet, Stamp, Subflow, TfrcData, TfrcReport};
use paceline_units::{Span, Time};

/// The receiving end of a flow.
#[derive(Debug)]
pub struct TfrcReceiver {
    config: Box<TfrcConfig>,
    stats: ReceiverStats,
    /// The last new packet: its timestamp, and when it arrived.
    stamp: Stamp,
    arrived_at: Time,
    measure: Measure,
}

/// The measuring algorithm.
#[derive(Debug)]
enum Measure {
    Rfc(Box<RfcReceiver>),
    Ns2(Box<Ns2Receiver>),
}

/// The contents of a report.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Measured {
    pub(super) next: u32,
    pub(super) receive_rate: f64,
    pub(super) loss_event_rate: f64,
}

/// The result of processing a packet.
pub(super) struct PacketOutcome {
    /// It is not a duplicate.
    pub(super) new: bool,
    /// A report to send.
    pub(super) report: Option<Measured>,
}

impl TfrcReceiver {
    /// Creates a receiver that waits for the first packet.
    #[must_use]
    pub fn new(config: &TfrcConfig) -> TfrcReceiver {
        let measure = match config.settings.law {
            Law::Ns2 => Measure::Ns2(Box::new(Ns2Receiver::new(config))),
            _ => Measure::Rfc(Box::new(RfcReceiver::new(config, 0))),
        };
        TfrcReceiver {
            config: Box::new(config.clone()),
            stats: ReceiverStats::default(),
            stamp: Stamp::default(),
            arrived_at: Time::ZERO,
            measure,
        }
    }

    /// Counters up to now; `bytes` are the payloads of new packets, in any order.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// When to call [`TfrcReceiver::on_timer`]; the time may move later without notice.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        match &self.measure {
            Measure::Rfc(rfc) => rfc.due,
            Measure::Ns2(ns2) => ns2.due(),
        }
    }

    /// p, the current loss event rate; 0 before the first loss event.
    #[must_use]
    pub fn loss_event_rate(&self) -> f64 {
        match &self.measure {
            Measure::Rfc(rfc) => rfc.history.loss_event_rate(rfc.gaps.next()),
            Measure::Ns2(ns2) => ns2.loss_event_rate(),
        }
    }

    /// Processes a packet; ignores one without TFRC's header.
    #[inline]
    pub fn on_data(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) -> Arrived {
        let Some(Extra::TfrcData(_, data)) = extra else { return Arrived::default() };
        if packet.seq == u32::MAX {
            return Arrived::default();
        }
        let marked = packet.flags.has(Flags::CE);
        let bytes = u64::from(packet.size.saturating_sub(self.config.header));
        let stats = &mut self.stats;
        stats.on_received(now, packet.size);
        stats.marks += u64::from(marked);
        let outcome = match &mut self.measure {
            Measure::Rfc(rfc) => {
                if data.rtt == Span::ZERO && rfc.rtt > Span::ZERO && packet.seq >= rfc.gaps.next() {
                    // a sender whose round-trip time has disappeared has restarted
                    **rfc = RfcReceiver::new(&self.config, packet.seq);
                }
                if self.config.frames {
                    let header = u64::from(self.config.header);
                    rfc.segment = (stats.wire_bytes / stats.packets).saturating_sub(header).max(1) as u32;
                }
                rfc.on_data(now, packet.seq, bytes, marked, data)
            }
            Measure::Ns2(ns2) => {
                if data.rtt == Span::ZERO && ns2.follows(packet.seq) {
                    **ns2 = Ns2Receiver::new(&self.config);
                }
                ns2.on_packet(now, packet, marked, data)
            }
        };
        if outcome.new {
            stats.bytes += bytes;
            self.stamp = packet.stamp;
            self.arrived_at = now;
        } else {
            stats.duplicates += 1;
        }
        if let Some(measured) = outcome.report {
            self.report(now, measured, out);
        }
        if outcome.new { Arrived { bytes, segments: 1 } } else { Arrived::default() }
    }

    /// Sends a due report; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        let measured = match &mut self.measure {
            Measure::Rfc(rfc) => rfc.on_timer(now),
            Measure::Ns2(ns2) => ns2.on_timer(now),
        };
        if let Some(measured) = measured {
            self.report(now, measured, out);
        }
    }

    fn report(&mut self, now: Time, measured: Measured, out: &mut impl Transmit) {
        self.stats.acks += 1;
        let report = TfrcReport {
            delay: now.since(self.arrived_at),
            receive_rate: measured.receive_rate,
            loss_event_rate: measured.loss_event_rate,
        };
        out.transmit(Segment {
            seq: measured.next,
            stamp: self.stamp,
            size: self.config.report_size,
            flags: Flags::ACK,
            extra: Some(Extra::TfrcReport(Subflow::ONLY, report)),
        });
    }
}

/// The receiver of RFC 5348 and RFC 3448.
#[derive(Debug)]
struct RfcReceiver {
    law: Law,
    /// b of the equation.
    per_ack: PerAck,
    /// s: for a video flow, the average of the received packets.
    segment: u32,
    /// The sender's first packet.
    first: u32,
    started: bool,
    gaps: Gaps,
    history: LossHistory,
    rate: ReceiveRate,
    /// The highest X_recv so far (section 6.3.1).
    largest: f64,
    /// R_m: the round-trip time in the newest packet's header; zero before the sender has a sample.
    rtt: Span,
    /// The feedback timer, and the R_m with which it was set, which is R_(m-1) when it expires next.
    due: Time,
    timed: Span,
    /// Packets have arrived since its last expiry.
    fresh: bool,
    /// When it expired with nothing to report; the next packet is reported at once.
    lapsed: Option<Time>,
    lost: Vec<Indication>,
}

impl RfcReceiver {
    fn new(config: &TfrcConfig, first: u32) -> RfcReceiver {
        let threshold = match (config.settings.discounting, config.settings.law) {
            (false, _) => 1.0,
            (true, Law::Rfc3448) => 0.5,
            (true, _) => 0.25,
        };
        RfcReceiver {
            law: config.settings.law,
            per_ack: config.settings.per_ack,
            segment: u32::from(config.segment.max(1)),
            first,
            started: false,
            gaps: Gaps::new(first, config.settings.ndupack),
            history: LossHistory::new(IntervalWeights { threshold, fewer: Fewer::InForTheOldest }),
            rate: ReceiveRate::new(),
            largest: 0.0,
            rtt: Span::ZERO,
            due: Time::NEVER,
            timed: Span::ZERO,
            fresh: false,
            lapsed: None,
            lost: Vec::new(),
        }
    }

    /// Section 6.1, and for the first packet 6.3.
    fn on_data(&mut self, now: Time, seq: u32, bytes: u64, marked: bool, data: &TfrcData) -> PacketOutcome {
        let next = self.gaps.next();
        let place = self.gaps.add(seq, now, &mut self.lost);
        match place {
            Place::Newest => self.rtt = data.rtt,
            Place::Late => {}
            Place::Known => {
                if !self.history.fill(seq) {
                    return PacketOutcome { new: false, report: None };
                }
            }
        }
        if let Some(from) = self.lapsed {
            self.rate.lapsed(from, self.timed, now);
        } else if self.started && self.due == Time::NEVER && self.rtt > Span::ZERO {
            // the sender has its first round-trip time, so the feedback timer starts
            self.rate.expired(now);
            self.set_timer(now);
        }
        self.rate.add(bytes);
        self.fresh = true;
        if marked {
            self.gaps.settle(seq, &mut self.lost);
            self.lost.push(Indication { start: seq, end: seq + 1, at: now, spacing: 0.0, marked: true });
        }
        let worse = !self.lost.is_empty() && self.losses(next, now);
        let first = !core::mem::replace(&mut self.started, true);
        let at_once = first || worse || self.lapsed.is_some() || self.rtt == Span::ZERO;
        let report = at_once.then(|| self.expire(now, self.timed));
        PacketOutcome { new: true, report }
    }

    /// Adds losses to the history; returns whether p has increased. `next`: its value before this packet.
    #[cold]
    fn losses(&mut self, next: u32, now: Time) -> bool {
        let before = self.history.loss_event_rate(next);
        let lost = core::mem::take(&mut self.lost);
        for &what in &lost {
            let made_up = if self.history.is_empty() { self.first_interval(what.start, now) } else { 0.0 };
            self.history.add(what, self.rtt, made_up);
        }
        self.lost = lost;
        self.lost.clear();
        self.history.loss_event_rate(self.gaps.next()) > before
    }

    /// Section 6.3.1: the interval for which the equation gives the receive rate.
    fn first_interval(&self, start: u32, now: Time) -> f64 {
        // the equation in packets per round-trip time does not depend on the round-trip time
        let rtt = self.rtt.max(Span::from_micros(1));
        let Some(terms) = Terms::new(self.segment, rtt, rtt * 4) else { return 1.0 };
        let terms = terms.covering(self.per_ack);
        let now = self.rate.rate(now, self.timed);
        // a packet in two round-trip times: the minimum, and the only estimate if the first packet was lost or marked
        let min_rate = 0.5 * terms.segment() / terms.rtt();
        let target = match self.law {
            Law::Rfc3448 => now,
            _ if start == self.first => min_rate,
            _ => self.largest.max(now).max(min_rate),
        };
        1.0 / terms.loss_event_rate(target)
    }

    /// Section 6.2, steps 1 to 4; X_recv is measured over at least `span`.
    fn expire(&mut self, now: Time, span: Span) -> Measured {
        let receive_rate = match self.law {
            Law::Rfc3448 => self.rate.rate(now, Span(1)), // since the last report
            _ => self.rate.rate(now, span),
        };
        self.largest = self.largest.max(receive_rate);
        self.rate.expired(now);
        self.fresh = false;
        self.lapsed = None;
        self.set_timer(now);
        let next = self.gaps.next();
        Measured { next, receive_rate, loss_event_rate: self.history.loss_event_rate(next) }
    }

    /// Section 6.2, step 4; without a round-trip time there is no timer (section 6.3).
    fn set_timer(&mut self, now: Time) {
        self.timed = self.rtt;
        self.due = if self.rtt > Span::ZERO { now + self.rtt } else { Time::NEVER };
    }

    fn on_timer(&mut self, now: Time) -> Option<Measured> {
        if now < self.due {
            return None;
        }
        if self.fresh {
            // on time: measure since the previous expiry, one round-trip time ago
            return Some(self.expire(now, Span::ZERO));
        }
        // the next packet is reported at once (section 6.1 step 3)
        self.lapsed = Some(self.due);
        self.due = Time::NEVER;
        None
    }
}

#[cfg(test)]
mod tests;

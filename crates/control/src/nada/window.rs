//! NADA's measurements: delays, rates and shares over the last LOGWIN; minimum delay and loss intervals over the whole
//! session (RFC 8698 section 5.1).

use crate::rtp::{Fate, PacketResult};
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// LOGWIN.
const LOGWIN: Span = Span::from_millis(500);
/// The queueing delay is the minimum of this many samples (section 5.1.1).
const TAPS: usize = 15;
/// Weights of the loss intervals, newest first (RFC 5348 section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Shares of packets within LOGWIN: lost among all, marked among those received.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Shares {
    pub(super) loss: f64,
    pub(super) mark: f64,
}

/// A packet within LOGWIN.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// When feedback reported it.
    reported: Time,
    bits: f64,
    lost: bool,
    marked: bool,
    /// Its one-way delay by both ends' clocks, in seconds.
    delay: Option<f64>,
}

/// The measurements.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    started: Time,
    seen: VecDeque<Seen>,
    /// d_base, in seconds by both ends' clocks.
    base: Option<f64>,
    /// Packets since the last loss event, including that event; before the first, all packets.
    running: f64,
    /// The earlier intervals, newest first.
    pub(super) closed: VecDeque<f64>,
    /// When the first packet of the last loss event was sent.
    event: Option<Time>,
}

impl Window {
    /// Starts a session.
    pub(super) fn start(&mut self, now: Time) {
        *self = Window { started: now, ..Window::default() };
    }

    /// Handles feedback.
    pub(super) fn feedback(&mut self, packets: &[PacketResult], rtt: f64, now: Time) -> Shares {
        for packet in packets {
            self.packet(packet, rtt, now);
        }
        while self.seen.front().is_some_and(|oldest| now.since(oldest.reported) >= LOGWIN) {
            self.seen.pop_front();
        }
        let count = |of: fn(&Seen) -> bool| self.seen.iter().filter(|seen| of(seen)).count() as f64;
        let (lost, marked) = (count(|seen| seen.lost), count(|seen| seen.marked));
        let all = self.seen.len() as f64;
        Shares { loss: lost / all.max(1.0), mark: marked / (all - lost).max(1.0) }
    }

    fn packet(&mut self, packet: &PacketResult, rtt: f64, now: Time) {
        let bits = packet.size().bits() as f64;
        match packet.fate {
            Fate::Arrived { at, marked } => {
                let delay = at.map(|at| (at.0 as i128 - packet.sent.0 as i128) as f64 / 1e9);
                self.base = delay.map_or(self.base, |delay| Some(self.base.map_or(delay, |base| base.min(delay))));
                self.running += 1.0;
                self.seen.push_back(Seen { reported: now, bits, lost: false, marked, delay });
            }
            Fate::Lost => {
                self.loss(packet.sent, rtt);
                self.seen.push_back(Seen { reported: now, bits, lost: true, marked: false, delay: None });
            }
            Fate::Unknown => {}
        }
    }

    /// Losses within a round-trip time of the first are one event (RFC 5348 section 5.2).
    fn loss(&mut self, sent: Time, rtt: f64) {
        let same = self.event.is_some_and(|event| sent.since(event).as_secs_f64() <= rtt);
        if same {
            self.running += 1.0;
            return;
        }
        self.event = Some(sent);
        self.closed.push_front(core::mem::replace(&mut self.running, 1.0).max(1.0));
        self.closed.truncate(WEIGHTS.len());
    }

    /// loss_int in packets: the weighted mean of the completed intervals; `None` before the first loss.
    pub(super) fn loss_interval(&self) -> Option<f64> {
        let weighted: f64 = self.closed.iter().zip(WEIGHTS).map(|(interval, weight)| interval * weight).sum();
        let weights: f64 = WEIGHTS[..self.closed.len()].iter().sum();
        (weights > 0.0).then(|| weighted / weights)
    }

    /// The share of the queueing delay to be warped (section 4.2): all of it until loss_exp after the last loss, then
    /// decreasing over loss_int.
    pub(super) fn warped_share(&self) -> f64 {
        self.loss_interval().map_or(0.0, |interval| (super::MULTILOSS + 1.0 - self.running / interval).clamp(0.0, 1.0))
    }

    /// d_queue in seconds: the minimum of the last samples, minus d_base; `None` before the first.
    pub(super) fn queueing(&self) -> Option<f64> {
        let last = self.seen.iter().rev().filter_map(|seen| seen.delay).take(TAPS);
        Some(last.reduce(f64::min)? - self.base?)
    }

    /// The maximum queueing delay of a packet within LOGWIN, in seconds.
    pub(super) fn longest_queueing(&self) -> f64 {
        let max_delay = self.seen.iter().filter_map(|seen| seen.delay).reduce(f64::max);
        max_delay.zip(self.base).map_or(0.0, |(max_delay, base)| max_delay - base)
    }

    /// r_recv in bits per second: received within LOGWIN, or since the start of a shorter session.
    pub(super) fn receive_rate(&self, now: Time) -> f64 {
        let bits: f64 = self.seen.iter().filter(|seen| !seen.lost).map(|seen| seen.bits).sum();
        let young = now.since(self.started).min(LOGWIN).as_secs_f64();
        if young > 0.0 { bits / young } else { 0.0 }
    }
}

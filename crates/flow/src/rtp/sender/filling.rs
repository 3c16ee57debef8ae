//! Packets that leave beside the pace: clusters by which a controller probes the path, and fillers that keep it used.
//!
//! A filler is an RTP packet of a payload type of its own ([`paceline_packet::rtp::RtpData::FILLER`]), whose payload is zeros: it stands for what a
//! sender of media would send again to fill a gap. The receiver counts it, and hands it to nobody.

use super::{Outgoing, RtpSender, SentPacket};
use crate::Transmit;
use crate::pacer::MAX_PACKETS_PER_CALL;
use paceline_control::{MediaController, Probe};
use paceline_packet::rtp::RtpData;
use paceline_units::{Size, Span, Time};
use std::collections::VecDeque;

/// So many clusters wait at most: one that is asked for beyond them is left out.
const MOST_PROBES: usize = 16;

/// What is to be sent beside the pace.
#[derive(Debug)]
pub(super) struct Filling {
    /// Clusters, the one under way first.
    probes: VecDeque<Probe>,
    /// Of that one: when it began, and what of it has left.
    begun: Option<Time>,
    packets: u32,
    bytes: u64,
    /// When the next packet beside the pace is due.
    due: Time,
    /// The host's interface takes none before.
    full: Time,
}

impl Default for Filling {
    fn default() -> Filling {
        Filling { probes: VecDeque::new(), begun: None, packets: 0, bytes: 0, due: Time::NEVER, full: Time::ZERO }
    }
}

impl Filling {
    /// When something is due; never if nothing is.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// When the next packet of the cluster under way is due: its bytes so far, at its rate, after its beginning.
    fn next(&self, now: Time) -> Option<Time> {
        let probe = self.probes.front()?;
        let Some(begun) = self.begun else { return Some(now) };
        Some(begun + Span::from_secs_f64(self.bytes as f64 * 8.0 / probe.rate.bps().max(1.0)))
    }

    /// A packet of the cluster under way leaves.
    pub(super) fn count(&mut self, now: Time, size: u16) {
        let Some(probe) = self.probes.front() else { return };
        self.begun.get_or_insert(now);
        self.packets += 1;
        self.bytes += u64::from(size);
        if self.packets >= probe.packets && self.bytes >= probe.bytes.bytes() {
            self.probes.pop_front();
            (self.begun, self.packets, self.bytes) = (None, 0, 0);
        }
    }
}

impl RtpSender {
    /// Asks the controller for clusters.
    #[inline]
    pub(super) fn ask(&mut self, now: Time) {
        while let Some(probe) = self.controller.next_probe() {
            if self.filling.probes.len() < MOST_PROBES {
                self.filling.probes.push_back(probe);
            }
        }
        self.wait_to_fill(now);
    }

    /// Finds when something is next due beside the pace. Nothing is before the application has written.
    #[inline]
    pub(super) fn wait_to_fill(&mut self, now: Time) {
        let rate = self.controller.filling();
        if self.filling.probes.is_empty() && rate <= 0.0 {
            self.filling.due = Time::NEVER;
            return;
        }
        if !self.sends() || self.is_over() || self.supply.end() == self.first {
            return;
        }
        let due = match self.filling.next(now) {
            Some(next) => next,
            // a filler is due once the last packet's gap at the filling rate is over
            None if !self.is_left() && self.is_open() => self.pacer.last() + Span::from_secs_f64(self.paced / rate),
            None => Time::NEVER,
        };
        self.filling.due = due.max(self.filling.full);
    }

    /// What was due by now has left: nothing more is before the clock has gone on.
    #[inline]
    pub(super) fn filled(&mut self, now: Time) {
        self.wait_to_fill(now);
        self.filling.due = self.filling.due.max(now + Span(1));
    }

    /// Sends what is due beside the pace.
    #[inline]
    pub(super) fn fill(&mut self, now: Time, out: &mut impl Transmit) {
        self.wait_to_fill(now);
        if self.filling.due <= now {
            self.fill_up(now, out);
        }
    }

    #[cold]
    fn fill_up(&mut self, now: Time, out: &mut impl Transmit) {
        for _ in 0..MAX_PACKETS_PER_CALL {
            if self.filling.due > now {
                return;
            }
            if let Some(until) = out.full_until() {
                self.filling.full = until.max(now + Span(1));
                return self.wait_to_fill(now);
            }
            let probe = self.filling.probes.front().map(|probe| probe.id);
            if self.is_left() && self.hands_over(probe) {
                return;
            }
            let size = if self.is_left() { self.send(now, probe, out) } else { self.filler(now, probe, out) };
            self.left(now, size, Span::ZERO, probe);
            self.wait_to_fill(now);
        }
        self.filling.full = now + Span(1);
        self.wait_to_fill(now);
    }

    /// A packet that carries nothing leaves.
    fn filler(&mut self, now: Time, probe: Option<u32>, out: &mut impl Transmit) -> u16 {
        let (number, size) = (self.supply.pass() + self.aside, self.config.wire());
        let packet = SentPacket { number, size: Size::from_bytes(size.into()), probe, ..SentPacket::default() };
        let what = Outgoing { captured: now, payload_type: RtpData::FILLER, marker: false, original: None };
        self.emit(now, what, packet, out);
        size
    }
}

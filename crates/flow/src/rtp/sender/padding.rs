//! Packets sent outside the pace: probe clusters, and padding that keeps the path busy.
//!
//! A padding packet is an RTP packet with its own payload type ([`paceline_packet::rtp::RtpData::FILLER`]) and zeros as
//! payload. It stands for media that a real sender would repeat to fill a gap. The receiver counts it and does not
//! deliver it.

use super::{Outgoing, RtpSender, SentPacket};
use crate::Transmit;
use crate::pacer::MAX_PACKETS_PER_CALL;
use paceline_control::{MediaController, Probe};
use paceline_packet::rtp::RtpData;
use paceline_units::{Size, Span, Time};
use std::collections::VecDeque;

/// Maximum number of clusters that wait; further ones are dropped.
const MAX_PROBES: usize = 16;

/// Packets to be sent outside the pace.
#[derive(Debug)]
pub(super) struct Filling {
    /// Clusters, the current one first.
    probes: VecDeque<Probe>,
    /// For the current cluster: when it began, and the packets and bytes sent.
    begun: Option<Time>,
    packets: u32,
    bytes: u64,
    /// When the next packet outside the pace is due.
    due: Time,
    /// The host's interface accepts none before this time.
    full: Time,
}

impl Default for Filling {
    fn default() -> Filling {
        Filling { probes: VecDeque::new(), begun: None, packets: 0, bytes: 0, due: Time::NEVER, full: Time::ZERO }
    }
}

impl Filling {
    /// When the next packet is due; `NEVER` if there is none.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// When the next packet of the current cluster is due: the time that its bytes so far take at its rate, after its
    /// beginning.
    fn next(&self, now: Time) -> Option<Time> {
        let probe = self.probes.front()?;
        let Some(begun) = self.begun else { return Some(now) };
        Some(begun + Span::from_secs_f64(self.bytes as f64 * 8.0 / probe.rate.bps().max(1.0)))
    }

    /// Counts a sent packet of the current cluster.
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
    /// Fetches probe clusters from the controller.
    #[inline]
    pub(super) fn fetch_probes(&mut self, now: Time) {
        while let Some(probe) = self.controller.next_probe() {
            if self.filling.probes.len() < MAX_PROBES {
                self.filling.probes.push_back(probe);
            }
        }
        self.wait_to_fill(now);
    }

    /// Schedules the next packet outside the pace; there is none before the application has written.
    #[inline]
    pub(super) fn wait_to_fill(&mut self, now: Time) {
        let rate = self.controller.padding_rate();
        if self.filling.probes.is_empty() && rate <= 0.0 {
            self.filling.due = Time::NEVER;
            return;
        }
        if !self.sends() || self.is_over() || self.supply.end() == self.first {
            return;
        }
        let due = match self.filling.next(now) {
            Some(next) => next,
            // padding is due when the last packet's gap at the padding rate is over
            None if !self.is_left() && self.is_open() => self.pacer.last() + Span::from_secs_f64(self.paced / rate),
            None => Time::NEVER,
        };
        self.filling.due = due.max(self.filling.full);
    }

    /// Packets due by now have been sent: schedules the next one later than now.
    #[inline]
    pub(super) fn filled(&mut self, now: Time) {
        self.wait_to_fill(now);
        self.filling.due = self.filling.due.max(now + Span(1));
    }

    /// Sends due packets outside the pace.
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

    /// Sends a padding packet.
    fn filler(&mut self, now: Time, probe: Option<u32>, out: &mut impl Transmit) -> u16 {
        let (number, size) = (self.supply.pass() + self.aside, self.config.wire());
        let packet = SentPacket { number, size: Size::from_bytes(size.into()), probe, ..SentPacket::default() };
        let what = Outgoing { captured: now, payload_type: RtpData::FILLER, marker: false, original: None };
        self.emit(now, what, packet, out);
        size
    }
}

//! Vegas' own recovery: fine-grained timeouts, looked at on duplicates.
//!
//! Source: Brakmo and Peterson, IEEE JSAC 13(8), 1995, section 3.1; the details are those of `tcp-vegas.cc` of
//! ns-2.35, which under `rfc` differ only in the coarse timer (no backing off at a fast retransmission).

use super::sender::{Action, DUPLICATES, TcpSender};
use crate::Transmit;
use paceline_control::{Controller, Profile, TcpEvent};
use paceline_packet::Packet;
use paceline_units::{Span, Time};

/// The fine-grained timeout and what belongs to it.
#[derive(Debug, Default)]
pub(super) struct FineTimer {
    /// 8 x smoothed round-trip time and 4 x variation, in seconds (`v_sa_`, `v_sd_`); none before the first sample.
    smoothed: Option<(f64, f64)>,
    /// The timeout in seconds.
    timeout: f64,
    /// So many of the next acknowledgements look at the timer again.
    worried: u32,
    /// When the window was last cut: a segment sent before says nothing about the new window.
    cut_at: Option<Time>,
}

impl FineTimer {
    fn begin(&mut self, rtt: f64) {
        self.smoothed = Some((8.0 * rtt, rtt));
        self.timeout = (2.0 * rtt + rtt) / 2.0;
    }

    /// Gains of 1/8 and 1/4; the timeout is srtt + 4 x variation, halved out of the scaling, and a sixteenth more.
    fn sample(&mut self, rtt: f64) {
        let Some((sa, sd)) = &mut self.smoothed else { return };
        let error = rtt - *sa / 8.0;
        *sa += error;
        *sd += error.abs() - *sd / 4.0;
        self.timeout = (*sa / 4.0 + *sd) / 2.0;
        self.timeout += self.timeout / 16.0;
    }

    /// Whether no acknowledgement needs to look at the timer.
    pub(super) fn is_calm(&self) -> bool {
        self.worried == 0 && self.smoothed.is_some()
    }

    pub(super) fn window_changed(&mut self, now: Time) {
        self.cut_at = Some(now);
    }
}

impl TcpSender {
    fn fine(&mut self) -> &mut FineTimer {
        self.fine.get_or_insert_default()
    }

    /// Whether the first outstanding segment is older than the fine timeout.
    fn fine_expired(&self, now: Time) -> bool {
        let timeout = self.fine.as_ref().map_or(f64::INFINITY, |f| f.timeout);
        let entry = self.clock.as_ref().and_then(|c| c.get(self.una));
        self.una < self.max && entry.is_some_and(|(sent, _)| now.since(sent).as_secs_f64() >= timeout)
    }

    /// An acknowledgement, under Vegas' recovery.
    pub(super) fn on_ack_vegas(&mut self, now: Time, packet: &Packet, out: &mut impl Transmit) {
        if self.fine().smoothed.is_none() {
            let rtt = now.since(self.first_sent).as_secs_f64();
            self.fine().begin(rtt);
        }
        if packet.seq > self.una {
            self.vegas_new_ack(now, packet, out);
        } else if self.una < self.max {
            self.vegas_duplicate(now, out);
        }
        if self.dupacks == 0 || self.dupacks >= DUPLICATES {
            self.pump(now, u32::MAX, out);
        }
    }

    /// The common case: new data acknowledged, nothing lost of late. The left edge has moved already.
    #[inline]
    pub(super) fn vegas_in_order(&mut self, now: Time, segments: u32, in_flight: u32) {
        let una = self.una;
        let entry = self.clock.as_mut().and_then(|clock| {
            let entry = clock.get(una - 1);
            clock.trim(una);
            entry
        });
        let rtt = entry.filter(|e| e.1 == 1).map(|(sent, _)| now.since(sent));
        let path = self.path(now, in_flight);
        self.controller.on_feedback(&TcpEvent::Acked { segments, in_flight, rtt }, &path);
        if let (Some(rtt), Some(fine)) = (rtt.filter(|r| *r > Span::ZERO), &mut self.fine) {
            fine.sample(rtt.0 as f64 * 1e-9);
        }
    }

    fn vegas_new_ack(&mut self, now: Time, packet: &Packet, out: &mut impl Transmit) {
        let ns2 = self.config.profile == Profile::Ns2;
        if ns2 && self.una == self.base + 1 && self.config.handshake {
            let window = f64::from(self.config.initial_window);
            self.tell(TcpEvent::Established { window }, now);
        }
        if self.dupacks > DUPLICATES && (ns2 || self.action == Action::Duplicates) {
            self.tell(TcpEvent::Recovered { at_most: f64::INFINITY }, now);
        }
        let newest = packet.seq - 1;
        let entry = self.clock.as_ref().and_then(|c| c.get(newest));
        // the SYN is sent at instant 0 of ns-2's agent, which takes that for "never"
        let rtt = match entry {
            Some((sent, 1)) if newest != self.base => Some(now.since(sent)),
            _ => None,
        };
        self.new_ack(now, packet, rtt);
        if let Some(clock) = &mut self.clock {
            clock.trim(packet.seq);
        }
        if let Some(rtt) = rtt.filter(|r| *r > Span::ZERO) {
            self.fine().sample(rtt.0 as f64 * 1e-9);
        }
        // section 3.1: the first and second acknowledgement after a retransmission look at the timer too
        if self.fine().worried > 0 {
            self.fine().worried -= 1;
            if self.fine_expired(now) {
                self.dupacks = DUPLICATES;
                self.emit(now, self.una, out);
            } else {
                self.fine().worried = 0;
            }
        }
    }

    fn vegas_duplicate(&mut self, now: Time, out: &mut impl Transmit) {
        self.dupacks = self.dupacks.saturating_add(1);
        if !(self.fine_expired(now) || self.dupacks == DUPLICATES) {
            // after a timeout duplicates tell of what was sent again for nothing, and inflate no window
            let repairing = self.config.profile == Profile::Ns2 || self.action == Action::Duplicates;
            if self.dupacks > DUPLICATES && repairing {
                self.tell(TcpEvent::Duplicate, now);
            }
            return;
        }
        // what went out before the timeout must be acknowledged first; for ns-2 one more segment
        let ns2 = self.config.profile == Profile::Ns2;
        if self.action == Action::Timeout && (self.una < self.recover || ns2 && self.una == self.recover) {
            return;
        }
        let (sent, transmissions) = self.clock.as_ref().and_then(|c| c.get(self.una)).unwrap_or((now, 1));
        self.action = Action::Duplicates;
        self.recover = self.max;
        let outstanding = self.nxt - self.una + 1;
        let duplicates = self.dupacks;
        let fine = self.fine();
        fine.worried = outstanding.min(2);
        fine.timeout += if transmissions > 1 { fine.timeout } else { fine.timeout / 8.0 };
        if fine.cut_at.is_none_or(|cut| cut < sent) {
            fine.cut_at = Some(now);
            if !ns2 {
                self.reduced = self.max;
                self.cwr |= self.config.ecn;
            }
            self.tell(TcpEvent::Lost { duplicates, transmissions }, now);
        }
        if ns2 {
            let limits = self.limits();
            self.rtt.back_off(&limits);
        }
        self.set_timer(now);
        self.timing = false;
        self.stats.fast_retransmits += 1;
        self.emit(now, self.una, out);
        if transmissions == 1 {
            self.dupacks = DUPLICATES;
        }
    }
}

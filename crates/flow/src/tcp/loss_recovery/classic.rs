//! Loss recovery without selective acknowledgements: Tahoe, Reno, NewReno.
//!
//! Sources: RFC 5681 section 3.2, RFC 6582, RFC 3042; under `ns2` `tcp.cc`, `tcp-reno.cc` and `tcp-newreno.cc` of
//! ns-2.35.

use crate::Transmit;
use crate::tcp::PartialAcks;
use crate::tcp::connection::{Action, Connection, DUPLICATES, Phase};
use paceline_control::{Profile, Recovery, TcpEvent, Threshold};
use paceline_packet::Packet;
use paceline_units::Time;

impl Connection {
    /// Processes an acknowledgement that took no fast path.
    pub(super) fn on_ack_classic(&mut self, now: Time, packet: &Packet, out: &mut impl Transmit) {
        let ns2 = self.config.profile == Profile::Ns2;
        let newreno = self.config.recovery == Recovery::NewReno;
        if packet.seq > self.una {
            if newreno && self.phase == Phase::Recovery && packet.seq < self.recover {
                self.partial_ack(now, packet, out);
                // ns-2 still treats this as a duplicate and sends at most two segments
                return self.pump(now, if ns2 { 2 } else { u32::MAX }, out);
            }
            let recovered = self.phase == Phase::Recovery;
            if recovered {
                self.phase = Phase::Open;
                self.inflation = 0;
                self.partial = false;
                self.action = Action::Exited;
            }
            if recovered && !ns2 {
                self.full_ack(now, packet);
            } else {
                let rtt = packet.stamp.elapsed(now);
                self.new_ack(now, packet, Some(rtt));
            }
            return self.pump(now, u32::MAX, out);
        }
        if self.una == self.max {
            return; // nothing is outstanding, so it is not a duplicate ACK (RFC 5681 section 2)
        }
        self.dupacks = self.dupacks.saturating_add(1);
        if self.phase == Phase::Recovery {
            self.inflation += 1; // RFC 5681 section 3.2 step 4
        } else if self.dupacks == DUPLICATES {
            self.fast_retransmit(now, out);
        } else if self.dupacks < DUPLICATES && self.config.limited_transmit {
            self.limited_transmit(now, out);
        }
        if self.config.recovery == Recovery::Tahoe || self.dupacks >= DUPLICATES {
            self.pump(now, if ns2 && newreno { 2 } else { u32::MAX }, out);
        }
    }

    /// Handles the third duplicate ACK.
    fn fast_retransmit(&mut self, now: Time, out: &mut impl Transmit) {
        if self.profile == Profile::Ns2 {
            return self.fast_retransmit_ns2(now, out);
        }
        // RFC 6582 section 3.2 step 2; before the first recovery `recover` does not apply
        if self.una <= self.recover && self.recover > self.base {
            return;
        }
        let new = self.reduces();
        self.recover = self.max;
        self.action = Action::Duplicates;
        if self.config.recovery == Recovery::Tahoe {
            let threshold = if new { Threshold::Cut } else { Threshold::Keep };
            return self.begin_again(threshold, now);
        }
        if new {
            self.notify(TcpEvent::Lost { duplicates: 0, again: false }, now);
        }
        self.limited = 0;
        self.repair(now, out);
    }

    /// Tahoe: slow start from the lost segment; the caller's `pump` sends it.
    fn begin_again(&mut self, threshold: Threshold, now: Time) {
        self.stats.fast_retransmits += 1;
        self.notify(TcpEvent::Timeout(threshold), now);
        self.limited = 0;
        self.timing = false;
        self.nxt = self.una;
        self.set_timer(now);
    }

    fn fast_retransmit_ns2(&mut self, now: Time, out: &mut impl Transmit) {
        // once per window of data (bugFix_ and bugfix_ss_)
        if self.una <= self.recover && self.una != self.base + 1 {
            if self.action == Action::Ecn && self.config.recovery != Recovery::Tahoe {
                // a mark has just reduced the window: repair the loss without another reduction (RFC 3168 section
                // 6.1.2)
                self.action = Action::Duplicates;
                self.repair(now, out);
            }
            return;
        }
        self.recover = self.max;
        self.action = Action::Duplicates;
        if self.config.recovery == Recovery::Tahoe {
            return self.begin_again(Threshold::Cut, now);
        }
        self.notify(TcpEvent::Lost { duplicates: 0, again: false }, now);
        self.limited = 0;
        self.repair(now, out);
    }

    /// Retransmits the first outstanding segment and enters fast recovery.
    fn repair(&mut self, now: Time, out: &mut impl Transmit) {
        self.stats.fast_retransmits += 1;
        self.timing = false;
        self.set_timer(now);
        self.phase = Phase::Recovery;
        self.partial = false;
        self.emit(now, self.una, out);
        self.inflation = DUPLICATES;
    }

    /// RFC 6582 section 3.2 step 3, "partial acknowledgements".
    fn partial_ack(&mut self, now: Time, packet: &Packet, out: &mut impl Transmit) {
        let restart = self.config.partial_acks == PartialAcks::SlowButSteady || !self.partial;
        self.partial = true;
        if restart {
            self.set_timer(now);
        }
        let segments = self.advance(now, packet);
        // deflate by the number of acknowledged segments, then add one
        if self.inflation > segments {
            self.inflation -= segments - 1;
        } else {
            let segments = segments - self.inflation;
            self.inflation = 1;
            self.notify(TcpEvent::Deflate { segments }, now);
        }
        if self.timing && packet.seq > self.timed {
            if self.config.profile == Profile::Ns2 {
                self.timing = false;
                self.reset_backoff();
            } else {
                self.sample(now);
            }
        }
        self.emit(now, self.una, out);
    }

    /// RFC 6582 section 3.2 step 3, "full acknowledgements"; Reno ends recovery at the first new acknowledgement.
    fn full_ack(&mut self, now: Time, packet: &Packet) {
        self.take(now, packet);
        self.dupacks = 0;
        let at_most = f64::from((self.max - self.una).max(1)) + 1.0;
        self.notify(TcpEvent::Recovered { at_most }, now);
    }
}

//! The machine of ns-2's TCP-Linux: SACK with forward acknowledgement, rate halving, a time stamp in every segment.
//!
//! Source: the behaviour of `tcp-linux.cc` and `scoreboard1.cc` of ns-2.35 (Wei and Cao, "NS-2 TCP-Linux", WNS2
//! 2006), which follow Linux 2.6.22.

use super::scoreboard::{News, Scoreboard};
use super::sender::{Action, Phase, TcpSender};
use crate::Transmit;
use paceline_control::{Controller, TcpEvent, Threshold, WindowController};
use paceline_packet::{Flags, Packet, TcpOptions};
use paceline_units::Time;

/// `tcp_max_burst`: how far the window may exceed what is in flight when recovery ends.
const MAX_BURST: u32 = 3;

/// The scoreboard, and the rate halving.
#[derive(Default, Debug)]
pub(super) struct Linux {
    board: Scoreboard,
    /// While the rate is being halved: how many segments may be in flight (`next_pkts_in_flight_`).
    halving: u32,
    /// The window as ns-2 shows it: while the rate is being halved, what it has come down to.
    shown: u32,
}

impl TcpSender {
    fn linux(&mut self) -> &mut Linux {
        self.linux.get_or_insert_default()
    }

    fn in_flight_linux(&mut self) -> u32 {
        let (una, nxt) = (self.una, self.nxt);
        self.linux().board.in_flight(una, nxt)
    }

    /// An acknowledgement.
    pub(super) fn on_ack_linux(
        &mut self,
        now: Time,
        packet: &Packet,
        extra: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        let new = packet.seq > self.una;
        let before = self.in_flight_linux();
        let mut news = News { ambiguous: !new, ..News::default() };
        let segments = if new { self.advance(now, packet) } else { 0 };
        let (una, max) = (self.una, self.max);
        self.linux().board.update(una, max, extra, &mut news);
        self.time_linux(now, packet);

        // ns-2 keeps send times in seconds and takes 0 for "none"
        let sent = self.clock.as_ref().and_then(|c| c.get(packet.seq.wrapping_sub(1))).map(|e| e.0);
        let rtt = sent.filter(|t| new && !news.ambiguous && *t > Time::ZERO).map(|t| now.since(t));
        if let Some(clock) = &mut self.clock {
            clock.trim(una);
        }
        let echo = packet.flags.has(Flags::ECE) && self.config.ecn && una > self.base + 1;
        if new {
            let path = self.path(now, before);
            let grows =
                self.phase != Phase::Recovery && (!echo || self.controller.window() < self.controller.threshold());
            self.controller.on_feedback(
                &if grows {
                    TcpEvent::Acked { segments, in_flight: before, rtt }
                } else {
                    TcpEvent::Repaired { segments, rtt }
                },
                &path,
            );
        }
        if !new || news.sacked || echo || self.phase != Phase::Open {
            self.alert_linux(now, news.lost, echo);
        }
        self.pump_linux(now, out);
    }

    /// Each acknowledgement gives a round-trip sample and restarts the timer.
    fn time_linux(&mut self, now: Time, packet: &Packet) {
        let limits = self.limits();
        let echoed = packet.stamp.elapsed(now);
        self.rtt.sample(now, now - echoed, 0, &limits);
        if self.timing && packet.seq > self.timed {
            self.timing = false;
            self.rtt.settle(&limits);
        }
        self.set_timer(now);
    }

    /// `tcp_fastretrans_alert`: leaves recovery, or enters it.
    fn alert_linux(&mut self, now: Time, lost: bool, echo: bool) {
        if self.phase != Phase::Open && self.una >= self.recover {
            self.linux().board.clear();
            self.linux().halving = 0;
            self.phase = Phase::Open;
            self.action = Action::Exited;
            let at_most = f64::from(self.in_flight_linux() + MAX_BURST);
            self.tell(TcpEvent::Recovered { at_most }, now);
            return;
        }
        if self.phase == Phase::Recovery || !(lost || echo) {
            return;
        }
        self.recover = self.max;
        self.action = Action::Duplicates;
        self.cwr = self.config.ecn; // else the receiver would echo one mark for ever (RFC 3168 section 6.1.2)
        self.linux().halving = self.controller.window() as u32;
        self.phase = Phase::Recovery;
        if lost {
            self.stats.fast_retransmits += 1;
            self.tell(TcpEvent::Lost { duplicates: 0, transmissions: 1 }, now);
        } else {
            self.tell(TcpEvent::EcnEcho, now);
        }
    }

    /// The window as ns-2 shows it (`save_from_linux`, before sending).
    #[cold]
    pub(super) fn shown_linux(&self) -> f64 {
        let shown = self.linux.as_ref().map_or(0, |l| l.shown);
        self.controller.window().max(f64::from(shown))
    }

    /// Sends while less is in flight than the window, or than the halved rate still allows.
    pub(super) fn pump_linux(&mut self, now: Time, out: &mut impl Transmit) {
        let mut in_flight = self.in_flight_linux();
        let linux = self.linux();
        linux.shown = linux.halving;
        linux.halving = linux.halving.min(in_flight + 1);
        while in_flight < self.window().max(self.linux().halving) {
            if !self.may_send(now) {
                return;
            }
            let seq = match self.linux().board.next_lost() {
                Some(seq) => {
                    let nxt = self.nxt;
                    self.linux().board.sent_again(seq, nxt);
                    seq
                }
                None if self.nxt < self.limit.min(self.una.saturating_add(self.receive_window)) => {
                    self.nxt += 1;
                    self.nxt - 1
                }
                None => return,
            };
            self.emit(now, seq, out);
            in_flight = self.in_flight_linux();
            let linux = self.linux();
            linux.halving = linux.halving.min(in_flight.saturating_sub(1).max(1));
        }
    }

    /// The retransmission timer has expired: `enter_loss`, or idle.
    pub(super) fn expired_linux(&mut self, now: Time, out: &mut impl Transmit) {
        self.timing = false;
        self.action = Action::Timeout;
        self.linux().halving = 0;
        if self.una == self.max {
            let window = f64::from(self.config.initial_window);
            self.tell(TcpEvent::Idle { window }, now);
            self.timer = Time::NEVER;
        } else {
            self.count_timeout();
            self.tell(TcpEvent::Timeout(Threshold::Cut), now);
            self.cwr |= self.config.ecn;
            self.recover = self.max;
            self.phase = Phase::Loss;
            let (una, nxt) = (self.una, self.nxt);
            self.linux().board.all_lost(una, nxt);
            let limits = self.limits();
            self.rtt.back_off(&limits);
            self.set_timer(now);
        }
        self.pump_linux(now, out);
    }
}

//! The sender of ns-2's TCP-Linux: SACK with forward acknowledgement, rate halving, a timestamp in every segment.
//!
//! Source: the behaviour of `tcp-linux.cc` and `scoreboard1.cc` of ns-2.35 (Wei and Cao, "NS-2 TCP-Linux", WNS2
//! 2006), which follow Linux 2.6.22.

use super::fack::{Forward, News};
use crate::Transmit;
use crate::tcp::connection::{Action, Connection, Phase};
use paceline_control::{Controller, TcpEvent, Threshold, WindowController};
use paceline_packet::{Packet, TcpOptions};
use paceline_units::Time;

/// `tcp_max_burst`: how far the window may exceed the segments in flight when recovery ends.
const MAX_BURST: u32 = 3;

/// The state of loss detection and rate halving.
#[derive(Default, Debug)]
pub(in crate::tcp) struct Ns2Linux {
    forward: Forward,
    /// During rate halving: the number of segments that may be in flight (`next_pkts_in_flight_`).
    halving: u32,
    /// The window that ns-2 displays: during rate halving, its current value.
    shown: u32,
}

impl Ns2Linux {
    /// Processes an acknowledgement.
    pub(super) fn on_ack(
        &mut self,
        conn: &mut Connection,
        now: Time,
        packet: &Packet,
        options: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        let new = packet.seq > conn.una;
        let before = conn.sent.in_flight();
        let mut news = News { ambiguous: !new, ..News::default() };
        let segments = if new { conn.advance(now, packet) } else { 0 };
        let (una, max) = (conn.una, conn.max);
        let sent = conn.sent.get(packet.seq.wrapping_sub(1)).map(|(sent, _)| sent);
        self.forward.update(&mut conn.sent, (una, max), options, &mut news);
        time(conn, now, packet);

        // ns-2 stores transmission times in seconds, and 0 means "none"
        let rtt = sent.filter(|t| new && !news.ambiguous && *t > Time::ZERO).map(|t| now.since(t));
        let echo = conn.echo && una > conn.base + 1;
        if new {
            let path = conn.path(now, before);
            let grows =
                conn.phase != Phase::Recovery && (!echo || conn.controller.window() < conn.controller.threshold());
            conn.controller.on_feedback(
                &if grows {
                    TcpEvent::Acked { segments, in_flight: before, rtt }
                } else {
                    TcpEvent::Repaired { segments, rtt }
                },
                &path,
            );
        }
        if !new || news.sacked || echo || conn.phase != Phase::Open {
            self.alert(conn, now, news.lost, echo);
        }
        self.pump(conn, now, out);
    }

    /// `tcp_fastretrans_alert`: leaves or enters recovery.
    fn alert(&mut self, conn: &mut Connection, now: Time, lost: bool, echo: bool) {
        if conn.phase != Phase::Open && conn.una >= conn.recover {
            self.forward.recovered(&mut conn.sent);
            self.halving = 0;
            conn.phase = Phase::Open;
            conn.action = Action::Exited;
            let at_most = f64::from(conn.sent.in_flight() + MAX_BURST);
            conn.notify(TcpEvent::Recovered { at_most }, now);
            return;
        }
        if conn.phase == Phase::Recovery || !(lost || echo) {
            return;
        }
        conn.recover = conn.max;
        conn.action = Action::Duplicates;
        conn.cwr = conn.config.ecn.is_on(); // else the receiver would echo one mark for ever (RFC 3168 section 6.1.2)
        self.halving = conn.controller.window() as u32;
        conn.phase = Phase::Recovery;
        if lost {
            conn.stats.fast_retransmits += 1;
            conn.notify(TcpEvent::Lost { duplicates: 0, again: false }, now);
        } else {
            conn.notify(TcpEvent::EcnEcho, now);
        }
    }

    /// The window that ns-2 displays (`save_from_linux`, before sending).
    #[cold]
    pub(super) fn shown_window(&self, conn: &Connection) -> f64 {
        conn.controller.window().max(f64::from(self.shown))
    }

    /// Sends while fewer segments are in flight than the window, or than rate halving still allows.
    pub(super) fn pump(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        self.shown = self.halving;
        self.halving = self.halving.min(conn.sent.in_flight() + 1);
        while conn.sent.in_flight() < conn.window().max(self.halving) {
            if !conn.admits(now, out) {
                return;
            }
            let edge = conn.limit.min(conn.una.saturating_add(conn.receive_window));
            if let Some(seq) = conn.sent.next_lost() {
                conn.emit(now, seq, out);
                self.forward.sent_again(&conn.sent, seq, conn.nxt);
            } else if conn.nxt < edge {
                conn.nxt += 1;
                conn.emit(now, conn.nxt - 1, out);
            } else {
                return;
            }
            self.halving = self.halving.min(conn.sent.in_flight().saturating_sub(1).max(1));
        }
    }

    /// Handles the expired retransmission timer: `enter_loss`, or idle.
    pub(super) fn expired(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        conn.timing = false;
        conn.action = Action::Timeout;
        self.halving = 0;
        if conn.una == conn.max {
            let window = f64::from(conn.config.initial_window);
            conn.notify(TcpEvent::Idle { window }, now);
            conn.timer = Time::NEVER;
        } else {
            conn.count_timeout();
            conn.notify(TcpEvent::Timeout(Threshold::Cut), now);
            conn.cwr |= conn.config.ecn.is_on();
            conn.recover = conn.max;
            conn.phase = Phase::Loss;
            self.forward.all_lost(&mut conn.sent, conn.nxt);
            let limits = conn.limits();
            conn.rtt.back_off(&limits);
            conn.set_timer(now);
        }
        self.pump(conn, now, out);
    }
}

/// Takes a round-trip time sample from the acknowledgement, and restarts the timer.
fn time(conn: &mut Connection, now: Time, packet: &Packet) {
    let limits = conn.limits();
    let echoed = packet.stamp.elapsed(now);
    conn.rtt.sample(now, now - echoed, 0, &limits);
    if conn.timing && packet.seq > conn.timed {
        conn.timing = false;
        conn.rtt.reset_backoff(&limits);
    }
    conn.set_timer(now);
}

//! Profile `linux`: sending, the three uses of the timer, and tail loss probes (RFC 8985 section 7).

use super::{Linux, News, State};
use crate::Transmit;
use crate::tcp::connection::Connection;
use paceline_control::{Profile, TcpEvent};
use paceline_units::{Span, Time};

/// The action for which the one timer is set (`icsk_pending`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pending {
    Nothing,
    /// RFC 6298.
    Retransmission,
    /// RFC 8985 section 7.3.
    Probe,
    /// RFC 8985 section 6.2 step 5.
    Reordering,
}

/// `TCP_TIMEOUT_MIN`: two clock ticks that the kernel adds to short timeouts.
const TICKS: Span = Span::from_millis(2);

/// The probe of the current episode (RFC 8985 section 7.1).
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// One past the highest segment sent when the probe left (TLP.end_seq).
    end: Option<u32>,
    /// It is a retransmission (TLP.is_retrans).
    repeats: bool,
}

impl Probe {
    pub(super) fn forget(&mut self) {
        self.end = None;
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_none()
    }
}

/// The probe timeout: 2 SRTT, plus the maximum acknowledgement delay if only one segment is outstanding (RFC 8985
/// section 7.2, WCDelAckT). The kernel uses the minimum retransmission timeout for that delay.
fn probe_timeout(srtt: Span, out: u32, delay: Span) -> Span {
    srtt * 2 + if out == 1 { delay } else { TICKS }
}

impl Linux {
    pub(super) fn arm(&mut self, conn: &mut Connection, pending: Pending, at: Time) {
        self.pending = pending;
        conn.timer = at;
    }

    /// `tcp_rearm_rto`: counts from now; or from the first segment's transmission, if the timer had another use
    /// meanwhile.
    pub(super) fn rearm(&mut self, conn: &mut Connection, now: Time) {
        if conn.una == conn.max {
            return self.arm(conn, Pending::Nothing, Time::NEVER);
        }
        let other = matches!(self.pending, Pending::Probe | Pending::Reordering);
        let from = conn.sent.head().filter(|_| other).map_or(now, |(sent, _)| sent);
        self.arm(conn, Pending::Retransmission, (from + conn.rto).max(now + Span::from_millis(1)));
    }

    /// Section 7.2: schedules a probe in 2 SRTT, unless a recovery is under way or segments are SACKed. `restarted`: an
    /// acknowledgement has just restarted the retransmission timer. Returns whether the probe is set.
    #[inline(always)]
    pub(super) fn schedule_probe(&mut self, conn: &mut Connection, now: Time, restarted: bool) -> bool {
        let calm = matches!(self.state, State::Open | State::Cwr) && conn.sent.sacked() == 0;
        if !calm || conn.una == conn.max || conn.una == conn.base {
            return false;
        }
        let srtt = conn.rtt.srtt();
        let timeout = match srtt {
            Span::ZERO => conn.config.initial_rto,
            _ if conn.profile == Profile::Linux => probe_timeout(srtt, conn.sent.out(), conn.config.min_rto),
            _ => probe_timeout(srtt, conn.sent.out(), conn.config.delayed_ack.unwrap_or_default()),
        };
        let from = conn.sent.head().filter(|_| !restarted).map_or(now, |(sent, _)| sent);
        // no later than the retransmission timer
        let at = (now + timeout).min((from + conn.rto).max(now + Span::from_millis(1)));
        self.arm(conn, Pending::Probe, at);
        true
    }

    /// Section 7.3: sends one new segment if there is one, regardless of the window; otherwise the last one again. One
    /// probe per episode.
    fn send_probe(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        if self.probe.end.is_none() {
            let fresh = conn.nxt < conn.limit.min(conn.una.saturating_add(conn.receive_window));
            let seq = if fresh { conn.nxt } else { conn.max - 1 };
            conn.nxt = conn.nxt.max(seq + 1);
            self.send(conn, now, seq, out);
            self.probe.repeats = !fresh;
            self.probe.end = Some(conn.max);
            self.pending = Pending::Nothing;
        }
        self.rearm(conn, now);
    }

    /// Section 7.4.2: evaluates an acknowledgement for the probe. `blocks`: it carries SACK blocks.
    pub(super) fn probe_acked(&mut self, conn: &mut Connection, now: Time, ack: u32, blocks: bool, news: &News) {
        let Some(end) = self.probe.end.filter(|&end| ack >= end) else { return };
        if !self.probe.repeats || news.dsack.is_some_and(|d| d == end) {
            self.probe.forget(); // new data was delivered; or both the segment and its retransmission were: no loss
        } else if ack > end {
            // the probe repaired a loss: reduce once, immediately
            self.begin_reduction(conn, now, TcpEvent::Lost { duplicates: 0, again: false });
            self.undo.marker = None;
            self.end_reduction(conn, now);
        } else if !news.acked && !blocks {
            self.probe.forget(); // a duplicate without SACK: both have arrived
        }
    }

    fn send(&mut self, conn: &mut Connection, now: Time, seq: u32, out: &mut impl Transmit) {
        let again = seq < conn.max;
        conn.emit(now, seq, out);
        if again {
            // segments are timed when they leave the host
            self.undo.stamp.get_or_insert(out.left(now));
            self.undo.retransmissions = Some(self.undo.retransmissions.unwrap_or(0) + 1);
        }
        if let Some(prr) = &mut self.prr {
            prr.out += 1;
        }
    }

    /// [`Linux::pump`], without the call if the window is full or the pacer's gap is not over.
    #[inline(always)]
    pub(super) fn pump_if_due(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) -> bool {
        if conn.sent.in_flight() >= self.window(conn) {
            self.validate(conn, now, true);
            return false;
        }
        if let Some(due) = conn.paced_until(now) {
            conn.delayed_send = due;
            return false;
        }
        self.pump(conn, now, out)
    }

    /// Sends while the window exceeds the segments in flight: lost segments first, then new data. Returns whether new
    /// data was sent.
    #[inline(never)]
    pub(in crate::tcp) fn pump(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) -> bool {
        if conn.una == conn.base && conn.max > conn.base && conn.config.handshake {
            return false; // no data before the SYN's acknowledgement, even if the window, as Prague's, exceeds the SYN
        }
        let window = self.window(conn);
        let (mut new, mut is_cwnd_limited) = (false, true);
        while conn.sent.in_flight() < window {
            if !conn.admits(now, out) {
                is_cwnd_limited = false;
                break;
            }
            if let Some(seq) = conn.sent.next_lost() {
                self.send(conn, now, seq, out);
                if seq == conn.una && self.pending != Pending::Reordering {
                    self.arm(conn, Pending::Retransmission, now + conn.rto);
                }
                continue;
            }
            if conn.nxt >= conn.limit.min(conn.una.saturating_add(conn.receive_window)) {
                is_cwnd_limited = false;
                break;
            }
            let first = conn.una == conn.max;
            if first && conn.max > conn.base {
                let app_limited = conn.delivery.as_ref().is_none_or(|d| d.is_app_limited());
                conn.notify(TcpEvent::Resumed { idle: now.since(conn.last_sent), app_limited }, now);
            }
            conn.put_new(now, out);
            if let Some(prr) = &mut self.prr {
                prr.out += 1;
            }
            if first {
                self.arm(conn, Pending::Retransmission, now + conn.rto);
            }
            new = true;
        }
        if new || is_cwnd_limited {
            self.validate(conn, now, is_cwnd_limited);
        }
        // The kernel restarts the retransmission timer with each new segment if a probe was due; doing it with the last
        // is enough.
        if new && !self.schedule_probe(conn, now, false) && self.pending == Pending::Probe {
            self.rearm(conn, now);
        }
        new
    }

    /// Handles the expired timer.
    pub(in crate::tcp::loss_recovery) fn expired(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        if conn.una == conn.max {
            self.arm(conn, Pending::Nothing, Time::NEVER);
        } else {
            match self.pending {
                Pending::Probe => self.send_probe(conn, now, out),
                Pending::Reordering => {
                    let (again, _) = self.detect(conn, now);
                    if conn.sent.lost() > 0 || again > 0 {
                        self.recover_by_timer(conn, now);
                    }
                    self.rearm(conn, now);
                }
                Pending::Retransmission | Pending::Nothing => self.timed_out(conn, now, out),
            }
        }
        self.pump(conn, now, out);
    }

    /// RFC 6298 section 5.
    fn timed_out(&mut self, conn: &mut Connection, now: Time, out: &mut impl Transmit) {
        conn.count_timeout();
        let limits = conn.limits();
        if conn.una == conn.base && conn.config.handshake {
            self.timeouts += 1;
            self.send(conn, now, conn.una, out); // the SYN; there is no window to reduce yet
        } else {
            self.enter_loss(conn, now);
        }
        conn.rtt.back_off(&limits);
        conn.set_timer(now);
        self.pending = Pending::Retransmission;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_8985_7_2_probe_timeout() {
        let (srtt, delay) = (Span::from_millis(50), Span::from_millis(200));
        assert_eq!(probe_timeout(srtt, 10, delay), Span::from_millis(102));
        assert_eq!(probe_timeout(srtt, 1, delay), Span::from_millis(300));
    }
}

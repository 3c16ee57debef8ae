//! Recoveries begin, continue, are undone and end here (`tcp_fastretrans_alert`).
//!
//! Sources: RFC 8985 section 6 (losses, timeouts), RFC 6937 (reduction), RFC 3522 and RFC 4015 (undo by timestamps),
//! RFC 3708 (undo by DSACKs), RFC 3168 section 6.1.2 (marks).

use super::tlp::Pending;
use super::{Linux, News, State, Undo};
use crate::tcp::connection::{Action, Connection};
use crate::tcp::loss_recovery::prr::Prr;
use paceline_control::{TcpEvent, Threshold, WindowController};
use paceline_packet::Stamp;
use paceline_units::{Span, Time};

impl Linux {
    /// Processes an acknowledgement that is not plainly in order. `before`: `una` before it.
    pub(super) fn alert(&mut self, conn: &mut Connection, now: Time, before: u32, news: &mut News) {
        if news.echo {
            self.undo.before = None; // a reduction for a mark is not undone
        }
        if self.state == State::Open {
            self.undo.stamp = None;
        } else if conn.una >= self.high_seq {
            match self.state {
                // data beyond `high_seq` must be acknowledged, so that CWR has arrived
                State::Cwr if conn.una != self.high_seq => self.end_reduction(conn, now),
                State::Recovery => {
                    self.try_undo(conn, now);
                    self.end_reduction(conn, now);
                    self.rack.recovered();
                }
                _ => {}
            }
        }
        self.count_dsack(conn, before, news);
        match self.state {
            State::Recovery => {
                if news.acked && self.try_undo_partial(conn, now) {
                    return;
                }
                if self.undo.retransmissions == Some(0) && self.try_undo(conn, now) {
                    self.keep_open(conn);
                }
                self.find_losses(conn, now, news);
                if self.state != State::Recovery && conn.sent.lost() > 0 {
                    self.enter_recovery(conn, now, news.echo);
                }
            }
            State::Loss => {
                if news.acked && self.try_undo(conn, now) {
                    self.keep_open(conn);
                } else if conn.una >= self.high_seq {
                    self.state = State::Open;
                    conn.inflation = 0;
                    self.rack.recovered();
                    conn.notify(TcpEvent::Recovered { at_most: conn.controller.window() }, now);
                    self.undo = Undo::default();
                    self.keep_open(conn);
                }
                self.find_losses(conn, now, news);
                if self.state < State::Cwr || news.lost_again {
                    self.open_or_recover(conn, now, news);
                }
            }
            _ => {
                if self.state <= State::Disorder && self.undo.retransmissions == Some(0) {
                    self.try_undo(conn, now);
                }
                self.find_losses(conn, now, news);
                self.open_or_recover(conn, now, news);
            }
        }
    }

    /// `tcp_time_to_recover`, `tcp_try_to_open`.
    fn open_or_recover(&mut self, conn: &mut Connection, now: Time, news: &mut News) {
        if conn.sent.lost() > 0 {
            return self.enter_recovery(conn, now, news.echo);
        }
        if news.echo && self.state < State::Cwr {
            conn.cwr = true;
            self.begin_reduction(conn, now, TcpEvent::EcnEcho);
            conn.action = Action::Ecn;
            self.undo.marker = None;
            self.state = State::Cwr;
        } else if self.state < State::Cwr {
            self.keep_open(conn);
        }
    }

    /// `tcp_try_keep_open`: no segment is lost, but some may be SACKed or retransmitted.
    #[inline]
    pub(super) fn keep_open(&mut self, conn: &Connection) {
        let again = conn.sent.retransmitted() > 0 || conn.sent.head().is_some_and(|(_, ever)| ever);
        let state = if conn.sent.sacked() + conn.sent.lost() > 0 || again { State::Disorder } else { State::Open };
        if state != self.state {
            self.state = state;
            self.high_seq = conn.max;
        }
    }

    /// `tcp_identify_packet_loss`.
    #[inline(always)]
    pub(super) fn find_losses(&mut self, conn: &mut Connection, now: Time, news: &mut News) {
        if !self.rack.advanced {
            return;
        }
        let before = conn.sent.lost();
        let (again, wait) = self.detect(conn, now);
        news.lost += (conn.sent.lost() - before).max(again);
        news.lost_again |= again > 0;
        if let Some(wait) = wait {
            self.arm(conn, Pending::Reordering, now + wait);
            news.leave_timer();
        }
    }

    /// RFC 8985 section 6.2 step 5. Returns the number of retransmissions found lost, and the time until the next
    /// check.
    #[inline(always)]
    pub(super) fn detect(&mut self, conn: &mut Connection, now: Time) -> (u32, Option<Span>) {
        let recovering = self.state >= State::Recovery;
        let window = self.rack.window(recovering, conn.sent.sacked(), conn.rtt.srtt());
        let found = self.rack.detect(now, &mut conn.sent, window);
        (found.again, found.wait)
    }

    /// `tcp_enter_recovery`: one reduction, unless one is under way.
    #[cold]
    pub(super) fn enter_recovery(&mut self, conn: &mut Connection, now: Time, echo: bool) {
        let before = (conn.controller.window(), conn.controller.threshold());
        self.undo.marker = Some(conn.una);
        self.undo.retransmissions = (conn.sent.retransmitted() > 0).then(|| conn.sent.retransmitted());
        self.undo.before = None;
        if self.prr.is_none() {
            self.undo.before = (!echo).then_some(before);
            self.begin_reduction(conn, now, TcpEvent::Lost { duplicates: 0, again: false });
        }
        conn.action = Action::Duplicates;
        conn.stats.fast_retransmits += 1;
        self.state = State::Recovery;
    }

    /// Enters recovery on the reordering timer: without an acknowledgement, one segment counts as delivered.
    pub(super) fn recover_by_timer(&mut self, conn: &mut Connection, now: Time) {
        if self.state != State::Recovery {
            self.enter_recovery(conn, now, false);
            if let Some(prr) = &mut self.prr {
                prr.on_ack(conn.sent.in_flight(), 1, false);
            }
        }
    }

    /// `tcp_init_cwnd_reduction`: the controller sets the target, PRR approaches it.
    pub(super) fn begin_reduction(&mut self, conn: &mut Connection, now: Time, event: TcpEvent) {
        let prior = self.window(conn);
        self.high_seq = conn.max;
        self.probe.forget();
        conn.inflation = 0;
        conn.cwr |= conn.config.ecn.is_on();
        conn.recover = conn.max;
        conn.notify(event, now);
        if !conn.needs.deliveries {
            self.prr = Some(Prr::new(prior, conn.controller.window() as u32));
        }
    }

    /// `tcp_end_cwnd_reduction`: the window becomes the controller's target.
    pub(super) fn end_reduction(&mut self, conn: &mut Connection, now: Time) {
        if self.prr.take().is_some() || conn.needs.deliveries {
            conn.notify(TcpEvent::Recovered { at_most: f64::INFINITY }, now);
        }
        self.undo.marker = None;
        self.state = State::Open;
        conn.action = Action::Exited;
        self.keep_open(conn);
    }

    /// `tcp_check_dsack`: a retransmission was unnecessary.
    fn count_dsack(&mut self, conn: &Connection, before: u32, news: &News) {
        let (Some(end), Some(marker)) = (news.dsack, self.undo.marker) else { return };
        if end > marker && end <= before.max(conn.una) {
            self.undo.retransmissions = self.undo.retransmissions.map(|n| n.saturating_sub(1));
        }
    }

    /// Whether the acknowledgement answers an original transmission: its timestamp is older than the first
    /// retransmission (RFC 3522 section 3.2 step 5). The receiver echoes the segment that advanced its left edge (RFC
    /// 7323 section 4.3).
    fn acks_original(&self, now: Time) -> bool {
        self.undo.stamp.is_some_and(|sent| Stamp::at(sent).elapsed(now) < self.undo.echoed)
    }

    /// `tcp_may_undo`, `tcp_undo_cwnd_reduction`: restores window and ssthresh (RFC 4015 section 3.2).
    fn try_undo(&mut self, conn: &mut Connection, now: Time) -> bool {
        let spurious = self.undo.retransmissions == Some(0) || self.acks_original(now);
        if self.undo.marker.is_none() || !spurious {
            return false;
        }
        let undo = core::mem::take(&mut self.undo);
        conn.sent.found();
        self.prr = None;
        conn.inflation = 0;
        if let Some((window, threshold)) = undo.before {
            conn.cwr = false;
            conn.notify(TcpEvent::Undo { window, threshold }, now);
        }
        self.rack.advanced = true;
        self.timeouts = 0;
        self.state = State::Open;
        true
    }

    /// `tcp_try_undo_partial`: a late original filled a hole, which is reordering.
    fn try_undo_partial(&mut self, conn: &mut Connection, now: Time) -> bool {
        if self.undo.marker.is_none() || !self.acks_original(now) {
            return false;
        }
        self.rack.reordering_seen = true;
        if conn.sent.retransmitted() > 0 {
            return true; // the rest may also be late
        }
        self.try_undo(conn, now);
        self.keep_open(conn);
        true
    }

    /// `tcp_enter_loss`: RFC 8985 section 6.3, RFC 5681 equation (4). The caller sends.
    pub(super) fn enter_loss(&mut self, conn: &mut Connection, now: Time) {
        let window = self.rack.window(true, 0, conn.rtt.srtt());
        let limit = self.rack.limit(window);
        let fresh = self.state <= State::Disorder
            || self.high_seq <= conn.una
            || (self.state == State::Loss && self.timeouts == 0);
        let before = (conn.controller.window(), conn.controller.threshold());
        conn.sent.timed_out(|sent| now.since(sent) >= limit);
        conn.notify(TcpEvent::Timeout(if fresh { Threshold::Cut } else { Threshold::Keep }), now);
        if fresh {
            self.undo = Undo { marker: Some(conn.una), before: Some(before), ..Undo::default() };
            self.undo.retransmissions = (conn.sent.retransmitted() > 0).then(|| conn.sent.retransmitted());
        }
        self.prr = None;
        self.state = State::Loss;
        self.high_seq = conn.max;
        self.probe.forget();
        self.timeouts += 1;
        conn.cwr |= conn.config.ecn.is_on();
        conn.action = Action::Timeout;
        conn.recover = conn.max;
        // segments sent recently are still in flight (RFC 8985 section 6.3)
        conn.inflation = if conn.needs.deliveries { 0 } else { conn.sent.in_flight() };
        conn.notify_losses(now);
    }
}

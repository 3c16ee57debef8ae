//! Profile `linux`: how recoveries begin, go on, are undone and end (`tcp_fastretrans_alert`).
//!
//! Sources: RFC 8985 section 6 (losses, timeouts), RFC 6937 (reduction), RFC 3522 and RFC 4015 (undoing by time stamps),
//! RFC 3708 (undoing by DSACKs), RFC 3168 section 6.1.2 (marks).

use super::kernel::{Kernel, News, State, Undo};
use super::prr::Prr;
use super::sender::{Action, TcpSender};
use super::tlp::Pending;
use paceline_control::{TcpEvent, Threshold, WindowController};
use paceline_packet::Stamp;
use paceline_units::{Span, Time};

impl TcpSender {
    /// An acknowledgement that is not plainly in order. `before`: the left edge before it.
    pub(super) fn alert_kernel(&mut self, k: &mut Kernel, now: Time, before: u32, news: &mut News) {
        if news.echo {
            k.undo.before = None; // a mark is not undone
        }
        if k.state == State::Open {
            k.undo.stamp = None;
        } else if self.una >= k.high {
            match k.state {
                // something beyond must be acknowledged for CWR to have arrived
                State::Reducing if self.una != k.high => self.end_reduction(k, now),
                State::Recovery => {
                    self.try_undo(k, now);
                    self.end_reduction(k, now);
                    k.rack.recovered();
                }
                _ => {}
            }
        }
        self.count_dsack(k, before, news);
        match k.state {
            State::Recovery => {
                if news.acked && self.try_undo_partial(k, now) {
                    return;
                }
                if k.undo.retransmissions == Some(0) && self.try_undo(k, now) {
                    self.keep_open(k);
                }
                self.find_losses(k, now, news);
                if k.state != State::Recovery && k.board.lost() > 0 {
                    self.enter_recovery(k, now, news);
                }
            }
            State::Loss => {
                if news.acked && self.try_undo(k, now) {
                    self.keep_open(k);
                } else if self.una >= k.high {
                    k.state = State::Open;
                    self.inflation = 0;
                    k.rack.recovered();
                    self.tell(TcpEvent::Recovered { at_most: self.controller.window() }, now);
                    k.undo = Undo::default();
                    self.keep_open(k);
                }
                self.find_losses(k, now, news);
                if k.state < State::Reducing || news.lost_again {
                    self.open_or_recover(k, now, news);
                }
            }
            _ => {
                if k.state <= State::Disorder && k.undo.retransmissions == Some(0) {
                    self.try_undo(k, now);
                }
                self.find_losses(k, now, news);
                self.open_or_recover(k, now, news);
            }
        }
    }

    /// `tcp_time_to_recover`, `tcp_try_to_open`.
    fn open_or_recover(&mut self, k: &mut Kernel, now: Time, news: &mut News) {
        if k.board.lost() > 0 {
            return self.enter_recovery(k, now, news);
        }
        if news.echo && k.state < State::Reducing {
            self.cwr = true;
            self.begin_reduction(k, now, TcpEvent::EcnEcho);
            self.action = Action::Ecn;
            k.undo.marker = None;
            k.state = State::Reducing;
        } else if k.state < State::Reducing {
            self.keep_open(k);
        }
    }

    /// `tcp_try_keep_open`: nothing is lost, but something may be reported, or sent again.
    pub(super) fn keep_open(&mut self, k: &mut Kernel) {
        let again = k.board.again() > 0 || k.board.head().is_some_and(|(_, ever)| ever);
        let state = if k.board.sacked() + k.board.lost() > 0 || again { State::Disorder } else { State::Open };
        if state != k.state {
            k.state = state;
            k.high = self.max;
        }
    }

    /// `tcp_identify_packet_loss`.
    fn find_losses(&mut self, k: &mut Kernel, now: Time, news: &mut News) {
        if !k.rack.advanced {
            return;
        }
        let before = k.board.lost();
        let (again, wait) = self.detect(k, now);
        news.lost += (k.board.lost() - before).max(again);
        news.lost_again |= again > 0;
        if let Some(wait) = wait {
            self.arm(k, Pending::Reordering, now + wait);
            news.leave_timer();
        }
    }

    /// RFC 8985 section 6.2 step 5. Gives the retransmissions found lost, and when to look again.
    pub(super) fn detect(&mut self, k: &mut Kernel, now: Time) -> (u32, Option<Span>) {
        let recovering = k.state >= State::Recovery;
        let window = k.rack.window(recovering, k.board.sacked(), self.rtt.srtt());
        let found = k.rack.detect(now, &mut k.board, window);
        (found.again, found.wait)
    }

    /// `tcp_enter_recovery`: one reduction, unless one is under way.
    fn enter_recovery(&mut self, k: &mut Kernel, now: Time, news: &News) {
        let before = (self.controller.window(), self.controller.threshold());
        k.undo.marker = Some(self.una);
        k.undo.retransmissions = (k.board.again() > 0).then(|| k.board.again());
        k.undo.before = None;
        if k.prr.is_none() {
            k.undo.before = (!news.echo).then_some(before);
            self.begin_reduction(k, now, TcpEvent::Lost { duplicates: 0, transmissions: 1 });
        }
        self.action = Action::Duplicates;
        self.stats.fast_retransmits += 1;
        k.state = State::Recovery;
    }

    /// The reordering timer's way into recovery: no acknowledgement, but one segment counts as delivered.
    pub(super) fn recover_by_timer(&mut self, k: &mut Kernel, now: Time) {
        if k.state != State::Recovery {
            self.enter_recovery(k, now, &News::default());
            if let Some(prr) = &mut k.prr {
                prr.on_ack(k.board.in_flight(), 1, false);
            }
        }
    }

    /// `tcp_init_cwnd_reduction`: the controller decides, PRR gets there.
    pub(super) fn begin_reduction(&mut self, k: &mut Kernel, now: Time, event: TcpEvent) {
        let prior = self.window_kernel(k);
        k.high = self.max;
        k.probe.forget();
        self.inflation = 0;
        self.cwr |= self.config.ecn;
        self.recover = self.max;
        self.tell(event, now);
        k.prr = Some(Prr::new(prior, self.controller.window() as u32));
    }

    /// `tcp_end_cwnd_reduction`: the window is what the controller had decided.
    pub(super) fn end_reduction(&mut self, k: &mut Kernel, now: Time) {
        if k.prr.take().is_some() {
            self.tell(TcpEvent::Recovered { at_most: f64::INFINITY }, now);
        }
        k.undo.marker = None;
        k.state = State::Open;
        self.action = Action::Exited;
        self.keep_open(k);
    }

    /// `tcp_check_dsack`: a retransmission was for nothing.
    fn count_dsack(&mut self, k: &mut Kernel, before: u32, news: &News) {
        let (Some(end), Some(marker)) = (news.dsack, k.undo.marker) else { return };
        if end > marker && end <= before.max(self.una) {
            k.undo.retransmissions = k.undo.retransmissions.map(|n| n.saturating_sub(1));
        }
    }

    /// Whether the acknowledgement answers an original: its time stamp is older than the first retransmission (RFC 3522
    /// section 3.2 step 5). The receiver echoes what moved its left edge (RFC 7323 section 4.3).
    fn original_came(&self, k: &Kernel, now: Time) -> bool {
        k.undo.stamp.is_some_and(|sent| Stamp::at(sent).elapsed(now) < k.undo.echoed)
    }

    /// `tcp_may_undo`, `tcp_undo_cwnd_reduction`: gives window and threshold back (RFC 4015 section 3.2).
    fn try_undo(&mut self, k: &mut Kernel, now: Time) -> bool {
        let spurious = k.undo.retransmissions == Some(0) || self.original_came(k, now);
        if k.undo.marker.is_none() || !spurious {
            return false;
        }
        let undo = core::mem::take(&mut k.undo);
        k.board.found();
        k.prr = None;
        self.inflation = 0;
        if let Some((window, threshold)) = undo.before {
            self.cwr = false;
            self.tell(TcpEvent::Undo { window, threshold }, now);
        }
        k.rack.advanced = true;
        k.timeouts = 0;
        k.state = State::Open;
        true
    }

    /// `tcp_try_undo_partial`: a hole was filled by what was only late, which is reordering.
    fn try_undo_partial(&mut self, k: &mut Kernel, now: Time) -> bool {
        if k.undo.marker.is_none() || !self.original_came(k, now) {
            return false;
        }
        k.rack.reordering_seen = true;
        if k.board.again() > 0 {
            return true; // the rest may be late too
        }
        self.try_undo(k, now);
        self.keep_open(k);
        true
    }

    /// `tcp_enter_loss`: RFC 8985 section 6.3, RFC 5681 equation (4). The caller sends.
    pub(super) fn enter_loss(&mut self, k: &mut Kernel, now: Time) {
        let window = k.rack.window(true, 0, self.rtt.srtt());
        let limit = k.rack.limit(window);
        let fresh = k.state <= State::Disorder || k.high <= self.una || (k.state == State::Loss && k.timeouts == 0);
        let before = (self.controller.window(), self.controller.threshold());
        k.board.timed_out(|sent| now.since(sent) >= limit);
        self.tell(TcpEvent::Timeout(if fresh { Threshold::Cut } else { Threshold::Keep }), now);
        if fresh {
            k.undo = Undo { marker: Some(self.una), before: Some(before), ..Undo::default() };
            k.undo.retransmissions = (k.board.again() > 0).then(|| k.board.again());
        }
        k.prr = None;
        k.state = State::Loss;
        k.high = self.max;
        k.probe.forget();
        k.timeouts += 1;
        self.cwr |= self.config.ecn;
        self.action = Action::Timeout;
        self.recover = self.max;
        // what was sent lately is still on its way (RFC 8985 section 6.3)
        self.inflation = k.board.in_flight();
    }
}

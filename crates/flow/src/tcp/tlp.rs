//! Profile `linux`: sending, the timer's three uses, and tail loss probes (RFC 8985 section 7).

use super::kernel::{Kernel, News, State};
use super::sender::TcpSender;
use crate::Transmit;
use paceline_control::TcpEvent;
use paceline_units::{Span, Time};

/// What the one timer is set to do (`icsk_pending`).
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

/// `TCP_TIMEOUT_MIN`: what the kernel adds to short timeouts, two ticks of its clock.
const TICKS: Span = Span::from_millis(2);

/// The probe of this episode (RFC 8985 section 7.1).
#[derive(Debug, Default)]
pub(super) struct Probe {
    /// One past the highest segment sent when the probe left (TLP.end_seq).
    end: Option<u32>,
    /// It repeats a segment (TLP.is_retrans).
    repeats: bool,
}

impl Probe {
    pub(super) fn forget(&mut self) {
        self.end = None;
    }
}

/// The probe timeout: 2 SRTT, and the longest delay of an acknowledgement if only one segment is out, for which the
/// kernel takes the minimum retransmission timeout (RFC 8985 section 7.2).
fn probe_timeout(srtt: Span, out: u32, delay: Span) -> Span {
    srtt * 2 + if out == 1 { delay } else { TICKS }
}

impl TcpSender {
    pub(super) fn arm(&mut self, k: &mut Kernel, pending: Pending, at: Time) {
        k.pending = pending;
        self.timer = at;
    }

    /// `tcp_rearm_rto`: from now; from the first segment's transmission, if another use of the timer has let time pass.
    pub(super) fn rearm_kernel(&mut self, k: &mut Kernel, now: Time) {
        if self.una == self.max {
            return self.arm(k, Pending::Nothing, Time::NEVER);
        }
        let other = matches!(k.pending, Pending::Probe | Pending::Reordering);
        let from = k.board.head().filter(|_| other).map_or(now, |(sent, _)| sent);
        self.arm(k, Pending::Retransmission, (from + self.rto).max(now + Span::from_millis(1)));
    }

    /// Section 7.2: a probe in 2 SRTT, unless losses are being repaired or something was reported out of order.
    /// `anew`: an acknowledgement has just restarted the retransmission timer. Says whether the probe is set.
    pub(super) fn schedule_probe(&mut self, k: &mut Kernel, now: Time, anew: bool) -> bool {
        let calm = matches!(k.state, State::Open | State::Reducing) && k.board.sacked() == 0;
        if !calm || self.una == self.max || self.una == self.base {
            return false;
        }
        let srtt = self.rtt.srtt();
        let timeout = match srtt {
            Span::ZERO => self.config.initial_rto,
            _ => probe_timeout(srtt, k.board.out(), self.config.min_rto),
        };
        let from = k.board.head().filter(|_| !anew).map_or(now, |(sent, _)| sent);
        // not later than the retransmission timer would be
        let at = (now + timeout).min((from + self.rto).max(now + Span::from_millis(1)));
        self.arm(k, Pending::Probe, at);
        true
    }

    /// Section 7.3: one new segment if there is one, window or not; else the last one again. One probe an episode.
    fn send_probe(&mut self, k: &mut Kernel, now: Time, out: &mut impl Transmit) {
        if k.probe.end.is_none() {
            let fresh = self.nxt < self.limit.min(self.una.saturating_add(self.receive_window));
            let seq = if fresh { self.nxt } else { self.max - 1 };
            self.nxt = self.nxt.max(seq + 1);
            self.send_kernel(k, now, seq, out);
            k.probe.repeats = !fresh;
            k.probe.end = Some(self.max);
            k.pending = Pending::Nothing;
        }
        self.rearm_kernel(k, now);
    }

    /// Section 7.4.2: what an acknowledgement says of the probe. `blocks`: it carries SACK blocks.
    pub(super) fn probe_acked(&mut self, k: &mut Kernel, now: Time, ack: u32, blocks: bool, news: &News) {
        let Some(end) = k.probe.end.filter(|&end| ack >= end) else { return };
        if !k.probe.repeats || news.dsack.is_some_and(|d| d == end) {
            k.probe.forget(); // new data was delivered; or both the segment and its repetition: no loss
        } else if ack > end {
            // the probe has repaired a loss: one reduction, at once
            self.begin_reduction(k, now, TcpEvent::Lost { duplicates: 0, transmissions: 1 });
            k.undo.marker = None;
            self.end_reduction(k, now);
        } else if !news.acked && !blocks {
            k.probe.forget(); // a duplicate without SACK: both have come
        }
    }

    fn send_kernel(&mut self, k: &mut Kernel, now: Time, seq: u32, out: &mut impl Transmit) {
        if seq < self.max {
            k.undo.stamp.get_or_insert(now);
            k.undo.retransmissions = Some(k.undo.retransmissions.unwrap_or(0) + 1);
        }
        self.emit(now, seq, out);
        k.board.sent(seq, out.left(now));
        if let Some(prr) = &mut k.prr {
            prr.out += 1;
        }
    }

    /// Sends while the window exceeds what is in flight: what is lost first, then new data.
    pub(super) fn pump_kernel(&mut self, now: Time, out: &mut impl Transmit) {
        let Some(mut kernel) = self.kernel.take() else { return };
        let k = &mut *kernel;
        let window = self.window_kernel(k);
        let (mut new, mut limited) = (false, true);
        while k.board.in_flight() < window {
            if !self.may_send(now) || self.is_held(out) {
                limited = false;
                break;
            }
            if let Some(seq) = k.board.next_lost() {
                self.send_kernel(k, now, seq, out);
                if seq == self.una && k.pending != Pending::Reordering {
                    self.arm(k, Pending::Retransmission, now + self.rto);
                }
                continue;
            }
            if self.nxt >= self.limit.min(self.una.saturating_add(self.receive_window)) {
                limited = false;
                break;
            }
            let first = self.una == self.max;
            if first && self.max > self.base {
                self.tell(TcpEvent::Resumed { idle: now.since(self.last_sent) }, now);
            }
            let seq = self.nxt;
            self.nxt += 1;
            self.send_kernel(k, now, seq, out);
            if first {
                self.arm(k, Pending::Retransmission, now + self.rto);
            } else if k.pending == Pending::Probe {
                self.rearm_kernel(k, now);
            }
            new = true;
        }
        if new || limited {
            self.validate_kernel(k, now, limited);
        }
        if new {
            self.schedule_probe(k, now, false);
        }
        self.kernel = Some(kernel);
    }

    /// The timer has expired.
    pub(super) fn expired_kernel(&mut self, now: Time, out: &mut impl Transmit) {
        let Some(mut kernel) = self.kernel.take() else { return };
        let k = &mut *kernel;
        if self.una == self.max {
            self.arm(k, Pending::Nothing, Time::NEVER);
        } else {
            match k.pending {
                Pending::Probe => self.send_probe(k, now, out),
                Pending::Reordering => {
                    let (again, _) = self.detect(k, now);
                    if k.board.lost() > 0 || again > 0 {
                        self.recover_by_timer(k, now);
                    }
                    self.rearm_kernel(k, now);
                }
                Pending::Retransmission | Pending::Nothing => self.timed_out_kernel(k, now, out),
            }
        }
        self.kernel = Some(kernel);
        self.pump_kernel(now, out);
    }

    /// RFC 6298 section 5.
    fn timed_out_kernel(&mut self, k: &mut Kernel, now: Time, out: &mut impl Transmit) {
        self.count_timeout();
        let limits = self.limits();
        if self.una == self.base && self.config.handshake {
            k.timeouts += 1;
            self.send_kernel(k, now, self.una, out); // the SYN; there is no window to reduce yet
        } else {
            self.enter_loss(k, now);
        }
        self.rtt.back_off(&limits);
        self.set_timer(now);
        k.pending = Pending::Retransmission;
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

//! Sending what the window allows, and the send timers.

use super::connection::{Action, Connection, FastPath, Phase};
use super::handshake::{self, Bits};
use crate::{Segment, Transmit};
use paceline_control::{Ecn, Profile, Recovery, TcpController, TcpEvent, Threshold, WindowController};
use paceline_packet::{ACE_OFFSET, Flags, Stamp};
use paceline_units::{Span, Time};

/// `fq` sends the first ten segments of a flow without pacing (`initial_quantum`).
const INITIAL_QUANTUM: u32 = 10;

impl Connection {
    /// The controller's window.
    #[inline(always)]
    pub(super) fn own_window(&self) -> f64 {
        match &self.controller {
            TcpController::Bbr3(bbr) => bbr.window(), // dispatched as in `rate`
            other => other.window(),
        }
    }

    /// The number of segments that may be in flight: cwnd plus the inflation for duplicate ACKs, limited by the receive
    /// window.
    #[inline]
    pub(super) fn window(&self) -> u32 {
        (self.controller.window() as u32).saturating_add(self.inflation).min(self.receive_window)
    }

    /// Sends what the window allows, at most `burst` segments.
    #[inline(never)]
    pub(super) fn pump(&mut self, now: Time, burst: u32, out: &mut impl Transmit) {
        self.fill(now, burst, out);
    }

    /// Sends what the window allows.
    #[inline(always)]
    pub(super) fn fill(&mut self, now: Time, burst: u32, out: &mut impl Transmit) {
        let end = self.una.saturating_add(self.window()).min(self.limit);
        if self.nxt >= end {
            return;
        }
        if self.delays_sends && !self.may_send(now) {
            return;
        }
        let end = end.min(self.nxt.saturating_add(burst));
        while self.nxt < end && !self.is_tsq_throttled(out) {
            let seq = self.nxt;
            self.nxt += 1;
            self.put(now, seq, out);
        }
    }

    /// Whether the host's own interface is full. The remaining segments then wait here, as in Linux (TCP small queues):
    /// they take no part of the window and do not age in an unmanaged queue.
    #[inline(always)]
    pub(super) fn is_tsq_throttled(&mut self, out: &impl Transmit) -> bool {
        let Some(until) = out.full_until() else { return false };
        self.resumes = until;
        if self.fast_path == FastPath::Reno {
            self.fast_path = FastPath::Any; // the Reno fast path does not check for a full interface
        }
        true
    }

    /// Whether sending need not wait: for the pacer's gap, or with `send_overhead` for a random delay, which starts
    /// here if none is running (ns-2's `delsnd_timer_`).
    #[cold]
    #[inline(never)]
    fn may_send(&mut self, now: Time) -> bool {
        if self.pacing.is_some() {
            return self.is_due(now);
        }
        if self.delayed_send == Time::NEVER {
            let wait = self.config.send_overhead.mul_f64(self.stream.unit(self.draws));
            self.draws += 1;
            self.delayed_send = now + wait;
        }
        false
    }

    /// Whether the pacer's gap is over; true without a pacer.
    #[inline(always)]
    fn is_due(&mut self, now: Time) -> bool {
        let Some(pacing) = &mut self.pacing else { return true };
        let due = if self.needs.pacing {
            pacing.due(now, || quantum(&self.controller))
        } else if self.nxt <= self.base + INITIAL_QUANTUM {
            now
        } else {
            let rate = window_rate(&self.controller, self.sent.out(), self.rtt.srtt(), self.segment);
            pacing.due(now, || window_quantum(rate, self.segment))
        };
        if due > now {
            self.delayed_send = due;
        }
        due <= now
    }

    /// When the gap of the controller's pacer ends, if it has not ended yet.
    #[inline(always)]
    pub(super) fn paced_until(&self, now: Time) -> Option<Time> {
        self.pacing.as_ref().filter(|_| self.needs.pacing)?.waits(now)
    }

    /// Whether a segment that the window allows may leave now.
    #[inline(always)]
    pub(super) fn admits(&mut self, now: Time, out: &impl Transmit) -> bool {
        let sends = !self.delays_sends || if self.pacing.is_some() { self.is_due(now) } else { self.may_send(now) };
        sends && !self.is_tsq_throttled(out)
    }

    /// RFC 3042: a new segment for each of the first two duplicates.
    pub(super) fn limited_transmit(&mut self, now: Time, out: &mut impl Transmit) {
        if self.nxt < self.max && self.profile == Profile::Rfc {
            return; // after a timeout, the next segments have been sent before
        }
        let edge = f64::from(self.una) + self.controller.window();
        let allowed = f64::from(self.nxt) < edge + f64::from(self.dupacks);
        let advertised = self.nxt < self.una.saturating_add(self.receive_window);
        if allowed && advertised && self.nxt < self.limit {
            let seq = self.nxt;
            self.nxt += 1;
            self.limited += u32::from(seq >= self.max);
            self.emit(now, seq, out);
        }
    }

    /// Sends the segment `seq`, outside the fast paths.
    #[inline(never)]
    pub(super) fn emit(&mut self, now: Time, seq: u32, out: &mut impl Transmit) {
        self.put(now, seq, out);
    }

    /// Sends the next segment, a new one, on connections that keep [`Connection::sent`].
    // The same as `put`, without the tests whose results are known here.
    #[inline(always)]
    pub(super) fn put_new(&mut self, now: Time, out: &mut impl Transmit) {
        debug_assert!(self.keeps_sent && self.nxt == self.max && !self.keeps_timer);
        let seq = self.nxt;
        #[cfg(test)]
        if self.slow_only {
            self.nxt += 1;
            return self.emit(now, seq, out);
        }
        let (mut flags, mut size) = (Flags::NONE, self.wire);
        if self.timer == Time::NEVER || self.una == self.max {
            self.timer = now + self.rto;
        }
        (self.nxt, self.max) = (seq + 1, seq + 1);
        if !self.timing {
            (self.timing, self.timed, self.timed_at) = (true, seq, now);
        }
        if self.irregular {
            (flags, size) = self.shape(seq, flags);
        }
        if seq + 1 == self.limit {
            flags = flags.with(Flags::PUSH);
        }
        self.last_sent = now;
        self.stats.packets_sent += 1;
        out.transmit(Segment { seq, stamp: Stamp::at(now), size, flags, extra: None });
        let left = out.left(now);
        let place = self.sent.leaves_new(seq, left);
        if self.delivery.is_some() || self.pacing.is_some() {
            self.note_sent(now, Some(place), left);
        }
    }

    /// Sends the segment `seq`, a new one or a retransmission.
    #[inline(always)]
    fn put(&mut self, now: Time, seq: u32, out: &mut impl Transmit) {
        let mut flags = Flags::NONE;
        let mut size = self.wire;
        let first = self.una == self.max && !self.keeps_timer;
        if seq >= self.max {
            self.max = seq + 1;
            if !self.timing {
                self.timing = true;
                self.timed = seq;
                self.timed_at = now;
            }
        } else {
            flags = Flags::RETRANSMISSION;
            self.again(seq);
        }
        if self.irregular {
            (flags, size) = self.shape(seq, flags);
        }
        if seq + 1 == self.limit {
            flags = flags.with(Flags::PUSH);
        }
        if self.timer == Time::NEVER || first {
            self.timer = now + self.rto;
        }
        self.last_sent = now;
        self.stats.packets_sent += 1;
        out.transmit(Segment { seq, stamp: Stamp::at(now), size, flags, extra: None });
        if self.keeps_sent {
            let left = out.left(now);
            let place = self.sent.leaves(seq, left);
            if self.delivery.is_some() || self.pacing.is_some() {
                self.note_sent(now, place, left);
            }
        }
    }

    /// Records a sent segment in the pacer and in the delivery-rate sampler.
    #[inline(always)]
    fn note_sent(&mut self, now: Time, place: Option<usize>, left: Time) {
        if let (Some(delivery), Some(place)) = (&mut self.delivery, place) {
            delivery.sent(place, &self.sent, left, self.sent.in_flight());
        }
        if let Some(pacing) = &mut self.pacing {
            let rate = if self.needs.pacing {
                rate(&self.controller)
            } else {
                window_rate(&self.controller, self.sent.out(), self.rtt.srtt(), self.segment)
            };
            pacing.sent(now, self.segment, rate);
        }
    }

    /// CheckIfApplicationLimited: called before the application supplies more and before an acknowledgement is
    /// processed.
    #[inline]
    pub(super) fn check_app_limited(&mut self) {
        if self.nxt >= self.limit {
            self.note_app_limited();
        }
    }

    #[inline(never)]
    fn note_app_limited(&mut self) {
        let in_flight = self.sent.in_flight();
        if let Some(delivery) = &mut self.delivery
            && self.resumes == Time::NEVER
            && f64::from(in_flight) < self.controller.window().floor()
            && self.sent.lost() <= self.sent.retransmitted()
        {
            delivery.limit(in_flight);
        }
    }

    #[cold]
    fn again(&mut self, seq: u32) {
        self.stats.retransmitted += 1;
        if self.timing && seq == self.timed && self.profile == Profile::Rfc {
            self.timing = false; // Karn's algorithm (RFC 6298 section 3)
        }
    }

    /// Size and flags of a segment that may be irregular.
    #[inline(never)]
    fn shape(&mut self, seq: u32, mut flags: Flags) -> (Flags, u16) {
        let mut size = self.wire;
        if seq == self.base {
            flags = flags.with(Flags::SYN);
            if self.config.bare_syn() {
                size = self.config.ack_size;
            }
            if self.config.negotiates() {
                if flags.has(Flags::RETRANSMISSION) {
                    self.syns_again = self.syns_again.saturating_add(1);
                }
                if self.syns_again > 1 {
                    self.ecn = Ecn::Off; // a middlebox may drop SYNs that request ECN (RFC 9768 section 3.1.4.1)
                }
                flags = flags.with(handshake::request(self.ecn));
            }
        }
        if let Ok(i) = self.shorts.binary_search_by_key(&seq, |&(seq, _)| seq) {
            size = self.shorts[i].1.saturating_add(self.config.header);
        }
        self.stats.smaller += i64::from(self.wire) - i64::from(size);
        if self.ecn.is_on() && seq != self.base {
            let again = flags.has(Flags::RETRANSMISSION);
            if self.ecn == Ecn::Accurate && self.config.negotiates() {
                // reports marks on the other end's packets: the SYN/ACK's, which the first segment reflects (sections
                // 3.2.2.1, 3.2.2.2)
                let first = self.reflects.take().map(|arrived| arrived.reflected());
                flags = flags.with(first.unwrap_or(Flags::NONE.with_ace(ACE_OFFSET + u32::from(self.marked_syn_ack))));
            }
            // RFC 3168 section 6.1.5: retransmissions are not ECN-capable; ns-2's are
            if (!again || self.profile == Profile::Ns2) && self.bits == Bits::Whole {
                flags = flags.with(if self.needs.l4s { Flags::ECT.with(Flags::L4S) } else { Flags::ECT });
                if self.cwr && self.ecn == Ecn::Classic {
                    flags = flags.with(Flags::CWR);
                    self.cwr = false;
                }
            }
        }
        (flags, size)
    }

    /// Handles a retransmission timeout in profiles other than the Linux ones: everything outstanding is to be sent
    /// again. Returns whether anything has changed.
    #[cold]
    pub(super) fn expired(&mut self, now: Time) -> bool {
        let outstanding = self.una < self.max;
        if !outstanding && self.profile == Profile::Rfc {
            self.timer = Time::NEVER;
            return false;
        }
        let vegas = self.config.recovery == Recovery::Vegas;
        let syn = self.profile == Profile::Rfc && self.config.handshake && self.una == self.base;
        if outstanding {
            self.count_timeout();
        }
        if outstanding || vegas {
            // RFC 5681 section 3.1: reduce ssthresh once per segment; ns-2: not right after a mark
            let keep = match self.profile {
                Profile::Rfc => self.timed_out == Some(self.una),
                _ => self.action == Action::Ecn,
            };
            // A lost SYN is no loss in a window. Instead, the initial window becomes one segment (section 3.1).
            if !syn {
                self.notify(TcpEvent::Timeout(if keep { Threshold::Keep } else { Threshold::Cut }), now);
                self.cwr |= self.config.ecn.is_on();
            }
            self.timed_out = Some(self.una);
            let limits = self.limits();
            self.rtt.back_off(&limits);
            self.set_timer(now);
        } else {
            // ns-2's timer keeps running when nothing is outstanding: slow start after idle (slow_start_restart_)
            self.notify(TcpEvent::Idle { window: 1.0 }, now);
            self.timer = Time::NEVER;
        }
        self.limited = 0;
        if !syn {
            self.recover = self.max;
            self.reduced = self.max;
        }
        self.action = Action::Timeout;
        self.phase = Phase::Open;
        self.inflation = 0;
        self.partial = false;
        if self.config.recovery != Recovery::Tahoe || self.profile == Profile::Rfc {
            self.dupacks = 0;
        }
        self.nxt = self.una;
        self.timing = false;
        true
    }
}

/// The controller's pacing rate. A comparison finds the most frequently called controller; the jump table for the
/// others takes four times as long.
#[inline(always)]
fn rate(controller: &TcpController) -> f64 {
    match controller {
        TcpController::Bbr3(bbr) => bbr.pacing_rate(),
        other => other.pacing_rate(),
    }
}

/// The controller's send quantum, dispatched as in `rate`.
#[inline(always)]
fn quantum(controller: &TcpController) -> u32 {
    match controller {
        TcpController::Bbr3(bbr) => bbr.send_quantum(),
        other => other.send_quantum(),
    }
}

/// The pacing rate in bytes per second for a controller that sets none (Linux `tcp_update_pacing_rate`): twice the
/// window per srtt while the window is below half of ssthresh, and 1.2 times after that. If more segments than the
/// window are out, as in recovery, their number is used. Unbounded before the first round-trip sample.
fn window_rate(controller: &TcpController, out: u32, srtt: Span, segment: u32) -> f64 {
    let gain = if controller.window() < controller.threshold() / 2.0 { 2.0 } else { 1.2 };
    let window = controller.window().max(f64::from(out));
    if srtt > Span::ZERO { gain * window * f64::from(segment) / srtt.as_secs_f64() } else { f64::INFINITY }
}

/// The pacing quantum: the bytes that the rate sends in a millisecond (`sk_pacing_shift`), at least two segments.
fn window_quantum(rate: f64, segment: u32) -> u32 {
    ((rate / 1024.0) as u32).max(2 * segment)
}

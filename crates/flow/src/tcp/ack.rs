//! What acknowledgements do to a connection, whatever the way of repairing losses.

use super::connection::{Action, Connection, Phase};
use super::handshake::{self, Bits, Codepoint};
use super::rtt::Limits;
use paceline_control::{Controller, Ecn, PathView, Profile, Recovery, TcpController, TcpEvent, WindowController};
use paceline_packet::{ACE_OFFSET, Flags, Packet};
use paceline_units::{Span, Time};

/// `Connection::coverage` counts in 64ths of a segment; above so much acknowledgements are thinned out (Linux: a mean above 4,
/// with a weight of 1/64).
const COVERAGE_SCALE: u32 = 64;
const THINNED: u32 = 4 * COVERAGE_SCALE;

impl Connection {
    /// The fast path: an acknowledgement of new full segments, with nothing being repaired. Gives the number of segments, what
    /// was in flight before, and the round trip.
    #[inline]
    pub(super) fn take_in_order(&mut self, now: Time, packet: &Packet) -> (u32, u32, Span) {
        let ack = packet.seq;
        self.stats.advance(now, self.controller.window()); // the kernel's way has a fast path of its own
        let in_flight = self.nxt - self.una;
        let segments = ack - self.una;
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        self.dupacks = 0;
        self.stats.bytes_acked += u64::from(segments) * u64::from(self.segment);
        let rtt = packet.stamp.elapsed(now);
        self.stats.round_trip(rtt);
        if self.timing && ack > self.timed {
            self.sample(now);
        }
        self.rearm(now);
        (segments, in_flight, rtt)
    }

    /// The window grows for `segments` acknowledged in order.
    #[inline]
    pub(super) fn grow(&mut self, now: Time, segments: u32, in_flight: u32, rtt: Span) {
        if let TcpController::Reno(reno) = &mut self.controller {
            reno.acked(segments, in_flight);
        } else {
            let path = self.path(now, in_flight);
            self.controller.on_feedback(&TcpEvent::Acked { segments, in_flight, rtt: Some(rtt) }, &path);
        }
    }

    /// An acknowledgement of new data outside of recovery: all ways but the Linux ones.
    pub(super) fn new_ack(&mut self, now: Time, packet: &Packet, rtt: Option<Span>) {
        let in_flight = self.nxt.saturating_sub(self.una);
        let segments = self.take(now, packet);
        self.dupacks = 0;
        self.limited = 0;
        if !self.echo {
            let path = self.path(now, in_flight);
            self.controller.on_feedback(&TcpEvent::Acked { segments, in_flight, rtt }, &path);
        }
        if self.una == self.base + 1 && self.config.handshake && !self.opens_late() {
            let lost = self.timed_out == Some(self.base) && self.profile == Profile::Rfc;
            if lost {
                let limits = self.limits();
                self.rtt.after_lost_syn(&limits);
                self.rto = self.rtt.timeout();
            }
            // after a lost SYN or SYN/ACK one segment (RFC 5681 section 3.1)
            let window = if lost { 1.0 } else { f64::from(self.config.initial_window) };
            self.notify(TcpEvent::Established { window }, now);
        }
    }

    /// ns-2's Vegas opens its window one acknowledgement later.
    fn opens_late(&self) -> bool {
        self.profile == Profile::Ns2 && self.config.recovery == Recovery::Vegas
    }

    /// Moves the left edge, samples the round trip if the timed segment lies before it, and restarts the timer. Gives the number
    /// of segments.
    pub(super) fn take(&mut self, now: Time, packet: &Packet) -> u32 {
        let segments = self.advance(now, packet);
        if self.timing && packet.seq > self.timed {
            self.sample(now);
        }
        self.rearm(now);
        segments
    }

    /// Moves the left edge, counts what was acknowledged and its round trip. Gives the number of segments.
    pub(super) fn advance(&mut self, now: Time, packet: &Packet) -> u32 {
        let ack = packet.seq;
        let segments = ack - self.una;
        let mut bytes = u64::from(segments) * u64::from(self.segment);
        if self.una == self.base && self.config.bare_syn() {
            bytes -= u64::from(self.segment);
        }
        while let Some(&(seq, size)) = self.shorts.front() {
            if seq >= ack {
                break;
            }
            bytes -= u64::from(self.segment) - u64::from(size);
            self.shorts.pop_front();
        }
        self.stats.bytes_acked += bytes;
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        let rtt = packet.stamp.elapsed(now);
        if rtt < Span::from_secs(600) {
            self.stats.round_trip(rtt);
        }
        segments
    }

    /// The timed segment has been acknowledged.
    #[inline]
    pub(super) fn sample(&mut self, now: Time) {
        self.timing = false;
        let limits = self.limits();
        self.rtt.settle(&limits);
        self.rtt.sample(now, self.timed_at, self.phase_of_tick, &limits);
        self.rto = self.rtt.timeout();
    }

    /// Timing ends without a sample, which settles the backing off all the same (ns-2, partial acknowledgements).
    pub(super) fn settle(&mut self) {
        let limits = self.limits();
        self.rtt.settle(&limits);
        self.rto = self.rtt.timeout();
    }

    #[inline]
    pub(super) fn limits(&self) -> Limits {
        let mut max = self.config.max_rto;
        if self.profile == Profile::Rfc
            && self.stats.lifetime_min_rtt() > max
            && self.stats.lifetime_min_rtt() < Span::MAX
        {
            // RFC 6298 (2.5) leaves the bound open from 60 s on; below the round trip each segment would be sent twice, and
            // none ever be timed (section 3)
            max = self.stats.lifetime_min_rtt() * 2;
        }
        Limits { min: self.config.min_rto, max }
    }

    /// Restarts the retransmission timer (RFC 6298 (5.2), (5.3); ns-2 lets it run when nothing is outstanding).
    pub(super) fn rearm(&mut self, now: Time) {
        let done = self.una == self.max && self.profile == Profile::Rfc;
        self.timer = if done { Time::NEVER } else { now + self.rto };
    }

    pub(super) fn set_timer(&mut self, now: Time) {
        self.rto = self.rtt.timeout();
        self.timer = now + self.rto;
    }

    /// What the controller may see.
    #[inline]
    pub(super) fn path(&self, now: Time, in_flight: u32) -> PathView {
        PathView {
            now,
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.variation(),
            min_rtt: self.stats.lifetime_min_rtt(),
            in_flight,
            acked: self.una,
            next: self.nxt,
            receive_window: self.receive_window,
            segment: self.segment,
        }
    }

    /// The retransmission timer has expired with data outstanding, and has not yet been backed off for it.
    pub(super) fn count_timeout(&mut self) {
        self.stats.timeouts += 1;
        if !self.rtt.backed_off() {
            self.stats.first_timeouts += 1;
            self.stats.first_timeout_sum += self.rtt.timeout();
        }
    }

    /// Tells the controller something rare.
    #[inline(never)]
    pub(super) fn notify(&mut self, event: TcpEvent, now: Time) {
        if let TcpEvent::Lost { .. } | TcpEvent::Timeout(_) = event
            && let Some(base) = self.controller.base_rtt()
        {
            self.stats.bases += 1;
            self.stats.base_sum += base;
        }
        // between these events the window only grows
        self.stats.window_max = self.stats.window_max.max(self.controller.window());
        match event {
            TcpEvent::Timeout(_) | TcpEvent::Lost { .. } => self.stats.window_cuts += 1,
            TcpEvent::EcnEcho => {
                self.stats.window_cuts += 1;
                self.stats.ecn_cuts += 1;
            }
            _ => {}
        }
        // FlightSize: what limited transmit sent is left out (RFC 5681 section 3.2 step 2)
        let in_flight = if self.needs.deliveries {
            self.sent.in_flight()
        } else {
            (self.max - self.una).saturating_sub(self.limited)
        };
        let path = self.path(now, in_flight);
        self.controller.on_feedback(&event, &path);
    }

    /// Tells a controller that models its path of each loss.
    #[cold]
    pub(super) fn notify_losses(&mut self, now: Time) {
        for seq in self.sent.take_lost() {
            let path = self.path(now, self.sent.in_flight());
            if let Some(lost) = self.delivery.as_mut().and_then(|d| d.lost(seq, u64::from(self.segment))) {
                self.controller.on_lost(&lost, &path);
            }
        }
    }

    /// Reads what an acknowledgement says of marks. With three bits a count is ambiguous where it may have gone round: then the
    /// most that the number of segments allows (RFC 9768 appendix A.2); but as it stands where acknowledgements of many segments
    /// are usual, for then none was lost that would have told of the turn (Linux, `tcp_accecn_process`).
    #[inline(never)]
    pub(super) fn read_marks(&mut self, now: Time, packet: &Packet, known: u32) {
        let syn = packet.flags.has(Flags::SYN);
        if self.config.negotiates() && syn {
            if self.una == self.base {
                self.agree(packet.flags);
            }
            self.echo = false;
            return; // the handshake has a meaning of its own
        }
        let acked = packet.seq - self.una;
        if self.ecn == Ecn::Accurate && self.una == self.base + 1 && acked > 0 && self.config.negotiates() {
            self.bits = self.bits.of_first_count(packet.flags.ace(), acked);
        }
        let ece = packet.flags.has(Flags::ECE);
        let marked = match self.ecn {
            Ecn::Off => 0,
            Ecn::Classic => u32::from(ece),
            Ecn::Dctcp => u32::from(ece) * acked.max(1),
            Ecn::Accurate if self.una == self.base && self.config.bare_syn() => 0, // the SYN is not counted
            Ecn::Accurate if self.bits == Bits::Zeroed => 0,
            Ecn::Accurate => {
                let behind = packet.flags.ace().wrapping_sub(ACE_OFFSET).wrapping_sub(self.marks) & 7;
                let newly = acked - known;
                self.note_coverage(newly);
                if newly > 7 && self.coverage <= THINNED { newly - ((newly - behind) & 7) } else { behind }
            }
        };
        self.echo = marked > 0;
        if self.ecn.counts() {
            self.marks = self.marks.wrapping_add(marked);
            let mut path = self.path(now, self.max - self.una);
            path.acked = packet.seq;
            self.controller.on_marks(acked, marked, &path);
        }
    }

    /// Takes an acknowledgement into the mean of how many segments each is of; duplicates are of none.
    fn note_coverage(&mut self, newly: u32) {
        if newly > 0 {
            let scaled = newly.min(1 << 10) * COVERAGE_SCALE;
            self.coverage = if self.coverage == 0 { scaled } else { (63 * self.coverage + scaled) / 64 };
        }
    }

    /// The answer to the SYN has come: what it agrees to, and what it tells of the path.
    #[cold]
    fn agree(&mut self, answer: Flags) {
        let (ecn, arrived) = handshake::agreed(self.ecn, answer);
        self.ecn = ecn;
        if ecn == Ecn::Accurate {
            self.bits = Bits::of_handshake(arrived);
            // a marked SYN counts at the other end (section 3.2.2.1)
            self.marks = u32::from(arrived == Some(Codepoint::Ce));
            self.marks_sampled = self.marks;
            let own = Codepoint::of(answer);
            self.reflects = Some(own);
            self.marked_syn_ack = own == Codepoint::Ce;
        }
    }

    /// The receiver has seen a mark: one reduction per window of data (RFC 3168 section 6.1.2). Says whether this is one.
    #[cold]
    pub(super) fn marked(&mut self, now: Time, ack: u32) -> bool {
        let ns2 = self.profile == Profile::Ns2;
        // ns-2 cuts again after a timeout (tcp.cc, ecn())
        let again = self.action == Action::Timeout && ns2;
        let last = if ns2 { self.recover } else { self.reduced };
        if ack <= last && !again || self.phase == Phase::Recovery {
            return false;
        }
        if ns2 {
            self.recover = self.max; // a loss of this window waits for the timer, or is repaired without a cut
        }
        let at_minimum = self.controller.window() < 2.0;
        self.reduced = self.max;
        self.action = Action::Ecn;
        self.cwr = true;
        self.notify(TcpEvent::EcnEcho, now);
        if at_minimum && !ns2 {
            // the window cannot shrink: the next segment waits for the retransmission timer (RFC 3168 section 6.1.2)
            self.set_timer(now);
            self.delayed_send = self.timer;
            self.delays_sends = true;
        }
        true
    }

    /// Profile `rfc`: whether a loss of the first outstanding segment is a new sign of congestion, or one of the window of
    /// data for which a mark has reduced the window already (RFC 3168 section 6.1.2). If new, the window is being reduced.
    pub(super) fn reduces(&mut self) -> bool {
        let new = self.una >= self.reduced;
        if new {
            self.reduced = self.max;
            self.cwr |= self.config.ecn.is_on(); // for any reduction, section 6.1.2
        }
        new
    }
}

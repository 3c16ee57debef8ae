//! Processing of acknowledgements that is common to all loss recoveries.

use super::connection::{Action, Connection, Phase};
use super::handshake::{self, Bits, Codepoint};
use super::rtt::Limits;
use paceline_control::{Controller, Ecn, PathView, Profile, Recovery, TcpController, TcpEvent, WindowController};
use paceline_packet::{ACE_OFFSET, Flags, Packet};
use paceline_units::{Span, Time};

/// `Connection::coverage` counts in 64ths of a segment. Above `THINNED`, acknowledgements are thinned out on the path
/// (Linux: a mean above 4 segments, with a weight of 1/64).
const COVERAGE_SCALE: u32 = 64;
const THINNED: u32 = 4 * COVERAGE_SCALE;

impl Connection {
    /// The fast path: an acknowledgement of new full segments outside recovery. Returns the number of segments, the
    /// number in flight before, and the round-trip time.
    #[inline]
    pub(super) fn take_in_order(&mut self, now: Time, packet: &Packet) -> (u32, u32, Span) {
        let ack = packet.seq;
        self.stats.advance(now, self.controller.window()); // the Linux recovery has its own fast path
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

    /// Grows the window for `segments` acknowledged in order.
    #[inline]
    pub(super) fn grow(&mut self, now: Time, segments: u32, in_flight: u32, rtt: Span) {
        if let TcpController::Reno(reno) = &mut self.controller {
            reno.acked(segments, in_flight);
        } else {
            let path = self.path(now, in_flight);
            self.controller.on_feedback(&TcpEvent::Acked { segments, in_flight, rtt: Some(rtt) }, &path);
        }
    }

    /// Processes an acknowledgement of new data outside recovery; for all recoveries except the Linux ones.
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
            let window = self.window_after_syn(self.timed_out == Some(self.base) && self.profile == Profile::Rfc);
            self.notify(TcpEvent::Established { window }, now);
        }
    }

    /// The window with which data begin. After a lost SYN or SYN/ACK it is one segment (RFC 5681 section 3.1), and under
    /// `rfc` the timer is 3 s (RFC 6298 (5.7)).
    pub(super) fn window_after_syn(&mut self, lost: bool) -> f64 {
        if lost && self.profile == Profile::Rfc {
            let limits = self.limits();
            self.rtt.after_lost_syn(&limits);
            self.rto = self.rtt.timeout();
        }
        if lost { 1.0 } else { f64::from(self.config.initial_window) }
    }

    /// ns-2's Vegas opens its window one acknowledgement later.
    fn opens_late(&self) -> bool {
        self.profile == Profile::Ns2 && self.config.recovery == Recovery::Vegas
    }

    /// Advances `una`, takes a round-trip sample if the timed segment is acknowledged, and restarts the timer. Returns
    /// the number of segments.
    pub(super) fn take(&mut self, now: Time, packet: &Packet) -> u32 {
        let segments = self.advance(now, packet);
        if self.timing && packet.seq > self.timed {
            self.sample(now);
        }
        self.rearm(now);
        segments
    }

    /// Advances `una` and counts the acknowledged bytes and their round-trip time. Returns the number of segments.
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

    /// Takes a round-trip sample: the timed segment has been acknowledged.
    #[inline]
    pub(super) fn sample(&mut self, now: Time) {
        self.timing = false;
        let limits = self.limits();
        self.rtt.reset_backoff(&limits);
        self.rtt.sample(now, self.timed_at, self.phase_of_tick, &limits);
        self.rto = self.rtt.timeout();
    }

    /// Ends timing without a sample, but still resets the backoff (ns-2, partial acknowledgements).
    pub(super) fn reset_backoff(&mut self) {
        let limits = self.limits();
        self.rtt.reset_backoff(&limits);
        self.rto = self.rtt.timeout();
    }

    #[inline]
    pub(super) fn limits(&self) -> Limits {
        let mut max = self.config.max_rto;
        if self.profile == Profile::Rfc
            && self.stats.lifetime_min_rtt() > max
            && self.stats.lifetime_min_rtt() < Span::MAX
        {
            // RFC 6298 (2.5) allows any upper bound of at least 60 s. With a bound below the round-trip time, each
            // segment would be sent twice and none could be timed (section 3).
            max = self.stats.lifetime_min_rtt() * 2;
        }
        Limits { min: self.config.min_rto, max }
    }

    /// Restarts the retransmission timer (RFC 6298 (5.2), (5.3)); ns-2 keeps it running when nothing is outstanding.
    pub(super) fn rearm(&mut self, now: Time) {
        let done = self.una == self.max && self.profile == Profile::Rfc;
        self.timer = if done { Time::NEVER } else { now + self.rto };
    }

    pub(super) fn set_timer(&mut self, now: Time) {
        self.rto = self.rtt.timeout();
        self.timer = now + self.rto;
    }

    /// The controller's view of the path.
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

    /// Counts a retransmission timeout with data outstanding, before the backoff for it.
    pub(super) fn count_timeout(&mut self) {
        self.stats.timeouts += 1;
        if !self.rtt.backed_off() {
            self.stats.first_timeouts += 1;
            self.stats.first_timeout_sum += self.rtt.timeout();
        }
    }

    /// Reports a rare event to the controller.
    #[inline(never)]
    pub(super) fn notify(&mut self, event: TcpEvent, now: Time) {
        if let TcpEvent::Lost { .. } | TcpEvent::Timeout(_) = event
            && let Some(base) = self.controller.base_rtt()
        {
            self.stats.bases += 1;
            self.stats.base_sum += base;
        }
        // the window only grows between these events
        self.stats.window_max = self.stats.window_max.max(self.controller.window());
        match event {
            TcpEvent::Timeout(_) | TcpEvent::Lost { .. } => self.stats.window_cuts += 1,
            TcpEvent::EcnEcho => {
                self.stats.window_cuts += 1;
                self.stats.ecn_cuts += 1;
            }
            _ => {}
        }
        // FlightSize excludes segments sent by limited transmit (RFC 5681 section 3.2 step 2)
        let in_flight = if self.needs.deliveries {
            self.sent.in_flight()
        } else {
            (self.max - self.una).saturating_sub(self.limited)
        };
        let path = self.path(now, in_flight);
        self.controller.on_feedback(&event, &path);
    }

    /// Reports each loss to a controller that models its path.
    #[cold]
    pub(super) fn notify_losses(&mut self, now: Time) {
        for seq in self.sent.take_lost() {
            let path = self.path(now, self.sent.in_flight());
            if let Some(lost) = self.delivery.as_mut().and_then(|d| d.lost(seq, u64::from(self.segment))) {
                self.controller.on_lost(&lost, &path);
            }
        }
    }

    /// Reads the ECN feedback of an acknowledgement. The three-bit ACE counter may have wrapped; then the largest count
    /// that the number of segments allows is taken (RFC 9768 appendix A.2). Where acknowledgements usually cover many
    /// segments, the count is taken as it stands: probably no acknowledgement was lost that would have shown the wrap
    /// (Linux, `tcp_accecn_process`).
    #[inline(never)]
    pub(super) fn read_marks(&mut self, now: Time, packet: &Packet, known: u32) {
        let syn = packet.flags.has(Flags::SYN);
        if self.config.negotiates() && syn {
            if self.una == self.base {
                self.agree(packet.flags);
            }
            self.echo = false;
            return; // the bits have another meaning in the handshake
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

    /// Updates the mean number of segments per acknowledgement; duplicates do not count.
    fn note_coverage(&mut self, newly: u32) {
        if newly > 0 {
            let scaled = newly.min(1 << 10) * COVERAGE_SCALE;
            self.coverage = if self.coverage == 0 { scaled } else { (63 * self.coverage + scaled) / 64 };
        }
    }

    /// Processes the answer to the SYN: the ECN mode that it agrees to, and what it says about ECN on the path.
    #[cold]
    fn agree(&mut self, answer: Flags) {
        let (ecn, arrived) = handshake::agreed(self.ecn, answer);
        self.ecn = ecn;
        if ecn == Ecn::Accurate {
            self.bits = Bits::of_handshake(arrived);
            // a marked SYN counts at the receiver (section 3.2.2.1)
            self.marks = u32::from(arrived == Some(Codepoint::Ce));
            self.marks_sampled = self.marks;
            let own = Codepoint::of(answer);
            self.reflects = Some(own);
            self.marked_syn_ack = own == Codepoint::Ce;
        }
    }

    /// Reacts to a mark that the receiver reported, once per window of data (RFC 3168 section 6.1.2). Returns whether
    /// it reduced the window.
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
            self.recover = self.max; // a loss in this window waits for the timer, or is repaired without a reduction
        }
        let at_minimum = self.controller.window() < 2.0;
        self.reduced = self.max;
        self.action = Action::Ecn;
        self.cwr = true;
        self.notify(TcpEvent::EcnEcho, now);
        if at_minimum && !ns2 {
            // the window cannot shrink further: the next segment waits for the retransmission timer (RFC 3168 section
            // 6.1.2)
            self.set_timer(now);
            self.delayed_send = self.timer;
            self.delays_sends = true;
        }
        true
    }

    /// Profile `rfc`: whether a loss of the first outstanding segment is a new congestion signal, and not one in a
    /// window of data that was already reduced for a mark (RFC 3168 section 6.1.2). If so, records that the window is
    /// being reduced.
    pub(super) fn reduces(&mut self) -> bool {
        let new = self.una >= self.reduced;
        if new {
            self.reduced = self.max;
            self.cwr |= self.config.ecn.is_on(); // for any reduction, section 6.1.2
        }
        new
    }
}

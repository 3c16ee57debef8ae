//! The sending end: windows, timers, and the common case of an acknowledgement in order.
//!
//! Look first at [`TcpSender::on_ack`]. What is rare lies in other files and in boxes: `recovery` (Tahoe, Reno,
//! NewReno), `sack`, `linux`, `vegas`.

use super::clock::Clock;
use super::linux::Linux;
use super::rtt::{Limits, Rtt};
use super::sack::Sack;
use super::stats::SenderStats;
use super::vegas::FineTimer;
use super::{Segment, TcpConfig, Transmit};
use paceline_control::{Controller, Gauges, PathView, Profile, Recovery, TcpController, TcpEvent};
use paceline_control::{Threshold, WindowController};
use paceline_engine::random;
use paceline_packet::{Extra, Flags, Packet, Stamp};
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// Whether losses are being repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// No.
    Open,
    /// Fast recovery, until `recover` is acknowledged.
    Recovery,
    /// TCP-Linux only: after a timeout, until `recover` is acknowledged.
    Loss,
}

/// Why the window was last reduced (ns-2's `last_cwnd_action_`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    None,
    Duplicates,
    Exited,
    Timeout,
    Ecn,
}

/// So many duplicates tell of a loss (RFC 5681 section 3.2, RFC 6675's DupThresh).
pub(super) const DUPLICATES: u32 = 3;

/// Unlimited supply: more segments than a connection can number.
const ENDLESS: u32 = u32::MAX - 1;

/// The sending end of a connection.
///
/// The caller hands over what the application writes ([`TcpSender::supply`]), acknowledgements and the time; it
/// gets segments through [`Transmit`]. [`TcpSender::next_wake`] says when to call [`TcpSender::on_timer`]; it may
/// move later without notice, and a call too early does nothing.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TcpSender {
    /// Next segment the receiver expects; next to send in order; one past the highest sent; one past the last
    /// that the application has supplied.
    pub(super) una: u32,
    pub(super) nxt: u32,
    pub(super) max: u32,
    pub(super) limit: u32,
    pub(super) receive_window: u32,
    /// What duplicates add to the window in fast recovery.
    pub(super) inflation: u32,
    pub(super) dupacks: u32,
    /// An acknowledgement in order needs nothing but the window's growth.
    pub(super) quick: bool,
    pub(super) phase: Phase,
    /// A segment's round trip is being timed (Karn: it has been sent once).
    pub(super) timing: bool,
    /// Segments need a second look when sent: short ones, SYNs, ECN.
    pub(super) special: bool,
    wire: u16,
    spaced: bool,
    profile: Profile,
    pub(super) timed: u32,
    segment: u32,
    pub(super) timed_at: Time,
    /// When the retransmission timer expires.
    pub(super) timer: Time,
    rto: Span,
    pub(super) controller: TcpController,
    last_sent: Time,
    pub(super) clock: Option<Box<Clock>>,
    pub(super) fine: Option<Box<FineTimer>>,
    pub(super) stats: SenderStats,
    // ---- rarely used from here
    pub(super) rtt: Rtt,
    /// One past the highest segment sent when the window was last reduced (RFC 6582).
    pub(super) recover: u32,
    /// The connection's first segment: the SYN.
    pub(super) base: u32,
    pub(super) action: Action,
    /// New segments that limited transmit has sent: not part of FlightSize (RFC 5681 section 3.2).
    pub(super) limited: u32,
    /// The first partial acknowledgement of this recovery has come.
    pub(super) partial: bool,
    /// The next new segment carries CWR (RFC 3168).
    cwr: bool,
    stopped: bool,
    /// When a send held back by `send_overhead` is due.
    delayed: Time,
    draws: u64,
    stream: random::Stream,
    phase_of_tick: u64,
    pub(super) first_sent: Time,
    pub(super) config: Box<TcpConfig>,
    /// Segments that are not full, in order: number and payload.
    shorts: VecDeque<(u32, u16)>,
    pub(super) sack: Option<Box<Sack>>,
    pub(super) linux: Option<Box<Linux>>,
    fresh: TcpController,
}

impl TcpSender {
    /// A sender that has not started. `stream` feeds the little randomness there is: `send_overhead`, ns-2's tick.
    #[must_use]
    pub fn new(config: &TcpConfig, controller: TcpController, stream: random::Stream) -> TcpSender {
        let mut sender = TcpSender {
            una: 0,
            nxt: 0,
            max: 0,
            limit: 0,
            receive_window: config.receive_window.max(1),
            inflation: 0,
            dupacks: 0,
            quick: false,
            phase: Phase::Open,
            timing: false,
            special: true,
            wire: config.wire(),
            spaced: config.send_overhead > Span::ZERO,
            profile: config.profile,
            timed: 0,
            segment: u32::from(config.segment.max(1)),
            timed_at: Time::ZERO,
            timer: Time::NEVER,
            rto: config.initial_rto,
            controller: controller.clone(),
            last_sent: Time::ZERO,
            stats: SenderStats::new(),
            rtt: Rtt::new(config.profile, config.initial_rto),
            recover: 0,
            base: 0,
            action: Action::None,
            limited: 0,
            partial: false,
            cwr: false,
            stopped: false,
            delayed: Time::NEVER,
            draws: 0,
            stream,
            phase_of_tick: 0,
            first_sent: Time::NEVER,
            config: Box::new(config.clone()),
            shorts: VecDeque::new(),
            clock: None,
            sack: None,
            linux: None,
            fine: None,
            fresh: controller,
        };
        sender.reset(0);
        sender
    }

    /// A connection from segment `base` on.
    fn reset(&mut self, base: u32) {
        let config = &self.config;
        self.una = base;
        self.nxt = base;
        self.max = base;
        self.base = base;
        self.limit = base;
        self.receive_window = config.receive_window.max(1);
        self.inflation = 0;
        self.dupacks = 0;
        self.phase = Phase::Open;
        self.timing = false;
        self.special = true;
        self.timer = Time::NEVER;
        self.rtt = Rtt::new(config.profile, config.initial_rto);
        self.rto = config.initial_rto;
        self.controller = self.fresh.clone();
        self.recover = base;
        self.action = Action::None;
        self.limited = 0;
        self.partial = false;
        self.cwr = false;
        self.delayed = Time::NEVER;
        self.first_sent = Time::NEVER;
        self.phase_of_tick = (self.stream.unit(self.draws) * 1e7) as u64;
        self.draws += 1;
        self.shorts.clear();
        let linux = config.profile == Profile::Ns2Linux;
        self.clock = (linux || config.recovery == Recovery::Vegas).then(|| Box::new(Clock::new(base)));
        self.sack = (!linux && config.recovery == Recovery::Sack).then(|| Box::new(Sack::new(base)));
        self.linux = linux.then(Box::default);
        self.fine = (!linux && config.recovery == Recovery::Vegas).then(Box::default);
        self.requick();
    }

    /// Ends the connection and begins a fresh one with nothing supplied; statistics go on counting. Its segments
    /// are numbered beyond the old ones, so that stragglers of the old connection are recognised. Call
    /// [`TcpSender::start`] for it.
    pub fn restart(&mut self, now: Time) {
        self.account(now);
        let base = self.max.saturating_add(1);
        self.reset(base);
        self.stopped = false;
    }

    /// Starts sending; before it, supplied data waits, and after it the SYN waits for data.
    pub fn start(&mut self, now: Time, out: &mut impl Transmit) {
        if self.stats.packets_sent == 0 {
            self.stats.until = now;
            self.stats.from = now;
        }
        self.account(now);
        self.first_sent = now;
        let window = f64::from(self.config.initial_window);
        if !self.config.handshake || self.profile == Profile::Ns2Linux {
            // TCP-Linux does not wait for its SYN
            self.tell(TcpEvent::Established { window }, now);
        }
        self.pump_any(now, out);
    }

    /// An application writes `bytes`: whole segments and, unless it fits, a short last one.
    pub fn supply(&mut self, bytes: u64, now: Time, out: &mut impl Transmit) {
        if bytes == 0 || self.limit == ENDLESS || self.stopped {
            return;
        }
        let segment = u64::from(self.segment);
        let (full, rest) = (bytes / segment, bytes % segment);
        let segments = u32::try_from(full + u64::from(rest > 0)).unwrap_or(u32::MAX);
        if self.limit == self.base && self.config.bare_syn() {
            self.limit += 1; // the SYN waits for something to say
        }
        self.limit = self.limit.saturating_add(segments).min(ENDLESS);
        if rest > 0 && !self.config.whole_segments && self.limit < ENDLESS {
            self.shorts.push_back((self.limit - 1, rest as u16));
            self.special = true;
            self.quick = false;
        }
        self.supplied(now, out);
    }

    /// The application will never run dry.
    pub fn supply_endless(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.stopped {
            self.limit = ENDLESS;
            self.supplied(now, out);
        }
    }

    fn supplied(&mut self, now: Time, out: &mut impl Transmit) {
        if self.first_sent == Time::NEVER {
            return; // not started
        }
        let idle = self.una == self.max && self.max > self.base;
        if self.profile == Profile::Rfc && idle && now.since(self.last_sent) > self.rto {
            let window = f64::from(self.config.initial_window);
            self.tell(TcpEvent::Idle { window }, now); // RFC 5681 section 4.1
        }
        self.pump_any(now, out);
    }

    /// The application stops: what has not been sent yet never will be. What has, is still repaired.
    pub fn stop(&mut self) {
        self.limit = self.max;
        self.stopped = true;
        while self.shorts.back().is_some_and(|&(seq, _)| seq >= self.limit) {
            self.shorts.pop_back();
        }
    }

    /// Whether everything supplied has been acknowledged.
    #[must_use]
    pub fn acked_all(&self) -> bool {
        self.una >= self.limit && self.first_sent != Time::NEVER
    }

    /// When [`TcpSender::on_timer`] should be called; it may move later without notice.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.timer.min(self.delayed)
    }

    /// Counts up to now. Call [`TcpSender::account`] first to integrate the window up to a given time.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// Integrates the window up to `now`.
    #[inline]
    pub fn account(&mut self, now: Time) {
        let window = if self.profile == Profile::Ns2Linux { self.shown_linux() } else { self.controller.window() };
        self.stats.advance(now, window);
    }

    /// The controller.
    #[must_use]
    pub fn controller(&self) -> &TcpController {
        &self.controller
    }

    /// Smoothed round-trip time; zero before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Span {
        self.rtt.srtt()
    }

    /// Segments sent and not yet acknowledged.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.max - self.una
    }

    /// What a plot should show: the controller's gauges, `srtt` in seconds, `in_flight` in segments.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.controller.gauges(to);
        to.gauge("srtt", self.rtt.srtt().as_secs_f64());
        to.gauge("in_flight", f64::from(self.in_flight()));
    }

    // ------------------------------------------------------------------ acknowledgements

    /// An acknowledgement has come.
    #[inline]
    pub fn on_ack(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        let ack = packet.seq;
        let plain = packet.flags.0 & (Flags::ECE.0 | Flags::SYN.0) == 0 && extra.is_none();
        if !(self.quick && plain && ack > self.una && ack <= self.max) {
            return self.on_ack_slow(now, packet, extra, out);
        }
        self.account(now);
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
        self.timer = if ack == self.max && self.profile == Profile::Rfc { Time::NEVER } else { now + self.rto };
        if self.fine.is_some() {
            self.vegas_in_order(now, segments, in_flight);
        } else {
            let path = self.path(now, in_flight);
            self.controller.on_feedback(&TcpEvent::Acked { segments, in_flight, rtt: Some(rtt) }, &path);
        }
        self.fill(now, u32::MAX, out);
    }

    #[inline(never)]
    fn on_ack_slow(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) {
        if packet.seq < self.una || packet.seq > self.max || self.first_sent == Time::NEVER {
            return; // stale, or of something never sent
        }
        self.account(now);
        let window = extra.and_then(|e| e.window).unwrap_or(self.config.receive_window).max(1);
        if window != self.receive_window {
            self.receive_window = window;
        }
        if packet.flags.has(Flags::ECE) && self.config.ecn && self.profile != Profile::Ns2Linux {
            self.marked(now, packet.seq);
        }
        match self.config.recovery {
            _ if self.linux.is_some() => self.on_ack_linux(now, packet, extra, out),
            Recovery::Tahoe | Recovery::Reno | Recovery::NewReno => self.on_ack_classic(now, packet, out),
            Recovery::Sack => self.on_ack_sack(now, packet, extra, out),
            Recovery::Vegas => self.on_ack_vegas(now, packet, out),
        }
        self.requick();
    }

    /// Whether the next acknowledgement in order may take the short way.
    pub(super) fn requick(&mut self) {
        let standing = self.receive_window == self.config.receive_window.max(1);
        self.special = self.config.ecn || !self.shorts.is_empty() || self.una <= self.base;
        self.quick = standing
            && self.phase == Phase::Open
            && self.una > self.base
            && self.linux.is_none()
            && self.fine.as_ref().is_none_or(|f| f.is_calm() && self.dupacks == 0 && self.una > self.base + 1)
            && self.shorts.is_empty()
            && self.sack.as_ref().is_none_or(|s| s.is_clear());
    }

    /// An acknowledgement of new data outside of recovery: all kinds but TCP-Linux'.
    pub(super) fn new_ack(&mut self, now: Time, packet: &Packet, rtt: Option<Span>) {
        let in_flight = self.nxt.saturating_sub(self.una);
        let segments = self.advance(now, packet);
        self.dupacks = 0;
        self.limited = 0;
        if self.timing && packet.seq > self.timed {
            self.sample(now);
        }
        self.rearm(now);
        let held_back = packet.flags.has(Flags::ECE) && self.config.ecn;
        if !held_back {
            let path = self.path(now, in_flight);
            self.controller.on_feedback(&TcpEvent::Acked { segments, in_flight, rtt }, &path);
        }
        if self.una == self.base + 1 && self.config.handshake && self.fine_established() {
            if self.stats.timeouts > 0 && self.profile == Profile::Rfc && self.rtt.srtt() == Span::ZERO {
                let limits = self.limits();
                self.rtt.after_lost_syn(&limits);
                self.rto = self.rtt.timeout();
            }
            let window = f64::from(self.config.initial_window);
            self.tell(TcpEvent::Established { window }, now);
        }
    }

    /// ns-2's Vegas opens its window one acknowledgement later.
    fn fine_established(&self) -> bool {
        self.fine.is_none() || self.profile != Profile::Ns2
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
        Limits { min: self.config.min_rto, max: self.config.max_rto }
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
            min_rtt: self.stats.rtt_least,
            in_flight,
            acked: self.una,
            next: self.nxt,
            receive_window: self.receive_window,
            segment: self.segment,
        }
    }

    /// Tells the controller something rare.
    #[inline(never)]
    pub(super) fn tell(&mut self, event: TcpEvent, now: Time) {
        match event {
            TcpEvent::Lost { .. } | TcpEvent::Timeout(_) => self.stats.window_cuts += 1,
            TcpEvent::EcnEcho => {
                self.stats.window_cuts += 1;
                self.stats.ecn_cuts += 1;
            }
            _ => {}
        }
        // FlightSize: what limited transmit sent is left out (RFC 5681 section 3.2 step 2)
        let path = self.path(now, (self.max - self.una).saturating_sub(self.limited));
        self.controller.on_feedback(&event, &path);
    }

    /// The receiver has seen a mark: one reduction per window of data (RFC 3168 section 6.1.2).
    #[cold]
    fn marked(&mut self, now: Time, ack: u32) {
        if ack <= self.recover && self.action != Action::Timeout || self.phase == Phase::Recovery {
            return;
        }
        self.recover = self.max;
        self.action = Action::Ecn;
        self.cwr = true;
        self.tell(TcpEvent::EcnEcho, now);
    }

    // ------------------------------------------------------------------ sending

    /// What may be in flight: the window and what duplicates add, within the receiver's.
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
    fn fill(&mut self, now: Time, burst: u32, out: &mut impl Transmit) {
        let end = self.una.saturating_add(self.window()).min(self.limit);
        if self.nxt >= end {
            return;
        }
        if self.spaced && !self.may_send(now) {
            return;
        }
        let end = end.min(self.nxt.saturating_add(burst));
        while self.nxt < end {
            let seq = self.nxt;
            self.nxt += 1;
            self.put(now, seq, out);
        }
    }

    /// With `send_overhead`: whether the wait is over; begins one if not (ns-2's `delsnd_timer_`).
    #[cold]
    pub(super) fn may_send(&mut self, now: Time) -> bool {
        if !self.spaced {
            return true;
        }
        if self.delayed == Time::NEVER {
            let wait = self.config.send_overhead.mul_f64(self.stream.unit(self.draws));
            self.draws += 1;
            self.delayed = now + wait;
        }
        false
    }

    /// Sends the segment `seq` out of the common run.
    #[inline(never)]
    pub(super) fn emit(&mut self, now: Time, seq: u32, out: &mut impl Transmit) {
        self.put(now, seq, out);
    }

    /// Sends the segment `seq`, for the first time or again.
    #[inline(always)]
    fn put(&mut self, now: Time, seq: u32, out: &mut impl Transmit) {
        let mut flags = Flags::NONE;
        let mut size = self.wire;
        // ns-2's Vegas has an output of its own, which does not restart a pending timer
        let first = self.una == self.max && self.fine.is_none();
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
        if self.special {
            (flags, size) = self.dress(seq, flags);
        }
        if let Some(clock) = &mut self.clock {
            clock.sent(seq, now);
        }
        if seq + 1 == self.limit {
            flags = flags.with(Flags::PUSH);
        }
        if self.timer == Time::NEVER || first {
            self.timer = now + self.rto;
        }
        self.last_sent = now;
        self.stats.packets_sent += 1;
        if !matches!(self.controller, TcpController::Reno(_)) {
            let path = self.path(now, self.max - self.una);
            self.controller.on_sent(seq, &path);
        }
        out.transmit(Segment { seq, stamp: Stamp::at(now), size, flags, extra: None });
    }

    #[cold]
    fn again(&mut self, seq: u32) {
        self.stats.retransmitted += 1;
        if self.timing && seq == self.timed && self.profile == Profile::Rfc {
            self.timing = false; // Karn's algorithm (RFC 6298 section 3)
        }
    }

    /// Size and flags of a segment that may be special.
    #[inline(never)]
    fn dress(&mut self, seq: u32, mut flags: Flags) -> (Flags, u16) {
        let mut size = self.wire;
        if seq == self.base {
            flags = flags.with(Flags::SYN);
            if self.config.bare_syn() {
                size = self.config.ack_size;
            }
        }
        if let Ok(i) = self.shorts.binary_search_by_key(&seq, |&(seq, _)| seq) {
            size = self.shorts[i].1.saturating_add(self.config.header);
        }
        if self.config.ecn && seq != self.base {
            let again = flags.has(Flags::RETRANSMISSION);
            // RFC 3168 section 6.1.5: retransmissions are not ECN-capable; ns-2's are
            if !again || self.profile == Profile::Ns2 {
                flags = flags.with(Flags::ECT);
                if self.cwr {
                    flags = flags.with(Flags::CWR);
                    self.cwr = false;
                }
            }
        }
        (flags, size)
    }

    // ------------------------------------------------------------------ timers

    /// A timer may have expired; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.delayed <= now {
            self.account(now);
            self.delayed = Time::NEVER;
            self.spaced = false; // forced: everything that the window allows
            self.pump_any(now, out);
            self.spaced = true;
        }
        if self.timer <= now {
            self.account(now);
            self.expired(now, out);
            self.requick();
        }
    }

    /// Sends by the rules of the present phase.
    fn pump_any(&mut self, now: Time, out: &mut impl Transmit) {
        if self.linux.is_some() {
            self.pump_linux(now, out);
        } else if self.sack.is_some() && self.phase == Phase::Recovery {
            self.pump_sack(now, out);
        } else {
            self.pump(now, u32::MAX, out);
        }
    }

    /// The retransmission timer has expired.
    #[cold]
    fn expired(&mut self, now: Time, out: &mut impl Transmit) {
        if self.linux.is_some() {
            return self.expired_linux(now, out);
        }
        let outstanding = self.una < self.max;
        if !outstanding && self.profile == Profile::Rfc {
            self.timer = Time::NEVER;
            return;
        }
        let vegas = self.fine.is_some();
        if outstanding {
            self.stats.timeouts += 1;
        }
        if outstanding || vegas {
            // RFC 5681 section 3.1: once per segment; ns-2: not right after a mark
            let keep = match self.profile {
                Profile::Rfc => self.action == Action::Timeout && self.rtt.backed_off(),
                _ => self.action == Action::Ecn,
            };
            self.tell(TcpEvent::Timeout(if keep { Threshold::Keep } else { Threshold::Cut }), now);
            self.cwr |= self.config.ecn;
            let limits = self.limits();
            self.rtt.back_off(&limits);
            self.set_timer(now);
        } else {
            // ns-2's timer runs on when nothing is outstanding: slow start after idle (slow_start_restart_)
            self.tell(TcpEvent::Idle { window: 1.0 }, now);
            self.timer = Time::NEVER;
        }
        self.limited = 0;
        self.recover = self.max;
        self.action = Action::Timeout;
        self.phase = Phase::Open;
        self.inflation = 0;
        self.partial = false;
        if self.config.recovery != Recovery::Tahoe || self.profile == Profile::Rfc {
            self.dupacks = 0;
        }
        self.nxt = self.una;
        self.timing = false;
        if let Some(sack) = &mut self.sack {
            sack.timed_out(self.una);
        }
        if let Some(fine) = &mut self.fine {
            fine.window_changed(now);
        }
        self.pump(now, u32::MAX, out);
    }
}

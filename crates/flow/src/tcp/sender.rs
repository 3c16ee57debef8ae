//! The sending end: its state, and what the application does with it.
//!
//! Acknowledgements are in `ack`, sending and timers in `output`. What is rare lies in other files and in boxes:
//! `recovery` (Tahoe, Reno, NewReno), `sack`, `linux`, `vegas`.

use super::TcpConfig;
use super::clock::Clock;
use super::kernel::Kernel;
use super::linux::Linux;
use super::rtt::Rtt;
use super::sack::Sack;
use super::vegas::FineTimer;
use crate::{SenderStats, Transmit};
use paceline_control::{Controller, Gauges, Profile, Recovery, TcpController, TcpEvent, WindowController};
use paceline_random as random;
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

/// How short a way an acknowledgement in order may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quick {
    /// The long one.
    No,
    /// Nothing is being repaired, and the receiver's window stands.
    Any,
    /// The same, and segments need no second look when they are sent, and the window is Reno's.
    Reno,
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
/// gets segments through [`Transmit`](crate::Transmit). [`TcpSender::next_wake`] says when to call [`TcpSender::on_timer`]; it may
/// move later without notice, and a call too early does nothing.
#[derive(Debug)]
#[repr(C)]
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
    /// Whether an acknowledgement in order needs nothing but the window's growth.
    pub(super) quick: Quick,
    pub(super) phase: Phase,
    /// A segment's round trip is being timed (Karn: it has been sent once).
    pub(super) timing: bool,
    /// Segments need a second look when sent: short ones, SYNs, ECN.
    pub(super) special: bool,
    pub(super) wire: u16,
    pub(super) spaced: bool,
    pub(super) profile: Profile,
    pub(super) timed: u32,
    pub(super) segment: u32,
    pub(super) timed_at: Time,
    /// When the retransmission timer expires.
    pub(super) timer: Time,
    pub(super) rto: Span,
    pub(super) controller: TcpController,
    pub(super) last_sent: Time,
    pub(super) stats: SenderStats,
    // ---- rarely used from here
    /// Segments that are not full, in order: number and payload.
    // Not the last of what has room for the tag of `Sender`, so that this lies further up, in the statistics' histogram.
    pub(super) shorts: VecDeque<(u32, u16)>,
    pub(super) clock: Option<Box<Clock>>,
    pub(super) fine: Option<Box<FineTimer>>,
    pub(super) rtt: Rtt,
    /// One past the highest segment sent when the last recovery began, or at the last timeout (RFC 6582's `recover`, RFC
    /// 6675's RecoveryPoint). Other profiles than `rfc` move it at a mark too.
    pub(super) recover: u32,
    /// Profile `rfc`: one past the highest segment sent when the window was last reduced, for whatever reason: one
    /// reduction a window of data (RFC 3168 section 6.1.2).
    pub(super) reduced: u32,
    /// The segment that the retransmission timer sent again last, if any (RFC 5681 section 3.1).
    pub(super) timed_out: Option<u32>,
    /// The connection's first segment: the SYN.
    pub(super) base: u32,
    pub(super) action: Action,
    /// New segments that limited transmit has sent: not part of FlightSize (RFC 5681 section 3.2).
    pub(super) limited: u32,
    /// The first partial acknowledgement of this recovery has come.
    pub(super) partial: bool,
    /// The next new segment carries CWR (RFC 3168).
    pub(super) cwr: bool,
    pub(super) stopped: bool,
    /// When a send held back by `send_overhead`, or by a mark at a window of one, is due.
    pub(super) delayed: Time,
    /// When the host's interface takes more than it would when it was last asked.
    pub(super) resumes: Time,
    pub(super) draws: u64,
    pub(super) stream: random::Stream,
    pub(super) phase_of_tick: u64,
    pub(super) first_sent: Time,
    pub(super) config: Box<TcpConfig>,
    pub(super) sack: Option<Box<Sack>>,
    pub(super) linux: Option<Box<Linux>>,
    /// Profile `linux`.
    pub(super) kernel: Option<Box<Kernel>>,
    fresh: TcpController,
}

// What an acknowledgement in order touches, the statistics up to the histogram included, fits into four cache lines with
// 24 bytes of its holder's; the counts of the histogram lie elsewhere.
const _: () = assert!(core::mem::offset_of!(TcpSender, stats) <= 104);

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
            quick: Quick::No,
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
            stats: SenderStats::new(config.wire()),
            rtt: Rtt::new(config.profile, config.initial_rto),
            recover: 0,
            reduced: 0,
            timed_out: None,
            base: 0,
            action: Action::None,
            limited: 0,
            partial: false,
            cwr: false,
            stopped: false,
            delayed: Time::NEVER,
            resumes: Time::NEVER,
            draws: 0,
            stream,
            phase_of_tick: 0,
            first_sent: Time::NEVER,
            config: Box::new(config.clone()),
            shorts: VecDeque::new(),
            clock: None,
            sack: None,
            linux: None,
            kernel: None,
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
        self.spaced = config.send_overhead > Span::ZERO;
        self.timer = Time::NEVER;
        self.rtt = Rtt::new(config.profile, config.initial_rto);
        self.rto = config.initial_rto;
        self.controller = self.fresh.clone();
        self.recover = base;
        self.reduced = base;
        self.timed_out = None;
        self.action = Action::None;
        self.limited = 0;
        self.partial = false;
        self.cwr = false;
        self.delayed = Time::NEVER;
        self.resumes = Time::NEVER;
        self.first_sent = Time::NEVER;
        self.phase_of_tick = (self.stream.unit(self.draws) * 1e7) as u64;
        self.draws += 1;
        self.shorts.clear();
        let linux = config.profile == Profile::Ns2Linux;
        let kernel = config.profile == Profile::Linux;
        self.clock = (linux || !kernel && config.recovery == Recovery::Vegas).then(|| Box::new(Clock::new(base)));
        self.sack = (!linux && !kernel && config.recovery == Recovery::Sack).then(|| Box::new(Sack::new(base)));
        self.linux = linux.then(Box::default);
        self.kernel = kernel.then(|| Box::new(Kernel::new(config, base)));
        if let Some(k) = &self.kernel {
            self.receive_window = self.receive_window.min(k.tune.bound());
        }
        self.fine = (!linux && !kernel && config.recovery == Recovery::Vegas).then(Box::default);
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
        self.stats.begin(now);
        self.integrate(now);
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
            self.quick = Quick::No;
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
        if self.max == self.base {
            self.first_sent = now;
        }
        let idle = self.una == self.max && self.max > self.base;
        if self.profile == Profile::Rfc && idle && now.since(self.last_sent) > self.rto {
            let window = f64::from(self.config.initial_window);
            self.tell(TcpEvent::Idle { window }, now); // RFC 5681 section 4.1
        } else if idle && self.kernel.is_some() {
            self.idle_kernel(now);
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
        self.timer.min(self.delayed).min(self.resumes)
    }

    /// When the retransmission timer expires.
    #[inline]
    pub(crate) fn timer(&self) -> Time {
        self.timer
    }

    /// Counts up to now. Call [`TcpSender::account`] first to integrate the window up to a given time.
    #[must_use]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// Integrates the window up to `now`, so that [`TcpSender::stats`] is complete; before the start there is none.
    pub fn account(&mut self, now: Time) {
        if self.first_sent != Time::NEVER || self.stats.packets_sent > 0 {
            self.integrate(now);
            self.stats.window_most = self.stats.window_most.max(self.controller.window());
        }
    }

    #[inline]
    pub(super) fn integrate(&mut self, now: Time) {
        let window = match self.profile {
            Profile::Ns2Linux | Profile::Linux => self.shown(),
            _ => self.controller.window(),
        };
        self.stats.advance(now, window);
    }

    #[cold]
    fn shown(&self) -> f64 {
        if self.kernel.is_some() { self.shown_kernel() } else { self.shown_linux() }
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

    /// What a plot should show: the controller's gauges, `srtt` and `in_flight`.
    pub fn gauges(&self, to: &mut dyn Gauges) {
        self.controller.gauges(to);
        to.seconds("srtt", self.rtt.srtt().as_secs_f64());
        to.packets("in_flight", f64::from(self.in_flight()));
    }
}

//! The state that all loss recoveries share: the bounds of outstanding data, timers, the application's data,
//! statistics. `ack` has the processing of acknowledgements, `output` the sending.

use super::TcpConfig;
use super::delivery::Delivery;
use super::handshake::{Bits, Codepoint};
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use crate::SenderStats;
use crate::pacing::Pacing;
use paceline_control::{Ecn, Needs, Profile, Recovery, TcpController, WindowController};
use paceline_random as random;
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// The phase of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// No recovery.
    Open,
    /// Fast recovery, until `recover` is acknowledged.
    Recovery,
    /// TCP-Linux only: after a timeout, until `recover` is acknowledged.
    Loss,
}

/// The fast path that the next acknowledgement may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FastPath {
    /// None.
    No,
    /// No recovery is under way, and the receive window is the configured one.
    Any,
    /// As `Any`; in addition segments are regular and leave at once, and the window is Reno's.
    Reno,
    /// Losses are found by time (RACK): no recovery is under way, and segments are regular.
    Rack,
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

/// The number of duplicate ACKs that indicate a loss (RFC 5681 section 3.2, RFC 6675's DupThresh).
pub(super) const DUPLICATES: u32 = 3;

/// Unlimited supply: more segments than a connection can number.
pub(super) const ENDLESS: u32 = u32::MAX - 1;

/// The state of a connection's sending end.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Connection {
    /// `una`: the next segment that the receiver expects; `nxt`: the next to send in order; `max`: one past the highest
    /// sent; `limit`: one past the last that the application has supplied.
    pub(super) una: u32,
    pub(super) nxt: u32,
    pub(super) max: u32,
    pub(super) limit: u32,
    pub(super) receive_window: u32,
    /// Window inflation by duplicate ACKs in fast recovery.
    pub(super) inflation: u32,
    pub(super) dupacks: u32,
    pub(super) fast_path: FastPath,
    pub(super) phase: Phase,
    /// A segment's round trip is being timed (Karn: it was sent only once).
    pub(super) timing: bool,
    /// Segments may be short, a SYN, or ECN-capable.
    pub(super) irregular: bool,
    pub(super) wire: u16,
    /// Sending waits for `delayed_send`: there is a pacer, a random send delay, or a mark at the minimum window.
    pub(super) delays_sends: bool,
    pub(super) profile: Profile,
    pub(super) timed: u32,
    pub(super) segment: u32,
    /// Outstanding segments are recorded in `sent`.
    pub(super) keeps_sent: bool,
    /// ns-2's Vegas has its own output function, which does not restart a pending timer.
    pub(super) keeps_timer: bool,
    pub(super) timed_at: Time,
    /// When the retransmission timer expires.
    pub(super) timer: Time,
    pub(super) rto: Span,
    pub(super) controller: TcpController,
    pub(super) last_sent: Time,
    pub(super) stats: SenderStats,
    // ---- rarely used from here on
    /// Segments that are not full, in order: number and payload size.
    // Not the last field with a niche for the tag of `Sender`, so that the tag is further up, in the statistics'
    // histogram.
    pub(super) shorts: VecDeque<(u32, u16)>,
    pub(super) sent: Box<Scoreboard>,
    pub(super) rtt: Rtt,
    /// One past the highest segment sent when the last recovery began, or at the last timeout (RFC 6582's `recover`,
    /// RFC 6675's RecoveryPoint). Profiles other than `rfc` also move it at a mark.
    pub(super) recover: u32,
    /// Profile `rfc`: one past the highest segment sent when the window was last reduced, for any reason. There is one
    /// reduction per window of data (RFC 3168 section 6.1.2).
    pub(super) reduced: u32,
    /// The segment that the last retransmission timeout was for, if any (RFC 5681 section 3.1).
    pub(super) timed_out: Option<u32>,
    /// The connection's first segment, the SYN.
    pub(super) base: u32,
    pub(super) action: Action,
    /// Number of new segments sent by limited transmit; FlightSize excludes them (RFC 5681 section 3.2).
    pub(super) limited: u32,
    /// A partial acknowledgement has arrived in this recovery.
    pub(super) partial: bool,
    /// The negotiated ECN mode, and what the path does to the ECN bits. Below, `reflects`: the codepoint with which the
    /// SYN/ACK arrived, until the next segment reports it.
    pub(super) ecn: Ecn,
    pub(super) bits: Bits,
    /// Number of retransmissions of the SYN.
    pub(super) syns_again: u8,
    pub(super) reflects: Option<Codepoint>,
    pub(super) marked_syn_ack: bool,
    /// The next new segment carries CWR (RFC 3168).
    pub(super) cwr: bool,
    /// `echo`: the current acknowledgement reports a mark; `marks`: number of marked segments that the receiver has
    /// reported (RFC 9768's s.cep, from 0); `marks_sampled`: its value at the last rate sample.
    pub(super) echo: bool,
    pub(super) marks: u32,
    pub(super) marks_sampled: u32,
    /// Mean number of segments that an acknowledgement newly covers, in 64ths; kept for RFC 9768's counter.
    pub(super) coverage: u32,
    pub(super) stopped: bool,
    /// When a send is due that `send_overhead`, the pacer, or a mark at a window of one segment holds back.
    pub(super) delayed_send: Time,
    /// When the host's interface, last found full, takes more segments.
    pub(super) resumes: Time,
    pub(super) draws: u64,
    pub(super) stream: random::Stream,
    pub(super) phase_of_tick: u64,
    pub(super) first_sent: Time,
    /// What the controller needs; state for other needs is not kept.
    pub(super) needs: Needs,
    pub(super) delivery: Option<Box<Delivery>>,
    pub(super) pacing: Option<Box<Pacing>>,
    pub(super) config: Box<TcpConfig>,
    fresh: TcpController,
    /// Disables the fast paths, for comparison in a test.
    #[cfg(test)]
    pub(super) slow_only: bool,
    /// Rate samples that the controller processed on its fast path.
    #[cfg(test)]
    pub(super) usual: u32,
}

impl Connection {
    /// Creates a connection that has not begun; call [`Connection::begin`] next.
    pub(super) fn new(config: &TcpConfig, controller: TcpController, stream: random::Stream) -> Connection {
        let by_time = config.rack();
        let needs = controller.needs();
        let vegas = config.recovery == Recovery::Vegas && matches!(config.profile, Profile::Rfc | Profile::Ns2);
        Connection {
            una: 0,
            nxt: 0,
            max: 0,
            limit: 0,
            receive_window: config.receive_window.max(1),
            inflation: 0,
            dupacks: 0,
            fast_path: FastPath::No,
            phase: Phase::Open,
            timing: false,
            irregular: true,
            wire: config.wire(),
            delays_sends: config.send_overhead > Span::ZERO,
            profile: config.profile,
            timed: 0,
            segment: u32::from(config.segment.max(1)),
            keeps_sent: vegas || config.rack() || config.profile == Profile::Ns2Linux,
            keeps_timer: vegas,
            timed_at: Time::ZERO,
            timer: Time::NEVER,
            rto: config.initial_rto,
            controller: controller.clone(),
            last_sent: Time::ZERO,
            stats: SenderStats::new(config.wire()),
            shorts: VecDeque::new(),
            sent: Box::new(Scoreboard::new(0, by_time).reporting_losses(needs.deliveries)),
            rtt: Rtt::new(config.profile, config.initial_rto),
            recover: 0,
            reduced: 0,
            timed_out: None,
            base: 0,
            action: Action::None,
            limited: 0,
            partial: false,
            ecn: config.ecn,
            bits: Bits::Whole,
            syns_again: 0,
            reflects: None,
            marked_syn_ack: false,
            cwr: false,
            echo: false,
            marks: 0,
            marks_sampled: 0,
            coverage: 0,
            stopped: false,
            delayed_send: Time::NEVER,
            resumes: Time::NEVER,
            draws: 0,
            stream,
            phase_of_tick: 0,
            first_sent: Time::NEVER,
            needs,
            delivery: None,
            pacing: None,
            config: Box::new(config.clone()),
            fresh: controller,
            #[cfg(test)]
            slow_only: false,
            #[cfg(test)]
            usual: 0,
        }
    }

    /// Begins a connection with segment `base`; statistics continue to count.
    pub(super) fn begin(&mut self, base: u32) {
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
        self.irregular = true;
        let paced = self.needs.pacing || config.pacing;
        self.delays_sends = config.send_overhead > Span::ZERO || paced;
        self.timer = Time::NEVER;
        self.rtt = Rtt::new(config.profile, config.initial_rto);
        self.rto = config.initial_rto;
        self.controller = self.fresh.clone();
        self.controller.draw_from(self.stream.fork(u64::from(base)));
        self.delivery = self.needs.deliveries.then(|| Box::new(Delivery::new()));
        self.pacing = paced.then(|| Box::new(Pacing::new()));
        if paced && !self.needs.pacing {
            self.controller.is_paced();
        }
        self.recover = base;
        self.reduced = base;
        self.timed_out = None;
        self.action = Action::None;
        self.limited = 0;
        self.partial = false;
        self.ecn = self.config.ecn;
        self.bits = Bits::Whole;
        self.syns_again = 0;
        self.reflects = None;
        self.marked_syn_ack = false;
        self.cwr = false;
        self.echo = false;
        self.marks = 0;
        self.marks_sampled = 0;
        self.coverage = 0;
        self.delayed_send = Time::NEVER;
        self.resumes = Time::NEVER;
        self.first_sent = Time::NEVER;
        self.phase_of_tick = (self.stream.unit(self.draws) * 1e7) as u64;
        self.draws += 1;
        self.shorts.clear();
        self.sent.begin(base);
        self.stopped = false;
    }

    /// Adds the application's write: full segments and, for a remainder, a short last one.
    pub(super) fn write(&mut self, bytes: u64) {
        let segment = u64::from(self.segment);
        let (full, rest) = (bytes / segment, bytes % segment);
        let segments = u32::try_from(full + u64::from(rest > 0)).unwrap_or(u32::MAX);
        if self.limit == self.base && self.config.bare_syn() {
            self.limit += 1; // the SYN waits for data
        }
        self.limit = self.limit.saturating_add(segments).min(ENDLESS);
        if rest > 0 && !self.config.whole_segments && self.limit < ENDLESS {
            self.shorts.push_back((self.limit - 1, rest as u16));
            self.irregular = true;
            self.fast_path = FastPath::No;
        }
    }

    /// The application stops: unsent data is discarded.
    pub(super) fn stop(&mut self) {
        self.withdraw();
        self.stopped = true;
    }

    /// Withdraws unsent data.
    pub(super) fn withdraw(&mut self) {
        self.limit = self.max;
        while self.shorts.back().is_some_and(|&(seq, _)| seq >= self.limit) {
            self.shorts.pop_back();
        }
    }
}

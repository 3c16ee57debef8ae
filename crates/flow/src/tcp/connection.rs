//! What every way of repairing losses has in common: the edges of what is outstanding, the timers, the application's data, the
//! statistics. `ack` has what acknowledgements do to it, `output` how it sends.

use super::TcpConfig;
use super::delivery::Delivery;
use super::handshake::{Bits, Codepoint};
use super::rtt::Rtt;
use super::sent::Sent;
use crate::SenderStats;
use crate::pacing::Pacing;
use paceline_control::{Ecn, Needs, Profile, Recovery, TcpController, WindowController};
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

/// The fast path that an acknowledgement in order may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FastPath {
    /// None.
    No,
    /// Nothing is being repaired, and the receiver's window stands.
    Any,
    /// The same, and segments are regular and leave at once, and the window is Reno's.
    Reno,
    /// Losses are found by time: nothing is being repaired, and segments are regular.
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

/// So many duplicates tell of a loss (RFC 5681 section 3.2, RFC 6675's DupThresh).
pub(super) const DUPLICATES: u32 = 3;

/// Unlimited supply: more segments than a connection can number.
pub(super) const ENDLESS: u32 = u32::MAX - 1;

/// The state of a connection's sending end.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Connection {
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
    pub(super) fast_path: FastPath,
    pub(super) phase: Phase,
    /// A segment's round trip is being timed (Karn: it has been sent once).
    pub(super) timing: bool,
    /// Segments may be short, a SYN, or ECN-capable.
    pub(super) irregular: bool,
    pub(super) wire: u16,
    /// Sending waits for `delayed_send`.
    pub(super) delays_sends: bool,
    pub(super) profile: Profile,
    pub(super) timed: u32,
    pub(super) segment: u32,
    /// `sent` knows what is outstanding.
    pub(super) keeps_sent: bool,
    /// ns-2's Vegas has an output of its own, which leaves a pending timer alone.
    pub(super) keeps_timer: bool,
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
    pub(super) sent: Box<Sent>,
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
    /// What both ends have of ECN; what the path does to its bits; how the two of the SYN/ACK arrived, until the next segment tells.
    pub(super) ecn: Ecn,
    pub(super) bits: Bits,
    /// How often the SYN was sent again.
    pub(super) syns_again: u8,
    pub(super) reflects: Option<Codepoint>,
    pub(super) marked_syn_ack: bool,
    /// The next new segment carries CWR (RFC 3168).
    pub(super) cwr: bool,
    /// The acknowledgement that is being read tells of a mark; so many marked segments has the receiver told of (RFC 9768's
    /// s.cep, from 0), and of how many of them the last sample told.
    pub(super) echo: bool,
    pub(super) marks: u32,
    pub(super) marks_sampled: u32,
    /// Mean of the segments that an acknowledgement newly covers, in 64ths, while marks are counted by RFC 9768.
    pub(super) coverage: u32,
    pub(super) stopped: bool,
    /// When a send held back by `send_overhead`, or by a mark at a window of one, is due.
    pub(super) delayed_send: Time,
    /// When the host's interface takes more than it would when it was last asked.
    pub(super) resumes: Time,
    pub(super) draws: u64,
    pub(super) stream: random::Stream,
    pub(super) phase_of_tick: u64,
    pub(super) first_sent: Time,
    /// What the controller needs; what it does not is not kept.
    pub(super) needs: Needs,
    pub(super) delivery: Option<Box<Delivery>>,
    pub(super) pacing: Option<Box<Pacing>>,
    pub(super) config: Box<TcpConfig>,
    fresh: TcpController,
    /// No fast path is taken: what a test compares the fast ones with.
    #[cfg(test)]
    pub(super) slow_only: bool,
    /// Samples that the controller took its short way with.
    #[cfg(test)]
    pub(super) usual: u32,
}

impl Connection {
    /// One that has not begun; [`Connection::begin`] comes next.
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
            sent: Box::new(Sent::new(0, by_time).telling(needs.deliveries)),
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

    /// Begins with segment `base`; statistics go on counting.
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

    /// Takes in what an application writes: whole segments and, unless it fits, a short last one.
    pub(super) fn write(&mut self, bytes: u64) {
        let segment = u64::from(self.segment);
        let (full, rest) = (bytes / segment, bytes % segment);
        let segments = u32::try_from(full + u64::from(rest > 0)).unwrap_or(u32::MAX);
        if self.limit == self.base && self.config.bare_syn() {
            self.limit += 1; // the SYN waits for something to say
        }
        self.limit = self.limit.saturating_add(segments).min(ENDLESS);
        if rest > 0 && !self.config.whole_segments && self.limit < ENDLESS {
            self.shorts.push_back((self.limit - 1, rest as u16));
            self.irregular = true;
            self.fast_path = FastPath::No;
        }
    }

    /// The application stops: what has not been sent yet never will be.
    pub(super) fn stop(&mut self) {
        self.withdraw();
        self.stopped = true;
    }

    /// What has not been sent yet is taken back.
    pub(super) fn withdraw(&mut self) {
        self.limit = self.max;
        while self.shorts.back().is_some_and(|&(seq, _)| seq >= self.limit) {
            self.shorts.pop_back();
        }
    }
}

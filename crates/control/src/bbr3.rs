//! BBR, version 3: a model of the path's bandwidth, round trip and inflight limits, each probed in turn.
//!
//! Source: N. Cardwell, I. Swett, J. Beshay (editors), draft-ietf-ccwg-bbr, text of 3 August 2026, with its names of
//! functions and variables; volumes are in bytes and rates in bytes per second. `model` holds the path model, `phases`
//! the state machine, `control` the resulting rate, quantum and window, and `fast_path` a shortcut for most samples.
//! docs/controllers/bbr3.md says how details are decided that the text leaves open, or on which it contradicts itself.

mod control;
mod fast_path;
mod model;
mod phases;

use crate::delivery::{Rounds, UNSET, WindowedMax, float};
use crate::{Build, Controller, Gauges, LostSegment, Machine, Needs, PathView, Profile, RateSample, Recovery, Scheme};
use crate::{TcpEvent, Threshold, WindowController, known};
use fast_path::FastPath;
use paceline_random::{Sequence, Stream};
use paceline_units::{Span, Time};

const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
const DEFAULT_CWND_GAIN: f64 = 2.0;
const PROBE_DOWN_PACING_GAIN: f64 = 0.90;
const PROBE_UP_PACING_GAIN: f64 = 1.25;
const PROBE_UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// PacingMarginPercent.
const PACING_MARGIN: f64 = 0.01;
/// LossThresh: the maximum share of a round trip's data that may be lost.
const LOSS_THRESH: f64 = 0.02;
/// StartupFullLossCnt: separate losses in a round trip that end Startup.
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
/// Beta: decrease of the short-term bounds in a round trip with losses; after too much loss, the minimum of the
/// long-term bound as a share of the target.
const BETA: f64 = 0.7;
/// Headroom: the share of the long-term bound left free while cruising.
const HEADROOM: f64 = 0.15;
/// MinPipeCwnd, in segments.
const MIN_PIPE_CWND: f64 = 4.0;
/// ExtraAckedFilterLen, in round trips.
const EXTRA_ACKED_FILTER_LEN: u64 = 10;
const MIN_RTT_FILTER_LEN: Span = Span::from_secs(10);
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
/// Maximum round trips between bandwidth probes; coexistence with Reno may require fewer.
const RENO_ROUNDS: f64 = 63.0;

/// The state machine's states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Doubles the rate each round trip to find the path's bandwidth.
    Startup,
    /// Drains the queue that Startup has built.
    Drain,
    /// Sends slower than the delivery rate.
    ProbeBwDown,
    /// Sends at the delivery rate.
    ProbeBwCruise,
    /// Sends at the delivery rate, without the short-term bounds.
    ProbeBwRefill,
    /// Sends faster than the delivery rate.
    ProbeBwUp,
    /// Keeps little in flight, to measure the path's minimum round trip.
    ProbeRtt,
}

impl State {
    /// All states; the gauge `state` is an index into this.
    pub const ALL: [State; 7] = [
        State::Startup,
        State::Drain,
        State::ProbeBwDown,
        State::ProbeBwCruise,
        State::ProbeBwRefill,
        State::ProbeBwUp,
        State::ProbeRtt,
    ];

    const fn probes_bandwidth(self) -> bool {
        matches!(self, State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp)
    }
}

/// Relates acknowledgements to the bandwidth probe that they answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// A state that losses have ended, restored if the losses were spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum UndoState {
    Startup,
    ProbeUp,
}

/// The state.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    state: State,
    cwnd: f64,
    prior_cwnd: f64,
    initial_cwnd: f64,
    pacing_rate: f64,
    send_quantum: f64,
    pacing_gain: f64,
    cwnd_gain: f64,
    seen_rtt: bool,
    smss: f64,
    /// C.delivered and C.inflight at the last sample.
    total: u64,
    in_flight: f64,
    /// In fast recovery or in recovery after a timeout.
    recovering: bool,

    rounds: Rounds,
    rounds_since_probe_up: u64,
    idle_restart: bool,

    // ---- rate
    bw: f64,
    max_bw: f64,
    /// The maximum of the previous ProbeBW cycle, and of the current one.
    max_bw_of: [f64; 2],
    bw_shortterm: f64,
    bw_latest: f64,

    // ---- volume
    min_rtt: Option<Span>,
    /// The same in seconds; 0 if unset.
    min_rtt_s: f64,
    min_rtt_stamp: Time,
    bdp: f64,
    inflight_longterm: f64,
    inflight_shortterm: f64,
    inflight_latest: f64,
    extra_acked: WindowedMax,
    extra_acked_start: Time,
    extra_acked_delivered: f64,

    // ---- losses
    loss_round_delivered: u64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    /// Separate losses in this round trip, and the sequence number after the newest lost segment.
    loss_ranges: u32,
    loss_end: u32,
    undo_state: Option<UndoState>,
    undo_bw_shortterm: f64,
    undo_inflight_shortterm: f64,
    undo_inflight_longterm: f64,

    // ---- Startup, Drain
    full_bw: f64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    drain_start_round: u64,

    // ---- ProbeBW
    cycle_stamp: Time,
    ack_phase: AckPhase,
    bw_probe_wait: Span,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    is_bw_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,

    // ---- ProbeRTT
    probe_rtt_min_delay: Option<Span>,
    probe_rtt_min_stamp: Time,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Time,
    probe_rtt_round_done: bool,

    draws: Sequence,
    fast_path: FastPath,
}

impl Bbr3 {
    /// OnInit: the connection is established.
    fn init(&mut self, window: f64, path: &PathView) {
        let mut fresh = Bbr3::build(Profile::Rfc, &[]);
        fresh.draws = self.draws;
        *self = fresh;
        self.smss = f64::from(path.segment);
        self.cwnd = window.max(1.0) * self.smss;
        self.initial_cwnd = self.cwnd;
        if path.srtt > Span::ZERO {
            self.set_min_rtt(path.srtt);
        }
        self.min_rtt_stamp = path.now;
        self.probe_rtt_min_stamp = path.now;
        self.extra_acked_start = path.now;
        self.init_pacing_rate(path);
    }

    /// UpdateOnACK from UpdateModelAndState on; the machine has already taken the sample.
    #[inline(never)]
    fn update(&mut self, sample: &RateSample, path: &PathView) {
        self.smss = f64::from(path.segment);
        self.total = sample.total;
        self.in_flight = float(sample.in_flight);
        let rate = sample.rate();
        self.update_latest_delivery_signals(sample, rate);
        self.update_congestion_signals(sample, rate);
        self.update_ack_aggregation(sample, path.now);
        self.check_full_bw_reached(sample, rate);
        self.check_startup_done(sample);
        self.check_drain_done(path.now);
        self.update_probe_bw_cycle_phase(sample, path.now);
        self.update_min_rtt(sample, path.now);
        self.check_probe_rtt(sample, path.now);
        self.advance_latest_delivery_signals(sample, rate);
        self.bound_bw_for_model();

        self.set_pacing_rate(path);
        self.set_send_quantum();
        self.set_cwnd(sample);
        self.update_fast_path();
    }

    /// HandleRestartFromIdle.
    fn restart_from_idle(&mut self, now: Time) {
        self.idle_restart = true;
        self.fast_path = FastPath::NEVER;
        self.extra_acked_start = now;
        self.in_flight = 0.0;
        if self.state.probes_bandwidth() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}

impl Build for Bbr3 {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "bbr3",
        summary: "BBR, version 3: paces at what the path delivers, bounded by what losses say it holds",
        source: "draft-ietf-ccwg-bbr (August 2026)",
        machine: Machine::Tcp([Recovery::Rack; Profile::ALL.len()]),
        parameters: &[],
        foreign: None,
    }];

    fn build(_profile: Profile, _values: &[f64]) -> Bbr3 {
        Bbr3 {
            state: State::Startup,
            cwnd: 1460.0,
            prior_cwnd: 0.0,
            initial_cwnd: 1460.0,
            pacing_rate: f64::INFINITY,
            send_quantum: 2.0 * 1460.0,
            pacing_gain: STARTUP_PACING_GAIN,
            cwnd_gain: DEFAULT_CWND_GAIN,
            seen_rtt: false,
            smss: 1460.0,
            total: 0,
            in_flight: 0.0,
            recovering: false,
            rounds: Rounds::default(),
            rounds_since_probe_up: 0,
            idle_restart: false,
            bw: 0.0,
            max_bw: 0.0,
            max_bw_of: [0.0; 2],
            bw_shortterm: f64::INFINITY,
            bw_latest: 0.0,
            min_rtt: None,
            min_rtt_s: 0.0,
            min_rtt_stamp: Time::ZERO,
            bdp: 0.0,
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_latest: 0.0,
            extra_acked: WindowedMax::default(),
            extra_acked_start: Time::ZERO,
            extra_acked_delivered: 0.0,
            loss_round_delivered: 0,
            loss_round_start: false,
            is_loss_in_round: false,
            loss_ranges: 0,
            loss_end: u32::MAX,
            undo_state: None,
            undo_bw_shortterm: 0.0,
            undo_inflight_shortterm: 0.0,
            undo_inflight_longterm: 0.0,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            cycle_stamp: Time::ZERO,
            ack_phase: AckPhase::Init,
            bw_probe_wait: Span::ZERO,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: Time::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: UNSET,
            probe_rtt_round_done: false,
            draws: Sequence::new(Stream::new(0, "bbr3")),
            fast_path: FastPath::NEVER,
        }
    }
}

impl Controller for Bbr3 {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::Established { window } => self.init(window, path),
            // OnEnterFastRecovery
            TcpEvent::Lost { .. } => {
                self.save_state_upon_loss();
                self.recovering = true;
            }
            // OnEnterRTO; a repeated timeout saves no state, since the state after the first reduction is not one to
            // restore
            TcpEvent::Timeout(threshold) => {
                if threshold == Threshold::Cut {
                    self.save_state_upon_loss();
                }
                self.recovering = true;
                self.fast_path = FastPath::NEVER;
                self.cwnd = (f64::from(path.in_flight) + 1.0) * self.smss;
            }
            TcpEvent::Recovered { .. } if self.recovering => {
                self.recovering = false;
                self.restore_cwnd();
            }
            TcpEvent::Undo { .. } => {
                self.recovering = false;
                self.handle_spurious_loss_detection();
            }
            TcpEvent::Resumed { app_limited: true, .. } => self.restart_from_idle(path.now),
            TcpEvent::Acked { .. }
            | TcpEvent::Deflate { .. }
            | TcpEvent::Duplicate
            | TcpEvent::EcnEcho
            | TcpEvent::Idle { .. }
            | TcpEvent::Recovered { .. }
            | TcpEvent::Repaired { .. }
            | TcpEvent::Resumed { .. } => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        let place = State::ALL.iter().position(|&s| s == self.state).unwrap_or_default();
        to.packets("cwnd", self.cwnd / self.smss);
        to.bits_per_second("pacing_rate", known(8.0 * self.pacing_rate));
        to.number("state", place as f64);
        to.number("pacing_gain", self.pacing_gain);
        to.number("round_count", self.rounds.count as f64);
        to.number("full_bw_count", f64::from(self.full_bw_count));
        to.bits_per_second("bw", known(8.0 * self.bw));
        to.bits_per_second("max_bw", known(8.0 * self.max_bw));
        to.bits_per_second("bw_shortterm", known(8.0 * self.bw_shortterm));
        to.packets("inflight_longterm", known(self.inflight_longterm / self.smss));
        to.packets("inflight_shortterm", known(self.inflight_shortterm / self.smss));
        to.packets("extra_acked", known(self.extra_acked.get() / self.smss));
        to.seconds("min_rtt", self.min_rtt.map_or(f64::NAN, Span::as_secs_f64));
    }
}

impl WindowController for Bbr3 {
    fn window(&self) -> f64 {
        self.cwnd / self.smss
    }
    fn threshold(&self) -> f64 {
        f64::INFINITY
    }
    fn base_rtt(&self) -> Option<f64> {
        self.min_rtt.map(Span::as_secs_f64)
    }
    fn needs(&self) -> Needs {
        Needs::RATE_MODEL
    }
    fn on_delivery(&mut self, sample: &RateSample, path: &PathView) {
        self.update(sample, path);
    }
    #[inline(always)]
    fn on_delivery_fast(&mut self, sample: &RateSample, now: Time) -> bool {
        self.update_on_fast_path(sample, now)
    }
    fn on_lost(&mut self, lost: &LostSegment, path: &PathView) {
        self.handle_lost_packet(lost, path.now);
    }
    fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }
    fn send_quantum(&self) -> u32 {
        self.send_quantum as u32
    }
    fn limits_itself(&self) -> bool {
        self.state == State::ProbeRtt // HandleProbeRTT's MarkConnectionAppLimited
    }
    fn draw_from(&mut self, stream: Stream) {
        self.draws = Sequence::new(stream);
    }
}

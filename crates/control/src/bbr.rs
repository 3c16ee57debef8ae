//! BBR, version 1, as in a current kernel: paces at the path's maximum delivery rate, with a window of twice its
//! bandwidth-delay product.
//!
//! Source: the behaviour of Linux 6.18 (`net/ipv4/tcp_bbr.c`); N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V.
//! Jacobson, "BBR: congestion-based congestion control", ACM Queue 14(5), 2016. As there, windows are in segments and
//! rates in segments per second; `policer` estimates the rate of a policed path. Departures are listed in
//! docs/controllers/bbr.md.

mod policer;

use crate::delivery::{Rounds, UNSET, WindowedMax};
use crate::{Build, Controller, Gauges, Machine, Needs, PathView, Profile, RateSample, Recovery, Scheme, TcpEvent};
use crate::{WindowController, known};
use paceline_random::{Sequence, Stream};
use paceline_units::{Span, Time};
use policer::Policer;

/// `bbr_high_gain`, `bbr_drain_gain`, `bbr_pacing_gain`: in units of 1/256 in the kernel.
const HIGH_GAIN: f64 = 739.0 / 256.0;
const DRAIN_GAIN: f64 = 88.0 / 256.0;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const CWND_GAIN: f64 = 2.0;
/// `bbr_cwnd_min_target`.
const CWND_MIN_TARGET: f64 = 4.0;
/// `bbr_bw_rtts`.
const BW_ROUNDS: u64 = 10;
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
const PROBE_RTT_TIME: Span = Span::from_millis(200);
/// `bbr_pacing_margin_percent`.
const PACING_MARGIN: f64 = 0.01;
/// `bbr_min_tso_rate`, in bytes per second: below it quanta are single segments.
const MIN_TSO_RATE: f64 = 1.2e6 / 8.0;
/// `GSO_LEGACY_MAX_SIZE` minus one byte and the maximum header size.
const MAX_SEND_QUANTUM: f64 = 65_535.0 - 320.0;
/// `bbr_extra_acked_win_rtts`, `bbr_extra_acked_max_us`.
const EXTRA_ROUNDS: u32 = 5;
const EXTRA_TIME: f64 = 0.1;
/// `bbr_ack_epoch_acked_reset_thresh`.
const EXTRA_RESET: f64 = 1_048_576.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The state.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    cwnd: f64,
    prior_cwnd: f64,
    initial_cwnd: f64,
    /// Segments per second.
    pacing_rate: f64,
    pacing_gain: f64,
    cwnd_gain: f64,
    seen_rtt: bool,
    smss: f64,
    rounds: Rounds,
    bw: WindowedMax,
    policer: Policer,
    min_rtt: Option<Span>,
    min_rtt_stamp: Time,
    probe_rtt_done: Time,
    probe_rtt_round_done: bool,
    full_bw: f64,
    full_bw_count: u32,
    full_bw_reached: bool,
    cycle: usize,
    cycle_stamp: Time,
    idle_restart: bool,
    /// In recovery or after a timeout; just entered it; just left it; packet conservation: one segment sent per one
    /// delivered.
    recovering: bool,
    entered: bool,
    left: bool,
    conserves: bool,
    extra: [f64; 2],
    extra_rounds: u32,
    extra_start: Time,
    extra_acked: f64,
    total: u64,
    draws: Sequence,
}

impl Bbr {
    fn max_bw(&self) -> f64 {
        self.bw.get()
    }

    /// `bbr_bw`.
    fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.max_bw())
    }

    /// `bbr_tso_segs_goal`: segments per burst.
    fn quantum(&self) -> f64 {
        let min = if self.pacing_rate * self.smss < MIN_TSO_RATE { 1.0 } else { 2.0 };
        let bytes = (self.pacing_rate * self.smss / 1024.0).min(MAX_SEND_QUANTUM);
        (bytes / self.smss).floor().max(min).min(127.0)
    }

    /// `bbr_inflight`: the bandwidth-delay product times `gain`, plus the quantization budget.
    fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantized(self.bdp(bw, gain))
    }

    /// `bbr_bdp`.
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        self.min_rtt.map_or(self.initial_cwnd, |rtt| (gain * bw * rtt.as_secs_f64()).ceil())
    }

    /// `bbr_quantization_budget`.
    fn quantized(&self, cwnd: f64) -> f64 {
        let even = 2.0 * ((cwnd + 3.0 * self.quantum()) / 2.0).ceil();
        if self.mode == Mode::ProbeBw && self.cycle == 0 { even + 2.0 } else { even }
    }

    /// `bbr_update_bw`.
    fn update_bw(&mut self, sample: &RateSample, now: Time) {
        self.rounds.start = false;
        let rate = sample.rate() / self.smss;
        if rate <= 0.0 {
            return;
        }
        self.rounds.update(sample);
        self.conserves &= !self.rounds.start;
        if self.policer.sample(sample, self.rounds.start, self.mode == Mode::ProbeBw, now, self.smss) {
            self.enter_probe_bw(now);
        }
        if !sample.app_limited || rate >= self.max_bw() {
            self.bw.update(self.rounds.count, rate, BW_ROUNDS);
        }
    }

    /// `bbr_update_ack_aggregation`.
    fn update_aggregation(&mut self, sample: &RateSample, now: Time) {
        if sample.rate() <= 0.0 {
            return;
        }
        if self.rounds.start {
            self.extra_rounds += 1;
            if self.extra_rounds >= EXTRA_ROUNDS {
                self.extra_rounds = 0;
                self.extra = [0.0, self.extra[0]];
            }
        }
        let newly = sample.newly_acked as f64 / self.smss;
        let mut expected = self.bandwidth() * now.since(self.extra_start).as_secs_f64();
        if self.extra_acked <= expected || self.extra_acked + newly >= EXTRA_RESET {
            (self.extra_acked, self.extra_start, expected) = (0.0, now, 0.0);
        }
        self.extra_acked += newly;
        self.extra[0] = self.extra[0].max((self.extra_acked - expected).min(self.cwnd));
    }

    /// `bbr_update_cycle_phase`.
    fn update_cycle(&mut self, sample: &RateSample, now: Time) {
        let Some(min_rtt) = self.min_rtt.filter(|_| self.mode == Mode::ProbeBw) else { return };
        let whole = now.since(self.cycle_stamp) > min_rtt;
        let before = sample.prior_in_flight as f64 / self.smss;
        let next = if self.pacing_gain > 1.0 {
            whole && (sample.newly_lost > 0 || before >= self.inflight(self.max_bw(), self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            whole || before <= self.inflight(self.max_bw(), 1.0)
        } else {
            whole
        };
        if next {
            self.advance_cycle(now);
        }
    }

    fn advance_cycle(&mut self, now: Time) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_stamp = now;
    }

    /// `bbr_reset_probe_bw_mode`: enters a random phase other than that with gain 0.75.
    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        self.cycle = CYCLE.len() - 1 - (self.draws.unit() * 7.0) as usize;
        self.advance_cycle(now);
    }

    /// `bbr_check_full_bw_reached`, `bbr_check_drain`.
    fn check_full(&mut self, sample: &RateSample, now: Time) {
        if !self.full_bw_reached && self.rounds.start && !sample.app_limited {
            if self.max_bw() >= 1.25 * self.full_bw {
                (self.full_bw, self.full_bw_count) = (self.max_bw(), 0);
            } else {
                self.full_bw_count += 1;
                self.full_bw_reached = self.full_bw_count >= 3;
            }
        }
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
        }
        let in_flight = sample.in_flight as f64 / self.smss;
        if self.mode == Mode::Drain && in_flight <= self.inflight(self.max_bw(), 1.0) {
            self.enter_probe_bw(now);
        }
    }

    /// `bbr_update_min_rtt`.
    fn update_min_rtt(&mut self, sample: &RateSample, now: Time) {
        let expired = now > self.min_rtt_stamp + MIN_RTT_WINDOW;
        if let Some(rtt) = sample.rtt.filter(|&rtt| self.min_rtt.is_none_or(|min| rtt <= min) || expired) {
            self.min_rtt = Some(rtt.max(Span::from_micros(1)));
            self.min_rtt_stamp = now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done = UNSET;
        }
        if self.mode == Mode::ProbeRtt {
            if self.probe_rtt_done == UNSET {
                if sample.in_flight as f64 <= CWND_MIN_TARGET * self.smss {
                    self.probe_rtt_done = now + PROBE_RTT_TIME;
                    self.probe_rtt_round_done = false;
                    self.rounds.begin(sample.total);
                }
            } else {
                self.probe_rtt_round_done |= self.rounds.start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(now);
                }
            }
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt_done == UNSET || now <= self.probe_rtt_done {
            return;
        }
        self.min_rtt_stamp = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// `bbr_update_gains`.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.rate().is_some() => (1.0, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle], CWND_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        };
    }

    /// `bbr_init_pacing_rate_from_rtt`.
    fn init_pacing_rate(&mut self, path: &PathView) {
        self.seen_rtt = path.srtt > Span::ZERO;
        let rtt = if self.seen_rtt { path.srtt } else { Span::from_millis(1) };
        self.pacing_rate = HIGH_GAIN * self.cwnd / rtt.as_secs_f64() * (1.0 - PACING_MARGIN);
    }

    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth() * (1.0 - PACING_MARGIN);
        if rate > 0.0 && (self.full_bw_reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// `bbr_set_cwnd`.
    fn set_cwnd(&mut self, sample: &RateSample) {
        let newly = sample.newly_acked as f64 / self.smss;
        if !self.recover_or_restore(sample, newly) {
            let bw = self.bandwidth();
            let extra = if self.full_bw_reached { self.extra[0].max(self.extra[1]).min(bw * EXTRA_TIME) } else { 0.0 };
            let target = self.quantized(self.bdp(bw, self.cwnd_gain) + extra.floor());
            if self.full_bw_reached {
                self.cwnd = (self.cwnd + newly).min(target);
            } else if self.cwnd < target || (sample.total as f64) < self.initial_cwnd * self.smss {
                self.cwnd += newly;
            }
            self.cwnd = self.cwnd.max(CWND_MIN_TARGET);
        }
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(CWND_MIN_TARGET);
        }
    }

    /// `bbr_set_cwnd_to_recover_or_restore`. Returns whether it has set the window: in the first round trip of
    /// recovery, one segment is sent per one delivered.
    fn recover_or_restore(&mut self, sample: &RateSample, newly: f64) -> bool {
        let in_flight = sample.in_flight as f64 / self.smss;
        self.cwnd = (self.cwnd - sample.newly_lost as f64 / self.smss).max(1.0);
        if core::mem::take(&mut self.entered) {
            self.conserves = true;
            self.rounds.begin(sample.total);
            self.cwnd = in_flight + newly;
        } else if core::mem::take(&mut self.left) {
            self.conserves = false;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        if self.conserves {
            self.cwnd = self.cwnd.max(in_flight + newly);
        }
        self.conserves
    }

    /// `bbr_save_cwnd`.
    fn save_cwnd(&mut self) {
        let fresh = !self.recovering && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if fresh { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }
}

impl Build for Bbr {
    const SCHEMES: &'static [Scheme] = &[Scheme {
        name: "bbr",
        summary: "BBR, version 1, as in Linux: paces at the rate that the path has delivered",
        source: "Linux 6.18 net/ipv4/tcp_bbr.c; Cardwell and others, ACM Queue 14(5), 2016",
        machine: Machine::Tcp([Recovery::Rack; Profile::ALL.len()]),
        parameters: &[],
        foreign: None,
    }];

    fn build(_profile: Profile, _values: &[f64]) -> Bbr {
        Bbr {
            mode: Mode::Startup,
            cwnd: 1.0,
            prior_cwnd: 0.0,
            initial_cwnd: 1.0,
            pacing_rate: f64::INFINITY,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            seen_rtt: false,
            smss: 1460.0,
            rounds: Rounds::default(),
            bw: WindowedMax::default(),
            policer: Policer::default(),
            min_rtt: None,
            min_rtt_stamp: Time::ZERO,
            probe_rtt_done: UNSET,
            probe_rtt_round_done: false,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_reached: false,
            cycle: 0,
            cycle_stamp: Time::ZERO,
            idle_restart: false,
            recovering: false,
            entered: false,
            left: false,
            conserves: false,
            extra: [0.0; 2],
            extra_rounds: 0,
            extra_start: Time::ZERO,
            extra_acked: 0.0,
            total: 0,
            draws: Sequence::new(Stream::new(0, "bbr")),
        }
    }
}

impl Controller for Bbr {
    type Feedback = TcpEvent;

    fn on_feedback(&mut self, feedback: &TcpEvent, path: &PathView) {
        match *feedback {
            TcpEvent::Established { window } => {
                self.smss = f64::from(path.segment);
                self.cwnd = window.max(1.0);
                self.initial_cwnd = self.cwnd;
                self.min_rtt = (path.srtt > Span::ZERO).then_some(path.srtt);
                self.min_rtt_stamp = path.now;
                self.extra_start = path.now;
                self.init_pacing_rate(path);
            }
            TcpEvent::Lost { .. } => {
                self.save_cwnd();
                (self.recovering, self.entered, self.left) = (true, true, false);
            }
            TcpEvent::Timeout(_) => {
                self.save_cwnd();
                (self.recovering, self.entered, self.left) = (true, false, false);
                // bbr_set_state, tcp_enter_loss
                self.full_bw = 0.0;
                self.policer.timed_out(self.total, path.now);
                self.cwnd = f64::from(path.in_flight) + 1.0;
            }
            TcpEvent::Recovered { .. } | TcpEvent::Undo { .. } if self.recovering => {
                if matches!(feedback, TcpEvent::Undo { .. }) {
                    (self.full_bw, self.full_bw_count) = (0.0, 0);
                    self.policer.reset(self.total, path.now);
                }
                (self.recovering, self.entered, self.left) = (false, false, true);
            }
            TcpEvent::Resumed { app_limited: true, .. } => {
                self.idle_restart = true;
                (self.extra_start, self.extra_acked) = (path.now, 0.0);
                if self.mode == Mode::ProbeBw {
                    self.set_pacing_rate(1.0);
                } else if self.mode == Mode::ProbeRtt {
                    self.check_probe_rtt_done(path.now);
                }
            }
            TcpEvent::Acked { .. }
            | TcpEvent::Deflate { .. }
            | TcpEvent::Duplicate
            | TcpEvent::EcnEcho
            | TcpEvent::Idle { .. }
            | TcpEvent::Recovered { .. }
            | TcpEvent::Repaired { .. }
            | TcpEvent::Resumed { .. }
            | TcpEvent::Undo { .. } => {}
        }
    }

    fn gauges(&self, to: &mut dyn Gauges) {
        to.packets("cwnd", self.cwnd);
        to.bits_per_second("pacing_rate", known(8.0 * self.smss * self.pacing_rate));
        to.number("state", f64::from(self.mode as u8));
        to.number("pacing_gain", self.pacing_gain);
        to.bits_per_second("bw", known(8.0 * self.smss * self.bandwidth()));
        to.seconds("min_rtt", self.min_rtt.map_or(f64::NAN, Span::as_secs_f64));
    }
}

impl WindowController for Bbr {
    fn window(&self) -> f64 {
        self.cwnd
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
    /// `bbr_main`.
    fn on_delivery(&mut self, sample: &RateSample, path: &PathView) {
        let now = path.now;
        self.smss = f64::from(path.segment);
        self.total = sample.total;
        self.update_bw(sample, now);
        self.update_aggregation(sample, now);
        self.update_cycle(sample, now);
        self.check_full(sample, now);
        self.update_min_rtt(sample, now);
        self.update_gains();
        if !self.seen_rtt && path.srtt > Span::ZERO {
            self.init_pacing_rate(path);
        }
        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd(sample);
    }
    fn pacing_rate(&self) -> f64 {
        self.pacing_rate * self.smss
    }
    fn send_quantum(&self) -> u32 {
        (self.quantum() * self.smss) as u32
    }
    fn limits_itself(&self) -> bool {
        self.mode == Mode::ProbeRtt
    }
    fn draw_from(&mut self, stream: Stream) {
        self.draws = Sequence::new(stream);
    }
}

//! The state machine: Startup, Drain, the cycle of ProbeBW, ProbeRTT (draft section "State Machine Operation").

use super::{
    AckPhase, Bbr3, DEFAULT_CWND_GAIN, DRAIN_PACING_GAIN, PROBE_DOWN_PACING_GAIN, PROBE_RTT_CWND_GAIN, UndoState,
};
use super::{PROBE_RTT_DURATION, PROBE_UP_CWND_GAIN, PROBE_UP_PACING_GAIN, RENO_ROUNDS, STARTUP_FULL_LOSS_COUNT};
use super::{STARTUP_PACING_GAIN, State};
use crate::RateSample;
use crate::delivery::{UNSET, float, lesser};
use paceline_units::{Span, Time};

impl Bbr3 {
    fn enter(&mut self, state: State, pacing_gain: f64, cwnd_gain: f64) {
        (self.state, self.pacing_gain, self.cwnd_gain) = (state, pacing_gain, cwnd_gain);
    }

    pub(super) fn enter_startup(&mut self) {
        self.enter(State::Startup, STARTUP_PACING_GAIN, DEFAULT_CWND_GAIN);
    }

    /// ResetFullBW, with the rate to exceed.
    pub(super) fn reset_full_bw(&mut self, rate: f64) {
        self.full_bw = rate;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    pub(super) fn check_full_bw_reached(&mut self, sample: &RateSample, rate: f64) {
        if self.full_bw_now || !self.rounds.start || sample.app_limited {
            return;
        }
        if rate >= 1.25 * self.full_bw {
            self.reset_full_bw(rate);
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= 3;
        self.full_bw_reached |= self.full_bw_now;
    }

    pub(super) fn check_startup_done(&mut self, sample: &RateSample) {
        self.check_startup_high_loss(sample);
        if self.state == State::Startup && self.full_bw_reached {
            self.enter(State::Drain, DRAIN_PACING_GAIN, DEFAULT_CWND_GAIN);
            self.drain_start_round = self.rounds.count;
        }
    }

    /// CheckStartupHighLoss. A loss round begins with the first loss, so the whole round has passed in recovery when it
    /// ends.
    fn check_startup_high_loss(&mut self, sample: &RateSample) {
        if !self.loss_round_start {
            return;
        }
        let ranges = core::mem::take(&mut self.loss_ranges);
        let high = ranges >= STARTUP_FULL_LOSS_COUNT && Bbr3::is_inflight_too_high(sample.lost, sample.tx_in_flight);
        if self.state != State::Startup || self.full_bw_reached || !self.recovering || !high {
            return;
        }
        self.undo_state = Some(UndoState::Startup);
        self.full_bw_now = true;
        self.full_bw_reached = true;
        self.bdp = self.bdp_multiple(self.bw, 1.0);
        self.inflight_longterm = self.bdp.max(self.inflight_latest);
    }

    pub(super) fn check_drain_done(&mut self, now: Time) {
        if self.state != State::Drain {
            return;
        }
        if self.in_flight <= self.inflight(self.bw, 1.0) || self.rounds.count > self.drain_start_round + 3 {
            self.start_probe_bw_down(now);
        }
    }

    /// StartProbeBW_DOWN.
    pub(super) fn start_probe_bw_down(&mut self, now: Time) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        // PickProbeWait
        self.rounds_since_probe_up = u64::from(self.draws.unit() >= 0.5);
        self.bw_probe_wait = Span::from_secs_f64(2.0 + self.draws.unit());
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::Stopping;
        self.rounds.begin(self.total);
        self.enter(State::ProbeBwDown, PROBE_DOWN_PACING_GAIN, DEFAULT_CWND_GAIN);
    }

    fn start_probe_bw_cruise(&mut self) {
        self.enter(State::ProbeBwCruise, 1.0, DEFAULT_CWND_GAIN);
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.rounds.begin(self.total);
        self.enter(State::ProbeBwRefill, 1.0, DEFAULT_CWND_GAIN);
    }

    /// StartProbeBW_UP.
    fn start_probe_bw_up(&mut self, sample: &RateSample) {
        self.ack_phase = AckPhase::Starting;
        self.rounds.begin(self.total);
        self.reset_full_bw(sample.rate());
        self.enter(State::ProbeBwUp, PROBE_UP_PACING_GAIN, PROBE_UP_CWND_GAIN);
        self.raise_inflight_longterm_slope();
    }

    pub(super) fn update_probe_bw_cycle_phase(&mut self, sample: &RateSample, now: Time) {
        if !self.full_bw_reached || self.adapt_long_term_model(sample) {
            return;
        }
        match self.state {
            State::ProbeBwDown | State::ProbeBwCruise if self.is_time_to_probe_bw(now) => self.start_probe_bw_refill(),
            State::ProbeBwDown if self.is_time_to_cruise() => self.start_probe_bw_cruise(),
            State::ProbeBwRefill if self.rounds.start => {
                self.is_bw_probe_sample = true;
                self.start_probe_bw_up(sample);
            }
            State::ProbeBwUp => self.check_time_to_go_down(sample, now),
            _ => {}
        }
    }

    /// IsTimeToProbeBW, with IsRenoCoexistenceProbeTime: by time, or by the round trips between Reno's losses.
    fn is_time_to_probe_bw(&self, now: Time) -> bool {
        now > self.cycle_stamp + self.bw_probe_wait || self.rounds_reach_reno_s()
    }

    pub(super) fn rounds_reach_reno_s(&self) -> bool {
        let reno_rounds = lesser(self.target_inflight() / self.smss, RENO_ROUNDS);
        float(self.rounds_since_probe_up) >= reno_rounds
    }

    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.in_flight_to_cruise()
    }

    pub(super) fn in_flight_to_cruise(&self) -> f64 {
        lesser(self.inflight_with_headroom(), self.inflight(self.max_bw, 1.0))
    }

    /// IsTimeToGoDown; if so, goes down.
    fn check_time_to_go_down(&mut self, sample: &RateSample, now: Time) {
        if self.prev_probe_too_high && self.in_flight >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
        } else if sample.window_limited && self.cwnd >= self.inflight_longterm {
            return self.reset_full_bw(sample.rate()); // the bound, not the path, limits the rate
        } else if !self.full_bw_now {
            return;
        }
        self.prev_probe_too_high = false;
        self.start_probe_bw_down(now);
    }

    pub(super) fn check_probe_rtt(&mut self, sample: &RateSample, now: Time) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.enter(State::ProbeRtt, 1.0, PROBE_RTT_CWND_GAIN);
            self.save_cwnd();
            self.probe_rtt_done_stamp = UNSET;
            self.ack_phase = AckPhase::Stopping;
            self.rounds.begin(self.total);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, now: Time) {
        if self.probe_rtt_done_stamp == UNSET {
            if self.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_stamp = now + PROBE_RTT_DURATION;
                self.probe_rtt_round_done = false;
                self.rounds.begin(self.total);
            }
            return;
        }
        self.probe_rtt_round_done |= self.rounds.start;
        if self.probe_rtt_round_done {
            self.check_probe_rtt_done(now);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt_done_stamp == UNSET || now <= self.probe_rtt_done_stamp {
            return;
        }
        self.probe_rtt_min_stamp = now;
        self.restore_cwnd();
        // ExitProbeRTT
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }
}

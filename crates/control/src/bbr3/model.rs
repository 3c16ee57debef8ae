//! The path model: bandwidth, round trip, aggregation, and the bounds that losses set (draft sections "Updating Network
//! Path Model Parameters" and "Updating the Model Upon Packet Loss").

use super::{AckPhase, BETA, Bbr3, EXTRA_ACKED_FILTER_LEN, HEADROOM, LOSS_THRESH, MIN_RTT_FILTER_LEN, UndoState};
use super::{FastPath, PROBE_RTT_INTERVAL, State};
use crate::delivery::{float, greater, lesser, seconds};
use crate::{LostSegment, RateSample};
use paceline_units::{Span, Time};

impl Bbr3 {
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &RateSample, rate: f64) {
        self.bw_latest = greater(self.bw_latest, rate);
        self.inflight_latest = greater(self.inflight_latest, float(sample.delivered));
        self.loss_round_start = sample.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = sample.total;
        }
    }

    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &RateSample, rate: f64) {
        if self.loss_round_start {
            self.bw_latest = rate;
            self.inflight_latest = float(sample.delivered);
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    /// UpdateCongestionSignals, with UpdateMaxBw and UpdateRound.
    pub(super) fn update_congestion_signals(&mut self, sample: &RateSample, rate: f64) {
        self.rounds.update(sample);
        self.rounds_since_probe_up += u64::from(self.rounds.start);
        if rate > 0.0 && (rate >= self.max_bw || !sample.app_limited) {
            self.max_bw_of[1] = greater(self.max_bw_of[1], rate);
            self.max_bw = greater(self.max_bw_of[0], self.max_bw_of[1]);
        }
        if self.loss_round_start {
            self.adapt_lower_bounds_from_congestion();
            self.is_loss_in_round = false;
        }
    }

    /// AdvanceMaxBwFilter. A cycle without a sample does not count: the maximum of the previous one stays.
    pub(super) fn advance_max_bw_filter(&mut self) {
        if self.max_bw_of[1] > 0.0 {
            self.max_bw_of = [self.max_bw_of[1], 0.0];
            self.max_bw = self.max_bw_of[0];
        }
    }

    /// AdaptLowerBoundsFromCongestion: once per round trip, except while probing for bandwidth.
    fn adapt_lower_bounds_from_congestion(&mut self) {
        if matches!(self.state, State::Startup | State::ProbeBwRefill | State::ProbeBwUp) || !self.is_loss_in_round {
            return;
        }
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = self.max_bw;
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = self.cwnd;
        }
        self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
    }

    pub(super) fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    pub(super) fn bound_bw_for_model(&mut self) {
        self.bw = lesser(self.max_bw, self.bw_shortterm);
        self.bdp = self.bdp_multiple(self.bw, 1.0);
    }

    pub(super) fn update_ack_aggregation(&mut self, sample: &RateSample, now: Time) {
        let interval = seconds(now.since(self.extra_acked_start));
        let mut expected = self.bw * interval;
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_start = now;
            expected = 0.0;
        }
        self.extra_acked_delivered += float(sample.newly_acked);
        let extra = lesser(self.extra_acked_delivered - expected, self.cwnd);
        let window = if self.full_bw_reached { EXTRA_ACKED_FILTER_LEN } else { 1 };
        self.extra_acked.update(self.rounds.count, extra, window);
    }

    pub(super) fn set_min_rtt(&mut self, rtt: Span) {
        self.min_rtt = Some(rtt);
        self.min_rtt_s = seconds(rtt);
    }

    pub(super) fn update_min_rtt(&mut self, sample: &RateSample, now: Time) {
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (self.probe_rtt_min_delay.is_none_or(|min| rtt < min) || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = now;
        }
        let expired = now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if let Some(delay) = self.probe_rtt_min_delay
            && (self.min_rtt.is_none_or(|min| delay < min) || expired)
        {
            self.set_min_rtt(delay.max(Span(1)));
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm >= f64::INFINITY {
            return f64::INFINITY;
        }
        let headroom = greater(self.smss, HEADROOM * self.inflight_longterm);
        greater(self.inflight_longterm - headroom, self.min_pipe_cwnd())
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self) -> f64 {
        lesser(self.bdp, self.cwnd)
    }

    /// IsInflightTooHigh, for `lost` bytes since `tx_in_flight` bytes were in flight.
    pub(super) fn is_inflight_too_high(lost: u64, tx_in_flight: u64) -> bool {
        float(lost) > float(tx_in_flight) * LOSS_THRESH
    }

    /// HandleLostPacket, with InflightAtLoss and NoteLoss. No state is saved here: the machine has reported the
    /// recovery before, and a later round trip of that recovery has no state to restore.
    pub(super) fn handle_lost_packet(&mut self, lost: &LostSegment, now: Time) {
        self.total = lost.total;
        if !self.is_loss_in_round {
            self.loss_round_delivered = lost.total;
        }
        self.is_loss_in_round = true;
        if lost.seq != self.loss_end {
            self.loss_ranges += 1;
        }
        self.loss_end = lost.seq.wrapping_add(1);
        if !self.is_bw_probe_sample || !Bbr3::is_inflight_too_high(lost.lost, lost.tx_in_flight) {
            return;
        }
        let (size, before) = (lost.size as f64, lost.tx_in_flight as f64 - lost.size as f64);
        let lost_before = lost.lost as f64 - size;
        let prefix = (LOSS_THRESH * before - lost_before) / (1.0 - LOSS_THRESH);
        self.handle_inflight_too_high(before + prefix, lost.app_limited, now);
    }

    /// HandleInflightTooHigh: `safe` bytes in flight were not too much.
    fn handle_inflight_too_high(&mut self, safe: f64, app_limited: bool, now: Time) {
        self.prev_probe_too_high = true;
        self.fast_path = FastPath::NEVER;
        self.is_bw_probe_sample = false;
        if !app_limited {
            self.inflight_longterm = safe.max(self.target_inflight() * BETA);
        }
        if self.state == State::ProbeBwUp {
            self.undo_state = Some(UndoState::ProbeUp);
            self.start_probe_bw_down(now);
        }
    }

    /// SaveStateUponLoss.
    pub(super) fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo_state = None;
        self.undo_bw_shortterm = self.bw_shortterm;
        self.undo_inflight_shortterm = self.inflight_shortterm;
        self.undo_inflight_longterm = self.inflight_longterm;
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        self.fast_path = FastPath::NEVER;
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.reset_full_bw(0.0);
        self.bw_shortterm = self.bw_shortterm.max(self.undo_bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo_inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo_inflight_longterm);
        match self.undo_state.take() {
            Some(UndoState::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(UndoState::ProbeUp) if !matches!(self.state, State::ProbeBwUp | State::ProbeRtt) => {
                self.start_probe_bw_refill();
            }
            _ => {}
        }
    }

    /// AdaptLongTermModel. Returns whether it has changed the state.
    pub(super) fn adapt_long_term_model(&mut self, sample: &RateSample) -> bool {
        if self.ack_phase == AckPhase::Starting && self.rounds.start {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.rounds.start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.probes_bandwidth() && !sample.app_limited {
                self.advance_max_bw_filter();
            }
            // precautionary probing found no limit: the next probe may persist
            if self.state.probes_bandwidth() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if !Bbr3::is_inflight_too_high(sample.lost, sample.tx_in_flight) && self.inflight_longterm < f64::INFINITY {
            self.inflight_longterm = greater(self.inflight_longterm, float(sample.tx_in_flight));
            if self.state == State::ProbeBwUp {
                self.probe_inflight_longterm_upward(sample);
            }
        }
        false
    }

    /// ProbeInflightLongtermUpward.
    fn probe_inflight_longterm_upward(&mut self, sample: &RateSample) {
        if !sample.window_limited || self.cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += float(sample.newly_acked);
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta * self.smss;
        }
        if self.rounds.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// RaiseInflightLongtermSlope.
    pub(super) fn raise_inflight_longterm_slope(&mut self) {
        let growth = f64::from(1u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.cwnd / growth).max(self.smss);
    }
}

//! Control parameters: pacing rate, quantum and window (draft section "Updating Control Parameters").

use super::{Bbr3, MIN_PIPE_CWND, PACING_MARGIN, PROBE_RTT_CWND_GAIN, STARTUP_PACING_GAIN, State};
use crate::delivery::{float, greater, lesser};
use crate::{PathView, RateSample};
use paceline_units::Span;

/// The maximum quantum in bytes (SetSendQuantum).
const MAX_SEND_QUANTUM: f64 = 65_536.0;

impl Bbr3 {
    /// InitPacingRate: repeated at the first round-trip time, "after the first non-zero RTT sample" in the text.
    pub(super) fn init_pacing_rate(&mut self, path: &PathView) {
        self.seen_rtt = path.srtt > Span::ZERO;
        let rtt = if self.seen_rtt { path.srtt } else { Span::from_millis(1) };
        self.pacing_rate = STARTUP_PACING_GAIN * self.initial_cwnd / rtt.as_secs_f64();
        self.set_send_quantum();
    }

    pub(super) fn set_pacing_rate(&mut self, path: &PathView) {
        if !self.seen_rtt && path.srtt > Span::ZERO {
            self.init_pacing_rate(path);
        }
        self.set_pacing_rate_with_gain(self.pacing_gain);
    }

    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bw * (1.0 - PACING_MARGIN);
        if rate > 0.0 && (self.full_bw_reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    pub(super) fn set_send_quantum(&mut self) {
        self.send_quantum = greater(lesser(self.pacing_rate * 1e-3, MAX_SEND_QUANTUM), 2.0 * self.smss);
    }

    /// BDPMultiple.
    pub(super) fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        if self.min_rtt.is_some() { gain * bw * self.min_rtt_s } else { self.initial_cwnd }
    }

    /// QuantizationBudget, with TCP's offload budget of three quanta.
    fn quantization_budget(&self, inflight_cap: f64) -> f64 {
        let cap = greater(greater(inflight_cap, 3.0 * self.send_quantum), self.min_pipe_cwnd());
        if self.state == State::ProbeBwUp { cap + 2.0 * self.smss } else { cap }
    }

    pub(super) fn min_pipe_cwnd(&self) -> f64 {
        MIN_PIPE_CWND * self.smss
    }

    /// Inflight: the target in flight at `gain`.
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        let cap = self.bdp_multiple(bw, gain);
        self.quantization_budget(cap)
    }

    /// UpdateMaxInflight.
    pub(super) fn max_inflight(&self) -> f64 {
        let cap = self.bdp_multiple(self.bw, self.cwnd_gain) + self.extra_acked.get();
        self.quantization_budget(cap)
    }

    /// SetCwnd.
    pub(super) fn set_cwnd(&mut self, sample: &RateSample) {
        let newly = float(sample.newly_acked);
        let max_inflight = self.max_inflight();
        if self.full_bw_reached {
            self.cwnd = lesser(self.cwnd + newly, max_inflight);
        } else if self.cwnd < max_inflight || float(sample.total) < self.initial_cwnd {
            self.cwnd += newly;
        }
        self.cwnd = greater(self.cwnd, self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            self.cwnd = lesser(self.cwnd, self.probe_rtt_cwnd());
        }
        // BoundCwndForModel
        self.cwnd = lesser(self.cwnd, self.model_window_bound());
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        greater(self.bdp_multiple(self.bw, PROBE_RTT_CWND_GAIN), self.min_pipe_cwnd())
    }

    /// BoundCwndForModel: the limit of the window by the bounds that losses have set.
    pub(super) fn model_window_bound(&self) -> f64 {
        let cap = match self.state {
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.inflight_longterm,
            State::ProbeRtt | State::ProbeBwCruise => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        greater(lesser(cap, self.inflight_shortterm), self.min_pipe_cwnd())
    }

    /// SaveCwnd.
    pub(super) fn save_cwnd(&mut self) {
        let fresh = !self.recovering && self.state != State::ProbeRtt;
        self.prior_cwnd = if fresh { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// RestoreCwnd.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

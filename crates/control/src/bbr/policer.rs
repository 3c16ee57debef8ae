//! The rate of a path with a token-bucket policer, inferred from two intervals of heavy loss with the same throughput
//! (`bbr_lt_bw_sampling` of Linux, where it is called long-term bandwidth).

use crate::RateSample;
use paceline_units::Time;

/// `bbr_lt_intvl_min_rtts`, `bbr_lt_bw_max_rtts`.
const INTERVAL_MIN_RTTS: u32 = 4;
const BW_MAX_RTTS: u32 = 48;
/// `bbr_lt_loss_thresh`.
const LOSS: f64 = 50.0 / 256.0;
/// `bbr_lt_bw_ratio`; `bbr_lt_bw_diff`, in bytes per second.
const RATIO: f64 = 1.0 / 8.0;
const DIFFERENCE: f64 = 500.0;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// Segments per second, if an interval has measured it; whether it limits the flow.
    rate: Option<f64>,
    uses: bool,
    sampling: bool,
    rounds: u32,
    since: Time,
    delivered: u64,
    /// Lost since the interval began.
    lost: u64,
}

impl Policer {
    /// The policed rate to obey, in segments per second.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate.filter(|_| self.uses)
    }

    fn begin(&mut self, total: u64, now: Time) {
        (self.rounds, self.since, self.delivered, self.lost) = (0, now, total, 0);
    }

    pub(super) fn reset(&mut self, total: u64, now: Time) {
        *self = Policer::default();
        self.begin(total, now);
    }

    /// A retransmission timeout counts as a loss.
    pub(super) fn timed_out(&mut self, total: u64, now: Time) {
        if !self.uses && !self.sampling {
            self.begin(total, now);
            self.sampling = true;
        }
    }

    /// Handles an acknowledgement; `cruises`: the flow is in PROBE_BW. Returns whether the rate has been in use for
    /// long enough, so that the path is to be probed again.
    pub(super) fn sample(&mut self, s: &RateSample, round: bool, cruises: bool, now: Time, smss: f64) -> bool {
        if self.uses {
            if cruises && round {
                self.rounds += 1;
                if self.rounds >= BW_MAX_RTTS {
                    self.reset(s.total, now);
                    return true;
                }
            }
            return false;
        }
        if !self.sampling {
            if s.newly_lost == 0 {
                return false;
            }
            self.begin(s.total, now);
            self.sampling = true;
        } else {
            self.lost += s.newly_lost;
        }
        if s.app_limited {
            self.reset(s.total, now);
            return false;
        }
        self.rounds += u32::from(round);
        if self.rounds > 4 * INTERVAL_MIN_RTTS {
            self.reset(s.total, now);
        }
        let delivered = (s.total - self.delivered) as f64;
        let seconds = now.since(self.since).as_secs_f64();
        let heavy = self.lost as f64 >= LOSS * delivered && delivered > 0.0;
        if self.rounds >= INTERVAL_MIN_RTTS && s.newly_lost > 0 && heavy && seconds >= 1e-3 {
            self.interval_done(delivered / smss / seconds, s.total, now, smss);
        }
        false
    }

    /// `bbr_lt_bw_interval_done`.
    fn interval_done(&mut self, rate: f64, total: u64, now: Time, smss: f64) {
        if let Some(before) = self.rate {
            let apart = (rate - before).abs();
            if apart <= RATIO * before || apart * smss <= DIFFERENCE {
                self.rate = Some((rate + before) / 2.0);
                self.uses = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = Some(rate);
        self.begin(total, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: f64 = 1000.0;

    /// Rounds of 100 ms, in each of which 100 segments are delivered and `lost` are lost.
    fn rounds(policer: &mut Policer, from: u64, n: u64, lost: u64) -> u64 {
        for i in from..from + n {
            let now = Time(i * 100_000_000);
            let s =
                RateSample { total: i * 100_000, newly_lost: lost * 1000, delivered: 100_000, ..RateSample::default() };
            policer.sample(&s, true, true, now, SMSS);
        }
        from + n
    }

    #[test]
    fn two_intervals_of_heavy_loss_at_one_rate_are_a_policer() {
        let mut policer = Policer::default();
        let next = rounds(&mut policer, 1, 4, 30);
        assert_eq!(policer.rate(), None, "one interval is no proof");
        let next = rounds(&mut policer, next, 4, 30);
        let rate = policer.rate().unwrap();
        assert!((rate - 1000.0).abs() < 1.0, "{rate}");
        rounds(&mut policer, next, 47, 0);
        assert!(policer.rate().is_some());
        rounds(&mut policer, next + 47, 1, 0);
        assert_eq!(policer.rate(), None, "after 48 round trips the path is probed again");
    }

    #[test]
    fn losses_of_less_than_a_fifth_are_no_policer_s() {
        let mut policer = Policer::default();
        rounds(&mut policer, 1, 60, 15);
        assert_eq!(policer.rate(), None);
    }
}

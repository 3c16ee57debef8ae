//! The timing of a participant's reports (RFC 3550 section 6.3 and appendix A.7).

use super::{Spacing, Timing};
use paceline_random::{Sequence, Stream};
use paceline_units::{Span, Time};

/// The share of the session's bandwidth that reports may take (section 6.2).
const SHARE: f64 = 0.05;

/// The share of that for all senders together, as long as they are at most this share of the members.
const OF_SENDERS: f64 = 0.25;

/// e - 3/2: reconsideration lengthens intervals by this factor, so draws are divided by it (section 6.3.1).
const COMPENSATION: f64 = core::f64::consts::E - 1.5;

/// The members of a session, as known to a participant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Members {
    /// All members, including the participant itself.
    pub all: u32,
    /// Members that have sent data recently.
    pub senders: u32,
    /// Whether the participant itself is one of the senders.
    pub we_sent: bool,
}

/// The timer of one participant's reports.
#[derive(Clone, Debug)]
pub struct ReportTimer {
    timing: Timing,
    draws: Sequence,
    /// tp: when the last report was sent, or when the participant joined.
    last: Time,
    /// tn: the time of the next report.
    due: Time,
    /// No report was sent yet.
    initial: bool,
    members: Members,
    /// The number of members when the timer was set.
    before: u32,
    /// avg_rtcp_size in bytes, including headers of UDP and IP.
    mean_size: f64,
}

impl ReportTimer {
    /// Creates the timer of a participant that joins; `size`: expected bytes of its first report on the wire.
    #[must_use]
    pub fn new(timing: Timing, size: u16, stream: Stream, now: Time) -> ReportTimer {
        let mut timer = ReportTimer {
            timing,
            draws: Sequence::new(stream),
            last: now,
            due: Time::NEVER,
            initial: true,
            members: Members { all: 1, senders: 0, we_sent: false },
            before: 1,
            mean_size: f64::from(size),
        };
        timer.due = now + timer.interval();
        timer
    }

    /// T_d, the deterministic interval, without the halving of the first one.
    #[must_use]
    pub fn deterministic(&self) -> Span {
        let t_min = self.timing.t_min();
        match self.timing.spacing {
            Spacing::Fixed => t_min,
            Spacing::Rfc3550 => self.by_bandwidth().max(t_min),
        }
    }

    /// The interval that the share of the bandwidth allows.
    fn by_bandwidth(&self) -> Span {
        let Members { all, senders, we_sent } = self.members;
        let (all, senders) = (f64::from(all), f64::from(senders));
        let bandwidth = self.timing.bandwidth.bps() / 8.0 * SHARE;
        let (bandwidth, sharing) = if senders > all * OF_SENDERS {
            (bandwidth, all)
        } else if we_sent {
            (bandwidth * OF_SENDERS, senders)
        } else {
            (bandwidth * (1.0 - OF_SENDERS), all - senders)
        };
        Span::from_secs_f64((self.mean_size * sharing / bandwidth.max(1e-3)).min(1e6))
    }

    /// T: a random interval between two reports.
    fn interval(&mut self) -> Span {
        if self.timing.spacing == Spacing::Fixed {
            return self.timing.t_min();
        }
        let t_min = if self.initial { self.timing.t_min() / 2 } else { self.timing.t_min() };
        let deterministic = self.by_bandwidth().max(t_min);
        deterministic.mul_f64((self.draws.unit() + 0.5) / COMPENSATION).max(Span(1))
    }

    /// tn: when to call [`ReportTimer::expire`].
    #[must_use]
    pub fn due(&self) -> Time {
        self.due
    }

    /// Processes an expired timer; returns whether to send a report now. This is the case if a newly drawn interval has
    /// also passed (section 6.3.6); otherwise the timer is set again.
    pub fn expire(&mut self, now: Time) -> bool {
        if now < self.due {
            return false;
        }
        if self.timing.spacing == Spacing::Rfc3550 {
            self.due = self.last + self.interval();
            self.before = self.members.all;
        }
        self.due <= now
    }

    /// Records that a report of `size` bytes was sent.
    pub fn sent(&mut self, now: Time, size: u16) {
        self.account(size);
        self.last = now;
        self.due = now + self.interval();
        self.before = self.members.all;
        self.initial = false;
    }

    /// Records that a report of `size` bytes was received.
    pub fn received(&mut self, size: u16) {
        self.account(size);
    }

    fn account(&mut self, size: u16) {
        self.mean_size += (f64::from(size) - self.mean_size) / 16.0;
    }

    /// Sets the members. When members leave, the next report is sent earlier (section 6.3.4).
    pub fn set_members(&mut self, members: Members, now: Time) {
        self.members = members;
        if members.all < self.before && self.timing.spacing == Spacing::Rfc3550 {
            let left = f64::from(members.all) / f64::from(self.before);
            self.due = now + self.due.since(now).mul_f64(left);
            self.last = Time(now.0.saturating_sub(now.since(self.last).mul_f64(left).0));
            self.before = members.all;
        }
    }

    /// The members.
    #[must_use]
    pub fn members(&self) -> Members {
        self.members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::MinInterval;
    use paceline_units::Rate;

    const TIMING: Timing = Timing {
        min_interval: MinInterval::Fixed(Span::from_secs(5)),
        bandwidth: Rate::from_bps(1_000_000),
        spacing: Spacing::Rfc3550,
    };
    const PAIR: Members = Members { all: 2, senders: 1, we_sent: true };

    fn timer(timing: Timing, members: Members, seed: u64) -> ReportTimer {
        let mut timer = ReportTimer::new(timing, 100, Stream::new(seed, "timer"), Time::ZERO);
        timer.set_members(members, Time::ZERO);
        timer
    }

    /// The times of the first `n` reports.
    fn reports(timer: &mut ReportTimer, n: usize) -> Vec<f64> {
        let mut times = Vec::new();
        while times.len() < n {
            let now = timer.due();
            if timer.expire(now) {
                timer.sent(now, 100);
                times.push(now.as_secs_f64());
            }
        }
        times
    }

    #[test]
    fn section_6_3_1_the_mean_interval_is_the_deterministic_one() {
        // reconsideration keeps the last of an increasing run of uniform draws; its mean is e - 3/2
        let times = reports(&mut timer(TIMING, PAIR, 1), 20_001);
        let gaps: Vec<f64> = times.windows(2).map(|t| t[1] - t[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean - 5.0).abs() < 0.03, "{mean}");
        let (min, max) = (gaps.iter().copied().fold(f64::MAX, f64::min), gaps.iter().copied().fold(0.0, f64::max));
        // 2.5 / 1.21828 and 7.5 / 1.21828
        assert!((2.0520..2.1).contains(&min) && (6.1..6.1563).contains(&max), "{min} {max}");
    }

    #[test]
    fn section_6_2_the_first_interval_is_half_as_long() {
        let n = 4000;
        let mean = (0..n).map(|seed| reports(&mut timer(TIMING, PAIR, seed), 1)[0]).sum::<f64>() / n as f64;
        assert!((mean - 2.5).abs() < 0.03, "{mean}");
    }

    #[test]
    fn section_6_3_1_shares_of_the_bandwidth() {
        // 64 kbit/s: 400 bytes a second for reports of 100 bytes
        let timing = Timing { bandwidth: Rate::from_bps(64_000), min_interval: MinInterval::Fixed(Span(1)), ..TIMING };
        let interval =
            |all, senders, we_sent| timer(timing, Members { all, senders, we_sent }, 1).deterministic().as_secs_f64();
        assert!((interval(2, 1, true) - 0.5).abs() < 1e-9, "half of the members send: all share alike");
        assert!((interval(100, 4, true) - 4.0).abs() < 1e-9, "4 senders share a quarter");
        assert!((interval(100, 4, false) - 32.0).abs() < 1e-9, "96 receivers share the rest");
        assert!((interval(100, 25, true) - 25.0).abs() < 1e-9, "at a quarter it is the same");
    }

    #[test]
    fn section_6_2_the_reduced_minimum() {
        let reduced = Timing { min_interval: MinInterval::Reduced, ..TIMING };
        assert_eq!(timer(reduced, PAIR, 1).deterministic(), Span::from_millis(360));
        let slow = Timing { bandwidth: Rate::from_bps(36_000), ..reduced };
        assert_eq!(timer(slow, PAIR, 1).deterministic(), Span::from_secs(10));
    }

    #[test]
    fn section_6_3_3_the_mean_size_follows_slowly() {
        let timing = Timing { bandwidth: Rate::from_bps(16_000), min_interval: MinInterval::Fixed(Span(1)), ..TIMING };
        let mut timer = timer(timing, PAIR, 1); // 100 bytes a second for two
        assert!((timer.deterministic().as_secs_f64() - 2.0).abs() < 1e-9);
        timer.received(260); // 100 + 160/16
        assert!((timer.deterministic().as_secs_f64() - 2.2).abs() < 1e-9);
        timer.sent(Time::ZERO, 110);
        assert!((timer.deterministic().as_secs_f64() - 2.2).abs() < 1e-9);
    }

    #[test]
    fn section_6_3_4_who_leaves_brings_the_next_report_forward() {
        let mut timer = timer(TIMING, Members { all: 4, senders: 1, we_sent: false }, 1);
        timer.sent(Time::ZERO, 100);
        let (due, now) = (timer.due(), Time(1_000_000_000));
        timer.set_members(Members { all: 2, senders: 1, we_sent: false }, now);
        assert_eq!(timer.due(), now + due.since(now).mul_f64(0.5));
        assert_eq!(timer.last, Time(500_000_000));
    }

    #[test]
    fn a_fixed_interval_is_fixed_from_the_first() {
        let times = reports(&mut timer(Timing { spacing: Spacing::Fixed, ..TIMING }, PAIR, 1), 4);
        assert_eq!(times, [5.0, 10.0, 15.0, 20.0]);
    }
}

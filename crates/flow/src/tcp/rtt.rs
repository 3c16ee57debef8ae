//! Round-trip time estimate and retransmission timeout: RFC 6298, ns-2's ticks, TCP-Linux' milliseconds. Profile
//! `linux` has its own estimator (`mdev.rs`).

use paceline_control::Profile;
use paceline_units::{Span, Time};

/// ns-2's `tcpTick_` is 10 ms; TCP-Linux sets it to a jiffy of 1 ms.
const NS2_TICK: u64 = 10_000_000;
const LINUX_TICK: u64 = 1_000_000;
/// Clock granularity G of RFC 6298.
const GRANULARITY: u64 = 1_000_000;

/// The estimator. `srtt` and `rttvar` are in nanoseconds under `rfc`; otherwise in ticks, scaled by 8 and by 4.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    srtt: u64,
    rttvar: u64,
    /// Timeout before backoff; [`Rtt::update`] applies the bounds.
    base: u64,
    /// Timeout with backoff.
    rto: u64,
    backoff: u32,
    profile: Profile,
}

impl Rtt {
    /// Creates an estimator without samples; `initial` is the timeout.
    pub(super) fn new(profile: Profile, initial: Span) -> Rtt {
        // the kernel's estimate is in nanoseconds, as the RFC's
        let profile = if profile == Profile::Linux { Profile::Rfc } else { profile };
        Rtt { srtt: 0, rttvar: 0, base: initial.0, rto: initial.0, backoff: 1, profile }
    }

    /// Sets an estimate that was made elsewhere, and resets the backoff. The timeout is `srtt` + `margin`.
    pub(super) fn set(&mut self, srtt: Span, margin: Span, limits: &Limits) {
        self.srtt = srtt.0;
        self.rttvar = margin.0 / 4;
        self.base = (srtt + margin).0;
        self.backoff = 1;
        self.update(limits);
    }

    /// The current retransmission timeout.
    #[inline]
    pub(super) fn timeout(&self) -> Span {
        Span(self.rto)
    }

    fn tick(&self) -> u64 {
        if self.profile == Profile::Ns2 { NS2_TICK } else { LINUX_TICK }
    }

    /// Smoothed round-trip time; zero before a sample.
    pub(super) fn srtt(&self) -> Span {
        match self.profile {
            Profile::Rfc => Span(self.srtt),
            _ => Span(self.srtt * self.tick() / 8),
        }
    }

    /// The round-trip time variation.
    pub(super) fn variation(&self) -> Span {
        match self.profile {
            Profile::Rfc => Span(self.rttvar),
            _ => Span(self.rttvar * self.tick() / 4),
        }
    }

    /// Takes a sample: a segment sent at `sent` has been acknowledged. `phase`: the phase of the sender's tick (ns-2's
    /// `boot_time_`).
    #[inline(always)]
    pub(super) fn sample(&mut self, now: Time, sent: Time, phase: u64, limits: &Limits) {
        self.measured(now, now.since(sent), phase, limits);
    }

    /// Takes `rtt` as a sample.
    #[inline(always)]
    pub(super) fn measured(&mut self, now: Time, rtt: Span, phase: u64, limits: &Limits) {
        if self.profile != Profile::Rfc {
            return self.measured_in_ticks(now - rtt, rtt.0, phase, limits);
        }
        // RFC 6298 (2.2), (2.3)
        let rtt = rtt.0;
        if self.srtt == 0 {
            self.srtt = rtt.max(1);
            self.rttvar = rtt / 2;
        } else {
            let error = self.srtt.abs_diff(rtt);
            self.rttvar = (3 * self.rttvar + error) / 4;
            self.srtt = (7 * self.srtt + rtt) / 8;
        }
        self.base = self.srtt + (4 * self.rttvar).max(GRANULARITY);
        self.update(limits);
    }

    #[inline(never)]
    fn measured_in_ticks(&mut self, sent: Time, rtt: u64, phase: u64, limits: &Limits) {
        match self.profile {
            Profile::Rfc | Profile::Linux => {}
            Profile::Ns2 => {
                let ticks = ((rtt + (sent.0 + phase) % NS2_TICK) / NS2_TICK).max(1);
                self.ticks(ticks as i64, |deviation, var| deviation - (var >> 2));
            }
            Profile::Ns2Linux => {
                let ticks = ((rtt + LINUX_TICK / 2) / LINUX_TICK).max(1);
                self.ticks(ticks as i64, |deviation, var| deviation - (var >> 2));
            }
        }
        self.update(limits);
    }

    /// The fixed-point filter of `tcp.cc`. TCP-Linux damps the increase of the variation when the round-trip time
    /// falls.
    fn ticks(&mut self, rtt: i64, share: impl Fn(i64, i64) -> i64) {
        let (srtt, var) = (self.srtt as i64, self.rttvar as i64);
        if srtt == 0 {
            self.srtt = (rtt << 3) as u64;
            self.rttvar = (rtt << 1) as u64;
        } else {
            let error = rtt - (srtt >> 3);
            self.srtt = (srtt + error).max(1) as u64;
            let mut change = share(error.abs(), var);
            if self.profile == Profile::Ns2Linux && error < 0 && change > 0 {
                change >>= 3;
            }
            // TCP-Linux lets it reach zero
            let floor = if self.profile == Profile::Ns2 { 1 } else { 0 };
            self.rttvar = (var + change).max(floor) as u64;
        }
        self.base = ((self.rttvar * 8 + self.srtt) >> 3) * self.tick();
    }

    /// Resets the backoff: new data has been acknowledged.
    #[inline]
    pub(super) fn reset_backoff(&mut self, limits: &Limits) {
        if self.backoff != 1 {
            self.backoff = 1;
            self.update(limits);
        }
    }

    /// Backs off after a timeout: RFC 6298 (5.5), ns-2's `rtt_backoff`.
    #[cold]
    pub(super) fn back_off(&mut self, limits: &Limits) {
        if self.backoff < 64 || self.rto < limits.max.0 {
            self.backoff = self.backoff.saturating_mul(2).min(1 << 20);
        }
        if self.profile != Profile::Rfc && self.backoff > 8 {
            // the old estimate moves into the variation, and the next sample starts a new one
            self.rttvar += self.srtt >> 3;
            self.srtt = 0;
        }
        self.update(limits);
    }

    /// RFC 6298 (5.7): the SYN was retransmitted.
    pub(super) fn after_lost_syn(&mut self, limits: &Limits) {
        self.base = self.base.max(3_000_000_000);
        self.backoff = 1;
        self.update(limits);
    }

    #[inline]
    fn update(&mut self, limits: &Limits) {
        let rto = self.base.max(limits.min.0).saturating_mul(u64::from(self.backoff)).min(limits.max.0);
        self.rto = if self.profile == Profile::Rfc { rto } else { rto.max(2 * self.tick()) };
    }

    pub(super) fn backed_off(&self) -> bool {
        self.backoff > 1
    }
}

/// The bounds of the timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) min: Span,
    pub(super) max: Span,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { min: Span::from_secs(1), max: Span::from_secs(60) };
    const fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    #[test]
    fn rfc_6298_section_2() {
        let mut rtt = Rtt::new(Profile::Rfc, Span::from_secs(1));
        rtt.sample(ms(800), ms(0), 0, &LIMITS);
        assert_eq!((rtt.srtt(), rtt.variation()), (Span::from_millis(800), Span::from_millis(400)));
        assert_eq!(rtt.timeout(), Span::from_millis(2400));
        rtt.sample(ms(1600), ms(1000), 0, &LIMITS);
        assert_eq!((rtt.srtt(), rtt.variation()), (Span::from_millis(775), Span::from_millis(350)));
        rtt.back_off(&LIMITS);
        assert_eq!(rtt.timeout(), Span::from_millis(2 * (775 + 1400)));
        rtt.reset_backoff(&LIMITS);
        assert_eq!(rtt.timeout(), Span::from_millis(775 + 1400));
        let mut quick = Rtt::new(Profile::Rfc, Span::from_secs(1));
        quick.sample(ms(10), ms(0), 0, &LIMITS);
        assert_eq!(quick.timeout(), Span::from_secs(1)); // (2.4)
    }

    /// A variation of zero counts as the clock's granularity.
    #[test]
    fn rfc_6298_section_4() {
        let limits = Limits { min: Span::ZERO, ..LIMITS };
        let mut rtt = Rtt::new(Profile::Rfc, Span::from_secs(1));
        for n in 1..200 {
            rtt.sample(ms(1000 * n + 100), ms(1000 * n), 0, &limits);
        }
        assert_eq!((rtt.variation(), rtt.timeout()), (Span::ZERO, Span::from_millis(101)));
    }

    #[test]
    fn ns2_counts_ticks() {
        let limits = Limits { min: Span::from_millis(200), max: Span::from_secs(60) };
        let mut rtt = Rtt::new(Profile::Ns2, Span::from_secs(3));
        rtt.sample(ms(55), ms(0), 0, &limits); // 5 ticks
        assert_eq!((rtt.srtt, rtt.rttvar), (40, 10));
        assert_eq!(rtt.timeout(), Span::from_millis(200));
        rtt.sample(ms(158), ms(105), 6_000_000, &limits); // 53 ms + 1 ms into the tick: 5 ticks
        assert_eq!((rtt.srtt, rtt.rttvar), (40, 8));
    }
}

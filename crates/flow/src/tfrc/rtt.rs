//! Round-trip time, and TCP's timeout for the equation.
//!
//! RFC 5348 section 4.3 steps 2 and 3: R = 0.9 R + 0.1 R_sample, t_RTO = 4 R. ns-2: a factor of 0.95 (`df_`), and the
//! timeout of a BSD TCP with ticks of 100 ms (`tcp_tick_`).

use paceline_control::Law;
use paceline_units::Span;

/// The minimum sample; timestamps have a resolution of 256 ns.
const MIN_SAMPLE: Span = Span::from_micros(1);

/// ns-2's `tcp_tick_` in seconds.
const TICK: f64 = 0.1;

/// The estimates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    keep: f64,
    /// R in seconds; zero before the first sample.
    smoothed: f64,
    /// `smoothed`, rounded.
    rounded: Span,
    min_rtt: Span,
    ns2: Option<Ticks>,
}

/// Mean (scaled by 8) and deviation (scaled by 4) of the samples in ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    mean: i64,
    deviation: i64,
}

impl Ticks {
    fn sample(&mut self, seconds: f64) {
        let ticks = ((seconds / TICK + 0.5) as i64).max(1);
        if self.mean == 0 {
            self.mean = ticks << 3;
            self.deviation = ticks << 1;
            return;
        }
        let error = ticks - (self.mean >> 3);
        self.mean = (self.mean + error).max(1);
        self.deviation = (self.deviation + error.abs() - (self.deviation >> 2)).max(1);
    }

    fn timeout(&self) -> Span {
        // deviation << rttvar_exp_ + 3 - 2, in the mean's units of an eighth
        Span::from_secs_f64((((self.deviation << 3) + self.mean) >> 3) as f64 * TICK)
    }
}

impl Rtt {
    pub(super) fn new(law: Law) -> Rtt {
        let ns2 = law == Law::Ns2;
        Rtt {
            keep: if ns2 { 0.95 } else { 0.9 },
            smoothed: 0.0,
            rounded: Span::ZERO,
            min_rtt: Span::MAX,
            ns2: ns2.then(Ticks::default),
        }
    }

    /// Takes a sample; returns it, limited to the minimum.
    pub(super) fn sample(&mut self, sample: Span) -> Span {
        let sample = sample.max(MIN_SAMPLE);
        let seconds = sample.as_secs_f64();
        self.smoothed =
            if self.smoothed > 0.0 { self.keep * self.smoothed + (1.0 - self.keep) * seconds } else { seconds };
        self.rounded = Span::from_secs_f64(self.smoothed).max(MIN_SAMPLE);
        self.min_rtt = self.min_rtt.min(sample);
        if let Some(ticks) = &mut self.ns2 {
            ticks.sample(seconds);
        }
        sample
    }

    /// R; zero before the first sample.
    #[inline]
    pub(super) fn smoothed(&self) -> Span {
        self.rounded
    }

    /// The minimum sample; zero before the first.
    pub(super) fn min_rtt(&self) -> Span {
        if self.rounded == Span::ZERO { Span::ZERO } else { self.min_rtt }
    }

    /// t_RTO.
    #[inline]
    pub(super) fn timeout(&self) -> Span {
        match &self.ns2 {
            None => self.rounded * 4,
            Some(_) if self.rounded == Span::ZERO => Span::ZERO,
            Some(ticks) => ticks.timeout(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_4_3_the_filter_and_the_timeout() {
        let mut rtt = Rtt::new(Law::Rfc5348);
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Span::ZERO, Span::ZERO));
        rtt.sample(Span::from_millis(100));
        rtt.sample(Span::from_millis(200));
        assert_eq!(rtt.smoothed(), Span::from_millis(110));
        assert_eq!(rtt.timeout(), Span::from_millis(440));
        assert_eq!(rtt.min_rtt(), Span::from_millis(100));
        rtt.sample(Span::ZERO);
        assert_eq!(rtt.min_rtt(), MIN_SAMPLE);
    }

    #[test]
    fn ns2_counts_in_ticks_of_100_ms() {
        let mut rtt = Rtt::new(Law::Ns2);
        rtt.sample(Span::from_millis(50)); // at least a tick: 8/8 + 4 * 2/4
        assert_eq!(rtt.timeout(), Span::from_millis(300));
        for _ in 0..20 {
            rtt.sample(Span::from_millis(50));
        }
        assert_eq!(rtt.smoothed(), Span::from_millis(50));
        // the deviation of 2/4 is too small to decrease by a quarter
        assert_eq!(rtt.timeout(), Span::from_millis(300));
        rtt.sample(Span::from_millis(1050));
        assert!(rtt.timeout() > Span::from_millis(1000));
    }
}

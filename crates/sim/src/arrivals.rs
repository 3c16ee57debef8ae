//! How a flow's data packets arrive: one-way delay, interarrival time and jitter (RFC 3550), for flows with `delays`.
//! Other flows pay nothing.

use paceline_packet::{Extra, Flags, Packet, Transit};
use paceline_units::{Histogram, Offset, Span, Time};

/// Measures the arrivals at one receiver.
#[derive(Clone, Debug, Default)]
pub struct ArrivalMeter {
    transit: Transit,
    /// The previous packet's arrival time, and its transit time in units of 256 ns, modulo 2^32.
    before: Option<(Time, u32)>,
    /// RFC 3550's estimate, in nanoseconds.
    jitter: f64,
    measured: ArrivalReport,
    /// Since the last sample of a recording.
    sampled: Sample,
}

/// Measurements of arrivals.
#[derive(Clone, Debug, Default)]
pub struct ArrivalReport {
    packets: u64,
    transit: u128,
    min_delay: Option<Span>,
    max_delay: Span,
    transits: Histogram,
    gaps: u64,
    gap: u128,
    /// Sum of squared gaps, in square seconds.
    squares: f64,
    widest: Span,
    widths: Histogram,
    jitter: f64,
}

/// Arrivals in one interval of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    packets: u64,
    transit: u128,
    max_delay: Span,
    widest: Span,
}

impl ArrivalMeter {
    /// For a flow that begins at `start`.
    #[must_use]
    pub fn since(start: Time) -> ArrivalMeter {
        ArrivalMeter { transit: Transit::since(start), ..ArrivalMeter::default() }
    }

    /// Counts a packet, with its side record. Its stamp is the time at which it was passed to the network (on RTP, the
    /// capture time of its content).
    pub fn on_packet(&mut self, packet: &Packet, extra: Option<&Extra>) {
        if packet.flags.has(Flags::SYN) || matches!(extra, Some(Extra::Rtcp(_))) {
            return;
        }
        let now = packet.time;
        let transit = match self.transit.of(packet.stamp, now) {
            Offset(ns @ 0..) => Span(ns as u64),
            // Negative only for packets overtaken by ones sent minutes later, since one clock stamps all packets of a
            // run.
            _ => packet.stamp.elapsed(now),
        };
        let units = (transit.0 >> 8) as u32;
        let it = &mut self.measured;
        it.packets += 1;
        it.transit += u128::from(transit.0);
        it.min_delay = Some(it.min_delay.map_or(transit, |min| min.min(transit)));
        it.max_delay = it.max_delay.max(transit);
        it.transits.count(transit);
        self.sampled.packets += 1;
        self.sampled.transit += u128::from(transit.0);
        self.sampled.max_delay = self.sampled.max_delay.max(transit);
        if let Some((last, before)) = self.before {
            let gap = now.since(last);
            it.gaps += 1;
            it.gap += u128::from(gap.0);
            it.squares += gap.as_secs_f64() * gap.as_secs_f64();
            it.widest = it.widest.max(gap);
            it.widths.count(gap);
            self.sampled.widest = self.sampled.widest.max(gap);
            // RFC 3550 section 6.4.1: J <- J + (|D| - J) / 16. A clock offset cancels out.
            let change = f64::from((units.wrapping_sub(before) as i32).unsigned_abs()) * 256.0;
            self.jitter += (change - self.jitter) / 16.0;
            it.jitter += self.jitter;
        }
        self.before = Some((now, units));
    }

    /// Resets the counters; the time since the last arrival, and the jitter, continue.
    pub fn measure_from_here(&mut self) {
        self.measured = ArrivalReport::default();
    }

    /// The measurements.
    #[must_use]
    pub fn report(&self) -> &ArrivalReport {
        &self.measured
    }

    /// A row of a recording, in seconds: mean and maximum one-way delay since the previous row, the longest
    /// interarrival time that ended since, and the jitter; NaN if there is none.
    pub fn sample(&mut self) -> [f64; 4] {
        let Sample { packets, transit, max_delay, widest } = core::mem::take(&mut self.sampled);
        let known = |value: f64, is: bool| if is { value } else { f64::NAN };
        let mean = transit as f64 / packets.max(1) as f64 * 1e-9;
        [
            known(mean, packets > 0),
            known(max_delay.as_secs_f64(), packets > 0),
            known(widest.as_secs_f64(), widest > Span::ZERO),
            known(self.jitter * 1e-9, self.before.is_some()),
        ]
    }
}

impl ArrivalReport {
    /// Mean one-way delay.
    #[must_use]
    pub fn mean_delay(&self) -> Option<Span> {
        self.transit.checked_div(u128::from(self.packets)).map(|ns| Span(ns as u64))
    }

    /// Minimum and maximum one-way delay.
    #[must_use]
    pub fn delay_bounds(&self) -> Option<(Span, Span)> {
        self.min_delay.map(|min| (min, self.max_delay))
    }

    /// The `q` quantile of the one-way delay.
    #[must_use]
    pub fn delay(&self, q: f64) -> Option<Span> {
        self.transits.quantile(q, (self.min_delay.unwrap_or_default(), self.max_delay))
    }

    /// Mean and standard deviation (by n) of the interarrival time, in seconds.
    #[must_use]
    pub fn gap_moments(&self) -> Option<(f64, f64)> {
        let n = self.gaps as f64;
        let mean = self.gap as f64 * 1e-9 / n;
        (self.gaps > 0).then(|| (mean, (self.squares / n - mean * mean).max(0.0).sqrt()))
    }

    /// The `q` quantile of the interarrival time.
    #[must_use]
    pub fn gap(&self, q: f64) -> Option<Span> {
        self.widths.quantile(q, (Span::ZERO, self.widest))
    }

    /// Maximum interarrival time.
    #[must_use]
    pub fn widest_gap(&self) -> Option<Span> {
        (self.gaps > 0).then_some(self.widest)
    }

    /// Mean of the jitter over the arrivals, in seconds.
    #[must_use]
    pub fn mean_jitter(&self) -> Option<f64> {
        (self.gaps > 0).then(|| self.jitter / self.gaps as f64 * 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_packet::{ExtraId, FlowId, Stamp};

    fn arrival(sent: u64, arrived: u64) -> Packet {
        let (flow, extra, flags) = (FlowId(0), ExtraId::NONE, Flags::NONE);
        Packet { time: Time(arrived), flow, seq: 0, stamp: Stamp::at(Time(sent)), cursor: 0, extra, size: 100, flags }
    }

    const MS: u64 = 1 << 20; // about a millisecond, in whole units of 256 ns

    #[test]
    fn measures_by_hand() {
        let mut arrivals = ArrivalMeter::default();
        // A connection's SYN is not counted.
        arrivals.on_packet(&Packet { flags: Flags::SYN, ..arrival(0, 999 * MS) }, None);
        // Sent 20 apart, with transit times of 10, 14, 10, 26.
        for (n, transit) in [10, 14, 10, 26].into_iter().enumerate() {
            let sent = n as u64 * 20 * MS;
            arrivals.on_packet(&arrival(sent, sent + transit * MS), None);
        }
        let report = arrivals.report();
        assert_eq!(report.mean_delay(), Some(Span(15 * MS)));
        assert_eq!(report.delay_bounds(), Some((Span(10 * MS), Span(26 * MS))));
        assert_eq!(report.widest_gap(), Some(Span(36 * MS)));
        let (mean, deviation) = report.gap_moments().unwrap();
        let unit = MS as f64 * 1e-9;
        let expected = ((24.0f64 * 24.0 + 16.0 * 16.0 + 36.0 * 36.0) / 3.0 - (76.0f64 / 3.0) * (76.0 / 3.0)).sqrt();
        assert!((mean - 76.0 / 3.0 * unit).abs() < 1e-12 && (deviation - expected * unit).abs() < 1e-9);
        // J: 4/16; then + (4 - J)/16; then + (16 - J)/16.
        let (a, b) = (0.25, 0.25 + (4.0 - 0.25) / 16.0);
        let c = b + (16.0 - b) / 16.0;
        assert!((report.mean_jitter().unwrap() - (a + b + c) / 3.0 * unit).abs() < 1e-12);
        let row = arrivals.sample();
        assert!((row[0] - 15.0 * unit).abs() < 1e-12 && (row[3] - c * unit).abs() < 1e-12);
        let row = arrivals.sample();
        assert!(row[0].is_nan() && row[2].is_nan() && row[3] > 0.0);
        arrivals.measure_from_here();
        assert_eq!((arrivals.report().mean_delay(), arrivals.report().widest_gap()), (None, None));
    }

    /// An offset or a wrap of the sender's clock moves the delay but not the jitter.
    #[test]
    fn clocks_that_differ_do_not_matter_to_jitter() {
        let jitter = |offset: u64| {
            let mut arrivals = ArrivalMeter::default();
            for n in 0..100u64 {
                let sent = n * 20 * MS;
                arrivals.on_packet(&arrival(sent.wrapping_add(offset << 8), sent + (n % 3) * MS), None);
            }
            arrivals.report().mean_jitter()
        };
        assert_eq!(jitter(0), jitter(u64::from(u32::MAX) - 5_000_000));
        assert_eq!(jitter(0), jitter(123_456_789));
    }
}

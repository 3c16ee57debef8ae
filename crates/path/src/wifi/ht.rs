//! 802.11n's physical layer: modulation and coding schemes, and the duration of an HT-mixed frame.
//!
//! IEEE Std 802.11-2012, clause 20: 20.3.5 and 20.6 (MCS parameters), 20.4.3 (TXTIME), 20.3.21.1 (minimum input
//! sensitivity).

use paceline_units::{Rate, Span};

/// The channel width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// 20 MHz: 52 data subcarriers.
    Mhz20,
    /// 40 MHz: 108 data subcarriers.
    Mhz40,
}

/// The guard interval between symbols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuardInterval {
    /// 800 ns: a symbol lasts 4 us.
    Long,
    /// 400 ns: a symbol lasts 3.6 us.
    Short,
}

/// How data frames to and from an 802.11n station are sent: equal modulation on all streams, convolutional code, no
/// STBC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ht {
    mcs: u8,
    width: Width,
    guard: GuardInterval,
}

/// Data bits per symbol and stream, in units of 26 at 20 MHz and 54 at 40 MHz (clause 20.6): BPSK 1/2, QPSK 1/2 and
/// 3/4, 16-QAM 1/2 and 3/4, 64-QAM 2/3, 3/4 and 5/6.
const UNITS: [u64; 8] = [1, 2, 3, 4, 6, 8, 9, 10];
/// OFDM rates in Mbit/s with the same modulation and coding; none has 5/6, so 3/4 stands for it (clause 9.7.6.5.5).
const REFERENCE: [u64; 8] = [6, 12, 18, 24, 36, 48, 54, 54];
/// Minimum input levels in dBm at 20 MHz (Table 20-22); 3 dB more at 40 MHz.
const SENSITIVITY: [f64; 8] = [-82.0, -79.0, -77.0, -74.0, -70.0, -66.0, -65.0, -64.0];
/// With more data bits per symbol than this there are two encoders: above 300 Mbit/s with the short guard interval.
const ONE_ENCODER: u64 = 1080;
const SYMBOL: u64 = 4000;
const SHORT_SYMBOL: u64 = 3600;
/// L-STF and L-LTF 16 us, L-SIG 4 us, HT-SIG 8 us, HT-STF 4 us.
const PREAMBLE: Span = Span::from_micros(32);
/// A training field per stream.
const TRAINING: Span = Span::from_micros(4);

impl Ht {
    /// The highest MCS with equal modulation: four streams.
    pub const MAX_MCS: u8 = 31;
    /// The maximum frame duration: L-SIG announces at most 4095 octets at 6 Mbit/s (clause 9.13.4).
    pub const MAX_DURATION: Span = Span::from_micros(5484);

    /// `None` if there is no such MCS: 0 to [`Ht::MAX_MCS`].
    #[must_use]
    pub fn new(mcs: u8, width: Width, guard: GuardInterval) -> Option<Ht> {
        (mcs <= Ht::MAX_MCS).then_some(Ht { mcs, width, guard })
    }

    fn scheme(self) -> usize {
        usize::from(self.mcs % 8)
    }

    fn streams(self) -> u64 {
        u64::from(self.mcs / 8) + 1
    }

    /// Data bits per symbol (N_DBPS).
    fn symbol_bits(self) -> u64 {
        let unit = match self.width {
            Width::Mhz20 => 26,
            Width::Mhz40 => 54,
        };
        UNITS[self.scheme()] * unit * self.streams()
    }

    fn symbol_ns(self) -> u64 {
        match self.guard {
            GuardInterval::Long => SYMBOL,
            GuardInterval::Short => SHORT_SYMBOL,
        }
    }

    /// The data rate, rounded down to whole bit/s.
    #[must_use]
    pub fn rate(self) -> Rate {
        Rate(self.symbol_bits() * 1_000_000_000 / self.symbol_ns())
    }

    /// The OFDM reference rate, which determines the rate of control frames: same modulation (clause 9.7.6.5.5).
    #[must_use]
    pub fn reference_rate(self) -> Rate {
        Rate(REFERENCE[self.scheme()] * 1_000_000)
    }

    /// The minimum input level in dBm, at which 10 % of frames of 4096 octets are damaged.
    pub(super) fn sensitivity(self) -> f64 {
        SENSITIVITY[self.scheme()] + if self.width == Width::Mhz40 { 3.0 } else { 0.0 }
    }

    /// The duration of a frame of `octets` (TXTIME, clause 20.4.3), without the signal extension of 2.4 GHz.
    #[must_use]
    pub fn airtime(self, octets: u32) -> Span {
        let bits = self.symbol_bits();
        let encoders = 1 + u64::from(bits > ONE_ENCODER);
        let symbols = (u64::from(octets) * 8 + 16 + 6 * encoders).div_ceil(bits);
        // three streams have four training fields
        let fields = if self.streams() == 3 { 4 } else { self.streams() };
        // whole long symbols, so that L-SIG can announce the duration
        let data = (symbols * self.symbol_ns()).div_ceil(SYMBOL) * SYMBOL;
        PREAMBLE + TRAINING * fields + Span(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use GuardInterval::{Long, Short};
    use Width::{Mhz20, Mhz40};

    fn ht(mcs: u8, width: Width, guard: GuardInterval) -> Ht {
        Ht::new(mcs, width, guard).expect("an MCS")
    }

    /// Clause 20.6, Tables 20-30 to 20-37, in kbit/s.
    #[test]
    fn rates_of_the_tables() {
        let long20 = [6500, 13000, 19500, 26000, 39000, 52000, 58500, 65000];
        let short20 = [7222, 14444, 21666, 28888, 43333, 57777, 65000, 72222];
        let long40 = [13500, 27000, 40500, 54000, 81000, 108_000, 121_500, 135_000];
        let short40 = [15000, 30000, 45000, 60000, 90000, 120_000, 135_000, 150_000];
        for (width, guard, table) in
            [(Mhz20, Long, long20), (Mhz20, Short, short20), (Mhz40, Long, long40), (Mhz40, Short, short40)]
        {
            for mcs in 0..=Ht::MAX_MCS {
                let kbps = ht(mcs, width, guard).rate().0 / 1000;
                let streams = u64::from(mcs / 8) + 1;
                let expected = table[usize::from(mcs % 8)] * streams;
                assert!(kbps.abs_diff(expected) < 4, "MCS {mcs}: {kbps} kbit/s, the table {expected}");
            }
        }
        assert_eq!(Ht::new(32, Mhz20, Long), None);
        assert_eq!(ht(31, Mhz40, Short).rate(), Rate(600_000_000));
    }

    /// Worked by hand from the equations of clause 20.4.3.
    #[test]
    fn frames_last_as_long_as_the_standard_says() {
        let us = |mcs, width, guard, octets| ht(mcs, width, guard).airtime(octets).0 as f64 / 1e3;
        // 22 + 12304 bits in symbols of 26: 475, after 36 us
        assert_eq!(us(0, Mhz20, Long, 1538), 36.0 + 1900.0);
        // symbols of 260: 48; 172.8 us are 44 long ones
        assert_eq!(us(7, Mhz20, Long, 1538), 36.0 + 192.0);
        assert_eq!(us(7, Mhz20, Short, 1538), 36.0 + 176.0);
        // 22 + 520000 bits in symbols of 1080: 482, after two training fields
        assert_eq!(us(15, Mhz40, Long, 65_000), 40.0 + 1928.0);
        // two encoders: 28 + 520000 bits in symbols of 1620: 322 with four training fields for three streams
        assert_eq!(us(23, Mhz40, Long, 65_000), 48.0 + 1284.0 + 4.0);
        // one encoder's tail would fit into a symbol of 1296: 22 + 1272 bits; those of two do not
        assert_eq!(us(21, Mhz40, Long, 159), 48.0 + 8.0);
        assert_eq!(us(3, Mhz20, Long, 10), 36.0 + 4.0);
    }
}

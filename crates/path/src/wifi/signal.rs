//! Which frames arrive damaged: from distance to received power, from power and rate to a frame error rate.
//!
//! The reference is the standard's minimum receiver performance: at its minimum input level a receiver damages 10 % of
//! frames of 1000 octets (OFDM: IEEE Std 802.11-2016, Table 17-18) or 4096 (802.11n: clause 19.3.19.2), or 8 % of 1024
//! octets (DSSS and CCK: clauses 15.4.6 and 16.3.8). From there the bit error rate changes tenfold per decibel, about
//! as steeply as that of the convolutional code with hard decisions; bit errors are independent. Real receivers are
//! some decibels better.

use super::ht::Ht;
use super::timing::Phy;
use paceline_units::{Rate, Ratio};

/// A received power in dBm.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct PowerDbm(pub f64);

/// A distance in metres.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Meters(pub f64);

/// The frequency band of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Band {
    /// 2.4 GHz.
    Ghz2,
    /// 5 GHz, up to 5.35.
    Ghz5,
}

impl Band {
    /// Radiated power in dBm: the limit in Europe, 20 at 2.4 GHz (ETSI EN 300 328), 23 at 5 GHz (EN 301 893).
    const fn radiated(self) -> f64 {
        match self {
            Band::Ghz2 => 20.0,
            Band::Ghz5 => 23.0,
        }
    }

    /// Free-space loss of the first metre, in dB: 20 log10(4 pi / 0.1229 m) at 2.44 GHz, 0.0571 m at 5.25 GHz.
    const fn first_metre(self) -> f64 {
        match self {
            Band::Ghz2 => 40.2,
            Band::Ghz5 => 46.9,
        }
    }
}

/// The path loss exponent beyond the first metre: between free space (2) and a house with walls (3 to 4).
const EXPONENT: f64 = 3.0;
/// The number of decibels that changes the bit error rate tenfold.
const DECIBELS_A_DECADE: f64 = 1.0;

/// The received power at this distance.
#[must_use]
pub fn at_distance(band: Band, distance: Meters) -> PowerDbm {
    PowerDbm(band.radiated() - band.first_metre() - 10.0 * EXPONENT * libm::log10(distance.0.max(1.0)))
}

/// The minimum input level in dBm at each rate in kbit/s. For DSSS and CCK the standard specifies 2 and 11 Mbit/s; half
/// the rate is assumed to need half the power.
const SENSITIVITY: [(u64, f64); 12] = [
    (1000, -83.0),
    (2000, -80.0),
    (5500, -79.0),
    (6000, -82.0),
    (9000, -81.0),
    (11000, -76.0),
    (12000, -79.0),
    (18000, -77.0),
    (24000, -74.0),
    (36000, -70.0),
    (48000, -66.0),
    (54000, -65.0),
];

/// The probability that a frame of `octets` arrives damaged; zero for a rate that the standard does not have.
#[must_use]
pub fn packet_error(rate: Rate, octets: u32, power: PowerDbm) -> Ratio {
    let Some((_, level)) = SENSITIVITY.iter().find(|(kbps, _)| Rate(kbps * 1000) == rate) else { return Ratio::ZERO };
    let (share, anchor) = if Phy::is_ofdm(rate) { (0.1, 8000.0) } else { (0.08, 8192.0) };
    Ratio(error(*level, share, anchor, octets, power))
}

/// The probability that an 802.11n MPDU of `octets` arrives damaged.
#[must_use]
pub fn ht_error(ht: Ht, octets: u32, power: PowerDbm) -> Ratio {
    Ratio(error(ht.sensitivity(), 0.1, 4096.0 * 8.0, octets, power))
}

/// The error probability for a receiver that damages `share` of frames of `anchor` bits at `level`.
fn error(level: f64, share: f64, anchor: f64, octets: u32, power: PowerDbm) -> f64 {
    // the bit error rate at the minimum input level, then at this power
    let at_level = -libm::expm1(libm::log1p(-share) / anchor);
    let bit_error = (at_level * libm::pow(10.0, (level - power.0) / DECIBELS_A_DECADE)).min(0.5);
    -libm::expm1(f64::from(octets) * 8.0 * libm::log1p(-bit_error))
}

#[cfg(test)]
mod tests {
    use super::super::ht::{GuardInterval, Width};
    use super::*;

    #[test]
    fn anchored_at_the_standards_receiver() {
        let error = |mbps, octets, dbm| packet_error(Rate::from_mbps(mbps), octets, PowerDbm(dbm)).0;
        assert!((error(54.0, 1000, -65.0) - 0.1).abs() < 1e-9);
        assert!((error(11.0, 1024, -76.0) - 0.08).abs() < 1e-9);
        assert!((error(54.0, 1000, -64.0) - 0.0105).abs() < 1e-4);
        assert!(error(54.0, 1000, -67.0) > 0.99999 - 0.00003);
        assert!(error(54.0, 14, -65.0) < 0.002);
        let ht = |mcs, width| Ht::new(mcs, width, GuardInterval::Long).expect("an MCS");
        assert!((ht_error(ht(7, Width::Mhz20), 4096, PowerDbm(-64.0)).0 - 0.1).abs() < 1e-9);
        assert!((ht_error(ht(8, Width::Mhz40), 4096, PowerDbm(-79.0)).0 - 0.1).abs() < 1e-9);
        assert_eq!(error(7.0, 1000, -90.0), 0.0);
        for pair in Phy::rates(super::super::Standard::G).windows(2) {
            let [slow, fast] = [pair[0], pair[1]].map(|rate| packet_error(rate, 1500, PowerDbm(-75.0)).0);
            assert!(slow <= fast || Phy::is_ofdm(pair[0]) != Phy::is_ofdm(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn power_falls_with_distance() {
        assert!((at_distance(Band::Ghz2, Meters(10.0)).0 + 50.2).abs() < 1e-9);
        assert!((at_distance(Band::Ghz5, Meters(10.0)).0 + 53.9).abs() < 1e-9);
        assert_eq!(at_distance(Band::Ghz2, Meters(0.1)), at_distance(Band::Ghz2, Meters(1.0)));
        assert!(
            (at_distance(Band::Ghz2, Meters(20.0)).0 - at_distance(Band::Ghz2, Meters(10.0)).0 + 9.03).abs() < 0.01
        );
        // At 54 Mbit/s a frame of 1500 B is reliable at 25 m and unusable at 40 m.
        let error = |m| packet_error(Rate::from_mbps(54.0), 1536, at_distance(Band::Ghz2, Meters(m))).0;
        assert!(error(25.0) < 0.01 && error(40.0) > 0.99, "{} {}", error(25.0), error(40.0));
    }
}

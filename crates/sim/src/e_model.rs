//! The quality of a voice flow: the rating R of ITU-T G.107 (06/2015), the E-model, and the mean opinion score (MOS)
//! that follows from it.
//!
//! All parameters outside the network have G.107's defaults, and losses count as random (BurstR = 1).

use crate::arrivals::ArrivalReport;
use paceline_scenario::model::{Impairment, Voice};
use paceline_units::Span;

/// The rating without codec, loss and delay: Ro of section 7.2 minus Is of section 7.3, with the defaults of table 2.
const SIGNAL: f64 = 94.7688;
const SIMULTANEOUS: f64 = 1.4136;
/// Defaults for talker and listener echo: TELR and WEPL in dB (table 2).
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
/// Delay sensitivity: mT in ms, with sT = 1 (section 7.4).
const NOTICED_MS: f64 = 100.0;

/// The rating of what has arrived, given the share `lost` of what was sent. The receiver plays out with a fixed
/// delay, the one with the best rating; packets that arrive later count as lost (R. G. Cole, J. H. Rosenbluth,
/// "Voice over IP performance monitoring", ACM CCR 31(2), 2001). `None` if nothing has arrived.
#[must_use]
pub fn best_rating(voice: &Voice, arrived: &ArrivalReport, lost: f64) -> Option<f64> {
    let shares = (500..=1000).step_by(5).map(|permille| f64::from(permille) / 1000.0);
    let ratings = shares.filter_map(|share| {
        let late = 1.0 - (1.0 - lost) * share;
        arrived.delay(share).map(|delay| rating(delay + voice.interval, late, &voice.codec))
    });
    ratings.reduce(f64::max)
}

/// R for a mouth-to-ear delay and a share of lost packets, from 0 to 100 (section 7.1).
fn rating(delay: Span, loss: f64, codec: &Impairment) -> f64 {
    let percent = 100.0 * loss.clamp(0.0, 1.0);
    let equipment = codec.equipment + (95.0 - codec.equipment) * percent / (percent + codec.robustness);
    (SIGNAL - SIMULTANEOUS - of_delay(delay.as_secs_f64() * 1e3) - equipment).clamp(0.0, 100.0)
}

/// Id: talker echo, listener echo, and absolute delay (section 7.4).
fn of_delay(ms: f64) -> f64 {
    let level = TELR - 40.0 * libm::log10((1.0 + ms / 10.0) / (1.0 + ms / 150.0)) + 6.0 * libm::exp(-0.3 * ms * ms);
    let talker = SIGNAL - (80.0 + 2.5 * (level - 14.0));
    let talker = (talker / 2.0 + (talker * talker / 4.0 + 100.0).sqrt() - 1.0) * (1.0 - libm::exp(-ms));
    let listener = SIGNAL - 10.5 * (WEPL + 7.0) * libm::pow(2.0 * ms + 1.0, -0.25);
    let listener = listener / 2.0 + (listener * listener / 4.0 + 169.0).sqrt();
    let octaves = libm::log2(ms / NOTICED_MS).max(0.0);
    let sixth = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
    talker + listener + 25.0 * (sixth(octaves) - 3.0 * sixth(octaves / 3.0) + 2.0)
}

/// The mean opinion score of a rating, from 1 to 4.5 (annex B).
#[must_use]
pub fn opinion(rating: f64) -> f64 {
    let r = rating.clamp(0.0, 100.0);
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::ArrivalMeter;
    use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
    use paceline_units::Time;

    const G711: Impairment = Impairment { equipment: 0.0, robustness: 25.1 };
    const G729: Impairment = Impairment { equipment: 11.0, robustness: 19.0 };

    fn near(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() <= by, "{a}, {b}");
    }

    /// 93.2 and 4.41, the values for all defaults; and annex B's table of scores.
    #[test]
    fn g_107_defaults_and_scores() {
        near(rating(Span::ZERO, 0.0, &G711), 93.2, 0.05);
        near(opinion(93.2), 4.41, 0.005);
        for (r, score) in
            [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58), (0.0, 1.0), (100.0, 4.5)]
        {
            near(opinion(r), score, 0.007);
        }
    }

    /// Cole and Rosenbluth's line for the same defaults: 0.024 d, and 0.11 more for each ms beyond 177.3.
    #[test]
    fn delay_costs_what_cole_and_rosenbluth_s_line_says() {
        let none = of_delay(0.0);
        for ms in [25.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0] {
            near(of_delay(ms) - none, 0.024 * ms + 0.11 * f64::max(ms - 177.3, 0.0), 1.7);
        }
        // By hand from the formulas: 14.76 + 4.83 + 1.09, minus the listener echo at zero delay, 0.15.
        near(of_delay(300.0) - none, 20.53, 0.02);
    }

    #[test]
    fn losses_cost_by_the_codec() {
        let lossless = |codec| rating(Span::ZERO, 0.0, codec);
        near(lossless(&G711) - lossless(&G729), 11.0, 1e-9);
        near(lossless(&G711) - rating(Span::ZERO, 0.01, &G711), 95.0 / 26.1, 1e-9);
        near(lossless(&G711) - rating(Span::ZERO, 0.02, &G729), 11.0 + 84.0 * 2.0 / 21.0, 1e-9);
        near(rating(Span::from_secs(2), 1.0, &G729), 0.0, 0.0);
    }

    /// With 20 ms, and 520 ms for one packet in a hundred, the late ones are not waited for. With half of each, they
    /// are not waited for either, so half of the packets are lost.
    #[test]
    fn the_best_delay_leaves_out_what_costs_more_than_its_loss() {
        let voice = Voice { codec: G711, interval: Span::from_millis(20) };
        let rated = |late: &dyn Fn(u64) -> bool| {
            let mut meter = ArrivalMeter::default();
            for n in 0..1000 {
                let sent = Time(n * 20_000_000);
                let time = sent + Span::from_millis(if late(n) { 520 } else { 20 });
                let (flow, seq, stamp, cursor, extra) = (FlowId(0), 0, Stamp::at(sent), 0, ExtraId::NONE);
                meter.on_packet(&Packet { time, flow, seq, stamp, cursor, extra, size: 200, flags: Flags::NONE }, None);
            }
            best_rating(&voice, meter.report(), 0.0).unwrap()
        };
        let all = rating(Span::from_millis(40), 0.0, &G711);
        near(rated(&|_| false), all, 0.1);
        near(rated(&|n| n % 100 == 0), rating(Span::from_millis(40), 0.01, &G711), 0.1);
        near(
            rated(&|n| n % 2 == 0),
            rating(Span::from_millis(540), 0.0, &G711).max(rating(Span::from_millis(40), 0.5, &G711)),
            0.3,
        );
        assert!(best_rating(&voice, &ArrivalReport::default(), 1.0).is_none());
    }
}

//! DualPI2's keys, with defaults that depend on the variant.

use super::limit;
use paceline_path::{DualPi2Model, DualScheduler, NativeAqm};
use paceline_scenario::queue::{DualPi2Variant, DualScheduler as SchedulerKey, NativeAqm as NativeKey, Queue};
use paceline_units::{Rate, Ratio, Span};

/// The model of a DualPI2 queue.
///
/// # Panics
/// If the queue is of another kind.
pub(super) fn model(queue: &Queue, rate: Rate) -> DualPi2Model {
    let Queue::Dualpi2 {
        variant,
        limit: limit_key,
        target,
        rtt_max,
        update,
        alpha,
        beta,
        coupling,
        l4s_aqm,
        l4s_threshold,
        l4s_range,
        l4s_packets,
        scheduler,
        classic_share,
        time_shift,
        drop_overload,
        mtu,
    } = queue
    else {
        unreachable!("another queue is not DualPI2's")
    };
    let max = limit(limit_key.unwrap_or(variant.limit()), rate);
    let (base, rtt_max, native, share) = match variant {
        DualPi2Variant::Rfc9332 => {
            let rtt_max = rtt_max.or(Some(Span::from_millis(100)));
            (DualPi2Model::rfc9332(max), rtt_max, NativeKey::Ramp, Ratio(1.0 / 16.0))
        }
        DualPi2Variant::Linux => (DualPi2Model::linux(max), *rtt_max, NativeKey::Step, Ratio(0.1)),
    };
    let base = DualPi2Model { target: *target, ..base };
    let base = rtt_max.map_or(base, |rtt_max| base.tuned(rtt_max));
    let update = update.unwrap_or(base.update);
    // alpha is a gain per update, so it depends on the configured update interval (RFC 9332, figure 2, line 13).
    let tuned = rtt_max.map(|rtt| 0.1 * update.as_secs_f64() / (rtt.as_secs_f64() * rtt.as_secs_f64()));
    DualPi2Model {
        update,
        alpha: alpha.or(tuned).unwrap_or(base.alpha),
        beta: beta.unwrap_or(base.beta),
        coupling: *coupling,
        native: match l4s_aqm.unwrap_or(native) {
            NativeKey::Step => NativeAqm::Step(l4s_threshold.unwrap_or(Span::from_millis(1))),
            NativeKey::Ramp => {
                let from = l4s_threshold.unwrap_or(Span::from_micros(800));
                NativeAqm::Ramp { from, range: *l4s_range }
            }
        },
        native_packets: l4s_packets.unwrap_or(base.native_packets),
        scheduler: match scheduler {
            SchedulerKey::Weighted => DualScheduler::Weighted(classic_share.unwrap_or(share)),
            SchedulerKey::TimeShifted => DualScheduler::TimeShifted(*time_shift),
        },
        drop_overload: *drop_overload,
        mtu: *mtu,
        ..base
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_path::Limit;

    fn of(keys: &str) -> DualPi2Model {
        let text = format!("{{ \"kind\": \"dualpi2\" {keys} }}");
        model(&serde_json::from_str(&text).unwrap(), Rate::from_mbps(8.0))
    }

    /// Defaults are those of the variant.
    #[test]
    fn defaults_are_the_variants() {
        assert_eq!(of(""), DualPi2Model::rfc9332(Limit::Bytes(paceline_units::Size(250_000))));
        assert_eq!(of(", \"variant\": \"linux\""), DualPi2Model::linux(Limit::Packets(10_000)));
    }

    /// RFC 9332 figure 2, lines 11 to 14: `update` follows from target and `rtt_max`, and alpha from `update`,
    /// whichever of them is given.
    #[test]
    fn gains_follow_the_round_trip_and_the_interval() {
        let gains = |keys: &str| {
            let model = of(keys);
            (model.update.0 / 1000, (model.alpha * 1e6).round(), (model.beta * 1e6).round())
        };
        assert_eq!(gains(""), (15_000, 150_000.0, 3e6));
        assert_eq!(gains(", \"rtt_max\": \"200 ms\""), (15_000, 37_500.0, 1.5e6));
        assert_eq!(gains(", \"target\": \"5 ms\""), (5_000, 50_000.0, 3e6));
        assert_eq!(gains(", \"update\": \"16 ms\""), (16_000, 160_000.0, 3e6));
        assert_eq!(gains(", \"update\": \"16 ms\", \"alpha\": 1.0, \"beta\": 2.0"), (16_000, 1e6, 2e6));
        assert_eq!(gains(", \"variant\": \"linux\", \"update\": \"4 ms\""), (4_000, 160_156.0, 3_199_219.0));
        assert_eq!(gains(", \"variant\": \"linux\", \"rtt_max\": \"30 ms\""), (10_000, 1_111_111.0, 1e7));
    }
}

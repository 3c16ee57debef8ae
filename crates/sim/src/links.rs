//! Translates a scenario's links into the models of crate `path`.

mod cake;
mod dualpi2;

use paceline_path::{
    AdaptiveRed, CoDelModel, DelayEstimate, FqCoDelModel, FqPieModel, GilbertElliott, Limit, LinkModel, LinkRecovery,
    Loss, On, Periodic, PieModel, Queue, QueueLimit, RateModel, RedMode, RedModel, Reorder, Start, StepFor, TwoState,
};
use paceline_scenario::Direction;
use paceline_scenario::file::Profile;
use paceline_scenario::link::AccessTable;
use paceline_scenario::loss::{Loss as LossKey, LossOn, LossStart};
use paceline_scenario::queue::{
    DelayEstimate as EstimateKey, Queue as QueueKey, RedMode as ModeKey, StepFor as StepForKey,
};
use paceline_scenario::values::Limit as LimitKey;
use paceline_units::{Rate, Ratio, Size, Span, Time};

/// One direction of a link.
pub fn link_model(way: &Direction, profile: Profile) -> LinkModel {
    LinkModel {
        rate: way.rate.clone(),
        propagation: way.delay,
        delay_steps: way.delay_steps.clone(),
        queue: queue(&way.queue, way.rate.nominal(), profile),
        limit_in_time: limit_in_time(way),
        limit_steps: way
            .limit_steps
            .iter()
            .map(|step| (Time::ZERO + step.at, room(way, step.limit, profile)))
            .collect(),
        policer: way.policer,
        recovery: way.recovery.map(|recovery| LinkRecovery {
            block_time: recovery.block_time,
            block_error: recovery.block_error,
            delay: recovery.delay,
            retransmissions: recovery.retransmissions,
        }),
        loss: way.loss.as_ref().map(loss),
        loss_of: None, // set by `expand`, which knows the flows' numbers
        loss_during: way.loss.as_ref().map(during).unwrap_or_default(),
        delay_variation: way.delay_variation,
        variation_steps: way.variation_steps.clone(),
        reorder: way.reorder.map(|reorder| Reorder { rate: reorder.rate, extra: reorder.extra }),
        duplicate: positive(way.duplicate),
        corrupt: positive(way.corrupt),
        aggregation: way.aggregation,
        bleaches_ecn: way.bleach_ecn,
        delay_spikes: way.delay_spikes.clone(),
        outages: way.outages.clone(),
        occupancy: way.occupancy,
        per_flow: way.per_flow,
    }
}

/// Either direction of an access link, from a table with defaults filled in, except for its queue.
pub fn access_model(access: &AccessTable, lossy: Option<&LossKey>, profile: Profile) -> LinkModel {
    let (rate, default) = (access.rate.unwrap_or(AccessTable::MIN_DEFAULT_RATE), AccessTable::default_queue(profile));
    let queue = queue(access.queue.as_ref().unwrap_or(&default), rate, profile);
    let loss_during = lossy.map(during).unwrap_or_default();
    LinkModel { loss: lossy.map(loss), loss_during, ..LinkModel::new(rate, access.delay, queue) }
}

fn positive(share: Ratio) -> Option<Ratio> {
    (share > Ratio::ZERO).then_some(share)
}

/// A queue in front of a transmitter of this nominal rate.
pub fn queue(queue: &QueueKey, rate: Rate, profile: Profile) -> Queue {
    match queue {
        QueueKey::Unlimited {} => Queue::Unlimited,
        QueueKey::Droptail { limit: limit_key } => Queue::DropTail(drop_tail_limit(limit(*limit_key, rate), profile)),
        QueueKey::Red {
            limit: limit_key,
            min_threshold,
            max_threshold,
            min_share,
            max_share,
            weight,
            max_p,
            gentle,
            wait,
            mode,
            mean_packet,
            ecn,
            mark_below,
            idle_packet,
            adaptive,
            automatic: _, // the thresholds and the weight are absent then
        } => Queue::Red(RedModel {
            min_threshold: min_threshold.or_else(|| threshold(*min_share, limit(*limit_key, rate), *mean_packet)),
            max_threshold: max_threshold.or_else(|| threshold(*max_share, limit(*limit_key, rate), *mean_packet)),
            weight: *weight,
            max_p: Ratio(*max_p),
            gentle: *gentle,
            wait: *wait,
            mode: match mode {
                ModeKey::Packets => RedMode::Packets,
                ModeKey::Bytes => RedMode::Bytes,
            },
            mean_packet: *mean_packet,
            ecn: *ecn,
            mark_below: Some(*mark_below),
            idle_packet: *idle_packet,
            adaptive: adaptive.map(|key| AdaptiveRed {
                increase: key.increase,
                decrease: key.decrease,
                interval: key.interval,
                top: key.top,
                bottom: key.bottom,
            }),
            ..RedModel::new(limit(*limit_key, rate))
        }),
        QueueKey::Codel { limit: limit_key, target, interval, mtu, ecn, mark_above, mark_above_for } => {
            Queue::CoDel(CoDelModel {
                limit: limit(*limit_key, rate),
                target: *target,
                interval: *interval,
                mtu: *mtu,
                ecn: *ecn,
                mark_above: *mark_above,
                mark_above_for: step_for(*mark_above_for),
            })
        }
        QueueKey::FqCodel {
            limit: limit_key,
            target,
            interval,
            mtu,
            ecn,
            mark_above,
            mark_above_for,
            queues,
            quantum,
            batch,
        } => {
            let (limit, target, interval, mtu) = (limit(*limit_key, rate), *target, *interval, *mtu);
            let (mark_above, mark_above_for) = (*mark_above, step_for(*mark_above_for));
            let codel = CoDelModel { limit, target, interval, mtu, ecn: *ecn, mark_above, mark_above_for };
            Queue::FqCoDel(FqCoDelModel { codel, queues: *queues, quantum: *quantum, batch: *batch })
        }
        QueueKey::Cake { .. } => Queue::Cake(cake::model(queue, rate)),
        QueueKey::Dualpi2 { .. } => Queue::DualPi2(dualpi2::model(queue, rate)),
        QueueKey::FqPie { queues, quantum, .. } => {
            Queue::FqPie(FqPieModel { pie: pie(queue, rate), queues: *queues, quantum: *quantum })
        }
        QueueKey::Pie { .. } => Queue::Pie(pie(queue, rate)),
    }
}

/// PIE's keys, for one queue or for each flow's.
fn pie(queue: &QueueKey, rate: Rate) -> PieModel {
    let (QueueKey::Pie {
        limit: limit_key,
        target,
        update,
        burst,
        alpha,
        beta,
        estimate,
        derandomize,
        by_size,
        mean_packet,
        ecn,
        mark_below,
    }
    | QueueKey::FqPie {
        limit: limit_key,
        target,
        update,
        burst,
        alpha,
        beta,
        estimate,
        derandomize,
        by_size,
        mean_packet,
        ecn,
        mark_below,
        ..
    }) = queue
    else {
        unreachable!("another queue is not PIE's")
    };
    PieModel {
        limit: limit(*limit_key, rate),
        target: *target,
        update: *update,
        burst: *burst,
        alpha: *alpha,
        beta: *beta,
        estimate: match estimate {
            EstimateKey::Timestamps => DelayEstimate::Timestamps,
            EstimateKey::DepartureRate => DelayEstimate::DepartureRate,
        },
        derandomize: *derandomize,
        by_size: *by_size,
        mean_packet: *mean_packet,
        mark_below: ecn.then_some(*mark_below),
    }
}

fn step_for(key: StepForKey) -> StepFor {
    match key {
        StepForKey::Ect => StepFor::Ect,
        StepForKey::Ect1 => StepFor::Ect1,
    }
}

/// RED's thresholds are in packets, or in byte mode in mean packets; a limit in packets counts mean packets then, too.
fn threshold(share: Option<Ratio>, limit: Limit, mean_packet: Size) -> Option<f64> {
    let packets = match limit {
        Limit::Packets(packets) => f64::from(packets),
        Limit::Bytes(size) => size.bytes() as f64 / mean_packet.bytes() as f64,
    };
    share.map(|share| share.0 * packets)
}

/// The queue's limit, if it is a time and the link's rate changes.
fn limit_in_time(way: &Direction) -> Option<Span> {
    match way.queue.limit() {
        Some(LimitKey::Time(span)) if !matches!(way.rate, RateModel::Constant(_)) => Some(span),
        _ => None,
    }
}

/// The queue limit of this link from a change on.
fn room(way: &Direction, max: LimitKey, profile: Profile) -> QueueLimit {
    match max {
        LimitKey::Time(span) if !matches!(way.rate, RateModel::Constant(_)) => QueueLimit::InTime(span),
        _ => {
            let max = limit(max, way.rate.nominal());
            let is_drop_tail = matches!(way.queue, QueueKey::Droptail { .. });
            QueueLimit::Fixed(if is_drop_tail { drop_tail_limit(max, profile) } else { max })
        }
    }
}

fn limit(limit: LimitKey, rate: Rate) -> Limit {
    match limit {
        LimitKey::Packets(packets) => Limit::Packets(packets),
        LimitKey::Bytes(size) => Limit::Bytes(size),
        LimitKey::Time(span) => Limit::Bytes((rate * span).max(Size(1))),
    }
}

/// ns-2's drop-tail queue refuses the packet that would fill it, so it holds one less than its limit
/// (queue/drop-tail.cc; its RED uses the whole limit).
fn drop_tail_limit(limit: Limit, profile: Profile) -> Limit {
    match limit {
        Limit::Packets(packets) if profile.is_ns2() => Limit::Packets(packets - 1),
        Limit::Bytes(Size(bytes)) if profile.is_ns2() => Limit::Bytes(Size(bytes - 1)),
        other => other,
    }
}

fn loss(loss: &LossKey) -> Loss {
    match *loss {
        LossKey::Uniform { rate, on, .. } => Loss::Uniform { rate, on: covered(on) },
        LossKey::GilbertElliott { good_rate, bad_rate, to_bad, to_good, on, .. } => {
            Loss::GilbertElliott(GilbertElliott { good_rate, bad_rate, to_bad, to_good, on: covered(on) })
        }
        LossKey::TwoState { good_rate, bad_rate, good_time, bad_time, change, start, on, .. } => {
            let start = match start {
                LossStart::Good => Start::Good,
                LossStart::Anywhere => Start::Anywhere,
            };
            Loss::TwoState(TwoState { good_rate, bad_rate, good_time, bad_time, change, start, on: covered(on) })
        }
        LossKey::Periodic { pass, lose, within, on, .. } => {
            Loss::Periodic(Periodic { pass, lose, within, on: covered(on) })
        }
    }
}

fn during(loss: &LossKey) -> Vec<(Time, Time)> {
    loss.during().iter().map(|time| (Time::ZERO + time.from, Time::ZERO + time.to)).collect()
}

fn covered(on: LossOn) -> On {
    match on {
        LossOn::Data => On::Data,
        LossOn::Acks => On::Acks,
        LossOn::All => On::All,
    }
}

//! From a scenario's links to the models of crate `path`.

use crate::scenario::Direction;
use crate::scenario::link::{AccessTable, Loss as LossKey, LossOn, Queue as QueueKey};
use crate::scenario::values::Limit as LimitKey;
use paceline_path::{Limit, LinkModel, Loss, On, Queue, Reorder};
use paceline_units::{Ratio, Span};

/// One direction of a link.
pub fn link_model(way: &Direction) -> LinkModel {
    LinkModel {
        rate: way.rate.clone(),
        propagation: way.delay,
        queue: queue(&way.queue),
        loss: way.loss.map(loss),
        delay_variation: (way.delay_variation > Span::ZERO).then_some(way.delay_variation),
        reorder: way.reorder.map(|reorder| Reorder { rate: reorder.rate, extra: reorder.extra }),
        duplicate: positive(way.duplicate),
        corrupt: positive(way.corrupt),
        outages: way.outages.clone(),
    }
}

/// One direction of an access link.
pub fn access_model(access: &AccessTable) -> LinkModel {
    LinkModel::new(access.rate, access.delay, queue(&access.queue))
}

fn positive(share: Ratio) -> Option<Ratio> {
    (share > Ratio::ZERO).then_some(share)
}

fn queue(queue: &QueueKey) -> Queue {
    match queue {
        QueueKey::Unlimited {} => Queue::Unlimited,
        QueueKey::Droptail { limit: most } => Queue::DropTail(limit(*most)),
        QueueKey::Red { limit: most, .. } => Queue::DropTail(limit(*most)),
    }
}

fn limit(limit: LimitKey) -> Limit {
    match limit {
        LimitKey::Packets(packets) => Limit::Packets(packets),
        LimitKey::Bytes(size) => Limit::Bytes(size),
    }
}

fn loss(loss: LossKey) -> Loss {
    let LossKey::Uniform { rate, on } = loss;
    Loss::Uniform {
        rate,
        on: match on {
            LossOn::Data => On::Data,
            LossOn::Acks => On::Acks,
            LossOn::All => On::All,
        },
    }
}

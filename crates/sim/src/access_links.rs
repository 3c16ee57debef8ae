//! Which access links a summary reports, and which need no queue of their own.

use crate::graph::Path;
use crate::model::{Model, QueueReporting};
use crate::scenario::link::AccessTable;
use paceline_path::{LinkModel, Queue, RateModel};

/// Sets which access links the summary reports, beside those whose queue was given. A default queue that cannot fill becomes one
/// without a limit, which costs nothing: that of a link no slower than what feeds it, and that of a sender which waits while its
/// link is full (backpressure).
pub fn of_access(model: &mut Model, paths: &[Path], access: &AccessTable) {
    let mut reporting: Vec<QueueReporting> = model.links.iter().map(|link| link.reporting).collect();
    let peak = |arc: usize| model.links[arc].model.rate.peak();
    for (flow, (there, _)) in model.flows.iter().zip(paths) {
        let slowest = model.slowest_link(there).map(|link| link.model.rate.peak());
        for (place, &arc) in there.iter().enumerate() {
            let link = &model.links[arc];
            if !link.is_access() || reporting[arc] == QueueReporting::Always {
                continue;
            }
            let slow = slowest.is_some_and(|slowest| peak(arc) <= slowest);
            // the sender's own link is fed by the sender
            let feed = place.checked_sub(1).map(|before| &model.links[there[before]]);
            let may_wait = feed.is_none_or(|feed| feed.cell.is_some() || outruns(&feed.model, &link.model));
            let may_fill = feed.is_some() || flow.transport.name() == "udp" || access.backpressure != Some(true);
            let limited = !matches!(link.model.queue, Queue::Unlimited);
            let own = if slow && may_wait {
                QueueReporting::IfAny
            } else if may_wait && may_fill && limited {
                QueueReporting::IfLong
            } else {
                QueueReporting::Never
            };
            reporting[arc] = reporting[arc].max(own);
        }
    }
    for (link, reporting) in model.links.iter_mut().zip(reporting) {
        link.reporting = reporting;
        if link.is_access() && reporting == QueueReporting::Never {
            link.model.queue = Queue::Unlimited;
        }
    }
}

/// Whether packets may leave one link faster than the next can send them on. Behind a link of the same rate a packet waits for no
/// longer than a greater one before it takes.
fn outruns(feed: &LinkModel, next: &LinkModel) -> bool {
    !feed.is_steady()
        || match (&feed.rate, &next.rate) {
            // as whole nanoseconds a packet's end is rounded down, so what follows it at the same rate never comes too soon
            (RateModel::Constant(feed_rate), RateModel::Constant(rate)) => rate < feed_rate,
            _ => next.rate.peak() <= feed.rate.peak(),
        }
}

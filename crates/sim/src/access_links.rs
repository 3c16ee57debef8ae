//! Which access links a summary reports, and which need no queue.

use paceline_path::{LinkModel, Queue, RateModel};
use paceline_scenario::link::AccessTable;
use paceline_scenario::model::{Model, Path, QueueReporting};

/// Sets which access links the summary reports, in addition to those with a configured queue. A default queue that
/// cannot fill is replaced by one without a limit, which costs nothing: at a link no slower than what feeds it, and at
/// a sender that waits while its link is full (backpressure).
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
            // The sender feeds its own access link.
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

/// Whether one link may emit packets faster than the next can send them. Behind a link of the same rate, a packet waits
/// no longer than a larger one ahead of it takes.
fn outruns(feed: &LinkModel, next: &LinkModel) -> bool {
    !feed.is_steady()
        || match (&feed.rate, &next.rate) {
            // A packet's end is rounded down to whole nanoseconds, so its successor never arrives too early at the same
            // rate.
            (RateModel::Constant(feed_rate), RateModel::Constant(rate)) => rate < feed_rate,
            _ => next.rate.peak() <= feed.rate.peak(),
        }
}

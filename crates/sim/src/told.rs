//! Which hosts' own links a summary tells of, and which need no account of their queue.

use crate::graph::Path;
use crate::model::{Model, Told};
use crate::scenario::link::AccessTable;
use paceline_path::Queue;

/// Which hosts' own links are told of, beside those whose queue was given. A default queue that cannot fill is made one without
/// a limit, which costs nothing: that of a link faster than what feeds it, and that of a sender which waits while its link
/// is full.
pub fn of_access(model: &mut Model, paths: &[Path], access: &AccessTable) {
    let mut told: Vec<Told> = model.links.iter().map(|link| link.told).collect();
    let peak = |arc: usize| model.links[arc].model.rate.peak();
    for (flow, (there, _)) in model.flows.iter().zip(paths) {
        let slowest = model.slowest_link(there).map(|link| link.model.rate.peak());
        for (place, &arc) in there.iter().enumerate() {
            let link = &model.links[arc];
            if !link.is_access() || told[arc] == Told::Always {
                continue;
            }
            let slow = slowest.is_some_and(|slowest| peak(arc) <= slowest);
            let may_fill = match place.checked_sub(1) {
                // the sender's own
                None => flow.transport.name() == "udp" || access.backpressure != Some(true),
                Some(before) => {
                    let feed = &model.links[there[before]];
                    feed.cell.is_some() || !feed.model.is_steady() || peak(arc) <= feed.model.rate.peak()
                }
            };
            let limited = !matches!(link.model.queue, Queue::Unlimited);
            let own = if slow {
                Told::IfAny
            } else if may_fill && limited {
                Told::IfLong
            } else {
                Told::Never
            };
            told[arc] = told[arc].max(own);
        }
    }
    for (link, told) in model.links.iter_mut().zip(told) {
        link.told = told;
        if link.is_access() && told == Told::Never {
            link.model.queue = Queue::Unlimited;
        }
    }
}

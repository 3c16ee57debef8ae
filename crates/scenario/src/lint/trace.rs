//! Warnings about rate traces far above what the queue before them holds.

use super::Warnings;
use crate::error::join;
use crate::keys::link::{BackwardTable, forward};
use crate::keys::queue::Queue;
use crate::keys::values::Limit;
use crate::model::Model;
use paceline_units::Span;

/// A queue that holds less than this at its link's rate runs empty whenever its flows are late by as much, which hosts
/// and windows that open in steps cause.
const MIN_QUEUE: Span = Span::from_millis(3);
/// Packet size, in bits.
const PACKET: f64 = 1500.0 * 8.0;

impl Warnings<'_> {
    /// Checks that the queues of links with traces hold more than a moment of traffic.
    pub(super) fn traces(&mut self, model: &Model) {
        let file = self.file;
        for (name, link) in &file.link {
            let key = join("link", name);
            let ahead = forward(link);
            let back = link
                .backward
                .as_deref()
                .filter(|back| back.queue != ahead.queue || back.rate_trace != ahead.rate_trace);
            let ways: [(&str, String, Option<&BackwardTable>); 2] =
                [("forward", key.clone(), Some(&ahead)), ("backward", join(&key, "backward"), back)];
            for (direction, key, way) in ways {
                let Some(BackwardTable { rate_trace: Some(_), queue: Some(Queue::Droptail { limit, .. }), .. }) = way
                else {
                    continue;
                };
                let Limit::Packets(packets) = limit else { continue };
                let Some(link) = model.links.iter().find(|link| link.link == *name && link.direction == direction)
                else {
                    continue;
                };
                let mean = link.model.rate.nominal();
                let holds = f64::from(*packets) * PACKET / mean.bps().max(1.0);
                if holds < MIN_QUEUE.as_secs_f64() {
                    let needed = (MIN_QUEUE.as_secs_f64() * 10.0 * mean.bps() / PACKET).ceil();
                    let problem = format!(
                        "{packets} packets are {:.1} ms of the trace, which carries {:.0} Mbit/s in the mean: flows will use a part of \
                         it; `limit = \"{needed:.0} packets\"` would be 30 ms",
                        holds * 1e3,
                        mean.bps() / 1e6
                    );
                    self.note(join(&join(&key, "queue"), "limit"), problem);
                }
            }
        }
    }
}

//! Phase effects (Floyd and Jacobson 1992), and how hosts avoid them.
//!
//! If nothing varies, the phases of the round trips settle whose packet finds the last place in a drop-tail queue.
//! Hosts here therefore delay each packet by up to its transmission time on the slowest link of its path
//! (docs/decisions/host-delay.md).

use crate::diagnostics::{RunResults, in_words};
use crate::host_delay::packet_times;
use crate::summary::Notice;
use paceline_apps::Application;
use paceline_control::WindowController as _;
use paceline_engine::DropReason;
use paceline_flow::Transport;
use paceline_path::{Loss, Queue, RateModel};
use paceline_scenario::model::{Delays, FlowModel, LinkDirection, Model, Path};
use paceline_scenario::values::HostDelay;
use paceline_units::{Size, Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum host delay of packets that do not follow acknowledgements: interrupts, scheduling.
const HOSTS: Span = Span::from_micros(100);

/// Sets the host delays of each flow's packets (docs/decisions/host-delay.md).
pub fn delay_at_hosts(model: &mut Model, paths: &[Path], delay: HostDelay) {
    let always = |span: Span| Arc::from([(Time::ZERO, span)]);
    // Computed once for all flows that differ only in their access links: a trace may have many steps, and a scenario
    // many flows.
    let mut known = BTreeMap::new();
    for (flow, (there, _)) in model.flows.iter_mut().zip(paths) {
        let (steps, max, of_hosts) = match delay {
            HostDelay::Within(span) => (always(span), span, span),
            HostDelay::PacketTimes(times) => {
                let wired = || there.iter().map(|&arc| &model.links[arc]).filter(|link| link.cell.is_none());
                let size = Size::from_bytes(u64::from(flow.transport.segment()) + u64::from(flow.transport.header()));
                let constant = |link: &&LinkDirection| matches!(link.model.rate, RateModel::Constant(_));
                let slowest = wired().filter(constant).map(|link| link.model.rate.nominal()).min();
                let varying: Vec<usize> = there.iter().copied().filter(|&arc| !constant(&&model.links[arc])).collect();
                let steps = known.entry((varying, slowest, size)).or_insert_with(|| {
                    let rates = wired().map(|link| &link.model.rate);
                    packet_times(rates, (times, size)).unwrap_or_else(|| always(HOSTS))
                });
                let max = if follows_acknowledgements(flow) { Span::from_secs(1) } else { HOSTS };
                (Arc::clone(steps), max, HOSTS)
            }
        };
        flow.sender_delay = Delays::new(Arc::clone(&steps), max);
        flow.receiver_delay = Delays::new(steps, of_hosts);
    }
}

/// Whether acknowledgements clock a flow's segments. Rate-based flows mix by themselves, and would count packets
/// delayed in their host as in flight, but not in their round-trip times.
fn follows_acknowledgements(flow: &FlowModel) -> bool {
    match &flow.transport {
        Transport::Quic { controller, .. } | Transport::Tcp { controller, .. } => !controller.needs().rate_clocked,
        _ => false,
    }
}

/// Nodes whose hosts keep packets in order within each flow, but not across flows: those that delay TCP's data and
/// serve several flows. No such flow may hold up another by packet times of its own slow link, nor lose its own delays
/// to the others'. Elsewhere the delays are so small that one order for all costs nothing and saves sorting.
pub fn hosts_apart(model: &Model) -> BTreeSet<usize> {
    let mut users = vec![0; model.nodes.len()];
    model.flows.iter().for_each(|flow| [flow.source, flow.sink].into_iter().for_each(|host| users[host] += 1));
    let delayed = |flow: &&FlowModel| follows_acknowledgements(flow) && flow.sender_delay.any();
    model.flows.iter().filter(delayed).map(|flow| flow.source).filter(|&host| users[host] > 1).collect()
}

/// More flows than this mix by themselves.
const MAX_FLOWS: usize = 20;
/// Round-trip times closer than this, as a share of the shorter one, keep flows in step for long.
const CLOSE: f64 = 0.2;
/// Minimum share of a link's bytes for flows to stay in step. With more bursty traffic of others, they mix
/// (docs/decisions/host-delay.md).
const MIN_SHARE: f64 = 0.9;

/// A link, and the traffic that passed it.
struct Shared<'a> {
    /// All bytes.
    passed: u64,
    /// Bytes of transfers and of constant-rate flows.
    in_step: u64,
    /// The transfers, with their round-trip times.
    transfers: Vec<(Span, &'a FlowModel)>,
}

/// Reports few TCP transfers with close round-trip times, the same in all runs, that had most of the traffic at an
/// overflowing drop-tail queue. Constant-rate flows do not mix others, and count with them.
pub fn phases_decide(model: &Model, paths: &[Path], results: &RunResults, notices: &mut Vec<Notice>) {
    let overflowed = results.links.iter().filter(|(id, report)| {
        let link = &model.links[*id];
        let drawn = link.model.loss.as_ref().is_some_and(|loss| !matches!(loss, Loss::Periodic(_)));
        let varies = drawn || link.model.delay_variation.is_some() || !link.model.variation_steps.is_empty();
        let drop_tail = matches!(link.model.queue, Queue::DropTail(_));
        drop_tail && !link.is_access() && !varies && report.drops[DropReason::Overflow] > 0
    });
    let mut links: BTreeMap<usize, Shared> = overflowed
        .map(|(id, report)| (*id, Shared { passed: report.departed_bytes.bytes(), in_step: 0, transfers: Vec::new() }))
        .collect();
    for ((flow, path), bytes) in model.flows.iter().zip(paths).zip(results.bytes) {
        let window = matches!(flow.transport, Transport::Quic { .. } | Transport::Tcp { .. });
        let transfer = window && matches!(flow.app, Application::Ftp(_));
        let constant = matches!((&flow.transport, &flow.app), (Transport::Udp(_), Application::Cbr(_)));
        let (Some(bytes), true) = (*bytes, transfer || constant) else { continue };
        for id in &path.0 {
            if let Some(shared) = links.get_mut(id) {
                shared.in_step += bytes;
                if transfer {
                    shared.transfers.push((model.propagation(path), flow));
                }
            }
        }
    }
    for (id, Shared { passed, in_step, mut transfers }) in links {
        let link = &model.links[id];
        transfers.sort_by_key(|&(rtt, _)| rtt);
        let close = |pair: &&[(Span, &FlowModel)]| {
            let fixed = !pair[0].1.rtt_drawn && !pair[1].1.rtt_drawn;
            fixed && pair[0].0 < pair[1].0 && pair[1].0 <= pair[0].0.mul_f64(1.0 + CLOSE)
        };
        let Some(pair) = transfers.windows(2).find(close) else { continue };
        if transfers.len() > MAX_FLOWS || (in_step as f64) < MIN_SHARE * passed as f64 {
            continue;
        }
        let mut names = vec![pair[0].1.name.as_str(), &pair[1].1.name];
        names.dedup();
        notices.push(Notice {
            kind: "phases-decide",
            text: format!(
                "Round trips of {} and {} ({}) share the drop-tail queue of `{}`: which of them loses, the phases of their \
                 packets decide, alike for all seeds, so intervals do not show it. Draw them anew for each run (`rtt = \
                 {{ uniform = [\"{}\", \"{}\"] }}`), or add background traffic in bursts.",
                pair[0].0,
                pair[1].0,
                in_words(&names),
                link.link,
                pair[0].0,
                pair[1].0,
            ),
            cases: None,
            of: None,
        });
    }
}

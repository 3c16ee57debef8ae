//! Estimates a run's cost beforehand: roughly the number of packets on each link, and the time that each takes.

use crate::expand::{ExpandError, routes};
use paceline_flow::Transport;
use paceline_path::RateModel;
use paceline_scenario::model::{FlowModel, Model};
use paceline_units::{Span, Time};

/// Core seconds per packet on a link, per packet's feedback and frames over RTP, and per frame on a cell's channel.
/// Measured on an Intel Xeon with the cases of the suites (`tests/cost.rs` checks them within a factor).
const LINK_S: f64 = 0.045e-6;
const RTP_S: f64 = 0.4e-6;
const CELL_S: f64 = 0.8e-6;

/// The share of a cell's data rate that remains after medium access, frame spaces and acknowledgements.
const OF_CELL: f64 = 0.5;

/// Estimates how many packets each flow sends in a run.
///
/// A flow without a rate limit fills the narrowest link of its path. Flows that demand more than a link's capacity
/// share it in proportion. How much controllers leave unused, above all because of losses, is not estimated.
///
/// # Errors
/// A flow whose ends are not connected.
pub fn packets(model: &Model) -> Result<Vec<f64>, ExpandError> {
    let paths = routes(model)?;
    // Arcs of a cell share its channel: they count as its first one.
    let shared = |arc: usize| model.links[arc].cell.map_or(arc, |cell| model.cells[cell].first_link);
    let capacity: Vec<f64> = (0..model.links.len()).map(|arc| capacity_bps(model, arc)).collect();
    let mut load = vec![0.0; model.links.len()];
    let mut wanted = Vec::with_capacity(model.flows.len());
    for (flow, (there, _)) in model.flows.iter().zip(&paths) {
        let narrowest = there.iter().map(|&arc| capacity[arc]).fold(f64::INFINITY, f64::min);
        let bps = flow.app.pace().map_or(narrowest, |(bps, _)| bps.min(narrowest)) * share_of_run(model, flow);
        there.iter().for_each(|&arc| load[shared(arc)] += bps);
        wanted.push(bps);
    }
    let sent = model.flows.iter().zip(&paths).zip(wanted).map(|((flow, (there, _)), bps)| {
        let left = there.iter().map(|&arc| capacity[arc] / load[shared(arc)]).fold(1.0, f64::min);
        let full = f64::from(flow.transport.segment());
        let payload = flow.app.pace().map_or(full, |(_, piece)| full.min(piece.bytes() as f64));
        bps * left * model.duration.as_secs_f64() / 8.0 / (payload + f64::from(flow.transport.header()))
    });
    Ok(sent.collect())
}

/// Estimates a run's core seconds, without recording.
///
/// # Errors
/// As [`packets`].
pub fn core_seconds(model: &Model) -> Result<f64, ExpandError> {
    let each = |arc: &usize| if model.links[*arc].cell.is_some() { CELL_S } else { LINK_S };
    let paths = routes(model)?;
    let mut seconds = 0.0;
    for ((flow, (there, back)), sent) in model.flows.iter().zip(&paths).zip(packets(model)?) {
        let media = if matches!(flow.transport, Transport::Rtp { .. }) { RTP_S } else { 0.0 };
        // Two packets have one acknowledgement.
        let links = there.iter().map(each).sum::<f64>() + back.iter().map(each).sum::<f64>() / 2.0;
        seconds += sent * (media + links);
    }
    Ok(seconds)
}

/// The mean rate over the run, in bit/s.
fn capacity_bps(model: &Model, arc: usize) -> f64 {
    let link = &model.links[arc];
    if let Some(cell) = link.cell {
        let stations = &model.cells[cell].model.stations;
        return OF_CELL * stations.iter().map(|station| station.rate.bps()).sum::<f64>() / stations.len() as f64;
    }
    let policed = link.model.policer.as_ref().map_or(f64::INFINITY, |policer| policer.rate.bps());
    mean_bps(&link.model.rate, model.duration).min(policed)
}

fn mean_bps(rate: &RateModel, lasts: Span) -> f64 {
    let end = Time::ZERO + lasts;
    let steps = rate.steps();
    let ends = steps.iter().skip(1).map(|step| step.0).chain([Time::NEVER]);
    let bits =
        steps.iter().zip(ends).map(|(&(from, rate), to)| rate.bps() * to.min(end).since(from.min(end)).as_secs_f64());
    bits.sum::<f64>() / lasts.as_secs_f64()
}

/// The share of the run during which a flow can send.
fn share_of_run(model: &Model, flow: &FlowModel) -> f64 {
    let end = Time::ZERO + model.duration;
    flow.stop.min(end).since(flow.start.min(end)).as_secs_f64() / model.duration.as_secs_f64()
}

//! Builds the summary from the state at the end of a run and a copy from the end of its warm-up.

use crate::arrivals::ArrivalReport;
use crate::build::{Built, Node};
use crate::diagnostics::{RunResults, notices};
use crate::e_model::{best_rating, opinion};
use crate::gauges::reading;
use crate::host::Host;
use crate::run::{Places, ends, in_flight};
use crate::summary::{
    ClassSummary, EngineSummary, FlowSummary, GroupSummary, InterfaceSummary, LinkFlowSummary, QueueSummary,
    StreamSummary, Summary, jain,
};
use paceline_apps::player::StreamReport;
use paceline_apps::playout::PlayoutReport;
use paceline_apps::share;
use paceline_apps::stream::StreamModel;
use paceline_apps::viewer::ViewReport;
use paceline_engine::{DropReason, Drops};
use paceline_flow::{ReceiverStats, SenderStats};
use paceline_path::wifi::InterfaceReport;
use paceline_path::{ClassCounts, LinkReport};
use paceline_scenario::model::{FlowModel, LinkDirection, Model, QueueReporting};
use paceline_units::{Offset, Span, Time};
use std::collections::BTreeMap;

/// The counters of all endpoints at the end of the warm-up.
#[derive(Debug)]
pub struct Before {
    at: Time,
    flows: Vec<(SenderStats, ReceiverStats)>,
}

impl Before {
    /// Copies the counters at `now`, and starts measuring.
    pub fn take(model: &Model, built: &mut Built, now: Time) -> Before {
        account(built, now);
        for element in built.engine.elements_mut() {
            if let Node::Host(host) = element {
                host.sources.iter_mut().for_each(|source| source.measure_from(now));
                host.sinks.iter_mut().for_each(|sink| sink.measure_from(now, Offset::at(now)));
            }
        }
        let counts = |flow| {
            let ends = ends(model, built, flow);
            (ends.source.sender.stats().clone(), *ends.sink.receiver.stats())
        };
        Before { at: now, flows: (0..model.flows.len()).map(counts).collect() }
    }
}

/// Advances the senders' integrals to `now`; those of finished senders ended with the last acknowledgement.
fn account(built: &mut Built, now: Time) {
    for element in built.engine.elements_mut() {
        if let Node::Host(host) = element {
            let running = host.sources.iter_mut().filter(|source| source.has_started() && !source.is_done());
            running.for_each(|source| source.sender.account(now));
        }
    }
}

/// Counts the bins that end with the run: events at its very end are not simulated, so the meters were not called for
/// them.
fn last_bins(built: &mut Built, end: Time) {
    for element in built.engine.elements_mut() {
        if let Node::Host(Host { meter: Some(meter), sources, sinks, .. }) = element
            && meter.next_sample() <= end
        {
            meter.sample(sources, sinks);
        }
    }
}

/// The summary of a run that ended at `end`.
pub fn summary(model: &Model, built: &mut Built, before: &Before, places: &Places, end: Time) -> Summary {
    account(built, end);
    last_bins(built, end);
    let (flows, active): (Vec<FlowSummary>, Vec<Span>) =
        (0..model.flows.len()).map(|flow| flow_summary(model, built, before, flow, end)).unzip();
    let in_groups = flows.iter().zip(&active).filter(|(_, active)| **active > Span::ZERO).map(|(flow, _)| flow);
    let streams: Vec<StreamSummary> =
        (0..model.flows.len()).filter_map(|flow| stream_summary(model, built, flow, end)).collect();
    let totals = built.engine.network.totals();
    Summary {
        name: model.name.clone(),
        seed: model.seed,
        duration_s: model.duration.as_secs_f64(),
        warmup_s: model.warmup.as_secs_f64(),
        end_s: end.as_secs_f64(),
        measured_s: end.since(before.at).as_secs_f64(),
        engine: EngineSummary {
            window_s: built.engine.window().as_secs_f64(),
            elements: built.engine.elements().len(),
            packets_sent: totals.sent,
            packets_delivered: totals.delivered,
            packets_dropped: totals.dropped.total(),
            drops: by_reason(&totals.dropped),
            packets_duplicated: totals.duplicated,
            packets_in_flight: in_flight(built),
        },
        queues: queues(model, places),
        link_flows: link_flows(model, built, places),
        interfaces: interfaces(model, places),
        groups: groups(
            in_groups.map(|flow| (flow.group.as_str(), flow.goodput_bps, flow.bytes_delivered)),
            model.friendliness_to.as_deref(),
        ),
        notices: notices(
            model,
            &built.plan.paths,
            &RunResults {
                links: &places.links,
                bytes: &arrived(model, built, before, end),
                flows: &flows,
                gauge: &|flow, name| reading(name, |to| ends(model, built, flow).source.gauges(to)),
                streams: &streams,
                end,
            },
        ),
        flows,
        streams,
    }
}

/// A flow's row, and the time for which it was active.
fn flow_summary(model: &Model, built: &Built, before: &Before, index: usize, end: Time) -> (FlowSummary, Span) {
    let flow = &model.flows[index];
    let ends = ends(model, built, index);
    let (sent_before, received_before) = &before.flows[index];
    let sent = ends.source.sender.stats().since(sent_before);
    let received = ends.sink.receiver.stats().since(received_before);
    let dropped = built.engine.network.drops(index);
    let lost = dropped.data;
    // Packets in flight at the stop still arrive, and no rate may count them without the time that they took. A
    // finished flow's rates do not count the silence after its last arrival.
    let stop = if ends.source.is_finished() { Time::ZERO } else { flow.stop };
    let until = stop.max(received.last).min(end);
    let active = until.since(flow.start.max(before.at));
    let per_second = |bytes: u64| if active > Span::ZERO { bytes as f64 * 8.0 / active.as_secs_f64() } else { 0.0 };
    let of_sent = |packets: u64| (sent.packets_sent > 0).then(|| packets as f64 / sent.packets_sent as f64);
    let propagation = model.propagation(&built.plan.paths[index]);
    let transfers = ends.sink.transfers().unwrap_or_else(|| ends.source.transfers());
    // After its stop, a flow shows no more pictures.
    let view = ends.sink.view_report(end.min(flow.stop));
    let view = view.as_ref();
    let playout = view.and_then(|view| view.playout.as_ref());
    let feedback = ends.sink.feedback_sent();
    let arrived = ends.sink.arrival_report();
    let voice = flow.voice.zip(arrived).zip(of_sent(lost));
    let voice = voice.and_then(|((voice, arrived), lost)| best_rating(&voice, arrived, lost));
    let frames_sent = ends.source.frames().or(flow.has_frames().then_some(sent.frames));
    let frames_reset = (flow.transport.name() == "quic" && flow.has_frames()).then_some(sent.frames_reset);
    let frames_dropped = (flow.relay.is_some() || ends.source.may_discard_frames()).then_some(sent.frames_dropped);
    // Pictures freeze; sound and game moves do not.
    let pictures = view.filter(|_| ends.source.has_pictures());
    let seconds = |span: Option<Span>| span.map(Span::as_secs_f64);
    let delay = |delay: Option<Offset>| delay.map(Offset::as_secs_f64);
    let bounds = arrived.and_then(ArrivalReport::delay_bounds);
    let gap = arrived.and_then(ArrivalReport::gap_moments);
    // The final silence of a flow that was not finished is a gap that no arrival ended.
    let silence = until.since(received.last.max(flow.start).max(before.at));
    let widest = arrived.map(|arrived| arrived.widest_gap().unwrap_or(Span::ZERO).max(silence));
    let row = FlowSummary {
        flow: flow.name.clone(),
        instance: flow.instance,
        group: flow.group.clone(),
        cc: flow.scheme.clone(),
        app: flow.carries.to_owned(),
        profile: flow.profile.to_owned(),
        from: flow.ends.0.clone(),
        to: flow.ends.1.clone(),
        propagation_rtt_s: propagation.as_secs_f64(),
        start_s: flow.start.as_secs_f64(),
        goodput_bps: per_second(received.bytes),
        throughput_bps: per_second(received.wire_bytes),
        send_rate_bps: per_second(sent.bytes_sent()),
        send_rate_cov: ends.variation.0,
        goodput_cov: ends.variation.1,
        startup_s: ends.started_up.map(|at| at.since(flow.start).as_secs_f64()),
        packets_sent: sent.packets_sent,
        packets_delivered: received.packets,
        packets_lost: lost,
        acks_lost: dropped.acks,
        packets_retransmitted: sent.retransmitted,
        loss_rate: of_sent(lost),
        receiving_ratio: of_sent(received.packets),
        loss_event_rate: sent.mean_loss_event_rate(),
        timeouts: sent.timeouts,
        timeout_series: sent.first_timeouts,
        fast_retransmits: sent.fast_retransmits,
        window_cuts: sent.window_cuts,
        ecn_marks: received.marks,
        rtt_mean_s: seconds(sent.mean_rtt()),
        rtt_min_s: seconds(sent.rtt_min()),
        rtt_max_s: (sent.rtt_count > 0).then(|| sent.rtt_max.as_secs_f64()),
        rtt_p50_s: seconds(sent.rtt_quantile(0.5)),
        rtt_p95_s: seconds(sent.rtt_quantile(0.95)),
        rtt_p99_s: seconds(sent.rtt_quantile(0.99)),
        cwnd_mean_packets: sent.mean_window(),
        cwnd_max_packets: (sent.window_max > 0.0).then_some(sent.window_max),
        timeout_mean_s: seconds(sent.mean_timeout()),
        base_rtt_mean_s: sent.mean_base_rtt(),
        bytes_delivered: received.bytes,
        transfers_started: transfers.started,
        transfers_completed: transfers.completed,
        transfers_unfinished: transfers.unfinished,
        transfer_time_mean_s: seconds(transfers.mean_time),
        transfer_time_p50_s: seconds(transfers.median_time),
        transfer_time_p95_s: seconds(transfers.p95_time),
        transfer_time_p99_s: seconds(transfers.p99_time),
        frames_sent,
        frames_complete: view.map(|view| view.complete),
        complete_share: view.zip(frames_sent).and_then(|(view, sent)| share(view.complete, sent)),
        frame_delay_mean_s: delay(view.and_then(ViewReport::mean_delay)),
        frame_delay_p50_s: delay(view.and_then(|view| view.delay(0.5))),
        frame_delay_p95_s: delay(view.and_then(|view| view.delay(0.95))),
        frame_delay_p99_s: delay(view.and_then(|view| view.delay(0.99))),
        frame_delay_max_s: delay(view.and_then(|view| view.delay(1.0))),
        freezes: pictures.map(|view| view.freezes),
        freeze_s: seconds(pictures.map(|view| view.frozen)),
        frames_reset,
        reset_share: frames_reset.zip(frames_sent).and_then(|(reset, sent)| share(reset, sent)),
        frames_dropped,
        dropped_share: frames_dropped.zip(frames_sent).and_then(|(dropped, sent)| share(dropped, sent)),
        frames_skipped: ends.source.frames_skipped(),
        frames_shown: playout.map(|playout| playout.shown),
        frames_late: playout.map(|playout| playout.late),
        frames_undecodable: playout.map(|playout| playout.undecodable),
        key_frames: playout.map(|playout| playout.keys),
        jitter_buffer_delay_s: playout.and_then(PlayoutReport::mean_buffered).map(Span::as_secs_f64),
        nacks: feedback.map(|feedback| feedback.nacks),
        plis: feedback.map(|feedback| feedback.plis),
        feedback_share: feedback.and_then(|feedback| share(feedback.bytes, feedback.bytes + received.wire_bytes)),
        owd_mean_s: seconds(arrived.and_then(ArrivalReport::mean_delay)),
        owd_min_s: seconds(bounds.map(|(min, _)| min)),
        owd_max_s: seconds(bounds.map(|(_, max)| max)),
        owd_p50_s: seconds(arrived.and_then(|arrived| arrived.delay(0.5))),
        owd_p95_s: seconds(arrived.and_then(|arrived| arrived.delay(0.95))),
        owd_p99_s: seconds(arrived.and_then(|arrived| arrived.delay(0.99))),
        interarrival_mean_s: gap.map(|(mean, _)| mean),
        interarrival_sd_s: gap.map(|(_, deviation)| deviation),
        interarrival_p99_s: seconds(arrived.and_then(|arrived| arrived.gap(0.99))),
        interarrival_max_s: seconds(widest.filter(|&gap| gap > Span::ZERO)),
        jitter_s: arrived.and_then(ArrivalReport::mean_jitter),
        voice_rating: voice,
        voice_mos: voice.map(opinion),
    };
    (row, active)
}

/// Bytes on the wire that arrived in the measured interval, for each flow; `None` if it was not active then.
fn arrived(model: &Model, built: &Built, before: &Before, end: Time) -> Vec<Option<u64>> {
    let bytes = |(i, flow): (usize, &FlowModel)| {
        let arrived = ends(model, built, i).sink.receiver.stats().since(&before.flows[i].1).wire_bytes;
        (flow.start < end && flow.stop > before.at).then_some(arrived)
    };
    model.flows.iter().enumerate().map(bytes).collect()
}

fn stream_summary(model: &Model, built: &Built, index: usize, end: Time) -> Option<StreamSummary> {
    let FlowModel { name, instance, stream, .. } = &model.flows[index];
    let report = ends(model, built, index).sink.stream_report(end)?;
    Some(StreamSummary::of((name, *instance), stream.as_ref()?, &report))
}

impl StreamSummary {
    /// Results of a stream of the flow with this name and instance.
    #[must_use]
    pub fn of((flow, instance): (&str, u32), stream: &StreamModel, report: &StreamReport) -> StreamSummary {
        let total = stream.total().bytes();
        StreamSummary {
            flow: flow.to_owned(),
            instance,
            began: report.fill.is_some(),
            fill_s: report.fill.map(Span::as_secs_f64),
            late_packets: report.late_packets,
            due_packets: report.due_packets,
            media_packets: report.media_packets,
            late_share: report.late_share,
            undelivered_share: 1.0 - report.delivered.bytes().min(total) as f64 / total.max(1) as f64,
            stalls: report.stalls,
            stall_s: report.stalled.as_secs_f64(),
            stall_share: report.stall_share,
            discarded_packets: report.discarded_packets,
            completed: report.completed,
            duration_s: report.duration.as_secs_f64(),
            throughput_bps: report.throughput.bps(),
        }
    }
}

/// The queues of links, then those of cells.
fn queues(model: &Model, places: &Places) -> Vec<QueueSummary> {
    let reported = places.links.iter().filter(|(arc, report)| match model.links[*arc].reporting {
        QueueReporting::Never => false,
        QueueReporting::IfLong => report.max_packets > QueueReporting::BURST || report.drops.total() > 0,
        QueueReporting::IfAny => report.max_packets > 0 || report.drops.total() > 0,
        QueueReporting::Always => true,
    });
    let links = reported.map(|(arc, report)| QueueSummary::of(&model.links[*arc], report));
    let cells = places.cells.iter().flat_map(|(cell, reports)| {
        let named = move |(i, report): (usize, &InterfaceReport)| {
            QueueSummary::named(model.cells[*cell].queue_name(i), &report.queue)
        };
        reports.iter().enumerate().filter(|(i, _)| model.cells[*cell].is_reported(*i)).map(named)
    });
    links.chain(cells).collect()
}

/// Each flow's part of the links that have `per_flow`.
fn link_flows(model: &Model, built: &Built, places: &Places) -> Vec<LinkFlowSummary> {
    let per_flow = places.links.iter().filter(|(arc, _)| model.links[*arc].model.per_flow);
    let all = per_flow.flat_map(|(arc, report)| {
        let crosses = |(_, (there, back)): &(_, &(Vec<usize>, Vec<usize>))| there.contains(arc) || back.contains(arc);
        let flows = model.flows.iter().zip(&built.plan.paths).enumerate().map(|(i, (flow, path))| ((i, flow), path));
        flows.filter(crosses).map(move |((i, flow), _)| {
            // A flow without arrivals at the link has no entry.
            let own = report.flows.get(i).copied().unwrap_or_default();
            let share = |part: f64, of: f64| (of > 0.0).then(|| part / of);
            LinkFlowSummary {
                link: model.links[*arc].link.clone(),
                direction: model.links[*arc].direction,
                flow: flow.name.clone(),
                instance: flow.instance,
                mean_packets: own.mean_packets,
                queue_share: share(own.mean_packets, report.mean_packets),
                arrivals: own.arrivals,
                departures: own.departures,
                departed_bytes: own.departed_bytes.bytes(),
                drop_share: share(own.drops.total() as f64, own.arrivals as f64),
                drops: by_reason(&own.drops),
                marks: own.marks,
            }
        })
    });
    all.collect()
}

/// The interfaces of cells.
fn interfaces(model: &Model, places: &Places) -> Vec<InterfaceSummary> {
    let all = places.cells.iter().flat_map(|(cell, reports)| {
        let cell = &model.cells[*cell];
        let named = cell.names().into_iter().zip(reports).enumerate().filter(|(i, _)| cell.is_reported(*i));
        named.map(move |(_, (interface, report))| (cell, interface, report))
    });
    all.map(|(cell, interface, InterfaceReport { queue, counts })| {
        let of_attempts = |count: u64| (counts.attempts > 0).then(|| count as f64 / counts.attempts as f64);
        InterfaceSummary {
            cell: cell.name.clone(),
            interface,
            attempts: counts.attempts,
            retries: counts.retries,
            collisions: counts.collisions,
            frame_errors: counts.frame_errors,
            given_up: queue.drops[DropReason::Retries],
            collision_rate: of_attempts(counts.collisions),
            airtime_s: counts.airtime.as_secs_f64(),
            airtime_share: queue.utilisation.0,
        }
    })
    .collect()
}

impl QueueSummary {
    /// The report of one direction of a link.
    #[must_use]
    pub fn of(link: &LinkDirection, report: &LinkReport) -> QueueSummary {
        QueueSummary::named((link.link.clone(), link.direction), report)
    }

    fn named((link, direction): (String, &'static str), report: &LinkReport) -> QueueSummary {
        QueueSummary {
            link,
            direction,
            mean_packets: report.mean_packets,
            sd_packets: report.sd_packets,
            mean_bytes: report.mean_bytes,
            sd_bytes: report.sd_bytes,
            max_packets: u64::from(report.max_packets),
            occupancy: (0..).zip(report.occupancy.into_iter().flatten()).collect(),
            utilisation: report.utilisation.0,
            arrivals: report.arrivals,
            departures: report.departures,
            departed_bytes: report.departed_bytes.bytes(),
            drops: by_reason(&report.drops),
            marks: report.marks,
            l4s: report.classes.map(|[l4s, _]| class(l4s)),
            classic: report.classes.map(|[_, classic]| class(classic)),
        }
    }
}

fn class(counts: ClassCounts) -> ClassSummary {
    let ClassCounts { departures, departed_bytes, marks, drops, waited } = counts;
    let delay_mean_s = (departures > 0).then(|| waited as f64 / departures as f64 * 1e-9);
    ClassSummary { departures, departed_bytes, drops, marks, delay_mean_s }
}

fn by_reason(drops: &Drops) -> BTreeMap<&'static str, u64> {
    DropReason::ALL.into_iter().map(|reason| (reason.name(), drops[reason])).collect()
}

/// The groups of active flows, from each flow's group, goodput and delivered bytes. `reference` names the group with
/// whose mean goodput the others' are compared.
#[must_use]
pub fn groups<'a>(flows: impl IntoIterator<Item = (&'a str, f64, u64)>, reference: Option<&str>) -> Vec<GroupSummary> {
    let mut groups: BTreeMap<&str, (Vec<f64>, u64)> = BTreeMap::new();
    for (group, goodput_bps, delivered) in flows {
        let (goodputs, bytes) = groups.entry(group).or_default();
        goodputs.push(goodput_bps);
        *bytes += delivered;
    }
    let mean = |goodputs: &[f64]| goodputs.iter().sum::<f64>() / goodputs.len() as f64;
    let all: u64 = groups.values().map(|(_, bytes)| bytes).sum();
    let base =
        reference.and_then(|name| groups.get(name)).map(|(goodputs, _)| mean(goodputs)).filter(|&base| base > 0.0);
    let group = |(group, (goodputs, bytes)): (&&str, &(Vec<f64>, u64))| {
        let average = mean(goodputs);
        let square = goodputs.iter().map(|x| (x - average) * (x - average)).sum::<f64>() / goodputs.len() as f64;
        GroupSummary {
            group: (*group).to_owned(),
            flows: goodputs.len() as u64,
            jain: jain(goodputs),
            goodput_bps: goodputs.iter().sum(),
            flow_goodput_mean_bps: average,
            flow_goodput_sd_bps: square.sqrt(),
            share: (all > 0).then(|| *bytes as f64 / all as f64),
            friendliness: base.map(|base| average / base),
        }
    };
    groups.iter().map(group).collect()
}

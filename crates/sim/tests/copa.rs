//! What Copa's paper says of its equilibrium (NSDI 2018, section 3), and what it claims beside others.
//!
//! Flows whose 1/delta add up to A, behind a path that holds much more than A segments: the queue goes from none to 2.5 A segments and
//! back within five round trips. So its mean is 1.25 A, with delta = 0.5 that is 2.5 segments a flow.

use super::read;
use paceline_sim::{Recording, RunOptions, RunOutput, Series, expand, run, simulate};
use paceline_units::Span;

/// 60 s, of which the first 20 do not count, each millisecond of the others recorded.
fn outcome(rate: u32, rtt_ms: u32, limit: u32, flows: &str, profile: &str) -> RunOutput {
    let text = format!(
        "duration = \"60 s\"\nwarmup = \"20 s\"\nprofile = \"{profile}\"\n[link.bottleneck]\nrate = \"{rate} Mbit/s\"\n\
         delay = \"{} ms\"\nqueue = {{ limit = \"{limit} packets\" }}\n{flows}",
        rtt_ms / 2
    );
    let scenario = read::scenario(&text);
    let recording = Recording::of(&["cwnd", "queue"], Span::from_millis(1)).unwrap();
    run(&expand(&scenario, 1).unwrap(), &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

/// So many flows, one a second.
fn copas(count: usize, params: &str) -> String {
    (0..count).map(|i| format!("[flow.f{i}]\ncc = \"copa\"\nstart = \"{i} s\"\nparams = {{ {params} }}\n")).collect()
}

/// From 20 s on.
fn column<'a>(series: &'a Series, name: &str) -> &'a [f64] {
    &series.columns.iter().find(|(column, _)| column.as_ref() == name).unwrap().1[20_000..]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The queue of data.
fn queue(output: &RunOutput) -> &[f64] {
    let tables = output.series.iter().filter(|series| series.table == "queue");
    tables.map(|series| column(series, "packets")).max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap()
}

/// The share of time that flows compete in, over all of them.
fn competing(output: &RunOutput, flows: usize) -> f64 {
    let tables = output.series.iter().filter(|series| series.table == "cwnd");
    let of = |series: &Series| series.columns.iter().any(|(name, _)| name.as_ref() == "competing");
    let tables: Vec<f64> = tables.filter(|s| of(s)).map(|s| mean(column(s, "competing"))).collect();
    assert_eq!(tables.len(), flows);
    mean(&tables)
}

fn of_all(sorted: &[f64], share: f64) -> f64 {
    sorted[(share * (sorted.len() - 1) as f64) as usize]
}

/// Seconds from one rise of the queue to the next.
fn period(queue: &[f64]) -> f64 {
    let mut sorted = queue.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (of_all(&sorted, 0.2), of_all(&sorted, 0.8));
    let (mut rises, mut below) = (0, true);
    for &now in queue {
        if below && now >= high {
            (rises, below) = (rises + 1, false);
        } else if now <= low {
            below = true;
        }
    }
    queue.len() as f64 / 1000.0 / f64::from(rises)
}

/// Of paths that hold 77, 100, 200 and 417 segments: its mean within a fifth of 2.5 segments a flow, its greatest within as much of
/// 5, empty (a segment is being sent) at the least, and five round trips long.
#[test]
fn section_3_the_queue_is_between_none_and_5_segments_a_flow_within_5_round_trips() {
    for (rate, rtt_ms) in [(46, 20), (24, 50), (48, 50), (100, 50)] {
        for flows in [2, 5] {
            let output = outcome(rate, rtt_ms, 2000, &copas(flows, "competitive = false"), "rfc");
            let queue = queue(&output);
            let mut sorted = queue.to_vec();
            sorted.sort_by(f64::total_cmp);
            let (average, most) = (mean(queue) / flows as f64, of_all(&sorted, 0.99) / flows as f64);
            let name = format!("{flows} flows at {rate} Mbit/s, {rtt_ms} ms");
            assert!((2.0..3.0).contains(&average), "{name}: mean {average} segments a flow");
            assert!((4.0..6.0).contains(&most), "{name}: at most {most} segments a flow");
            assert!(of_all(&sorted, 0.02) <= 1.0 + 0.2 * flows as f64, "{name}: at least {}", of_all(&sorted, 0.02));
            let trips = period(queue) / (f64::from(rtt_ms) / 1e3);
            assert!((4.5..5.5).contains(&trips), "{name}: {trips} round trips");
            let rates: Vec<f64> = output.summary.flows.iter().map(|flow| flow.goodput_bps).collect();
            let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
            assert!(sum * sum / (flows as f64 * squares) > 0.999, "{name}: {rates:?}");
        }
    }
}

/// 1/delta of 10 in place of 2: five times the queue.
#[test]
fn section_3_the_queue_goes_with_one_over_delta() {
    let of = |delta| {
        let output = outcome(100, 50, 2000, &copas(2, &format!("competitive = false, delta = {delta}")), "rfc");
        mean(queue(&output))
    };
    let ratio = of(0.1) / of(0.5);
    assert!((4.0..6.0).contains(&ratio), "{ratio}");
}

/// Section 2.2: the queue empties each five round trips where there are Copa flows alone, so none of them competes. By a tenth of
/// the spread and five round trips alone, as section 2.2 has it, they do for more than a twentieth of the time on the same paths.
#[test]
fn section_2_2_copa_alone_does_not_compete() {
    for (rate, rtt_ms, limit, flows) in [(24, 50, 100, 1), (24, 50, 100, 5), (48, 50, 200, 5), (46, 20, 77, 2)] {
        for profile in ["rfc", "linux"] {
            let output = outcome(rate, rtt_ms, limit, &copas(flows, ""), profile);
            let share = competing(&output, flows);
            assert!(share < 0.03, "{flows} at {rate} Mbit/s, {rtt_ms} ms under {profile}: {share}");
            let used: f64 = output.summary.flows.iter().map(|flow| flow.throughput_bps).sum();
            assert!(used > 0.98e6 * f64::from(rate), "{used}");
        }
        let letter = outcome(rate, rtt_ms, limit, &copas(flows, "whole_segments = false, empties_within = 5"), "rfc");
        let share = competing(&letter, flows);
        assert!(share > 0.05, "{flows} at {rate} Mbit/s, {rtt_ms} ms to the letter: {share}");
    }
}

/// Nor behind fifty bandwidth-delay products, where no loss would end it. Within the five round trips of section 2.2, as long as the
/// queue's own sawtooth, some flows miss the one instant at which it is empty, and the queue grows to what the buffer holds.
#[test]
fn section_2_2_copa_alone_does_not_compete_behind_a_deep_buffer() {
    let mean_queue = |later_ms: u32, params: &str| {
        let flow = |i: u32, start_ms: u32| {
            format!("[flow.f{i}]\ncc = \"copa\"\nstart = \"{start_ms} ms\"\nparams = {{ {params} }}\n")
        };
        mean(queue(&outcome(40, 20, 3333, &(flow(0, 0) + &flow(1, later_ms)), "rfc")))
    };
    let starts = [1000, 1003, 1011];
    for start in starts {
        let found = mean_queue(start, "");
        assert!((4.0..6.0).contains(&found), "the second from {start} ms on: {found} segments");
    }
    let within_five = starts.map(|start| mean_queue(start, "empties_within = 5"));
    assert!(within_five.iter().all(|found| *found > 50.0), "{within_five:?}");
}

/// Whether the notice is given, and the mean queue in packets, of flows that begin within a second, behind 2000 packets.
fn alone(flows: u32, (rate, rtt_ms): (u32, u32), seed: u64, more: &str) -> (bool, f64) {
    let text = format!(
        "duration = \"40 s\"\nwarmup = \"5 s\"\n[link.bottleneck]\nrate = \"{rate} Mbit/s\"\ndelay = \"{} ms\"\n\
         queue = {{ limit = \"2000 packets\" }}\n\
         [flow.c]\ncc = \"copa\"\ncount = {flows}\nstart = {{ uniform = [\"0 s\", \"1 s\"] }}\n{more}\n",
        rtt_ms / 2
    );
    let summary = simulate(&read::scenario(&text), seed, &RunOptions::default()).unwrap().summary;
    let queue = summary.queues.iter().find(|queue| queue.link == "bottleneck" && queue.direction == "forward").unwrap();
    (summary.notices.iter().any(|notice| notice.kind == "competes-alone"), queue.mean_packets)
}

/// The paths of docs/controllers/copa.md: with two modes the queue is either the sawtooth of section 3, without the notice, or many times as
/// long, with it; in the default mode alone it is the former.
#[test]
fn a_notice_tells_of_flows_that_compete_by_mistake() {
    let mut noticed = 0;
    for (flows, path) in
        [(2, (40, 20)), (3, (20, 50)), (2, (10, 20)), (2, (5, 40)), (5, (10, 20)), (1, (2, 20)), (8, (20, 40))]
    {
        let sawtooth = 2.5 * 2.0 * f64::from(flows);
        for seed in 1..=3 {
            let (notice, queue) = alone(flows, path, seed, "");
            assert!(
                if notice { queue > 2.0 * sawtooth } else { queue < sawtooth },
                "{flows} {path:?}: {notice} {queue}"
            );
            noticed += u32::from(notice);
            let (notice, queue) = alone(flows, path, seed, "params = { competitive = false }");
            assert!(!notice && queue < sawtooth, "{flows} {path:?} in one mode: {notice} {queue}");
        }
    }
    assert!((5..16).contains(&noticed), "{noticed} of 21");
}

/// A flow that fills the queue is what the second mode is for, and slow start's queue is nobody's mistake.
#[test]
fn the_notice_is_silent_where_others_fill_the_queue() {
    let (notice, queue) = alone(5, (10, 20), 1, "[flow.other]\ncc = \"cubic\"");
    assert!(!notice && queue > 100.0, "{queue}");
    let text = "duration = \"5 s\"\n[link.bottleneck]\nrate = \"100 Mbit/s\"\ndelay = \"100 ms\"\n\
                queue = { limit = \"2000 packets\" }\n[flow.c]\ncc = \"copa\"\n";
    let summary = simulate(&read::scenario(text), 1, &RunOptions::default()).unwrap().summary;
    assert!(summary.queues.iter().any(|queue| queue.mean_packets > 100.0) && summary.notices.is_empty());
}

/// "Co-exists well with Cubic" (the abstract): behind one and two bandwidth-delay products each has a third at least. Without the
/// second mode Copa has less than a sixth.
#[test]
fn section_2_2_beside_buffer_fillers_it_competes_for_its_share() {
    for (rate, rtt_ms, limit) in [(24, 50, 100), (24, 50, 200), (46, 20, 77), (46, 20, 153), (100, 20, 167)] {
        for (other, profile) in [("cubic", "rfc"), ("newreno", "rfc"), ("cubic", "linux")] {
            let flows = |mode: &str| format!("{}[flow.other]\ncc = \"{other}\"\nstart = \"5 s\"\n", copas(1, mode));
            let share = |output: &RunOutput| output.summary.flows[0].throughput_bps / 1e6 / f64::from(rate);
            let output = outcome(rate, rtt_ms, limit, &flows(""), profile);
            let ours = share(&output);
            let name = format!("{other} under {profile} at {rate} Mbit/s, {limit} packets");
            assert!((0.33..0.67).contains(&ours), "{name}: {ours}");
            assert!(competing(&output, 1) > 0.6, "{name}: competes {}", competing(&output, 1));
            let alone = share(&outcome(rate, rtt_ms, limit, &flows("competitive = false"), profile));
            assert!(alone < 0.17, "{name}: {alone} in the default mode");
        }
    }
}

/// Losses that are not of congestion are not heeded in the default mode.
#[test]
fn random_loss_costs_it_what_is_lost() {
    for percent in [1, 2] {
        let loss = format!("loss = {{ kind = \"uniform\", rate = \"{percent} %\", on = \"data\" }}\n");
        let output = outcome(12, 50, 100, &format!("{loss}{}", copas(1, "")), "linux");
        let share = output.summary.flows[0].goodput_bps / 12e6;
        assert!(share > 0.9, "{share} of the link at {percent} %");
    }
}

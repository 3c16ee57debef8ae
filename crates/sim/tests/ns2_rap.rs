//! RAP under the profile `ns2` in whole networks, against ns-2.35's own results (`ns2/*.csv`): one flow over a 10 Mbit/s
//! bottleneck with a queue of 50 packets.
//!
//! Where nothing is random one run does the same packet by packet: within 0.1 %. With random loss the means of ten
//! seeds on both sides are within 3 % or the joint 95 % interval. `--nocapture` prints the tables.

use super::read;
use crate::against_ns2::{Measure, Row, Tolerance, compare, queue_loss};
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, simulate};

const SINGLE: [Measure; 3] = [
    ("goodput", "goodput_mbps", |s| s.flows[0].goodput_bps / 1e6),
    ("loss", "lossrate_total", |s| (queue_loss(s) + s.queues[0].drops["loss"] as f64) / s.queues[0].arrivals as f64),
    ("queue", "meanq", |s| s.queues[0].mean_packets),
];

/// `A.tcl`: one flow, 120 s of which 20 s are warm-up; ACKs of 40 B.
fn single(row: &Row) -> String {
    let start = if row.number("loss") > 0.0 { "start = { uniform = [\"0 s\", \"1 s\"] }\n" } else { "" };
    let fine = row.text("kind") == "rap-fine";
    format!(
        "duration = \"120 s\"\nwarmup = \"20 s\"\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\n\
         delay = \"{} ms\"\nqueue = {{ kind = \"droptail\", limit = \"50 packets\" }}\n\
         loss = {{ kind = \"uniform\", rate = {:?} }}\nbackward = {{ queue = {{ kind = \"unlimited\" }} }}\n\
         [access]\nrate = \"100 Mbit/s\"\n[flow.a]\ncc = \"rap\"\nack_size = \"40 B\"\nparams = {{ fine_grain = {fine} }}\n{start}",
        row.number("rtt") / 2.0,
        row.number("loss"),
    )
}

/// ns-2 with `rap_base_hdr_size_` 40, with and without `useFineGrain_`. Where a packet falls into the queue depends on
/// nanoseconds here: with ACKs of 0 and of 1 B ns-2's own goodputs at 100 ms are 7.508 and 7.121 Mbit/s.
const OURS: &str = include_str!("ns2/A_rap_summary.csv");

#[test]
fn packet_by_packet_without_random_loss() {
    let mut rows = Row::all(OURS);
    rows.retain(|row| row.text("loss") == "0");
    assert_eq!(rows.len(), 8);
    // the files give loss rates to 1e-6
    let misses = compare(&rows, single, &SINGLE, &Tolerance { share: 0.001, digit: 1e-6 });
    assert!(misses.at_95.is_empty(), "these differ from ns-2:\n{}", misses.at_95.join("\n"));
}

#[test]
fn with_random_loss() {
    let mut rows = Row::all(include_str!("../../flow/tests/ns2/A_loss_summary.csv"));
    rows.retain(|row| row.text("kind") == "rap");
    assert_eq!(rows.len(), 5);
    rows.extend(Row::all(OURS).into_iter().filter(|row| row.text("loss") != "0"));
    assert_eq!(rows.len(), 10);
    let misses = compare(&rows, single, &SINGLE, &Tolerance { share: 0.03, digit: 1e-6 });
    assert!(misses.at_95.is_empty(), "these differ from ns-2:\n{}", misses.at_95.join("\n"));
}

/// 60 s of flows on 10 Mbit/s under the profile `ns2`, ACKs of 40 B.
fn flows(delay_ms: u32, queue: u32, tables: &str, seed: u64) -> Vec<FlowSummary> {
    let text = format!(
        "duration = \"60 s\"\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"{delay_ms} ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"{queue} packets\" }}\nbackward = {{ queue = {{ kind = \"unlimited\" }} }}\n\
         [access]\nrate = \"100 Mbit/s\"\n{tables}"
    );
    let scenario = read::scenario(&text);
    simulate(&scenario, seed, &RunOptions::default()).unwrap().summary.flows
}

/// Fifteen flows that start 66.7 ms apart, a queue of 300 packets: delivered in all, sent by the first flow, and by each of
/// the others in the mean. ns-2 takes the first sample of a simulation for the smoothed round-trip time and lets those of
/// the other flows move 2 s, so that their timeouts begin with seconds; `first_rtt` says so.
#[test]
fn fifteen_flows_of_which_the_first_alone_begins_with_its_sample() {
    let ns2 = [
        (2, 72_489, 10_638.0, 5281.4),
        (5, 72_433, 9199.0, 5288.4),
        (10, 72_202, 9809.0, 5300.4),
        (25, 70_888, 6838.0, 5174.9),
    ];
    let mut first_of_all = (0.0, 0.0);
    for (delay_ms, delivered, first, others) in ns2 {
        let table = |i: u32| {
            let given = if i > 0 { "params = { first_rtt = 2 }\n" } else { "" };
            let start = 66.7 * f64::from(i);
            format!("[flow.f{i:02}]\ncc = \"rap\"\nack_size = \"40 B\"\nstart = \"{start:.1} ms\"\n{given}")
        };
        let flows = flows(delay_ms, 300, &(0..15).map(table).collect::<String>(), 1);
        let sent: Vec<f64> = flows.iter().map(|flow| flow.packets_sent as f64).collect();
        let received: u64 = flows.iter().map(|flow| flow.packets_delivered).sum();
        println!("{delay_ms} ms: {received} {} {:.1}", sent[0], sent[1..].iter().sum::<f64>() / 14.0);
        assert!(received.abs_diff(delivered) <= delivered / 1000, "{delay_ms} ms: {received}, ns-2 {delivered}");
        assert!((sent[1..].iter().sum::<f64>() / 14.0 / others - 1.0).abs() < 0.03, "{delay_ms} ms: {sent:?}");
        assert!((sent[0] / first - 1.0).abs() < 0.1, "{delay_ms} ms: {}, ns-2 {first}", sent[0]); // one run of one flow
        first_of_all.0 += sent[0];
        first_of_all.1 += first;
        assert!(flows.iter().all(|flow| flow.timeouts * 100 < flow.packets_sent), "{delay_ms} ms");
    }
    assert!((first_of_all.0 / first_of_all.1 - 1.0f64).abs() < 0.03, "{first_of_all:?}");
}

/// `overhead_` of 2, 10 and 50 ms at 50 ms with 50 packets of queue: packets sent in 60 s, over ten seeds, and half of the
/// 95 % interval.
#[test]
fn overhead() {
    for (ms, ns2, half) in [(2, 32_339.0, 103.5), (10, 7568.6, 64.2), (50, 1847.1, 14.1)] {
        let table = format!("[flow.a]\ncc = \"rap\"\nack_size = \"40 B\"\nsend_overhead = \"{ms} ms\"\n");
        let sent: Vec<f64> = (1..=10).map(|seed| flows(25, 50, &table, seed)[0].packets_sent as f64).collect();
        let mean = sent.iter().sum::<f64>() / 10.0;
        let own = 2.262 * (sent.iter().map(|n| (n - mean) * (n - mean)).sum::<f64>() / 9.0 / 10.0).sqrt();
        let joint = f64::hypot(half, own);
        println!("{ms} ms: {mean} +- {own:.1}, ns-2 {ns2} +- {half}");
        assert!((mean - ns2).abs() < joint.max(0.03 * ns2), "{ms} ms: {mean}, ns-2 {ns2}, {joint}");
    }
}

//! Rate control under the profile `ns2` in whole networks, against ns-2.35's own results (`ns2/*.csv`): means over 10
//! seeds, with 95 % half widths.
//!
//! TFRC alone, and TFRC and SACK on the lossy dumbbell of the TFRC Veno paper: within 3 % or the joint 95 % interval. N
//! SACK beside N TFRC flows: 10 % or the joint interval. As in ns2.rs, a twentieth of the pairs of means may miss a
//! 95 % interval, as they would by chance, and none a 99.9 % interval. `--nocapture` prints the tables.

use crate::against_ns2::{Measure, Misses, Row, Tolerance, compare, queue_loss};
use paceline_sim::Summary;
use paceline_sim::summary::{FlowSummary, jain};

fn assert_fits(misses: &Misses) {
    println!("{} compared, {} miss their 95 % interval", misses.compared, misses.at_95.len());
    assert!(misses.at_999.is_empty(), "these differ from ns-2:\n{}", misses.at_999.join("\n"));
    let most = misses.compared / 20;
    assert!(misses.at_95.len() <= most, "more than {most} differ from ns-2:\n{}", misses.at_95.join("\n"));
}

const SINGLE: [Measure; 3] = [
    ("goodput", "goodput_mbps", |s| s.flows[0].goodput_bps / 1e6),
    ("loss", "lossrate_total", |s| (queue_loss(s) + s.queues[0].drops["loss"] as f64) / s.queues[0].arrivals as f64),
    ("queue", "meanq", |s| s.queues[0].mean_packets),
];

/// `A.tcl`: one flow, 120 s of which 20 s are warm-up.
fn single(row: &Row) -> String {
    let start = if row.number("loss") > 0.0 { "start = { uniform = [\"0 s\", \"1 s\"] }\n" } else { "" };
    format!(
        "duration = \"120 s\"\nwarmup = \"20 s\"\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\n\
         delay = \"{} ms\"\nqueue = {{ kind = \"droptail\", limit = \"50 packets\" }}\n\
         loss = {{ kind = \"uniform\", rate = {:?} }}\nbackward = {{ queue = {{ kind = \"unlimited\" }} }}\n\
         [access]\nrate = \"100 Mbit/s\"\n[flow.a]\ncc = \"tfrc\"\n{start}",
        row.number("rtt") / 2.0,
        row.number("loss"),
    )
}

#[test]
fn one_flow() {
    let mut rows = Row::all(include_str!("../../flow/tests/ns2/A_noloss_summary.csv"));
    rows.extend(Row::all(include_str!("../../flow/tests/ns2/A_loss_summary.csv")));
    rows.retain(|row| row.text("kind") == "tfrc");
    assert_eq!(rows.len(), 9);
    // the files give loss rates to 1e-6
    let misses = compare(&rows, single, &SINGLE, &Tolerance { share: 0.03, digit: 1e-6 });
    assert!(misses.at_95.is_empty(), "these differ from ns-2:\n{}", misses.at_95.join("\n"));
}

fn of(summary: &Summary, flow: &str, value: impl Fn(&FlowSummary) -> f64) -> Vec<f64> {
    summary.flows.iter().filter(|f| f.flow == flow).map(value).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Throughput of a flow by its fair share of 15 Mbit/s.
fn share(summary: &Summary, flow: &str) -> f64 {
    let flows = summary.flows.len() as f64;
    mean(&of(summary, flow, |f| f.throughput_bps)) * flows / 15e6
}

fn lost(summary: &Summary, flow: &str) -> f64 {
    let total = |value: fn(&FlowSummary) -> u64| of(summary, flow, |f| value(f) as f64).iter().sum::<f64>();
    total(|f| f.packets_lost) / total(|f| f.packets_sent)
}

const SHARED: [Measure; 9] = [
    ("share of SACK", "norm_x", |s| share(s, "x")),
    ("share of TFRC", "norm_y", |s| share(s, "y")),
    ("loss of SACK", "loss_x", |s| lost(s, "x")),
    ("loss of TFRC", "loss_y", |s| lost(s, "y")),
    ("Jain of SACK", "jain_x", |s| jain(&of(s, "x", |f| f.throughput_bps)).unwrap_or(0.0)),
    ("Jain of TFRC", "jain_y", |s| jain(&of(s, "y", |f| f.throughput_bps)).unwrap_or(0.0)),
    ("utilisation", "util", |s| s.queues[0].utilisation),
    ("queue", "meanq", |s| s.queues[0].mean_packets),
    ("sd", "sdq", |s| s.queues[0].sd_packets),
];

/// `B.tcl`: N SACK and N TFRC flows on 15 Mbit/s and 50 ms, 200 s of which 50 s are warm-up.
fn shared(row: &Row) -> String {
    let queue = match row.text("queue") {
        "dt" => "{ kind = \"droptail\", limit = \"100 packets\" }",
        _ => {
            "{ kind = \"red\", limit = \"200 packets\", min_threshold = 25, max_threshold = 100, weight = 0.002, \
             mean_packet = \"1000 B\" }"
        }
    };
    let (of_sack, of_tfrc) = match row.text("jit") {
        "0" => ("", ""),
        _ => ("send_overhead = \"533 us\"", "params = { gap_jitter = 0.5 }"),
    };
    let n = row.text("n");
    let start = "start = { uniform = [\"0 s\", \"10 s\"] }";
    format!(
        "duration = \"200 s\"\nwarmup = \"50 s\"\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"15 Mbit/s\"\n\
         delay = \"25 ms\"\nqueue = {queue}\nbackward = {{ queue = {{ kind = \"unlimited\" }} }}\n\
         [access]\nrate = \"100 Mbit/s\"\n[flow.x]\ncc = \"sack\"\ncount = {n}\n{start}\n{of_sack}\n[flow.y]\ncc = \"tfrc\"\ncount = {n}\n{start}\n{of_tfrc}\n"
    )
}

#[test]
fn beside_sack() {
    let mut rows = Row::all(include_str!("ns2/B_sack1_tfrc_summary.csv"));
    // bare drop-tail without jitter shows phase effects
    rows.retain(|row| (row.text("jit") == "1" || row.text("queue") == "red") && row.text("y") == "tfrc");
    assert!(rows.len() >= 8, "{} rows", rows.len());
    assert_fits(&compare(&rows, shared, &SHARED, &Tolerance { share: 0.1, digit: 1e-6 }));
}

/// Packets sent, in kbit/s of 1000 B each.
fn sent(summary: &Summary, flow: &str) -> f64 {
    mean(&of(summary, flow, |f| f.send_rate_bps)) / 1e3
}

fn fairness(summary: &Summary, flow: &str) -> f64 {
    jain(&of(summary, flow, |f| f.send_rate_bps)).unwrap_or(0.0)
}

fn variation(summary: &Summary, flow: &str) -> f64 {
    mean(&of(summary, flow, |f| f.send_rate_cov.unwrap_or(0.0)))
}

const LOSSY: [Measure; 9] = [
    ("sent by x", "sent_x", |s| sent(s, "x")),
    ("sent by y", "sent_y", |s| sent(s, "y")),
    ("Jain of x", "jain_x", |s| fairness(s, "x")),
    ("Jain of y", "jain_y", |s| fairness(s, "y")),
    ("CoV of x", "cov01_x", |s| variation(s, "x")),
    ("CoV of y", "cov01_y", |s| variation(s, "y")),
    ("loss", "qloss", |s| queue_loss(s) / s.queues[0].arrivals as f64),
    ("queue", "meanq", |s| s.queues[0].mean_packets),
    ("utilisation", "util", |s| s.queues[0].utilisation),
];

/// `D.tcl`: flows over lossy last hops, with bursts of UDP beside them, for 300 s. ns-2's rows count from the first second
/// on, or from the start; the warm-up of a second is of no account beside the rest.
fn lossy(row: &Row) -> String {
    let cc = |kind: &str| if kind == "sack1" { "sack" } else { "tfrc" };
    let (n, nx) = (row.number("n") as u32, row.number("nx") as u32);
    let start = "start = { uniform = [\"0 s\", \"1 s\"] }";
    let mut text = format!(
        "duration = \"300 s\"\nwarmup = \"1 s\"\nrate_bin = \"100 ms\"\nprofile = \"ns2\"\n\
         [link.bottleneck]\nrate = \"12 Mbit/s\"\ndelay = \"80 ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"20 packets\" }}\n\
         backward = {{ queue = {{ kind = \"droptail\", limit = \"50 packets\" }} }}\n\
         [access]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\nqueue = {{ kind = \"droptail\", limit = \"50 packets\" }}\n\
         [access.receiver]\nloss = {{ kind = \"uniform\", rate = {:?}, on = \"data\" }}\n\
         [flow.x]\ncc = \"{}\"\ncount = {nx}\n{start}\n\
         [flow.background]\ncc = \"udp\"\ncount = 8\nsegment = \"512 B\"\n{start}\n\
         app = {{ kind = \"pareto\", rate = \"300 kbit/s\", burst = \"100 ms\", idle = \"100 ms\" }}\n",
        row.number("loss"),
        cc(row.text("x")),
    );
    if n > nx {
        text += &format!("[flow.y]\ncc = \"{}\"\ncount = {}\n{start}\n", cc(row.text("y")), n - nx);
    }
    text
}

#[test]
fn over_lossy_last_hops() {
    let mut rows = Row::all(include_str!("ns2/D_fig6_summary.csv"));
    rows.retain(|row| row.text("lossrv") == "uni");
    assert!(rows.len() >= 15, "{} rows", rows.len());
    assert_fits(&compare(&rows, lossy, &LOSSY, &Tolerance { share: 0.03, digit: 1e-6 }));
}

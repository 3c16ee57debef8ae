//! The whole simulator under the profiles `ns2` and `ns2-linux` against ns-2.35's own results (`ns2/*.csv`, and the
//! single-flow grid of crate flow): means over 10 seeds, with 95 % half widths.
//!
//! One flow: within 3 % or the joint 95 % interval, whichever is larger. The dumbbell of "TCP Vegas Performance with
//! Streaming Media": 10 % or the joint interval. There some five hundred pairs of means are compared, of which a
//! twentieth would miss a 95 % interval by chance if nothing differed at all; so of all pairs at most a twentieth may
//! miss it, and none a 99.9 % interval. `--nocapture` prints the tables.

use crate::against_ns2::{Measure, Row, Tolerance, compare, queue_loss};

const SINGLE: [Measure; 4] = [
    ("goodput", "goodput_mbps", |s| s.flows[0].goodput_bps / 1e6),
    ("loss", "lossrate_total", |s| (queue_loss(s) + s.queues[0].drops["loss"] as f64) / s.queues[0].arrivals as f64),
    ("queue", "meanq", |s| s.queues[0].mean_packets),
    ("cwnd", "cwnd", |s| s.flows[0].cwnd_mean_packets.unwrap_or(0.0)),
];

/// `A.tcl`: one flow, 120 s of which 20 s are warm-up.
fn single(row: &Row) -> String {
    let (kind, loss) = (row.text("kind"), row.number("loss"));
    let (mut profile, mut more) = ("ns2", String::new());
    let mut cc = kind;
    if let Some(linux) = kind.strip_prefix("lx-") {
        (profile, cc) = ("ns2-linux", linux);
    } else if let Some(thresholds) = kind.strip_prefix("vegas") {
        let (alpha, beta) = thresholds.split_once(':').unwrap_or(("1", "3"));
        (cc, more) = ("vegas", format!("params = {{ alpha = {alpha}, beta = {beta} }}\n"));
    } else if let Some(plain) = kind.strip_suffix("-da") {
        (cc, more) = (plain, "delayed_ack = \"100 ms\"\n".into());
    }
    let cc = if cc == "sack1" { "sack" } else { cc };
    if loss > 0.0 {
        more += "start = { uniform = [\"0 s\", \"1 s\"] }\n";
    }
    format!(
        "duration = \"120 s\"\nwarmup = \"20 s\"\nprofile = \"{profile}\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\n\
         delay = \"{} ms\"\nqueue = {{ kind = \"droptail\", limit = \"50 packets\" }}\n\
         loss = {{ kind = \"uniform\", rate = {loss:?} }}\nbackward = {{ queue = {{ kind = \"unlimited\" }} }}\n\
         [access]\nrate = \"100 Mbit/s\"\n[flow.a]\ncc = \"{cc}\"\n{more}",
        row.number("rtt") / 2.0
    )
}

/// The kinds of TCP; RAP is not there, and TFRC's rows are in ns2_tfrc.rs.
fn is_tcp(row: &Row) -> bool {
    !["tfrc", "rap"].contains(&row.text("kind"))
}

#[test]
fn one_flow_without_loss() {
    let mut rows = Row::all(include_str!("../../flow/tests/ns2/A_noloss_summary.csv"));
    rows.retain(is_tcp);
    single_grid(&rows);
}

/// Every single mean must fit.
fn single_grid(rows: &[Row]) {
    // the files give loss rates to 1e-6
    let misses = compare(rows, single, &SINGLE, &Tolerance { share: 0.03, digit: 1e-6 });
    assert!(misses.at_95.is_empty(), "these differ from ns-2:\n{}", misses.at_95.join("\n"));
}

#[test]
fn one_flow_with_random_loss() {
    let mut rows = Row::all(include_str!("../../flow/tests/ns2/A_loss_summary.csv"));
    rows.retain(is_tcp);
    single_grid(&rows);
}

/// CUBIC of TCP-Linux, at 10 Mbit/s with 50 packets of queue and at 40 Mbit/s with 200.
#[test]
fn cubic_of_tcp_linux() {
    let rows = Row::all(include_str!("ns2/A_cubic_summary.csv"));
    let scenario = |row: &Row| {
        let (rate, queue) = (row.text("bw"), row.text("qlim"));
        let text = single(row).replace("\"10 Mbit/s\"", &format!("\"{rate} Mbit/s\""));
        text.replace("50 packets", &format!("{queue} packets"))
    };
    let misses = compare(&rows, scenario, &SINGLE, &Tolerance { share: 0.03, digit: 1e-6 });
    // 64 pairs of means, most of them of random runs
    assert!(misses.at_999.is_empty(), "these differ from ns-2:\n{}", misses.at_999.join("\n"));
    assert!(misses.at_95.len() * 20 <= misses.compared, "these differ from ns-2:\n{}", misses.at_95.join("\n"));
}

const STREAMING: [Measure; 5] = [
    ("throughput", "thr_mbps", |s| s.streams[0].throughput_bps / 1e6),
    ("queue", "meanq", |s| s.queues[0].mean_packets),
    ("sd", "sdq", |s| s.queues[0].sd_packets),
    ("loss", "qloss", |s| queue_loss(s) / s.queues[0].arrivals as f64),
    ("utilisation", "util", |s| s.queues[0].utilisation),
];

/// `C2.tcl`: the streaming paper's dumbbell, with the background's delay on its access links.
fn streaming(row: &Row) -> String {
    let queue = match row.text("queue") {
        "dt" => "{ kind = \"droptail\", limit = \"50 packets\" }".to_owned(),
        "redauto" => {
            "{ kind = \"red\", limit = \"50 packets\", mode = \"bytes\", mean_packet = \"1000 B\", automatic = true }"
                .into()
        }
        red => {
            let (min, max) = if red == "red1040" { (10, 40) } else { (5, 15) };
            format!(
                "{{ kind = \"red\", limit = \"50 packets\", min_threshold = {min}, max_threshold = {max}, weight = 0.002, \
                 gentle = {}, mean_packet = \"{} B\" }}",
                red != "red515ng",
                if red == "red515ng" { 500 } else { 1000 }
            )
        }
    };
    let params = if row.text("kind") == "vegas8:8" { "cc = \"vegas\"\nparams = { alpha = 8, beta = 8 }" } else { "" };
    let overhead = format!("send_overhead = \"{} s\"", row.number("ovh"));
    let background = "start = { uniform = [\"0 s\", \"5 s\"] }\nrtt = { uniform = [\"20 ms\", \"440 ms\"] }";
    let (delay, core) = match row.text("rttmode") {
        "core" => (row.number("rtt") / 2.0, true),
        _ => (1.0, false),
    };
    assert!(!core || row.number("rtt") >= 20.0);
    let arrivals = match row.text("http") {
        "thinkp" => "think-persistent",
        other => other,
    };
    let mut text = format!(
        "duration = \"430 s\"\nwarmup = \"10 s\"\nstop_after = \"media\"\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\n\
         delay = \"{delay} ms\"\nqueue = {queue}\nloss = {{ kind = \"uniform\", rate = {:?} }}\n\
         backward = {{ queue = {{ kind = \"droptail\", limit = \"50 packets\" }} }}\n\
         [access]\nrate = \"100 Mbit/s\"\n[flow.media]\n{params}\nstart = \"10 s\"\nrtt = \"{} ms\"\n{overhead}\n\
         [flow.media.app]\nkind = \"stream\"\nmedia_rate = \"{} Mbit/s\"\n",
        row.number("loss"),
        row.number("rtt"),
        row.number("rate")
    );
    if row.number("nftp") > 0.0 {
        text += &format!("[flow.ftp]\ncount = {}\n{background}\n{overhead}\n", row.text("nftp"));
    }
    if row.number("nhttp") > 0.0 {
        text += &format!(
            "[flow.web]\ncount = {}\n{background}\n{overhead}\n[flow.web.app]\nkind = \"web\"\narrivals = \"{arrivals}\"\n",
            row.text("nhttp")
        );
    }
    text
}

/// Rows whose packets have no header beside their 1000 B, sent with the jitter that breaks phase effects.
fn comparable(row: &Row) -> bool {
    row.text("hdr") == "0" && (row.number("ovh") > 0.0 || row.number("nftp") == 0.0)
}

#[test]
fn the_streaming_dumbbell() {
    let mut rows = Vec::new();
    for csv in [
        include_str!("ns2/C_fig3_summary.csv"),
        include_str!("ns2/C_ovh_variants_summary.csv"),
        include_str!("ns2/C_open_fig4_summary.csv"),
        include_str!("ns2/C_ovh_fig4_summary.csv"),
        include_str!("ns2/C_open_fig5_summary.csv"),
        include_str!("ns2/C_ovh_fig5_summary.csv"),
        include_str!("ns2/C_open_fig6_summary.csv"),
        include_str!("ns2/C_ovh_fig6_summary.csv"),
        include_str!("ns2/C_open_fig7_summary.csv"),
        include_str!("ns2/C_ovh_fig7_summary.csv"),
    ] {
        rows.extend(Row::all(csv).into_iter().filter(comparable));
    }
    let misses = compare(&rows, streaming, &STREAMING, &Tolerance { share: 0.1, digit: 1e-6 });
    println!("{} compared, {} miss their 95 % interval", misses.compared, misses.at_95.len());
    assert!(misses.compared > 500);
    assert!(misses.at_999.is_empty(), "these differ from ns-2:\n{}", misses.at_999.join("\n"));
    let most = misses.compared / 20;
    assert!(misses.at_95.len() <= most, "more than {most} differ from ns-2:\n{}", misses.at_95.join("\n"));
}

//! Coupled flows of one host (RFC 8699) in whole scenarios: shares by priority, what a flow cannot use, who comes and goes.

use super::read;
use paceline_scenario::{Document, Scenario};
use paceline_sim::{Recording, RunOptions, RunOutput, simulate};
use paceline_units::Span;

fn simulated(text: &str, seed: u64) -> RunOutput {
    let scenario = read::scenario(text);
    let recording = Recording::of(&["rtcp"], Span::from_millis(100)).unwrap();
    simulate(&scenario, seed, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

/// 3 Mbit/s, 40 ms each way, 300 ms of queue.
fn path(seconds: u32, flows: &str) -> String {
    format!(
        "duration = \"{seconds} s\"\nwarmup = \"20 s\"\n[link.bottleneck]\nrate = \"3 Mbit/s\"\ndelay = \"40 ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"300 ms\" }}\n{flows}"
    )
}

/// A call whose encoder takes what it gets up to `most`.
fn call(name: &str, cc: &str, most: &str, more: &str) -> String {
    let params = if cc == "nada" { "params = { max_rate = 3e6 }\n" } else { "" };
    format!("[flow.{name}]\ncc = \"{cc}\"\n{params}app = {{ kind = \"encoder\", max_rate = \"{most}\" }}\n{more}\n")
}

fn coupled(priority: f64, algorithm: &str) -> String {
    format!("coupled = {{ group = \"call\", priority = {priority}, algorithm = \"{algorithm}\" }}")
}

fn goodputs(output: &RunOutput) -> Vec<f64> {
    output.summary.flows.iter().map(|flow| flow.goodput_bps / 1e6).collect()
}

/// The mean of a flow's allowed rate from one second to another, in Mbit/s.
fn allowed(output: &RunOutput, flow: usize, from: f64, to: f64) -> f64 {
    let columns = &output.series[flow].columns;
    let column = |name: &str| &columns.iter().find(|(n, _)| *n == name).unwrap().1;
    let rows = column("time_s").iter().zip(column("allowed_bps"));
    let within: Vec<f64> = rows.filter(|(time, _)| (from..to).contains(*time)).map(|(_, rate)| rate / 1e6).collect();
    within.iter().sum::<f64>() / within.len() as f64
}

#[test]
fn rates_are_shared_by_priority_and_the_link_is_used() {
    for cc in ["nada", "gcc"] {
        for algorithm in ["active", "conservative"] {
            let flows = call("camera", cc, "2.5 Mbit/s", &coupled(2.0, algorithm))
                + &call("screen", cc, "2.5 Mbit/s", &format!("start = \"10 s\"\n{}", coupled(1.0, algorithm)));
            for seed in 1..4 {
                let got = goodputs(&simulated(&path(120, &flows), seed));
                assert!((got[0] / got[1] - 2.0).abs() < 0.06, "{cc} {algorithm}: {got:?}");
                assert!(got[0] + got[1] > 2.4, "{cc} {algorithm}: {got:?}");
            }
        }
    }
}

#[test]
fn without_it_two_of_gcc_may_lie_far_apart() {
    let flows = call("camera", "gcc", "2.5 Mbit/s", "") + &call("screen", "gcc", "2.5 Mbit/s", "start = \"10 s\"");
    let apart = |seed| {
        let got = goodputs(&simulated(&path(120, &flows), seed));
        (got[0] / got[1]).max(got[1] / got[0])
    };
    assert!((1..4).map(apart).fold(0.0, f64::max) > 1.5);
}

#[test]
fn what_an_encoder_cannot_use_is_the_others() {
    let flows = call("camera", "nada", "3 Mbit/s", &coupled(1.0, "active"))
        + &call("thumbnail", "nada", "300 kbit/s", &coupled(1.0, "active"));
    let output = simulated(&path(90, &flows), 1);
    let (camera, thumbnail) = (allowed(&output, 0, 30.0, 90.0), allowed(&output, 1, 30.0, 90.0));
    assert!((thumbnail - 0.3).abs() < 0.01, "{thumbnail}");
    assert!(camera > 2.4, "{camera}");
}

#[test]
fn who_pauses_or_stops_leaves_its_rate_to_the_others_at_once() {
    let pause = "app = { kind = \"encoder\", max_rate = \"3 Mbit/s\", pauses = [{ from = \"40 s\", to = \"60 s\" }] }";
    let paused = call("screen", "nada", "3 Mbit/s", &coupled(1.0, "active"));
    let paused = paused.replace("app = { kind = \"encoder\", max_rate = \"3 Mbit/s\" }", pause) + "stop = \"80 s\"\n";
    let flows = call("camera", "nada", "3 Mbit/s", &coupled(1.0, "active")) + &paused;
    let output = simulated(&path(100, &flows), 1);
    let camera = |from, to| allowed(&output, 0, from, to);
    assert!((1.2..1.7).contains(&camera(30.0, 40.0)), "{}", camera(30.0, 40.0));
    assert!(camera(41.0, 60.0) > 2.4, "{}", camera(41.0, 60.0));
    assert!((1.2..2.2).contains(&camera(65.0, 80.0)), "{}", camera(65.0, 80.0));
    assert!(camera(81.0, 100.0) > 2.4, "{}", camera(81.0, 100.0));
}

#[test]
fn instances_of_one_table_are_a_group_and_other_groups_are_apart() {
    let flows = call("tile", "gcc", "3 Mbit/s", "count = 3\ncoupled = { group = \"tiles\" }")
        + &call("other", "gcc", "3 Mbit/s", "coupled = { group = \"other\" }");
    let output = simulated(&path(60, &flows), 1);
    let got = goodputs(&output);
    assert!(got[2..].iter().all(|rate| (rate / got[1] - 1.0).abs() < 0.05), "{got:?}");
    let (other, tile) = (allowed(&output, 0, 30.0, 60.0), allowed(&output, 1, 30.0, 60.0));
    assert!(other / tile > 1.1, "{tile} {other}");
}

#[test]
fn a_group_begins_at_one_host() {
    let back = "from = \"right\"\nto = \"left\"\n";
    let flows = call("camera", "nada", "3 Mbit/s", &coupled(1.0, "active"))
        + &call("far", "nada", "3 Mbit/s", &format!("{back}{}", coupled(1.0, "active")));
    let document = Document::parse(&path(60, &flows), "coupled.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err("none".into())).unwrap();
    let error = simulate(&scenario, 1, &RunOptions::default()).unwrap_err().to_string();
    assert!(error.contains("flow.far: coupled: it begins at `right` and `camera` of its group at `left`"), "{error}");
}

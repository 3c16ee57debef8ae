//! SCReAM v2 in whole scenarios, beside its authors' own code in their loop.
//!
//! The reference is EricssonResearch/scream @c8f84c3 with the settings of its simulator, 20 seeds of each case: a FIFO of 300 ms whose
//! packets are RTP and nothing more, marks where service begins, propagation each way, an encoder of 30 frames a second whose sizes are
//! uniform within 20 % of their mean, feedback after 16 packets, a marker or 40 ms. Its numbers are those that the law in that very loop is
//! held against, window of time by window of time (crates/control/tests/scream_loop.rs). What comes through and the mean wait of all flows
//! are its own within a tenth, the joint 95 % interval, or, of waits, a tenth of what a packet takes to be sent.

#[path = "../../control/tests/scream_loop/bands.rs"]
mod bands;
#[path = "../../control/tests/scream_loop/cases.rs"]
mod cases;

use cases::Case;
use paceline_scenario::{Document, Scenario};
use paceline_sim::summary::{FlowSummary, Summary};
use paceline_sim::{RunOptions, simulate};

/// The scenario.
fn text(case: &Case, from: u64, to: u64) -> String {
    let steps = |&(at, rate): &(u64, f64)| format!("{{ at = \"{at} s\", rate = \"{rate} Mbit/s\" }}");
    let schedule: Vec<String> = case.capacity.iter().map(steps).collect();
    // a CoDel that never drops, for its marks
    let queue = match case.marks {
        None => "kind = \"droptail\"".to_owned(),
        Some(cases::Marks { above, .. }) => {
            format!("kind = \"codel\", target = \"60 s\", interval = \"60 s\", mark_above = \"{above} ms\"")
        }
    };
    let loss = if case.loss > 0.0 {
        format!("loss = {{ kind = \"uniform\", rate = \"{} %\" }}", case.loss)
    } else {
        String::new()
    };
    let mut text = format!(
        "host_delay = \"0 s\"\nduration = \"{to} s\"\nwarmup = \"{from} s\"\ntopology = \"graph\"\n[link.bottleneck]\nbetween = [\"r1\", \"r2\"]\nrate_schedule = [{}]\n\
         delay = \"0 ms\"\nqueue = {{ {queue}, limit = \"300 ms\" }}\n{loss}\n\
         backward = {{ rate = \"10 Gbit/s\", queue = {{ kind = \"droptail\", limit = \"1000 packets\" }} }}\n",
        schedule.join(", ")
    );
    let (least, most) = case.rates;
    let l4s = case.marks.is_some_and(|marks| marks.scalable);
    let there = case.flows.iter().filter(|(start, _)| *start < to * 1000);
    for (i, (start, delay)) in there.enumerate() {
        text += &format!(
            "[link.to{i}]\nbetween = [\"r2\", \"h{i}\"]\nrate = \"10 Gbit/s\"\ndelay = \"{delay} ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"1000 packets\" }}\n\
             [flow.f{i}]\ncc = \"scream\"\nfrom = \"r1\"\nto = \"h{i}\"\nstart = \"{start} ms\"\necn = {}\n\
             segment = \"1200 B\"\nheader = \"0 B\"\nrtp = {{ bandwidth = \"1 Gbit/s\" }}\n\
             params = {{ variant = \"ericsson\", min_rate = {least}, start_rate = {least}, max_rate = {most}, l4s = {l4s}, \
             media_time = {} }}\n\
             app = {{ kind = \"encoder\", min_rate = \"1 kbit/s\", max_rate = \"100 Mbit/s\", jitter = \"{} %\", \
             jitter_law = \"uniform\", phase = \"0 s\", reaction = \"0 s\", key_interval = \"0 s\", key_size = 1 }}\n",
            case.marks.is_some(),
            case.media_time,
            case.varied
        );
    }
    text
}

fn run(case: &Case, from: u64, to: u64, seed: u64) -> Summary {
    let text = text(case, from, to);
    let document = Document::parse(&text, "scream.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err("none".into())).unwrap_or_else(|e| panic!("{e}\n{text}"));
    simulate(&scenario, seed, &RunOptions::default()).unwrap().summary
}

/// What came through of all flows (kbit/s), and the mean wait (ms).
fn measures(summary: &Summary, seconds: u64) -> [f64; 2] {
    let rate: f64 = summary.flows.iter().map(|flow| flow.throughput_bps).sum();
    let queue = summary.queues.iter().find(|queue| queue.link == "bottleneck" && queue.direction == "forward").unwrap();
    // Little's law: what leaves has waited so long
    [rate / 1e3, queue.mean_packets * seconds as f64 * 1e3 / queue.departures as f64]
}

/// Marks scatter little.
fn seeds(case: &Case) -> u64 {
    if case.marks.is_some() { 5 } else { 20 }
}

fn check(case: Case) {
    let (mut wrong, mut windows) = (Vec::new(), 0);
    for &(_, from, to, theirs) in case.rows.iter().filter(|row| row.0.is_none()) {
        windows += 1;
        let runs: Vec<[f64; 2]> =
            (1..=seeds(&case)).map(|seed| measures(&run(&case, from, to, seed), to - from)).collect();
        let packet = 1200.0 * 8.0 / case.capacity.iter().rev().find(|step| step.0 <= from).unwrap().1 / 1e3;
        for (i, what) in ["kbit/s", "mean wait"].into_iter().enumerate() {
            let ((their_mean, their_sd), n) = (theirs[i], runs.len() as f64);
            let mean = runs.iter().map(|run| run[i]).sum::<f64>() / n;
            let variance = runs.iter().map(|run| (run[i] - mean) * (run[i] - mean)).sum::<f64>() / (n - 1.0);
            let joint = 1.96 * (variance / n + their_sd * their_sd / 20.0).sqrt();
            let allowed = (0.1 * their_mean).max(joint).max(if i == 1 { 0.1 * packet } else { 0.0 });
            if (mean - their_mean).abs() > allowed {
                wrong.push(format!("{from} to {to} s, {what}: {mean:.3}, not {their_mean} within {allowed:.3}"));
            }
        }
    }
    assert!(windows > 0 && wrong.is_empty(), "{}: {wrong:#?}", case.name);
}

#[test]
fn alone_on_2_mbit_s() {
    check(cases::A);
}

#[test]
fn capacity_that_changes() {
    check(cases::B);
}

#[test]
fn capacity_that_falls_to_a_quarter() {
    check(cases::B_STUCK);
}

#[test]
fn two_on_a_capacity_that_changes() {
    check(cases::C);
}

#[test]
fn three_that_join() {
    check(cases::D);
}

#[test]
fn five_round_trips() {
    check(cases::G);
}

#[test]
fn queues_that_mark_for_scalable_senders() {
    check(cases::E_L4S_10M_5MS);
    check(cases::E_L4S_10M_1MS);
    check(cases::E_L4S_50M_5MS);
    check(cases::E_L4S_50M_1MS);
}

#[test]
fn queues_that_mark_as_of_old() {
    check(cases::E_CLS_10M_5MS);
    check(cases::E_CLS_10M_1MS);
    check(cases::E_CLS_50M_5MS);
    check(cases::E_CLS_50M_1MS);
}

#[test]
fn random_losses() {
    check(cases::F_LOSS01);
    check(cases::F_LOSS01_TS0);
    check(cases::F_LOSS05);
    check(cases::F_LOSS05_TS0);
}

/// 2.5 Mbit/s that fall to 0.3 from 20 s to 28 s, behind a queue that holds all: nothing is lost.
fn falling(flows: &str) -> Vec<FlowSummary> {
    let text = format!(
        "duration = \"40 s\"\n[link.bottleneck]\nrate_schedule = [{{ at = \"0 s\", rate = \"2.5 Mbit/s\" }}, {{ at = \"20 s\", rate = \"0.3 Mbit/s\" }}, {{ at = \"28 s\", rate = \"2.5 Mbit/s\" }}]\n\
         delay = \"50 ms\"\nqueue = {{ kind = \"droptail\", limit = \"10000 packets\" }}\n{flows}"
    );
    let document = Document::parse(&text, "falling.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err("none".into())).unwrap_or_else(|e| panic!("{e}\n{text}"));
    simulate(&scenario, 1, &RunOptions::default()).unwrap().summary.flows
}

const ERICSSON: &str = "cc = \"scream\"\nparams = { variant = \"ericsson\" }\n";

/// Frames that are thrown away are neither lost nor shown, and a key frame follows each time: none that comes whole lacks another.
#[test]
fn frames_that_wait_for_too_long_are_dropped() {
    let app = "app = { kind = \"encoder\", max_rate = \"3 Mbit/s\", key_interval = \"0 s\", jitter_buffer = {} }\n";
    let call = |scheme: &str| falling(&format!("[flow.call]\n{scheme}{app}")).remove(0);
    let flow = call(ERICSSON);
    let (sent, dropped) = (flow.frames_sent.unwrap(), flow.frames_dropped.unwrap());
    let complete = flow.frames_complete.unwrap();
    assert!(dropped > 10 && flow.packets_lost == 0, "{dropped} of {sent}, {} packets", flow.packets_lost);
    assert_eq!((flow.frames_undecodable, flow.plis), (Some(0), Some(0)));
    assert!(
        (1..20).contains(&(sent - dropped - complete)),
        "{complete} of {sent} came whole, {dropped} dropped: the rest is under way"
    );
    assert!(flow.key_frames.unwrap() > 1);
    assert_eq!(call("cc = \"scream\"\n").frames_dropped, None, "the draft leaves that to the application");
}

/// They have one queue: what waits at each is thrown away.
#[test]
fn those_of_a_bundle_are_dropped_together() {
    let app = "app = { kind = \"encoder\", max_rate = \"3 Mbit/s\" }\n";
    let flows = falling(&format!(
        "[flow.one]\n{ERICSSON}rtp = {{ feedback = \"twcc\" }}\n{app}bundle = {{}}\n[flow.two]\n{app}bundle = {{ with = \"one\" }}\n"
    ));
    assert_eq!(flows.len(), 2);
    for flow in flows {
        let (sent, dropped) = (flow.frames_sent.unwrap(), flow.frames_dropped.unwrap());
        let complete = flow.frames_complete.unwrap();
        assert!(dropped > 10 && flow.packets_lost == 0, "{}: {dropped}, {}", flow.flow, flow.packets_lost);
        assert!(
            (1..20).contains(&(sent - dropped - complete)),
            "{}: {complete} of {sent}, {dropped} dropped",
            flow.flow
        );
    }
}

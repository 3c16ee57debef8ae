//! LDA+ over RTP in whole scenarios: what it reaches alone and beside its like, and its measures.

use paceline_scenario::{Document, Scenario};
use paceline_sim::{Recording, RunOptions, RunOutput, simulate};
use paceline_units::Span;

fn output(text: &str, seed: u64) -> RunOutput {
    let document = Document::parse(text, "rtp.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err("none".into())).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let recording = Recording::of(&["rtcp"], Span::from_secs(1)).unwrap();
    simulate(&scenario, seed, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

fn path(duration: u32, rest: &str) -> String {
    format!(
        "duration = \"{duration} s\"\nwarmup = \"100 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"20 packets\" }}\n{rest}"
    )
}

#[test]
fn one_flow_reaches_the_bottlenecks_rate_and_keeps_it() {
    let mut goodput = 0.0;
    for seed in 1..=10 {
        let output = output(&path(400, "[flow.f]\ncc = \"lda-plus\"\n"), seed);
        let flow = &output.summary.flows[0];
        goodput += flow.goodput_bps / 10.0;
        assert!(flow.loss_rate.unwrap() < 0.01 && flow.packets_retransmitted == 0, "seed {seed}: {flow:?}");
        assert_eq!((flow.timeouts, flow.acks_lost), (0, 0));
        let table = &output.series[0];
        assert_eq!(table.table, "rtcp");
        let column = |name: &str| &table.columns.iter().find(|(n, _)| *n == name).unwrap().1;
        let (rate, bottleneck) = (column("allowed_bps"), column("bottleneck_bps"));
        assert!(bottleneck[0].is_nan());
        for i in 50..rate.len() {
            assert!((bottleneck[i] / 1e6 - 1.0).abs() < 0.02, "seed {seed}, {i} s: {}", bottleneck[i]);
            assert!(rate[i] <= bottleneck[i] * 1.001, "seed {seed}, {i} s: {}", rate[i]);
        }
    }
    // 1460 of 1500 bytes are payload; single runs have from 0.918 Mbit/s on
    assert!((0.93e6..0.974e6).contains(&goodput), "{goodput}");
}

#[test]
fn two_flows_share() {
    for seed in 1..=5 {
        let summary = output(&path(1100, "[flow.f]\ncc = \"lda-plus\"\ncount = 2\n"), seed).summary;
        let rates: Vec<f64> = summary.flows.iter().map(|flow| flow.goodput_bps).collect();
        let total: f64 = rates.iter().sum();
        assert!((0.75e6..0.974e6).contains(&total), "seed {seed}: {rates:?}");
        assert!(rates.iter().all(|rate| (0.35..0.65).contains(&(rate / total))), "seed {seed}: {rates:?}");
    }
}

#[test]
fn every_packet_is_accounted_for_over_a_bad_path() {
    let text = path(
        300,
        "loss = { kind = \"uniform\", rate = \"2 %\" }\nduplicate = { rate = \"2 %\" }\n\
         reorder = { rate = \"2 %\", extra = \"30 ms\" }\ncorrupt = { rate = \"1 %\" }\n\
         backward = { loss = { kind = \"uniform\", rate = \"10 %\" } }\n\
         [flow.f]\ncc = \"lda-plus\"\ncount = 4\nstart = { uniform = [\"0 s\", \"5 s\"] }\nstop = \"200 s\"\n\
         rtp = { report_interval = \"1 s\", loss_field = \"32 bits\" }\n\
         [flow.g]\ncc = \"lda-plus\"\napp = { kind = \"pareto\", rate = \"100 kbit/s\" }\n[flow.t]\n",
    );
    let summary = output(&text, 1).summary;
    for flow in summary.flows.iter().filter(|flow| flow.cc == "lda-plus") {
        assert!(flow.packets_lost > 0 && flow.goodput_bps > 1e4, "{flow:?}");
        // the link loses 2 %, and a loss reported at a short round-trip time takes a flow up to the bottleneck's rate
        assert!((0.02..0.3).contains(&flow.loss_rate.unwrap()), "{flow:?}");
        assert!(flow.rtt_min_s.unwrap() > 0.0399 && flow.window_cuts > 0, "{flow:?}");
    }
    let acks: u64 = summary.flows.iter().filter(|flow| flow.cc == "lda-plus").map(|flow| flow.acks_lost).sum();
    assert!(acks > 10, "some reports are lost: {acks}");
}

#[test]
fn reports_follow_the_table() {
    let sent = |rtp: &str| {
        let text = path(600, &format!("[flow.f]\ncc = \"lda-plus\"\nparams = {{ bottleneck = 1e5 }}\nrtp = {rtp}\n"));
        let output = output(&text, 1);
        // round-trip samples: one for each report
        let flow = &output.summary.flows[0];
        let rtts = output.series[0].columns.iter().find(|(name, _)| *name == "rtt_s").unwrap();
        (flow.rtt_mean_s.unwrap(), rtts.1.clone())
    };
    let changes = |rtp: &str| {
        let rtts = sent(rtp).1;
        rtts.windows(2).filter(|pair| pair[0] != pair[1] && !(pair[0].is_nan() && pair[1].is_nan())).count()
    };
    // 600 s of reports each 5, 20 s; samples differ from each other but for a few
    let (five, twenty) = (changes("{ timing = \"fixed\" }"), changes("{ report_interval = \"20 s\" }"));
    assert!((80..=120).contains(&five), "{five}");
    assert!((15..=32).contains(&twenty), "{twenty}");
}

/// A packet of somebody else lies between one pair in ten; the fullest interval is still the right one.
#[test]
fn packet_pairs_find_the_bottleneck_beside_others() {
    let text = "duration = \"400 s\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\n\
                queue = { kind = \"red\", limit = \"100 packets\", min_threshold = 30, max_threshold = 80 }\n\
                [flow.f]\ncc = \"lda-plus\"\ncount = 8\n[flow.t]\ncc = \"reno\"\ncount = 8\n";
    for seed in 1..=3 {
        let output = output(text, seed);
        assert!(output.summary.queues[0].utilisation > 0.9, "others are there");
        for table in &output.series {
            let bottleneck = &table.columns.iter().find(|(name, _)| *name == "bottleneck_bps").unwrap().1;
            for (i, rate) in bottleneck.iter().enumerate().skip(100) {
                assert!((rate / 1e7 - 1.0).abs() < 0.01, "seed {seed}, {:?}, {i} s: {rate}", table.labels);
            }
        }
    }
}

//! What draft-irtf-iccrg-ledbat-plus-plus claims: a short queue alone, no harm to others, no advantage for who comes late.

use super::read;
use paceline_sim::{RunOptions, RunOutput, expand, run};

fn outcome(flows: &str, seed: u64) -> RunOutput {
    let text = format!(
        "duration = \"180 s\"\nwarmup = \"60 s\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
         queue = {{ limit = \"200 packets\" }}\n{flows}"
    );
    let scenario = read::scenario(&text);
    run(&expand(&scenario, seed).unwrap(), &RunOptions::default()).unwrap()
}

fn mbps(output: &RunOutput, flow: usize) -> f64 {
    output.summary.flows[flow].goodput_bps / 1e6
}

const LOW: &str = "[flow.low]\ncc = \"ledbat-plus-plus\"\n";

/// 60 ms of queue beyond 40 ms of path and a segment's 1.2 ms, and slowdowns that cost a tenth.
#[test]
fn alone_it_keeps_the_target() {
    let output = outcome(LOW, 1);
    let flow = &output.summary.flows[0];
    assert!((8.6..9.7).contains(&mbps(&output, 0)), "{} Mbit/s", mbps(&output, 0));
    let rtt = flow.rtt_p95_s.unwrap();
    assert!((0.095..0.105).contains(&rtt), "{rtt} s");
    assert_eq!(flow.packets_lost, 0);
}

#[test]
fn it_gives_way() {
    for other in ["cubic", "newreno"] {
        let output = outcome(&format!("{LOW}[flow.other]\ncc = \"{other}\"\nstart = \"10 s\"\n"), 1);
        let (low, high) = (mbps(&output, 0), mbps(&output, 1));
        assert!(low < 0.05 * high && high > 9.2, "{low} beside {high} Mbit/s of {other}");
    }
}

/// Jain's index of two of which one comes 20 s later, from 60 s on.
#[test]
fn who_comes_late_has_no_advantage() {
    for seed in 1..=3 {
        let output = outcome(&format!("{LOW}[flow.late]\ncc = \"ledbat-plus-plus\"\nstart = \"20 s\"\n"), seed);
        let (a, b) = (mbps(&output, 0), mbps(&output, 1));
        let jain = (a + b) * (a + b) / (2.0 * (a * a + b * b));
        assert!(jain > 0.97, "{a} and {b} Mbit/s");
    }
}

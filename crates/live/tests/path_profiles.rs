//! The profiles under simulated flows: what they were made to show, they show.

use paceline_live::path::profiles;
use paceline_live::scenario;
use paceline_scenario::Document;
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, simulate};
use std::path::Path;

/// Flows of these tables over a profile, for two minutes.
fn run(profile: &str, flows: &str) -> Vec<FlowSummary> {
    let profile = profiles().iter().find(|known| known.name == profile).expect("a profile");
    let text = format!("duration = \"120 s\"\n{}\n{flows}", profile.text);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
    let document = Document::parse(&text, profile.name).unwrap_or_else(|error| panic!("{error}"));
    let checked = scenario::check(&document, &folder).unwrap_or_else(|error| panic!("{error}"));
    simulate(&checked, 1, &RunOptions::default()).unwrap().summary.flows
}

const DOWN: &str = "[flow.down]\nfrom = \"right\"\nto = \"left\"\n";
const UP: &str = "[flow.up]\nfrom = \"left\"\nto = \"right\"\n";

/// As the paper `tcp-vs-tfrc` found of UMTS: neither scheme reaches the nominal 384 kbit/s (Fig. 9a), delay varies by
/// hundreds of milliseconds though next to nothing is lost, and traffic the other way costs the downlink most of its
/// goodput (Fig. 9b).
#[test]
fn umts_is_slow_to_answer_and_suffers_from_reverse_traffic() {
    for cc in ["newreno", "tfrc"] {
        // the paper's TFRC: RFC 3448's, in 2004, without what damps oscillations
        let damping = if cc == "tfrc" { "params = { damping = false }\n" } else { "" };
        let cc = format!("cc = \"{cc}\"\n{damping}");
        let alone = &run("umts", &format!("{DOWN}{cc}"))[0];
        assert!((250e3..350e3).contains(&alone.goodput_bps), "{cc}: {}", alone.goodput_bps);
        assert!(alone.rtt_min_s.is_some_and(|rtt| (0.25..0.35).contains(&rtt)), "{cc}: {:?}", alone.rtt_min_s);
        assert!(alone.rtt_p95_s > Some(1.0), "{cc}: {:?}", alone.rtt_p95_s);
        let both = run("umts", &format!("{DOWN}{cc}{UP}{cc}"));
        let down = both.iter().find(|flow| flow.flow == "down").expect("the flow");
        assert!(down.goodput_bps < 0.7 * alone.goodput_bps, "{cc}: {} of {}", down.goodput_bps, alone.goodput_bps);
    }
    // A window that the buffer holds: what is lost then has failed six times.
    let within = &run("umts", &format!("{DOWN}receive_window = 40\n"))[0];
    assert!(within.loss_rate.is_some_and(|rate| rate < 1e-3), "{:?}", within.loss_rate);
}

/// A wired path is used well by either scheme, in either direction, and answers within its buffer.
#[test]
fn wide_area_is_used_well() {
    for cc in ["newreno", "tfrc"] {
        for ends in [DOWN, UP] {
            let flow = &run("wide-area", &format!("{ends}cc = \"{cc}\"\n"))[0];
            assert!(flow.goodput_bps > 1.8e6 && flow.goodput_bps < 2e6, "{cc}: {}", flow.goodput_bps);
            // 70 ms, 50 packets of 1500 B at most at 2 Mbit/s, and jitter.
            assert!(flow.rtt_max_s.is_some_and(|rtt| rtt < 0.4), "{cc}: {:?}", flow.rtt_max_s);
        }
    }
}

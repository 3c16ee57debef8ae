//! An access point that lowers windows in an 802.11g home: one download, a game, a voice, a film.

use paceline_sim::scenario::{Document, Scenario};
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, RunOutput, expand, run};

fn outcome(wired_ms: u32, windows: &str, downloads: &str) -> RunOutput {
    let mut text = format!(
        "duration = \"80 s\"\nwarmup = \"20 s\"\ntopology = \"home\"\nprofile = \"ns2\"\n\
         [cell.home]\nqueue = {{ limit = \"50 packets\" }}\n{windows}\n"
    );
    for station in ["tv", "console", "phone", "laptop"] {
        text += &format!("[cell.home.station.{station}]\n");
    }
    for server in ["game", "voice", "web"] {
        text += &format!("[link.{server}]\nrate = \"100 Mbit/s\"\ndelay = \"{wired_ms} ms\"\n");
    }
    text += "[flow.film]\nfrom = \"ap\"\nto = \"tv\"\ncc = \"udp\"\napp = { kind = \"cbr\", rate = \"1 Mbit/s\" }\n\
             [flow.game]\nfrom = \"game\"\nto = \"console\"\ncc = \"udp\"\napp = { kind = \"game\" }\n\
             [flow.game-up]\nfrom = \"console\"\nto = \"game\"\ncc = \"udp\"\napp = { kind = \"game\", way = \"up\" }\n\
             [flow.voice]\nfrom = \"voice\"\nto = \"phone\"\ncc = \"udp\"\napp = { kind = \"voice\" }\n";
    text += downloads;
    let document = Document::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    let scenario = Scenario::check(&document, &mut |_| unreachable!());
    run(&expand(&scenario.unwrap_or_else(|error| panic!("{error}")), 1).unwrap(), &RunOptions::default()).unwrap()
}

fn flow<'a>(output: &'a RunOutput, name: &str) -> &'a FlowSummary {
    output.summary.flows.iter().find(|flow| flow.flow == name).unwrap()
}

const DOWNLOAD: &str = "[flow.download]\nfrom = \"web\"\nto = \"laptop\"\n";

#[test]
fn a_fixed_window_gives_that_window_a_round_trip() {
    let output = outcome(20, "windows = { kind = \"fixed\", window = \"30 kB\" }", DOWNLOAD);
    let download = flow(&output, "download");
    let expected = 30_000.0 * 8.0 / download.rtt_mean_s.unwrap();
    assert!((download.goodput_bps / expected - 1.0).abs() < 0.02, "{} of {expected}", download.goodput_bps);
    assert_eq!(download.packets_lost, 0);
}

/// Figures 3 and 4 of the paper in short. Where NewReno's saw-tooth empties the pipe the download gains as well.
#[test]
fn voap_keeps_the_rate_and_takes_away_the_wait() {
    for (wired_ms, least) in [(5, 0.98), (20, 1.04), (50, 1.15)] {
        let free = outcome(wired_ms, "", DOWNLOAD);
        let voap = outcome(wired_ms, "windows = { kind = \"voap\" }", DOWNLOAD);
        let [before, after] = [&free, &voap].map(|output| flow(output, "download").goodput_bps);
        assert!(after < 1.3 * before, "{wired_ms} ms: {after} after {before}");
        assert!(after > least * before, "{wired_ms} ms: {after} after {before}");
        let propagation = f64::from(wired_ms) * 1e-3;
        let [before, after] = [&free, &voap].map(|output| flow(output, "game").owd_p95_s.unwrap() - propagation);
        assert!(after < 0.7 * before && after > 1e-3, "{wired_ms} ms: {after} s after {before} s");
        assert!(flow(&free, "download").packets_lost > 0);
        assert_eq!(flow(&voap, "download").packets_lost, 0);
    }
}

/// Figure 6: flows that begin one after the other come to equal shares.
#[test]
fn flows_under_voap_share_equally() {
    let three = "[flow.a]\nfrom = \"web\"\nto = \"laptop\"\n\
                 [flow.b]\nfrom = \"web\"\nto = \"phone\"\nstart = \"5 s\"\n\
                 [flow.c]\nfrom = \"web\"\nto = \"tv\"\nstart = \"10 s\"\n";
    let output = outcome(20, "windows = { kind = \"voap\" }", three);
    let rates: Vec<f64> = ["a", "b", "c"].iter().map(|name| flow(&output, name).goodput_bps).collect();
    let sum: f64 = rates.iter().sum();
    let jain = sum * sum / (3.0 * rates.iter().map(|r| r * r).sum::<f64>());
    assert!(jain > 0.97, "{rates:?}");
}

/// SAP-LAW with the capacity of the channel known: no queue stands either.
#[test]
fn sap_law_holds_flows_to_what_it_is_told() {
    let law = "windows = { kind = \"sap-law\", capacity = \"12 Mbit/s\" }";
    let output = outcome(20, law, DOWNLOAD);
    let rate = flow(&output, "download").goodput_bps;
    // 12 Mbit/s less 1.1 times the film's, the game's and the voice's.
    assert!((8e6..11e6).contains(&rate), "{rate}");
    assert!(flow(&output, "game").owd_p95_s.unwrap() < 0.025, "{:?}", flow(&output, "game").owd_p95_s);
}

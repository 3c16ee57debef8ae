//! NDTC in whole scenarios: what its draft (draft-ageneau-ccwg-ndtc, July 2026) says of it, with an encoder that follows it.

use super::read;
use paceline_sim::summary::{FlowSummary, Summary};
use paceline_sim::{Recording, RunOptions, RunOutput, simulate};
use paceline_units::Span;

/// A minute behind a buffer of 100 ms, 20 ms away, of which the first 10 s do not count.
fn output(link: &str, flows: &str, seed: u64) -> RunOutput {
    let text = format!(
        "duration = \"60 s\"\nwarmup = \"10 s\"\n[link.bottleneck]\ndelay = \"20 ms\"\n{link}\n{}\n{flows}",
        if link.contains("queue") { "" } else { "queue = { kind = \"droptail\", limit = \"100 ms\" }" }
    );
    let scenario = read::scenario(&text);
    let recording = Recording::of(&["rtcp"], Span::from_millis(100)).unwrap();
    simulate(&scenario, seed, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

/// A game of so many frames a second that may use all of a link of so many Mbit/s.
fn game(name: &str, rate: u32, frames: u32, more: &str) -> String {
    let most = rate * 1_000_000 / 8 / frames;
    format!(
        "[flow.{name}]\ncc = \"ndtc\"\nparams = {{ max_target = {most} }}\n\
         rtp = {{ feedback_interval = \"{} ms\", bandwidth = \"{rate} Mbit/s\" }}\n\
         app = {{ kind = \"encoder\", frame_rate = {frames}, max_rate = \"{rate} Mbit/s\", key_interval = \"0 s\" }}\n{more}\n",
        1000 / frames
    )
}

fn flow<'a>(summary: &'a Summary, name: &str) -> &'a FlowSummary {
    summary.flows.iter().find(|flow| flow.flow == name).unwrap()
}

/// The mean of a column of the only flow's recording between two times.
fn mean(output: &RunOutput, name: &str, from: f64, to: f64) -> f64 {
    let column = |name: &str| &output.series[0].columns.iter().find(|(n, _)| *n == name).unwrap().1;
    let within: Vec<f64> = column("time_s")
        .iter()
        .zip(column(name))
        .filter(|(time, value)| (from..to).contains(*time) && value.is_finite())
        .map(|(_, value)| *value)
        .collect();
    within.iter().sum::<f64>() / within.len() as f64
}

/// TARGET = TRECV AVAILABLE with TRECV = 0.6 TFRAME: alone it finds the link's rate, takes three fifths of it, and queues nothing.
#[test]
fn alone_it_takes_three_fifths_of_a_link_that_it_knows() {
    for (rate, frames) in [(5, 30), (20, 30), (20, 60)] {
        for seed in 1..=2 {
            let output = output(&format!("rate = \"{rate} Mbit/s\""), &game("game", rate, frames, ""), seed);
            let game = flow(&output.summary, "game");
            let share = game.throughput_bps / f64::from(rate) / 1e6;
            assert!((0.58..0.65).contains(&share), "{rate} {frames} {seed}: {share}");
            assert_eq!((game.packets_lost, game.freezes), (0, Some(0)), "{game:?}");
            // 1460 of 1500 bytes are payload
            let available = mean(&output, "available_bps", 10.0, 60.0) / (f64::from(rate) * 1e6 * 1460.0 / 1500.0);
            assert!((0.97..1.08).contains(&available), "{rate} {frames} {seed}: {available}");
            // TRECV after the path's 20 ms, and DELAY: what is left is the encoder's variation
            let period = 1.0 / f64::from(frames);
            assert!(game.frame_delay_p50_s.unwrap() < 0.02 + 0.66 * period, "{game:?}");
            assert!(game.frame_delay_p95_s.unwrap() < 0.02 + period, "{game:?}");
        }
    }
}

/// "In a single FIFO bottleneck scenario with constant-rate cross traffic, SLOPE is the fraction of the bottleneck capacity
/// occupied by cross-traffic", and AVAILABLE the rest; of a small rest three iterations find too much, more of them less.
#[test]
fn what_others_leave_is_what_is_available() {
    let run = |rate: f64, iterations: u32| {
        let others = format!("[flow.others]\ncc = \"udp\"\napp = {{ kind = \"cbr\", rate = \"{rate} Mbit/s\" }}\n");
        let game = game("game", 20, 60, "").replace("params = {", &format!("params = {{ iterations = {iterations},"));
        let output = output("rate = \"20 Mbit/s\"", &(game + &others), 1);
        let share = rate * 1500.0 / 1472.0 / 20.0;
        let slope = mean(&output, "slope", 10.0, 60.0);
        assert!((slope - share).abs() < 0.12, "{rate}: {slope}, {share}");
        assert_eq!(output.summary.flows.iter().map(|flow| flow.packets_lost).sum::<u64>(), 0);
        flow(&output.summary, "game").throughput_bps / (0.6 * (1.0 - share) * 20e6)
    };
    for (rate, expected) in [(5.0, 0.95..1.05), (10.0, 1.0..1.12), (15.0, 1.15..1.4)] {
        let of_rest = run(rate, 3);
        assert!(expected.contains(&of_rest), "{rate}: {of_rest}");
    }
    let (three, twenty) = (run(15.0, 3), run(15.0, 20));
    assert!(twenty < three - 0.05, "{three} {twenty}");
}

/// "NDTC tends to yield to capacity-seeking flows, but it does not get starved."
#[test]
fn it_yields_to_cubic_and_is_not_starved() {
    let cubic = "[flow.download]\ncc = \"cubic\"\n";
    let output = output("rate = \"20 Mbit/s\"", &(game("game", 20, 60, "") + cubic), 1);
    let game = flow(&output.summary, "game");
    assert!((1.2e6..4e6).contains(&game.throughput_bps), "{game:?}");
    assert!(game.complete_share.unwrap() > 0.98, "{game:?}");
    assert!(flow(&output.summary, "download").throughput_bps > 15e6);
}

/// Frames that meet at the queue tell each flow of the other: in step two share three fifths and queue nothing. Frames that do not are
/// no cross-traffic to a dispersion, each flow takes the link for its own as long as they do not, and shares are what the phases make.
#[test]
fn two_share_as_their_cameras_phases_have_it() {
    let flows = game("one", 20, 60, "") + &game("two", 20, 60, "");
    let runs: Vec<(f64, f64)> = (1..=20)
        .map(|seed| {
            let summary = output("rate = \"20 Mbit/s\"", &flows, seed).summary;
            let of = |name| flow(&summary, name).throughput_bps / 1e6;
            (of("one"), of("two"))
        })
        .collect();
    let ratios = || runs.iter().map(|(one, two)| one.min(*two) / one.max(*two));
    let sums = || runs.iter().map(|(one, two)| one + two);
    assert!(ratios().any(|ratio| ratio > 0.9) && ratios().any(|ratio| ratio < 0.4), "{runs:?}");
    assert!(ratios().all(|ratio| ratio > 0.25), "neither starves: {runs:?}");
    assert!(sums().all(|sum| (11.0..20.1).contains(&sum)), "{runs:?}");
    let mean = sums().sum::<f64>() / 20.0;
    assert!((13.0..16.0).contains(&mean), "{mean}");
}

/// Losses that no queue makes are answered as congestion: with ALPHA bytes a frame up and 1 - BETA down a loss, the frame size is
/// about sqrt(ALPHA packet / ((1 - BETA) p)) whatever the link has.
#[test]
fn random_losses_hold_it_down() {
    let loss = "loss = { kind = \"uniform\", rate = \"1 %\" }";
    for (rate, frames) in [(5, 30), (20, 60)] {
        let link = format!("rate = \"{rate} Mbit/s\"\n{loss}");
        let game = output(&link, &game("game", rate, frames, ""), 1).summary.flows[0].clone();
        let size = (40.0 * 1460.0 / (0.3 * 0.01_f64)).sqrt();
        let expected = size * 8.0 * f64::from(frames);
        assert!((0.7..1.1).contains(&(game.goodput_bps / expected)), "{rate}: {game:?} {expected}");
    }
}

#[test]
fn it_follows_a_link_down_within_a_second_and_up_again() {
    let link = "rate_schedule = [{ at = \"0 s\", rate = \"20 Mbit/s\" }, { at = \"30 s\", rate = \"5 Mbit/s\" }, \
                { at = \"45 s\", rate = \"20 Mbit/s\" }]";
    let output = output(link, &game("game", 20, 60, ""), 1);
    let allowed = |from, to| mean(&output, "allowed_bps", from, to);
    assert!((11e6..13e6).contains(&allowed(25.0, 30.0)), "{}", allowed(25.0, 30.0));
    assert!(allowed(31.0, 32.0) < 5e6, "{}", allowed(31.0, 32.0));
    assert!((2.8e6..3.5e6).contains(&allowed(35.0, 45.0)), "{}", allowed(35.0, 45.0));
    assert!(allowed(52.0, 60.0) > 10e6, "{}", allowed(52.0, 60.0));
}

/// Behind DualPI2 its packets go into the queue of low latency, are marked there, and leave without a loss beside Prague.
#[test]
fn marks_of_an_l4s_bottleneck_are_answered() {
    let link = "rate = \"20 Mbit/s\"\nqueue = { kind = \"dualpi2\" }";
    let flows = game("game", 20, 60, "ecn = true") + "[flow.download]\ncc = \"prague\"\n";
    let summary = output(link, &flows, 1).summary;
    let (game, download) = (flow(&summary, "game"), flow(&summary, "download"));
    assert!(game.ecn_marks > 1000 && game.packets_lost == 0, "{game:?}");
    assert!((4e6..10e6).contains(&game.throughput_bps) && download.throughput_bps > 6e6, "{game:?} {download:?}");
    // 40 ms of path, and what a frame's packets wait for each other
    assert!(game.rtt_p95_s.unwrap() < 0.045, "{game:?}");
}

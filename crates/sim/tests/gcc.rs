//! Google congestion control in whole scenarios, beside series of libwebrtc's and the rates that its own scenario tests want.
//!
//! The series: Chromium 156 over an emulated path in real time, and a line-by-line port of libwebrtc of December 2024 (crate
//! goog_cc 0.1.4, feedback each 50 and each 100 ms) with a pacer and an encoder of its driver's, both on the path of these scenarios. A range
//! here holds what they have; where ours lies outside of it, or they lie far apart, it holds ours as well, and docs/controllers/gcc.md
//! says so.

use super::read;
use paceline_sim::{Recording, RunOptions, RunOutput, simulate};
use paceline_units::Span;
use std::ops::Range;

fn output(text: &str, seed: u64) -> RunOutput {
    let scenario = read::scenario(text);
    let recording = Recording::of(&["rtcp"], Span::from_millis(100)).unwrap();
    simulate(&scenario, seed, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

/// The mean of a column of a flow's recording, in kbit/s or as it is, over the times given.
fn mean(output: &RunOutput, flow: usize, name: &str, times: &Range<f64>) -> f64 {
    let columns = &output.series[flow].columns;
    let column = |name: &str| &columns.iter().find(|(n, _)| *n == name).unwrap().1;
    let rows = column("time_s").iter().zip(column(name));
    let within: Vec<f64> = rows.filter(|(t, v)| times.contains(*t) && v.is_finite()).map(|(_, value)| *value).collect();
    let mean = within.iter().sum::<f64>() / within.len() as f64;
    if name.ends_with("_bps") { mean / 1e3 } else { mean }
}

/// 50 ms each way, a queue of 300 ms at the first rate, nothing scarce on the way back.
fn path(rates: &str, loss: &str, seconds: u32, flows: &str) -> String {
    let rate =
        if rates.contains("at =") { format!("rate_schedule = [{rates}]") } else { format!("rate = \"{rates}\"") };
    format!(
        "duration = \"{seconds} s\"\n[link.bottleneck]\n{rate}\ndelay = \"50 ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"300 ms\" }}\n{loss}\n\
         backward = {{ rate = \"100 Mbit/s\", queue = {{ kind = \"droptail\", limit = \"1000 packets\" }} }}\n{flows}"
    )
}

/// 30 even frames a second, at the target up to `most`.
fn flow(name: &str, most: &str, more: &str) -> String {
    format!(
        "[flow.{name}]\ncc = \"gcc\"\n{more}\nrtp = {{ feedback_interval = \"50 ms\", bandwidth = \"10 Mbit/s\" }}\n\
         app = {{ kind = \"encoder\", min_rate = \"30 kbit/s\", max_rate = \"{most}\", jitter = \"0 %\", reaction = \"0 s\", \
         key_interval = \"0 s\", key_size = 1 }}\n"
    )
}

/// RFC 8867 section 5.1, without its jitter.
const STEPS: &str = "{ at = \"0 s\", rate = \"1 Mbit/s\" }, { at = \"40 s\", rate = \"2.5 Mbit/s\" }, \
                     { at = \"60 s\", rate = \"600 kbit/s\" }, { at = \"80 s\", rate = \"1 Mbit/s\" }";

/// Ten runs: where in its sawtooth a rate is, and the phase of the camera, are each one's own.
fn ten(text: &str) -> Vec<RunOutput> {
    (1..=10).map(|seed| output(text, seed)).collect()
}

/// What came through over the second half of a phase lies within a range, in kbit/s, in the mean of the runs.
#[track_caller]
fn through(case: &str, runs: &[RunOutput], phases: &[(Range<f64>, Range<f64>)]) {
    for (times, want) in phases {
        let late = (times.start + times.end) / 2.0..times.end;
        let got = runs.iter().map(|run| mean(run, 0, "throughput_bps", &late)).sum::<f64>() / runs.len() as f64;
        assert!(want.contains(&got), "{case}, {late:?} s: {got:.0} kbit/s, not {want:?}");
    }
}

/// (Chromium, the port) over the second half: 1505, 1500 of an encoder's 1500 and 1224 to 1668, 1820 to 1860 of 2000.
#[test]
fn alone_on_2_mbit() {
    let runs = ten(&path("2 Mbit/s", "", 60, &flow("a", "1.5 Mbit/s", "")));
    let run = &runs[0];
    through("1.5 of 2", &runs, &[(0.0..60.0, 1450.0..1520.0)]);
    // the probes go on where the encoder cannot: the port's target is 2260
    let target = mean(run, 0, "allowed_bps", &(30.0..60.0));
    assert!((2000.0..2500.0).contains(&target), "{target}");
    assert!(mean(run, 0, "throughput_bps", &(1.5..5.0)) > 1350.0, "within 2 s, as the port");
    assert_eq!(run.summary.flows[0].packets_lost, 0);
    let runs = ten(&path("2 Mbit/s", "", 60, &flow("a", "3 Mbit/s", "")));
    through("3 of 2", &runs, &[(0.0..60.0, 1600.0..1950.0)]);
}

/// Chromium: 850 to 867, 1423 to 1511, 520 to 533, 782 to 800; the port: 927 to 945, 1326 to 1500, 557 to 559, 900 to 911.
/// With an encoder of 3 Mbit/s they have 1511 to 1972 and 1427 to 2204 in the second phase.
#[test]
fn the_capacity_changes() {
    let runs = ten(&path(STEPS, "", 100, &flow("a", "1.5 Mbit/s", "")));
    let phases = [
        (0.0..40.0, 850.0..945.0),
        (40.0..60.0, 1326.0..1520.0),
        (60.0..80.0, 520.0..590.0),
        (80.0..100.0, 782.0..911.0),
    ];
    through("steps", &runs, &phases);
    let runs = ten(&path(STEPS, "", 100, &flow("a", "3 Mbit/s", "")));
    through("steps of 3", &runs, &[(40.0..60.0, 1427.0..2204.0), (60.0..80.0, 486.0..590.0)]);
}

/// Of 1 Mbit/s with 2 % of loss Chromium has 815 and the port 904; of 3 Mbit/s with 1, 5 and 10 % 1560 to 1840, 2060 to 2450, 830 to
/// 1350 and 2969, 2846, 1153. Ours has more than both with 10 %, 1587 in the mean of ten runs: the port's bound by losses is of 2024, and
/// three quarters of today's (crate control's tests/gcc_port.rs); Chromium's rate has its retransmissions in it.
#[test]
fn random_losses() {
    for (rate, most, loss, want) in [
        ("1 Mbit/s", "1.5 Mbit/s", "2 %", 800.0..950.0),
        ("3 Mbit/s", "3 Mbit/s", "1 %", 1560.0..2969.0),
        ("3 Mbit/s", "3 Mbit/s", "5 %", 2060.0..2846.0),
        ("3 Mbit/s", "3 Mbit/s", "10 %", 1450.0..1750.0),
    ] {
        let random = format!("loss = {{ kind = \"uniform\", rate = \"{loss}\" }}");
        let scenario = path(rate, &random, 60, &flow("a", most, ""));
        let each = (1..=10).map(|seed| mean(&output(&scenario, seed), 0, "throughput_bps", &(30.0..60.0)));
        let all = each.sum::<f64>() / 10.0;
        assert!(want.contains(&all), "{loss}: {all:.0} kbit/s, not {want:?}");
    }
}

/// Without the loss-based part a tenth of losses changes nothing; without probes a call takes its time.
#[test]
fn parts_can_be_left_out() {
    let random = "loss = { kind = \"uniform\", rate = \"10 %\" }";
    let run = output(&path("3 Mbit/s", random, 60, &flow("a", "3 Mbit/s", "params = { loss = false }")), 1);
    through("no losses", std::slice::from_ref(&run), &[(0.0..60.0, 2300.0..2800.0)]);
    let run = output(&path("2 Mbit/s", "", 60, &flow("a", "1.5 Mbit/s", "params = { probing = false }")), 1);
    assert!(mean(&run, 0, "throughput_bps", &(1.5..5.0)) < 500.0);
    through("no probes", std::slice::from_ref(&run), &[(0.0..60.0, 1300.0..1520.0)]);
}

/// RFC 8867 section 5.4: on 3.5 Mbit/s the port's three flows have 1369 to 1543, 815 to 885, 919 to 1025 from 80 s to 120 s: all of
/// the link, and no flow without a share.
#[test]
fn three_flows_share() {
    let flows = [
        flow("a", "3 Mbit/s", ""),
        flow("b", "3 Mbit/s", "start = \"20 s\""),
        flow("c", "3 Mbit/s", "start = \"40 s\""),
    ];
    let run = output(&path("3.5 Mbit/s", "", 120, &flows.concat()), 1);
    let late: Vec<f64> = (0..3).map(|i| mean(&run, i, "throughput_bps", &(80.0..120.0))).collect();
    assert!((2900.0..3450.0).contains(&late.iter().sum::<f64>()), "{late:?}");
    assert!(late.iter().all(|rate| (500.0..1900.0).contains(rate)), "{late:?}");
}

/// libwebrtc's UpdatesTargetRateBasedOnLinkCapacity (goog_cc_network_control_unittest.cc): 500 kbit/s, then 800, then 100 with twice
/// the delay: targets of 450 +- 100 after 25 s, 750 +- 150 after 20, 90 +- 25 after 50. Our links keep their delay.
#[test]
fn the_target_follows_the_links_capacity() {
    let rates = "{ at = \"0 s\", rate = \"500 kbit/s\" }, { at = \"25 s\", rate = \"800 kbit/s\" }, \
                 { at = \"45 s\", rate = \"100 kbit/s\" }";
    let text = path(rates, "", 95, &flow("a", "1.5 Mbit/s", "params = { min_rate = 10e3, max_rate = 1.5e6 }"))
        .replace("\"50 ms\"\nqueue", "\"100 ms\"\nqueue");
    let run = output(&text.replace("limit = \"300 ms\"", "limit = \"10 s\""), 1);
    for (at, want) in [(24.0..25.0, 350.0..550.0), (44.0..45.0, 600.0..900.0), (94.0..95.0, 65.0..115.0)] {
        let target = mean(&run, 0, "allowed_bps", &at);
        assert!(want.contains(&target), "{at:?} s: {target:.0} kbit/s, not {want:?}");
    }
}

/// CongestionWindowPushbackDropFrameOnNetworkDelay there: 3 s after a link has paused the target is more than 300 kbit/s, but the
/// encoder is told half of it.
#[test]
fn a_pause_of_the_link_halves_what_the_encoder_gets() {
    let text = path("1 Mbit/s", "outage = [{ from = \"10 s\", to = \"20 s\" }]", 13, &flow("a", "2 Mbit/s", ""));
    let text = text.replace("\"50 ms\"\nqueue", "\"100 ms\"\nqueue").replace("limit = \"300 ms\"", "limit = \"10 s\"");
    let run = output(&text, 1);
    let (target, encoder) = (mean(&run, 0, "allowed_bps", &(12.0..13.0)), mean(&run, 0, "target_bps", &(12.0..13.0)));
    assert!(target > 300.0, "{target}");
    assert!((encoder / target - 0.5).abs() < 0.01, "{encoder} of {target}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text = path("2 Mbit/s", "loss = { kind = \"uniform\", rate = \"1 %\" }", 20, &flow("a", "3 Mbit/s", ""));
    let columns = |seed| {
        let run = output(&text, seed);
        run.series[0].columns.iter().map(|(_, c)| c.iter().map(|v| v.to_bits()).collect()).collect::<Vec<Vec<u64>>>()
    };
    assert_eq!(columns(1), columns(1));
    assert_ne!(columns(1), columns(2));
}

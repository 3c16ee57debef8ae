//! An access point that lowers windows in an 802.11g home: one download, a game, a voice, a film.

use paceline_scenario::{Document, Scenario};
use paceline_sim::summary::FlowSummary;
use paceline_sim::{Recording, RunError, RunOptions, RunOutput, Series, expand, run};
use paceline_units::Span;

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
    let model = expand(&scenario.unwrap_or_else(|error| panic!("{error}")), 1).unwrap();
    let recording = Recording::of(&["windows"], Span::from_secs(1)).unwrap();
    run(&model, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

fn column<'a>(table: &'a Series, name: &str) -> &'a [f64] {
    &table.columns.iter().find(|(column, _)| *column == name).unwrap().1
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

/// What one station sends to another crosses the access point too, on its way down.
#[test]
fn a_flow_between_stations_is_held_back() {
    let text = "duration = \"10 s\"\nwarmup = \"2 s\"\ntopology = \"home\"\n[cell.home]\n\
                windows = { kind = \"fixed\", window = \"20 kB\" }\n[cell.home.station.a]\n[cell.home.station.b]\n\
                [link.web]\nrate = \"1 Mbit/s\"\n[flow.backup]\nfrom = \"a\"\nto = \"b\"\nsegment = \"1000 B\"\n";
    let scenario = Scenario::check(&Document::parse(text, "test.toml").unwrap(), &mut |_| unreachable!()).unwrap();
    let output = run(&expand(&scenario, 1).unwrap(), &RunOptions::default()).unwrap();
    let backup = flow(&output, "backup");
    let expected = 20_000.0 * 8.0 / backup.rtt_mean_s.unwrap();
    assert!((backup.goodput_bps / expected - 1.0).abs() < 0.03, "{} of {expected}", backup.goodput_bps);
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

/// The recording has a row for each decision, and the rows follow the law: left alone until the wait first passes beta with more
/// than ten segments outstanding, then one segment less above beta, here 8 ms, one more below 5 ms, and as it is between.
#[test]
fn what_is_recorded_of_voap_is_its_law() {
    let output = outcome(20, "windows = { kind = \"voap\", beta = \"8 ms\" }", DOWNLOAD);
    let [table] = output.series.as_slice() else { panic!("{} tables", output.series.len()) };
    assert_eq!((table.table, table.labels[0].1.as_str()), ("windows", "download"));
    let [time, advertised, window, outstanding, longest, own, limited] = [
        "time_s",
        "advertised_packets",
        "window_packets",
        "outstanding_packets",
        "longest_wait_s",
        "own_wait_s",
        "limited",
    ]
    .map(|name| column(table, name));
    assert!(time.iter().enumerate().all(|(i, at)| (at - 0.2 * (i + 1) as f64).abs() < 1e-9));
    assert!((399..=400).contains(&time.len()), "{} decisions in 80 s", time.len());
    let joined = limited.iter().position(|&limited| limited > 0.0).expect("it is limited at some time");
    assert!(joined < 20 && limited[joined..].iter().all(|&limited| limited == 1.0));
    assert!(longest[joined] > 0.008 && outstanding[joined] > 10.0);
    assert!((window[joined] - outstanding[joined].floor()).abs() < 1e-9, "it begins with what is outstanding");
    assert!((0..joined).all(|i| window[i].is_nan() && (longest[i] <= 0.008 || outstanding[i] <= 10.0)));
    let mut changes = [0; 3];
    for i in joined + 1..time.len() {
        let expected = if longest[i] > 0.008 { -1.0 } else { f64::from(u8::from(longest[i] < 0.005)) };
        changes[(expected + 1.0) as usize] += 1;
        let step = window[i] - window[i - 1];
        assert!((step - expected).abs() < 1e-9, "{step} at {} s after a wait of {} s", time[i], longest[i]);
        assert!(window[i] < advertised[i] && own[i] <= longest[i]);
    }
    assert!(changes.iter().all(|&count| count > 3), "{changes:?}");
}

#[test]
fn decisions_that_would_not_fit_in_memory_are_refused() {
    let text = "duration = \"1000000 s\"\ntopology = \"home\"\n[cell.home]\nwindows = { kind = \"voap\", interval = \"1 ms\" }\n\
                [cell.home.station.pc]\n[link.web]\nrate = \"1 Mbit/s\"\n[flow.tcp]\n";
    let scenario = Scenario::check(&Document::parse(text, "test.toml").unwrap(), &mut |_| unreachable!()).unwrap();
    let recording = Recording::of(&["windows"], Span::from_secs(1)).unwrap();
    let outcome = run(&expand(&scenario, 1).unwrap(), &RunOptions { recording, ..RunOptions::default() });
    assert!(matches!(outcome, Err(RunError::TooManyDecisions { values: 7_000_000_000 })), "{outcome:?}");
}

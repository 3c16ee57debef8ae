//! BBR 3 on the cases that quiche's authors wrote for their BBRv2, whose successor it is: google/quiche @08b2a466,
//! `bbr2_simulator_test.cc`. Set-up and bounds are theirs.
//!
//! A packet of 1350 bytes goes over 10 Mbit/s and 2 ms, then through the bottleneck of 4 Mbit/s and 30 ms, whose queue holds 2 BDP.
//! Cases of options that the draft does not have are left out, and those of an application that writes small bursts.

use super::read;
use paceline_sim::{Recording, RunOptions, RunOutput, Series, expand, run};
use paceline_units::Span;

const RTT: f64 = 0.0721;
/// Bytes that 4 Mbit/s carry in a round trip.
const BDP: f64 = 4e6 / 8.0 * RTT;
/// 12 and 1 MB of theirs, in segments of ours.
const TWELVE_MB: u64 = 12 << 20;
const ONE_MB: u64 = 1 << 20;

/// One transfer of so many bytes through this bottleneck.
fn transfer(bytes: u64, queue: f64, rate: &str, local: &str, lasts: u32) -> RunOutput {
    let text = format!(
        "duration = \"{lasts} s\"\nhost_delay = \"0 s\"\n[access]\nrate = \"{local}\"\ndelay = \"1 ms\"\n[link.bottleneck]\n{rate}\n\
         delay = \"30 ms\"\nqueue = {{ kind = \"droptail\", limit = \"{queue:.0} B\" }}\n[flow.f]\ncc = \"bbr3\"\n\
         segment = \"1298 B\"\napp = {{ kind = \"ftp\", size = \"{bytes} B\" }}\n",
    );
    let scenario = read::scenario(&text);
    let recording = Recording::of(&["cwnd", "queue"], Span::from_millis(5)).unwrap();
    run(&expand(&scenario, 1).unwrap(), &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

/// A column of the flow's gauges, or of the bottleneck's queue forward.
fn column<'a>(output: &'a RunOutput, name: &str) -> &'a [f64] {
    let table = |s: &&Series| {
        s.table == "cwnd" || s.labels.iter().any(|l| l.1 == "bottleneck") && s.labels.iter().any(|l| l.1 == "forward")
    };
    let mut columns = output.series.iter().filter(table).flat_map(|series| &series.columns);
    &columns.find(|(column, _)| column == name).unwrap_or_else(|| panic!("no {name}")).1
}

fn took(output: &RunOutput) -> f64 {
    output.summary.flows[0].transfer_time_mean_s.expect("it is not done")
}

fn near(found: f64, wanted: f64, off: f64) {
    assert!((found / wanted - 1.0).abs() <= off, "{found}, not {wanted}");
}

/// The places of the gauge `state`: Startup, Drain, and what follows.
const STARTUP: f64 = 0.0;
const DRAIN: f64 = 1.0;
const REFILL: f64 = 4.0;

/// `NormalStartup`: full three rounds after the last growth, nothing lost, the bandwidth within 1 %.
#[test]
fn startup_ends_three_rounds_after_the_last_growth() {
    let output = transfer(TWELVE_MB, 2.0 * BDP, "rate = \"4 Mbit/s\"", "10 Mbit/s", 5);
    let (states, rounds, bandwidth) =
        (column(&output, "state"), column(&output, "round_count"), column(&output, "max_bw_bps"));
    let end = states.iter().position(|&state| state == DRAIN).unwrap();
    let (mut most, mut grew) = (0.0, 0.0);
    for (&bw, &round) in bandwidth[..end].iter().zip(rounds) {
        if bw > most * 1.001 {
            (most, grew) = (bw, round);
        }
    }
    assert_eq!(rounds[end] - grew, 3.0);
    assert_eq!(output.summary.flows[0].packets_lost, 0);
    near(bandwidth[end], 4e6 * 1298.0 / 1350.0, 0.01);
}

/// `SimpleTransfer`: 12 MB in 30 s, nothing lost, and no more than a round trip of queue.
#[test]
fn a_simple_transfer() {
    let output = transfer(TWELVE_MB, 2.0 * BDP, "rate = \"4 Mbit/s\"", "10 Mbit/s", 40);
    assert!(took(&output) <= 30.0, "{} s", took(&output));
    assert_eq!(output.summary.flows[0].packets_lost, 0);
    assert!(*column(&output, "srtt_s").last().unwrap() <= 2.0 * RTT);
}

/// `SimpleTransferSmallBuffer`, `PacketLossOnSmallBufferStartup`: half a BDP of buffer.
#[test]
fn a_small_buffer() {
    let output = transfer(TWELVE_MB, 0.5 * BDP, "rate = \"4 Mbit/s\"", "10 Mbit/s", 40);
    assert!(took(&output) <= 30.0, "{} s", took(&output));
    near(*column(&output, "max_bw_bps").last().unwrap(), 4e6 * 1298.0 / 1350.0, 0.02);
    let output = transfer(ONE_MB, 0.5 * BDP, "rate = \"4 Mbit/s\"", "10 Mbit/s", 15);
    assert!(took(&output) <= 15.0);
    assert!(output.summary.flows[0].loss_rate.unwrap() <= 0.05, "{:?}", output.summary.flows[0].loss_rate);
    assert!(*column(&output, "state").last().unwrap() > DRAIN);
    near(*column(&output, "max_bw_bps").last().unwrap(), 4e6 * 1298.0 / 1350.0, 0.02);
}

/// `BandwidthDecrease`: to a hundredth after 10 s, and 20 MB in 800 s.
#[test]
fn a_hundredth_of_the_bandwidth() {
    let rate = "rate_schedule = [{ at = \"0 s\", rate = \"10 Mbit/s\" }, { at = \"10 s\", rate = \"100 kbit/s\" }]";
    let queue = 2.0 * 10e6 / 8.0 * 0.0681;
    let output = transfer(20 << 20, queue, rate, "15 Mbit/s", 850);
    near(column(&output, "bw_bps")[1990], 10e6 * 1298.0 / 1350.0, 0.1);
    assert!(column(&output, "state")[1990] > DRAIN);
    let before = transfer(20 << 20, queue, rate, "15 Mbit/s", 10);
    assert_eq!(before.summary.flows[0].packets_lost, 0);
    assert!(took(&output) <= 800.0, "{} s", took(&output));
}

/// `BandwidthIncrease`: a hundred times as much after 15 s, found within the 10 MB, which take 50 s more at most.
#[test]
fn a_hundred_times_the_bandwidth() {
    let rate = "rate_schedule = [{ at = \"0 s\", rate = \"100 kbit/s\" }, { at = \"15 s\", rate = \"10 Mbit/s\" }]";
    let output = transfer(10 << 20, 2.0 * 1e5 / 8.0 * 0.29, rate, "15 Mbit/s", 80);
    near(column(&output, "bw_bps")[2990], 1e5 * 1298.0 / 1350.0, 0.1);
    assert!(took(&output) <= 15.0 + 50.0, "{} s", took(&output));
    near(*column(&output, "max_bw_bps").last().unwrap(), 10e6 * 1298.0 / 1350.0, 0.02);
}

/// `Drain`: Startup fills a BDP of queue, Drain leaves less than that, and later the round trip is the path's.
#[test]
fn drain_takes_away_what_startup_put_there() {
    let output = transfer(100 << 20, 2.0 * BDP, "rate = \"4 Mbit/s\"", "10 Mbit/s", 10);
    let (states, queue) = (column(&output, "state"), column(&output, "bytes"));
    let filled = states.iter().position(|&state| state > STARTUP).unwrap();
    assert!(queue[filled] >= 0.95 * BDP, "{} of {BDP}", queue[filled]);
    let drained = states.iter().position(|&state| state > DRAIN).unwrap();
    assert!(queue[drained] <= BDP, "{} of {BDP}", queue[drained]);
    // the first PROBE_REFILL that comes four rounds later or more
    let rounds = column(&output, "round_count");
    let refill = (drained..states.len()).find(|&i| rounds[i] >= rounds[drained] + 4.0 && states[i] == REFILL).unwrap();
    near(column(&output, "srtt_s")[refill], RTT, 0.1);
}

//! NADA in whole scenarios: the balance that RFC 8698 has it come to.
//!
//! By equation 5 a rate rests where the signal is PRIO XREF RMAX / r; without losses and marks the signal is the queueing delay
//! (section 4.2), which all flows behind a queue have in common: they share it by PRIO RMAX, and it says how long it is.

use super::read;
use paceline_sim::{Recording, RunOptions, RunOutput, simulate};
use paceline_units::Span;

const XREF: f64 = 0.010;

/// A link of so many kbit/s, and flows of these priorities, each up to `most` kbit/s, from 60 s on.
fn output(link: u32, priorities: &[u32], most: u32, seed: u64) -> RunOutput {
    let mut text = format!(
        "duration = \"300 s\"\nwarmup = \"60 s\"\n[link.bottleneck]\nrate = \"{link} kbit/s\"\ndelay = \"25 ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"300 ms\" }}\nbackward = {{ rate = \"100 Mbit/s\" }}\n"
    );
    for (i, priority) in priorities.iter().enumerate() {
        text += &format!(
            "[flow.f{i}]\ncc = \"nada\"\nparams = {{ priority = {priority}, max_rate = {most}e3 }}\n\
             rtp = {{ bandwidth = \"10 Mbit/s\" }}\napp = {{ kind = \"encoder\", min_rate = \"150 kbit/s\", \
             max_rate = \"{most} kbit/s\", jitter = \"0 %\", reaction = \"0 s\", key_interval = \"0 s\", key_size = 1 }}\n"
        );
    }
    let scenario = read::scenario(&text);
    let recording = Recording::of(&["rtcp"], Span::from_millis(100)).unwrap();
    simulate(&scenario, seed, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

/// The mean of what a flow takes for the queueing delay, in seconds.
fn queueing(output: &RunOutput, flow: usize) -> f64 {
    let column = |name: &str| &output.series[flow].columns.iter().find(|(n, _)| *n == name).unwrap().1;
    let rows = column("time_s").iter().zip(column("queueing_s"));
    let late: Vec<f64> = rows.filter(|(time, delay)| **time > 60.0 && delay.is_finite()).map(|row| *row.1).collect();
    late.iter().sum::<f64>() / late.len() as f64
}

#[test]
fn equation_5_alone_the_queue_is_as_long_as_the_rate_has_it() {
    for (link, most) in [(750, 1500), (1000, 1500), (1400, 1500), (4000, 5000)] {
        for seed in 1..=2 {
            let output = output(link, &[1], most, seed);
            let flow = &output.summary.flows[0];
            let share = flow.throughput_bps / f64::from(link) / 1e3;
            assert!((0.98..1.001).contains(&share) && flow.packets_lost == 0, "{link}: {share}");
            let balance = XREF * f64::from(most) / f64::from(link);
            let found = queueing(&output, 0);
            assert!((found / balance - 1.0).abs() < 0.1, "{link}: {found}, not {balance}");
        }
    }
}

#[test]
fn equation_5_flows_share_a_link_by_their_priorities() {
    for (link, priorities) in [(2000, &[1, 1][..]), (2000, &[1, 2]), (3000, &[1, 1, 2])] {
        for seed in 1..=2 {
            let output = output(link, priorities, 3000, seed);
            let all: u32 = priorities.iter().sum();
            // PRIO / r is the same of all: the whole's over the link's
            let balance = XREF * f64::from(all) * 3000.0 / f64::from(link);
            for (i, priority) in priorities.iter().enumerate() {
                let part = f64::from(link) * 1e3 * f64::from(*priority) / f64::from(all);
                let (rate, found) = (output.summary.flows[i].throughput_bps, queueing(&output, i));
                assert!((rate / part - 1.0).abs() < 0.05, "{priorities:?} {i}: {rate}, not {part}");
                assert!((found / balance - 1.0).abs() < 0.1, "{priorities:?} {i}: {found}, not {balance}");
            }
        }
    }
}

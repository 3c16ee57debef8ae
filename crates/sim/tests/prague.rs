//! Prague as a whole scenario beside its authors' program: the sender of udp_prague @e8e34353 in a closed loop in virtual time,
//! a packet of 1400 bytes and an acknowledgement for each, over one queue that marks what has waited for more than 1 ms.

use super::read;
use paceline_sim::{RunOptions, simulate};

/// Rate in Mbit/s, mean wait in us, and the shares that are marked and lost, from 15 to 60 s.
fn alone(link: &str, delay_us: u32, queue: &str) -> [f64; 4] {
    let text = format!(
        "duration = \"60 s\"\nwarmup = \"15 s\"\nhost_delay = \"0 s\"\n[access]\nrate = \"10 Gbit/s\"\n\
         [link.bottleneck]\n{link}\ndelay = \"{delay_us} us\"\nqueue = {{ {queue} }}\nbackward = {{ rate = \"10 Gbit/s\" }}\n\
         [flow.one]\ncc = \"prague\"\ntransport = \"quic\"\nsegment = \"1400 B\"\nquic = {{ ack_threshold = 1 }}\n"
    );
    let scenario = read::scenario(&text);
    let summary = simulate(&scenario, 1, &RunOptions::default()).unwrap().summary;
    let (flow, queue) = (&summary.flows[0], &summary.queues[0]);
    let passed = queue.departures as f64;
    let wait = queue.mean_packets * 45.0 / passed * 1e6;
    [flow.throughput_bps / 1e6, wait, queue.marks as f64 / passed, flow.packets_lost as f64 / passed]
}

/// Holds ours to theirs: the rate within `of_rate`, the wait within `of_wait` or 60 us, the share of marks within 0.015.
fn beside(name: &str, ours: [f64; 4], theirs: [f64; 3], of_rate: f64, of_wait: f64) {
    println!("{name}: {ours:?}, {theirs:?} there");
    assert!((ours[0] / theirs[0] - 1.0).abs() < of_rate, "{name}: {ours:?}, {theirs:?} there");
    assert!((ours[1] - theirs[1]).abs() < (of_wait * theirs[1]).max(60.0), "{name}: {ours:?}, {theirs:?} there");
    assert!((ours[2] - theirs[2]).abs() < 0.015, "{name}: {ours:?}, {theirs:?} there");
}

/// CoDel's own law never wakes.
const STEP: &str =
    "kind = \"codel\", target = \"10 s\", interval = \"60 s\", mark_above = \"1 ms\", limit = \"100000 packets\"";

#[test]
fn a_step_of_marks() {
    for (rate, rtt_ms, theirs) in [
        (10, 5, [9.8637, 452.8, 0.1625]),
        (10, 50, [9.7472, 441.1, 0.1904]),
        (10, 100, [9.7838, 250.4, 0.0702]),
        (100, 5, [100.0, 689.4, 0.0405]),
        (100, 20, [99.9772, 603.3, 0.0350]),
        (100, 100, [78.6745, 220.7, 0.0259]),
    ] {
        let ours = alone(&format!("rate = \"{rate} Mbit/s\""), 500 * rtt_ms, STEP);
        beside(&format!("{rate} Mbit/s, {rtt_ms} ms"), ours, theirs, 0.015, 0.05);
    }
    // a packet is longer than the step: each that has to wait is marked
    let slow = alone("rate = \"1 Mbit/s\"", 12_500, STEP);
    beside("1 Mbit/s, 25 ms", slow, [0.9012, 3729.5, 0.5626], 0.05, 0.1);
    // at 25 ms a window of some 22 packets, which is 3 % less here on the average
    let middle = alone("rate = \"10 Mbit/s\"", 12_500, STEP);
    beside("10 Mbit/s, 25 ms", middle, [9.7736, 768.7, 0.2682], 0.035, 0.27);
    let steps = "rate_schedule = [{ at = \"0 s\", rate = \"10 Mbit/s\" }, { at = \"20 s\", rate = \"2 Mbit/s\" }, \
                 { at = \"40 s\", rate = \"10 Mbit/s\" }]";
    beside("10, 2, 10 Mbit/s", alone(steps, 12_500, STEP), [6.1834, 1081.2, 0.2945], 0.035, 0.1);
}

/// Without marks Prague goes by losses: three queues of 1/4, 1 and 4 bandwidth-delay products, and each hundredth packet lost.
#[test]
fn losses() {
    for (limit, theirs, lost) in [
        (15_625, [8.0752, 2918.8, 0.0], 40.0 / 42650.0),
        (62_500, [9.5324, 23795.9, 0.0], 26.0 / 49970.0),
        (250_000, [10.0001, 142_350.1, 0.0], 4.0 / 52572.0),
    ] {
        let ours = alone("rate = \"10 Mbit/s\"", 25_000, &format!("kind = \"droptail\", limit = \"{limit} B\""));
        beside(&format!("{limit} B"), ours, theirs, 0.03, 0.1);
        assert!((ours[3] - lost).abs() < 3e-4, "{limit} B: {ours:?}, {lost} there");
    }
    let each = "rate = \"10 Mbit/s\"\nloss = { kind = \"periodic\", pass = 99, lose = 1, on = \"data\" }";
    let ours = alone(each, 25_000, "kind = \"droptail\", limit = \"10000 packets\"");
    beside("1 of 100", ours, [2.2522, 0.0, 0.0], 0.05, 0.0);
}

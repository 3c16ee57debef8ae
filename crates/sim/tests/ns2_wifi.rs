//! An 802.11 home against ns-2.35 (Debian package ns2, 2.35+dfsg-5): one download and UDP flows both ways through an access
//! point, four stations at 10 m, 54 Mbit/s data and 6 Mbit/s basic rate, slots of 9 us, windows from 15 (ns-2's
//! `Mac/802_11` set to 802.11g's times), three seeds on both sides.
//!
//! ns-2's packets are those of its scenario: a mobile node's routing agent adds 20 B to what starts there, the
//! acknowledgements of the download too, which have 60 B then.

use super::read;
use paceline_scenario::Scenario;
use paceline_sim::{RunOptions, simulate};

/// A point, and what ns-2 gives there: mean and half width of the 95 % interval of the download's goodput in Mbit/s, and of
/// its mean congestion window in packets from 5 s after its start.
struct Point {
    what: &'static str,
    wired_ms: u32,
    queue: u32,
    cc: &'static str,
    rts: bool,
    goodput: (f64, f64),
    window: (f64, f64),
}

const POINTS: [Point; 6] = [
    point("wired 20 ms", 20, 50, "newreno", false, (14.3177, 0.242), (91.59, 1.301)),
    point("wired 5 ms", 5, 50, "newreno", false, (15.6505, 0.042), (53.393, 0.409)),
    point("wired 50 ms", 50, 50, "newreno", false, (10.941, 0.239), (149.83, 4.007)),
    point("queue of 100", 20, 100, "newreno", false, (15.3263, 0.106), (128.4, 1.772)),
    point("RTS", 20, 50, "newreno", true, (10.4825, 0.2223), (75.627, 2.616)),
    point("Vegas", 20, 50, "vegas", false, (12.668, 0.1657), (66.313, 1.05)),
];

const fn point(
    what: &'static str,
    wired_ms: u32,
    queue: u32,
    cc: &'static str,
    rts: bool,
    goodput: (f64, f64),
    window: (f64, f64),
) -> Point {
    Point { what, wired_ms, queue, cc, rts, goodput, window }
}

fn scenario(point: &Point) -> Scenario {
    let Point { wired_ms, queue, cc, rts, .. } = point;
    // ns-2's Vegas has an output of its own, which adds no header.
    let header = if *cc == "vegas" { 0 } else { 40 };
    let rts = if *rts { "rts_threshold = \"0 B\"\n" } else { "" };
    let mut text = format!(
        "duration = \"125 s\"\ntopology = \"home\"\nprofile = \"ns2\"\n\
         [cell.home]\nqueue = {{ limit = \"{queue} packets\" }}\n{rts}"
    );
    for station in ["tv", "console", "phone", "laptop"] {
        text += &format!("[cell.home.station.{station}]\n");
    }
    for server in ["game", "voice", "web"] {
        let queue = "queue = { limit = \"10000 packets\" }";
        text += &format!("[link.{server}]\nrate = \"100 Mbit/s\"\ndelay = \"{wired_ms} ms\"\n{queue}\n");
    }
    text += &format!(
        "[flow.tcp]\nfrom = \"web\"\nto = \"laptop\"\ncc = \"{cc}\"\nstart = \"10 s\"\nsegment = \"1000 B\"\nheader = \"{header} B\"\n\
         ack_size = \"60 B\"\n"
    );
    for (name, from, to, segment, header, rate) in [
        ("film", "ap", "tv", 1000, 20, "1 Mbit/s"),
        ("game-down", "game", "console", 200, 0, "40 kbit/s"),
        ("game-up", "console", "game", 42, 20, "5.6 kbit/s"),
        ("voice-down", "voice", "phone", 160, 0, "64 kbit/s"),
        ("voice-up", "phone", "voice", 160, 20, "64 kbit/s"),
    ] {
        text += &format!(
            "[flow.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\ncc = \"udp\"\nsegment = \"{segment} B\"\nheader = \"{header} B\"\n\
             start = {{ uniform = [\"0 s\", \"20 ms\"] }}\napp = {{ kind = \"cbr\", rate = \"{rate}\" }}\n"
        );
    }
    read::scenario(&text)
}

/// Mean, and half width of the 95 % interval of three values (Student's t with two degrees of freedom).
fn of_three(values: [f64; 3]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / 3.0;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / 2.0;
    (mean, 4.303 * (variance / 3.0).sqrt())
}

#[test]
fn a_download_moves_what_it_does_in_ns2() {
    let mut off = String::new();
    for point in &POINTS {
        let scenario = scenario(point);
        let runs = [1, 2, 3].map(|seed| simulate(&scenario, seed, &RunOptions::default()).unwrap().summary);
        let of = |f: &dyn Fn(&paceline_sim::Summary) -> f64| of_three([0, 1, 2].map(|i| f(&runs[i])));
        let tcp =
            |summary: &paceline_sim::Summary| summary.flows.iter().find(|flow| flow.flow == "tcp").unwrap().clone();
        let (goodput, width) = of(&|s| tcp(s).goodput_bps / 1e6);
        let (window, spread) = of(&|s| tcp(s).cwnd_mean_packets.unwrap());
        for (what, ours, width, (theirs, their_width)) in
            [("goodput", goodput, width, point.goodput), ("cwnd", window, spread, point.window)]
        {
            let bound = (0.03 * theirs).max(width.hypot(their_width));
            let line = format!(
                "{}: {what} {ours:.3} +- {width:.3}, ns-2 {theirs:.3} +- {their_width:.3}, {:+.1} %\n",
                point.what,
                (ours / theirs - 1.0) * 100.0
            );
            print!("{line}");
            if (ours - theirs).abs() > bound {
                off += &line;
            }
        }
    }
    assert!(off.is_empty(), "beyond 3 % and the joint interval:\n{off}");
}

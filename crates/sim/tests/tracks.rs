//! Tracks in whole scenarios: flows that share one QUIC connection, by priority.

use super::read::checked;
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, simulate};
use std::collections::BTreeMap;

fn flows(text: &str, seed: u64) -> BTreeMap<String, FlowSummary> {
    let scenario = checked(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let output = simulate(&scenario, seed, &RunOptions::default()).unwrap();
    output.summary.flows.into_iter().map(|flow| (flow.flow.clone(), flow)).collect()
}

const PATH: &str = "duration = \"60 s\"\nwarmup = \"10 s\"\n[link.bottleneck]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\n\
                    queue = { kind = \"droptail\", limit = \"100 ms\" }\n";

/// Sound, a camera and a download, of these priorities.
fn call(cc: &str, [sound, camera, download]: [u32; 3]) -> String {
    format!(
        "{PATH}[flow.sound]\ncc = \"{cc}\"\ntransport = \"quic\"\nquic = {{ carriage = \"datagrams\" }}\n\
         app = {{ kind = \"voice\" }}\nbundle = {{ priority = {sound} }}\n\
         [flow.camera]\nquic = {{ deadline = \"250 ms\" }}\napp = {{ kind = \"encoder\", max_rate = \"1.5 Mbit/s\" }}\n\
         bundle = {{ with = \"sound\", priority = {camera} }}\n\
         [flow.download]\nbundle = {{ with = \"sound\", priority = {download} }}\n"
    )
}

/// The download takes what the call leaves, and the call does not feel it but for the packet that is on its way.
#[test]
fn who_is_more_urgent_does_not_feel_the_others() {
    let alone = call("c4", [3, 2, 1]);
    let alone = &alone[..alone.find("[flow.download]").unwrap()];
    for seed in 1..=3 {
        let (alone, shared) = (flows(alone, seed), flows(&call("c4", [3, 2, 1]), seed));
        for name in ["sound", "camera"] {
            let [one, all] = [&alone[name], &shared[name]].map(|flow| flow.frame_delay_p95_s.unwrap());
            println!("{name} {seed}: {one:.4} alone, {all:.4} beside a download");
            assert!(all < one + 0.012, "{name} {seed}: {one} alone, {all} beside a download");
            assert!(shared[name].complete_share.unwrap() > 0.995, "{name} {seed}");
        }
        let used: f64 = shared.values().map(|flow| flow.goodput_bps).sum();
        assert!(shared["camera"].goodput_bps > 1.38e6, "{seed}: {}", shared["camera"].goodput_bps);
        assert!(used > 3.6e6, "{seed}: {used}");
    }
}

/// Without priorities the download takes turns with the camera, which has half of what there is, and whose frames wait; a stream that
/// waited too long is reset, and that is counted.
#[test]
fn equals_take_turns() {
    for seed in 1..=3 {
        let of = |priorities| flows(&call("c4", priorities).replace("1.5 Mbit/s", "3 Mbit/s"), seed);
        let (ranked, equal) = (of([3, 2, 1]), of([2, 1, 1]));
        for (flows, rate, delay, reset) in
            [(&ranked, 2.6e6..3e6, 0.04..0.08, 0.0..0.01), (&equal, 1.6e6..2e6, 0.08..0.3, 0.5..1.0)]
        {
            let camera = &flows["camera"];
            let got = (camera.goodput_bps, camera.frame_delay_p95_s.unwrap(), camera.reset_share.unwrap());
            println!("{seed}: camera {got:?}, download {}", flows["download"].goodput_bps);
            assert!(rate.contains(&got.0) && delay.contains(&got.1) && reset.contains(&got.2), "{seed}: {got:?}");
            assert!(flows["sound"].frame_delay_p95_s.unwrap() < 0.035, "{seed}: sound goes first in both");
            assert_eq!(got.2, camera.frames_reset.unwrap() as f64 / camera.frames_sent.unwrap() as f64);
        }
        assert!(equal["camera"].frames_reset > ranked["camera"].frames_reset, "{seed}");
    }
}

/// Nothing is lost on the way from track to connection and back: bytes and frames of every track, on a path that loses none.
#[test]
fn every_track_gets_what_was_written_for_it() {
    let text = format!(
        "{}[flow.lead]\ncc = \"newreno\"\ntransport = \"quic\"\napp = {{ kind = \"ftp\", size = \"2 MB\" }}\nbundle = {{}}\n\
         [flow.file]\nstart = \"1 s\"\napp = {{ kind = \"ftp\", size = \"300 kB\" }}\nbundle = {{ with = \"lead\", priority = 2 }}\n\
         [flow.pages]\napp = {{ kind = \"web\", mean_size = \"20 kB\", arrivals = \"think-persistent\" }}\n\
         bundle = {{ with = \"lead\", priority = 3 }}\n\
         [flow.film]\napp = {{ kind = \"stream\", media_rate = \"500 kbit/s\", length = \"20 s\" }}\nbundle = {{ with = \"lead\" }}\n\
         [flow.moves]\nstart = {{ uniform = [\"0 s\", \"1 s\"] }}\napp = {{ kind = \"game\" }}\nbundle = {{ with = \"lead\", priority = 4 }}\n",
        PATH.replace("warmup = \"10 s\"\n", "")
    );
    let got = flows(&text, 1);
    assert_eq!([&got["lead"], &got["file"]].map(|flow| flow.bytes_delivered), [2_000_000, 300_000]);
    assert_eq!([&got["lead"], &got["file"]].map(|flow| flow.transfers_completed), [1, 1]);
    let pages = &got["pages"];
    assert!(pages.transfers_completed > 20 && pages.transfers_started <= pages.transfers_completed + 1, "{pages:?}");
    // the last may be on their way
    let moves = &got["moves"];
    assert!(moves.frames_sent.unwrap() - moves.frames_complete.unwrap() <= 2 && moves.freezes.is_none(), "{moves:?}");
    assert!(moves.frame_delay_p95_s.unwrap() < 0.12, "{:?}", moves.frame_delay_p95_s);
    assert!(got["lead"].packets_sent > 0 && got["file"].packets_sent == 0 && got["file"].rtt_mean_s.is_none());
    let film = flows(&text, 2).remove("film").unwrap();
    assert!(film.bytes_delivered >= 1_240_000, "{}", film.bytes_delivered);
}

/// A track that stops leaves its part to the others at once, and a flow that leads ends the connection.
#[test]
fn a_track_that_stops_leaves_its_part() {
    let text = call("newreno", [3, 2, 1]).replace("[flow.camera]\n", "[flow.camera]\nstop = \"35 s\"\n");
    let (whole, half) = (flows(&call("newreno", [3, 2, 1]), 1), flows(&text, 1));
    let [before, after] = [&whole, &half].map(|flows| flows["download"].goodput_bps);
    assert!(after - before > 0.5e6, "{before} {after}");
}

/// What is over, or uses little, leaves the rest to the camera, be it more urgent than that or its equal. What would take all has all.
#[test]
fn who_uses_little_claims_little() {
    let path = "duration = \"40 s\"\nwarmup = \"10 s\"\n[link.bottleneck]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\n";
    let quic = "cc = \"cubic\"\ntransport = \"quic\"";
    // it leads, and is led
    let beside = |app: &str, priority: u32| {
        let camera = "[flow.camera]\napp = { kind = \"encoder\", max_rate = \"3 Mbit/s\" }\nbundle";
        let leads = format!(
            "{path}[flow.other]\n{quic}\napp = {{ {app} }}\nbundle = {{ priority = {priority} }}\n{camera} = {{ with = \"other\" }}\n"
        );
        let led = format!(
            "{path}[flow.first]\n{quic}\napp = {{ kind = \"ftp\", size = \"10 kB\" }}\nbundle = {{ priority = 3 }}\n\
             [flow.other]\napp = {{ {app} }}\nbundle = {{ with = \"first\", priority = {priority} }}\n{camera} = {{ with = \"first\" }}\n"
        );
        [leads, led].map(|text| flows(&text, 1)["camera"].goodput_bps)
    };
    let alone = 2.8e6..3e6;
    for app in [
        "kind = \"ftp\", size = \"10 kB\"",
        "kind = \"web\", mean_size = \"20 kB\", arrivals = \"think-persistent\"",
        "kind = \"pareto\", rate = \"300 kbit/s\"",
        "kind = \"stream\", media_rate = \"1 Mbit/s\", xfactor = 1",
        "kind = \"voice\", packets = 100",
        "kind = \"video\", rate = \"19 Mbit/s\", frames = 100",
    ] {
        for priority in [1, 2] {
            let got = beside(app, priority);
            println!("{app}, {priority}: {got:?}");
            assert!(got.iter().all(|rate| alone.contains(rate)), "{app}, {priority}: {got:?}");
        }
    }
    for app in ["kind = \"ftp\"", "kind = \"ftp\", size = \"1 GB\"", "kind = \"cbr\", rate = \"19.5 Mbit/s\""] {
        let got = beside(app, 2);
        println!("{app}: {got:?}");
        assert!(got.iter().all(|&rate| rate < 0.5e6), "{app}: {got:?}");
    }
}

#[test]
fn mistakes_are_reported() {
    let mistake = |of: &str, to: &str| checked(&call("c4", [3, 2, 1]).replace(of, to)).unwrap_err();
    let camera = "[flow.camera]\nquic = { deadline = \"250 ms\" }";
    let cases = [
        (camera, "[flow.camera]\ntransport = \"tcp\"", "flow.camera.transport: must be that of `sound`"),
        (
            camera,
            "[flow.camera]\nquic = { max_streams = 9 }",
            "quic.max_streams: must be that of `sound`, whose connection",
        ),
        (camera, "[flow.camera]\ncc = \"bbr3\"", "flow.camera.cc: must be that of `sound`"),
        (camera, "[flow.camera]\ndelays = true", "flow.camera.delays: is of packets"),
        ("app = { kind = \"voice\" }", "app = { kind = \"web\" }", "use `think-persistent`"),
    ];
    for (of, to, words) in cases {
        let error = mistake(of, to);
        assert!(error.contains(words), "{words}: {error}");
    }
}

//! The traffic of a home: games, voices and videos, what they send, and how it is measured where it arrives.

use paceline_scenario::{Document, Scenario};
use paceline_sim::summary::FlowSummary;
use paceline_sim::{Recording, RunOptions, RunOutput, expand, run};
use paceline_units::Span;

fn outcome(text: &str) -> RunOutput {
    let document = Document::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut trace = "% frames\n".to_owned();
    for n in 0..100 {
        trace += &format!("{n} P 0. {} {}\n", f64::from(n) * 0.04, if n % 10 == 0 { 9000 } else { 2000 });
    }
    let scenario = Scenario::check(&document, &mut |_| Ok(trace.clone()));
    let model = expand(&scenario.unwrap_or_else(|error| panic!("{error}")), 1).unwrap();
    let recording = Recording::of(&["arrivals", "queue"], Span::from_millis(500)).unwrap();
    run(&model, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

fn flow<'a>(output: &'a RunOutput, name: &str) -> &'a FlowSummary {
    output.summary.flows.iter().find(|flow| flow.flow == name).unwrap()
}

fn near(value: Option<f64>, expected: f64, tolerance: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() <= tolerance)
}

const HOME: &str = "duration = \"100 s\"\nwarmup = \"10 s\"\nprofile = \"linux\"\nhost_delay = \"0 s\"\n\
    [flow.down]\ncc = \"udp\"\napp = { kind = \"game\" }\n\
    [flow.up]\ncc = \"udp\"\nfrom = \"right\"\nto = \"left\"\napp = { kind = \"game\", way = \"up\" }\n\
    [flow.voice]\ncc = \"udp\"\napp = { kind = \"voice\" }\n\
    [flow.speech]\ncc = \"udp\"\napp = { kind = \"voice\", codec = \"g729\", spurts = true }\n\
    [flow.video]\ncc = \"udp\"\napp = { kind = \"video\", rate = \"1 Mbit/s\" }\n\
    [flow.movie]\ncc = \"udp\"\napp = { kind = \"video-trace\", file = \"movie\" }\n";

#[test]
fn each_sends_what_it_should() {
    let text = format!("{HOME}[link.bottleneck]\nrate = \"100 Mbit/s\"\ndelay = \"20 ms\"\n");
    let output = outcome(&text);
    // Payload, with the headers of IPv4 and UDP on the wire.
    for (name, packets, size) in [("down", 1800, 200), ("up", 1500, 42), ("voice", 4500, 172)] {
        let it = flow(&output, name);
        assert!(it.packets_sent.abs_diff(packets) <= 1, "{name}: {}", it.packets_sent);
        assert_eq!(it.bytes_delivered, it.packets_delivered * size, "{name}");
        let gap = 90.0 / packets as f64;
        assert!(near(it.interarrival_mean_s, gap, 1e-3 * gap), "{name}: {:?}", it.interarrival_mean_s);
        assert_eq!(it.packets_lost, 0);
    }
    let speech = flow(&output, "speech").packets_sent as f64 / 4500.0;
    assert!((0.2..0.6).contains(&speech), "it speaks for {speech} of the time, P.59: 0.39");
    let video = flow(&output, "video");
    assert!((0.8e6..1.2e6).contains(&video.goodput_bps), "{}", video.goodput_bps);
    // 100 frames in 4 s: 10 of 9000 B in seven datagrams, 90 of 2000 B in two.
    let movie = flow(&output, "movie");
    assert!((movie.goodput_bps / (270_000.0 * 8.0 / 4.0) - 1.0).abs() < 0.01, "{}", movie.goodput_bps);
    assert!(movie.packets_sent.abs_diff(225 * 7 + 2025 * 2) <= 10, "{}", movie.packets_sent);
    let voice = flow(&output, "voice");
    assert!(voice.jitter_s.is_some() && voice.owd_p99_s.is_some());
    assert!(voice.voice_mos.is_some_and(|mos| (4.0..4.42).contains(&mos)), "{:?}", voice.voice_mos);
    // Alone on its way back: nothing but propagation, and transmission on three links.
    let up = flow(&output, "up");
    let alone = 0.020 + 70.0 * 8.0 / 100e6 + 2.0 * 70.0 * 8.0 / 1.03e9;
    assert!(
        near(up.owd_min_s, alone, 1e-6) && near(up.owd_max_s, alone, 1e-6),
        "{:?} {:?}",
        up.owd_min_s,
        up.owd_max_s
    );
    assert!(near(up.jitter_s, 0.0, 1e-6) && near(up.interarrival_sd_s, 0.0, 1e-6));
}

/// What an access point is compared for: a game beside downloads, behind a long drop-tail queue and behind the others.
#[test]
fn a_game_beside_downloads() {
    let beside = |queue: &str| {
        let text = format!(
            "{HOME}[flow.tcp]\ncount = 4\ncc = \"cubic\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
             queue = {{ {queue} }}\n"
        );
        let output = outcome(&text);
        let game = flow(&output, "down");
        let tcp: f64 = output.summary.flows.iter().filter(|flow| flow.cc == "cubic").map(|flow| flow.goodput_bps).sum();
        assert!(output.summary.flows.iter().filter(|flow| flow.cc == "cubic").all(|flow| flow.owd_mean_s.is_none()));
        let (own, delays) = (0.020, [game.owd_p50_s, game.owd_p99_s, game.jitter_s].map(|value| value.unwrap()));
        ([delays[0] - own, delays[1] - own, delays[2]], tcp / 1e6)
    };
    let ([tail, tail_p99, _], tail_tcp) = beside("limit = \"300 kB\"");
    assert!(tail > 0.12 && tail_p99 > tail && tail_tcp > 7.0, "{tail} {tail_p99} {tail_tcp}");
    for (kind, most) in [("codel", 0.03), ("pie", 0.03), ("fq-codel", 0.004)] {
        let ([median, p99, jitter], tcp) = beside(&format!("kind = \"{kind}\""));
        assert!(median < most && p99 < 4.0 * most, "{kind}: {median} {p99}");
        assert!(jitter < 0.01 && tcp > 0.85 * tail_tcp, "{kind}: {jitter} {tcp}");
    }
    // FQ-CoDel: a sparse flow waits for one packet in transmission and hardly more.
    let ([median, _, _], _) = beside("kind = \"fq-codel\"");
    assert!(median < 0.002, "{median}");
}

#[test]
fn arrivals_are_recorded_of_those_that_measure_them() {
    let text = format!(
        "{HOME}[flow.tcp]\ncc = \"cubic\"\n[flow.asked]\ncc = \"newreno\"\ndelays = true\n[link.bottleneck]\n\
         rate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n"
    );
    let output = outcome(&text);
    let tables: Vec<_> = output.series.iter().filter(|series| series.table == "arrivals").collect();
    let names: Vec<&str> = tables.iter().map(|series| series.labels[0].1.as_str()).collect();
    assert_eq!(names, ["asked", "down", "movie", "speech", "up", "video", "voice"]);
    let asked = flow(&output, "asked");
    let column = |name: &str| &tables[0].columns.iter().find(|(column, _)| *column == name).unwrap().1;
    let (times, delays, most) = (column("time_s"), column("owd_s"), column("owd_max_s"));
    assert!(times.len() > 150 && times.iter().zip(delays).all(|(_, delay)| *delay > 0.020));
    let largest = times.iter().zip(most).filter(|(time, _)| **time > 10.5).map(|(_, most)| *most).fold(0.0, f64::max);
    assert!(largest <= asked.owd_max_s.unwrap() && largest > asked.owd_p99_s.unwrap() * 0.95);
    assert!(asked.owd_min_s.unwrap() <= asked.owd_p50_s.unwrap() * 1.02);
    assert!(asked.owd_p50_s < asked.owd_p95_s && asked.owd_p95_s <= asked.owd_p99_s);
}

/// A path takes three quarters of what is written: after 100 minutes what comes has waited 25, in the link's queue or before it was
/// sent, and the stamps that say so have gone round. What goes by has no more than the path's own delay, however long the run.
#[test]
fn packets_are_as_old_as_they_are_however_old() {
    let slow = "cc = \"udp\"\napp = { kind = \"cbr\", rate = \"100 kbit/s\" }";
    let call = "cc = \"gcc\"\napp = { kind = \"encoder\", max_rate = \"100 kbit/s\", min_rate = \"100 kbit/s\", frame_rate = 2 }";
    for (flow_of, limit) in [(slow, "1 GB"), (call, "20 packets")] {
        let text = format!(
            "duration = \"100 min\"\n[link.bottleneck]\nrate = \"75 kbit/s\"\ndelay = \"20 ms\"\nqueue = {{ limit = \"{limit}\" }}\n\
             [flow.old]\n{flow_of}\ndelays = true\n\
             [flow.light]\nfrom = \"right\"\nto = \"left\"\ncc = \"udp\"\nsegment = \"100 B\"\napp = {{ kind = \"cbr\", rate = \"1 kbit/s\" }}\ndelays = true\n"
        );
        let output = outcome(&text);
        let old = flow(&output, "old");
        let (p50, most) = (old.owd_p50_s.unwrap(), old.owd_max_s.unwrap());
        assert!((700.0..850.0).contains(&p50) && (1400.0..1700.0).contains(&most), "{flow_of}: {old:?}");
        assert!(near(old.owd_mean_s, most / 2.0, 30.0), "{flow_of}: {old:?}");
        assert!(old.owd_min_s.unwrap() < 5.0 && old.jitter_s.unwrap() < 1.0, "{flow_of}: {old:?}");
        let light = flow(&output, "light");
        let (mean, most) = (light.owd_mean_s.unwrap(), light.owd_max_s.unwrap());
        assert!(mean > 0.02 && most < 0.1, "{flow_of}: {light:?}");
    }
}

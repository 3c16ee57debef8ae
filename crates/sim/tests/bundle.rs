//! Bundles in whole scenarios: streams of one sender under one controller, as WebRTC's BUNDLE has them.

use super::read::scenario;
use paceline_packet::rtp::Ssrc;
use paceline_packet::{Extra, Flags, FlowId};
use paceline_sim::summary::FlowSummary;
use paceline_sim::{Capture, Captured, Recording, RunOptions, expand, run_captured, simulate};
use paceline_units::Span;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

fn flows(text: &str, seed: u64) -> BTreeMap<String, FlowSummary> {
    let recording = Recording::of(&["rtcp"], Span::from_millis(100)).unwrap();
    let options = RunOptions { recording, ..RunOptions::default() };
    let output = simulate(&scenario(text), seed, &options).unwrap();
    output.summary.flows.into_iter().map(|flow| (format!("{}[{}]", flow.flow, flow.instance), flow)).collect()
}

/// 3 Mbit/s, 40 ms each way, 300 ms of queue.
fn path(seconds: u32, flows: &str) -> String {
    path_with("queue = { kind = \"droptail\", limit = \"300 ms\" }", seconds, flows)
}

fn path_with(link: &str, seconds: u32, flows: &str) -> String {
    format!(
        "duration = \"{seconds} s\"\nwarmup = \"20 s\"\n[link.bottleneck]\nrate = \"3 Mbit/s\"\ndelay = \"40 ms\"\n{link}\n{flows}"
    )
}

/// Sound that leads a camera and a screen of priorities 2 and 1.
fn call(cc: &str, more: &str) -> String {
    let params = if cc == "gcc" { "" } else { "params = { max_rate = 4e6 }\n" };
    format!(
        "[flow.sound]\ncc = \"{cc}\"\n{params}{more}\napp = {{ kind = \"voice\" }}\nbundle = {{ priority = 1 }}\n\
         [flow.camera]\napp = {{ kind = \"encoder\", max_rate = \"2.5 Mbit/s\" }}\nbundle = {{ with = \"sound\", priority = 2 }}\n\
         [flow.screen]\napp = {{ kind = \"encoder\", max_rate = \"2.5 Mbit/s\" }}\nbundle = {{ with = \"sound\" }}\nstart = \"5 s\"\n"
    )
}

const TWCC: &str = "rtp = { feedback = \"twcc\" }";

#[derive(Default)]
struct Seen {
    packets: Vec<Captured>,
}

impl Capture for Seen {
    fn packet(&mut self, captured: &Captured) -> ControlFlow<()> {
        self.packets.push(captured.clone());
        ControlFlow::Continue(())
    }
}

/// Every packet as it left its host: data and, of the other host, reports.
fn captured(text: &str) -> Vec<Captured> {
    let (model, mut seen) = (expand(&scenario(text), 1).unwrap(), Seen::default());
    run_captured(&model, &RunOptions::default(), &mut seen).unwrap();
    seen.packets.retain(|captured| {
        let flow = &model.flows[captured.packet.flow.0 as usize];
        captured.node == if captured.packet.flags.has(Flags::ACK) { flow.sink } else { flow.source }
    });
    seen.packets
}

#[test]
fn the_rate_is_divided_by_priority_and_sound_has_its_own() {
    for (cc, more) in [("gcc", ""), ("nada", TWCC), ("scream", TWCC), ("scream-libwebrtc", TWCC)] {
        for seed in 1..3 {
            let got = flows(&path(90, &call(cc, more)), seed);
            let rate = |name: &str| got[name].goodput_bps / 1e6;
            let (sound, camera, screen) = (rate("sound[0]"), rate("camera[0]"), rate("screen[0]"));
            assert!((sound - 0.064).abs() < 1e-3, "{cc}: {sound}");
            // above the encoders' least rates, 150 kbit/s each
            let ratio = (camera - 0.14) / (screen - 0.14);
            assert!((1.75..2.25).contains(&ratio), "{cc}: {camera} {screen}");
            assert!(sound + camera + screen > 2.0, "{cc}: {camera} {screen}");
        }
    }
}

#[test]
fn all_packets_have_their_numbers_in_one_sequence_and_each_stream_its_own() {
    let lossy = path_with("loss = { rate = \"2 %\" }", 25, &call("gcc", "rtp = { nack = true }"));
    for text in [path(25, &call("gcc", "")), lossy] {
        let (mut next, mut streams, mut resent) = (0u16, BTreeMap::<(u32, Ssrc), u16>::new(), 0);
        let (mut feedback, mut sources) = (0, std::collections::BTreeSet::new());
        for captured in captured(&text) {
            let FlowId(flow) = captured.packet.flow;
            match &captured.extra {
                Some(Extra::Rtp(data)) => {
                    assert_eq!(data.transport, Some(next), "{captured:?}");
                    next = next.wrapping_add(1);
                    let own = streams.entry((flow, data.ssrc)).or_insert(data.sequence);
                    assert_eq!(data.sequence, *own, "{captured:?}");
                    *own = own.wrapping_add(1);
                    resent += u32::from(data.original.is_some());
                }
                Some(Extra::Rtcp(report)) if !report.transport.is_empty() => {
                    assert_eq!(flow, 2, "of the flow that leads alone");
                    feedback += 1;
                    sources.extend(report.transport.iter().map(|feedback| feedback.ssrc.0));
                }
                _ => {}
            }
        }
        assert!(next > 3000 && feedback > 200 && sources.len() == 1, "{next} {feedback} {sources:?}");
        // three sources, and those of what is sent again
        assert!(streams.len() == if resent > 0 { 5 } else { 3 }, "{streams:?} {resent}");
    }
}

#[test]
fn sound_waits_for_no_picture() {
    let text = path(25, &call("gcc", ""));
    let (mut sound, mut pictures) = (Vec::new(), Vec::new());
    for captured in captured(&text) {
        if let Some(Extra::Rtp(_)) = &captured.extra {
            let waited = captured.packet.stamp.elapsed(captured.packet.time);
            if captured.packet.flow == FlowId(2) { &mut sound } else { &mut pictures }.push(waited);
        }
    }
    let longest = |waits: &[Span]| waits.iter().copied().max().unwrap();
    assert!(sound.len() > 1000 && longest(&sound) <= Span::from_micros(200), "{}", longest(&sound));
    assert!(longest(&pictures) > Span::from_millis(5), "{}", longest(&pictures));
}

#[test]
fn what_is_lost_is_sent_again_for_each_stream_but_sound() {
    let text = path_with("loss = { rate = \"1 %\" }", 60, &call("gcc", "rtp = { nack = true }"));
    let got = flows(&text, 1);
    for name in ["camera[0]", "screen[0]"] {
        let flow = &got[name];
        assert!(flow.packets_retransmitted > 10, "{name}: {}", flow.packets_retransmitted);
        assert!(flow.complete_share.unwrap() > 0.995, "{name}: {:?}", flow.complete_share);
    }
    assert_eq!(got["sound[0]"].packets_retransmitted, 0);
}

#[test]
fn who_pauses_leaves_its_part_to_the_others() {
    let pauses =
        "max_rate = \"2.5 Mbit/s\", pauses = [{ from = \"20 s\", to = \"90 s\" }] }\nbundle = { with = \"sound\" }";
    let paused = call("gcc", "").replace("max_rate = \"2.5 Mbit/s\" }\nbundle = { with = \"sound\" }", pauses);
    let (alone, both) = (flows(&path(90, &paused), 1), flows(&path(90, &call("gcc", "")), 1));
    assert!(alone["screen[0]"].goodput_bps < 10e3);
    assert!(alone["camera[0]"].goodput_bps > 1.25 * both["camera[0]"].goodput_bps);
}

/// Beside sound of 0.8 Mbit/s that is over after 5 s a camera has what it has alone.
#[test]
fn who_is_over_leaves_its_part_to_the_others() {
    let alone = "[flow.sound]\ncc = \"gcc\"\napp = { kind = \"voice\" }\nbundle = {}\n\
                 [flow.camera]\napp = { kind = \"encoder\", max_rate = \"2.5 Mbit/s\" }\nbundle = { with = \"sound\" }\n";
    let music = "[flow.music]\napp = { kind = \"voice\", packet = \"1 kB\", interval = \"10 ms\" }\nbundle = { with = \"sound\" }\n";
    let over = music.replace("\"10 ms\"", "\"10 ms\", packets = 500");
    let camera = |more: &str| flows(&path(60, &format!("{alone}{more}")), 1)["camera[0]"].goodput_bps;
    let [alone, over, music] = ["", &over, music].map(camera);
    assert!(
        over > 0.98 * alone && music < 0.85 * alone,
        "{alone} alone, {over} beside what is over, {music} beside what is not"
    );
}

/// To a queue that serves connections in turn a bundle is one.
#[test]
fn a_bundle_is_one_connection() {
    for queue in ["fq-codel", "cake", "fq-pie"] {
        let bulk = "[flow.bulk]\ncc = \"cubic\"\n";
        let text = path_with(&format!("queue = {{ kind = \"{queue}\" }}"), 90, &(call("gcc", "") + bulk));
        let got = flows(&text, 1);
        let of_call: f64 = got.values().filter(|flow| flow.flow != "bulk").map(|flow| flow.goodput_bps).sum();
        let bulk = got["bulk[0]"].goodput_bps;
        assert!(bulk > 0.95 * of_call, "{queue}: {bulk} {of_call}");
    }
}

#[test]
fn several_bundles_of_one_table_are_apart() {
    let many = call("gcc", "").replace("app =", "count = 2\napp =");
    let got = flows(&path(60, &many), 1);
    for instance in ["0", "1"] {
        let rate = |name: &str| got[&format!("{name}[{instance}]")].goodput_bps;
        assert!((rate("sound") - 64e3).abs() < 1e3 && rate("camera") > 1.3 * rate("screen"), "{got:#?}");
    }
}

#[test]
fn a_file_with_every_default_is_the_same_scenario() {
    for (cc, more) in [("gcc", "rtp = { nack = true }"), ("scream", TWCC)] {
        let call = scenario(&path(60, &call(cc, more)));
        assert_eq!(scenario(&call.to_toml()), call);
        let sound = call.flows().iter().find(|flow| flow.name == "sound").unwrap();
        let camera = call.flows().iter().find(|flow| flow.name == "camera").unwrap();
        assert_eq!((&camera.cc, &camera.rtp, camera.segment), (&sound.cc, &sound.rtp, sound.segment));
    }
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let text = path(30, &call("gcc", "rtp = { nack = true }"));
    assert_eq!(format!("{:?}", flows(&text, 7)), format!("{:?}", flows(&text, 7)));
}

//! Calls whose frames need each other: retransmissions, key frames on request, the jitter buffer, skipped frames.

use paceline_scenario::{Document, Scenario};
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, simulate};

/// The mistakes that are found, or the only flow.
fn try_run(text: &str, seed: u64) -> Result<FlowSummary, String> {
    let document = Document::parse(text, "call.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err("none".into())).map_err(|error| error.to_string())?;
    Ok(simulate(&scenario, seed, &RunOptions::default()).unwrap().summary.flows.remove(0))
}

fn call(path: &str, rtp: &str, app: &str) -> String {
    format!(
        "duration = \"60 s\"\n[link.bottleneck]\nrate = \"4 Mbit/s\"\ndelay = \"25 ms\"\n{path}\n\
         [flow.call]\ncc = \"gcc\"\nrtp = {{ feedback = \"twcc\"{rtp} }}\n\
         app = {{ kind = \"encoder\", max_rate = \"2.5 Mbit/s\", key_interval = \"0 s\"{app} }}\n"
    )
}

fn run(path: &str, rtp: &str, app: &str, seed: u64) -> FlowSummary {
    let flow = try_run(&call(path, rtp, app), seed).unwrap();
    let (sent, complete) = (flow.frames_sent.unwrap(), flow.frames_complete.unwrap());
    assert_eq!(sent + flow.frames_skipped.unwrap(), 1800, "{flow:?}");
    assert!(complete <= sent, "{flow:?}");
    if let (Some(shown), Some(undecodable)) = (flow.frames_shown, flow.frames_undecodable) {
        assert!(shown + undecodable <= complete && flow.frames_late.unwrap() <= shown, "{flow:?}");
        assert!(flow.key_frames.unwrap() >= 1, "{flow:?}");
    }
    flow
}

const BUFFER: &str = ", jitter_buffer = {}";

fn shown(flow: &FlowSummary) -> f64 {
    flow.frames_shown.unwrap() as f64 / flow.frames_sent.unwrap() as f64
}

#[test]
fn without_losses_every_frame_is_shown_and_nothing_is_asked_for() {
    for rtp in ["", ", nack = true"] {
        let flow = run("", rtp, BUFFER, 1);
        assert_eq!((flow.packets_lost, flow.packets_retransmitted), (0, 0), "{flow:?}");
        assert_eq!((flow.nacks, flow.plis, flow.key_frames), (Some(0), Some(0), Some(1)), "{flow:?}");
        assert!(shown(&flow) > 0.99 && flow.frames_undecodable == Some(0) && flow.freezes == Some(0), "{flow:?}");
        // 25 ms of the path, a frame's serialisation and what the pacer takes
        assert!((0.03..0.2).contains(&flow.frame_delay_mean_s.unwrap()), "{flow:?}");
        assert!((0.001..0.1).contains(&flow.feedback_share.unwrap()), "{flow:?}");
    }
}

#[test]
fn retransmissions_repair_losses_of_2_and_10_percent() {
    // at 10 % the controller falls below the encoder, and the last seconds of frames still wait at the sender when the run ends
    for (loss, freezes, least) in [("2 %", 3, 0.99), ("10 %", 3, 0.9)] {
        let path = format!("loss = {{ kind = \"uniform\", rate = \"{loss}\", on = \"data\" }}");
        for seed in 1..=3 {
            let with = run(&path, ", nack = true", BUFFER, seed);
            let without = run(&path, "", BUFFER, seed);
            let about = format!("{loss}, seed {seed}:\n{with:?}\n{without:?}");
            assert!(shown(&with) > least && shown(&with) > shown(&without) + 0.1, "{about}");
            assert!(with.freezes.unwrap() <= freezes && with.freeze_s.unwrap() < without.freeze_s.unwrap(), "{about}");
            // what is lost is sent again, but for fillers; few requests are for what is on its way
            let (lost, again) = (with.packets_lost as f64, with.packets_retransmitted as f64);
            let nacks = with.nacks.unwrap() as f64;
            assert!((0.75 * nacks..=nacks).contains(&again), "{about}");
            assert!((0.7 * lost..1.3 * lost).contains(&again), "{about}");
            assert_eq!((without.packets_retransmitted, without.nacks), (0, Some(0)), "{about}");
            assert!(without.plis.unwrap() > 10 && without.key_frames.unwrap() > 5, "{about}");
        }
    }
}

/// A viewer without a buffer has the packets that are sent again, too.
#[test]
fn what_is_sent_again_completes_frames_without_a_buffer() {
    let path = "loss = { kind = \"uniform\", rate = \"2 %\", on = \"data\" }";
    let share = |rtp: &str| {
        let flow = run(path, rtp, "", 1);
        flow.frames_complete.unwrap() as f64 / flow.frames_sent.unwrap() as f64
    };
    assert!(share("") < 0.9 && share(", nack = true") > 0.99, "{} {}", share(""), share(", nack = true"));
}

/// Bursts of some 100 packets: the first frames are repaired or given up for a key frame, and the picture goes on.
#[test]
fn a_burst_needs_a_key_frame() {
    let path = "loss = { kind = \"gilbert-elliott\", to_bad = \"0.03 %\", to_good = \"1 %\", bad_rate = \"95 %\" }";
    let buffer = ", jitter_buffer = { key_request_after = \"200 ms\" }";
    for seed in 1..=3 {
        let flow = run(path, ", nack = true", buffer, seed);
        assert!(flow.plis.unwrap() > 0 && flow.key_frames.unwrap() > 1, "seed {seed}: {flow:?}");
        assert!(flow.freezes.unwrap() > 0 && shown(&flow) > 0.4, "seed {seed}: {flow:?}");
    }
}

#[test]
fn frames_are_skipped_where_the_senders_queue_is_long() {
    let steps = "rate_schedule = [{ at = \"0 s\", rate = \"4 Mbit/s\" }, { at = \"30 s\", rate = \"200 kbit/s\" }]";
    let path = call("", ", nack = true", ", jitter_buffer = {}, max_queue = \"200 ms\"");
    let text = path
        .replace("rate = \"4 Mbit/s\"", steps)
        .replace("kind = \"encoder\"", "kind = \"encoder\", reaction = \"3 s\"");
    let flow = try_run(&text, 1).unwrap();
    assert!(flow.frames_skipped.unwrap() > 5, "{flow:?}");
    assert_eq!(flow.frames_sent.unwrap() + flow.frames_skipped.unwrap(), 1800, "{flow:?}");
    let free = try_run(&text.replace(", max_queue = \"200 ms\"", ""), 1).unwrap();
    assert_eq!(free.frames_skipped, Some(0));
}

#[test]
fn what_does_not_go_together_is_told() {
    let error = |rtp: &str, app: &str, cc: &str| {
        let text = call("", rtp, app).replace("\"gcc\"", cc);
        try_run(&text, 1).unwrap_err()
    };
    let rfc8888 = call("", ", nack = true", "").replace("\"twcc\"", "\"rfc8888\"");
    assert!(try_run(&rfc8888, 1).unwrap_err().contains("nack"), "transport-wide numbers");
    assert!(
        error("", ", jitter_buffer = { min_margin = \"2 s\", max_margin = \"1 s\" }", "\"gcc\"").contains("min_margin")
    );
}

#[test]
fn the_same_seed_gives_the_same_call() {
    let of = |seed| format!("{:?}", run("loss = { rate = \"5 %\" }", ", nack = true", BUFFER, seed));
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
}

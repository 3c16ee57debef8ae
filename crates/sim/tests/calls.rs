//! Calls in whole scenarios: NADA on the arrivals that RFC 8888 reports, with an encoder that follows it.

use paceline_scenario::{Document, Scenario};
use paceline_sim::summary::{FlowSummary, Summary};
use paceline_sim::{Recording, RunOptions, RunOutput, simulate};
use paceline_units::Span;

fn output(text: &str, seed: u64) -> RunOutput {
    output_with(text, seed, &mut |_| Err("none".into()))
}

fn output_with(text: &str, seed: u64, read: &mut dyn FnMut(&str) -> Result<String, String>) -> RunOutput {
    let document = Document::parse(text, "call.toml").unwrap();
    let scenario = Scenario::check(&document, read).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let recording = Recording::of(&["rtcp"], Span::from_millis(100)).unwrap();
    simulate(&scenario, seed, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

/// A column of the only flow's recording.
fn column<'a>(output: &'a RunOutput, name: &str) -> &'a [f64] {
    &output.series[0].columns.iter().find(|(n, _)| *n == name).unwrap().1
}

fn path(rate: &str, more: &str, flows: &str) -> String {
    format!(
        "duration = \"60 s\"\nwarmup = \"20 s\"\n[link.bottleneck]\nrate = \"{rate}\"\ndelay = \"25 ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"300 ms\" }}\n{more}\n{flows}"
    )
}

const CALL: &str = "[flow.call]\ncc = \"nada\"\napp = { kind = \"encoder\" }\n";

fn call(summary: &Summary) -> &FlowSummary {
    summary.flows.iter().find(|flow| flow.flow == "call").unwrap()
}

#[test]
fn alone_it_fills_the_link_with_a_short_queue() {
    // a key frame is 0.13 s of the link and would freeze the picture now and then
    let smooth = CALL.replace("\"encoder\"", "\"encoder\", key_interval = \"0 s\"");
    for seed in 1..=3 {
        let output = output(&path("1 Mbit/s", "", &smooth), seed);
        let flow = call(&output.summary);
        assert!((0.85e6..1.0e6).contains(&flow.throughput_bps), "seed {seed}: {flow:?}");
        assert_eq!((flow.packets_lost, flow.timeouts), (0, 0), "seed {seed}: {flow:?}");
        // RFC 8698 section 4.3: at rest x_curr = PRIO XREF RMAX / r_ref, here 15 ms of queue
        assert!((0.050..0.09).contains(&flow.rtt_p50_s.unwrap()), "seed {seed}: {flow:?}");
        assert_eq!(flow.frames_sent, Some(1200), "seed {seed}: {flow:?}");
        assert!(flow.frames_complete.unwrap() >= 1190, "seed {seed}: {flow:?}");
        assert!(
            flow.frame_delay_p50_s.unwrap() > 0.025 && flow.frame_delay_p95_s.unwrap() < 0.2,
            "seed {seed}: {flow:?}"
        );
        assert_eq!(flow.freezes, Some(0), "seed {seed}: {flow:?}");
    }
}

#[test]
fn the_encoder_follows_the_rate_down_and_up() {
    let steps = "rate_schedule = [{ at = \"0 s\", rate = \"2 Mbit/s\" }, { at = \"30 s\", rate = \"500 kbit/s\" }, \
                 { at = \"45 s\", rate = \"2 Mbit/s\" }]";
    let text = path("1 Mbit/s", "", CALL).replace("rate = \"1 Mbit/s\"", steps);
    let output = output(&text, 1);
    let (time, rate) = (column(&output, "time_s"), column(&output, "allowed_bps"));
    let mean = |from: f64, to: f64| {
        let within: Vec<f64> =
            time.iter().zip(rate).filter(|(t, _)| (from..to).contains(*t)).map(|(_, r)| *r).collect();
        within.iter().sum::<f64>() / within.len() as f64
    };
    assert!(mean(25.0, 30.0) > 1.4e6, "{}", mean(25.0, 30.0));
    assert!((0.3e6..0.55e6).contains(&mean(38.0, 45.0)), "{}", mean(38.0, 45.0));
    assert!(mean(55.0, 60.0) > 1.2e6, "{}", mean(55.0, 60.0));
}

/// RFC 8593 section 6: files named by their rates, of a sequence whose frames are in turn half and one and a half times a mean one.
#[test]
fn an_encoder_plays_what_was_recorded_at_several_rates() {
    let rates: Vec<u32> = (1..=5).map(|step| step * 400_000).collect();
    let traces: Vec<String> =
        rates.iter().map(|rate| format!("{{ rate = \"{rate} bit/s\", file = \"{rate}\" }}")).collect();
    let flow =
        CALL.replace("\"encoder\"", &format!("\"encoder\", max_rate = \"3 Mbit/s\", traces = [{}]", traces.join(", ")));
    let mut read = |file: &str| {
        let mean = file.parse::<u32>().map_err(|error| error.to_string())? / 240;
        Ok((0..900).map(|frame| format!("{}\n", mean / 2 + frame % 2 * mean)).collect::<String>())
    };
    let output = output_with(&path("1500 kbit/s", "", &flow), 1, &mut read);
    let flow = call(&output.summary);
    assert!((1.2e6..1.5e6).contains(&flow.throughput_bps), "{flow:?}");
    // the encoder's rate has headers in it, what is recorded does not
    let follows = column(&output, "encoder_bps").iter().skip(200).sum::<f64>()
        / (column(&output, "encoder_bps").len() - 200) as f64;
    assert!((flow.throughput_bps / follows - 1.0).abs() < 0.03, "{} of {follows}", flow.throughput_bps);
}

#[test]
fn recordings_show_the_signal_and_what_the_encoder_makes_of_the_rate() {
    let output = output(&path("1 Mbit/s", "", CALL), 1);
    let row = |name| column(&output, name);
    let (allowed, signal, queueing) = (row("allowed_bps"), row("signal_s"), row("queueing_s"));
    let (target, encoder) = (row("target_bps"), row("encoder_bps"));
    assert!(signal[0].is_nan() && queueing[0].is_nan(), "nothing is known before the first feedback");
    let known = 5..signal.len();
    assert!(known.clone().all(|i| (0.0..0.5).contains(&signal[i]) && queueing[i] <= 0.3), "{signal:?}");
    // RFC 8698 equations 1 and 2: without losses and marks the signal is the queueing delay
    let clean = known.clone().filter(|&i| row("reported_loss")[i] == 0.0).collect::<Vec<_>>();
    assert!(clean.len() > 300 && clean.iter().all(|&i| signal[i] == queueing[i]));
    // section 5.2.2: the encoder is told at most 5 % less than the reference rate, and never less than RMIN, its
    // own least rate
    let most = |i: usize| (0.95 * allowed[i]).max(100e3) - 1.0..=allowed[i] + 1.0;
    assert!(known.clone().all(|i| most(i).contains(&target[i])), "{target:?}");
    assert!(known.clone().any(|i| target[i] < 0.96 * allowed[i]), "a key frame waits at the sender");
    // it follows at its next frame but one after a reaction time: what it follows was a target within the last 0.3 s
    let followed =
        known.filter(|&i| target[i.saturating_sub(3)..=i].iter().any(|t| (t / encoder[i] - 1.0).abs() < 0.1));
    assert!(followed.count() > 560, "{encoder:?}");
}

#[test]
fn feedback_takes_the_share_that_it_may() {
    let reports = |rtp: &str| {
        let text = path("1 Mbit/s", "", &format!("{CALL}rtp = {rtp}\n"));
        let summary = output(&text, 1).summary;
        let queue = summary.queues.iter().find(|queue| queue.direction == "backward").unwrap();
        (queue.departures as f64 / 40.0, queue.departed_bytes as f64 * 8.0 / 40.0)
    };
    // 10 and 5 a second, and RTP's own reports each 5 s beside them
    let (each_100_ms, each_200_ms) = (reports("{}"), reports("{ feedback_interval = \"200 ms\" }"));
    assert!((10.0..10.8).contains(&each_100_ms.0) && (5.0..5.6).contains(&each_200_ms.0), "{each_100_ms:?}");
    // 5 % of 100 kbit/s
    let (_, bits) = reports("{ bandwidth = \"100 kbit/s\" }");
    assert!((4.5e3..5.5e3).contains(&bits), "{bits}");
}

/// Both kinds of feedback lead NADA to the same rate; what leaves sooner or shorter takes what it should of the way back.
#[test]
fn whichever_feedback_tells_of_arrivals() {
    let run = |rtp: &str| {
        let text = path("1 Mbit/s", "", &format!("{CALL}rtp = {{ bandwidth = \"4 Mbit/s\"{rtp} }}\n"));
        let summary = output(&text, 1).summary;
        let queue = summary.queues.iter().find(|queue| queue.direction == "backward").unwrap();
        let flow = call(&summary);
        assert!((0.8e6..1.0e6).contains(&flow.throughput_bps) && flow.timeouts == 0, "{rtp}: {flow:?}");
        // one third of the run is not measured
        (queue.departures as f64 / 40.0, queue.departed_bytes as f64 / queue.departures as f64, flow.rtt_p50_s.unwrap())
    };
    let by_number = run("");
    let twcc = run(", feedback = \"twcc\"");
    assert!((10.0..10.8).contains(&twcc.0), "{twcc:?}");
    // of the 10 packets of a tenth of a second, RFC 8888 tells in two bytes each, this one in one and a chunk or two
    assert!(twcc.1 < by_number.1, "{twcc:?} {by_number:?}");
    // the last packet before the feedback came up to a packet's time before it
    assert!(twcc.2 > by_number.2 && twcc.2 < by_number.2 + 0.03, "{twcc:?} {by_number:?}");
    let alone = run(", feedback = \"twcc\", reduced_size = true");
    assert!((42.0..44.5).contains(&(twcc.1 - alone.1)), "{twcc:?} {alone:?}");
    // 30 frames a second, each with its feedback
    let frames = run(", feedback_frames = true");
    assert!((29.5..33.0).contains(&frames.0), "{frames:?}");
    let packets = run(", feedback_packets = 2, feedback_interval = \"1 s\"");
    assert!((35.0..60.0).contains(&packets.0), "{packets:?}");
    // 5 % of 110 kbyte/s take 100 bytes each 18 ms; 0.5 %, each 180 ms or so
    assert!((19.5..20.8).contains(&run(", feedback_share = \"5 %\"").0));
    let (each, size, _) = run(", feedback_share = \"0.5 %\"");
    assert!((0.8..1.1).contains(&(each * size / (0.005 * 0.95e6 / 8.0))), "{each} {size}");
}

#[test]
fn marks_are_heeded_before_anything_is_lost() {
    let red = "[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"25 ms\"\nqueue = { kind = \"red\", limit = \"50 packets\", \
               min_threshold = 2, max_threshold = 20, ecn = true }\n";
    let run = |ecn: bool| {
        let head = "duration = \"60 s\"\nwarmup = \"20 s\"\n";
        // a signal of 75 ms at rest: beyond the queue at which RED begins
        let flow = CALL.replace("app =", "params = { x_ref = 0.05, max_rate = 1.5e6 }\napp =");
        output(&format!("{head}{red}{flow}ecn = {ecn}\n"), 1).summary
    };
    let (with, without) = (run(true), run(false));
    let (with, without) = (call(&with), call(&without));
    assert!(with.ecn_marks > 10 && with.packets_lost == 0, "{with:?}");
    assert!(without.ecn_marks == 0 && without.packets_lost > 0, "{without:?}");
    assert!(with.throughput_bps > 0.4e6, "{with:?}");
}

#[test]
fn a_bad_path_costs_frames_and_no_packet_is_unaccounted_for() {
    let bad = "loss = { kind = \"uniform\", rate = \"2 %\" }\nduplicate = { rate = \"2 %\" }\n\
               reorder = { rate = \"2 %\", extra = \"30 ms\" }\ncorrupt = { rate = \"1 %\" }\n\
               backward = { loss = { kind = \"uniform\", rate = \"20 %\" } }\n";
    let summary = output(&path("1 Mbit/s", bad, CALL), 1).summary;
    let flow = call(&summary);
    let complete = flow.frames_complete.unwrap() as f64 / flow.frames_sent.unwrap() as f64;
    assert!((0.5..0.98).contains(&complete), "{flow:?}");
    assert!(flow.acks_lost > 20 && flow.packets_lost > 0 && flow.goodput_bps > 1e5, "{flow:?}");
    assert!(flow.rtt_min_s.unwrap() > 0.049, "{flow:?}");
}

#[test]
fn an_outage_freezes_the_picture_once() {
    let outage = "outage = [{ from = \"40 s\", to = \"42 s\" }]\n";
    let summary = output(&path("1 Mbit/s", outage, CALL), 1).summary;
    let flow = call(&summary);
    assert!((1..=6).contains(&flow.freezes.unwrap()) && flow.freeze_s.unwrap() > 1.9, "{flow:?}");
    assert!(flow.timeouts > 0, "silence was noticed: {flow:?}");
}

/// TFRC carries frames on its own machine: it fills the link as TCP does, until the queue is full.
#[test]
fn tfrc_may_drive_an_encoder() {
    let text = path("1 Mbit/s", "", &CALL.replace("nada", "tfrc"));
    for seed in 1..=3 {
        let summary = output(&text, seed).summary;
        let flow = call(&summary);
        // a packet more or less at either end of what is measured
        assert!((0.9e6..1.001e6).contains(&flow.throughput_bps), "seed {seed}: {flow:?}");
        assert_eq!(flow.frames_sent, Some(1200), "seed {seed}: {flow:?}");
        let (complete, lost) = (flow.frames_complete.unwrap(), flow.packets_lost);
        assert!(complete + lost >= 1190 && complete >= 1100, "seed {seed}: {flow:?}");
        // one way, and up to 300 ms of queue; what waits at the sender too
        let delay = flow.frame_delay_p95_s.unwrap();
        assert!((0.2..0.6).contains(&delay), "seed {seed}: {flow:?}");
    }
}

#[test]
fn lda_plus_may_drive_an_encoder_too() {
    let text = path("1 Mbit/s", "", &CALL.replace("nada", "lda-plus"));
    let summary = output(&text, 1).summary;
    let flow = call(&summary);
    assert!(flow.frames_sent == Some(1200) && flow.frames_complete.unwrap() > 1000, "{flow:?}");
}

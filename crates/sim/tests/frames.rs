//! The recording `frames`: what became of encoders' frames, interval by interval.

use super::read::scenario;
use paceline_sim::summary::FlowSummary;
use paceline_sim::{Recording, RunError, RunOptions, RunOutput, expand, simulate};
use paceline_units::Span;

fn run(text: &str, kinds: &[&str], every: Span) -> Result<RunOutput, RunError> {
    let recording = Recording::of(kinds, every).unwrap();
    simulate(&scenario(text), 3, &RunOptions { recording, ..RunOptions::default() })
}

fn recorded(text: &str) -> RunOutput {
    run(text, &["frames"], Span::from_millis(50)).unwrap()
}

/// A call that begins as measuring does and is over before the run is, and datagrams beside it.
fn call(path: &str, rtp: &str, app: &str) -> String {
    format!(
        "duration = \"32 s\"\nwarmup = \"2 s\"\n[link.bottleneck]\nrate = \"4 Mbit/s\"\ndelay = \"60 ms\"\n{path}\n\
         [flow.call]\ncc = \"gcc\"\nstart = \"2 s\"\nstop = \"30 s\"\nrtp = {{ feedback = \"twcc\"{rtp} }}\n\
         app = {{ kind = \"encoder\", max_rate = \"1.5 Mbit/s\"{app} }}\n[flow.beside]\ncc = \"udp\"\napp = {{ kind = \"cbr\", rate = \"100 kbit/s\" }}\n"
    )
}

fn column<'a>(output: &'a RunOutput, name: &str) -> &'a [f64] {
    &output.series[0].columns.iter().find(|(column, _)| *column == name).unwrap().1
}

fn flow<'a>(output: &'a RunOutput, name: &str) -> &'a FlowSummary {
    output.summary.flows.iter().find(|flow| flow.flow == name).unwrap()
}

/// Holds rows against the flow's own measures, of which `frames` tells how many frames have delays.
fn agree(output: &RunOutput, frames: impl Fn(&FlowSummary) -> Option<u64>) {
    let names: Vec<(&str, &str)> = output.series.iter().map(|one| (one.table, one.labels[0].1.as_str())).collect();
    assert_eq!(names, [("frames", "call")]);
    let (of, flow) = (|name| column(output, name), flow(output, "call"));
    let (counts, means, most) = (of("frames"), of("frame_delay_s"), of("frame_delay_max_s"));
    assert_eq!(counts.len(), 32 * 20 - 1, "a row for each interval that ends in the run");
    let sum: f64 = counts.iter().sum();
    assert_eq!(Some(sum as u64), frames(flow), "{flow:?}");
    assert!(sum > 500.0, "{flow:?}");
    let shown = || counts.iter().zip(means.iter().zip(most)).filter(|(count, _)| **count > 0.0);
    let mean = shown().map(|(count, (mean, _))| count * mean).sum::<f64>() / sum;
    assert!((mean - flow.frame_delay_mean_s.unwrap()).abs() < 1e-8, "{mean} {flow:?}");
    assert!(shown().all(|(_, (mean, most))| 0.06 < *mean && *mean <= *most + 1e-12));
    let greatest = shown().map(|(_, (_, most))| *most).fold(0.0, f64::max);
    assert!(greatest >= flow.frame_delay_p99_s.unwrap(), "{greatest} {flow:?}");
    let empty = counts.iter().zip(means.iter().zip(most)).filter(|(count, _)| **count == 0.0);
    assert!(empty.clone().count() > 60 && empty.clone().all(|(_, (mean, most))| mean.is_nan() && most.is_nan()));
}

#[test]
fn rows_sum_to_what_the_flow_has_of_frames() {
    for path in ["", "loss = { kind = \"uniform\", rate = \"1 %\" }"] {
        let output = recorded(&call(path, "", ""));
        agree(&output, |flow| flow.frames_complete);
        let flow = flow(&output, "call");
        assert_eq!(path.is_empty(), flow.complete_share > Some(0.99), "{flow:?}");
    }
}

/// With a buffer frames count as they are shown, which no packet has to come for.
#[test]
fn with_a_jitter_buffer_rows_sum_to_the_frames_shown() {
    let app = ", jitter_buffer = { min_margin = \"120 ms\" }";
    let text = call("loss = { kind = \"uniform\", rate = \"2 %\" }", ", nack = true", app);
    let output = recorded(&text);
    agree(&output, |flow| flow.frames_shown);
    let flow = flow(&output, "call");
    assert!(flow.frames_shown > Some(800) && flow.jitter_buffer_delay_s > Some(0.1), "{flow:?}");
}

/// The picture stands through an outage, and until a first one comes; of a flow that is over none stands any longer.
#[test]
fn the_time_that_the_picture_stands_grows_in_an_outage() {
    let output = recorded(&call("outage = [{ from = \"10 s\", to = \"12 s\" }]", "", ""));
    let (times, stands) = (column(&output, "time_s"), column(&output, "picture_age_s"));
    let at = |second: f64| stands[times.iter().position(|time| (time - second).abs() < 1e-9).unwrap()];
    assert_eq!((at(1.0), at(2.0)), (0.0, 0.0));
    // before the first frame, from the flow's start on: 60 ms of the path and more
    assert_eq!(at(2.05), 0.05);
    assert!(times.iter().zip(stands).all(|(time, stands)| !(3.0..10.0).contains(time) || *stands < 0.3));
    let (early, late) = (at(10.5), at(11.9));
    assert!((0.45..0.56).contains(&early) && (late - early - 1.4).abs() < 1e-6, "{early} {late}");
    // what lasts longest is what the flow says of its freezes
    let flow = flow(&output, "call");
    let longest = stands.iter().copied().fold(0.0, f64::max);
    assert!(longest > 1.95 && longest <= flow.freeze_s.unwrap(), "{longest} {flow:?}");
    let last = at(31.95);
    assert!(last < 0.1 && (last - at(30.5)).abs() < 1e-12, "{last}");
}

#[test]
fn recording_changes_nothing_and_is_there_with_an_encoder_alone() {
    let text = call("", ", nack = true", ", jitter_buffer = {}");
    let (with, without) = (recorded(&text), run(&text, &[], Span::from_millis(50)).unwrap());
    assert_eq!(format!("{:?}", with.summary), format!("{:?}", without.summary));
    assert!(without.series.is_empty());
    let of = |text: &str| Recording::possible(&expand(&scenario(text), 1).unwrap()).contains(&"frames");
    let steady =
        "duration = \"1 s\"\n[link.bottleneck]\nrate = \"4 Mbit/s\"\ndelay = \"25 ms\"\n[flow.call]\ncc = \"gcc\"\n";
    assert!(of(&text) && !of(steady) && of(&format!("{steady}app = {{ kind = \"encoder\" }}\n")));
}

#[test]
fn what_would_not_fit_in_memory_is_refused() {
    let text = call("", "", "");
    let every = Span::from_micros(1) / 2;
    let refused = run(&text, &["frames"], every);
    // five columns of the one call, 64 million rows
    assert!(matches!(refused, Err(RunError::TooMuchRecorded { values: 320_000_000, .. })), "{:?}", refused.err());
}

/// A path takes three quarters of what is written, and who sends keeps the rest: after 100 minutes frames are 25 minutes old, and
/// the stamps that they carry have gone round.
#[test]
fn frames_are_as_old_as_they_are_however_old() {
    for flow_of in ["cc = \"cubic\"\ntransport = \"quic\"", "cc = \"tfrc\"", "cc = \"gcc\""] {
        let text = format!(
            "duration = \"100 min\"\n[link.bottleneck]\nrate = \"75 kbit/s\"\ndelay = \"20 ms\"\nqueue = {{ limit = \"20 packets\" }}\n\
             [flow.call]\n{flow_of}\n\
             app = {{ kind = \"encoder\", max_rate = \"100 kbit/s\", min_rate = \"100 kbit/s\", frame_rate = 2 }}\n"
        );
        let output = run(&text, &["frames"], Span::from_secs(60)).unwrap();
        let (means, most) = (column(&output, "frame_delay_s"), column(&output, "frame_delay_max_s"));
        let grows = means.windows(2).all(|pair| (10.0..20.0).contains(&(pair[1] - pair[0])));
        assert!(grows && means[0] < 20.0 && means[98] > 1400.0, "{flow_of}: {means:?}");
        assert!(means.iter().zip(most).all(|(mean, most)| (0.0..20.0).contains(&(most - mean))), "{flow_of}: {most:?}");
        let flow = flow(&output, "call");
        let (p50, most) = (flow.frame_delay_p50_s.unwrap(), flow.frame_delay_max_s.unwrap());
        assert!((700.0..800.0).contains(&p50) && (1420.0..1600.0).contains(&most), "{flow_of}: {flow:?}");
    }
}

//! ECN for RTP (RFC 6679) in whole scenarios: marks in place of losses, paths that clear the field.

use paceline_scenario::{Document, Scenario};
use paceline_sim::{Recording, RunOptions, RunOutput, simulate};
use paceline_units::Span;

fn simulated(link: &str, flow: &str, seed: u64) -> RunOutput {
    let text = format!(
        "duration = \"400 s\"\nwarmup = \"20 s\"\n[link.bottleneck]\nrate = \"2 Mbit/s\"\ndelay = \"20 ms\"\n{link}\n\
         [flow.call]\n{flow}\n"
    );
    let document = Document::parse(&text, "ecn.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err("none".into())).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let recording = Recording::of(&["rtcp"], Span::from_millis(100)).unwrap();
    simulate(&scenario, seed, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

/// A gauge of the flow with its times.
fn gauge<'a>(output: &'a RunOutput, name: &str) -> impl Iterator<Item = (f64, f64)> + 'a {
    let columns = &output.series[0].columns;
    let column = |name: &str| &columns.iter().find(|(n, _)| *n == name).unwrap().1;
    column("time_s").iter().copied().zip(column(name).iter().copied())
}

/// When a gauge first had a value.
fn first(output: &RunOutput, name: &str, value: f64) -> Option<f64> {
    gauge(output, name).find(|(_, at)| *at == value).map(|(time, _)| time)
}

const CODEL: &str = "queue = { kind = \"codel\", limit = \"100 packets\", ecn = true }";
const BLEACHED: &str = "queue = { kind = \"codel\", limit = \"100 packets\", ecn = true }\nbleach_ecn = true";
const LDA: &str = "cc = \"lda-plus\"";

/// CoDel marks ever more often until the next report, seconds later, as a mark takes no load off it: there are more marks than
/// there were losses, and less goodput.
#[test]
fn lda_plus_takes_marks_for_losses_and_has_none() {
    for seed in 1..4 {
        let (lost, marked) = (simulated(CODEL, LDA, seed), simulated(CODEL, &format!("{LDA}\necn = true"), seed));
        let (lost, marked) = (&lost.summary.flows[0], &marked.summary.flows[0]);
        assert!(lost.packets_lost > 150 && marked.packets_lost < 10, "{} {}", lost.packets_lost, marked.packets_lost);
        assert!(marked.ecn_marks > lost.packets_lost, "{} {}", marked.ecn_marks, lost.packets_lost);
        let share = marked.goodput_bps / lost.goodput_bps;
        assert!((0.6..1.0).contains(&share), "{share}");
    }
}

#[test]
fn the_path_is_tried_within_a_round_trip() {
    let output = simulated(CODEL, &format!("{LDA}\necn = true"), 1);
    let using = first(&output, "ecn", 1.0).unwrap();
    assert!(using < 0.5, "{using}");
    assert!(gauge(&output, "ecn").skip_while(|(time, _)| *time < using).all(|(_, at)| at == 1.0));
}

#[test]
fn a_path_that_clears_the_field_ends_it() {
    let output = simulated(BLEACHED, &format!("{LDA}\necn = true"), 1);
    assert!(first(&output, "ecn", 1.0).is_none());
    // more than three packets, two with each report of the sender's: its third is some 12 s after the start
    let given = first(&output, "ecn", -1.0).unwrap();
    assert!((2.0..20.0).contains(&given), "{given}");
    let (flow, plain) = (&output.summary.flows[0], simulated(BLEACHED, LDA, 1));
    assert!(flow.packets_lost > 20 && flow.ecn_marks == 0, "{} {}", flow.packets_lost, flow.ecn_marks);
    assert!((flow.goodput_bps / plain.summary.flows[0].goodput_bps - 1.0).abs() < 0.2);
}

#[test]
fn transport_wide_feedback_tells_of_marks_with_it() {
    let flow = |more: &str| {
        format!(
            "cc = \"nada\"\nparams = {{ max_rate = 3e6 }}\necn = true\nrtp = {{ bandwidth = \"4 Mbit/s\"{more} }}\n\
                 app = {{ kind = \"encoder\", max_rate = \"3 Mbit/s\" }}"
        )
    };
    let queue = "queue = { kind = \"codel\", limit = \"100 packets\", ecn = true, target = \"2 ms\" }";
    let of = |more: &str| simulated(queue, &flow(more), 1).summary.flows[0].clone();
    let (told, counted, untold) =
        (of(""), of(", feedback = \"twcc\", ecn_reports = true"), of(", feedback = \"twcc\""));
    assert!(counted.ecn_marks < untold.ecn_marks / 2, "{} {} {}", told.ecn_marks, counted.ecn_marks, untold.ecn_marks);
    assert!((counted.goodput_bps / told.goodput_bps - 1.0).abs() < 0.1, "{} {}", counted.goodput_bps, told.goodput_bps);
}

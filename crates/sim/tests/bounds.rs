//! Between which rates controllers stay: their encoder's, unless the flow says others.

use super::read;
use paceline_scenario::parameters::ParameterValue;
use paceline_scenario::{Document, Scenario};
use paceline_sim::summary::Summary;
use paceline_sim::{Recording, RunOptions, RunOutput, simulate};
use paceline_units::Span;

fn scenario(flows: &str) -> Scenario {
    let text = format!(
        "duration = \"60 s\"\nwarmup = \"20 s\"\n[link.bottleneck]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"40 packets\" }}\n{flows}"
    );
    read::scenario(&text)
}

fn output(flows: &str) -> RunOutput {
    let recording = Recording::of(&["rtcp"], Span::from_millis(100)).unwrap();
    simulate(&scenario(flows), 1, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

/// A parameter of the flow, in kbit/s.
fn parameter(scenario: &Scenario, flow: &str, name: &str) -> f64 {
    let flow = scenario.flows().iter().find(|one| one.name == flow).unwrap();
    match flow.params.get(name) {
        Some(ParameterValue::Number(rate)) => rate / 1e3,
        other => panic!("{name}: {other:?}"),
    }
}

fn held(summary: &Summary) -> Vec<&str> {
    let notices = summary.notices.iter().filter(|notice| notice.kind == "held-by-default");
    notices.map(|notice| notice.text.as_str()).collect()
}

const ENCODER: &str = "app = { kind = \"encoder\", min_rate = \"200 kbit/s\", max_rate = \"20 Mbit/s\" }";

#[test]
fn they_are_the_encoders_unless_given() {
    for cc in ["nada", "scream", "scream-ericsson", "scream-libwebrtc"] {
        let follows = scenario(&format!("[flow.f]\ncc = \"{cc}\"\n{ENCODER}"));
        let of = |name| parameter(&follows, "f", name);
        assert_eq!((of("min_rate"), of("max_rate")), (200.0, 20_000.0), "{cc}");
        let given = scenario(&format!("[flow.f]\ncc = \"{cc}\"\nparams = {{ max_rate = 3e6 }}\n{ENCODER}"));
        let of = |name| parameter(&given, "f", name);
        assert_eq!((of("min_rate"), of("max_rate")), (200.0, 3000.0), "{cc}");
        let again = Document::parse(&follows.to_toml(), "again.toml").unwrap();
        let again = Scenario::check(&again, &mut |_| Err("none".into())).unwrap();
        assert_eq!(again.to_toml(), follows.to_toml(), "{cc}");
    }
    let gcc = scenario(&format!("[flow.f]\ncc = \"gcc\"\n{ENCODER}"));
    let of = |name| parameter(&gcc, "f", name);
    assert_eq!(
        (of("min_rate"), of("max_rate"), of("allocated_rate")),
        (30.0, 1e6, 20_000.0),
        "its probes alone follow"
    );
}

#[test]
fn a_bundles_are_those_of_all_that_it_carries() {
    let call = scenario(
        "[flow.picture]\ncc = \"gcc\"\nbundle = {}\napp = { kind = \"encoder\", max_rate = \"1 Mbit/s\" }\n\
         [flow.screen]\nbundle = { with = \"picture\" }\napp = { kind = \"encoder\", max_rate = \"2 Mbit/s\" }\n\
         [flow.sound]\nbundle = { with = \"picture\" }\napp = { kind = \"voice\", packet = \"80 B\", interval = \"20 ms\" }\n",
    );
    // 80 bytes with 12 + 8 + 20 of headers, and the 8 of transport-wide numbers, 50 times a second
    for flow in ["picture", "screen", "sound"] {
        assert_eq!(parameter(&call, flow, "allocated_rate"), 3000.0 + 128.0 * 0.4, "{flow}");
    }
    let again = Document::parse(&call.to_toml(), "again.toml").unwrap();
    let again = Scenario::check(&again, &mut |_| Err("none".into())).unwrap();
    assert_eq!(again.to_toml(), call.to_toml());
}

/// EricssonResearch/scream's issues 9 and 44: 8 Mbit/s, a round trip of 20 ms, 40 packets of queue.
#[test]
fn a_call_goes_beyond_the_defaults() {
    for (cc, least) in [("scream", 5e6), ("nada", 6e6), ("gcc", 6e6)] {
        let summary =
            output(&format!("[flow.f]\ncc = \"{cc}\"\nrtp = {{ bandwidth = \"20 Mbit/s\" }}\n{ENCODER}")).summary;
        let rate = summary.flows[0].throughput_bps;
        assert!(rate > least && held(&summary).is_empty(), "{cc}: {rate} {:?}", summary.notices);
    }
}

#[test]
fn a_default_that_holds_a_flow_is_told_of() {
    let of = |more: &str| output(&format!("[flow.f]\ncc = \"nada\"\n{more}")).summary;
    let encoder = of("app = { kind = \"encoder\" }");
    assert!(encoder.flows[0].throughput_bps > 1.9e6, "{:?}", encoder.flows[0]);
    assert!(held(&encoder)[0].starts_with("`f` could not send more than 2 Mbit/s"), "{:?}", encoder.notices);
    let greedy = of("");
    assert!(held(&greedy)[0].starts_with("`f` could not send more than 1.5 Mbit/s"), "{:?}", greedy.notices);
    // who has said where it ends knows
    for said in ["app = { kind = \"encoder\", max_rate = \"2 Mbit/s\" }", "params = { max_rate = 1e6 }"] {
        let summary = of(said);
        assert!(summary.flows[0].throughput_bps > 0.95e6 && held(&summary).is_empty(), "{said}: {:?}", summary.notices);
    }
    // and where the link is what holds it, nothing is said
    let several = output(&"abcdef".chars().map(|f| format!("[flow.{f}]\ncc = \"nada\"\n")).collect::<String>()).summary;
    assert!(held(&several).is_empty(), "{:?}", several.notices);
}

/// "In a call with at most 784 kbit/s": probes may go to twice what streams can use, and no further.
#[test]
fn probes_go_to_twice_what_the_encoder_can_use() {
    let target = |more: &str| {
        let app = "app = { kind = \"encoder\", max_rate = \"784 kbit/s\" }";
        let output = output(&format!("[flow.f]\ncc = \"gcc\"\n{more}\n{app}"));
        let columns = &output.series[0].columns;
        let allowed = &columns.iter().find(|(name, _)| *name == "allowed_bps").unwrap().1;
        allowed.iter().copied().filter(|rate| rate.is_finite()).fold(0.0, f64::max)
    };
    let (bounded, free) = (target(""), target("params = { allocated_rate = 0 }"));
    assert!(bounded < 2.0 * 784e3 * 1.05 && free > 3e6, "{bounded} {free}");
}

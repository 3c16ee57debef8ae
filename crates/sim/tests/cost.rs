//! What a run takes is reckoned before it is run: packets within a factor of what it sends.

use super::read;
use paceline_scenario::Scenario;
use paceline_sim::{RunOptions, cost, expand, simulate};

const DUMBBELL: &str = r#"
duration = "20 s"
[link.bottleneck]
rate = "RATE"
delay = "10 ms"
queue = { kind = "droptail", limit = "100 ms" }
[flow.a]
cc = "newreno"
[flow.b]
cc = "CC"
APP
"#;

fn scenario(rate: &str, cc: &str, app: &str) -> Scenario {
    let text = DUMBBELL.replace("RATE", rate).replace("CC", cc).replace("APP", app);
    read::scenario(&text)
}

/// Reckoned by sent, of both flows together.
fn by_sent(scenario: &Scenario) -> f64 {
    let reckoned: f64 = cost::packets(&expand(scenario, 1).expect("expands")).expect("connected").iter().sum();
    let output = simulate(scenario, 1, &RunOptions::default()).expect("runs");
    reckoned / output.summary.flows.iter().map(|flow| flow.packets_sent as f64).sum::<f64>()
}

#[test]
fn packets_are_reckoned_within_a_quarter_where_the_link_is_full() {
    for (rate, cc, app) in [
        ("1 Mbit/s", "cubic", ""),
        ("10 Mbit/s", "cubic", ""),
        ("100 Mbit/s", "newreno", ""),
        ("10 Mbit/s", "udp", r#"app = { kind = "cbr", rate = "4 Mbit/s" }"#),
        ("10 Mbit/s", "udp", r#"app = { kind = "voice" }"#),
        ("10 Mbit/s", "cubic", "start = \"10 s\""),
    ] {
        let ratio = by_sent(&scenario(rate, cc, app));
        assert!((0.75..1.25).contains(&ratio), "{rate} {cc} {app}: {ratio}");
    }
}

#[test]
fn a_call_costs_what_its_encoder_makes_and_not_what_the_link_has() {
    let call = r#"app = { kind = "encoder", max_rate = "1 Mbit/s" }"#;
    let seconds = |rate: &str| {
        let text = DUMBBELL.replace("RATE", rate).replace("CC", "gcc").replace("APP", call);
        let alone = text.replace("[flow.a]\ncc = \"newreno\"\n", "");
        let scenario = read::scenario(&alone);
        cost::core_seconds(&expand(&scenario, 1).expect("expands")).expect("connected")
    };
    assert!((seconds("5 Mbit/s") / seconds("50 Mbit/s") - 1.0).abs() < 1e-9);
    assert!(seconds("500 kbit/s") < 0.6 * seconds("5 Mbit/s"));
}

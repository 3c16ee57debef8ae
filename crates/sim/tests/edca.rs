//! Access categories from a scenario to the results: who has which queue, who waits, and what has no effect.

use paceline_scenario::{Document, Scenario};
use paceline_sim::{RunOptions, RunOutput, expand, routes, run};

fn checked(text: &str) -> (Document, Scenario) {
    let document = Document::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    let scenario = Scenario::check(&document, &mut |_| Err("none".into())).unwrap_or_else(|error| panic!("{error}"));
    (document, scenario)
}

fn outcome(text: &str) -> RunOutput {
    run(&expand(&checked(text).1, 1).unwrap(), &RunOptions::default()).unwrap()
}

fn warnings(text: &str) -> Vec<String> {
    let (document, scenario) = checked(text);
    let model = expand(&scenario, 1).unwrap();
    scenario.warnings(&document, &model, &routes(&model).unwrap())
}

const HOME: &str = "duration = \"20 s\"\nwarmup = \"5 s\"\ntopology = \"home\"\n[link.web]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n\
    [cell.home]\nstandard = \"n\"\nqueue = { limit = \"300 packets\" }\n[cell.home.station.laptop]\n[cell.home.station.phone]\n\
    [flow.down]\nto = \"laptop\"\ncc = \"cubic\"\n[flow.up]\nfrom = \"laptop\"\nto = \"web\"\ncc = \"cubic\"\n\
    [flow.call]\nto = \"phone\"\ncc = \"udp\"\napp = { kind = \"voice\" }\n";

#[test]
fn a_call_does_not_wait_behind_downloads() {
    let delay = |category: &str| {
        let output = outcome(&format!("{HOME}{category}"));
        let call = output.summary.flows.iter().find(|flow| flow.flow == "call").unwrap();
        assert_eq!(call.packets_lost, 0);
        call.owd_p95_s.unwrap()
    };
    let (none, same, voice) =
        (delay(""), delay("access_category = \"best-effort\"\n"), delay("access_category = \"voice\"\n"));
    // 300 packets take some 0.1 s; who says that it is best effort is treated as who does not say
    assert!(none > 0.04 && (none / same - 1.0).abs() < 0.3, "{none} {same}");
    // 10 ms of wire, and a few frames of up to 5.5 ms
    assert!(voice < 0.025, "{voice}");
}

#[test]
fn results_tell_of_the_queues_that_flows_have() {
    let output = outcome(&format!("{HOME}access_category = \"voice\"\n"));
    let names: Vec<&str> = output.summary.interfaces.iter().map(|interface| interface.interface.as_str()).collect();
    // what comes back to the phone's server is of the call's category; nothing else is at the phone, nor urgent at the laptop
    assert_eq!(names, ["ap.voice", "ap.best-effort", "laptop.best-effort", "phone.voice"]);
    let queues: Vec<String> = output.summary.queues.iter().map(|queue| queue.link.clone()).collect();
    assert!(queues.contains(&"home.ap.voice".to_owned()), "{queues:?}");
    // one category alone is told by the node
    let output = outcome(&format!("{HOME}access_category = \"best-effort\"\n"));
    assert!(output.summary.interfaces.iter().any(|interface| interface.interface == "ap"));
}

#[test]
fn a_transmission_opportunity_is_a_key() {
    let airtime = |more: &str| {
        let text = format!("{HOME}access_category = \"voice\"\n{more}")
            .replace("kind = \"voice\"", "kind = \"cbr\", rate = \"30 Mbit/s\"");
        let output = outcome(&text);
        let voice = output.summary.interfaces.iter().find(|interface| interface.interface == "ap.voice").unwrap();
        voice.airtime_s / voice.attempts as f64
    };
    let (usual, short) = (airtime(""), airtime("[cell.home.edca.voice]\ntxop = \"500 us\"\n"));
    assert!(usual > 0.0009 && usual < 0.001504 && short < 0.0005, "{usual} {short}");
}

#[test]
fn what_has_no_effect_is_told() {
    let said = warnings(&format!("{HOME}[cell.home.edca.voice]\naifsn = 3\n"));
    assert!(said.iter().any(|text| text.contains("cell.home.edca: has no effect: no flow over the cell")), "{said:?}");
    let said = warnings(&format!("{HOME}access_category = \"voice\"\n[cell.home.edca.video]\naifsn = 3\n"));
    assert!(said.iter().any(|text| text.contains("cell.home.edca.video: has no effect")), "{said:?}");
    let wired = "duration = \"1 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\n[flow.a]\naccess_category = \"voice\"\n";
    let said = warnings(wired);
    assert!(said.iter().any(|text| text.contains("flow.a.access_category: has no effect: no 802.11 cell")), "{said:?}");
}

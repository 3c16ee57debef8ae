//! The scenario file: defaults, round trip, single keys set.

use paceline_path::RateModel;
use paceline_scenario::values::HostDelay;
use paceline_scenario::{Document, Scenario};
use paceline_units::{Rate, Span};

fn check(text: &str) -> Result<Scenario, String> {
    let document = Document::parse(text, "test.toml").map_err(|e| e.to_string())?;
    Scenario::check(&document, &mut |file| Err(format!("no file {file}"))).map_err(|e| e.to_string())
}

const SMALL: &str = "
duration = \"60 s\"
[link.bottleneck]
rate = \"10 Mbit/s\"
delay = \"25 ms\"
[flow.media]
cc = \"vegas\"
app = { kind = \"stream\" }
";

#[test]
fn defaults_are_filled_in() {
    let scenario = check(SMALL).unwrap();
    assert_eq!(scenario.name(), "test");
    assert_eq!(scenario.host_delay(), HostDelay::PacketTimes(2.0));
    let link = &scenario.links()[0];
    assert_eq!((link.from.as_str(), link.to.as_str()), ("left", "right"));
    assert_eq!(link.backward.rate, RateModel::Constant(Rate::from_bps(10_000_000)));
    assert_eq!(link.backward.delay, Span::from_millis(25));
    let flow = &scenario.flows()[0];
    assert_eq!((flow.segment, flow.header, flow.count), (1460, 40, 1));
    assert!(scenario.access().is_some());
}

#[test]
fn what_is_written_reads_back_the_same() {
    let scenario = check(SMALL).unwrap();
    let again = check(&scenario.to_toml()).unwrap_or_else(|e| panic!("{e}\n{}", scenario.to_toml()));
    assert_eq!(scenario, again);
}

#[test]
fn single_keys_can_be_set() {
    let mut document = Document::parse(SMALL, "test.toml").unwrap();
    for (path, value) in [
        ("duration", "90 s"),
        ("flow.media.cc", "newreno"),
        ("flow.media.app.media_rate", "2 Mbit/s"),
        ("flow.media.start", "{ uniform = [\"0 s\", \"1 s\"] }"),
        ("flow.media.start.uniform[1]", "3 s"),
        ("link.bottleneck.queue.kind", "red"),
        ("link.bottleneck.queue.max_p", "0.2"),
        ("link.bottleneck.backward.delay", "5 ms"),
        ("flow.media.count", "3"),
        ("name", "17"),
        ("access.delay", "1 ms"),
    ] {
        document.set(path, value).unwrap_or_else(|e| panic!("{e}"));
    }
    let scenario = Scenario::check(&document, &mut |_| Err(String::new())).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scenario.duration(), Span::from_secs(90));
    assert_eq!(scenario.name(), "17");
    let flow = &scenario.flows()[0];
    assert_eq!((flow.cc.as_str(), flow.count, flow.start.maximum()), ("newreno", 3, Some(Span::from_secs(3))));
    assert_eq!(scenario.links()[0].backward.delay, Span::from_millis(5));
    assert!(scenario.to_toml().contains("max_p = 0.2"));
}

#[test]
fn a_path_that_is_not_there_is_refused() {
    let mut document = Document::parse(SMALL, "test.toml").unwrap();
    let mut says = |path: &str| document.set(path, "1").unwrap_err().to_string();
    assert_eq!(
        says("flow.medai.cc"),
        "test.toml: flow.medai: the scenario has no such flow; did you mean `media`? (it has `media`)"
    );
    assert!(says("flow.media.ap.kind").contains("did you mean `app`?"), "{}", says("flow.media.ap.kind"));
    assert!(says("link.bottleneck.queue.mx_p").contains("did you mean `max_p`?"));
    let foreign = says("flow.media.app.sise");
    assert!(foreign.contains("in a table of kind `stream`") && !foreign.contains("`arrivals`"), "{foreign}");
    assert!(says("duration.x").contains("`duration` is not a table"), "{}", says("duration.x"));
    assert!(says("flow.media.start[0]").contains("there is no array here"));
    assert!(says("").contains("not a path"));
    assert!(says("flow..cc").contains("not a path"));
    assert!(says("flow.\"media.cc").contains("not closed"));
    assert_eq!(document.set("flow.\"media\".cc", "cubic"), Ok(()));
    assert_eq!(document.set("flow.media.params.beta", "5"), Ok(()));
}

#[test]
fn what_was_set_has_no_line() {
    let mut document = Document::parse(SMALL, "test.toml").unwrap();
    document.set("flow.media.app.xfactor", "-1").unwrap();
    let error = Scenario::check(&document, &mut |_| Err(String::new())).unwrap_err();
    assert_eq!(error.to_string(), "test.toml: flow.media.app.xfactor: `-1` must be from 0.001 to 1000000");
}

#[test]
fn a_parameter_with_a_unit_says_that_it_is_a_number_and_of_what() {
    let mut document = Document::parse(SMALL, "test.toml").unwrap();
    document.set("flow.media.cc", "nada").unwrap();
    document.set("flow.media.params", "{ max_rate = \"2 Mbit/s\", tau = 20 }").unwrap();
    let error = Scenario::check(&document, &mut |_| Err(String::new())).unwrap_err().to_string();
    let rate = "max_rate: `\"2 Mbit/s\"` must be a number without its unit, from 1000 to 100000000000 bit/s";
    assert!(error.contains(rate), "{error}");
    assert!(error.contains("tau: `20` must be from 0.01 to 10 s"), "{error}");
}

/// Vegas's alpha must be at most its beta; MULTFRC's parameters of these names may be anything in their ranges.
#[test]
fn the_order_of_alpha_and_beta_is_that_of_vegas_alone() {
    let text = |cc: &str| {
        format!(
            "duration = \"10 s\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
                 [flow.a]\ncc = \"{cc}\"\nparams = {{ alpha = 2, beta = 1 }}\n"
        )
    };
    check(&text("multfrc")).unwrap();
    let error = check(&text("vegas")).unwrap_err();
    assert!(error.contains("flow.a.params: alpha, `2`, must be at most beta, `1`"), "{error}");
}

#[test]
fn an_unknown_controller_gets_the_list() {
    let error = check(&SMALL.replace("\"vegas\"", "\"my-own\"")).unwrap_err();
    assert!(error.starts_with("test.toml:7: flow.media.cc: `my-own` must be one of `"), "{error}");
    assert!(error.contains("`vegas`"), "{error}");
}

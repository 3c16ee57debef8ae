//! The scenario file: defaults, round trip, single keys set.

use paceline_sim::scenario::{Document, LinkRate, Scenario};
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
    assert_eq!(scenario.host_delay(), Span::from_micros(100));
    let link = &scenario.links()[0];
    assert_eq!((link.from.as_str(), link.to.as_str()), ("left", "right"));
    assert_eq!(link.backward.rate, LinkRate::Constant(Rate::from_bps(10_000_000)));
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

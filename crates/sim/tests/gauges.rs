//! Recordings hold whatever controllers and machines name, without a list of names anywhere else.

use paceline_control::{GaugeUnit, Gauges, Machine, registry};
use paceline_packet::FlowId;
use paceline_sim::endpoint::Source;
use paceline_sim::scenario::Document;
use paceline_sim::{Recording, RunOptions, Scenario, expand, run};
use paceline_units::Span;

#[derive(Default)]
struct Names(Vec<String>);

impl Gauges for Names {
    fn gauge(&mut self, name: &'static str, unit: GaugeUnit, _: f64) {
        self.0.push(format!("{name}{}", unit.suffix()));
    }
}

/// Of every scheme there is: the columns of its flow's table are the gauges that it names before it starts, each once, and the
/// same at the end.
#[test]
fn the_gauges_of_every_scheme_are_the_columns_of_its_recording() {
    let kinds = ["cwnd", "acks", "tfrc", "rtcp"];
    for scheme in registry::schemes().filter(|scheme| scheme.machine != Machine::Udp) {
        let text = format!(
            "duration = \"20 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"10 packets\" }}\n[flow.f]\ncc = \"{}\"\n",
            scheme.name
        );
        let document = Document::parse(&text, "gauges.toml").unwrap();
        let scenario = Scenario::check(&document, &mut |_| Err("none".into())).unwrap();
        let model = expand(&scenario, 1).unwrap();
        let mut named = Names::default();
        Source::new(&model.flows[0], 1, FlowId(0), 0).gauges(&mut named);
        let mut once = named.0.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), named.0.len(), "{} names a gauge twice: {:?}", scheme.name, named.0);
        let recording = Recording::of(&kinds, Span::from_millis(100)).unwrap();
        let output = run(&model, &RunOptions { recording, ..RunOptions::default() }).unwrap();
        assert_eq!(output.series.len(), 1, "{}", scheme.name);
        let columns: Vec<_> = output.series[0].columns.iter().map(|(name, _)| name.as_ref()).collect();
        assert_eq!(columns[0], "time_s");
        assert_eq!(columns[1..], named.0[..], "{}", scheme.name);
        for (name, values) in &output.series[0].columns {
            assert_eq!(values.len(), 200, "{} {name}", scheme.name);
        }
    }
}

//! Recordings hold whatever controllers and machines name, without a list of names anywhere else.

use super::read;
use paceline_control::{GaugeUnit, Gauges, Machine, registry};
use paceline_packet::FlowId;
use paceline_scenario::{Document, Scenario};
use paceline_sim::endpoint::Source;
use paceline_sim::{Recording, RunOptions, expand, run};
use paceline_units::Span;

#[derive(Default)]
struct Names(Vec<String>);

impl Gauges for Names {
    fn gauge(&mut self, name: &'static str, unit: GaugeUnit, _: f64) {
        self.0.push(format!("{name}{}", unit.suffix()));
    }
}

/// What a scheme needs to send: NDTC is nothing without frames.
fn app(scheme: &str) -> &'static str {
    if scheme == "ndtc" { "app = { kind = \"encoder\" }\n" } else { "" }
}

/// Of every scheme there is: the columns of its flow's table are the gauges that it names before it starts, each once, and the
/// same at the end.
#[test]
fn the_gauges_of_every_scheme_are_the_columns_of_its_recording() {
    let kinds = ["cwnd", "acks", "tfrc", "rtcp"];
    let all = || registry::schemes().filter(|scheme| scheme.machine != Machine::Udp);
    let over_quic = all().filter(|scheme| matches!(scheme.machine, Machine::Tcp(_)) && scheme.name != "tahoe");
    let over_quic = over_quic.map(|scheme| (scheme, "transport = \"quic\"\n"));
    for (scheme, carrier) in all().map(|scheme| (scheme, "")).chain(over_quic) {
        let text = format!(
            "duration = \"20 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"10 packets\" }}\n[flow.f]\ncc = \"{}\"\n{carrier}{}",
            scheme.name,
            app(scheme.name)
        );
        let scenario = read::scenario(&text);
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

/// What a controller begins with is known from the first row on; what comes from the network is not, before anything has come
/// back from there: no gauge begins with a value that nobody has measured.
#[test]
fn before_anything_has_come_back_nothing_is_known_of_the_network() {
    let own = [
        "time_s",
        "cwnd_packets",
        "ssthresh_packets",
        "in_flight_packets",
        "allowed_bps",
        "gap_s",
        "timeout_s",
        "fine_grain",
        "gamma",
        "increase_bps",
        "target_bps",
        "n",
        "state",
        "pacing_gain",
        "alpha_current",
        "round_count",
        "full_bw_count",
        "alpha",
        "pacing_rate_bps",
        "delta",
        "velocity",
        "competing",
        "competed_s",
        "slope",
        "frame_limit_bytes",
        "encoder_bps",
        "ecn_average",
        "application_limited",
        "headroom",
        "loss_limited",
        "overuse",
        "pushback",
        "reference_window_bytes",
        "threshold_s",
    ];
    let kinds = ["cwnd", "acks", "tfrc", "rtcp"];
    for scheme in registry::schemes().filter(|scheme| scheme.machine != Machine::Udp) {
        for profile in ["rfc", "linux", "ns2", "ns2-linux"] {
            let text = format!(
                "duration = \"20 s\"\nprofile = \"{profile}\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"100 ms\"\n\
                 queue = {{ kind = \"droptail\", limit = \"10 packets\" }}\n[flow.f]\ncc = \"{}\"\n{}",
                scheme.name,
                app(scheme.name)
            );
            let document = Document::parse(&text, "gauges.toml").unwrap();
            // not every scheme is in every profile
            let Ok(scenario) = Scenario::check(&document, &mut |_| Err("none".into())) else { continue };
            let recording = Recording::of(&kinds, Span::from_millis(50)).unwrap();
            let output =
                run(&expand(&scenario, 1).unwrap(), &RunOptions { recording, ..RunOptions::default() }).unwrap();
            let columns = &output.series[0].columns;
            let times = &columns[0].1;
            let early = times.iter().filter(|time| **time > 0.0 && **time < 0.19).count();
            assert!(early > 1);
            for (name, values) in columns.iter().filter(|(name, _)| !own.contains(&name.as_ref())) {
                for (time, value) in times.iter().zip(values).filter(|(time, _)| **time < 0.19) {
                    assert!(value.is_nan(), "{} under {profile}: {name} is {value} at {time} s", scheme.name);
                }
                assert!(values.iter().all(|value| !value.is_infinite()), "{} under {profile}: {name}", scheme.name);
            }
            let (_, trip) = columns.iter().find(|(name, _)| ["srtt_s", "rtt_s"].contains(&name.as_ref())).unwrap();
            assert!(trip.last().is_some_and(|trip| *trip >= 0.2), "{} under {profile}", scheme.name);
        }
    }
}

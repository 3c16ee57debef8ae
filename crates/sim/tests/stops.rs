//! A stop that comes after a flow's own end changes nothing that is measured of it.

use paceline_scenario::{Document, Scenario};
use paceline_sim::{RunOptions, simulate};
use serde_json::Value;

fn rows(text: &str) -> Vec<Value> {
    let document = Document::parse(text, "stops.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| unreachable!("no file is read")).unwrap();
    let output = simulate(&scenario, 1, &RunOptions::default()).unwrap();
    output.summary.flows.iter().map(|row| serde_json::to_value(row).unwrap()).collect()
}

#[test]
fn a_stop_after_the_end_of_a_flow_takes_nothing_of_its_rates() {
    let text = |stop: &str| {
        format!(
            "duration = \"40 s\"\n[link.bottleneck]\nrate = \"2 Mbit/s\"\ndelay = \"25 ms\"\n\
             [flow.film]\n{stop}app = {{ kind = \"stream\", media_rate = \"800 kbit/s\", length = \"10 s\" }}\n\
             [flow.film_over_quic]\ntransport = \"quic\"\n{stop}\
             app = {{ kind = \"stream\", media_rate = \"400 kbit/s\", length = \"10 s\" }}\n\
             [flow.file]\n{stop}app = {{ kind = \"ftp\", size = \"500 kB\" }}\n\
             [flow.voice]\ncc = \"udp\"\n{stop}app = {{ kind = \"voice\", codec = \"amr\", packets = 400 }}\n"
        )
    };
    let (without, with) = (rows(&text("")), rows(&text("stop = \"30 s\"\n")));
    // QUIC says its stop, in packets that are sent then
    let alike = |flow: &&usize| with[**flow]["flow"] != "film_over_quic";
    assert_eq!([0, 1, 2, 3].iter().filter(alike).count(), 3);
    [0, 1, 2, 3].iter().filter(alike).for_each(|flow| assert_eq!(without[*flow], with[*flow]));
    let of = |name: &str, flow: &str| {
        with.iter().find(|row| row["flow"] == flow).and_then(|row| row[name].as_f64()).unwrap()
    };
    assert_eq!((of("bytes_delivered", "film"), of("bytes_delivered", "file")), (1e6, 5e5));
    // by the time that they took, not by the 30 s
    for flow in ["film", "film_over_quic", "file"] {
        assert!(of("goodput_bps", flow) > 6e5, "{with:?}");
    }
    assert!(of("interarrival_max_s", "voice") < 5.0, "{with:?}");
}

#[test]
fn a_stop_that_cuts_a_flow_counts_to_it() {
    let text = "duration = \"20 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"25 ms\"\n\
                outage = [{ from = \"4 s\", to = \"20 s\" }]\n\
                [flow.film]\nstop = \"10 s\"\napp = { kind = \"stream\", media_rate = \"800 kbit/s\", length = \"10 s\" }\n";
    let row = &rows(text)[0];
    let (bits, rate) = (row["bytes_delivered"].as_f64().unwrap() * 8.0, row["goodput_bps"].as_f64().unwrap());
    assert!((bits / rate - 10.0).abs() < 1e-9, "{row}");
}

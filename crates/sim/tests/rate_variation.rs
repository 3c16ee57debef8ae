//! Sending rates: their measures, their recordings, and that one follows from the other.

use super::read;
use paceline_sim::{Recording, RunOptions, RunOutput, simulate};
use paceline_units::Span;

const TEXT: &str = r#"
duration = "20 s"
warmup = "3 s"
rate_bin = "100 ms"
[link.bottleneck]
rate = "6 Mbit/s"
delay = "10 ms"
queue = { kind = "droptail", limit = "20 packets" }
[flow.tcp]
start = "1 s"
[flow.late]
cc = "sack"
start = "4.25 s"
stop = "15 s"
[flow.udp]
cc = "udp"
start = "1 ms"
segment = "500 B"
app = { kind = "pareto", rate = "1 Mbit/s", burst = "200 ms", idle = "200 ms" }
"#;

fn output(text: &str, every: Span) -> RunOutput {
    let scenario = read::scenario(text);
    let recording = Recording::of(&["rate", "sequence"], every).unwrap();
    simulate(&scenario, 3, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

#[test]
fn the_measured_variation_is_that_of_the_recorded_rates() {
    let output = output(TEXT, Span::from_millis(100));
    for (flow, from, to) in [("tcp", 3.0, 20.0), ("late", 4.3, 15.0), ("udp", 3.0, 20.0)] {
        let summary = output.summary.flows.iter().find(|f| f.flow == flow).unwrap();
        let series = output.series.iter().find(|s| s.table == "rate" && s.labels[0].1 == flow).unwrap();
        let column = |name: &str| &series.columns.iter().find(|(n, _)| *n == name).unwrap().1;
        let (time, rate) = (column("time_s"), column("send_rate_bps"));
        // each value is that of the bin that ends at its time; the recording has no sample at the run's end itself
        let bins: Vec<f64> = time
            .iter()
            .zip(rate)
            .filter(|(end, _)| **end - 0.1 >= from - 1e-9 && **end <= to + 1e-9)
            .map(|(_, r)| *r)
            .collect();
        let n = bins.len() as f64;
        let mean = bins.iter().sum::<f64>() / n;
        let cov = (bins.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / n).sqrt() / mean;
        let measured = summary.send_rate_cov.unwrap();
        let tolerance = if to == 20.0 { 0.01 } else { 1e-9 };
        assert!((measured - cov).abs() < tolerance, "{flow}: {measured}, {cov} from the recording");
        assert!(n >= (to - from) * 10.0 - 2.0 && measured > 0.01, "{flow}: {n} bins");
        assert_eq!(column("goodput_bps").len(), rate.len());
    }
}

#[test]
fn a_rate_that_never_varies_has_no_variation() {
    let text =
        TEXT.replace("burst = \"200 ms\", idle = \"200 ms\"", "burst = \"100000 s\", idle = \"0 s\", shape = 50");
    // 1 Mbit/s in packets of 500 B: exactly 25 each 100 ms
    let summary = output(&text, Span::from_millis(100)).summary;
    let udp = summary.flows.iter().find(|f| f.flow == "udp").unwrap();
    assert_eq!(udp.send_rate_cov, Some(0.0));
    assert!((udp.send_rate_bps / (1e6 * 528.0 / 500.0) - 1.0).abs() < 1e-3, "{}", udp.send_rate_bps);
}

#[test]
fn what_is_sent_is_counted_to_the_byte() {
    let output = output(TEXT, Span::from_millis(50));
    for flow in &output.summary.flows {
        let series = output.series.iter().find(|s| s.table == "sequence" && s.labels[0].1 == flow.flow).unwrap();
        let column = |name: &str| &series.columns.iter().find(|(n, _)| *n == name).unwrap().1;
        assert!(column("sent_packets").is_sorted() && column("sequence_packets").is_sorted());
        let (sent, new) = (column("sent_packets").last().unwrap(), column("sequence_packets").last().unwrap());
        assert!(sent >= new && *new > 100.0, "{}: {sent} {new}", flow.flow);
        let ratio = flow.packets_delivered as f64 / flow.packets_sent as f64;
        assert_eq!(flow.receiving_ratio, Some(ratio));
        assert!((0.8..=1.0).contains(&ratio), "{}: {ratio}", flow.flow);
        assert!(flow.loss_event_rate.is_none());
    }
    let tcp = output.summary.flows.iter().find(|f| f.flow == "tcp").unwrap();
    assert!((tcp.send_rate_bps - tcp.packets_sent as f64 * 1500.0 * 8.0 / 17.0).abs() < 1.0, "{}", tcp.send_rate_bps);
    let late = output.summary.flows.iter().find(|f| f.flow == "late").unwrap();
    // its SYN has 40 bytes; it counts as active until its last packet has come, a little after its stop
    let bytes = (late.packets_sent - 1) as f64 * 1500.0 + 40.0;
    let active = bytes * 8.0 / late.send_rate_bps;
    assert!((10.75..10.9).contains(&active), "{active}");
}

#[test]
fn without_bins_nothing_else_changes() {
    let mut with = output(TEXT, Span::from_millis(50)).summary;
    let without = output(&TEXT.replace("rate_bin = \"100 ms\"\n", ""), Span::from_millis(50)).summary;
    assert!(with.flows.iter().all(|f| f.send_rate_cov.is_some()));
    with.flows.iter_mut().for_each(|f| f.send_rate_cov = None);
    with.flows.iter_mut().for_each(|f| (f.goodput_cov, f.startup_s) = (None, None));
    assert_eq!(serde_json::to_string(&with).unwrap(), serde_json::to_string(&without).unwrap());
}

#[test]
fn a_start_up_ends_when_the_rate_first_nears_its_mean() {
    // 400 kbit/s to 5 s, then 2 Mbit/s: the mean over 20 s is 1.6 Mbit/s, and 5.5 s ends the first bin beyond it.
    let text = r#"
duration = "20 s"
rate_bin = "500 ms"
[link.bottleneck]
rate_schedule = [{ at = "0 s", rate = "400 kbit/s" }, { at = "5 s", rate = "10 Mbit/s" }]
delay = "10 ms"
queue = { limit = "1 packets" }
[flow.media]
cc = "udp"
app = { kind = "cbr", rate = "2 Mbit/s" }
"#;
    let startup = |text: &str| output(text, Span::from_millis(500)).summary.flows.remove(0).startup_s;
    assert_eq!(startup(text), Some(5.5));
    assert_eq!(startup(&text.replace("400 kbit/s", "10 Mbit/s")), Some(0.5));
}

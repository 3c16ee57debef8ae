//! Access links that differ at the receivers.

use paceline_sim::scenario::{Document, Scenario};
use paceline_sim::summary::Summary;
use paceline_sim::{RunOptions, expand, run};

fn summary(receiver: &str, flow: &str) -> Summary {
    let text = format!(
        "
        duration = \"100 s\"
        [link.bottleneck]
        rate = \"10 Mbit/s\"
        delay = \"20 ms\"
        [access]
        delay = \"3 ms\"
        {receiver}
        [flow.a]
        count = 2
        {flow}
        "
    );
    let document = Document::parse(&text, "test.toml").expect("TOML");
    let scenario = Scenario::check(&document, &mut |_| Err("no file".to_owned())).expect("a good scenario");
    let again = Document::parse(&scenario.to_toml(), "test.toml").expect("TOML");
    assert_eq!(scenario, Scenario::check(&again, &mut |_| Err("no file".to_owned())).expect("a good scenario"));
    run(&expand(&scenario, 1).expect("a network"), &RunOptions::default()).expect("a run").summary
}

#[test]
fn receivers_have_their_own_delay() {
    for (receiver, rtt) in [("", 0.052), ("[access.receiver]", 0.052), ("receiver = { delay = \"10 ms\" }", 0.066)] {
        for flow in summary(receiver, "").flows {
            assert!((flow.propagation_rtt_s - rtt).abs() < 1e-12, "{receiver}: {}", flow.propagation_rtt_s);
        }
    }
}

#[test]
fn a_lossy_last_hop_takes_its_share_of_data_and_leaves_acknowledgements_alone() {
    let clean = summary("", "");
    let lossy = summary("receiver = { loss = { rate = \"2 %\", on = \"data\" } }", "");
    for (flow, other) in lossy.flows.iter().zip(&clean.flows) {
        assert!(flow.goodput_bps < 0.5 * other.goodput_bps, "{} of {}", flow.goodput_bps, other.goodput_bps);
        let (n, lost) = (flow.packets_sent as f64, flow.packets_lost as f64);
        let sd = (n * 0.02 * 0.98).sqrt();
        assert!((lost - 0.02 * n).abs() < 4.0 * sd, "{lost} of {n} lost");
    }
    assert_eq!(lossy.engine.drops["loss"], lossy.flows.iter().map(|f| f.packets_lost).sum::<u64>());
    let own: Vec<_> = lossy.flows.iter().map(|f| f.packets_lost).collect();
    assert_ne!(own[0], own[1], "each receiver's link draws for itself");
}

#[test]
fn loss_of_acknowledgements_is_no_loss_of_data() {
    let lossy = summary("receiver = { loss = { rate = \"20 %\", on = \"acks\" } }", "");
    assert!(lossy.engine.drops["loss"] > 1000);
    let lost: u64 = lossy.flows.iter().map(|f| f.packets_lost).sum();
    assert_eq!(lost, lossy.engine.drops["overflow"], "only the queue drops data");
}

#[test]
fn a_slow_last_hop_is_the_bottleneck() {
    for flow in summary("receiver = { rate = \"1 Mbit/s\", queue = { limit = \"20 packets\" } }", "").flows {
        assert!((0.9e6..=1e6).contains(&flow.throughput_bps), "{} bit/s", flow.throughput_bps);
    }
}

//! What no measure may exceed, and what an impossible network is told.

use paceline_sim::scenario::{Document, Scenario};
use paceline_sim::{RunOptions, RunOutput, expand, run};

fn outcome(text: &str) -> Result<RunOutput, String> {
    let document = Document::parse(text, "test.toml").map_err(|e| e.to_string())?;
    let scenario = Scenario::check(&document, &mut |file| Err(format!("no file {file}"))).map_err(|e| e.to_string())?;
    let model = expand(&scenario, 1).map_err(|e| e.to_string())?;
    run(&model, &RunOptions::default()).map_err(|e| e.to_string())
}

#[test]
fn what_arrives_after_a_stop_counts_with_its_time() {
    let output = outcome(
        "
        duration = \"30 s\"
        [link.bottleneck]
        rate = \"1 Mbit/s\"
        delay = \"20 ms\"
        queue = { limit = \"1000 packets\" }
        [flow.a]
        stop = \"1 s\"
        ",
    );
    let flow = &output.unwrap().summary.flows[0];
    assert!((0.9e6..=1e6).contains(&flow.throughput_bps), "{} bit/s", flow.throughput_bps);
    assert_eq!(flow.packets_delivered, flow.packets_sent);
}

#[test]
fn a_loop_without_delay_names_its_links_and_no_others() {
    let dumbbell = "duration = \"1 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\n[flow.a]\n[flow.b]\nrtt = \"9 ms\"";
    assert_eq!(
        outcome(dumbbell).unwrap_err(),
        "links `access a[0].sink`, `access a[0].source`, `bottleneck` form a loop without propagation delay; give at \
         least one of them `delay` > 0"
    );
}

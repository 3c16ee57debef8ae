//! What RFC 6817 says of LEDBAT: a queue of its target alone, way for others, and a latecomer's advantage.

use super::read;
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, simulate};

/// 10 Mbit/s, 40 ms, 200 packets of queue: 240 ms.
fn flows(flows: &str) -> Vec<FlowSummary> {
    let text = format!(
        "duration = \"180 s\"\nwarmup = \"60 s\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
         queue = {{ limit = \"200 packets\" }}\n{flows}"
    );
    simulate(&read::scenario(&text), 1, &RunOptions::default()).unwrap().summary.flows
}

/// Section 2.1: the queue of `target` beyond 40 ms of path and a segment's 1.2 ms, and the link full.
#[test]
fn alone_it_keeps_the_target() {
    for target_ms in [20.0, 60.0, 100.0] {
        let alone = &flows(&format!("[flow.low]\ncc = \"ledbat\"\nparams = {{ target = {} }}\n", target_ms / 1e3))[0];
        let queue = alone.rtt_mean_s.unwrap() * 1e3 - 41.2;
        assert!((queue - target_ms).abs() < 4.0, "{queue} ms of {target_ms}");
        assert!(alone.goodput_bps > 9.6e6 && alone.packets_lost == 0, "{alone:?}");
    }
}

/// Section 1.2, goal 3, of a standard TCP that makes a longer queue than the target.
#[test]
fn it_gives_way() {
    for other in ["cubic", "newreno"] {
        let both = flows(&format!(
            "[flow.low]\ncc = \"ledbat\"\nparams = {{ target = 0.025 }}\n[flow.other]\ncc = \"{other}\"\nstart = \"10 s\"\n"
        ));
        let (low, high) = (both[0].goodput_bps, both[1].goodput_bps);
        assert!(low < 0.05 * high && high > 9.0e6, "{low} beside {high} of {other}");
    }
}

/// Section 4.4: who comes to the queue of another takes it for its base delay, and so most of the link.
#[test]
fn who_comes_late_has_an_advantage() {
    let both = flows("[flow.low]\ncc = \"ledbat\"\n[flow.late]\ncc = \"ledbat\"\nstart = \"30 s\"\n");
    let of = |name: &str| both.iter().find(|flow| flow.flow == name).unwrap().goodput_bps;
    let (early, late) = (of("low"), of("late"));
    assert!(late > 3.0 * early, "{early} and {late}");
}

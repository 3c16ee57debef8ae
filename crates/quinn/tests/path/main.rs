//! quinn under our controllers over a path in memory, beside the same flow of our own machine in the simulator.

mod two;

use paceline_quinn::{Controllers, Gate};
use paceline_scenario::{Document, Scenario};
use paceline_sim::{RunOptions, simulate};
use std::sync::Arc;
use std::time::Duration;
use two::{DATAGRAM, Outcome, Path, flow};

/// Under quinn.
fn quinn(cc: &str, path: Path) -> Outcome {
    let controllers = Controllers::new(cc, &[], 1).unwrap();
    flow(|observer| Arc::new(controllers.seen_by(observer)), None, path, Duration::from_secs(30))
}

/// The same with packets that leave when the controller has them leave.
fn gated(cc: &str, path: Path) -> Outcome {
    let (controllers, gate) = (Controllers::new(cc, &[], 1).unwrap(), Gate::new());
    let controllers = controllers.behind(gate.clone());
    flow(|observer| Arc::new(controllers.seen_by(observer)), Some(&gate), path, Duration::from_secs(30))
}

/// The same of our own machine: share of the link, mean round trip in ms, share lost.
fn simulated(cc: &str, Path { rate, delay, limit }: Path) -> (f64, f64, f64) {
    let text = format!(
        "duration = \"30 s\"\nwarmup = \"5 s\"\nhost_delay = \"0 s\"\n[access]\nrate = \"10 Gbit/s\"\ndelay = \"0 s\"\n\
         [link.bottleneck]\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"{limit} B\" }}\n\
         [flow.one]\ncc = \"{cc}\"\ntransport = \"quic\"\nsegment = \"{DATAGRAM} B\"\n"
    );
    let document = Document::parse(&text, "path.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err("none".into())).unwrap();
    let flow = simulate(&scenario, 1, &RunOptions::default()).unwrap().summary.flows.remove(0);
    (flow.goodput_bps / (f64::from(rate) * 1e6), flow.rtt_mean_s.unwrap() * 1e3, flow.loss_rate.unwrap())
}

/// Buffers of a quarter, one and four bandwidth-delay products.
const QUARTER: Path = Path { rate: 10, delay: 25, limit: 15_625 };
const ONE: Path = Path { rate: 10, delay: 25, limit: 62_500 };
const FOUR: Path = Path { rate: 10, delay: 25, limit: 250_000 };

/// Held to these bounds: the share of the link, and the mean round trip relatively. Says what came of it.
fn beside_our_own(theirs: Outcome, cc: &str, path: Path, of_share: f64, of_trip: f64) -> Outcome {
    let (share, trip, lost) = simulated(cc, path);
    println!(
        "{cc} {}: {:.3} of the link, {:.1} ms, {:.4} lost; simulated {share:.3}, {trip:.1} ms, {lost:.4}",
        path.limit, theirs.share, theirs.trip, theirs.lost
    );
    assert!((theirs.share - share).abs() <= of_share, "{cc} {path:?}: {} of the link, {share} simulated", theirs.share);
    assert!((theirs.trip / trip - 1.0).abs() <= of_trip, "{cc} {path:?}: {} ms, {trip} ms simulated", theirs.trip);
    theirs
}

/// A window is a window: under quinn as in the simulator. What quinn counts as lost, the adaptor has found; acknowledgements alone
/// make two pieces of some packets.
#[test]
fn windows_do_as_in_the_simulator() {
    for cc in ["newreno", "cubic", "copa", "vegas"] {
        for path in [QUARTER, ONE, FOUR] {
            let flow = beside_our_own(quinn(cc, path), cc, path, 0.005, 0.01);
            assert_eq!(flow.ours_lost.1, flow.quinn_lost.1, "bytes");
            let (ours, theirs) = (flow.ours_lost.0, flow.quinn_lost.0);
            assert!(ours >= theirs && ours <= theirs + 8, "{cc}: {ours} and {theirs} packets");
        }
    }
}

/// A rate is a window here, and quinn lets ten packets leave at once, where our machine lets one or two: on queues of a bandwidth-delay product and more
/// the mean is the same; ten packets are all that the shortest queue holds, and with three to five more it is the same there.
#[test]
fn rates_do_nearly_as_in_the_simulator() {
    for cc in ["bbr", "bbr3", "c4"] {
        for path in [ONE, FOUR] {
            beside_our_own(quinn(cc, path), cc, path, 0.01, 0.03);
        }
    }
    for (cc, of_share) in [("bbr", 0.025), ("bbr3", 0.06), ("c4", 0.13)] {
        let flow = beside_our_own(quinn(cc, QUARTER), cc, QUARTER, of_share, 0.03);
        assert!(flow.share > 0.8, "{cc}: {}", flow.share);
    }
}

/// By the gate they are the simulator's on every queue.
#[test]
fn by_the_gate_all_do_as_in_the_simulator() {
    for cc in ["newreno", "cubic", "copa", "bbr", "bbr3", "c4"] {
        for path in [QUARTER, ONE, FOUR] {
            beside_our_own(gated(cc, path), cc, path, 0.01, 0.02);
        }
    }
}

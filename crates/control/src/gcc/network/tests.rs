//! The cases and numbers of libwebrtc's goog_cc_network_control_unittest.cc that need no network and no encoder;
//! crates/sim/tests/gcc.rs runs the others in the simulator.

use super::*;
use crate::gcc::probe_estimate::Cluster;

const KBIT: f64 = 1e3;

const OPTIONS: Options = Options {
    start: 60.0 * KBIT,
    min_bitrate: 0.0,
    max_bitrate: 300.0 * KBIT,
    allocated: 0.0,
    pacing: 2.5,
    loss: true,
    probing: true,
    alr_probing: false,
    padding: true,
    pushback: true,
};

fn at(ms: u64) -> Time {
    Time((123 + ms) * 1_000_000)
}

fn started(options: Options) -> NetworkController {
    let mut network = NetworkController::new(options);
    network.start(at(0));
    network
}

fn probe_rates(network: &mut NetworkController) -> Vec<f64> {
    std::iter::from_fn(|| network.next_probe()).map(|probe| probe.rate).collect()
}

#[test]
fn the_first_orders_are_three_and_six_times_the_start_up_to_the_maximum() {
    let mut network = started(OPTIONS);
    assert_eq!((network.target(), network.pacing()), (60e3, 150e3));
    assert_eq!(probe_rates(&mut network), [180e3, 300e3]);
    assert_eq!(network.padding(), 0.0);
    let mut network = started(Options { probing: false, ..OPTIONS });
    assert_eq!(probe_rates(&mut network), [0.0; 0]);
    let mut network = started(Options { allocated: 50e3, max_bitrate: 5e6, ..OPTIONS });
    assert_eq!(probe_rates(&mut network), [180e3, 360e3], "what the streams can use limits the next ones");
}

/// 6 s with a packet of 1000 bytes each 50 ms; each is delayed by `later` ms more than the previous one.
fn six_seconds(network: &mut NetworkController, from: u64, later: u64) -> f64 {
    let mut delay = 0;
    for i in 0..120 {
        let now = from + 50 * i;
        network.sent(1000.0, 1000.0, at(now));
        network.feedback(&[PacketResult::new(at(now), Some(at(now + delay)), 1000.0)], 0.0, at(now + delay));
        delay += later;
        network.process(at(now + 50));
    }
    network.target()
}

#[test]
fn the_delay_lowers_the_target() {
    let mut network = started(OPTIONS);
    let before = six_seconds(&mut network, 0, 0);
    assert!(before > 60e3, "{before}");
    let after = six_seconds(&mut network, 6000, 50);
    assert!(after < before, "{after} after {before}");
}

/// Feedback on ten packets sent within 90 ms; the last arrives 10 ms before the feedback.
fn feedback(network: &mut NetworkController, from: u64, lost: usize, cluster: Option<Cluster>) {
    let results: Vec<PacketResult> = (0..10)
        .map(|i| {
            let arrived = (i >= lost).then(|| at(from + 10 * i as u64 + 50));
            PacketResult { cluster, ..PacketResult::new(at(from + 10 * i as u64), arrived, 1000.0) }
        })
        .collect();
    network.feedback(&results, 0.0, at(from + 150));
}

#[test]
fn a_probe_raises_the_target_at_once_and_is_followed_by_another() {
    let mut network = started(Options { max_bitrate: 10e6, ..OPTIONS });
    probe_rates(&mut network);
    feedback(&mut network, 0, 0, Some(Cluster { id: 2, packets: 5, bytes: 5000.0 }));
    assert!((network.target() - 800e3).abs() < 1.0, "9 packets in 90 ms: {}", network.target());
    assert_eq!(probe_rates(&mut network), [1.6e6]);
}

#[test]
fn a_probe_that_finds_little_is_not_believed_at_once() {
    let mut network = started(Options { max_bitrate: 10e6, ..OPTIONS });
    for i in 0..20 {
        feedback(&mut network, 100 * i, 0, None);
    }
    let (before, through) = (network.target(), network.reading().0.unwrap());
    assert!((through - 800e3).abs() < 1.0, "{through}");
    // packets of 200 bytes each 20 ms would give 80 kbit/s
    let cluster = Some(Cluster { id: 9, packets: 2, bytes: 100.0 });
    let results: Vec<PacketResult> = (0..10)
        .map(|i| PacketResult { cluster, ..PacketResult::new(at(2000 + 20 * i), Some(at(2050 + 20 * i)), 200.0) })
        .collect();
    network.feedback(&results, 0.0, at(2300));
    let limit = network.reading().0.unwrap() * PROBE_DROP_THROUGHPUT_FRACTION;
    assert!(network.target() >= limit.min(before) - 1.0, "{} of {before}", network.target());
}

#[test]
fn losses_lower_the_target_and_without_that_part_they_do_not() {
    let run = |loss: bool| {
        let mut network = started(Options { start: 800e3, max_bitrate: 10e6, probing: false, loss, ..OPTIONS });
        for i in 0..40 {
            feedback(&mut network, 100 * i, if i < 20 { 0 } else { 4 }, None);
        }
        network
    };
    let (with, without) = (run(true), run(false));
    assert!(with.target() < 0.75 * without.target(), "{} and {}", with.target(), without.target());
    assert_eq!(with.parts().0.loss_state(), State::Falling);
    let mut padding = with;
    for i in 40..100 {
        feedback(&mut padding, 100 * i, 0, None);
        if padding.parts().0.loss_state() == State::Padding {
            assert_eq!(padding.padding(), padding.target());
            return;
        }
    }
    panic!("it never grows");
}

/// DropFrame: the target stays, and the encoder gets at least half of it.
#[test]
fn a_full_window_halves_what_the_encoder_gets_and_leaves_the_target() {
    let mut network = started(OPTIONS);
    feedback(&mut network, 0, 0, None);
    let target = network.target();
    for i in 0..100 {
        network.sent(1000.0, 50e3, at(200 + i));
    }
    assert_eq!(network.target(), target);
    assert_eq!(network.encoding(), target / 2.0);
    assert!(network.pushback_ratio() <= 30e3 / target + 1e-9);
    let mut network = started(Options { pushback: false, ..OPTIONS });
    feedback(&mut network, 0, 0, None);
    for i in 0..100 {
        network.sent(1000.0, 50e3, at(200 + i));
    }
    assert_eq!(network.encoding(), network.target());
}

/// By hand: a reduction of 5 % drops one frame in 20; one of 0.5 % drops none.
#[test]
fn a_little_pushback_drops_few_frames() {
    let mut network = started(Options { min_bitrate: 1e3, ..OPTIONS });
    network.pushed = network.target * 0.95;
    assert!((network.encoding() / network.target() - (1.0 - 1.0 / 20.0)).abs() < 0.003);
    network.pushed = network.target * 0.995;
    assert_eq!(network.encoding(), network.target());
}

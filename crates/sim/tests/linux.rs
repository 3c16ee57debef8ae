//! Profile `linux` in whole scenarios: 10 Mbit/s, 50 ms, a queue of 50 packets.

use super::read;
use paceline_sim::{RunOptions, Summary, simulate};

fn run(seed: u64, cc: &str, link: &str, flow: &str) -> Summary {
    let text = format!(
        "duration = \"60 s\"\nwarmup = \"10 s\"\nprofile = \"linux\"\nhost_delay = \"0 s\"\n\
         [link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\nqueue = {{ limit = \"50 packets\" }}\n{link}\n\
         [flow.tcp]\ncc = \"{cc}\"\n{flow}\n"
    );
    let scenario = read::scenario(&text);
    simulate(&scenario, seed, &RunOptions::default()).unwrap().summary
}

fn mean(cc: &str, link: &str, what: fn(&Summary) -> f64) -> f64 {
    (1..=10).map(|seed| what(&run(seed, cc, link, ""))).sum::<f64>() / 10.0
}

fn goodput(s: &Summary) -> f64 {
    s.flows[0].goodput_bps / 1e6
}

#[test]
fn a_clean_path_is_filled() {
    for cc in ["reno", "cubic", "vegas"] {
        let s = run(1, cc, "", "");
        let (flow, queue) = (&s.flows[0], &s.queues[0]);
        println!("{cc}: utilisation {:.3}, queue {:.1}, {flow:?}", queue.utilisation, queue.mean_packets);
        assert!((0.95..=1.0).contains(&queue.utilisation), "{cc}: {}", queue.utilisation);
        assert_eq!(flow.timeouts, 0, "{cc}");
        assert!(flow.loss_rate.is_some_and(|rate| rate < 0.005), "{cc}: {:?}", flow.loss_rate);
        // 1448 of 1500 bytes are payload
        assert!((9.1..=9.67).contains(&(flow.goodput_bps / 1e6)), "{cc}: {}", flow.goodput_bps);
    }
    let vegas = run(1, "vegas", "", "");
    assert!((1.0..=4.5).contains(&vegas.queues[0].mean_packets), "between alpha and beta");
}

/// Reno at a loss rate p has a mean window of sqrt(3 / 2p) segments (Mathis et al., CCR 27(3), 1997): the kernel counts
/// acknowledged segments, so delayed acknowledgements do not slow its growth.
#[test]
fn random_loss_costs_what_the_square_root_law_says() {
    for p in [0.003, 0.01, 0.03] {
        let ideal = (1.5_f64 / p).sqrt() * 1448.0 * 8.0 / 0.052 / 1e6;
        let got = mean("reno", &format!("loss = {{ rate = {p}, on = \"data\" }}"), goodput);
        println!("{p}: {got:.2} Mbit/s, ideal {ideal:.2}");
        assert!((0.8..=1.2).contains(&(got / ideal)), "{p}: {got} {ideal}");
    }
}

/// RFC 8985: packets that are late by less than a quarter of the least round trip are not taken for lost, once it is
/// known that the path reorders; what was cut before that is undone. Late by 6 ms of the quarter's 12.5: a queue that
/// drains after a cut brings what was sent later sooner, by some milliseconds.
#[test]
fn reordering_within_a_quarter_of_the_round_trip_costs_no_cut() {
    let clean = run(1, "reno", "", "");
    for rate in [0.01, 0.03, 0.1] {
        for seed in 1..=5 {
            let s = run(seed, "reno", &format!("reorder = {{ rate = {rate}, extra = \"6 ms\" }}"), "");
            let flow = &s.flows[0];
            // losses: what the queue dropped
            println!(
                "{rate}: {:.2} Mbit/s, cuts {}, lost {}, again {}, timeouts {}; clean: {:.2}, cuts {}, lost {}",
                goodput(&s),
                flow.window_cuts,
                flow.packets_lost,
                flow.packets_retransmitted,
                flow.timeouts,
                goodput(&clean),
                clean.flows[0].window_cuts,
                clean.flows[0].packets_lost
            );
            assert!(flow.packets_retransmitted <= flow.packets_lost, "nothing is sent again for being late");
            assert!(flow.window_cuts <= flow.packets_lost, "and nothing cut");
            assert!(goodput(&s) > 0.95 * goodput(&clean));
            assert_eq!(flow.timeouts, 0);
        }
    }
}

/// Short transfers whose last segments are lost: the probe repairs the tail (RFC 8985 section 7), most of the time
/// without a timeout.
#[test]
fn tails_are_repaired_by_probes() {
    let app = "app = { kind = \"web\", gap = \"0.2 s\", mean_size = \"12 kB\", arrivals = \"think-persistent\" }";
    let (mut timeouts, mut lost) = (0, 0);
    for seed in 1..=10 {
        let s = run(seed, "cubic", "loss = { rate = 0.02, on = \"data\" }", app);
        timeouts += s.flows[0].timeouts;
        lost += s.flows[0].packets_lost;
    }
    println!("{timeouts} timeouts, {lost} losses");
    assert!(lost > 200, "{lost}");
    assert!(timeouts * 10 < lost, "{timeouts} {lost}");
}

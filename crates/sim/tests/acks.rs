//! What every scheme on per-packet acknowledgements must do under every profile, in a whole network. That no packet
//! vanishes is asserted at the end of each run.

use super::read;
use paceline_control::registry::schemes;
use paceline_control::{Machine, Profile};
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, simulate};

fn run(cc: &str, profile: Profile, link: &str, flow: &str) -> FlowSummary {
    let text = format!(
        "duration = \"60 s\"\nwarmup = \"30 s\"\nprofile = \"{}\"\n[link.bottleneck]\nrate = \"5 Mbit/s\"\ndelay = \"25 ms\"\n\
         {link}\n[flow.a]\ncc = \"{cc}\"\n{flow}\n",
        profile.name()
    );
    let scenario = read::scenario(&text);
    simulate(&scenario, 1, &RunOptions::default()).unwrap().summary.flows.remove(0)
}

fn each(test: impl Fn(&str, Profile)) {
    for scheme in schemes().filter(|scheme| scheme.machine == Machine::Acks) {
        for profile in Profile::ALL {
            test(scheme.name, profile);
        }
    }
}

const LONG_QUEUE: &str = "queue = { kind = \"droptail\", limit = \"60 packets\" }";

#[test]
fn uses_a_clean_path() {
    each(|name, profile| {
        let a = run(name, profile, LONG_QUEUE, "");
        // ns-2's RAP reaches 74 to 96 % of a link; TFRCP overshoots it for a whole round, and the share lost in it takes the
        // rate down to a packet a second or so
        let least = if name == "tfrcp" { 0.5e6 } else { 3.7e6 };
        assert!((least..=5.0e6).contains(&a.goodput_bps), "{name} {profile:?}: {}", a.goodput_bps);
        assert!((0.049..0.16).contains(&a.rtt_mean_s.unwrap()), "{name} {profile:?}");
        assert_eq!(a.packets_retransmitted, 0);
    });
}

#[test]
fn gives_way_to_losses() {
    each(|name, profile| {
        let at = |loss: &str| {
            let link = format!("{LONG_QUEUE}\nloss = {{ kind = \"uniform\", rate = \"{loss}\", on = \"data\" }}");
            run(name, profile, &link, "")
        };
        let (one, five) = (at("1 %"), at("5 %"));
        assert!((0.8e6..5.0e6).contains(&one.goodput_bps), "{name} {profile:?}: {}", one.goodput_bps);
        assert!((0.1e6..1.8e6).contains(&five.goodput_bps), "{name} {profile:?}: {}", five.goodput_bps);
        assert!(five.goodput_bps < 0.8 * one.goodput_bps, "{name} {profile:?}");
    });
}

#[test]
fn an_application_with_little_to_send_earns_no_rate_that_it_never_tried() {
    each(|name, profile| {
        let app = "app = { kind = \"pareto\", rate = \"200 kbit/s\", burst = \"1 s\", idle = \"1 s\" }";
        let a = run(name, profile, LONG_QUEUE, app);
        assert_eq!(a.packets_lost, 0, "{name} {profile:?}");
        // what waited for the first answer was tried; growing by a packet in each round trip makes 280 Mbit/s
        let allowed = a.cwnd_max_packets.unwrap_or(0.0).max(a.cwnd_mean_packets.unwrap()) * 8.0 * 1456.0 / 0.05;
        assert!((1e5..5e6).contains(&allowed), "{name} {profile:?}: {allowed}");
    });
}

fn flows(text: &str, seed: u64) -> Vec<FlowSummary> {
    let scenario = read::scenario(text);
    simulate(&scenario, seed, &RunOptions::default()).unwrap().summary.flows
}

/// Where the queue of many flows grows past the timeout that a short round trip has made, answers come late. A sender that
/// took no sample of them would hold every packet for lost from then on.
#[test]
fn a_queue_that_outgrows_the_timeout_locks_no_rap_up() {
    for seed in 1..=16 {
        let text = "duration = \"60 s\"\nwarmup = \"20 s\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"2 ms\"\n\
                    queue = { kind = \"droptail\", limit = \"300 packets\" }\n[flow.a]\ncc = \"rap\"\ncount = 15\n\
                    start = { uniform = [\"0 s\", \"1 s\"] }\n";
        let flows = flows(text, seed);
        let mean = flows.iter().map(|flow| flow.goodput_bps).sum::<f64>() / 15.0;
        // the link's 10 Mbit/s but for headers
        assert!((0.62e6..0.667e6).contains(&mean), "{mean} of seed {seed}");
        for flow in flows {
            let who = format!("{} of seed {seed}", flow.instance);
            assert!(flow.rtt_mean_s.is_some_and(|rtt| (0.05..0.4).contains(&rtt)), "{who}: {:?}", flow.rtt_mean_s);
            // a flow that is locked up has a timeout for each packet, and between a third and three times of its share
            assert!(flow.timeouts * 20 < flow.packets_sent, "{who}: {} of {}", flow.timeouts, flow.packets_sent);
            assert!((0.6..1.6).contains(&(flow.goodput_bps / mean)), "{who}: {} of {mean}", flow.goodput_bps);
        }
    }
}

/// A round trip longer than the timeout before the first sample (2 s): every answer comes late. ns-2's RAP never has a
/// sample there, and nor has ours of profile `ns2`.
#[test]
fn a_round_trip_longer_than_the_first_timeout_is_measured() {
    for (name, profile, measured) in
        [("rap", "rfc", true), ("tfrcp", "rfc", true), ("tfrcp", "ns2", true), ("rap", "ns2", false)]
    {
        let text = format!(
            "duration = \"300 s\"\nprofile = \"{profile}\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"1100 ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"60 packets\" }}\n[flow.a]\ncc = \"{name}\"\n"
        );
        let flow = flows(&text, 1).remove(0);
        assert_eq!(flow.rtt_mean_s.is_some(), measured, "{name} {profile}");
        // ns-2, `ns`: 30 packets in 120 s, nearly as many losses
        let rate = f64::from(u32::try_from(flow.packets_sent).unwrap()) / 300.0;
        assert!(
            (if measured { 1.0..833.0 } else { 0.2..0.3 }).contains(&rate),
            "{name} {profile}: {rate} packets a second"
        );
    }
}

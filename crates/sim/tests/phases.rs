//! Two flows with nearly the same round trip behind a drop-tail queue: phase effects (Floyd and Jacobson 1992) must not
//! decide between them more than they do between real hosts.
//!
//! Linux 6.18 over an emulated drop-tail queue of 60 packets at 10 Mbit/s, CUBIC at 40 ms beside CUBIC at 40.4 to 44 ms, runs
//! of 140 s: the numbers stand in docs/decisions/host-delay.md.

use super::read;
use paceline_scenario::Scenario;
use paceline_sim::{Recording, RunOptions, Series, Summary, simulate};
use paceline_units::Span;

fn checked(scenario: &str) -> Scenario {
    read::scenario(scenario)
}

fn run(scenario: &str, seed: u64) -> Summary {
    simulate(&checked(scenario), seed, &RunOptions::default()).unwrap().summary
}

/// So many flows at 40 ms and as many at `rtt` ms, behind 60 packets at `rate` Mbit/s, for as many packets whatever the rate.
fn two(sender: &str, rate: f64, rtt: f64, count: u32) -> String {
    let (warmup, duration) = (200.0 / rate, 1400.0 / rate + 200.0 / rate);
    let scale = 10.0 / rate; // round trips of as many packets
    format!(
        "duration = \"{duration} s\"\nwarmup = \"{warmup} s\"\n[link.bottleneck]\nrate = \"{rate} Mbit/s\"\n\
         delay = \"{} ms\"\nqueue = {{ kind = \"droptail\", limit = \"60 packets\" }}\n\
         [flow.short]\n{sender}\ncount = {count}\nrtt = \"{} ms\"\nstart = {{ uniform = [\"0 s\", \"{scale} s\"] }}\n\
         [flow.long]\n{sender}\ncount = {count}\nrtt = \"{} ms\"\nstart = {{ uniform = [\"0 s\", \"{scale} s\"] }}\n",
        10.0 * scale,
        40.0 * scale,
        rtt * scale
    )
}

/// Goodput of the longer round trip's flows over that of the others: the geometric mean over ten seeds.
fn ahead(scenario: &str) -> f64 {
    let logarithms = (1..=10).map(|seed| {
        let summary = run(scenario, seed);
        let of = |name: &str| summary.flows.iter().filter(|f| f.flow == name).map(|f| f.goodput_bps).sum::<f64>();
        libm::log(of("long") / of("short"))
    });
    libm::exp(logarithms.sum::<f64>() / 10.0)
}

const CUBIC: &str = "cc = \"cubic\"\nprofile = \"linux\"";

/// What real hosts show: the mean at the worst point of the sweep (42 ms), and the sweep's geometric mean with its interval.
const MAX_RATIO: f64 = 2.7;
const MEAN: f64 = 1.8;

fn hold(what: &str, scenario: impl Fn(f64) -> String) {
    let ratios = [40.4, 41.0, 42.0, 43.0, 44.0].map(|rtt| ahead(&scenario(rtt)));
    let mean = libm::exp(ratios.iter().map(|r| libm::log(*r)).sum::<f64>() / 5.0);
    println!("{what}: {ratios:.2?}, mean {mean:.2}");
    assert!(ratios.iter().all(|ratio| (0.7..=MAX_RATIO).contains(ratio)), "{what}: {ratios:?}");
    assert!((0.9..=MEAN).contains(&mean), "{what}: {ratios:?}");
}

#[test]
fn nobody_is_ahead_by_more_than_between_real_hosts() {
    for rate in [1.0, 10.0, 100.0] {
        hold(&format!("{rate} Mbit/s"), |rtt| two(CUBIC, rate, rtt, 1));
    }
}

#[test]
fn nor_under_the_rfcs() {
    for sender in ["cc = \"cubic\"", "cc = \"newreno\""] {
        hold(sender, |rtt| two(sender, 10.0, rtt, 1));
    }
}

/// Two flows of one server behind the same bottleneck: each is delayed by itself.
fn of_one_server(rtt: f64) -> String {
    format!(
        "duration = \"160 s\"\nwarmup = \"20 s\"\ntopology = \"graph\"\nprofile = \"linux\"\n\
         [link.up]\nbetween = [\"server\", \"a\"]\nrate = \"103 Mbit/s\"\nqueue = {{ limit = \"1000 packets\" }}\n\
         [link.bottleneck]\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         queue = {{ limit = \"60 packets\" }}\n\
         [link.near]\nbetween = [\"b\", \"near\"]\nrate = \"103 Mbit/s\"\ndelay = \"10 ms\"\n\
         [link.far]\nbetween = [\"b\", \"far\"]\nrate = \"103 Mbit/s\"\ndelay = \"{} ms\"\n\
         [flow.short]\nfrom = \"server\"\nto = \"near\"\ncc = \"cubic\"\nstart = {{ uniform = [\"0 s\", \"1 s\"] }}\n\
         [flow.long]\nfrom = \"server\"\nto = \"far\"\ncc = \"cubic\"\nstart = {{ uniform = [\"0 s\", \"1 s\"] }}\n",
        rtt / 2.0 - 10.0
    )
}

#[test]
fn nor_where_they_share_a_host() {
    hold("of one server", of_one_server);
}

#[test]
fn who_is_likely_to_see_it_is_told() {
    let told = |scenario: &str| run(scenario, 1).notices.iter().any(|notice| notice.kind == "phases-decide");
    let short = |rtt: f64| two(CUBIC, 100.0, rtt, 1);
    assert!(told(&short(42.0)));
    assert!(!told(&short(40.0)), "equal round trips favour nobody for all seeds alike");
    assert!(!told(&short(60.0)), "far apart");
    let drawn = short(42.0).replace("rtt = \"4.2 ms\"", "rtt = { uniform = [\"4 ms\", \"4.4 ms\"] }");
    assert!(drawn != short(42.0) && !told(&drawn), "intervals over seeds show it");
    assert!(!told(&two(CUBIC, 100.0, 42.0, 11)), "many mix by themselves");
    assert!(!told(&short(42.0).replace("queue = {", "loss = { rate = 0.001 }\nqueue = {")), "so does random loss");
    assert!(!told(&short(42.0).replace("droptail", "codel")));
    let windows = short(42.0).replace("rtt =", "receive_window = 20\nrtt =");
    assert!(!told(&windows), "the queue never overflows");
    let early = short(42.0).replace("linux\"", "linux\"\napp = { kind = \"ftp\", size = \"200 kB\" }");
    assert!(!told(&early), "nor after the warm-up here");
    let beside = |kind: &str| format!("{}[flow.other]\ncc = \"udp\"\napp = {{ {kind} }}\n", short(42.0));
    let bursts = "kind = \"pareto\", burst = \"20 ms\", idle = \"20 ms\"";
    assert!(!told(&beside(&format!("{bursts}, rate = \"40 Mbit/s\""))), "a fifth of the link in bursts mixes them");
    assert!(told(&beside(&format!("{bursts}, rate = \"2 Mbit/s\""))), "a hundredth does not");
    assert!(told(&beside("kind = \"cbr\", rate = \"20 Mbit/s\"")), "nor does a constant rate");
}

#[test]
fn the_link_that_overflows_is_the_one_that_is_told_of() {
    let notices = run(&of_one_server(42.0), 1).notices;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].text.contains("the drop-tail queue of `bottleneck`"), "{notices:?}");
}

/// The delay is no part of the round trips that a sender measures: one that goes by delay fills its link all the same.
#[test]
fn vegas_does_not_take_it_for_a_queue() {
    for profile in ["rfc", "linux"] {
        let text = format!(
            "duration = \"60 s\"\nwarmup = \"20 s\"\nprofile = \"{profile}\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\n\
             delay = \"10 ms\"\nqueue = {{ limit = \"60 packets\" }}\n[flow.a]\ncc = \"vegas\"\nrtt = \"50 ms\"\n"
        );
        let queue = &run(&text, 1).queues[0];
        println!("{profile}: {} of the link, {} packets", queue.utilisation, queue.mean_packets);
        assert!((0.99..=1.0).contains(&queue.utilisation), "{profile}: {}", queue.utilisation);
        assert!((1.0..=4.5).contains(&queue.mean_packets), "{profile}: {}", queue.mean_packets);
    }
}

/// What a host still holds when the run ends was sent, by the flow's count and by the run's, and is in flight.
#[test]
fn what_a_host_holds_at_the_end_is_sent_and_in_flight() {
    let summary = run(
        "duration = \"200 ms\"\nhost_delay = \"1 s\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         [flow.a]\ncc = \"udp\"\napp = { kind = \"cbr\", rate = \"1 Mbit/s\" }\n",
        1,
    );
    let (flow, run) = (&summary.flows[0], &summary.engine);
    assert!(flow.packets_sent > 10 && flow.packets_delivered < flow.packets_sent / 2, "{flow:?}");
    assert_eq!(run.packets_sent, flow.packets_sent);
    assert_eq!(run.packets_sent, run.packets_delivered + run.packets_dropped + run.packets_in_flight);
    assert_eq!(run.packets_in_flight, flow.packets_sent - flow.packets_delivered, "none was lost");
}

/// A server of two: what it sends to a slow client holds up nothing that it sends to a fast one.
#[test]
fn a_slow_flow_does_not_hold_up_its_host() {
    let text = |slow: &str| {
        format!(
            "duration = \"20 s\"\nwarmup = \"5 s\"\ntopology = \"graph\"\nprofile = \"linux\"\n\
             [link.up]\nbetween = [\"server\", \"router\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\
             [link.phone]\nbetween = [\"router\", \"phone\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n\
             [link.pc]\nbetween = [\"router\", \"pc\"]\nrate = \"100 Mbit/s\"\ndelay = \"10 ms\"\nqueue = {{ limit = \"200 packets\" }}\n\
             [flow.fast]\ncc = \"cubic\"\nfrom = \"server\"\nto = \"pc\"\n{slow}"
        )
    };
    let alone = run(&text(""), 1).flows[0].goodput_bps;
    let beside = run(&text("[flow.slow]\ncc = \"cubic\"\nfrom = \"server\"\nto = \"phone\"\n"), 1).flows[0].goodput_bps;
    println!("{alone} alone, {beside} beside a slow one");
    assert!(alone > 90e6 && (0.97..1.03).contains(&(beside / alone)), "{alone} {beside}");
}

/// Hosts delay by the rate of the moment: after 10 s of 100 Mbit/s by what packets take at 10.
#[test]
fn a_schedule_counts_step_by_step() {
    let text = two(CUBIC, 10.0, 42.0, 1);
    let text = text.replace(
        "rate = \"10 Mbit/s\"",
        "rate_schedule = [ { at = \"0 s\", rate = \"100 Mbit/s\" }, { at = \"10 s\", rate = \"10 Mbit/s\" } ]",
    );
    let ratio = ahead(&text);
    println!("{ratio:.2}");
    assert!((0.7..=MAX_RATIO).contains(&ratio), "{ratio}");
}

/// What happens before an instant is the same however long the run goes on, and whatever its schedule has for later: windows that follow
/// acknowledgements and rates that lead, rates that are high enough for acknowledgements too, a link that stands still.
#[test]
fn what_is_to_come_decides_nothing() {
    let until = 7.9;
    let recorded = |duration: f64, later: &str| -> Vec<Series> {
        let text = format!(
            "duration = \"{duration} s\"\nprofile = \"linux\"\n[access]\nrate = \"1 Gbit/s\"\n[link.bottleneck]\ndelay = \"10 ms\"\n\
             queue = {{ limit = \"60 packets\" }}\nrate_schedule = [{{ at = \"0 s\", rate = \"10 Mbit/s\" }}, \
             {{ at = \"2 s\", rate = \"2 Mbit/s\" }}, {{ at = \"4 s\", rate = \"1 bit/s\" }}, {{ at = \"4100 ms\", rate = \"500 Mbit/s\" }}\
             {later}]\n[flow.a]\ncc = \"cubic\"\nrtt = \"40 ms\"\n[flow.b]\ncc = \"bbr\"\nrtt = \"42 ms\"\nstart = \"2 s\"\n"
        );
        let recording =
            Recording { cwnd: true, queue: true, rate: true, every: Span::from_millis(100), ..Recording::NOTHING };
        let options = RunOptions { recording, ..RunOptions::default() };
        simulate(&checked(&text), 1, &options).unwrap().series
    };
    let early = |series: &Series| -> Vec<Vec<u64>> {
        let rows = series.columns[0].1.iter().take_while(|time| **time <= until).count();
        assert!(rows > 50, "{}: {rows}", series.table);
        series.columns.iter().map(|(_, column)| column[..rows].iter().map(|x| x.to_bits()).collect()).collect()
    };
    let short = recorded(8.0, "");
    assert!(short.len() >= 5, "{}", short.len());
    for other in [recorded(20.0, ""), recorded(20.0, ", { at = \"8 s\", rate = \"1 Mbit/s\" }")] {
        for (a, b) in short.iter().zip(&other) {
            assert_eq!((a.table, &a.labels), (b.table, &b.labels));
            let (a_rows, b_rows) = (early(a), early(b));
            assert!(a_rows == b_rows, "{} of {:?} differs", a.table, a.labels);
        }
    }
}

#[test]
fn ten_against_ten() {
    for rtt in [40.4, 42.0, 44.0] {
        let ratio = ahead(&two(CUBIC, 10.0, rtt, 10));
        println!("{rtt}: {ratio:.2}");
        assert!((0.8..=1.6).contains(&ratio), "{rtt} ms: {ratio}");
    }
}

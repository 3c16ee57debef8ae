//! What a run says of its groups and of how full its queues were.

use super::read;
use paceline_sim::{RunOptions, Summary, simulate};

fn summary(text: &str) -> Summary {
    let scenario = read::scenario(text);
    simulate(&scenario, 1, &RunOptions::default()).unwrap().summary
}

/// Constant rates, so that every number is known: bursts without silences are 100 kB/s and 50 kB/s of payload.
const CONSTANT: &str = "
duration = \"100 s\"
warmup = \"20 s\"
profile = \"ns2\"
friendliness_to = \"slow\"
[link.bottleneck]
rate = \"10 Mbit/s\"
delay = \"10 ms\"
[flow.a]
cc = \"udp\"
count = 2
group = \"fast\"
app = { kind = \"pareto\", rate = \"800 kbit/s\", burst = \"1000000 s\", idle = \"0 s\" }
[flow.b]
cc = \"udp\"
group = \"fast\"
app = { kind = \"pareto\", rate = \"200 kbit/s\", burst = \"1000000 s\", idle = \"0 s\" }
[flow.c]
cc = \"udp\"
count = 3
group = \"slow\"
app = { kind = \"pareto\", rate = \"400 kbit/s\", burst = \"1000000 s\", idle = \"0 s\" }
";

#[test]
fn groups_of_constant_rates() {
    let summary = summary(CONSTANT);
    let [fast, slow] = &summary.groups[..] else { panic!("{:?}", summary.groups) };
    assert_eq!((fast.group.as_str(), fast.flows, slow.flows), ("fast", 3, 3));
    // One packet of 8000 bits more or less in 80 s.
    let near = |x: f64, y: f64| assert!((x - y).abs() < 100.0, "{x} bit/s, not {y}");
    near(fast.flow_goodput_mean_bps, 600_000.0);
    near(slow.flow_goodput_mean_bps, 400_000.0);
    // Of 800, 800 and 200: variance (200^2 + 200^2 + 400^2) / 3.
    near(fast.flow_goodput_sd_bps, (80_000f64).sqrt() * 1000.0);
    near(slow.flow_goodput_sd_bps, 0.0);
    let close = |x: Option<f64>, y: f64| assert!((x.unwrap() - y).abs() < 1e-3, "{x:?}, not {y}");
    close(fast.friendliness, 1.5);
    close(slow.friendliness, 1.0);
    close(fast.share, 0.6);
    close(slow.share, 0.4);
    assert!((fast.share.unwrap() + slow.share.unwrap() - 1.0).abs() < 1e-12);
    let utilisation = summary.queues[0].utilisation;
    assert!((utilisation - 0.3).abs() < 1e-3, "3 of 10 Mbit/s, not {utilisation}");
    assert!(summary.queues[0].occupancy.is_empty(), "nobody asked");
}

#[test]
fn friendliness_needs_a_reference_that_delivers() {
    let unasked = summary(&CONSTANT.replace("friendliness_to = \"slow\"", ""));
    assert!(unasked.groups.iter().all(|group| group.friendliness.is_none()));
    let silent = summary(&CONSTANT.replace("rate = \"400 kbit/s\", burst", "rate = \"1 bit/s\", burst"));
    assert!(silent.groups.iter().all(|group| group.friendliness.is_none()));
}

/// What stopped or was over before the end of the warm-up is in no group; what got nothing is.
#[test]
fn flows_that_were_never_active_are_in_no_group() {
    let more = "
[flow.stopped]
cc = \"newreno\"
group = \"slow\"
stop = \"10 s\"
[flow.over]
cc = \"newreno\"
group = \"fast\"
app = { kind = \"ftp\", size = \"10 kB\" }
[flow.alone]
cc = \"newreno\"
stop = \"10 s\"
";
    let found = summary(&format!("{CONSTANT}{more}")).groups;
    let plain = summary(CONSTANT).groups;
    let of = |group: &paceline_sim::summary::GroupSummary| (group.group.clone(), group.flows, group.jain);
    assert_eq!(found.iter().map(of).collect::<Vec<_>>(), plain.iter().map(of).collect::<Vec<_>>());
    let starved = CONSTANT.replace("rate = \"400 kbit/s\", burst", "rate = \"1 bit/s\", burst");
    let groups = summary(&format!("{starved}{more}")).groups;
    assert_eq!((groups[1].flows, groups[1].jain), (3, None));
}

/// A queue that four TCP flows fill.
const FULL: &str = "
duration = \"60 s\"
warmup = \"10 s\"
profile = \"ns2\"
host_delay = \"100 us\"
[link.bottleneck]
rate = \"4 Mbit/s\"
delay = \"20 ms\"
queue = { kind = \"KIND\", limit = \"LIMIT\"MORE }
[flow.a]
count = 4
";

fn full(kind: &str, limit: &str, more: &str) -> Summary {
    summary(&FULL.replace("KIND", kind).replace("LIMIT", limit).replace("MORE", more))
}

#[test]
fn asking_for_occupancy_changes_nothing_else() {
    for kind in ["droptail", "red"] {
        let text = FULL.replace("KIND", kind).replace("LIMIT", "50 packets").replace("MORE", "");
        let asked = summary(&text.replace("[flow.a]", "occupancy = true\n[flow.a]"));
        let mut queues = asked.queues.clone();
        let shares: Vec<f64> = queues[0].occupancy.values().copied().collect();
        assert_eq!(shares.len(), 10);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // Between the mean if every tenth were at its lower edge, and a tenth of the limit more. (ns-2's drop-tail queue
        // of 50 holds 49.)
        let lower: f64 = (0..).zip(&shares).map(|(k, share)| f64::from(k) * 5.0 * share).sum();
        let mean = asked.queues[0].mean_packets;
        assert!((lower - 1.0..=lower + 5.0).contains(&mean), "{kind}: {mean} packets, tenths from {lower}");
        assert!(queues[1].occupancy.is_empty(), "the way back was not asked for");
        queues[0].occupancy.clear();
        assert_eq!(format!("{:?}", queues), format!("{:?}", summary(&text).queues));
        assert_eq!(format!("{:?}", asked.flows), format!("{:?}", summary(&text).flows));
    }
}

#[test]
fn a_limit_in_time_is_what_the_link_sends_in_it() {
    let by_time = full("droptail", "100 ms", "");
    assert_eq!(format!("{:?}", by_time.queues), format!("{:?}", full("droptail", "50 kB", "").queues));
    assert_ne!(format!("{:?}", by_time.queues), format!("{:?}", full("droptail", "101 ms", "").queues));
}

#[test]
fn thresholds_as_shares_are_those_shares_of_the_limit() {
    let same = |limit: &str, more: &str, shares: &str, thresholds: &str| {
        let of = |keys: &str| format!("{:?}", full("red", limit, &format!(", {keys}, weight = 0.02{more}")).queues);
        assert_eq!(of(shares), of(thresholds), "{limit}{more}");
        assert_ne!(of(shares), of("min_share = 0.3, max_share = 0.7"), "{limit}{more}");
    };
    let shares = "min_share = \"30 %\", max_share = 0.8";
    same("50 packets", "", shares, "min_threshold = 15, max_threshold = 40");
    same("100 ms", "", shares, "min_threshold = 15, max_threshold = 40");
    same("50 kB", ", mean_packet = \"500 B\"", shares, "min_threshold = 30, max_threshold = 80");
    same("50 packets", ", mode = \"bytes\"", shares, "min_threshold = 15, max_threshold = 40");
}

/// Web servers: Pareto gaps are reachable, and heavier than exponential ones of the same mean.
#[test]
fn web_servers_with_pareto_gaps() {
    let of = |more: &str| {
        let text = format!(
            "duration = \"1000 s\"\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\n\
             [flow.web]\ncc = \"reno\"\ncount = 20\n\
             app = {{ kind = \"web\", shape = 1.1, mean_size = \"20 kB\", max_size = \"1 MB\"{more} }}\n"
        );
        summary(&text).flows.iter().map(|flow| flow.transfers_completed).sum::<u64>() as f64
    };
    // Of 20,000 s a transfer takes about 0.5 s of pause and some milliseconds.
    let (exponential, pareto) = (of(""), of(", gap_shape = 1.8"));
    for (name, count) in [("exponential", exponential), ("Pareto", pareto)] {
        assert!((34_000.0..42_000.0).contains(&count), "{name}: {count}");
    }
    // Nearly constant gaps, of a law with a high shape, have the same mean.
    let even = of(", gap_shape = 100");
    assert!((even / exponential - 1.0).abs() < 0.03, "{even} and {exponential}");
    assert_ne!(exponential, pareto);
}

/// What the web began and finished in the warm-up is not measured: with what was before, it is the whole.
#[test]
fn transfers_of_the_warm_up_do_not_count() {
    let of = |times: &str| {
        let text = format!(
            "{times}\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
             [flow.web]\ncount = 5\napp = {{ kind = \"web\", mean_size = \"20 kB\" }}\n"
        );
        let flows = summary(&text).flows;
        flows.iter().fold((0, 0), |(a, b), flow| (a + flow.transfers_started, b + flow.transfers_completed))
    };
    let (whole, before) = (of("duration = \"100 s\""), of("duration = \"60 s\""));
    let measured = of("duration = \"100 s\"\nwarmup = \"60 s\"");
    assert!(before.0 > 100 && before.1 > 100, "{before:?}");
    assert_eq!(measured, (whole.0 - before.0, whole.1 - before.1));
}

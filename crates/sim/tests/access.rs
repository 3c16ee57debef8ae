//! Access links: their defaults, what happens where they are not faster than the bottleneck, and those that differ at the
//! receivers.

use super::read;
use paceline_scenario::{Document, Scenario};
use paceline_sim::graph::{Fold, Planning, Taps};
use paceline_sim::summary::{QueueSummary, Summary};
use paceline_sim::{RunOptions, ScheduleKind, expand, run};

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
    let scenario = read::scenario(&text);
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

/// What the receivers lose in one second alone, an instance's own loss stands in the place of at all times.
#[test]
fn a_loss_at_times_and_one_of_an_instance() {
    let at_times = "receiver = { loss = { rate = \"2 %\", during = [{ from = \"1 s\", to = \"2 s\" }] } }";
    let lost = |flow: &str| summary(at_times, flow).engine.drops["loss"];
    let (brief, own) = (lost(""), lost("access.receiver.loss = \"1 %\""));
    assert!((1..60).contains(&brief) && own > 200, "{brief}, {own}");
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

// ------------------------------------------------------------------ defaults

fn run_with(text: &str, options: &RunOptions<'_>) -> Summary {
    let scenario = read::scenario(text);
    let again = Document::parse(&scenario.to_toml(), "test.toml").expect("TOML");
    assert_eq!(scenario, Scenario::check(&again, &mut |_| Err("no file".to_owned())).expect("a good scenario"));
    run(&expand(&scenario, 1).expect("a network"), options).expect("a run").summary
}

fn of(text: &str) -> Summary {
    run_with(text, &RunOptions::default())
}

fn access_rows(summary: &Summary) -> Vec<&QueueSummary> {
    summary.queues.iter().filter(|row| row.link.starts_with("access ")).collect()
}

/// Under the defaults the link that the scenario names is the bottleneck, whatever its rate: it is used, its own queue is what
/// packets wait in, and nothing waits elsewhere.
#[test]
fn links_of_any_rate_are_the_bottleneck() {
    // bit/s, one-way delay in microseconds, packets of queue, milliseconds
    let cases = [
        (64e3, 20_000.0, 20, 300_000),
        (1e6, 20_000.0, 20, 60_000),
        (10e6, 20_000.0, 60, 20_000),
        (11e6, 20_000.0, 60, 20_000),
        (97e6, 20_000.0, 400, 10_000),
        (100e6, 20_000.0, 400, 10_000),
        (1e9, 10_000.0, 2_000, 3_000),
        (10e9, 1_000.0, 2_000, 500),
        (100e9, 250.0, 20_000, 120),
    ];
    for (rate, delay, packets, duration) in cases {
        // what fills the path, and half of the queue
        let window = (2e-6 * delay * rate / 12_000.0 + f64::from(packets) / 2.0).ceil();
        let summary = of(&format!(
            "
            duration = \"{duration} ms\"
            warmup = \"{} ms\"
            [link.bottleneck]
            rate = \"{} bit/s\"
            delay = \"{delay} us\"
            queue = {{ kind = \"droptail\", limit = \"{packets} packets\" }}
            [flow.a]
            receive_window = {window}
            ",
            duration / 2,
            rate as u64,
        ));
        let (flow, queue) = (&summary.flows[0], &summary.queues[0]);
        assert!((0.99..=1.0).contains(&queue.utilisation), "{rate}: {} used", queue.utilisation);
        assert!((0.96..=0.975).contains(&(flow.goodput_bps / rate)), "{rate}: {} bit/s", flow.goodput_bps);
        // Little's law: a window a round trip, and a packet more while its acknowledgement waits for the next
        let (rtt, expected) = (flow.rtt_mean_s.expect("round trips"), window * 12_000.0 / rate);
        assert!(
            (0.9 * expected..1.02 * expected + 12_000.0 / rate).contains(&rtt),
            "{rate}: {rtt} s instead of {expected}"
        );
        let waiting = queue.mean_packets / f64::from(packets);
        assert!((0.2..0.6).contains(&waiting), "{rate}: {waiting} of the queue is in use");
        assert!(access_rows(&summary).is_empty() && summary.notices.is_empty(), "{rate}: {:?}", summary.notices);
    }
}

/// At 1 Gbit/s it was 97 Mbit/s at a mean round trip of 11.6 s, all of it before a hidden link.
#[test]
fn a_gigabit_is_a_gigabit() {
    let summary = of("
        duration = \"60 s\"
        [link.bottleneck]
        rate = \"1 Gbit/s\"
        delay = \"10 ms\"
        queue = { kind = \"droptail\", limit = \"1000 packets\" }
        [flow.a]
        cc = \"cubic\"
        ");
    let flow = &summary.flows[0];
    assert!((0.85e9..=1e9).contains(&flow.goodput_bps), "{} bit/s", flow.goodput_bps);
    let rtt = flow.rtt_mean_s.expect("round trips");
    assert!((0.020..0.033).contains(&rtt), "{rtt} s");
    assert!(summary.queues[0].mean_packets > 10.0);
}

/// With access links of the bottleneck's very rate and no chance in the hosts, one of eight flows took all.
#[test]
fn ns2_at_the_former_rate_of_access_links_is_fair() {
    for seed in 1..4 {
        let summary = of(&format!(
            "
            profile = \"ns2\"
            duration = \"60 s\"
            seed = {seed}
            [link.bottleneck]
            rate = \"100 Mbit/s\"
            delay = \"20 ms\"
            queue = {{ kind = \"droptail\", limit = \"400 packets\" }}
            [flow.a]
            count = 8
            start = {{ uniform = [\"0 s\", \"1 s\"] }}
            "
        ));
        let jain = summary.groups[0].jain.expect("goodputs");
        assert!((0.8..=1.0).contains(&jain), "seed {seed}: Jain {jain}");
        assert!(summary.queues[0].max_packets > 100, "seed {seed}: the bottleneck queues");
    }
}

#[test]
fn the_default_follows_what_varies_and_what_goes_back() {
    let access = |link: &str| {
        let text = format!("duration = \"1 s\"\n[link.bottleneck]\n{link}\n[flow.a]\n");
        let document = Document::parse(&text, "test.toml").expect("TOML");
        let mut read = |_: &str| Ok("0 20\n1 80\n2 10\n".to_owned());
        let scenario = Scenario::check(&document, &mut read).expect("a good scenario");
        scenario.access().expect("access links").rate.expect("filled").bps()
    };
    for (link, rate) in [
        ("rate = \"1 Mbit/s\"", 1000.3e6),
        ("rate = \"10 Mbit/s\"", 1003e6),
        ("rate = \"20 Mbit/s\"", 1006e6),
        ("rate = \"300 Mbit/s\"", 3.09e9),
        ("rate = \"2 Mbit/s\"\nbackward = { rate = \"1 Gbit/s\" }", 10.3e9),
        ("rate_schedule = [{ at = \"0 s\", rate = \"5 Mbit/s\" }, { at = \"5 s\", rate = \"50 Mbit/s\" }]", 1015e6),
        ("rate_trace = { file = \"x\", format = \"seconds-mbit\" }\nbackward = { rate = \"1 Mbit/s\" }", 1064e6),
        ("rate = \"1000 Gbit/s\"", 10e12),
    ] {
        assert_eq!(access(link), rate, "{link}");
    }
}

// ------------------------------------------------------------------ a link that is not faster

fn slow(cc: &str, more: &str) -> String {
    format!(
        "
        duration = \"60 s\"
        warmup = \"10 s\"
        {more}
        [link.bottleneck]
        rate = \"10 Mbit/s\"
        delay = \"20 ms\"
        queue = {{ kind = \"droptail\", limit = \"60 packets\" }}
        [access]
        rate = \"5 Mbit/s\"
        [flow.a]
        {cc}
        "
    )
}

/// Nor does it take more while the path reorders, and segments stand reported beyond a hole.
#[test]
fn senders_wait_for_their_own_link_on_a_path_that_reorders() {
    for cc in ["cc = \"newreno\"", "cc = \"sack\"", "cc = \"cubic\"", "cc = \"cubic\"\nprofile = \"linux\""] {
        let text = slow(cc, "").replace("[access]", "reorder = { rate = 0.2, extra = \"3 ms\" }\n[access]");
        let summary = of(&text);
        let rtt = summary.flows[0].rtt_mean_s.expect("round trips");
        assert!((0.04..0.1).contains(&rtt), "{cc}: {rtt} s");
    }
}

/// A queue that is given is told of, also if it is what it would be anyway.
#[test]
fn a_given_queue_is_told_of() {
    let default = "queue = { kind = \"droptail\", limit = \"1000 packets\" }";
    for (access, told) in [
        (String::new(), vec![]),
        (default.to_owned(), vec!["access a[0].sink", "access a[0].source"]),
        (format!("receiver = {{ {default} }}"), vec!["access a[0].sink"]),
    ] {
        let summary = beside_a_slow_link(&access, "");
        let mut names: Vec<_> = access_rows(&summary).iter().map(|row| row.link.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names, told, "{access:?}");
        assert_eq!(summary.flows[0].packets_sent, beside_a_slow_link("", "").flows[0].packets_sent);
    }
}

/// Its own host's link holds a sender back instead of taking without end what it is given: a second's round trips in ten.
#[test]
fn senders_wait_for_their_own_link() {
    for cc in [
        "cc = \"newreno\"",
        "cc = \"sack\"",
        "cc = \"cubic\"",
        "cc = \"vegas\"",
        "cc = \"veno\"",
        "cc = \"cubic\"\nprofile = \"linux\"",
        "cc = \"newreno\"\nprofile = \"linux\"",
        "cc = \"tfrc\"",
        "cc = \"multfrc\"",
        "cc = \"rap\"",
        "cc = \"tfrcp\"",
    ] {
        let summary = of(&slow(cc, ""));
        let flow = &summary.flows[0];
        let rtt = flow.rtt_max_s.expect("round trips");
        // propagation; two packets before the sender's link, and what one acknowledgement lets go, 2.4 ms each, at both
        // hosts; the delayed acknowledgement of profile linux
        let delayed = if cc.contains("linux") { 0.04 } else { 0.0 };
        assert!((0.040..0.065 + delayed).contains(&rtt), "{cc}: {rtt} s");
        assert_eq!(flow.packets_lost, 0, "{cc}");
        let rows = access_rows(&summary);
        let row = rows.iter().find(|row| row.direction == "up").unwrap_or_else(|| panic!("{cc}: no row of {rows:?}"));
        assert!((1..=3).contains(&row.max_packets), "{cc}: {} packets", row.max_packets);
        // a rate of TFRC's kin is limited by what arrives, and Vegas' window by the queue
        assert!(row.utilisation > if cc.contains("newreno") { 0.99 } else { 0.9 }, "{cc}: {}", row.utilisation);
        let kinds: Vec<_> = summary.notices.iter().map(|notice| notice.kind).collect();
        assert_eq!(kinds, ["access-not-faster"], "{cc}: {:?}", summary.notices);
        assert!(summary.notices[0].text.contains("5 Mbit/s") && summary.notices[0].text.contains("`a`"));
    }
}

#[test]
fn without_backpressure_the_queue_takes_all_there_is_and_drops() {
    let text = slow("cc = \"sack\"", "")
        .replace("warmup = \"10 s\"", "")
        .replace("rate = \"5 Mbit/s\"", "rate = \"5 Mbit/s\"\nbackpressure = false");
    let summary = of(&text);
    let row = access_rows(&summary).into_iter().find(|row| row.direction == "up").expect("a row");
    assert_eq!(row.max_packets, 1000);
    assert!(row.drops["overflow"] > 0 && summary.flows[0].rtt_max_s > Some(2.0), "{row:?}");
}

/// Datagrams of an application without control go to the interface, and are dropped there.
#[test]
fn datagrams_are_dropped_where_they_find_no_room() {
    let summary = of(&slow("cc = \"udp\"\napp = { kind = \"cbr\", rate = \"8 Mbit/s\" }", ""));
    let row = access_rows(&summary).into_iter().find(|row| row.direction == "up").expect("a row");
    assert_eq!(row.max_packets, 1000);
    let flow = &summary.flows[0];
    assert!(row.drops["overflow"] > 1000 && row.drops["overflow"] == flow.packets_lost, "{:?}", row.drops);
    assert!((4.99e6..=5.001e6).contains(&flow.throughput_bps), "{}", flow.throughput_bps);
}

/// ns-2's agents know nothing of what is below them, and its profiles have what they had.
#[test]
fn ns2_queues_without_end_and_says_so() {
    let summary = of(&slow("cc = \"newreno\"", "profile = \"ns2\""));
    assert!(summary.flows[0].rtt_max_s > Some(5.0), "{:?}", summary.flows[0].rtt_max_s);
    let row = access_rows(&summary).into_iter().find(|row| row.direction == "up").expect("a row");
    assert!(row.max_packets > 3000, "{}", row.max_packets);
    assert_eq!(summary.notices.len(), 1);
}

/// What a host knows of its link does not depend on how the run is arranged.
#[test]
fn arrangements_agree_on_a_full_link() {
    for (cc, more) in [
        ("cc = \"newreno\"\napp = { kind = \"ftp\", size = \"5 MB\" }", "stop_after = \"a\""),
        ("cc = \"cubic\"\ncount = 3", ""),
        ("cc = \"tfrc\"", ""),
        ("cc = \"udp\"\napp = { kind = \"cbr\", rate = \"8 Mbit/s\" }", ""),
    ] {
        let text = slow(cc, more);
        let fast = run_with(&text, &RunOptions::default());
        let planning = Planning { fold: Fold::Nothing, ..Planning::default() };
        let events = RunOptions { schedule: ScheduleKind::Events, planning, ..RunOptions::default() };
        let slow = run_with(&text, &events);
        let json = |summary: &Summary| serde_json::to_string(&(&summary.flows, &summary.queues)).expect("JSON");
        assert_eq!(json(&fast), json(&slow), "{cc}");
        let taps = Planning { taps: Taps::Hosts, ..Planning::default() };
        let captured = run_with(&text, &RunOptions { planning: taps, ..RunOptions::default() });
        assert_eq!(json(&fast), json(&captured), "{cc}, captured");
    }
}

/// A receiver's link that is the slowest of all drops in a queue of its own, which is told of.
#[test]
fn a_receiver_s_queue_is_told_of_where_it_is_the_bottleneck() {
    let summary = summary("receiver = { rate = \"5 Mbit/s\" }", "");
    let row = access_rows(&summary).into_iter().find(|row| row.direction == "down").expect("a row");
    assert!(row.max_packets > 30 && row.utilisation > 0.9, "{row:?}");
    assert!(summary.notices[0].text.starts_with("The receivers' access links of `a`"), "{:?}", summary.notices);
}

/// Beside 1 Mbit/s a host delays each segment by up to 24 ms: what is on its way to the interface does not lie there.
fn beside_a_slow_link(access: &str, flow: &str) -> Summary {
    of(&format!(
        "
        duration = \"200 s\"
        [link.bottleneck]
        rate = \"1 Mbit/s\"
        delay = \"50 ms\"
        queue = {{ kind = \"droptail\", limit = \"60 packets\" }}
        [access]
        {access}
        [flow.a]
        {flow}
        "
    ))
}

#[test]
fn an_interface_holds_no_more_for_the_hosts_delay() {
    for (rate, flow, most) in [
        ("2 Mbit/s", "cc = \"cubic\"\nprofile = \"linux\"", 2),
        ("500 kbit/s", "cc = \"cubic\"\nprofile = \"linux\"", 2),
        ("500 kbit/s", "cc = \"newreno\"", 3), // what one acknowledgement lets go, leaves together
        ("500 kbit/s", "cc = \"rap\"", 2),
    ] {
        let summary = beside_a_slow_link(&format!("rate = \"{rate}\"\nqueue = {{ limit = \"999 packets\" }}"), flow);
        let rows = access_rows(&summary);
        let row = rows.iter().find(|row| row.direction == "up" && row.link.ends_with("source")).expect("a row");
        assert!((1..=most).contains(&row.max_packets), "{rate}, {flow}: {} packets", row.max_packets);
        let used = summary.queues[0].utilisation.max(row.utilisation);
        assert!((0.99..=1.0).contains(&used), "{rate}, {flow}: {used}");
    }
}

/// Nor is the interface full while packets are on their way to it: ten segments go out together, whatever the queue holds
/// beyond what is there at a time.
#[test]
fn a_short_queue_of_its_own_spaces_nothing() {
    let burst = |limit: u32| {
        let access = format!("rate = \"100 Mbit/s\"\nqueue = {{ limit = \"{limit} packets\" }}");
        let flow = "cc = \"cubic\"\nprofile = \"linux\"\napp = { kind = \"ftp\", size = \"14480 B\" }";
        beside_a_slow_link(&access, flow)
    };
    let (short, long) = (burst(5), burst(999));
    assert!(long.queues[0].max_packets >= 7, "{:?}", long.queues[0]);
    assert_eq!(short.queues[0].max_packets, long.queues[0].max_packets);
    assert_eq!(short.flows[0].transfer_time_mean_s, long.flows[0].transfer_time_mean_s);
}

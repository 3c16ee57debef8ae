//! What CoDel, FQ-CoDel and PIE are for: a delay that stays about their target under few flows and many, at a link that
//! stays busy; and flows that do not wait for one another.
//!
//! The settings are those of the published evaluations: 10 Mbit/s and 100 ms of round trip, a few TCP flows or many (Pan
//! et al., HPSR 2013, and the drafts of RFC 8033; Nichols and Jacobson, ACM Queue 2012, for CoDel).

use paceline_scenario::{Document, Scenario};
use paceline_sim::{Recording, RunOptions, RunOutput, expand, run};
use paceline_units::Span;

fn outcome(text: &str, seed: u64) -> RunOutput {
    let document = Document::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    let scenario = Scenario::check(&document, &mut |_| Ok("0 4\n10 12\n20 7\n".into()));
    let model = expand(&scenario.unwrap_or_else(|error| panic!("{error}")), seed).unwrap();
    let recording = Recording::of(&["queue"], Span::from_millis(100)).unwrap();
    run(&model, &RunOptions { recording, ..RunOptions::default() }).unwrap()
}

fn bottleneck(queue: &str, flows: &str) -> String {
    format!(
        "duration = \"60 s\"\nwarmup = \"20 s\"\nprofile = \"linux\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\n\
         delay = \"50 ms\"\nqueue = {{ {queue} }}\n{flows}"
    )
}

/// Mean delay in milliseconds (by Little's law, and from the recording) and the utilisation of the way there.
fn delay_and_use(output: &RunOutput) -> (f64, f64) {
    let queue = &output.summary.queues[0];
    let delay = queue.mean_bytes * 8.0 / (10e6 * queue.utilisation) * 1e3;
    let series = output.series.iter().find(|series| series.labels.contains(&("direction", "forward".into()))).unwrap();
    let column = |name: &str| &series.columns.iter().find(|(column, _)| *column == name).unwrap().1;
    let waits: Vec<f64> = column("time_s")
        .iter()
        .zip(column("delay_s"))
        .filter(|(time, _)| **time > 20.0)
        .map(|(_, d)| d * 1e3)
        .collect();
    let recorded = waits.iter().sum::<f64>() / waits.len() as f64;
    assert!((recorded / delay - 1.0).abs() < 0.25, "recorded {recorded} ms, by Little's law {delay} ms");
    (delay, queue.utilisation)
}

#[test]
fn the_delay_stays_about_the_target_and_the_link_busy() {
    // Without any, a queue of 1000 packets of 1500 bytes stands at hundreds of milliseconds.
    for cc in ["newreno", "cubic"] {
        let flows = format!("[flow.a]\ncount = 5\ncc = \"{cc}\"\n");
        let (delay, _) = delay_and_use(&outcome(&bottleneck("limit = \"1000 packets\"", &flows), 1));
        assert!(delay > 300.0, "{cc}: {delay} ms");
    }
    // PIE holds its target whatever the number; CoDel's law takes long to reach the drops that many flows need, so its
    // delay grows with them (Pan et al. show both); FQ-CoDel lets each of the flows keep an MTU and more.
    for (kind, count, delays, least) in [
        // three quarters, and a packet time of the host in a round trip of 83 more
        ("codel", 1, 0.5..5.0, 0.74),
        ("codel", 5, 2.0..8.0, 0.9),
        ("codel", 20, 5.0..40.0, 0.98),
        ("codel", 50, 10.0..60.0, 0.99),
        ("fq-codel", 1, 0.5..5.0, 0.74),
        ("fq-codel", 5, 2.0..12.0, 0.9),
        ("fq-codel", 50, 20.0..120.0, 0.98),
        ("pie", 1, 3.0..15.0, 0.8),
        ("pie", 5, 12.0..20.0, 0.95),
        ("pie", 20, 13.0..18.0, 0.98),
        ("pie", 50, 13.0..18.0, 0.99),
        ("fq-pie", 1, 3.0..15.0, 0.8),
        ("fq-pie", 5, 8.0..25.0, 0.95),
        ("fq-pie", 50, 20.0..120.0, 0.98),
        // which is COBALT on each flow, and no shaper
        ("cake", 1, 0.5..5.0, 0.74),
        ("cake", 5, 2.0..12.0, 0.9),
        // Classic senders alone: one does not fill it, and no autotuning is needed for many
        ("dualpi2", 1, 2.0..15.0, 0.8),
        ("dualpi2", 5, 10.0..18.0, 0.95),
        ("dualpi2", 20, 13.0..17.0, 0.98),
        ("dualpi2", 50, 13.0..20.0, 0.99),
    ] {
        let flows = format!("[flow.a]\ncount = {count}\ncc = \"newreno\"\n");
        let output = outcome(&bottleneck(&format!("kind = \"{kind}\""), &flows), 1);
        let (delay, used) = delay_and_use(&output);
        assert!(used > least, "{kind}, {count} flows: {used}");
        assert!(delays.contains(&delay), "{kind}, {count} flows: {delay} ms");
        let drops = &output.summary.queues[0].drops;
        let (own, other) =
            if ["pie", "fq-pie", "dualpi2"].contains(&kind) { ("early", "delay") } else { ("delay", "early") };
        assert!(drops[own] > 0 && drops[other] == 0 && drops["overflow"] == 0, "{kind}: {drops:?}");
    }
}

/// PIE with the rate of departures instead of timestamps, and with the target elsewhere.
#[test]
fn pie_finds_its_target_by_either_estimate() {
    for (more, target) in
        [("estimate = \"departure-rate\"", 15.0), ("target = \"40 ms\"", 40.0), ("derandomize = true", 15.0)]
    {
        let flows = "[flow.a]\ncount = 20\ncc = \"newreno\"\n";
        let (delay, used) = delay_and_use(&outcome(&bottleneck(&format!("kind = \"pie\", {more}"), flows), 2));
        assert!((delay / target - 1.0).abs() < 0.25 && used > 0.95, "{more}: {delay} ms, {used}");
    }
}

/// With flows that understand marks nothing is dropped for its delay.
#[test]
fn marks_spare_drops() {
    for (kind, reason) in [("codel", "delay"), ("fq-codel", "delay"), ("pie", "early"), ("fq-pie", "early")] {
        let counts = |ecn: bool, of_flow: bool| {
            let flows = format!("[flow.a]\ncount = 5\ncc = \"newreno\"\necn = {of_flow}\n");
            let more = if kind.contains("pie") { ", mark_below = \"100 %\"" } else { "" };
            let output = outcome(&bottleneck(&format!("kind = \"{kind}\", ecn = {ecn}{more}"), &flows), 1);
            (output.summary.queues[0].marks, output.summary.queues[0].drops[reason])
        };
        let ((marks, drops), (no_marks, dropped)) = (counts(true, true), counts(true, false));
        assert!(marks > 50 && drops == 0, "{kind}: {marks} {drops}");
        assert!(no_marks == 0 && dropped > 50, "{kind}: {no_marks} {dropped}");
        assert_eq!(counts(false, true).0, 0);
    }
}

/// RFC 8290, and FQ-PIE after it: flows share alike whatever their controller and round trip.
#[test]
fn flow_queues_share_alike() {
    let flows = "[flow.a]\ncount = 2\ncc = \"newreno\"\n[flow.b]\ncount = 2\ncc = \"cubic\"\n\
                 [flow.c]\ncc = \"udp\"\napp = { kind = \"cbr\", rate = \"8 Mbit/s\" }\n";
    // the mean of three runs; with seed 3 two flows fall into one queue
    let goodputs = |queue: &str| -> Vec<f64> {
        let runs = [1, 2, 4].map(|seed| outcome(&bottleneck(queue, flows), seed).summary.flows);
        (0..5).map(|flow| runs.iter().map(|flows| flows[flow].goodput_bps / 3e6).sum()).collect()
    };
    // CAKE, which lets no flow keep a packet above the delay to hold, has TCP lose more, and leaves that to who does not yield.
    for (kind, most) in [("fq-codel", 2.3), ("fq-pie", 2.3), ("cake", 2.8)] {
        let fair = goodputs(&format!("kind = \"{kind}\""));
        assert!(fair.iter().all(|rate| (1.3..most).contains(rate)), "{kind}: {fair:?}");
    }
    // In one queue, be it of CoDel or of hashes that fall together, what does not yield gets the most of it.
    for one in ["kind = \"codel\"", "kind = \"fq-codel\", queues = 1", "kind = \"fq-pie\", queues = 1"] {
        let first = goodputs(one);
        assert!(first[..4].iter().all(|rate| *rate < 1.3), "{one}: {first:?}");
    }
}

/// A rate that varies, as a trace has it: all that was said of packets still holds (each run asserts it), and the delay
/// follows the rate.
#[test]
fn disciplines_follow_a_rate_that_varies() {
    for kind in ["codel", "fq-codel", "pie", "fq-pie", "dualpi2", "cake", "cake\", bandwidth = \"20 Mbit/s"] {
        let text = format!(
            "duration = \"30 s\"\nprofile = \"linux\"\n[link.bottleneck]\ndelay = \"20 ms\"\n\
             rate_trace = {{ file = \"t\", format = \"seconds-mbit\" }}\nqueue = {{ kind = \"{kind}\" }}\n\
             backward = {{ rate = \"10 Mbit/s\" }}\n[flow.a]\ncount = 4\n"
        );
        let output = outcome(&text, 1);
        let queue = &output.summary.queues[0];
        assert!(queue.utilisation > 0.8, "{kind}: {}", queue.utilisation);
        let delay = queue.mean_bytes * 8.0 / 7.7e6 * 1e3;
        assert!((1.0..40.0).contains(&delay), "{kind}: {delay} ms");
    }
}

/// DualPI2 marks Classic flows too, counts by class, and needs no word for it; what Classic flows are not marked is dropped.
#[test]
fn dualpi2_counts_by_class() {
    for variant in ["rfc9332", "linux"] {
        for ecn in [true, false] {
            let flows = format!("[flow.a]\ncount = 5\ncc = \"newreno\"\necn = {ecn}\n");
            let output = outcome(&bottleneck(&format!("kind = \"dualpi2\", variant = \"{variant}\""), &flows), 1);
            let queue = &output.summary.queues[0];
            let [l4s, classic] = [queue.l4s.unwrap(), queue.classic.unwrap()];
            let early = queue.drops["early"];
            assert_eq!((l4s.marks + classic.marks, l4s.drops + classic.drops), (queue.marks, early), "{variant}");
            assert_eq!(l4s.departures + classic.departures, queue.departures, "{variant}");
            assert_eq!(l4s.departed_bytes + classic.departed_bytes, queue.departed_bytes, "{variant}");
            assert!(
                if ecn { classic.marks > 50 && early == 0 } else { classic.marks == 0 && early > 50 },
                "{variant}, {ecn}"
            );
            let (wait, delay) = (classic.delay_mean_s.unwrap() * 1e3, delay_and_use(&output).0);
            assert!((wait / delay - 1.0).abs() < 0.05, "{variant}: {wait} ms, by Little's law {delay} ms");
            assert_eq!(l4s.departures, 0, "nobody sends ECT(1), nor marks on the way here");
        }
    }
    let other = outcome(&bottleneck("kind = \"pie\"", "[flow.a]\n"), 1);
    assert!(other.summary.queues.iter().all(|queue| queue.l4s.is_none() && queue.classic.is_none()));
}

/// CAKE needs no word for marks.
#[test]
fn cake_marks_whoever_can_be() {
    let counts = |ecn: bool| {
        let flows = format!("[flow.a]\ncount = 5\ncc = \"newreno\"\necn = {ecn}\n");
        let queue = &outcome(&bottleneck("kind = \"cake\"", &flows), 1).summary.queues[0];
        (queue.marks, queue.drops["delay"])
    };
    let ((marks, spared), (no_marks, dropped)) = (counts(true), counts(false));
    assert!(marks > 50 && spared == 0 && no_marks == 0 && dropped > 50, "{marks} {spared} {no_marks} {dropped}");
}

/// The shaper stands in for a slower link: goodput and delay are those of a link of its bandwidth, and its overhead is paid for.
#[test]
fn cake_shapes_below_the_link() {
    let of = |rate: &str, queue: &str| {
        let text = format!(
            "duration = \"60 s\"\nwarmup = \"20 s\"\nprofile = \"linux\"\n[link.bottleneck]\nrate = \"{rate}\"\ndelay = \"50 ms\"\n\
             queue = {{ kind = \"cake\", {queue} }}\n[flow.a]\ncount = 5\ncc = \"cubic\"\n"
        );
        let output = outcome(&text, 1);
        let queue = &output.summary.queues[0];
        let sent = queue.departed_bytes as f64 * 8.0 / 40e6;
        (sent, queue.mean_bytes * 8.0 / (sent * 1e6) * 1e3)
    };
    let (shaped, delay) = of("100 Mbit/s", "bandwidth = \"10 Mbit/s\", overhead = \"0 B\"");
    let (plain, own) = of("10 Mbit/s", "isolation = \"triple-isolate\"");
    assert!((shaped / plain - 1.0).abs() < 0.02 && shaped < 10.0, "{shaped} {plain} Mbit/s");
    assert!((2.0..12.0).contains(&delay) && (2.0..12.0).contains(&own), "{delay} {own} ms");
    // 1500 bytes in 32 cells of 53
    let (cells, _) = of("100 Mbit/s", "bandwidth = \"10 Mbit/s\", overhead = \"10 B\", framing = \"atm\"");
    assert!((cells / shaped / (1500.0 / (32.0 * 53.0)) - 1.0).abs() < 0.02, "{cells} {shaped}");
}

/// A host with one flow has as much as one with ten, as nodes are hosts; by flows alone it has an eleventh. Each sends more than its share.
#[test]
fn cake_shares_by_hosts() {
    let share = |isolation: &str| {
        let text = format!(
            "duration = \"40 s\"\nwarmup = \"10 s\"\nprofile = \"linux\"\ntopology = \"graph\"\n\
             [link.few]\nbetween = [\"one\", \"left\"]\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\n\
             [link.many]\nbetween = [\"ten\", \"left\"]\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\n\
             [link.bottleneck]\nbetween = [\"left\", \"right\"]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\n\
             queue = {{ kind = \"cake\", isolation = \"{isolation}\", limit = \"100 ms\" }}\n\
             [link.a]\nbetween = [\"right\", \"a\"]\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\n\
             [link.b]\nbetween = [\"right\", \"b\"]\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\n\
             [flow.one]\nfrom = \"one\"\nto = \"a\"\ncc = \"udp\"\napp = {{ kind = \"cbr\", rate = \"15 Mbit/s\" }}\n\
             [flow.ten]\nfrom = \"ten\"\nto = \"b\"\ncount = 10\ncc = \"udp\"\napp = {{ kind = \"cbr\", rate = \"3 Mbit/s\" }}\n"
        );
        let rates: Vec<f64> = outcome(&text, 1).summary.flows.iter().map(|flow| flow.goodput_bps).collect();
        rates[0] / rates.iter().sum::<f64>()
    };
    for (isolation, expected) in
        [("triple-isolate", 0.5), ("dual-srchost", 0.5), ("dual-dsthost", 0.5), ("srchost", 0.5), ("flows", 1.0 / 11.0)]
    {
        let share = share(isolation);
        assert!((share / expected - 1.0).abs() < 0.02, "{isolation}: {share}");
    }
}

/// What does not heed drops: BLUE learns to drop it, once the room is full, so that the others' delay and its own come back to the target.
#[test]
fn cake_drops_what_heeds_nothing() {
    let flood = "[flow.flood]\ncc = \"udp\"\napp = { kind = \"cbr\", rate = \"20 Mbit/s\" }\n";
    let delay = |queue: &str| {
        let output = outcome(&bottleneck(queue, flood), 1);
        let queue = &output.summary.queues[0];
        let delay = queue.mean_bytes * 8.0 / (10e6 * queue.utilisation);
        (delay * 1e3, queue.drops["early"], queue.utilisation)
    };
    let (cobalt, early, used) = delay("kind = \"cake\", limit = \"500 ms\"");
    let (codel, _, _) = delay("kind = \"fq-codel\", limit = \"500 ms\"");
    assert!(cobalt < 20.0 && early > 1000 && used > 0.97, "{cobalt} ms, {early}, {used}; CoDel {codel} ms");
    assert!(codel > 2.0 * cobalt, "{codel} ms");
}

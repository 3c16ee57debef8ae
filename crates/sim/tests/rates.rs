//! What no measure may exceed, and what an impossible run is told.

use paceline_scenario::{Document, Scenario};
use paceline_sim::{Recording, RunOptions, RunOutput, Watch, expand, run};
use paceline_units::Span;

fn outcome(text: &str) -> Result<RunOutput, String> {
    with(text, &RunOptions::default())
}

fn with(text: &str, options: &RunOptions<'_>) -> Result<RunOutput, String> {
    let document = Document::parse(text, "test.toml").map_err(|e| e.to_string())?;
    let scenario = Scenario::check(&document, &mut |file| Err(format!("no file {file}"))).map_err(|e| e.to_string())?;
    let model = expand(&scenario, 1).map_err(|e| e.to_string())?;
    run(&model, options).map_err(|e| e.to_string())
}

#[test]
fn what_arrives_after_a_stop_counts_with_its_time() {
    let output = outcome(
        "
        duration = \"30 s\"
        host_delay = \"0 s\"
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
fn the_silence_after_a_transfer_is_no_part_of_its_goodput() {
    let of = |duration: &str, app: &str| {
        let text = format!(
            "duration = \"{duration}\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\n\
             [flow.a]\napp = {{ {app} }}\n"
        );
        outcome(&text).unwrap().summary.flows[0].goodput_bps
    };
    let ftp = "kind = \"ftp\", size = \"500 kB\"";
    assert!((0.8e6..1e6).contains(&of("60 s", ftp)), "{} bit/s", of("60 s", ftp));
    assert_eq!(of("60 s", ftp), of("600 s", ftp), "the silence after the transfer counts");
    // What has not come to its end is active until the run's.
    let web = "kind = \"web\", gap = \"1000 s\"";
    assert!(of("2000 s", web) < 10_000.0, "{} bit/s", of("2000 s", web));
}

/// Marks and early drops of a RED queue under four flows that understand ECN.
fn red(more: &str) -> (u64, u64) {
    let text = format!(
        "duration = \"60 s\"\n[link.bottleneck]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\n\
         queue = {{ kind = \"red\", limit = \"100 packets\", ecn = true{more} }}\n[flow.a]\ncount = 4\necn = true\n"
    );
    let queue = &outcome(&text).unwrap().summary.queues[0];
    (queue.marks, queue.drops["early"])
}

#[test]
fn all_of_red_is_within_reach() {
    let (marks, early) = red("");
    assert!(marks > 20, "{marks}");
    assert_eq!(red(", mark_below = 0.1, idle_packet = \"1000 B\""), (marks, early), "these are the defaults");
    let (none, more) = red(", mark_below = 0");
    assert!(none == 0 && more > early, "marks at most below nothing: {none} marks, {more} drops");
    assert_ne!(red(", adaptive = {}"), (marks, early));
    assert_ne!(red(", adaptive = {}"), red(", adaptive = { top = 0.11, interval = \"5 s\" }"));
    // Sparse flows leave the link idle; small packets let the average fall faster then.
    let web = |more: &str| {
        let text = format!(
            "duration = \"60 s\"\n[link.bottleneck]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\n\
             queue = {{ kind = \"red\", min_threshold = 2, max_threshold = 9, weight = 0.02{more} }}\n\
             [flow.a]\ncount = 3\napp = {{ kind = \"web\" }}\n"
        );
        outcome(&text).unwrap().summary.queues[0].mean_packets
    };
    assert_ne!(web(""), web(", idle_packet = \"40 B\""));
}

#[test]
fn acknowledgements_that_are_lost_are_counted_apart() {
    let output = outcome(
        "
        duration = \"30 s\"
        [link.bottleneck]
        rate = \"1 Mbit/s\"
        delay = \"20 ms\"
        [link.bottleneck.backward]
        loss = { rate = \"10 %\" }
        [flow.a]
        ",
    );
    let summary = output.unwrap().summary;
    let (flow, forward) = (&summary.flows[0], &summary.queues[0]);
    assert!(flow.acks_lost > 20, "{}", flow.acks_lost);
    assert_eq!(flow.packets_lost, forward.drops.values().sum::<u64>());
    assert_eq!(flow.acks_lost, summary.queues[1].drops["loss"]);
}

#[test]
fn a_loop_without_delay_names_its_links_and_no_others() {
    let dumbbell = "duration = \"1 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\n[flow.a]\n[flow.b]\nrtt = \"9 ms\"";
    assert_eq!(
        outcome(dumbbell).unwrap_err(),
        "link.bottleneck.delay: packets could go round in no time, since `bottleneck` and `access` are all without \
         propagation delay; write for example `delay = \"10 ms\"`"
    );
}

#[test]
fn recordings_that_do_not_fit_are_refused_before_the_run() {
    let text = "duration = \"1000 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n[flow.a]\ncount = 10";
    let recording = Recording::of(&["cwnd"], Span::from_micros(1)).unwrap();
    assert_eq!(
        with(text, &RunOptions { recording, ..RunOptions::default() }).unwrap_err(),
        "the recordings would hold 50000000000 numbers, more than 250000000: record fewer kinds, or every 0.001 s at \
         the least"
    );
}

#[test]
fn the_longest_run_ends_soon_when_cancelled() {
    let text = "duration = \"1000000 s\"\n[link.bottleneck]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n[flow.a]";
    let watch = Watch::default();
    let result = std::thread::scope(|scope| {
        let running = scope.spawn(|| with(text, &RunOptions { watch: Some(&watch), ..RunOptions::default() }));
        while watch.progress() == 0.0 && !running.is_finished() {
            std::thread::yield_now();
        }
        watch.cancel();
        running.join().unwrap()
    });
    assert_eq!(result.unwrap_err(), "the run was cancelled");
}

#[test]
fn marks_replace_drops_under_every_profile() {
    for profile in ["rfc", "ns2", "ns2-linux", "linux"] {
        for cc in [if profile == "ns2-linux" { "reno" } else { "newreno" }, "cubic"] {
            let text = format!(
                "
                duration = \"60 s\"
                warmup = \"10 s\"
                [link.bottleneck]
                rate = \"10 Mbit/s\"
                delay = \"20 ms\"
                queue = {{ kind = \"red\", ecn = true, min_threshold = 10, max_threshold = 30, weight = 0.02 }}
                [flow.a]
                profile = \"{profile}\"
                cc = \"{cc}\"
                count = 4
                ecn = true
                "
            );
            let summary = outcome(&text).unwrap().summary;
            let queue = &summary.queues[0];
            let cuts: u64 = summary.flows.iter().map(|flow| flow.window_cuts).sum();
            assert!(queue.utilisation > 0.9, "{profile} {cc}: {}", queue.utilisation);
            assert_eq!(queue.drops.values().sum::<u64>(), 0, "{profile} {cc}");
            assert!((queue.marks / 3..=queue.marks + 4).contains(&cuts), "{profile} {cc}: {cuts} of {}", queue.marks);
        }
    }
}

#[test]
fn rate_control_fills_an_empty_path_whoever_is_followed() {
    for profile in ["rfc", "ns2", "ns2-linux", "linux"] {
        for cc in ["tfrc", "tfrc-veno", "multfrc"] {
            for law in ["rfc5348", "rfc3448", "ns2"] {
                let text = format!(
                    "
                    duration = \"60 s\"
                    warmup = \"20 s\"
                    profile = \"{profile}\"
                    [link.bottleneck]
                    rate = \"5 Mbit/s\"
                    delay = \"20 ms\"
                    [flow.a]
                    cc = \"{cc}\"
                    params = {{ law = \"{law}\" }}
                    "
                );
                let output = outcome(&text).unwrap();
                let queue = output.summary.queues.iter().find(|q| q.direction == "forward").unwrap();
                assert!(queue.utilisation > 0.9, "{profile}, {cc}, law {law}: {}", queue.utilisation);
            }
        }
    }
}

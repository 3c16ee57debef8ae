//! QUIC in the simulator: beside picoquic's runs (@d199d45b, its own simulator), beside TCP of the same law, and with media.

use super::read::checked;
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, simulate};

fn flows(text: &str, seed: u64) -> Vec<FlowSummary> {
    let scenario = checked(text).unwrap_or_else(|error| panic!("{error}"));
    simulate(&scenario, seed, &RunOptions::default()).unwrap().summary.flows
}

/// Goodput's share of the link, mean round trip in ms, share of packets lost, each the mean over seeds 1 to 3. Host delays would be in
/// the round trips; picoquic's has none.
fn alone(cc: &str, (rate, delay, limit): (u32, u32, u32), more: &str) -> (f64, f64, f64) {
    let text = format!(
        "duration = \"30 s\"\nwarmup = \"5 s\"\nhost_delay = \"0 s\"\n[access]\nrate = \"10 Gbit/s\"\ndelay = \"0 s\"\n\
         [link.bottleneck]\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"{limit} B\" }}\n{more}\
         [flow.one]\ncc = \"{cc}\"\ntransport = \"quic\"\nsegment = \"1440 B\"\n"
    );
    let of = |seed| {
        let flow = flows(&text, seed).remove(0);
        let share = flow.throughput_bps / (f64::from(rate) * 1e6);
        (share, flow.rtt_mean_s.unwrap() * 1e3, flow.loss_rate.unwrap())
    };
    (1..=3).map(of).fold((0.0, 0.0, 0.0), |sum, one| (sum.0 + one.0 / 3.0, sum.1 + one.1 / 3.0, sum.2 + one.2 / 3.0))
}

const QUARTER: (u32, u32, u32) = (10, 25, 15_625);
const ONE: (u32, u32, u32) = (10, 25, 62_500);
const FOUR: (u32, u32, u32) = (10, 25, 250_000);
const FAST: (u32, u32, u32) = (100, 50, 1_250_000);

/// Held to these bounds: the share of the link within `share`, the mean round trip within `trip` of picoquic's.
fn beside_picoquic(cc: &str, path: (u32, u32, u32), (share, trip): (f64, f64), (of_share, of_trip): (f64, f64)) {
    let (ours, waits, lost) = alone(cc, path, "");
    println!("{cc} {path:?}: {ours:.4} ({share}), {waits:.1} ms ({trip}), {lost:.5} lost");
    assert!((ours - share).abs() <= of_share, "{cc} {path:?}: {ours} of the link, {share} there");
    assert!((waits / trip - 1.0).abs() <= of_trip, "{cc} {path:?}: {waits} ms, {trip} ms there");
}

/// RFC 9002's Reno: picoquic's `newreno` paces in bursts of a quarter of the window, up to 16 packets, which a short queue does not hold; its
/// HyStart leaves slow start before the queue of the fast path is full, ours by loss.
#[test]
fn newreno_beside_picoquic_s() {
    let of = [(QUARTER, (0.8184, 56.6)), (ONE, (0.9858, 75.2)), (FOUR, (1.0, 191.9)), (FAST, (1.0, 134.4))];
    for (path, there) in of {
        beside_picoquic("newreno", path, there, (0.05, 0.15));
    }
    let loss = "loss = { kind = \"uniform\", rate = \"1 %\", on = \"data\" }\n";
    let (ours, _, _) = alone("newreno", ONE, loss);
    // five runs of picoquic's: 0.239 to 0.284
    assert!((0.22..0.31).contains(&ours), "{ours}");
}

/// picoquic's cubic is RFC 9438's but in random loss, which it does not answer below 15 % (not compared).
#[test]
fn cubic_beside_picoquic_s() {
    let of = [(QUARTER, (0.9704, 57.9)), (ONE, (1.0, 87.2)), (FOUR, (1.0, 227.3)), (FAST, (1.0, 182.1))];
    for (path, there) in of {
        beside_picoquic("cubic", path, there, (0.02, 0.06));
    }
}

/// picoquic's `bbr` is a BBR 3 of an earlier draft that leaves its queue emptier: it takes its rate from fewer rounds.
#[test]
fn bbr3_and_c4_beside_picoquic_s() {
    for (path, there) in [(QUARTER, (0.9806, 51.6)), (ONE, (0.9807, 51.7)), (FOUR, (0.9808, 51.7))] {
        beside_picoquic("bbr3", path, there, (0.035, 0.11));
    }
    let of = [(QUARTER, (0.9838, 51.6)), (ONE, (0.9936, 51.9)), (FOUR, (0.9841, 51.6)), (FAST, (0.9855, 101.1))];
    for (path, there) in of {
        beside_picoquic("c4", path, there, (0.012, 0.03));
    }
}

/// picoquic's `bbr1`. Ours leaves longer queues behind 1 and 4 products, as a kernel's do.
#[test]
fn bbr_beside_picoquic_s() {
    let of = [(QUARTER, (0.9792, 55.9)), (ONE, (0.9996, 58.3)), (FOUR, (0.9997, 58.4)), (FAST, (0.991, 109.9))];
    for (path, there) in of {
        beside_picoquic("bbr", path, there, (0.03, 0.06));
    }
}

/// Transfers of a file that C4's authors specify (`c4_alone`, `c4_alone_200`, `c4_blackhole`), with other controllers in C4's place: the times
/// of picoquic's simulator, ten runs each, until the connection is closed.
#[test]
fn transfers_beside_picoquic_s() {
    let alone = ("rate = \"20 Mbit/s\"", 40, "80 ms", 10);
    let fast = ("rate = \"200 Mbit/s\"", 20, "80 ms", 20);
    // for two seconds nothing passes, and the queue keeps what it has
    let hole = "rate_schedule = [{ at = \"0 s\", rate = \"25 Mbit/s\" }, { at = \"2 s\", rate = \"1 bit/s\" }, \
                { at = \"4 s\", rate = \"25 Mbit/s\" }]";
    let hole = (hole, 35, "250 kB", 10);
    let theirs = [
        ("newreno", [4.4009, 1.121, 6.2271]),
        ("cubic", [4.4673, 1.1468, 5.697]),
        ("bbr", [4.5476, 1.1336, 5.6799]),
        ("bbr3", [4.6677, 1.2216, 5.8112]),
    ];
    for (cc, times) in theirs {
        for ((link, delay, queue, size), theirs) in [alone, fast, hole].into_iter().zip(times) {
            let text = format!(
                "duration = \"30 s\"\nstop_after = \"one\"\n[link.bottleneck]\n{link}\ndelay = \"{delay} ms\"\n\
                 queue = {{ limit = \"{queue}\" }}\n[flow.one]\ncc = \"{cc}\"\ntransport = \"quic\"\ninitial_window = 10\n\
                 quic = {{ max_ack_delay = \"10 ms\" }}\napp = {{ kind = \"ftp\", size = \"{size} MB\" }}\n"
            );
            let ours = flows(&text, 1)[0].transfer_time_mean_s.expect("a whole transfer");
            println!("{cc} {link} {ours:.3} {theirs}");
            assert!((0.92..1.06).contains(&(ours / theirs)), "{cc}, {link}: {ours} s, {theirs} there");
        }
    }
}

/// Two flows of one law share evenly, whichever carries them. QUIC differs from TCP by RFC 9002: both packets of an acknowledgement
/// count in slow start, the window (not FlightSize) is halved, and it paces.
#[test]
fn beside_tcp_of_the_same_law() {
    for cc in ["newreno", "cubic", "bbr3"] {
        let text = format!(
            "duration = \"120 s\"\nwarmup = \"20 s\"\n[link.bottleneck]\nrate = \"20 Mbit/s\"\ndelay = \"15 ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"100 packets\" }}\n\
             [flow.quic]\ncount = 2\ncc = \"{cc}\"\ntransport = \"quic\"\nstart = {{ uniform = [\"0 s\", \"1 s\"] }}\n\
             [flow.tcp]\ncount = 2\ncc = \"{cc}\"\nrecovery = \"rack\"\npacing = true\nstart = {{ uniform = [\"0 s\", \"1 s\"] }}\n"
        );
        let text = if cc == "newreno" { text } else { text.replace("recovery = \"rack\"\npacing = true\n", "") };
        let (mut quic, mut tcp) = (0.0, 0.0);
        for seed in 1..=5 {
            for flow in flows(&text, seed) {
                *(if flow.flow == "quic" { &mut quic } else { &mut tcp }) += flow.throughput_bps / 5e6;
            }
        }
        println!("{cc}: quic {quic:.2}, tcp {tcp:.2} Mbit/s");
        assert!(quic + tcp > 19.0, "{cc}: {quic} {tcp}");
        assert!((0.6..1.67).contains(&(quic / tcp)), "{cc}: {quic} and {tcp} Mbit/s");
    }
}

/// Every law keeps a link full whichever carries it. Packet numbers that were out of step with what is acknowledged left Vegas a fifth;
/// paces that began when packets had left the host, not when they were handed to it, left those that pace 2 to 6 % less.
#[test]
fn every_window_controller_fills_a_link() {
    let of = |cc: &str, more: &str| {
        let text = format!(
            "duration = \"40 s\"\nwarmup = \"10 s\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"60 packets\" }}\n[flow.one]\ncc = \"{cc}\"\n{more}\n"
        );
        flows(&text, 1).remove(0)
    };
    for scheme in paceline_control::registry::schemes() {
        let window = matches!(scheme.machine, paceline_control::Machine::Tcp(_));
        if !window || scheme.name == "tahoe" {
            continue;
        }
        // in its default mode: alone on this path it competes by mistake in some runs, over TCP in two of the first eight seeds
        let mode = if scheme.name == "copa" { "params = { competitive = false }\n" } else { "" };
        let quic = of(scheme.name, &format!("{mode}transport = \"quic\""));
        let tcp = of(scheme.name, mode);
        let (rates, trips) = ((quic.throughput_bps, tcp.throughput_bps), (quic.rtt_mean_s, tcp.rtt_mean_s));
        println!("{} {rates:?} {trips:?}", scheme.name);
        assert!(rates.0 > 0.99 * rates.1, "{}: {rates:?}", scheme.name);
        assert!(trips.0.unwrap() < 1.1 * trips.1.unwrap(), "{}: {trips:?}", scheme.name);
        assert_eq!(quic.timeouts, 0, "{}", scheme.name);
    }
}

/// A live encoder whose frames are streams: all come whole where there is room; past their deadline they are given up, and what comes is
/// younger than without one.
#[test]
fn frames_are_streams_and_late_ones_are_given_up() {
    let call = |rate: &str, quic: &str| {
        let text = format!(
            "duration = \"60 s\"\nwarmup = \"5 s\"\n[link.bottleneck]\nrate = \"{rate}\"\ndelay = \"25 ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"20 packets\" }}\n\
             [flow.call]\ncc = \"newreno\"\ntransport = \"quic\"\nquic = {{ {quic} }}\n\
             app = {{ kind = \"encoder\", min_rate = \"1 Mbit/s\", max_rate = \"1 Mbit/s\", key_interval = \"2 s\" }}\n"
        );
        let flow = flows(&text, 1).remove(0);
        let share = flow.frames_complete.unwrap() as f64 / flow.frames_sent.unwrap() as f64;
        (share, flow.frame_delay_p95_s.unwrap_or(f64::NAN), flow.frame_delay_mean_s.unwrap_or(f64::NAN))
    };
    for carriage in ["stream", "stream-each", "stream-per-group", "datagrams"] {
        let (share, p95, mean) = call("4 Mbit/s", &format!("carriage = \"{carriage}\""));
        println!("{carriage}: {share} {p95} {mean}");
        assert!(share > 0.995, "{carriage}: {share}");
        assert!((0.025..0.09).contains(&p95), "{carriage}: {p95}");
    }
    let (all, old, _) = call("800 kbit/s", "");
    let (some, young, _) = call("800 kbit/s", "deadline = \"250 ms\"");
    let (none, fresh, _) = call("800 kbit/s", "carriage = \"datagrams\", deadline = \"250 ms\"");
    println!("800 kbit/s: {all} {old}, {some} {young}, {none} {fresh}");
    assert!(all < 0.9 && old > 2.0, "a queue grows for ever: {all} {old}");
    // given up after 250 ms at the sender; what had left by then waits in the queue for 300 more
    assert!(young < 0.6 && some > 0.5, "{some} {young}");
    assert!(fresh < 0.6 && none > 0.4, "{none} {fresh}");
}

/// What waits when the application stops has never left and never will, whatever carries it; of a clip, which ends by itself, all comes.
#[test]
fn a_stop_takes_back_what_waits_and_a_clip_comes_whole() {
    let frames = |transport: &str, carriage: &str, app: &str, more: &str| {
        let text = format!(
            "duration = \"40 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"20 packets\" }}\n\
             [flow.film]\ncc = \"newreno\"\ntransport = \"{transport}\"\n{carriage}{more}\n\
             app = {{ kind = \"video\", rate = \"2 Mbit/s\", frame_rate = 25, group = 25, variation = 0 {app} }}\n"
        );
        let flow = flows(&text, 1).remove(0);
        (flow.bytes_delivered as f64 / 1e3, flow.frames_sent, flow.frames_complete)
    };
    let carriages = ["stream", "stream-each", "stream-per-group", "datagrams"];
    let of_quic = carriages.map(|name| ("quic", format!("quic = {{ carriage = \"{name}\" }}\n")));
    for (transport, carriage) in of_quic.into_iter().chain([("tcp", String::new())]) {
        let stopped = frames(transport, &carriage, "", "stop = \"4 s\"");
        println!("{transport} {carriage}: {stopped:?}");
        // 4 s at 1 Mbit/s and what is in the queue of 30 kB, less what the handshake takes; a megabyte was written
        assert!((400.0..535.0).contains(&stopped.0), "{transport} {carriage}: {stopped:?}");
        let clip = frames(transport, &carriage, ", frames = 100", "");
        println!("{transport} {carriage}: {clip:?}");
        // a datagram that was lost is not sent again
        let least = if carriage.contains("datagrams") { 0.88 } else { 1.0 };
        assert!((995.0 * least..1005.0).contains(&clip.0), "{transport} {carriage}: {clip:?}");
        if transport == "quic" {
            assert_eq!((stopped.1, clip.1), (Some(100), Some(100)), "{carriage}");
            assert!((100.0 * least..=100.0).contains(&(clip.2.unwrap() as f64)), "{carriage}: {clip:?}");
            assert!((40..54).contains(&stopped.2.unwrap()), "{carriage}: {stopped:?}");
        }
    }
}

/// An encoder's key frames begin groups: an outage takes the rest of the group that it falls into, and the next one comes.
#[test]
fn a_group_that_is_given_up_ends_with_the_next_key_frame() {
    let text = "duration = \"60 s\"\n[link.bottleneck]\nrate = \"4 Mbit/s\"\ndelay = \"25 ms\"\noutage = [{ from = \"20.5 s\", to = \"21 s\" }]\n\
                [flow.call]\ncc = \"newreno\"\ntransport = \"quic\"\n\
                quic = { carriage = \"stream-per-group\", deadline = \"250 ms\" }\n\
                app = { kind = \"encoder\", min_rate = \"1 Mbit/s\", max_rate = \"1 Mbit/s\", key_interval = \"4 s\" }\n";
    let flow = flows(text, 1).remove(0);
    let (sent, complete, reset) =
        (flow.frames_sent.unwrap(), flow.frames_complete.unwrap(), flow.frames_reset.unwrap());
    // some four seconds of 30 frames each, and no more than a group that was late by what waited
    assert!((90..=240).contains(&reset) && sent - complete - reset <= 3, "{sent} {complete} {reset}");
}

/// Web pages and a stream's player over QUIC: responses are streams of their own, the first byte waits for a handshake, or not.
#[test]
fn the_web_and_a_player_over_quic() {
    let web = |quic: &str| {
        let text = format!(
            "duration = \"120 s\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"45 ms\"\n\
             [flow.web]\ncc = \"cubic\"\ntransport = \"quic\"\nquic = {{ {quic} }}\napp = {{ kind = \"web\", mean_size = \"20 kB\" }}\n"
        );
        let flow = flows(&text, 1).remove(0);
        assert!(flow.transfers_completed > 100, "{flow:?}");
        flow.transfer_time_mean_s.unwrap()
    };
    let (cold, resumed) = (web("handshake = \"one-rtt\""), web("handshake = \"zero-rtt\""));
    // a round trip of 110 ms with access links less for each page
    assert!((0.09..0.14).contains(&(cold - resumed)), "{cold} {resumed}");
    let text = "duration = \"100 s\"\n[link.bottleneck]\nrate = \"4 Mbit/s\"\ndelay = \"25 ms\"\n\
                [flow.film]\ncc = \"newreno\"\ntransport = \"quic\"\n\
                app = { kind = \"stream\", media_rate = \"1 Mbit/s\", length = \"60 s\" }\n";
    let scenario = checked(text).unwrap();
    let summary = simulate(&scenario, 1, &RunOptions::default()).unwrap().summary;
    assert_eq!(summary.streams[0].late_share, Some(0.0), "{:?}", summary.streams[0]);
    assert_eq!(summary.flows[0].bytes_delivered, 7_500_000);
}

/// A queue that marks: nothing is lost, and marks cut the window as losses do; a path that clears the field is found out.
#[test]
fn marks_are_counted_and_a_path_that_clears_them_is_found_out() {
    let run = |more: &str| {
        let text = format!(
            "duration = \"60 s\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n{more}\
             queue = {{ kind = \"fq-codel\" }}\n\
             [flow.one]\ncc = \"newreno\"\ntransport = \"quic\"\necn = true\n"
        );
        flows(&text, 1).remove(0)
    };
    let marked = run("");
    assert!(marked.ecn_marks > 10 && marked.packets_lost == 0, "{marked:?}");
    assert!(marked.window_cuts > 5 && marked.goodput_bps > 8e6, "{marked:?}");
    let cleared = run("bleach_ecn = true\n");
    assert!(cleared.packets_lost > 0 && cleared.goodput_bps > 8e6, "{cleared:?}");
}

#[test]
fn mistakes_are_said() {
    let of = |more: &str| {
        let text = format!("duration = \"10 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\n[flow.one]\n{more}\n");
        checked(&text).err().unwrap_or_default()
    };
    for (more, says) in [
        ("cc = \"gcc\"\ntransport = \"quic\"", "`gcc` has a transport of its own, rtp"),
        ("quic = {}", "goes with `transport = \"quic\"` alone"),
        ("transport = \"quic\"\nprofile = \"ns2\"", "`quic` is not there under profile `ns2`"),
        ("transport = \"quic\"\ncc = \"tahoe\"", "use `newreno`"),
        ("transport = \"quic\"\nreceive_window = 5", "QUIC's is `quic.receive_window`"),
        ("transport = \"quic\"\nsegment = \"1000 B\"", "must be at least 1200 B"),
        ("transport = \"quic\"\nquic = { carriage = \"datagrams\" }", "needs every byte"),
        ("transport = \"quic\"\nquic = { deadline = \"1 s\" }", "needs every byte"),
        (
            "transport = \"quic\"\nquic = { deadline = \"1 s\" }\napp = { kind = \"cbr\" }",
            "use `carriage = \"stream-each\"`",
        ),
        (
            "transport = \"quic\"\nquic = { receive_window = \"2 kB\", stream_window = \"3 kB\" }",
            "at most `receive_window`",
        ),
    ] {
        let said = of(more);
        assert!(said.contains(says), "{more}: {said}");
    }
}

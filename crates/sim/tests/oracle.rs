//! The engine's oracle: the result does not depend on the window, on folding, or on windows at all.
//!
//! Named topologies, and random graphs whose delays and rates are round numbers, so that ties and events on window
//! borders abound, run under the longest window, a seventh of it, one of a microsecond, without folding, and event by
//! event; every number of the summary and every recorded value must be the same to the last bit.

use paceline_random::{Sequence, Stream};
use paceline_scenario::model::Model;
use paceline_scenario::{Document, Scenario};
use paceline_sim::graph::{Fold, Planning};
use paceline_sim::{Recording, RunError, RunOptions, ScheduleKind, expand, run};
use paceline_units::Span;
use std::fmt::Write;

/// Everything that a run gives, as text, but for how the engine ran.
fn fingerprint(model: &Model, planning: Planning, schedule: ScheduleKind) -> Result<String, RunError> {
    let recording = Recording::of(&Recording::NAMES, Span::from_millis(7)).unwrap();
    let output = run(model, &RunOptions { recording, planning, schedule, ..RunOptions::default() })?;
    let mut summary = output.summary;
    summary.engine.window_s = 0.0;
    summary.engine.elements = 0;
    Ok(format!("{}\n{:?}", serde_json::to_string_pretty(&summary).unwrap(), output.series))
}

/// Runs the model in every arrangement. Returns the packets that it sent, or `None` if its graph cannot run.
fn same_in_all_arrangements(model: &Model, what: &str) -> Option<u64> {
    let plain = Planning::default();
    let reference = match fingerprint(model, plain, ScheduleKind::Windows) {
        Ok(reference) => reference,
        Err(RunError::LoopWithoutDelay { .. }) => return None,
        Err(error) => panic!("{what}: {error}"),
    };
    let output = run(model, &RunOptions::default()).unwrap();
    let window = Span::from_secs_f64(output.summary.engine.window_s);
    let unfolded = Planning { fold: Fold::Nothing, ..plain };
    let arrangements = [
        ("a seventh of the window", Planning { window: Some(window / 7), ..plain }, ScheduleKind::Windows),
        ("windows of 1 us", Planning { window: Some(Span::from_micros(1)), ..plain }, ScheduleKind::Windows),
        ("no folding", unfolded, ScheduleKind::Windows),
        ("no folding, a seventh", Planning { window: Some(window / 7), ..unfolded }, ScheduleKind::Windows),
        ("an event queue", plain, ScheduleKind::Events),
        ("an event queue, no folding", unfolded, ScheduleKind::Events),
    ];
    for (name, planning, schedule) in arrangements {
        let other = fingerprint(model, planning, schedule).unwrap();
        if other != reference {
            let line = reference.lines().zip(other.lines()).find(|(a, b)| a != b);
            panic!("{what}: {name} gives another result: {line:.300?}");
        }
    }
    Some(output.summary.engine.packets_sent)
}

fn model(text: &str, seed: u64) -> Model {
    let document = Document::parse(text, "oracle.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err("no files here".into()));
    expand(&scenario.unwrap_or_else(|error| panic!("{error}\n{text}")), seed).unwrap()
}

#[test]
fn named_topologies() {
    let flows = "[flow.a]\ncount = 3\n[flow.b]\ncount = 2\ncc = \"vegas\"\nstart = \"100 ms\"\n[flow.c]\ncc = \"sack\"\n\
                 [flow.c.app]\nkind = \"web\"\ngap = \"50 ms\"\n[flow.d]\n[flow.d.app]\nkind = \"stream\"\nlength = \"20 s\"\n\
                 [flow.g]\ncc = \"tfrc\"\ncount = 2\n[flow.h]\ncc = \"tfrc-veno\"\nstart = \"50 ms\"\n[flow.i]\ncc = \"multfrc\"\n\
                 [flow.k]\ncc = \"rap\"\ncount = 2\n[flow.l]\ncc = \"tfrcp\"\nparams = { interval = 0.3 }\n\
                 [flow.j]\ncc = \"lda-plus\"\ncount = 2\nrtp = { report_interval = \"100 ms\", bandwidth = \"10 Mbit/s\" }\n\
                 [flow.call]\ncc = \"nada\"\ncount = 2\napp = { kind = \"encoder\", max_rate = \"2 Mbit/s\" }\n\
                 [flow.e]\ncc = \"udp\"\ncount = 2\napp = { kind = \"pareto\", rate = \"500 kbit/s\", burst = \"40 ms\", idle = \"40 ms\" }\n";
    let bottleneck = "rate = \"8 Mbit/s\"\ndelay = \"5 ms\"\nqueue = { kind = \"droptail\", limit = \"20 packets\" }\n";
    for (name, head) in [
        ("dumbbell", format!("[link.bottleneck]\n{bottleneck}")),
        ("dumbbell, no host delay", format!("host_delay = \"0 s\"\n[link.bottleneck]\n{bottleneck}")),
        ("dumbbell that ends with a flow", format!("stop_after = \"d\"\n[link.bottleneck]\n{bottleneck}")),
        (
            "dumbbell with access delay",
            format!(
                "rate_bin = \"30 ms\"\n[access]\ndelay = \"1 ms\"\nqueue = {{ limit = \"30 ms\" }}\n\
                 [link.bottleneck]\n{bottleneck}occupancy = true\nbackward = {{ occupancy = true }}\n"
            ),
        ),
        ("parking lot", format!("topology = \"parking-lot\"\nhops = 3\n[link.hop]\n{bottleneck}occupancy = true\n")),
        (
            "impaired",
            format!(
                "[link.bottleneck]\n{bottleneck}loss = {{ kind = \"uniform\", rate = \"1 %\" }}\n\
                 delay_variation = {{ max = \"2 ms\" }}\nreorder = {{ rate = \"1 %\", extra = \"3 ms\" }}\n\
                 duplicate = {{ rate = \"1 %\" }}\ncorrupt = {{ rate = \"1 %\" }}\n\
                 outage = [{{ from = \"1 s\", to = \"1100 ms\" }}]\n\
                 delay_spike = [{{ from = \"1500 ms\", to = \"1600 ms\", extra = \"300 ms\" }}]\n\
                 aggregation = {{ interval = \"7 ms\", from = \"500 ms\", to = \"2500 ms\" }}\nbleach_ecn = true\n\
                 backward = {{ reorder = {{ rate = \"5 %\", extra = \"4 ms\" }} }}\n"
            ),
        ),
        (
            "schedules",
            "[link.bottleneck]\nrate = \"8 Mbit/s\"\nqueue = { limit = \"20 packets\" }\n\
             delay_schedule = [{ at = \"0 s\", delay = \"5 ms\" }, { at = \"700 ms\", delay = \"30 ms\" }, \
             { at = \"1200 ms\", delay = \"2 ms\" }, { at = \"1500 ms\", delay = \"1 ms\", overtakes = true }]\n\
             limit_schedule = [{ at = \"500 ms\", limit = \"5 packets\" }, { at = \"1 s\", limit = \"60 ms\" }]\n\
             delay_variation_schedule = [{ at = \"400 ms\", variation = { kind = \"bad-wifi\", average = \"3 ms\" } }, \
             { at = \"900 ms\", variation = { max = \"1 ms\" } }, { at = \"1100 ms\" }]\n\
             loss = { kind = \"periodic\", pass = 30, lose = 3, within = \"2 ms\", \
             during = [{ from = \"600 ms\", to = \"800 ms\" }, { from = \"1 s\", to = \"3 s\" }] }\n"
                .to_owned(),
        ),
        (
            "recovery",
            format!(
                "[link.bottleneck]\n{bottleneck}delay_variation = {{ max = \"1 ms\" }}\n\
                 recovery = {{ block_time = \"200 us\", block_error = \"20 %\", delay = \"4 ms\", retransmissions = 3 }}\n\
                 backward = {{ recovery = {{ block_time = \"1 ms\", block_error = \"10 %\", delay = \"5 ms\" }} }}\n"
            ),
        ),
        (
            "decisions at departure",
            "[link.bottleneck]\nrate = \"8 Mbit/s\"\ndelay = \"5 ms\"\noccupancy = true\n\
             queue = { kind = \"fq-codel\", limit = \"40 packets\", queues = 16 }\n\
             loss = { kind = \"uniform\", rate = \"0.5 %\" }\nduplicate = { rate = \"1 %\" }\n\
             backward = { queue = { kind = \"pie\", limit = \"20 ms\", target = \"5 ms\" }, \
             recovery = { block_time = \"1 ms\", block_error = \"10 %\", delay = \"5 ms\" } }\n"
                .to_owned(),
        ),
        (
            "decisions at departure, a rate that varies",
            "[link.bottleneck]\ndelay = \"5 ms\"\n\
             rate_schedule = [{ at = \"0 s\", rate = \"8 Mbit/s\" }, { at = \"700 ms\", rate = \"2 Mbit/s\" }, \
             { at = \"1200 ms\", rate = \"12 Mbit/s\" }]\n\
             queue = { kind = \"codel\", target = \"3 ms\", interval = \"30 ms\", ecn = true }\n"
                .to_owned(),
        ),
        (
            "losses in bursts",
            format!(
                "[link.bottleneck]\n{bottleneck}loss = {{ kind = \"gilbert-elliott\", to_bad = \"0.2 %\", to_good = \"50 %\" }}\n\
                 backward = {{ loss = {{ kind = \"two-state\", bad_rate = \"5 %\", good_time = \"70 ms\", bad_time = \"30 ms\", on = \"acks\" }} }}\n"
            ),
        ),
    ] {
        for (seed, profile) in [(1, "rfc"), (2, "rfc"), (1, "linux")] {
            let text = format!("duration = \"2 s\"\nwarmup = \"300 ms\"\nprofile = \"{profile}\"\n{head}{flows}");
            let sent = same_in_all_arrangements(&model(&text, seed), name).expect("there is a delay");
            assert!(sent > 1000, "{name}: only {sent} packets");
        }
    }
}

/// Windows that are short for what there is: few elements are due in each, and of hundreds or thousands these are found
/// without a look at the others. Packets are thousands of windows ahead of the clock.
#[test]
fn few_of_many_elements_are_due() {
    for (name, flows, delay, rate, duration) in [
        ("10 us and 400 hosts", 200, "10 us", "100 Mbit/s", "60 ms"),
        ("1 us and 1400 hosts", 700, "1 us", "50 Mbit/s", "25 ms"),
        ("1 ns and 200 hosts", 100, "1 ns", "100 Mbit/s", "60 ms"),
        ("crowded and empty windows", 100, "2 ms", "400 Mbit/s", "200 ms"),
    ] {
        for queue in ["droptail", "fq-codel"] {
            let text = format!(
                "duration = \"{duration}\"\n[link.bottleneck]\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
                 queue = {{ kind = \"{queue}\", limit = \"300 packets\" }}\nreorder = {{ rate = \"3 %\", extra = \"400 us\" }}\n\
                 [flow.a]\ncount = {flows}\nstart = {{ uniform = [\"0 s\", \"5 ms\"] }}\n\
                 [flow.b]\ncc = \"udp\"\ncount = 4\napp = {{ kind = \"cbr\", rate = \"2 Mbit/s\" }}\n"
            );
            let sent = same_in_all_arrangements(&model(&text, 1), name).expect("there is a delay");
            assert!(sent > 200, "{name}: only {sent} packets");
        }
    }
}

/// Cells: what goes up, down, and from one station to another; hosts at the access point; frames that fail; all rules.
#[test]
fn cells() {
    let flows = "[flow.down]\nfrom = \"web\"\nto = \"tv\"\n[flow.up]\nfrom = \"pc\"\nto = \"web\"\ncc = \"cubic\"\n\
                 [flow.across]\nfrom = \"pc\"\nto = \"tv\"\ncc = \"vegas\"\nstart = \"100 ms\"\n\
                 [flow.from-ap]\nfrom = \"ap\"\nto = \"pc\"\n[flow.from-ap.app]\nkind = \"web\"\ngap = \"20 ms\"\n\
                 [flow.to-ap]\nfrom = \"tv\"\nto = \"ap\"\ncc = \"tfrc\"\n\
                 [flow.game]\nfrom = \"other\"\nto = \"pc\"\ncc = \"udp\"\ncount = 2\nsegment = \"172 B\"\n\
                 app = { kind = \"cbr\", rate = \"80 kbit/s\" }\n\
                 [flow.burst]\nfrom = \"pc\"\nto = \"other\"\ncc = \"udp\"\n\
                 app = { kind = \"pareto\", rate = \"4 Mbit/s\", burst = \"20 ms\", idle = \"20 ms\" }\n\
                 [flow.part]\nfrom = \"web\"\nto = \"tv\"\napp = { kind = \"ftp\", size = \"300 kB\" }\n";
    let wired =
        "[link.web]\nrate = \"80 Mbit/s\"\ndelay = \"5 ms\"\n[link.other]\nrate = \"8 Mbit/s\"\ndelay = \"0 s\"\n";
    let stations = "[cell.home.station.pc]\n[cell.home.station.tv]\nrate = \"11 Mbit/s\"\n";
    for (name, head, cell) in [
        ("a home", "", ""),
        ("a home without host delay", "host_delay = \"0 s\"\n", "queue = { limit = \"20 packets\" }\n"),
        ("a home that ends with a flow", "stop_after = \"part\"\n", "rts_threshold = \"500 B\"\n"),
        ("a home with FQ-CoDel", "", "queue = { kind = \"fq-codel\" }\nstation_queue = { kind = \"pie\" }\n"),
        (
            "a home with DualPI2",
            "",
            "queue = { kind = \"dualpi2\" }\nstation_queue = { kind = \"dualpi2\", variant = \"linux\" }\n",
        ),
        ("a home with CAKE", "", "queue = { kind = \"cake\" }\nstation_queue = { kind = \"cake\", rtt = \"20 ms\" }\n"),
        ("a mixed home", "host_delay = \"0 s\"\n", "protection = \"cts-to-self\"\npreamble = \"short\"\n"),
        (
            "RTS and CTS for others",
            "",
            "protection = \"rts-cts\"\nqueue = { kind = \"red\", limit = \"30 packets\" }\n",
        ),
        (
            "802.11b",
            "",
            "standard = \"b\"\nqueue = { kind = \"unlimited\" }\nstation_queue = { limit = \"9 packets\" }\n",
        ),
        ("802.11n beside 802.11b", "", "standard = \"n\"\nprotection = \"cts-to-self\"\n"),
        (
            "802.11n with RTS and FQ-CoDel",
            "host_delay = \"0 s\"\n",
            "standard = \"n\"\nmcs = 15\nrts_threshold = \"3 kB\"\nqueue = { kind = \"fq-codel\" }\n",
        ),
        ("ns-2's rules", "profile = \"ns2\"\n", ""),
        ("VoAP", "", "queue = { limit = \"30 packets\" }\nwindows = { kind = \"voap\", interval = \"20 ms\" }\n"),
        (
            "SAP-LAW without host delay",
            "host_delay = \"0 s\"\n",
            "windows = { kind = \"sap-law\", capacity = \"9 Mbit/s\", interval = \"100 ms\" }\n",
        ),
        ("Bianchi's rules", "host_delay = \"0 s\"\n", "rules = \"bianchi\"\n"),
    ] {
        for seed in [1, 2] {
            let text = format!(
                "duration = \"2 s\"\nwarmup = \"300 ms\"\ntopology = \"home\"\n{head}{wired}[cell.home]\n{cell}{stations}\
                 [cell.home.station.far]\nsignal = \"-64 dBm\"\nframe_error = \"10 %\"\n\
                 [flow.far]\nfrom = \"web\"\nto = \"far\"\n{flows}"
            );
            let text = if cell.contains("\"b\"") { text.replace("-64 dBm", "-75 dBm") } else { text };
            let sent = same_in_all_arrangements(&model(&text, seed), name).expect("a cell takes time");
            assert!(sent > 1000, "{name}: only {sent} packets");
        }
    }
}

/// A random graph with random flows, all in round numbers.
fn random_scenario(seed: u64) -> String {
    let mut draws = Sequence::new(Stream::new(seed, "random graph"));
    let mut below = |n: usize| (draws.unit() * n as f64) as usize;
    let (routers, hosts) = (2 + below(5), 2 + below(8));
    let delays = ["0 s", "0 s", "1 us", "500 us", "1 ms", "1 ms", "5 ms", "20 ms"];
    let rates = ["8 Mbit/s", "8 Mbit/s", "16 Mbit/s", "80 Mbit/s", "100 Mbit/s", "3.7 Mbit/s"];
    let no_delay = below(4) == 0;
    let profile = ["rfc", "ns2", "linux"][below(3)];
    let host_delay = ["0 s", "2 packets", "100 us"][below(3)];
    let warmup = ["0 s", "250 ms"][below(2)];
    let mut text = format!(
        "duration = \"1 s\"\nwarmup = \"{warmup}\"\ntopology = \"graph\"\nprofile = \"{profile}\"\nhost_delay = \"{host_delay}\"\n"
    );
    let mut edges: Vec<(String, String)> = (1..routers).map(|i| (format!("r{}", below(i)), format!("r{i}"))).collect();
    for _ in 0..below(3) {
        let (a, b) = (below(routers), below(routers));
        if a != b {
            edges.push((format!("r{a}"), format!("r{b}")));
        }
    }
    let inner = edges.len();
    for host in 0..hosts {
        for _ in 0..1 + usize::from(below(5) == 0) {
            edges.push((format!("h{host}"), format!("r{}", below(routers))));
        }
    }
    for (i, (a, b)) in edges.iter().enumerate() {
        let delay = if no_delay && i >= inner { "0 s" } else { delays[below(8)] };
        let _ = write!(
            text,
            "[link.l{i}]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"{}\"\ndelay = \"{delay}\"\n",
            rates[below(6)]
        );
        let limit = 3 + below(40);
        let queue = match below(if i < inner { 9 } else { 1 }) {
            0 => "{ kind = \"unlimited\" }".to_owned(),
            1 => format!(
                "{{ kind = \"red\", limit = \"{limit} packets\", min_threshold = {}, max_threshold = {}, weight = 0.01 }}",
                limit as f64 / 8.0,
                limit as f64 / 2.0
            ),
            2 => format!(
                "{{ kind = \"codel\", limit = \"{limit} packets\", target = \"1 ms\", interval = \"20 ms\", ecn = {} }}",
                limit % 2 == 0
            ),
            3 => format!(
                "{{ kind = \"fq-codel\", limit = \"{limit} packets\", target = \"2 ms\", interval = \"10 ms\", queues = {limit} }}"
            ),
            4 => format!(
                "{{ kind = \"pie\", limit = \"{limit} packets\", target = \"2 ms\", update = \"5 ms\", burst = \"20 ms\", \
                 estimate = \"{}\" }}",
                ["timestamps", "departure-rate"][limit % 2]
            ),
            5 => format!(
                "{{ kind = \"dualpi2\", limit = \"{limit} packets\", target = \"2 ms\", variant = \"{}\" }}",
                ["rfc9332", "linux"][limit % 2]
            ),
            6 => format!(
                "{{ kind = \"fq-pie\", limit = \"{limit} packets\", target = \"2 ms\", update = \"5 ms\", queues = {limit}, ecn = {} }}",
                limit % 2 == 0
            ),
            7 => format!(
                "{{ kind = \"cake\", limit = \"{limit} packets\", bandwidth = \"{} Mbit/s\", rtt = \"20 ms\", ingress = {} }}",
                limit % 9 + 1,
                limit % 2 == 0
            ),
            _ => format!("{{ kind = \"droptail\", limit = \"{limit} packets\" }}"),
        };
        let _ = writeln!(text, "queue = {queue}");
        if below(4) == 0 {
            text.push_str(
                [
                    "loss = { kind = \"uniform\", rate = \"1 %\" }\n",
                    "loss = { kind = \"gilbert-elliott\", to_bad = \"1 %\", to_good = \"30 %\", bad_rate = \"50 %\", on = \"data\" }\n",
                    "loss = { kind = \"two-state\", bad_rate = \"5 %\", good_time = \"50 ms\", bad_time = \"25 ms\", start = \"anywhere\" }\n",
                ][below(3)],
            );
        }
        if below(8) == 0 {
            text.push_str("reorder = { rate = \"2 %\", extra = \"1 ms\" }\n");
        }
        if below(8) == 0 {
            text.push_str("recovery = { block_time = \"1 ms\", block_error = \"10 %\", delay = \"6 ms\" }\n");
        }
        if below(8) == 0 {
            text.push_str("duplicate = { rate = \"2 %\" }\n");
        }
    }
    text.push_str(&random_cell(seed, hosts));
    for flow in 0..1 + below(12) {
        let (a, b) = (below(hosts), below(hosts));
        if a == b {
            continue;
        }
        let cc = [
            "newreno",
            "reno",
            "sack",
            "vegas",
            "cubic",
            "udp",
            "tfrc",
            "tfrc-veno",
            "multfrc",
            "lda-plus",
            "rap",
            "tfrcp",
        ][below(12)];
        let start = ["0 s", "0 s", "100 ms", "200 ms"][below(4)];
        let _ = write!(text, "[flow.f{flow}]\nfrom = \"h{a}\"\nto = \"h{b}\"\ncc = \"{cc}\"\nstart = \"{start}\"\n");
        if cc == "udp" {
            text.push_str("app = { kind = \"pareto\", rate = \"800 kbit/s\", burst = \"20 ms\", idle = \"10 ms\" }\n");
            continue;
        }
        if cc == "lda-plus" {
            let _ = writeln!(text, "rtp = {{ report_interval = \"50 ms\", bandwidth = \"20 Mbit/s\" }}");
            text.push_str(["", "stop = \"700 ms\"\n"][below(2)]);
            continue;
        }
        if ["rap", "tfrcp"].contains(&cc) {
            text.push_str(if cc == "rap" {
                "params = { gap_jitter = 0.5 }\n"
            } else {
                "params = { interval = 0.1 }\n"
            });
            text.push_str(["", "app = { kind = \"ftp\", size = \"100 kB\" }\n"][below(2)]);
            continue;
        }
        if cc.contains("tfrc") {
            let _ = writeln!(text, "ecn = {}", below(2) == 0);
            text.push_str(["", "app = { kind = \"ftp\", size = \"100 kB\" }\n"][below(2)]);
            continue;
        }
        let _ = writeln!(text, "delayed_ack = \"{}\"\necn = {}", ["off", "40 ms"][below(2)], below(2) == 0);
        match below(4) {
            0 => text.push_str("app = { kind = \"web\", gap = \"20 ms\", mean_size = \"20 kB\" }\n"),
            1 => text.push_str("app = { kind = \"ftp\", size = \"200 kB\" }\n"),
            _ => {}
        }
    }
    text.push_str("[flow.last]\nfrom = \"h0\"\nto = \"h1\"\n");
    text
}

/// In every third graph some hosts are stations of a cell as well, and so closer to each other and to a router.
fn random_cell(seed: u64, hosts: usize) -> String {
    let mut draws = Sequence::new(Stream::new(seed, "random cell"));
    let mut below = |n: usize| (draws.unit() * n as f64) as usize;
    if below(3) > 0 {
        return String::new();
    }
    let mut text = "[cell.c]\naccess_point = \"r0\"\n".to_owned();
    text.push_str(["", "rules = \"ns2\"\n", "rules = \"bianchi\"\n", "rts_threshold = \"200 B\"\n"][below(4)]);
    text.push_str(["", "protection = \"cts-to-self\"\n", "standard = \"b\"\n"][below(3)]);
    let _ = writeln!(text, "queue = {{ limit = \"{} packets\" }}", 2 + below(30));
    for host in 0..1 + below(hosts) {
        let _ = writeln!(text, "[cell.c.station.h{host}]");
        text.push_str(["", "rate = \"11 Mbit/s\"\n", "rate = \"1 Mbit/s\"\n"][below(3)]);
        text.push_str(["", "distance = \"30 m\"\n", "frame_error = \"5 %\"\n"][below(3)]);
    }
    text
}

#[test]
fn random_graphs() {
    let graphs = 120;
    let (mut ran, mut packets) = (0, 0);
    for seed in 1..=graphs {
        let text = random_scenario(seed);
        if let Some(sent) = same_in_all_arrangements(&model(&text, seed), &format!("graph {seed}")) {
            ran += 1;
            packets += sent;
        }
    }
    assert!(ran * 2 > graphs, "only {ran} of {graphs} graphs could run");
    assert!(packets > 2_000 * ran, "{packets} packets in {ran} graphs");
}

/// A rate that stays at zero holds packets for ever: they are in flight, whatever links lie behind.
#[test]
fn a_link_that_never_sends_again() {
    let text = "duration = \"4 s\"\ntopology = \"graph\"\n\
                [link.one]\nbetween = [\"a\", \"b\"]\ndelay = \"5 ms\"\n\
                rate_trace = { file = \"dies\", format = \"seconds-mbit\", end = \"hold\" }\n\
                backward = { rate = \"8 Mbit/s\" }\n\
                [link.two]\nbetween = [\"b\", \"c\"]\nrate = \"4 Mbit/s\"\ndelay = \"5 ms\"\n\
                [flow.f]\nfrom = \"a\"\nto = \"c\"\n";
    let document = Document::parse(text, "oracle.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Ok("0 8\n2 0\n".into())).unwrap_or_else(|e| panic!("{e}"));
    let sent = same_in_all_arrangements(&expand(&scenario, 1).unwrap(), "a dying link").unwrap();
    assert!(sent > 500, "{sent}");
}

/// Flows over QUIC: timers that become shorter than what has passed, tracks, a relay, requests and losses.
#[test]
fn quic() {
    let flows = "[link.bottleneck]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = { kind = \"droptail\", limit = \"40 packets\" }\n\
                 [flow.f0]\ncc = \"bbr3\"\ntransport = \"quic\"\napp = { kind = \"stream\" }\nstop = \"2.5 s\"\n\
                 [flow.f1]\ncc = \"newreno\"\napp = { kind = \"voice\", codec = \"opus\" }\nstop = \"2.5 s\"\n\
                 [flow.f2]\ncc = \"c4\"\ntransport = \"quic\"\napp = { kind = \"voice\", codec = \"opus\" }\nstop = \"2.5 s\"\nquic = { carriage = \"datagrams\" }\n\
                 [flow.f3]\ncc = \"cubic\"\ntransport = \"quic\"\nstop = \"2.5 s\"\nquic = { idle_timeout = \"2000 ms\", receive_window = \"20 kB\" }\n";
    let pages = "[link.bottleneck]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\nloss = { rate = \"3 %\" }\nbackward = { loss = { rate = \"3 %\" } }\n\
                 [flow.pages]\ntransport = \"quic\"\napp = { kind = \"web\", arrivals = \"open\", gap = \"200 ms\", request = {} }\n\
                 [flow.film]\ntransport = \"quic\"\napp = { kind = \"stream\", media_rate = \"500 kbit/s\", request = {} }\n\
                 [flow.sound]\ncc = \"c4\"\ntransport = \"quic\"\napp = { kind = \"voice\" }\nbundle = { priority = 2 }\n\
                 [flow.camera]\nquic = { deadline = \"100 ms\", carriage = \"stream-per-group\" }\napp = { kind = \"encoder\", max_rate = \"1 Mbit/s\", key_interval = \"1 s\" }\n\
                 bundle = { with = \"sound\" }\n";
    let seeds = [("flows of all kinds", flows, 1..3), ("pages, a film and a call", pages, 1..4)];
    for (name, text, seeds) in seeds {
        for seed in seeds {
            let text = format!("duration = \"6 s\"\n{text}");
            same_in_all_arrangements(&model(&text, seed), &format!("{name}, seed {seed}")).unwrap();
        }
    }
    let relay = include_str!("../../../examples/quic-relay.toml");
    let short = relay.lines().map(|line| if line.starts_with("duration") { "duration = \"8 s\"" } else { line });
    let text = short.filter(|line| !line.starts_with("warmup")).collect::<Vec<_>>().join("\n");
    same_in_all_arrangements(&model(&text, 1), "a relay").unwrap();
}

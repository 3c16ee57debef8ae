//! Nothing that stands in a file makes the scenario reader panic, and what it accepts it writes and reads back.
//! The same entry points as fuzz/, on a fixed budget.

use paceline_scenario::{Document, Scenario};
use proptest::prelude::*;

/// What the fuzz target does.
fn read(text: &str) -> Option<Scenario> {
    let document = Document::parse(text, "fuzz.toml").map_err(|error| assert!(!error.to_string().is_empty())).ok()?;
    let mut read = |file: &str| {
        if file.len().is_multiple_of(2) { Ok("0\n3\n".to_owned()) } else { Err("no such file".to_owned()) }
    };
    match Scenario::check(&document, &mut read) {
        Err(error) => {
            assert!(!error.mistakes.is_empty() && error.to_string().starts_with("fuzz.toml"));
            None
        }
        Ok(scenario) => {
            let text = scenario.to_toml();
            let again = Document::parse(&text, "fuzz.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
            let again = Scenario::check(&again, &mut read).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(scenario, again, "{text}");
            Some(scenario)
        }
    }
}

/// Keys of the schema, and some that are none.
fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "name",
        "seed",
        "duration",
        "warmup",
        "stop_after",
        "profile",
        "host_delay",
        "topology",
        "hops",
        "rate",
        "rate_schedule",
        "rate_trace",
        "delay",
        "delay_schedule",
        "limit_schedule",
        "overtakes",
        "during",
        "pass",
        "lose",
        "within",
        "queue",
        "loss",
        "delay_variation",
        "delay_variation_schedule",
        "variation",
        "policer",
        "burst",
        "average",
        "reorder",
        "duplicate",
        "corrupt",
        "outage",
        "aggregation",
        "bleach_ecn",
        "delay_spike",
        "limited",
        "backward",
        "between",
        "count",
        "from",
        "to",
        "cc",
        "params",
        "start",
        "stop",
        "rtt",
        "group",
        "segment",
        "header",
        "ack_size",
        "initial_window",
        "receive_window",
        "receive_buffer",
        "send_buffer",
        "delayed_ack",
        "recovery",
        "newreno",
        "limited_transmit",
        "prr",
        "pacing",
        "ecn",
        "min_rto",
        "handshake",
        "send_overhead",
        "app",
        "kind",
        "limit",
        "min_threshold",
        "max_threshold",
        "weight",
        "max_p",
        "gentle",
        "mode",
        "mean_packet",
        "automatic",
        "adaptive",
        "mark_below",
        "idle_packet",
        "bottom",
        "on",
        "max",
        "extra",
        "uniform",
        "at",
        "file",
        "format",
        "end",
        "size",
        "gap",
        "arrivals",
        "mean_size",
        "median_size",
        "shape",
        "max_size",
        "media_rate",
        "length",
        "xfactor",
        "heartbeat",
        "buffer",
        "playout",
        "client_buffer",
        "alpha",
        "nonsense",
        "\"a b\"",
        "\"\"",
    ])
    .prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "\"10 Mbit/s\"",
            "\"25 ms\"",
            "\"50 packets\"",
            "\"50 kB\"",
            "\"1 %\"",
            "\"droptail\"",
            "\"red\"",
            "\"unlimited\"",
            "\"stream\"",
            "\"web\"",
            "\"ftp\"",
            "\"vegas\"",
            "\"left\"",
            "\"right\"",
            "\"r1\"",
            "\"graph\"",
            "\"parking-lot\"",
            "\"dumbbell\"",
            "\"ns2\"",
            "\"linux\"",
            "\"off\"",
            "\"stall\"",
            "\"open\"",
            "true",
            "false",
            "nan",
            "-inf",
            "0",
            "1",
            "-1",
            "0.5",
            "1e300",
            "9223372036854775807",
            "1979-05-27",
            "\"18446744073 s\"",
            "\"9e18 B\"",
            "\"x.down\"",
            "\"x\"",
            "\"\"",
            "[]",
            "{}",
            "[\"a\", \"b\"]",
            "[\"0 s\", \"1 s\"]",
            "{ uniform = [\"1 s\", \"2 s\"] }",
            "{ file = \"x.down\" }",
            "{ rate = \"1 %\" }",
            "[{ from = \"1 s\", to = \"2 s\" }]",
            "[{ at = \"0 s\", rate = \"1 Mbit/s\" }]",
        ])
        .prop_map(str::to_owned),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| format!("{x:?}").to_lowercase()),
        "[ -~]{0,12}".prop_map(|text| format!("{text:?}")),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::btree_map(key(), inner, 0..4).prop_map(|entries| {
                let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                format!("{{ {} }}", entries.join(", "))
            }),
        ]
    })
}

fn lines(most: usize) -> impl Strategy<Value = String> {
    prop::collection::btree_map(key(), value(), 0..most)
        .prop_map(|entries| entries.iter().map(|(key, value)| format!("{key} = {value}\n")).collect())
}

/// Changes to a good scenario.
fn changed() -> impl Strategy<Value = String> {
    (lines(3), lines(3), lines(4), lines(3), "(bottleneck|hop|hop1|a-b)").prop_map(|(top, link, flow, app, name)| {
        format!("duration = \"60 s\"\n{top}[link.{name}]\nrate = \"10 Mbit/s\"\n{link}[flow.media]\n{flow}[flow.b.app]\n{app}")
    })
}

/// Good scenarios of some variety.
fn good() -> impl Strategy<Value = String> {
    let number = |low: f64, high: f64| (low..high).prop_map(|x| format!("{x:.6}"));
    let queue = prop_oneof![
        (1u32..1000).prop_map(|n| format!("{{ limit = \"{n} packets\" }}")),
        (1u64..1_000_000).prop_map(|n| format!("{{ kind = \"droptail\", limit = \"{n} B\" }}")),
        (number(1.0, 9.0), number(10.0, 90.0))
            .prop_map(|(a, b)| format!("{{ kind = \"red\", min_threshold = {a}, max_threshold = {b} }}")),
        Just("{ kind = \"red\", automatic = true }".to_owned()),
        Just(
            "{ kind = \"red\", ecn = true, mark_below = 0.5, idle_packet = \"40 B\", adaptive = { top = 0.4 } }"
                .to_owned()
        ),
        Just("{ kind = \"unlimited\" }".to_owned()),
    ];
    let app = prop_oneof![
        Just("{ kind = \"ftp\" }".to_owned()),
        (1u64..1_000_000_000).prop_map(|n| format!("{{ size = \"{n} B\" }}")),
        (number(1.01, 3.0), 1u64..1_000_000)
            .prop_map(|(shape, n)| format!("{{ kind = \"web\", shape = {shape}, mean_size = \"{n} B\" }}")),
        (1u64..100_000_000, number(0.5, 10.0), number(0.01, 1.0)).prop_map(|(rate, x, buffer)| {
            format!("{{ kind = \"stream\", media_rate = \"{rate} bit/s\", xfactor = {x}, buffer = {buffer} }}")
        }),
    ];
    let cc = "(reno|newreno|sack|vegas|cubic)";
    let profile = "(rfc|ns2|ns2-linux|linux)";
    (1u64..1_000_000_000_000, 0u64..1_000_000_000, queue, app, cc, profile, 1u32..100, 0.0f64..0.99).prop_map(
        |(rate, delay, queue, app, cc, profile, count, loss)| {
            let cc =
                if profile == "ns2-linux" && ["newreno", "sack"].contains(&cc.as_str()) { "reno".into() } else { cc };
            format!(
                "duration = \"60 s\"\nprofile = \"{profile}\"\n[link.bottleneck]\nrate = \"{rate} bit/s\"\n\
                 delay = \"{delay} ns\"\nqueue = {queue}\nloss = {{ rate = {loss} }}\n\
                 [flow.media]\ncount = {count}\ncc = \"{cc}\"\napp = {app}\n"
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn toml(text in lines(6)) {
        read(&text);
    }

    #[test]
    fn changes(text in changed()) {
        read(&text);
    }

    #[test]
    fn good_ones_read_back_the_same(text in good()) {
        prop_assert!(read(&text).is_some(), "{}", Document::parse(&text, "").and_then(|d| Scenario::check(&d, &mut |_| Err(String::new()))).unwrap_err());
    }

    #[test]
    fn setting_keys(path in "[a-z_.\\[\\]\"0-9]{0,24}", known in prop::collection::vec(key(), 1..5), value in value()) {
        let mut document = Document::parse("duration = \"60 s\"\nlink.bottleneck.rate = \"1 Mbit/s\"\nflow.media = {}\n", "").unwrap();
        let _ = document.set(&path, &value);
        for prefix in ["", "link.bottleneck.", "flow.media.", "flow.media.app.", "link.bottleneck.queue."] {
            let _ = document.set(&format!("{prefix}{}", known.join(".")), &value);
        }
        let _ = Scenario::check(&document, &mut |_| Ok(String::new()));
    }
}

//! Relays in whole scenarios: frames that come by one QUIC connection and leave by others, by priority.

use super::read::checked;
use paceline_scenario::Document;
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, ScheduleKind, simulate};
use std::collections::BTreeMap;

type Flows = BTreeMap<String, FlowSummary>;

fn run(text: &str, seed: u64, options: &RunOptions<'_>) -> Flows {
    let scenario = checked(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let output = simulate(&scenario, seed, options).unwrap();
    output.summary.flows.into_iter().map(|flow| (format!("{}[{}]", flow.flow, flow.instance), flow)).collect()
}

fn flows(text: &str, seed: u64) -> Flows {
    run(text, seed, &RunOptions::default())
}

/// A camera, a relay, and viewers behind links of these names, rates in Mbit/s and delays in ms. No host adds a draw.
fn path(viewers: &[(&str, f64, u32)]) -> String {
    let mut text = "duration = \"40 s\"\nhost_delay = \"0 s\"\ntopology = \"graph\"\n".to_owned();
    for (from, to, rate, delay) in [("camera", "relay", 10.0, 15)]
        .into_iter()
        .chain(viewers.iter().map(|&(to, rate, delay)| ("relay", to, rate, delay)))
    {
        text += &format!(
            "[link.to-{to}]\nbetween = [\"{from}\", \"{to}\"]\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"100 ms\" }}\n"
        );
    }
    text
}

/// Sound and two qualities of a picture, which the camera publishes.
const PUBLISHED: &str = "[flow.sound]\nfrom = \"camera\"\nto = \"relay\"\ncc = \"c4\"\ntransport = \"quic\"\n\
     quic = { carriage = \"datagrams\" }\napp = { kind = \"voice\", packet = \"160 B\" }\nbundle = { priority = 3 }\n\
     [flow.low]\nquic = { deadline = \"400 ms\" }\napp = { kind = \"encoder\", min_rate = \"400 kbit/s\", max_rate = \"400 kbit/s\" }\n\
     bundle = { with = \"sound\", priority = 2 }\n\
     [flow.high]\nquic = { deadline = \"400 ms\" }\napp = { kind = \"encoder\", min_rate = \"2 Mbit/s\", max_rate = \"2 Mbit/s\" }\n\
     bundle = { with = \"sound\", priority = 1 }\n";

/// One who has subscribed to all three.
fn viewer(name: &str) -> String {
    format!(
        "[flow.{name}-sound]\nto = \"{name}\"\ncc = \"c4\"\nquic = {{ queue = \"40 kB\" }}\n\
         app = {{ kind = \"relay\", of = \"sound\" }}\nbundle = {{ priority = 3 }}\n\
         [flow.{name}-low]\nquic = {{ deadline = \"400 ms\" }}\napp = {{ kind = \"relay\", of = \"low\" }}\n\
         bundle = {{ with = \"{name}-sound\", priority = 2 }}\n\
         [flow.{name}-high]\nquic = {{ deadline = \"400 ms\" }}\napp = {{ kind = \"relay\", of = \"high\" }}\n\
         bundle = {{ with = \"{name}-sound\", priority = 1 }}\n"
    )
}

/// Frames that came in, complete, reset, dropped.
fn frames(flow: &FlowSummary) -> [u64; 4] {
    let dropped = flow.frames_dropped.unwrap_or(0);
    [flow.frames_sent.unwrap(), flow.frames_complete.unwrap(), flow.frames_reset.unwrap(), dropped]
}

/// A second hop with room adds what its link takes: propagation and one packet, whatever the frame's size, for a frame leaves as it comes.
#[test]
fn a_wide_second_hop_adds_its_latency() {
    let got = flows(&(path(&[("wide", 10.0, 10)]) + PUBLISHED + &viewer("wide")), 1);
    let added = |name: &str, of: fn(&FlowSummary) -> Option<f64>| {
        of(&got[&format!("wide-{name}[0]")]).unwrap() - of(&got[&format!("{name}[0]")]).unwrap()
    };
    // 172 B with RTP's header, DATAGRAM's type, QUIC's 1 + 8 + 1 + 16, UDP's and IP's 28, at 10 Mbit/s
    let packet = (172 + 1 + 26 + 28) as f64 * 8.0 / 10e6;
    let sound = added("sound", |flow| flow.frame_delay_p50_s);
    assert!((sound - 0.010 - packet).abs() < 10e-6, "{sound}");
    for name in ["low", "high"] {
        // the last of its packets, of at most 1500 bytes; a frame of `high` is 8 kB, which would be 6.7 ms
        let mean = added(name, |flow| flow.frame_delay_mean_s);
        assert!((0.010..0.010 + 1.3e-3).contains(&mean), "{name}: {mean}");
        let [arrived, complete, reset, dropped] = frames(&got[&format!("wide-{name}[0]")]);
        assert!(
            arrived - complete <= 1 && reset == 0 && dropped == 0,
            "{name}: {arrived} {complete} {reset} {dropped}"
        );
        assert!(got[&format!("wide-{name}[0]")].freezes == Some(0), "{name}");
    }
    // frames are not cut into smaller packets
    let [packets, before] = ["wide-sound[0]", "sound[0]"].map(|name| got[name].packets_sent);
    assert!(packets <= before + before / 20, "{packets} after {before}");
}

/// Under a second hop that is too narrow sound and the low quality have what they had alone, and the high one is given up: each frame of it
/// leaves whole, or not at all.
#[test]
fn what_matters_least_is_dropped() {
    let text = path(&[("narrow", 1.2, 30)]) + PUBLISHED + &viewer("narrow");
    let alone = &text[..text.find("[flow.narrow-high]").unwrap()];
    for seed in 1..=3 {
        let (alone, got) = (flows(alone, seed), flows(&text, seed));
        for name in ["narrow-sound[0]", "narrow-low[0]"] {
            let [arrived, complete, reset, dropped] = frames(&got[name]);
            assert!(
                arrived - complete <= 4 && reset == 0 && dropped == 0,
                "{name}: {arrived} {complete} {reset} {dropped}"
            );
            let [one, all] = [&alone[name], &got[name]].map(|flow| flow.frame_delay_p95_s.unwrap());
            println!("{name} {seed}: {one:.4} alone, {all:.4} beside the high quality");
            // packets of the high one that left before: two at 1.2 Mbit/s, and what c4 keeps
            assert!(all < one + 0.030, "{name} {seed}: {one} alone, {all}");
        }
        let high = &got["narrow-high[0]"];
        let [arrived, complete, reset, dropped] = frames(high);
        println!("high {seed}: {arrived} came, {complete} complete, {reset} reset, {dropped} dropped");
        let published = got["high[0]"].frames_complete.unwrap();
        assert!(arrived - published <= 1, "{arrived} {published}: what has come is sent on");
        assert!(
            (1..=6).contains(&(arrived - complete - reset - dropped)),
            "{arrived} {complete} {reset} {dropped}: on their way"
        );
        // 0.7 Mbit/s are left for 2
        assert!((0.25..0.4).contains(&(complete as f64 / arrived as f64)) && dropped > 600, "{complete} {dropped}");
        assert!(
            high.frame_delay_max_s.unwrap() < 0.53,
            "the deadline, the link and its queue: {:?}",
            high.frame_delay_max_s
        );
    }
}

/// Who has a narrow link harms neither the publisher nor others: their rows are the same, bit for bit, as without him.
#[test]
fn a_slow_viewer_does_not_harm_a_fast_one() {
    let links = path(&[("narrow", 0.8, 30), ("wide", 20.0, 10)]) + PUBLISHED;
    let alone = flows(&(links.clone() + &viewer("wide")), 1);
    let both = flows(&(links + &viewer("narrow") + &viewer("wide")), 1);
    assert!(frames(&both["narrow-high[0]"])[3] > 600, "{:?}", frames(&both["narrow-high[0]"]));
    for (name, flow) in &alone {
        assert_eq!(format!("{flow:?}"), format!("{:?}", both[name]), "{name}");
    }
}

/// The same seed gives the same, whether elements run by windows or event by event.
#[test]
fn the_same_seed_gives_the_same() {
    let text = (path(&[("narrow", 1.2, 30), ("wide", 20.0, 10)]) + PUBLISHED + &viewer("narrow") + &viewer("wide"))
        .replace("host_delay = \"0 s\"\n", "");
    let events = RunOptions { schedule: ScheduleKind::Events, ..RunOptions::default() };
    let words = |flows: Flows| format!("{flows:?}");
    let one = words(flows(&text, 5));
    assert_eq!(one, words(flows(&text, 5)));
    assert_eq!(one, words(run(&text, 5, &events)));
    assert_ne!(one, words(flows(&text, 6)));
}

/// What the publisher gives up, the relay gives up with it; of groups the rest as well. Frames of which a part came are counted.
#[test]
fn what_is_reset_before_the_relay_is_reset_after_it() {
    for carriage in ["stream-each", "stream-per-group"] {
        let publish = PUBLISHED.replace("quic = { deadline", &format!("quic = {{ carriage = \"{carriage}\", deadline"));
        let text = path(&[("wide", 20.0, 10)]).replace("10 Mbit/s", "1.5 Mbit/s") + &publish + &viewer("wide");
        let got = flows(&text, 1);
        let [_, complete, reset, _] = frames(&got["high[0]"]);
        let [arrived, onward, cut, dropped] = frames(&got["wide-high[0]"]);
        println!(
            "{carriage}: {complete} and {reset} before, {arrived} came, {onward} complete, {cut} reset, {dropped} dropped"
        );
        assert!(reset > 300 && cut > 5 && dropped == 0, "{carriage}: {reset} {cut} {dropped}");
        // what is complete after was complete before; a frame that was reset after it had come counts for both
        assert!(onward <= complete && complete <= onward + cut && arrived <= onward + cut + 3, "{carriage}");
        assert!(got["wide-high[0]"].frame_delay_max_s.unwrap() < 0.42, "{carriage}: the deadline and the link");
    }
}

/// Relays in a row, and one that serves several viewers alike, among routers with hosts of their own: one host for each relay.
#[test]
fn relays_in_a_row_serve_many() {
    let text = "duration = \"20 s\"\nhost_delay = \"0 s\"\ntopology = \"parking-lot\"\n\
         [link.hop1]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n[link.hop2]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
         [link.hop3]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\n[access]\ndelay = \"1 ms\"\nqueue = { kind = \"droptail\", limit = \"50 packets\" }\n\
         [flow.call]\nto = \"r1\"\ntransport = \"quic\"\napp = { kind = \"encoder\", min_rate = \"1 Mbit/s\", max_rate = \"1 Mbit/s\" }\n\
         [flow.middle]\nto = \"r2\"\napp = { kind = \"relay\", of = \"call\" }\n\
         [flow.last]\ncount = 3\nquic = { queue = \"100 kB\" }\napp = { kind = \"relay\", of = \"middle\" }\n\
         access = { receiver = { rate = [\"20 Mbit/s\", \"20 Mbit/s\", \"600 kbit/s\"] } }\n";
    let got = flows(text, 1);
    let delay = |name: &str| got[name].frame_delay_p50_s.unwrap();
    // each relay adds its hop and two access links, and a packet's time on each of those
    for (name, before, least) in
        [("middle[0]", "call[0]", 0.022), ("last[0]", "middle[0]", 0.007), ("last[1]", "middle[0]", 0.007)]
    {
        let added = delay(name) - delay(before);
        assert!((least..least + 3e-3).contains(&added), "{name}: {added}");
        let [arrived, complete, ..] = frames(&got[name]);
        assert!(arrived - complete <= 2 && got[name].frames_dropped == Some(0), "{name}");
    }
    assert!(frames(&got["last[2]"])[3] > 50, "the narrow one: {:?}", frames(&got["last[2]"]));
}

/// Who subscribes later gets the groups that begin then; and nothing after he has left.
#[test]
fn a_late_viewer_begins_with_a_group() {
    let publish = PUBLISHED.replace(
        "quic = { deadline = \"400 ms\" }\napp = { kind = \"encoder\", min_rate = \"400",
        "quic = { carriage = \"stream-per-group\" }\napp = { kind = \"encoder\", key_interval = \"5 s\", min_rate = \"400",
    );
    let late = viewer("wide")
        .replace("to = \"wide\"\n", "to = \"wide\"\nstart = \"12 s\"\n")
        .replace("-low]\nquic = { deadline = \"400 ms\" }", "-low]\nstart = \"12 s\"\nstop = \"26 s\"")
        .replace("-high]\n", "-high]\nstart = \"12 s\"\n");
    let got = flows(&(path(&[("wide", 10.0, 10)]) + &publish + &late), 1);
    let [arrived, complete, reset, dropped] = frames(&got["wide-low[0]"]);
    // key frames every 5 s from within the first 1/30 s on: from 15 s to 26 s, at 30 frames a second
    assert!((328..=331).contains(&arrived) && arrived - complete <= 2, "{arrived} {complete}");
    assert_eq!([reset, dropped], [0, 0]);
    let [arrived, complete, ..] = frames(&got["wide-high[0]"]);
    assert!((838..=841).contains(&arrived) && arrived - complete <= 1, "{arrived} {complete}: from 12 s to 40 s");
}

/// Frames for which no stream may be opened are dropped and counted.
#[test]
fn streams_that_may_not_be_opened_are_drops() {
    let narrow = viewer("narrow").replace("queue = \"40 kB\"", "max_streams = 2");
    let got = flows(&(path(&[("narrow", 1.2, 30)]) + PUBLISHED + &narrow), 1);
    let [arrived, complete, reset, dropped] = frames(&got["narrow-high[0]"]);
    println!("{arrived} {complete} {reset} {dropped}");
    assert!(dropped > 300 && complete + reset + dropped + 4 >= arrived, "{arrived} {complete} {reset} {dropped}");
}

#[test]
fn mistakes_are_reported() {
    let text = path(&[("wide", 10.0, 10)]) + PUBLISHED + &viewer("wide");
    assert!(checked(&text).is_ok());
    let sound = "app = { kind = \"relay\", of = \"sound\" }";
    let low = "app = { kind = \"relay\", of = \"low\" }";
    let cases: [(&str, &str, &str); 14] = [
        (
            low,
            "app = { kind = \"relay\", of = \"lows\" }",
            "app.of: `lows` must be the name of a flow; did you mean `low`?",
        ),
        (low, "app = { kind = \"relay\" }", "app.of: is required"),
        (
            low,
            "app = { kind = \"relay\", of = \"wide-low\" }",
            "app.of: `wide-low` sends on, by way of others or at once",
        ),
        (
            "app = { kind = \"relay\", of = \"high\" }",
            "app = { kind = \"relay\", of = \"wide-high\" }",
            "`wide-high` sends on, by way of others or at once, what this flow does",
        ),
        (
            "app = { kind = \"encoder\", min_rate = \"400 kbit/s\", max_rate = \"400 kbit/s\" }",
            "app = { kind = \"ftp\" }",
            "wide-low.app.of: `low` has no frames that could be sent on",
        ),
        (
            "to = \"wide\"\n",
            "to = \"wide\"\nfrom = \"camera\"\n",
            "wide-sound.from: must be where `sound` ends, `relay`",
        ),
        ("to = \"wide\"\n", "to = \"wide\"\ntransport = \"tcp\"\n", "wide-sound.transport: must be `quic`"),
        ("[flow.sound]\n", "[flow.sound]\nstart = \"5 s\"\n", "wide-sound.start: must not be before that of `sound`"),
        (
            "quic = { queue = \"40 kB\" }",
            "quic = { carriage = \"stream-each\" }",
            "wide-sound.quic.carriage: must be that of `sound`",
        ),
        ("to = \"wide\"\n", "to = \"wide\"\nrtt = \"200 ms\"\n", "wide-sound.rtt: belongs to the relay's host"),
        (
            "quic = { carriage = \"datagrams\" }",
            "quic = { carriage = \"datagrams\", queue = \"9 kB\" }",
            "sound.quic.queue: is a relay's",
        ),
        (
            "[flow.wide-low]\nquic = { ",
            "[flow.wide-low]\nquic = { queue = \"9 kB\", ",
            "wide-low.quic.queue: must be that of `wide-sound`, whose connection it is",
        ),
        (
            sound,
            "app = { kind = \"relay\", of = \"sound\" }\ncount = 2",
            "wide-low.count: must be that of `wide-sound`",
        ),
        ("kind = \"relay\", of = \"low\"", "kind = \"relay\", of = \"low\", rate = \"1 Mbit/s\"", "app.rate: "),
    ];
    for (of, to, words) in cases {
        let text = text.replacen(of, to, 1);
        let error = match Document::parse(&text, "relay.toml") {
            Ok(_) => checked(&text).unwrap_err(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(words), "{words}: {error}");
    }
    let count = text
        .replace("from = \"camera\"\n", "from = \"camera\"\ncount = 2\n")
        .replace("[flow.low]\n", "[flow.low]\ncount = 2\n");
    let error = checked(&count.replace("[flow.high]\n", "[flow.high]\ncount = 2\n")).unwrap_err();
    assert!(error.contains("wide-high.count: must be that of `high`, 2"), "{error}");
    let late =
        text.replace("-high]\n", "-high]\nstart = \"9 s\"\n").replace("[flow.high]\n", "[flow.high]\nstop = \"3 s\"\n");
    let error = checked(&late).unwrap_err();
    assert!(error.contains("wide-high.start: must be before `high` stops, at 3 s"), "{error}");
    let over_rtp = "duration = \"9 s\"\n[link.bottleneck]\nrate = \"1 Mbit/s\"\n[flow.call]\ncc = \"gcc\"\napp = { kind = \"encoder\" }\n\
                    [flow.on]\nfrom = \"right\"\nto = \"left\"\ntransport = \"quic\"\napp = { kind = \"relay\", of = \"call\" }\n";
    let error = checked(over_rtp).unwrap_err();
    assert!(error.contains("on.app.of: `call` is not over QUIC"), "{error}");
}

/// What reaches a relay later than its deadline is given up there, also when the stamps that say so have gone round.
#[test]
fn what_is_too_late_at_a_relay_is_so_however_late() {
    let text = "duration = \"100 min\"\nhost_delay = \"0 s\"\ntopology = \"graph\"\n\
         [link.up]\nbetween = [\"camera\", \"relay\"]\nrate = \"75 kbit/s\"\ndelay = \"15 ms\"\nqueue = { limit = \"20 packets\" }\n\
         [link.down]\nbetween = [\"relay\", \"viewer\"]\nrate = \"1 Mbit/s\"\ndelay = \"15 ms\"\n\
         [flow.up]\nfrom = \"camera\"\nto = \"relay\"\ncc = \"cubic\"\ntransport = \"quic\"\nquic = { carriage = \"stream-each\", max_streams = 60000 }\n\
         app = { kind = \"encoder\", max_rate = \"100 kbit/s\", min_rate = \"100 kbit/s\", frame_rate = 2 }\n\
         [flow.down]\nfrom = \"relay\"\nto = \"viewer\"\ncc = \"cubic\"\ntransport = \"quic\"\nquic = { deadline = \"300 s\" }\n\
         app = { kind = \"relay\", of = \"up\" }\n";
    let flows = flows(text, 1);
    let (up, down) = (&flows["up[0]"], &flows["down[0]"]);
    assert!(up.frame_delay_max_s.unwrap() > 1400.0, "{up:?}");
    assert!((280.0..302.0).contains(&down.frame_delay_max_s.unwrap()), "{down:?}");
    assert!(down.frames_complete.unwrap() * 4 < up.frames_complete.unwrap(), "{down:?}");
}

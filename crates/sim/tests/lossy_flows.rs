//! A random loss that spares some flows, or looks at some alone.

use super::read;
use paceline_sim::graph::{Fold, Planning};
use paceline_sim::{RunOptions, Summary, simulate};

fn run(text: &str, fold: Fold) -> Summary {
    let scenario = read::scenario(text);
    let options = RunOptions { planning: Planning { fold, ..Planning::default() }, ..RunOptions::default() };
    simulate(&scenario, 1, &options).unwrap().summary
}

/// Lost packets and acknowledgements of the flows calls[0], calls[1], download and film.
fn lost(text: &str) -> [(u64, u64); 4] {
    let folded = run(text, Fold::Possible);
    let plain = run(text, Fold::Nothing);
    assert_eq!(format!("{:?}", folded.flows), format!("{:?}", plain.flows), "folded or not");
    let lost: Vec<(u64, u64)> = folded.flows.iter().map(|flow| (flow.packets_lost, flow.acks_lost)).collect();
    lost.try_into().unwrap()
}

fn text(forward: &str, queue: &str) -> String {
    format!(
        "duration = \"30 s\"\n[link.bottleneck]\nrate = \"40 Mbit/s\"\ndelay = \"5 ms\"\nqueue = {{ kind = \"{queue}\" }}\n\
         loss = {{ {forward} }}\n\
         [flow.call]\ncount = 2\ngroup = \"live\"\ncc = \"udp\"\napp = {{ kind = \"cbr\", rate = \"500 kbit/s\" }}\n\
         [flow.download]\ncc = \"udp\"\napp = {{ kind = \"cbr\", rate = \"500 kbit/s\" }}\n\
         [flow.film]\ncc = \"udp\"\napp = {{ kind = \"cbr\", rate = \"500 kbit/s\" }}\n"
    )
}

#[test]
fn named_flows_and_groups_are_spared_or_alone_concerned() {
    let models = [
        "kind = \"uniform\", rate = \"10 %\"",
        "kind = \"gilbert-elliott\", to_bad = \"5 %\", to_good = \"45 %\"",
        "kind = \"two-state\", good_rate = \"10 %\", bad_rate = \"10 %\"",
    ];
    // unlimited queues are folded; CoDel's decide at departure
    for queue in ["unlimited", "droptail", "codel"] {
        for model in models {
            let concerned = |more: &str| lost(&text(&format!("{model}{more}"), queue)).map(|(data, _)| data > 0);
            assert_eq!(concerned(""), [true; 4], "{model}");
            assert_eq!(concerned(", except = [\"download\"]"), [true, true, false, true], "{model}");
            assert_eq!(concerned(", except = [\"live\", \"film\"]"), [false, false, true, false], "{model}");
            assert_eq!(concerned(", only = [\"live\"]"), [true, true, false, false], "{model}");
            assert_eq!(concerned(", only = [\"call\", \"film\"]"), [true, true, false, true], "{model}");
        }
    }
}

/// Each packet of a flow that is not spared is lost with the same probability as before, and by the same draws.
#[test]
fn the_others_lose_what_they_lost_before() {
    let all = lost(&text("rate = \"10 %\"", "droptail"));
    let some = lost(&text("rate = \"10 %\", except = [\"download\"]", "droptail"));
    // open loops: what is spared changes nobody's sending, and draws go by the number of the arrival
    assert_eq!((some[0], some[1], some[3]), (all[0], all[1], all[3]));
    let n = 30.0 * 500e3 / 8.0 / 1472.0;
    let bound = 4.0 * (n * 0.09f64).sqrt();
    assert!((some[0].0 as f64 - n / 10.0).abs() < bound, "{} of {n}", some[0].0);
}

#[test]
fn acknowledgements_and_access_links_know_their_flows_too() {
    let tcp = |loss: &str, backward: &str| {
        format!(
            "duration = \"10 s\"\n[link.bottleneck]\nrate = \"5 Mbit/s\"\ndelay = \"5 ms\"\n{backward}\n{loss}\n\
             [flow.a]\n[flow.b]\n[flow.c]\ngroup = \"spared\"\n[flow.d]\n"
        )
    };
    let back = "backward = { loss = { rate = \"10 %\", except = [\"spared\", \"b\"] } }";
    assert_eq!(lost(&tcp("", back)).map(|(_, acks)| acks > 0), [true, false, false, true]);
    let own = lost(&tcp("[access.receiver]\nloss = { rate = \"5 %\", on = \"acks\", only = [\"a\", \"spared\"] }", ""));
    assert_eq!(own.map(|(_, acks)| acks > 0), [true, false, true, false]);
}

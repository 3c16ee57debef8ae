//! What each flow has of a link.

use super::read;
use paceline_sim::summary::{LinkFlowSummary, QueueSummary};
use paceline_sim::{RunOptions, Summary, simulate};

fn summary(text: &str) -> Summary {
    let scenario = read::scenario(text);
    simulate(&scenario, 1, &RunOptions::default()).unwrap().summary
}

fn text(queue: &str, more: &str) -> String {
    format!(
        "duration = \"30 s\"\nwarmup = \"5 s\"\n[link.bottleneck]\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\n\
         queue = {{ {queue} }}\n{more}\n\
         [flow.bulk]\ncount = 2\necn = true\n[flow.call]\ncc = \"udp\"\napp = {{ kind = \"cbr\", rate = \"500 kbit/s\" }}\n\
         [flow.back]\nfrom = \"right\"\nto = \"left\"\n"
    )
}

const QUEUES: [&str; 10] = [
    "kind = \"droptail\", limit = \"30 packets\"",
    "kind = \"droptail\", limit = \"40 kB\"",
    "kind = \"red\", limit = \"60 packets\"",
    "kind = \"red\", limit = \"60 packets\", ecn = true",
    "kind = \"codel\", ecn = true",
    "kind = \"fq-codel\", limit = \"60 packets\", ecn = false",
    "kind = \"dualpi2\", limit = \"60 packets\"",
    "kind = \"cake\", bandwidth = \"3 Mbit/s\", limit = \"60 packets\"",
    "kind = \"pie\"",
    "kind = \"fq-pie\", limit = \"60 packets\"",
];

const LOSSY: &str =
    "loss = { rate = \"1 %\" }\noutage = [{ from = \"4.9 s\", to = \"5.1 s\" }, { from = \"12 s\", to = \"12.3 s\" }]";

/// The parts make the whole: every count, every reason, and the mean queue.
fn adds_up(rows: &[&LinkFlowSummary], queue: &QueueSummary) {
    let sum = |of: &dyn Fn(&LinkFlowSummary) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
    assert_eq!(sum(&|row| row.arrivals), queue.arrivals);
    assert_eq!(sum(&|row| row.departures), queue.departures);
    assert_eq!(sum(&|row| row.departed_bytes), queue.departed_bytes);
    assert_eq!(sum(&|row| row.marks), queue.marks);
    for (reason, count) in &queue.drops {
        assert_eq!(sum(&|row| row.drops[reason]), *count, "{reason}");
    }
    let mean: f64 = rows.iter().map(|row| row.mean_packets).sum();
    assert!((mean - queue.mean_packets).abs() < 1e-6 * mean.max(1e-3), "{mean} and {}", queue.mean_packets);
    let shares: f64 = rows.iter().filter_map(|row| row.queue_share).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
}

#[test]
fn parts_make_the_whole_under_every_discipline() {
    let (mut marked, mut reasons) = (0, std::collections::BTreeSet::new());
    for queue in QUEUES {
        let policed = "per_flow = true\npolicer = { rate = \"6 Mbit/s\", burst = \"20 kB\" }";
        for more in ["per_flow = true", &format!("per_flow = true\n{LOSSY}"), policed] {
            let summary = summary(&text(queue, more));
            let rows: Vec<&LinkFlowSummary> = summary.link_flows.iter().collect();
            let names: Vec<_> = rows.iter().map(|row| (row.direction, row.flow.as_str(), row.instance)).collect();
            let crossing =
                [("forward", "back", 0), ("forward", "bulk", 0), ("forward", "bulk", 1), ("forward", "call", 0)];
            assert_eq!(names, crossing, "backward was not asked for");
            adds_up(&rows, &summary.queues[0]);
            assert!(rows.iter().all(|row| row.arrivals > 100), "{rows:?}");
            marked += summary.queues[0].marks;
            let dropped = summary.queues[0].drops.iter().filter(|(_, count)| **count > 0);
            reasons.extend(dropped.map(|(reason, _)| *reason));
        }
    }
    assert!(marked > 10, "{marked}");
    let expected = ["delay", "early", "loss", "outage", "overflow", "policed"];
    assert!(expected.iter().all(|reason| reasons.contains(reason)), "{reasons:?}");
}

/// Whoever asks gets the same run, and whoever does not asks for nothing.
#[test]
fn asking_changes_nothing_else() {
    for queue in QUEUES {
        let (mut asked, unasked) = (summary(&text(queue, "per_flow = true")), summary(&text(queue, "")));
        assert!(unasked.link_flows.is_empty());
        asked.link_flows.clear();
        asked.engine.elements = unasked.engine.elements;
        assert_eq!(format!("{asked:?}"), format!("{unasked:?}"), "{queue}");
    }
}

/// Constant rates through a link that is never full: what a flow has of it is what it sends.
#[test]
fn open_loops_have_what_they_send() {
    let text = "duration = \"100 s\"\nwarmup = \"20 s\"\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"4 Mbit/s\"\n\
                delay = \"10 ms\"\nper_flow = true\nbackward = { per_flow = true }\n\
                [flow.slow]\ncc = \"udp\"\napp = { kind = \"cbr\", rate = \"400 kbit/s\" }\n\
                [flow.fast]\ncc = \"udp\"\napp = { kind = \"cbr\", rate = \"1.6 Mbit/s\" }\n\
                [flow.never]\nstart = \"99 s\"\ncc = \"udp\"\nfrom = \"right\"\nto = \"left\"\n\
                app = { kind = \"cbr\", rate = \"8 kbit/s\" }\n";
    let summary = summary(text);
    let row = |flow: &str, direction| {
        summary.link_flows.iter().find(|row| row.flow == flow && row.direction == direction).unwrap()
    };
    // packets of 1000 B in 80 s, one more or less
    for (flow, packets) in [("slow", 4000), ("fast", 16000)] {
        let row = row(flow, "forward");
        assert!(row.arrivals.abs_diff(packets) <= 1 && row.departures.abs_diff(packets) <= 1, "{row:?}");
        assert_eq!((row.drop_share, row.departed_bytes), (Some(0.0), row.departures * 1000));
    }
    assert_eq!(summary.link_flows.len(), 6, "a row for each flow that crosses, either way");
    assert_eq!((row("never", "backward").arrivals, row("slow", "backward").arrivals), (1, 0));
    assert_eq!(row("slow", "backward").drop_share, None);
}

/// A run that ends before its time has counted no more than the link.
#[test]
fn a_run_that_waits_for_a_flow_ends_its_books_with_it() {
    for queue in ["kind = \"droptail\", limit = \"30 packets\"", "kind = \"codel\""] {
        let text = text(queue, "per_flow = true")
            .replace("[flow.bulk]", "[flow.bulk]\napp = { kind = \"ftp\", size = \"3 MB\" }");
        let summary = summary(&format!("stop_after = \"bulk\"\n{text}"));
        assert!(summary.end_s > 6.0 && summary.end_s < 29.0, "{}", summary.end_s);
        adds_up(&summary.link_flows.iter().collect::<Vec<_>>(), &summary.queues[0]);
    }
}

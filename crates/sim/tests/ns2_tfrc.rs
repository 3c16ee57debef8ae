//! TFRC in the whole simulator under the profile `ns2` against ns-2.35's (`ns2/B_*.csv`, `ns2/D_*.csv`, and the
//! single-flow grid of crate flow): means over 10 seeds, with 95 % half widths.
//!
//! One flow, and the lossy dumbbell of "TFRC Veno" (Fig. 6): within 3 % or the joint 95 % interval, whichever is larger.
//! Beside SACK on one bottleneck, with RED or with jitter: 10 % or the joint interval. Some hundred pairs of means are
//! compared, of which a twentieth would miss a 95 % interval by chance if nothing differed at all; so of all pairs at most
//! a twentieth may miss it, and none a 99.9 % interval. `--nocapture` prints the tables.

use paceline_sim::scenario::Document;
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, Scenario, Summary, simulate};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Student's t for 95 % and 99.9 %, and 9 degrees of freedom.
const T: f64 = 2.262;
const T_999: f64 = 4.781;
const SEEDS: u64 = 10;

/// One row of a results file.
struct Row<'a> {
    header: Vec<&'a str>,
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn all(csv: &'a str) -> Vec<Row<'a>> {
        let mut lines = csv.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        lines.map(|line| Row { header: header.clone(), cells: line.split(',').collect() }).collect()
    }

    fn text(&self, name: &str) -> &'a str {
        self.header.iter().position(|h| *h == name).map_or("", |i| self.cells[i])
    }

    fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }
}

/// A measure's column, the least difference that counts (the files' last digit), and its value in a run.
type Measure = (&'static str, f64, fn(&Summary) -> f64);

/// How many pairs of means were compared, and which miss their 95 % and their 99.9 % interval.
#[derive(Default)]
struct Misses {
    compared: usize,
    at_95: Vec<String>,
    at_999: Vec<String>,
}

impl Misses {
    /// At most a twentieth outside of 95 %, none outside of 99.9 %.
    fn judge(&self) {
        println!("{} compared, {} miss their 95 % interval", self.compared, self.at_95.len());
        assert!(self.at_999.is_empty(), "these differ from ns-2:\n{}", self.at_999.join("\n"));
        let most = self.compared / 20;
        assert!(self.at_95.len() <= most, "more than {most} differ from ns-2:\n{}", self.at_95.join("\n"));
    }
}

/// Runs `scenario` of every row under all seeds; means agree within `share` or the joint interval.
fn compare(rows: &[Row], scenario: fn(&Row) -> String, measures: &[Measure], share: f64) -> Misses {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Misses::default()));
    let work = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(row, &scenario(row), measures, share, &all);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    all.into_inner().unwrap()
}

fn check(row: &Row, text: &str, measures: &[Measure], share: f64, all: &Mutex<Misses>) {
    let document = Document::parse(text, "ns2.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err(String::new())).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let runs: Vec<Summary> =
        (1..=SEEDS).map(|seed| simulate(&scenario, seed, &RunOptions::default()).unwrap().summary).collect();
    let mut all = all.lock().unwrap();
    let mut line = row.cells[..7].join(" ");
    for (column, digit, value) in measures {
        let n = runs.len() as f64;
        let mean = runs.iter().map(value).sum::<f64>() / n;
        let square = runs.iter().map(|run| (value(run) - mean) * (value(run) - mean)).sum::<f64>();
        let half = T * (square / (n - 1.0) / n).sqrt();
        let (theirs, their_half) = (row.number(&format!("{column}_mean")), row.number(&format!("{column}_ci95")));
        let joint = half.hypot(their_half);
        let least = (share * theirs).max(*digit);
        line += &format!("  {column} {mean:.5} ({theirs:.5} ± {:.5})", least.max(joint));
        all.compared += 1;
        if (mean - theirs).abs() > least.max(joint) {
            line += " MISSES";
            all.at_95.push(format!("{line} [{column}]"));
        }
        if (mean - theirs).abs() > least.max(joint * T_999 / T) {
            all.at_999.push(format!("{line} [{column}]"));
        }
    }
    println!("{line}");
}

fn queue_drops(summary: &Summary) -> f64 {
    let drops = &summary.queues[0].drops;
    (drops["overflow"] + drops["early"] + drops["forced"]) as f64
}

fn queue_loss(summary: &Summary) -> f64 {
    queue_drops(summary) / summary.queues[0].arrivals as f64
}

/// `value` of each instance of the flow `name`.
fn of(summary: &Summary, name: &str, value: impl Fn(&FlowSummary) -> f64) -> Vec<f64> {
    summary.flows.iter().filter(|flow| flow.flow == name).map(value).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    if values.is_empty() { 0.0 } else { sum * sum / (values.len() as f64 * values.iter().map(|v| v * v).sum::<f64>()) }
}

/// `A.tcl`, `kind=tfrc`.
fn single(row: &Row) -> String {
    let loss = row.number("loss");
    let start = if loss > 0.0 { "{ uniform = [\"0 s\", \"1 s\"] }" } else { "\"0 s\"" };
    format!(
        "duration = \"120 s\"\nwarmup = \"20 s\"\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\n\
         delay = \"{} ms\"\nqueue = {{ kind = \"droptail\", limit = \"50 packets\" }}\n\
         loss = {{ kind = \"uniform\", rate = {loss:?} }}\nbackward = {{ queue = {{ kind = \"unlimited\" }} }}\n\
         [flow.a]\ncc = \"tfrc\"\nstart = {start}\n",
        row.number("rtt") / 2.0
    )
}

#[test]
fn one_flow() {
    let mut rows = Row::all(include_str!("../../flow/tests/ns2/A_noloss_summary.csv"));
    rows.extend(Row::all(include_str!("../../flow/tests/ns2/A_loss_summary.csv")));
    rows.retain(|row| row.text("kind") == "tfrc");
    assert_eq!(rows.len(), 9);
    let measures: [Measure; 3] = [
        ("goodput_mbps", 0.0, |s| s.flows[0].goodput_bps / 1e6),
        ("lossrate_total", 1e-6, |s| (queue_drops(s) + s.queues[0].drops["loss"] as f64) / s.queues[0].arrivals as f64),
        ("meanq", 0.0, |s| s.queues[0].mean_packets),
    ];
    let misses = compare(&rows, single, &measures, 0.03);
    assert!(misses.at_95.is_empty(), "these differ from ns-2:\n{}", misses.at_95.join("\n"));
}

/// `B.tcl`: N SACK and N TFRC flows.
fn beside_sack(row: &Row) -> String {
    let n = row.text("n");
    let queue = match row.text("queue") {
        "dt" => "{ kind = \"droptail\", limit = \"100 packets\" }",
        _ => {
            "{ kind = \"red\", limit = \"200 packets\", min_threshold = 25, max_threshold = 100, weight = 0.002, \
             gentle = true, mean_packet = \"1000 B\" }"
        }
    };
    let (sack, tfrc) = match row.text("jit") {
        "1" => ("send_overhead = \"533 us\"", "params = { gap_jitter = 0.5 }"),
        _ => ("", ""),
    };
    format!(
        "duration = \"200 s\"\nwarmup = \"50 s\"\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"15 Mbit/s\"\n\
         delay = \"25 ms\"\nqueue = {queue}\nbackward = {{ queue = {{ kind = \"unlimited\" }} }}\n\
         [flow.x]\ncc = \"sack\"\ncount = {n}\nstart = {{ uniform = [\"0 s\", \"10 s\"] }}\n{sack}\n\
         [flow.y]\ncc = \"tfrc\"\ncount = {n}\nstart = {{ uniform = [\"0 s\", \"10 s\"] }}\n{tfrc}\n"
    )
}

#[test]
fn beside_sack_on_one_bottleneck() {
    let mut rows = Row::all(include_str!("ns2/B_sack1_tfrc_summary.csv"));
    // bare drop-tail without jitter shows which packets meet which gap, and nothing else
    rows.retain(|row| row.text("jit") == "1" || row.text("queue") == "red");
    let measures: [Measure; 6] = [
        ("goodput_x", 0.0, |s| mean(&of(s, "x", |flow| flow.goodput_bps))),
        ("goodput_y", 0.0, |s| mean(&of(s, "y", |flow| flow.goodput_bps))),
        ("jain_y", 0.0, |s| jain(&of(s, "y", |flow| flow.goodput_bps))),
        ("loss_all", 1e-6, queue_loss),
        ("meanq", 0.0, |s| s.queues[0].mean_packets),
        ("util", 0.0, |s| s.queues[0].utilisation),
    ];
    let misses = compare(&rows, beside_sack, &measures, 0.1);
    assert_eq!(misses.compared, 90);
    misses.judge();
}

/// `D.tcl`, `topo=fig6`: `nx` TFRC flows and the rest SACK over lossy last hops, beside eight Pareto sources.
fn lossy_dumbbell(row: &Row) -> String {
    let nx = row.number("nx");
    let sack = row.number("n") - nx;
    let mut text = format!(
        "duration = \"300 s\"\nprofile = \"ns2\"\n[link.bottleneck]\nrate = \"12 Mbit/s\"\ndelay = \"80 ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"20 packets\" }}\n\
         backward = {{ queue = {{ kind = \"droptail\", limit = \"50 packets\" }} }}\n\
         [access]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\nqueue = {{ kind = \"droptail\", limit = \"50 packets\" }}\n\
         [access.receiver]\nloss = {{ kind = \"uniform\", rate = {:?}, on = \"data\" }}\n\
         [flow.x]\ncc = \"tfrc\"\ncount = {nx}\nstart = {{ uniform = [\"0 s\", \"1 s\"] }}\n\
         [flow.udp]\ncc = \"udp\"\ncount = 8\nsegment = \"512 B\"\nstart = {{ uniform = [\"0 s\", \"1 s\"] }}\n\
         app = {{ kind = \"pareto\", rate = \"300 kbit/s\", burst = \"100 ms\", idle = \"100 ms\", shape = 1.5 }}\n",
        row.number("loss"),
    );
    if sack > 0.0 {
        text += &format!("[flow.y]\ncc = \"sack\"\ncount = {sack}\nstart = {{ uniform = [\"0 s\", \"1 s\"] }}\n");
    }
    text
}

/// What a flow has sent, in kbit/s of its time.
fn sent(flow: &FlowSummary) -> f64 {
    flow.packets_sent as f64 * 8.0 / (300.0 - flow.start_s)
}

#[test]
fn over_lossy_last_hops() {
    let mut rows = Row::all(include_str!("ns2/D_fig6_summary.csv"));
    rows.retain(|row| row.text("x") == "tfrc");
    let measures: [Measure; 5] = [
        ("sent_x", 0.0, |s| mean(&of(s, "x", sent))),
        ("sent_y", 0.0, |s| mean(&of(s, "y", sent))),
        ("jain_x", 0.0, |s| jain(&of(s, "x", sent))),
        ("meanq", 0.0, |s| s.queues[0].mean_packets),
        ("qloss", 1e-6, queue_loss),
    ];
    let misses = compare(&rows, lossy_dumbbell, &measures, 0.03);
    assert!(misses.compared >= 60);
    misses.judge();
}

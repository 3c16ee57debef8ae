//! Profiles `ns2` and `ns2-linux` against ns-2.35's own results: one flow over a 10 Mbit/s bottleneck with a queue of
//! 50 packets, without loss at four round-trip times, with random loss at 50 ms (tests/ns2/*.csv: mean, standard
//! deviation, 95 % half width of 10 seeds).
//!
//! They agree if goodput, loss rate, mean queue and mean window are within 3 % or the joint 95 % interval,
//! whichever is larger. Where nothing is random one run is compared; `cargo test -p paceline-flow ns2_grid:: --
//! --nocapture` prints the table.

use crate::common::{Outcome, Path, run};
use paceline_control::{Profile, TcpController, registry};
use paceline_flow::tcp::TcpConfig;
use paceline_units::Span;

/// Student's t for 95 % and n - 1 degrees of freedom.
const SEEDS: u64 = 30;
const T: f64 = 2.045;

struct Row<'a> {
    kind: &'a str,
    rtt_ms: u64,
    loss: f64,
    columns: Vec<&'a str>,
    header: &'a [&'a str],
}

impl Row<'_> {
    fn get(&self, name: &str) -> f64 {
        let i = self.header.iter().position(|h| *h == name).expect("column");
        self.columns[i].parse().expect("number")
    }
}

fn compare(csv: &str, filter: impl Fn(&str) -> bool) {
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut bad = Vec::new();
    for line in lines {
        let columns: Vec<&str> = line.split(',').collect();
        let row = Row {
            kind: columns[0],
            rtt_ms: columns[1].parse().unwrap(),
            loss: columns[2].parse().unwrap(),
            columns,
            header: &header,
        };
        if filter(row.kind) {
            check(&row, &mut bad);
        }
    }
    assert!(bad.is_empty(), "disagree with ns-2:\n{}", bad.join("\n"));
}

fn check(row: &Row, bad: &mut Vec<String>) {
    let (config, controller) = kind(row.kind);
    let seeds = if row.loss > 0.0 { SEEDS } else { 1 };
    let outcomes: Vec<Outcome> =
        (1..=seeds).map(|seed| run(&config, controller.clone(), &Path::grid(row.rtt_ms, row.loss, seed))).collect();
    let mut text = format!("{:12} rtt {:3} ms loss {:5}:", row.kind, row.rtt_ms, row.loss);
    for (name, column, value) in [
        ("goodput", "goodput_mbps", (|o| o.goodput_mbps) as fn(&Outcome) -> f64),
        ("loss", "lossrate_total", |o| o.loss_rate),
        ("queue", "meanq", |o| o.mean_queue),
        ("cwnd", "cwnd", |o| o.mean_window),
    ] {
        let n = outcomes.len() as f64;
        let mean = outcomes.iter().map(value).sum::<f64>() / n;
        let variance = outcomes.iter().map(|o| (value(o) - mean) * (value(o) - mean)).sum::<f64>() / (n - 1.0).max(1.0);
        let ours = if n > 1.0 { T * (variance / n).sqrt() } else { 0.0 };
        let theirs = row.get(&format!("{column}_ci95"));
        let reference = row.get(&format!("{column}_mean"));
        // the table's last digit counts too: loss rates are printed to 1e-6
        let tolerance = (0.03 * reference).max((ours * ours + theirs * theirs).sqrt()).max(1e-6);
        text += &format!(" {name} {mean:.5} (ns-2 {reference:.5} +- {tolerance:.5})");
        if (mean - reference).abs() > tolerance {
            bad.push(format!(
                "{} {} ms {}: {name} {mean} against {reference} +- {tolerance}",
                row.kind, row.rtt_ms, row.loss
            ));
        }
    }
    println!("{text}");
}

const NO_LOSS: &str = include_str!("ns2/A_noloss_summary.csv");
const LOSS: &str = include_str!("ns2/A_loss_summary.csv");

fn ours(kind: &str) -> bool {
    !["tfrc", "rap"].contains(&kind)
}

#[test]
fn without_loss() {
    compare(NO_LOSS, ours);
}

#[test]
fn with_loss_reno_family() {
    compare(LOSS, |k| ours(k) && !k.starts_with("lx-") && !k.starts_with("vegas"));
}

#[test]
fn with_loss_vegas() {
    compare(LOSS, |k| k.starts_with("vegas"));
}

#[test]
fn with_loss_tcp_linux() {
    compare(LOSS, |k| ours(k) && k.starts_with("lx-"));
}

/// The kinds of ns-2's grid: settings and controller of `newreno`, `newreno-da`, `vegas8:8`, `lx-vegas`, ...
fn kind(name: &str) -> (TcpConfig, TcpController) {
    let (profile, name) = match name.strip_prefix("lx-") {
        Some(rest) => (Profile::Ns2Linux, rest),
        None => (Profile::Ns2, name),
    };
    let (name, delayed) = match name.strip_suffix("-da") {
        Some(rest) => (rest, Some(Span::from_millis(100))),
        None => (name, None),
    };
    let (name, params): (_, &[(&str, f64)]) = match name {
        "vegas8:8" => ("vegas", &[("alpha", 8.0), ("beta", 8.0)]),
        "sack1" => ("sack", &[]),
        other => (other, &[]),
    };
    let scheme = registry::scheme(name).unwrap();
    let config = TcpConfig { delayed_ack: delayed, ..TcpConfig::new(profile, scheme) };
    (config, TcpController::new(scheme, profile, params).unwrap())
}

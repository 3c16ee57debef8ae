//! Runs of scenarios under ten seeds, held against rows of ns-2's results.

use crate::read;
use paceline_sim::{RunOptions, Summary, simulate};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Student's t for 95 % and 99.9 %, and 9 degrees of freedom.
const T: f64 = 2.262;
const T_999: f64 = 4.781;
const SEEDS: u64 = 10;

/// One row of a results file.
pub struct Row<'a> {
    header: Vec<&'a str>,
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    pub fn all(csv: &'a str) -> Vec<Row<'a>> {
        let mut lines = csv.lines();
        let header: Vec<&str> = lines.next().unwrap().split(',').collect();
        lines.map(|line| Row { header: header.clone(), cells: line.split(',').collect() }).collect()
    }

    pub fn text(&self, name: &str) -> &'a str {
        self.header.iter().position(|h| *h == name).map_or("", |i| self.cells[i])
    }

    pub fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }
}

/// A name, the column's name without `_mean`, and the value in a summary.
pub type Measure = (&'static str, &'static str, fn(&Summary) -> f64);

/// How near means must be: within this share of ns-2's, or the joint interval.
pub struct Tolerance {
    /// The share.
    pub share: f64,
    /// The last digit of the files.
    pub digit: f64,
}

/// How many pairs of means were compared, and which miss their 95 % and their 99.9 % interval.
#[derive(Default)]
pub struct Misses {
    pub compared: usize,
    pub at_95: Vec<String>,
    pub at_999: Vec<String>,
}

/// Runs `scenario` of every row under all seeds and holds the means of `measures` against the row's columns.
pub fn compare<'a>(
    rows: &[Row<'a>],
    scenario: impl Fn(&Row<'a>) -> String + Sync,
    measures: &[Measure],
    tolerance: &Tolerance,
) -> Misses {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(row) = rows.get(i) else { break };
            let mut misses = Misses::default();
            let line = check(row, &scenario(row), measures, tolerance, &mut misses);
            done.lock().unwrap().push((i, line, misses));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(i, ..)| *i);
    assert!(done.len() == rows.len() && !rows.is_empty());
    let mut all = Misses::default();
    for (_, line, misses) in done {
        println!("{line}");
        all.compared += misses.compared;
        all.at_95.extend(misses.at_95);
        all.at_999.extend(misses.at_999);
    }
    all
}

fn check(row: &Row, text: &str, measures: &[Measure], tolerance: &Tolerance, misses: &mut Misses) -> String {
    let scenario = read::scenario(text);
    let random = row.number("runs") > 1.0;
    let seeds = if random { SEEDS } else { 1 };
    let runs: Vec<Summary> =
        (1..=seeds).map(|seed| simulate(&scenario, seed, &RunOptions::default()).unwrap().summary).collect();
    let mut line = row.cells[..row.cells.len().min(8)].join(" ");
    for (name, column, value) in measures {
        let n = runs.len() as f64;
        let mean = runs.iter().map(value).sum::<f64>() / n;
        let square = runs.iter().map(|run| (value(run) - mean) * (value(run) - mean)).sum::<f64>();
        let half = if random { T * (square / (n - 1.0) / n).sqrt() } else { 0.0 };
        let (theirs, their_half) = (row.number(&format!("{column}_mean")), row.number(&format!("{column}_ci95")));
        let joint = (half * half + their_half * their_half).sqrt();
        let least = (tolerance.share * theirs).max(tolerance.digit);
        let allowed = least.max(joint);
        misses.compared += 1;
        line += &format!("  {name} {mean:.4} ({theirs:.4} ± {allowed:.4})");
        if (mean - theirs).abs() > allowed {
            line += " MISSES";
            misses.at_95.push(format!("{line} [{name}]"));
        }
        if (mean - theirs).abs() > least.max(joint * T_999 / T) {
            misses.at_999.push(format!("{line} [{name}]"));
        }
    }
    line
}

/// Packets that the queue of the bottleneck's forward direction dropped.
pub fn queue_loss(summary: &Summary) -> f64 {
    let queue = &summary.queues[0];
    queue.drops["overflow"] as f64 + queue.drops["early"] as f64 + queue.drops["forced"] as f64
}

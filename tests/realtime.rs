//! How a Rust test in real time is tried; the same as `realtime.py` and `conftest.py`. A test file takes it in with
//! `#[path = "../../../tests/realtime.rs"] mod realtime;`.

use paceline_live::host::{HostReport, HostState};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Above this share of stolen time a test that panics is disturbed: what it asserts does not fail for a hundredth of the time.
const MUCH_STEAL: f64 = 0.1;

/// Above this share of the processors' time for other programs than the test's own any test is.
const MUCH_OTHERS: f64 = 0.5;

/// Runs `test` up to three times: others on the same processors disturb it. It fails if it fails each time, by a panic as by an
/// error, and the host was its own at least once, or if it panicked with the same words each time; else it says nothing.
#[allow(dead_code, reason = "not every file of tests has use of it")]
pub fn conclusive(test: impl Fn() -> Result<(), String>) {
    conclusive_on(Watch::begin, test);
}

/// The same on processors that `watch` sees.
fn conclusive_on<T: Fn() -> Taken>(watch: impl Fn() -> T, test: impl Fn() -> Result<(), String>) {
    let (mut failure, mut panics) = (None, Vec::new());
    for _ in 0..3 {
        let taken = watch();
        match catch_unwind(AssertUnwindSafe(&test)) {
            Ok(Ok(())) => return,
            Ok(Err(why)) => failure = failed(taken(), why, HostReport::MAX_STEAL).or(failure),
            Err(payload) => {
                let words = payload.downcast_ref::<String>().cloned();
                let words = words.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                panics.push(words.unwrap_or_default());
                failure = failed(taken(), panics[panics.len() - 1].clone(), MUCH_STEAL).or(failure);
            }
        }
    }
    if panics.len() == 3 && panics.windows(2).all(|two| two[0] == two[1]) {
        failure = panics.pop();
    }
    if let Some(why) = failure {
        panic!("{why}");
    }
    eprintln!("inconclusive: others had too much of the processors' time, three times");
}

/// The same for a test that asserts all that it expects.
#[allow(dead_code, reason = "not every file of tests has use of it")]
pub fn tried(test: impl Fn()) {
    conclusive(|| {
        test();
        Ok(())
    });
}

/// Why a try failed, if others had no more of the processors' time than they may: a hypervisor no more than `most_steal`.
fn failed(taken: Taken, why: String, most_steal: f64) -> Option<String> {
    eprintln!("again: {why} ({taken})");
    (taken.steal <= most_steal && taken.others <= MUCH_OTHERS).then_some(why)
}

/// Shares of all processors' time.
#[derive(Clone, Copy)]
struct Taken {
    steal: f64,
    others: f64,
}

impl fmt::Display for Taken {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "steal {:.3}, other programs {:.3}", self.steal, self.others)
    }
}

/// The processors from a moment on.
struct Watch;

impl Watch {
    /// What tells how much others have had of them since.
    fn begin() -> impl Fn() -> Taken {
        let (before, begun) = (HostState::now().unwrap(), Ticks::now(Path::new("/proc"), std::process::id()));
        move || Taken {
            steal: HostReport::since(before.clone()).unwrap().steal_share,
            others: Ticks::now(Path::new("/proc"), std::process::id()).others_since(begun),
        }
    }
}

/// Of all processors, of the programs on them, and of one process with all below it and those that have ended, since boot.
#[derive(Clone, Copy)]
struct Ticks {
    all: u64,
    busy: u64,
    own: u64,
}

impl Ticks {
    /// Reads proc_stat(5) and proc_pid_stat(5).
    fn now(proc: &Path, process: u32) -> Ticks {
        let stat = std::fs::read_to_string(proc.join("stat")).unwrap();
        let words = stat.lines().next().unwrap_or("").split_ascii_whitespace().skip(1).take(8);
        let cpu: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
        let mut had = BTreeMap::new();
        for entry in std::fs::read_dir(proc).unwrap().flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            let text = number.and_then(|_| std::fs::read_to_string(entry.path().join("stat")).ok());
            let (Some(number), Some(text)) = (number, text) else { continue };
            // a command's name may have any character
            let words: Vec<_> = text.rsplit(')').next().unwrap_or("").split_ascii_whitespace().collect();
            let ticks = words[11..15].iter().map(|word| word.parse::<u64>().unwrap()).sum::<u64>();
            had.insert(number, (words[1].parse::<u32>().unwrap(), ticks));
        }
        let is_own = |mut at: u32| {
            while at != process {
                match had.get(&at) {
                    Some(&(parent, _)) => at = parent,
                    None => return false,
                }
            }
            true
        };
        let own = had.iter().filter(|&(&number, _)| is_own(number)).map(|(_, &(_, ticks))| ticks).sum();
        Ticks { all: cpu.iter().sum(), busy: cpu.iter().sum::<u64>() - cpu[3] - cpu[4] - cpu[7], own }
    }

    /// The kernel counts busy time by the tick and a process's by the nanosecond: what is own may be more than all.
    fn others_since(self, before: Ticks) -> f64 {
        let others = (self.busy - before.busy).saturating_sub(self.own.saturating_sub(before.own));
        others as f64 / (self.all - before.all).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// How often `test` is run on processors of which others have so much, and whether it fails; it is told which run it is.
    fn ran(taken: Taken, test: impl Fn(u32) -> Result<(), String>) -> (u32, bool) {
        let runs = Cell::new(0);
        let all = AssertUnwindSafe(|| {
            let run = || {
                runs.set(runs.get() + 1);
                test(runs.get())
            };
            conclusive_on(|| move || taken, run);
        });
        let failed = catch_unwind(all).is_err();
        (runs.get(), failed)
    }

    #[test]
    fn a_failure_counts_where_the_host_was_ones_own() {
        let calm = Taken { steal: 0.0, others: 0.02 };
        let shared = Taken { others: 0.4, ..calm };
        let loaded = Taken { others: 0.8, ..calm };
        let stolen = Taken { steal: 0.2, ..calm };
        for (taken, excused) in [(calm, false), (shared, false), (loaded, true), (stolen, true)] {
            assert_eq!(ran(taken, |_| Ok(())), (1, false));
            assert_eq!(ran(taken, |run| if run > 1 { Ok(()) } else { panic!("once") }), (2, false));
            assert_eq!(ran(taken, |run| Err(run.to_string())), (3, !excused), "{taken}");
            assert_eq!(ran(taken, |run| panic!("{run} of them")), (3, !excused), "{taken}");
            assert_eq!(
                ran(taken, |_| panic!("always this")),
                (3, true),
                "what is so each time is no matter of time: {taken}"
            );
        }
    }

    #[test]
    fn others_are_who_is_no_process_of_the_test() {
        let begun = Ticks { all: 10_000, busy: 4000, own: 70 };
        let later = |busy: u64, own: u64| Ticks { all: 11_000, busy: 4000 + busy, own: 70 + own }.others_since(begun);
        assert_eq!([later(6, 0), later(200, 200), later(1000, 1000)], [0.006, 0.0, 0.0]);
        assert_eq!([later(1000, 150), later(290, 300)], [0.85, 0.0]);
        let before = Ticks::now(Path::new("/proc"), std::process::id());
        let code = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", code]).status().unwrap().success());
        let after = Ticks::now(Path::new("/proc"), std::process::id());
        assert!(after.own > before.own, "a child that has ended is the test's own");
    }
}

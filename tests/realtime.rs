//! How a Rust test in real time is tried; the same as `realtime.py` and `conftest.py`. A test file takes it in with
//! `#[path = "../../../tests/realtime.rs"] mod realtime;`.

use paceline_live::host::{HostReport, HostState};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Above this a test that panics is disturbed: what it asserts does not fail for a hundredth of the time.
const MUCH_STEAL: f64 = 0.1;

/// Runs `test` up to three times: other tests on the same processors disturb it too, which stolen time does not show. It fails
/// if it fails each time, by a panic as by an error, and the host was its own at least once, or if it panicked with the same
/// words each time; else it says nothing.
#[allow(dead_code, reason = "not every file of tests has use of it")]
pub fn conclusive(test: impl Fn() -> Result<(), String>) {
    let (mut failure, mut panics) = (None, Vec::new());
    for _ in 0..3 {
        let before = HostState::now().unwrap();
        match catch_unwind(AssertUnwindSafe(&test)) {
            Ok(Ok(())) => return,
            Ok(Err(why)) => failure = failed(before, why, HostReport::MOST_STEAL).or(failure),
            Err(payload) => {
                let words = payload.downcast_ref::<String>().cloned();
                let words = words.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                panics.push(words.unwrap_or_default());
                failure = failed(before, panics[panics.len() - 1].clone(), MUCH_STEAL).or(failure);
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

/// Why a try failed, if others had no more of the processors' time than `most`.
fn failed(before: HostState, why: String, most: f64) -> Option<String> {
    let report = HostReport::since(before).unwrap();
    eprintln!("again: {why} (steal {:.3}, load {:.1})", report.steal_share, report.after.load_1min);
    (report.steal_share <= most).then_some(why)
}

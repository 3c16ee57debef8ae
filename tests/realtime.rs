//! How a Rust test in real time is tried; the same as `realtime.py` and `conftest.py`. A test file takes it in with
//! `#[path = "../../../tests/realtime.rs"] mod realtime;`.

use paceline_live::host::{HostReport, HostState};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `test` up to three times: other tests on the same processors disturb it too, which stolen time does not show. It fails
/// if it fails each time, by a panic as by an error, and the host was its own at least once; else it says nothing.
#[allow(dead_code, reason = "not every file of tests has use of it")]
pub fn conclusive(test: impl Fn() -> Result<(), String>) {
    let mut failure = None;
    for _ in 0..3 {
        let before = HostState::now().unwrap();
        match catch_unwind(AssertUnwindSafe(&test)) {
            Ok(Ok(())) => return,
            Ok(Err(why)) => failure = failed(before, why).or(failure),
            // the panic has been printed
            Err(_) => failure = failed(before, "it panicked (above)".to_owned()).or(failure),
        }
    }
    if let Some(why) = failure {
        panic!("{why}");
    }
    eprintln!("inconclusive: the host stole more than 1 % of the processors' time, three times");
}

/// The same for a test that asserts all that it expects.
#[allow(dead_code, reason = "not every file of tests has use of it")]
pub fn tried(test: impl Fn()) {
    conclusive(|| {
        test();
        Ok(())
    });
}

/// Why a try failed, if it was the test's own doing.
fn failed(before: HostState, why: String) -> Option<String> {
    let report = HostReport::since(before).unwrap();
    eprintln!("again: {why} (steal {:.3}, load {:.1})", report.steal_share, report.after.load_1min);
    (!report.is_disturbed()).then_some(why)
}

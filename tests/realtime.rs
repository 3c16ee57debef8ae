//! How a Rust test in real time is tried; the same as `realtime.py`. A test file takes it in with
//! `#[path = "../../../tests/realtime.rs"] mod realtime;`.

use paceline_live::host::{HostReport, HostState};

/// Runs `test` up to three times: other tests on the same processors disturb it too, which stolen time does not show. It fails
/// if it fails each time and the host was its own at least once; else it says nothing.
pub fn conclusive(test: impl Fn() -> Result<(), String>) {
    let mut failure = None;
    for _ in 0..3 {
        let before = HostState::now().unwrap();
        match test() {
            Ok(()) => return,
            Err(why) => {
                eprintln!("again: {why}");
                if !HostReport::since(before).unwrap().is_disturbed() {
                    failure = Some(why);
                }
            }
        }
    }
    if let Some(why) = failure {
        panic!("{why}");
    }
    eprintln!("inconclusive: the host stole more than 1 % of the processors' time, three times");
}

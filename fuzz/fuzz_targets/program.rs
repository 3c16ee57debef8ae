#![no_main]

/// How a target ends that cannot run here, as `run` knows it.
const SKIPPED: i32 = 4;

fn ready() {
    if let Err(why) = paceline_fuzzed::program_ready() {
        eprintln!("skipped: {why}");
        std::process::exit(SKIPPED);
    }
}

libfuzzer_sys::fuzz_target!(init: ready(), |bytes: &[u8]| paceline_fuzzed::program(bytes));

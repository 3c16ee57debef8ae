#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paceline_fuzzed::command_line(bytes));

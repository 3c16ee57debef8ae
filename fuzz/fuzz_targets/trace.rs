//! Any text gets an answer from the trace readers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline_path::trace::{AtEnd, parse_mahimahi, parse_seconds_mbit};

fuzz_target!(|text: &str| {
    for error in [
        parse_mahimahi(text).err(),
        parse_seconds_mbit(text, AtEnd::Repeat).err(),
        parse_seconds_mbit(text, AtEnd::Hold).err(),
    ]
    .into_iter()
    .flatten()
    {
        assert!(!error.to_string().is_empty());
    }
});

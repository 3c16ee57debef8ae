//! Transfers that have less to send for a time.

use super::read;
use paceline_sim::{RunOptions, expand, run};

/// Goodput from `from` to `to` seconds, in Mbit/s, of a transfer over 10 Mbit/s that pauses from 5 s to 10 s, and has 1 Mbit/s to send
/// from 12 s to 14 s.
fn goodput(cc: &str, from: f64, to: f64) -> f64 {
    let text = format!(
        "duration = \"{to} s\"\nwarmup = \"{from} s\"\n[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
         queue = {{ limit = \"50 ms\" }}\n[flow.f]\ncc = \"{cc}\"\n[flow.f.app]\nkind = \"ftp\"\n\
         limited = [{{ from = \"5 s\", to = \"10 s\" }}, {{ from = \"12 s\", to = \"14 s\", rate = \"1 Mbit/s\" }}]\n"
    );
    let scenario = read::scenario(&text);
    let output = run(&expand(&scenario, 1).unwrap(), &RunOptions::default()).unwrap();
    output.summary.flows[0].goodput_bps / 1e6
}

#[test]
fn a_transfer_pauses_and_goes_on() {
    for cc in ["newreno", "cubic", "bbr3"] {
        let full = goodput(cc, 2.0, 5.0);
        assert!(full > 9.0, "{cc}: {full}");
        // what was in flight as it paused has arrived by then
        assert!(goodput(cc, 5.5, 10.0) == 0.0, "{cc}");
        let limited = goodput(cc, 12.5, 13.9);
        assert!((limited - 1.0).abs() < 0.02, "{cc}: {limited}");
        let again = goodput(cc, 16.0, 20.0);
        assert!(again > 9.0, "{cc}: {again}");
    }
}

//! DCTCP beside the fluid model of its authors: M. Alizadeh and others, *Data Center TCP (DCTCP)*, SIGCOMM 2010, section 3.3.
//!
//! N synchronised flows share a link of C packets a second whose queue marks what finds more than K packets waiting. The queue
//! goes up to K + N packets, equation (10), and falls from there by A = sqrt(2 N (C RTT + K)) / 2, equation (8).

use super::read;
use paceline_sim::{Recording, RunOptions, expand, run};
use paceline_units::Span;

/// Least and greatest number of packets that wait, looked at each millisecond from 10 to 30 s, and the goodput of all in bit/s.
fn outcome(flows: u32, rtt_ms: u32, marked_above: u32) -> (f64, f64, f64) {
    // a packet takes 120 us; CoDel's own law never wakes
    let text = format!(
        "duration = \"30 s\"\nwarmup = \"5 s\"\nhost_delay = \"0 s\"\n[link.bottleneck]\nrate = \"100 Mbit/s\"\ndelay = \"{} us\"\n\
         queue = {{ kind = \"codel\", target = \"200 ms\", interval = \"1 s\", mark_above = \"{} us\", limit = \"2000 packets\" }}\n\
         [flow.f]\ncc = \"dctcp\"\ncount = {flows}\n",
        500 * rtt_ms,
        120 * marked_above
    );
    let scenario = read::scenario(&text);
    let recording = Recording::of(&["queue"], Span::from_millis(1)).unwrap();
    let output = run(&expand(&scenario, 1).unwrap(), &RunOptions { recording, ..RunOptions::default() }).unwrap();
    let forward = output.series.iter().find(|s| s.labels.iter().any(|(_, label)| label == "forward")).unwrap();
    let column = |name: &str| &forward.columns.iter().find(|(column, _)| column == name).unwrap().1;
    let steady = column("time_s").iter().zip(column("packets")).filter(|(time, _)| **time > 10.0).map(|(_, &q)| q);
    let (least, most) = steady.fold((f64::MAX, 0.0f64), |(least, most), q| (least.min(q), most.max(q)));
    (least, most, output.summary.flows.iter().map(|flow| flow.goodput_bps).sum())
}

#[test]
fn the_queue_is_that_of_the_fluid_model() {
    for (rtt_ms, k) in [(10, 40), (20, 80)] {
        for n in [1, 2, 4] {
            let (least, most, goodput) = outcome(n, rtt_ms, k);
            let path = 1e8 / 12_000.0 * f64::from(rtt_ms) * 1e-3 + f64::from(k);
            let (flows, top) = (f64::from(n), f64::from(k + n));
            let bottom = top - (2.0 * flows * path).sqrt() / 2.0;
            // an acknowledgement of two segments lets three out at once, where the model lets each one out by itself
            assert!(
                (top - 2.0..=top + flows).contains(&most),
                "{n} flows, {rtt_ms} ms: up to {most} packets, {top} by the model"
            );
            assert!(
                (least - bottom).abs() <= 4.0,
                "{n} flows, {rtt_ms} ms: down to {least} packets, {bottom} by the model"
            );
            assert!(goodput > 0.97e8, "{goodput}");
        }
    }
}

//! What bounds a flow beside its congestion window: the kernel's socket buffers under `linux`, and a timeout shorter than the
//! round trip under `rfc`.
//!
//! The kernel's numbers: Linux 6.18 at both ends, `reno`, 100 Mbit/s and a round trip of 1 s through `paceline path`, a queue
//! without a limit, `ss -tim` every half second.

use super::read;
use paceline_sim::{RunOptions, Summary, simulate};

fn run(head: &str, delay: &str, flow: &str) -> Summary {
    let text = format!(
        "{head}\nhost_delay = \"0 s\"\n[link.bottleneck]\nrate = \"100 Mbit/s\"\ndelay = \"{delay}\"\n\
         queue = {{ kind = \"unlimited\" }}\n[access]\nrate = \"1 Gbit/s\"\n[flow.a]\n{flow}\n"
    );
    let scenario = read::scenario(&text);
    simulate(&scenario, 1, &RunOptions::default()).unwrap().summary
}

/// Segments a round trip of 1 s, in the long run.
fn outstanding(flow: &str) -> f64 {
    let text = format!("cc = \"reno\"\nprofile = \"linux\"\n{flow}");
    let summary = run("duration = \"60 s\"\nwarmup = \"30 s\"", "500 ms", &text);
    let summary = &summary.flows[0];
    assert_eq!((summary.timeouts, summary.packets_retransmitted), (0, 0));
    summary.goodput_bps / 8.0 / 1448.0
}

#[test]
fn two_kernels_keep_what_the_send_buffer_holds() {
    let kernel = 2716.0; // unacked; sndbuf_limited grows
    let ours = outstanding("");
    assert!((ours / kernel - 1.0).abs() < 0.01, "{ours}");
    // 4 MiB bind, not the receiver's 32
    let ours = outstanding("receive_buffer = \"unlimited\"");
    assert!((ours / kernel - 1.0).abs() < 0.01, "{ours}");
}

#[test]
fn a_receive_buffer_bounds_the_window_to_five_eighths() {
    for (memory, kernel) in [("6 MiB", 2715.0), ("1 MiB", 452.0)] {
        let ours = outstanding(&format!("receive_buffer = \"{memory}\"\nsend_buffer = \"unlimited\""));
        assert!((ours / kernel - 1.0).abs() < 0.01, "{memory}: {ours}");
    }
    // a receiver that says less is obeyed
    let ours = outstanding("receive_window = 100");
    assert!((ours / 100.0 - 1.0).abs() < 0.01, "{ours}");
    // 100 Mbit/s are 8333 packets of 1500 B a second
    let ours = outstanding("receive_buffer = \"unlimited\"\nsend_buffer = \"unlimited\"");
    assert!((ours / 8333.0 - 1.0).abs() < 0.01, "{ours}");
}

/// The kernel's sender had 10, 20, 40, ..., 2560 segments out in the first nine round trips, and never waited for the window.
#[test]
fn right_sizing_keeps_ahead_of_slow_start() {
    for rounds in [3, 6, 9] {
        let until = |more: &str| {
            let flow = format!("cc = \"reno\"\nprofile = \"linux\"\nsend_buffer = \"unlimited\"\n{more}");
            run(&format!("duration = \"{rounds}.9 s\""), "500 ms", &flow).flows[0].packets_sent
        };
        let kernel = f64::from((10 << rounds) - 10);
        let ours = until("receive_buffer = \"6 MiB\"");
        assert_eq!(ours, until("receive_buffer = \"unlimited\""), "after {rounds} s");
        // a SYN, and a probe of the tail
        assert!((kernel..=1.02 * kernel + 2.0).contains(&(ours as f64)), "after {rounds} s: {ours} of {kernel}");
    }
}

/// RFC 6298 (2.5) allows a bound of the timeout from 60 s on. Below the round trip it would send each segment twice, for ever,
/// as none is timed that was sent twice.
#[test]
fn a_round_trip_beyond_the_timeout_s_bound_is_waited_for() {
    for cc in ["newreno", "sack"] {
        // what the first timeouts have cost comes back by a segment a round trip
        let time = "duration = \"9000 s\"\nwarmup = \"6000 s\"";
        let summary = run(time, "45 s", &format!("cc = \"{cc}\"\nreceive_window = 50"));
        let summary = &summary.flows[0];
        assert_eq!((summary.timeouts, summary.packets_retransmitted), (0, 0), "{cc}");
        let window = summary.goodput_bps * 90.0 / 8.0 / 1460.0;
        assert!((45.0..=50.5).contains(&window), "{cc}: {window}");
    }
}

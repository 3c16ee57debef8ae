//! A flow that starts after the run begins, or ends before it, has in both worlds the same measures over the same time.

use super::emulate;
use super::measures::Rows;

const LINK: &str = "duration = \"12 s\"\nwarmup = \"1 s\"\nprofile = \"linux\"\n[link.bottleneck]\nrate = \"2 Mbit/s\"\n\
    delay = \"25 ms\"\nqueue = { limit = \"100 ms\" }\n";
/// Measures that neither random draws nor the receiver's clock affect, and their tolerance.
const MEASURES: [(&str, f64); 11] = [
    ("start_s", 0.0),
    ("goodput_bps", 0.02),
    ("throughput_bps", 0.02),
    ("send_rate_bps", 0.02),
    ("bytes_delivered", 0.02),
    ("packets_sent", 0.02),
    ("packets_delivered", 0.02),
    ("rtt_mean_s", 0.03),
    ("cwnd_mean_packets", 0.05),
    ("interarrival_mean_s", 0.02),
    ("interarrival_max_s", 0.05),
];

#[test]
fn all_measures_of_a_part_of_the_run() {
    let voice = "cc = \"udp\"\napp = { kind = \"voice\", codec = \"amr\", packets = 150, talk = \"20 s\" }\n";
    let film = "cc = \"newreno\"\napp = { kind = \"stream\", media_rate = \"800 kbit/s\", length = \"3 s\" }\n";
    // the flow's rate within its own time (bit/s), far from its rate over the run's time
    for (flow, times, rate) in [
        ("cc = \"newreno\"\n", "start = \"3 s\"\nstop = \"7 s\"\n", 1.3e6..2e6),
        (
            "cc = \"udp\"\napp = { kind = \"cbr\", rate = \"1 Mbit/s\" }\n",
            "start = \"3 s\"\nstop = \"7 s\"\n",
            0.9e6..1.1e6,
        ),
        ("cc = \"tfrc\"\n", "start = \"2 s\"\nstop = \"8 s\"\n", 1e6..1.9e6),
        (film, "start = \"2 s\"\nstop = \"10 s\"\n", 1.5e6..2e6),
        (voice, "start = \"2 s\"\nstop = \"10 s\"\n", 13e3..24e3),
    ] {
        let text = format!("{LINK}[flow.a]\n{flow}{times}");
        let (simulated, emulated) = (Rows::simulated(&text, 1), Rows::emulated(&emulate(&text, 1)));
        assert!(rate.contains(&simulated.of("a", "goodput_bps")), "{text}: {}", simulated.of("a", "goodput_bps"));
        // slow start ends with a varying number of losses within two seconds
        let leeway = if flow == film { 6.0 } else { 1.0 };
        let wrong: Vec<_> = MEASURES
            .iter()
            .map(|(name, share)| (name, share * leeway, simulated.of("a", name), emulated.of("a", name)))
            // real packets of 31 bytes have more header bytes
            .filter(|(name, ..)| flow != voice || !["throughput_bps", "send_rate_bps"].contains(&**name))
            // a real flow without feedback has the round trip of its first message
            .filter(|(_, share, one, other)| {
                !one.is_nan() && (other.is_nan() || (one - other).abs() > share * one.abs().max(other.abs()))
            })
            .collect();
        assert!(wrong.is_empty(), "{text}: simulated, emulated: {wrong:?}");
    }
}

//! TFRC alone against ns-2.35: 10 Mbit/s, 50 packets, 120 s without the first 20 s; ten seeds where packets are lost at
//! random, on both sides. Bound: the larger of 3 % and the joint 95 % interval.

use crate::tfrc_path::{Outcome, Path, flow, run};
use paceline_control::Profile;

/// RTT in ms, loss; ns-2's goodput in Mbit/s with its 95 % half-width, loss rate, mean queue in packets.
type Row = (u64, f64, f64, f64, f64, f64);

/// `kind=tfrc` of ns-2.35 (2.35+dfsg-5), means of ten seeds.
const NS2: [Row; 9] = [
    (10, 0.0, 10.0, 0.0, 0.000424, 44.799),
    (50, 0.0, 10.0, 0.0, 0.000128, 40.573),
    (100, 0.0, 9.99448, 0.0, 0.000064, 30.4521),
    (200, 0.0, 8.9592, 0.0, 0.000018, 6.4628),
    (50, 0.001, 6.2601, 0.3013, 0.0009957, 0.02879),
    (50, 0.005, 2.6845, 0.08901, 0.0049869, 0.0),
    (50, 0.01, 1.80113, 0.03627, 0.0099855, 0.0),
    (50, 0.02, 1.15371, 0.03017, 0.0199507, 0.0),
    (50, 0.05, 0.528728, 0.02161, 0.0505347, 0.0),
];

/// Mean and 95 % half-width of ten values.
fn interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    (mean, 2.262 * (variance / n).sqrt())
}

#[test]
fn agrees_with_ns2() {
    for (rtt, loss, goodput, half_width, loss_rate, queue) in NS2 {
        let (config, controller) = flow("tfrc", Profile::Ns2, &[]);
        let at = |seed| run(&config, controller.clone(), &Path::grid(rtt, loss, seed));
        if loss == 0.0 {
            // nothing is drawn: the same packets, one by one, but for the clock's nanoseconds
            let o = at(1);
            assert!((o.goodput * 8e-6 / goodput - 1.0).abs() < 0.001, "{rtt} ms: {o:?}");
            assert!((o.loss_rate - loss_rate).abs() < 1e-5, "{rtt} ms: {o:?}");
            assert!((o.mean_queue / queue - 1.0).abs() < 0.005, "{rtt} ms: {o:?}");
            continue;
        }
        let all: Vec<Outcome> = (1..=10).map(at).collect();
        let of = |f: &dyn Fn(&Outcome) -> f64| interval(&all.iter().map(f).collect::<Vec<_>>());
        let (ours, our_half_width) = of(&|o| o.goodput * 8e-6);
        let bound = (0.03 * goodput).max(our_half_width.hypot(half_width));
        assert!((ours - goodput).abs() <= bound, "{rtt} ms, {loss}: {ours} +- {our_half_width}, ns-2 {goodput}");
        assert!((of(&|o| o.loss_rate).0 / loss_rate - 1.0).abs() < 0.1, "{rtt} ms, {loss}");
    }
}

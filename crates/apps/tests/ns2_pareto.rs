//! Pareto on/off traffic beside ns-2's: ten seeds each, every measure within the larger of the joint
//! 95 % interval and 3 %.

use paceline_apps::onoff::{OnOff, OnOffModel};
use paceline_apps::{Action, Period};
use paceline_random::Stream;
use paceline_units::{Rate, Size, Span, Time};

const SECONDS: f64 = 20_000.0;
const INTERVAL: f64 = 512.0 * 8.0 / 300e3;

/// The measures of the columns in ns2/pareto.csv.
fn measure(seed: u64) -> Vec<f64> {
    let model = OnOffModel {
        rate: Rate(300_000),
        burst: Span::from_millis(100),
        idle: Span::from_millis(100),
        shape: 1.5,
        packet: Size(512),
    };
    let period = Period { start: Time::ZERO, stop: Time::from_secs_f64(SECONDS) };
    let mut source = OnOff::new(model, Stream::new(seed, "pareto"), period);
    let (mut packets, mut bursts, mut last, mut length) = (0.0, 0.0, None, 0);
    let mut of = [(3, 0.0), (6, 0.0), (10, 0.0), (30, 0.0), (100, 0.0)];
    let mut idle = [(0.05, 0.0), (0.1, 0.0), (0.3, 0.0), (1.0, 0.0)];
    while let Some(now) = source.next_wake() {
        let at = now.as_secs_f64();
        if matches!(source.next_action(now), Action::Stop) {
            break;
        }
        packets += 1.0;
        if let Some(gap) = last.map(|last| at - last).filter(|gap| *gap > INTERVAL * 1.0001) {
            bursts += 1.0;
            of.iter_mut().filter(|(min_length, _)| length >= *min_length).for_each(|(_, n)| *n += 1.0);
            idle.iter_mut().filter(|(min_length, _)| gap - INTERVAL > *min_length).for_each(|(_, n)| *n += 1.0);
            length = 0;
        }
        length += 1;
        last = Some(at);
    }
    let shares = of.iter().map(|(_, n)| n / bursts).chain(idle.iter().map(|(_, n)| n / bursts));
    [packets, bursts].into_iter().chain(shares).collect()
}

/// Mean and half width of its 95 % interval, of ten values.
fn interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    (mean, 2.262 * (variance / n).sqrt())
}

#[test]
fn as_in_ns2() {
    let file = include_str!("ns2/pareto.csv");
    let mut lines = file.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let theirs: Vec<Vec<f64>> = lines.map(|row| row.split(',').map(|v| v.parse().unwrap()).collect()).collect();
    let ours: Vec<Vec<f64>> = (1..=10).map(measure).collect();
    assert_eq!(theirs.len(), 10);
    for (column, name) in names.iter().enumerate() {
        let of = |rows: &[Vec<f64>]| interval(&rows.iter().map(|row| row[column]).collect::<Vec<_>>());
        let ((ours, a), (theirs, b)) = (of(&ours), of(&theirs));
        let bound = (a + b).max(0.03 * theirs);
        assert!((ours - theirs).abs() <= bound, "{name}: {ours} +- {a}, ns-2 {theirs} +- {b}");
    }
}

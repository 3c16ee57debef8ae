//! RFC 5348 sections 5.2 to 5.5, number by number.

use super::*;
use proptest::prelude::*;

const PLAIN: IntervalWeights = IntervalWeights { threshold: 1.0 };
const RFC: IntervalWeights = IntervalWeights { threshold: 0.25 };

fn closed(lengths: &[f64]) -> Vec<(f64, f64)> {
    lengths.iter().map(|&length| (length, 1.0)).collect()
}

fn lost(start: u32, end: u32, at_ms: u64, spacing_ms: f64) -> Indication {
    Indication { start, end, at: Time(at_ms * 1_000_000), spacing: spacing_ms * 1e6, marked: false }
}

const RTT: Span = Span::from_millis(100);

#[test]
fn section_5_4_weights() {
    // eight equal intervals
    assert!((PLAIN.loss_event_rate(0.0, &closed(&[50.0; 8])) - 0.02).abs() < 1e-12);
    // I_tot1 / W_tot by hand: (10+20+30+40) + 0.8*50 + 0.6*60 + 0.4*70 + 0.2*80 = 220, over 6
    let lengths = closed(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]);
    assert!((PLAIN.loss_event_rate(0.0, &lengths) - 6.0 / 220.0).abs() < 1e-12);
    // I_tot0 with I_0 = 100: (100+10+20+30) + 0.8*40 + 0.6*50 + 0.4*60 + 0.2*70 = 260: the larger counts
    assert!((PLAIN.loss_event_rate(100.0, &lengths) - 6.0 / 260.0).abs() < 1e-12);
    // fewer than eight: weights over those that there are
    assert!((PLAIN.loss_event_rate(0.0, &closed(&[40.0])) - 1.0 / 40.0).abs() < 1e-12);
    assert!((PLAIN.loss_event_rate(60.0, &closed(&[40.0])) - 1.0 / 50.0).abs() < 1e-12);
    assert_eq!(PLAIN.loss_event_rate(1000.0, &[]), 0.0);
}

#[test]
fn section_5_5_discounting() {
    let lengths = closed(&[50.0; 8]);
    assert_eq!(RFC.discount(100.0, &lengths), 1.0); // not more than twice the mean
    assert!((RFC.discount(200.0, &lengths) - 0.5).abs() < 1e-12);
    assert_eq!(RFC.discount(10_000.0, &lengths), 0.25);
    assert_eq!(IntervalWeights { threshold: 0.5 }.discount(10_000.0, &lengths), 0.5);
    // I_0 counts in full, the others half: (200 + 0.5 * 50 * 5) / (1 + 0.5 * 5)
    let p = RFC.loss_event_rate(200.0, &lengths);
    assert!((p - 3.5 / 325.0).abs() < 1e-12, "{p}");
    // after the event the discount stays with the older intervals, and not with the one that caused it
    let mut history = LossHistory::new(RFC);
    for i in 0..8 {
        history.add(lost(50 + 50 * i, 51 + 50 * i, 1000 * u64::from(i), 0.0), RTT, 50.0);
    }
    history.add(lost(600, 601, 100_000, 0.0), RTT, 0.0);
    let discounts: Vec<f64> = history.closed.iter().map(|c| c.1).collect();
    assert_eq!(discounts, [1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]);
    assert_eq!(history.closed[0].0, 200.0);
}

#[test]
fn section_5_2_a_round_trip_of_losses_is_one_event() {
    let mut history = LossHistory::new(RFC);
    assert!(history.add(lost(100, 101, 1000, 0.0), RTT, 77.0));
    assert_eq!(history.closed, [(77.0, 1.0)]);
    assert!(!history.add(lost(105, 106, 1050, 0.0), RTT, 0.0));
    assert!(!history.add(lost(110, 111, 1100, 0.0), RTT, 0.0), "T_old + R is not yet a new one");
    assert!(history.add(lost(111, 112, 1101, 0.0), RTT, 0.0));
    // section 5.3: from the first loss of the one to the first loss of the other
    assert_eq!(history.closed[0].0, 11.0);
    // a gap of 50 packets at 10 ms: an event each 11 packets, the first later than a round trip
    let mut history = LossHistory::new(RFC);
    history.add(lost(1000, 1050, 2000, 10.0), RTT, 30.0);
    let firsts: Vec<u32> = history.events.iter().map(|e| e.first).collect();
    assert_eq!(firsts, [1044, 1033, 1022, 1011, 1000]);
    assert!((history.loss_event_rate(1050) - 5.0 / (11.0 * 4.0 + 30.0 * 0.8) * 0.96).abs() < 1e-12);
}

#[test]
fn a_gap_without_end_takes_no_time() {
    let mut history = LossHistory::new(RFC);
    history.add(lost(1, u32::MAX, 0, 1000.0), Span(1), 30.0);
    assert_eq!(history.closed.len(), 8);
    assert_eq!(history.closed[0].0, 1.0);
}

#[test]
fn section_5_1_late_packets_fill_holes() {
    let fresh = || {
        let mut history = LossHistory::new(PLAIN);
        history.add(lost(100, 102, 1000, 1.0), RTT, 40.0);
        history.add(lost(150, 151, 2000, 1.0), RTT, 0.0);
        history.add(lost(155, 156, 2010, 1.0), RTT, 0.0);
        history.add(lost(200, 201, 3000, 1.0), RTT, 0.0);
        history
    };
    let lengths = |history: &LossHistory| history.closed.iter().map(|c| c.0).collect::<Vec<_>>();
    assert_eq!(lengths(&fresh()), [50.0, 50.0, 40.0]);
    // the event begins with its next loss
    let mut history = fresh();
    assert!(history.fill(150));
    assert_eq!(lengths(&history), [45.0, 55.0, 40.0]);
    assert!(!history.fill(150), "it is here already");
    // with its last loss the event goes
    assert!(history.fill(155));
    assert_eq!(lengths(&history), [100.0, 40.0]);
    // the made-up interval stays with the first event that there is
    assert!(history.fill(100) && history.fill(101));
    assert_eq!(lengths(&history), [40.0]);
    assert!(history.fill(200));
    assert!(history.is_empty());
    assert_eq!(history.loss_event_rate(1000), 0.0);
    // what was marked stays an event
    let mut history = LossHistory::new(PLAIN);
    history.add(Indication { marked: true, ..lost(100, 101, 1000, 0.0) }, RTT, 40.0);
    assert!(!history.fill(100) && !history.is_empty());
}

proptest! {
    /// Discounting off: a loss event that is appended never lowers p, shortening a closed interval never lowers it.
    #[test]
    fn losses_never_lower_p(
        lengths in proptest::collection::vec(1.0..1e5f64, 1..=8), open in 1.0..1e5f64, which in any::<usize>(), by in 0.0..1.0f64,
    ) {
        let before = PLAIN.loss_event_rate(open, &closed(&lengths));
        let mut after = lengths.clone();
        after.insert(0, open);
        after.truncate(8);
        let p = PLAIN.loss_event_rate(1.0, &closed(&after));
        prop_assert!(p >= before * (1.0 - 1e-12), "appended: {before} {p}");
        let mut shorter = lengths.clone();
        let i = which % shorter.len();
        shorter[i] = (shorter[i] * by).max(1.0);
        let p = PLAIN.loss_event_rate(open, &closed(&shorter));
        prop_assert!(p >= before * (1.0 - 1e-12), "shortened: {before} {p}");
    }

    /// Packets arriving without loss never raise p.
    #[test]
    fn no_loss_never_raises_p(
        lengths in proptest::collection::vec(1.0..1e4f64, 1..=8), open in 1.0..1e5f64, more in 0.0..1e5f64,
        threshold in prop_oneof![Just(0.25), Just(0.5), Just(1.0)],
    ) {
        let weights = IntervalWeights { threshold };
        let closed = closed(&lengths);
        let (before, after) = (weights.loss_event_rate(open, &closed), weights.loss_event_rate(open + more, &closed));
        prop_assert!(after <= before * (1.0 + 1e-12), "{before} {after}");
        prop_assert!(after > 0.0 && before <= 1.0);
    }
}

//! RFC 5348 sections 5.2 to 5.5, number by number.

use super::*;
use proptest::prelude::*;

const PLAIN: IntervalWeights = IntervalWeights { threshold: 1.0, fewer: Fewer::InForTheOldest };
const RFC: IntervalWeights = IntervalWeights { threshold: 0.25, fewer: Fewer::InForTheOldest };

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
    assert_eq!(PLAIN.loss_event_rate(1000.0, &[]), 0.0);
}

/// I_mean by hand for I_1 = 10, I_2 = 20, ..., I_9 = 90; the last is never included.
///
/// Without the open interval: I_tot1 = w_0 I_1 + ... + w_(k-1) I_k over W_tot = w_0 + ... + w_(k-1). An open interval
/// of 100 gets w_0, and the others move on by a weight. I_k drops out and W_tot stays:
/// I_tot0 = 100 w_0 + w_1 I_1 + ... + w_(k-1) I_(k-1).
#[test]
fn section_5_4_one_to_nine_intervals_with_and_without_the_open_one() {
    let table = [
        // k, I_tot1, I_tot0, W_tot
        (1, 10.0, 100.0, 1.0),
        (2, 30.0, 110.0, 2.0),
        (3, 60.0, 130.0, 3.0),
        (4, 100.0, 160.0, 4.0),
        (5, 140.0, 192.0, 4.8), // + 0.8 * 50; + 0.8 * 40
        (6, 176.0, 222.0, 5.4), // + 0.6 * 60; + 0.6 * 50
        (7, 204.0, 246.0, 5.8), // + 0.4 * 70; + 0.4 * 60
        (8, 220.0, 260.0, 6.0), // + 0.2 * 80; + 0.2 * 70
        (9, 220.0, 260.0, 6.0), // n = 8
    ];
    let near = |p: f64, by_hand: f64| assert!((p / by_hand - 1.0).abs() < 1e-12, "{p} {by_hand}");
    for (k, without, with, weights) in table {
        // the intervals in the order in which they closed, the computed first one at the front
        let lengths: Vec<f64> = (1..=k.min(8)).map(|i| 10.0 * f64::from(i)).collect();
        near(PLAIN.loss_event_rate(1.0, &closed(&lengths)), weights / without);
        near(PLAIN.loss_event_rate(100.0, &closed(&lengths)), weights / with);
        // one round trip apart, with the computed interval of 10 k before the first; the open one begins with the last
        let mut history = LossHistory::new(PLAIN);
        let mut seq = 1000;
        for i in (1..=k).rev() {
            history.add(lost(seq, seq + 1, 1000 * u64::from(100 - i), 0.0), RTT, 10.0 * f64::from(k));
            seq += 10 * (i - 1);
        }
        let last = history.last().unwrap();
        near(history.loss_event_rate(last + 1), weights / without);
        near(history.loss_event_rate(last + 100), weights / with);
        assert_eq!(history.closed.len(), lengths.len());
    }
}

/// ns-2 adds the open interval to all closed ones while they are fewer than eight.
#[test]
fn ns2_averages_over_one_interval_more() {
    let ns2 = IntervalWeights { threshold: 1.0, fewer: Fewer::BesideAll };
    assert_eq!(ns2.loss_event_rate(60.0, &closed(&[40.0])), 1.0 / 50.0);
    assert_eq!(PLAIN.loss_event_rate(60.0, &closed(&[40.0])), 1.0 / 60.0);
    // (100 + 10 + 20 + 30 + 0.8 * 40) / 4.8
    assert!((ns2.loss_event_rate(100.0, &closed(&[10.0, 20.0, 30.0, 40.0])) - 4.8 / 192.0).abs() < 1e-12);
    let eight = closed(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]);
    assert_eq!(ns2.loss_event_rate(100.0, &eight), PLAIN.loss_event_rate(100.0, &eight));
}

#[test]
fn section_5_5_discounting() {
    let lengths = closed(&[50.0; 8]);
    assert_eq!(RFC.discount(100.0, &lengths), 1.0); // not more than twice the mean
    assert!((RFC.discount(200.0, &lengths) - 0.5).abs() < 1e-12);
    assert_eq!(RFC.discount(10_000.0, &lengths), 0.25);
    assert_eq!(IntervalWeights { threshold: 0.5, ..RFC }.discount(10_000.0, &lengths), 0.5);
    // I_0 counts in full, the others half: (200 + 0.5 * 50 * 5) / (1 + 0.5 * 5)
    let p = RFC.loss_event_rate(200.0, &lengths);
    assert!((p - 3.5 / 325.0).abs() < 1e-12, "{p}");
    // three closed ones: I_0 = 200 > 2 * 50, DF = 1/2; the third drops out: (200 + 0.5 * (50 + 50)) / (1 + 0.5 * 2)
    let p = RFC.loss_event_rate(200.0, &closed(&[50.0; 3]));
    assert!((p - 2.0 / 250.0).abs() < 1e-12, "{p}");
    // one: only the open interval remains
    assert!((RFC.loss_event_rate(200.0, &closed(&[50.0])) - 1.0 / 200.0).abs() < 1e-12);
    // earlier discounts count in both means: W_tot1 = 1 + 0.5 + 0.25, I_tot1 = 40 + 0.5 * 60 + 0.25 * 80 = 90, and I_0
    // = 90 is less than twice 90 / 1.75; W_tot0 = 1 + 1 + 0.5, I_tot0 = 90 + 40 + 0.5 * 60 = 160
    let discounted = [(40.0, 1.0), (60.0, 0.5), (80.0, 0.25)];
    assert_eq!(RFC.discount(90.0, &discounted), 1.0);
    assert!((RFC.loss_event_rate(1.0, &discounted) - 1.75 / 90.0).abs() < 1e-12);
    assert!((RFC.loss_event_rate(90.0, &discounted) - 2.5 / 160.0).abs() < 1e-12);
    // I_0 = 360 is 3.5 times the mean: DF = 2 * 90 / 1.75 / 360 = 2/7; (360 + 2/7 (40 + 30)) / (1 + 2/7 * 1.5) = 380 /
    // (10/7)
    assert!((RFC.discount(360.0, &discounted) - 2.0 / 7.0).abs() < 1e-12);
    assert!((RFC.loss_event_rate(360.0, &discounted) - 1.0 / 266.0).abs() < 1e-12);
    // after the event, the discount stays with the older intervals, but not with the interval that caused it
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
    // section 5.3: from the first loss of one event to the first loss of the next
    assert_eq!(history.closed[0].0, 11.0);
    // a gap of 50 packets, 10 ms apart: an event every 11 packets, the first one more than a round trip later
    let mut history = LossHistory::new(RFC);
    history.add(lost(1000, 1050, 2000, 10.0), RTT, 30.0);
    let firsts: Vec<u32> = history.events.iter().map(|e| e.first).collect();
    assert_eq!(firsts, [1044, 1033, 1022, 1011, 1000]);
    // five intervals without the open one of six packets: (11 * 4 + 0.8 * 30) / 4.8
    assert!((history.loss_event_rate(1050) - 4.8 / 68.0).abs() < 1e-12);
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
    // the event now begins with its next loss
    let mut history = fresh();
    assert!(history.fill(150));
    assert_eq!(lengths(&history), [45.0, 55.0, 40.0]);
    assert!(!history.fill(150), "it is here already");
    // without losses, the event is removed
    assert!(history.fill(155));
    assert_eq!(lengths(&history), [100.0, 40.0]);
    // the computed interval stays with the first remaining event
    assert!(history.fill(100) && history.fill(101));
    assert_eq!(lengths(&history), [40.0]);
    assert!(history.fill(200));
    assert!(history.is_empty());
    assert_eq!(history.loss_event_rate(1000), 0.0);
    // an event with a mark stays
    let mut history = LossHistory::new(PLAIN);
    history.add(Indication { marked: true, ..lost(100, 101, 1000, 0.0) }, RTT, 40.0);
    assert!(!history.fill(100) && !history.is_empty());
}

proptest! {
    /// Without discounting, a shorter closed interval never lowers p, and neither does a loss event appended to eight.
    /// An event appended to fewer may lower it if the oldest interval is long, because that counts again then (100
    /// open, 1 and 150 closed: 2 / 151; after it 3 / 251).
    #[test]
    fn losses_never_lower_p(
        lengths in proptest::collection::vec(1.0..1e5f64, 1..=8), open in 1.0..1e5f64, which in any::<usize>(), by in 0.0..1.0f64,
    ) {
        let before = PLAIN.loss_event_rate(open, &closed(&lengths));
        let mut after = lengths.clone();
        after.insert(0, open);
        after.truncate(8);
        let p = PLAIN.loss_event_rate(1.0, &closed(&after));
        prop_assert!(lengths.len() < 8 || p >= before * (1.0 - 1e-12), "appended: {before} {p}");
        let mut shorter = lengths.clone();
        let i = which % shorter.len();
        shorter[i] = (shorter[i] * by).max(1.0);
        let p = PLAIN.loss_event_rate(open, &closed(&shorter));
        prop_assert!(p >= before * (1.0 - 1e-12), "shortened: {before} {p}");
    }

    /// Packets that arrive without loss never raise p.
    #[test]
    fn no_loss_never_raises_p(
        lengths in proptest::collection::vec(1.0..1e4f64, 1..=8), open in 1.0..1e5f64, more in 0.0..1e5f64,
        threshold in prop_oneof![Just(0.25), Just(0.5), Just(1.0)],
        fewer in prop_oneof![Just(Fewer::InForTheOldest), Just(Fewer::BesideAll)],
    ) {
        let weights = IntervalWeights { threshold, fewer };
        let closed = closed(&lengths);
        let (before, after) = (weights.loss_event_rate(open, &closed), weights.loss_event_rate(open + more, &closed));
        prop_assert!(after <= before * (1.0 + 1e-12), "{before} {after}");
        prop_assert!(after > 0.0 && before <= 1.0);
    }
}

use super::*;

const RTT: Span = Span::from_millis(100); // bins of 35 ms

fn path(at: Time, acked: u32, next: u32) -> PathView {
    PathView {
        now: at,
        srtt: RTT,
        rttvar: Span::ZERO,
        min_rtt: RTT,
        in_flight: next.saturating_sub(acked),
        acked,
        next,
        receive_window: u32::MAX,
        segment: 1000,
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn bins(search: &Search) -> &Bins {
    search.bins.as_ref().unwrap()
}

/// Section 3.1: ten bins in 3.5 initial round trips, set by the first acknowledgement and not changed by later ones.
#[test]
fn the_first_round_trip_makes_the_bins() {
    let mut search = Search::default();
    search.on_ack(RTT, 10.0, &path(at(100), 1, 3));
    let first = bins(&search);
    assert_eq!((first.duration, first.end, first.index), (Span::from_millis(35), at(135), 0));
    assert_eq!((first.acked[0], first.sent[0]), (1, 3));
    search.on_ack(RTT * 2, 10.0, &path(at(200), 3, 7));
    assert_eq!((bins(&search).duration, bins(&search).initial), (Span::from_millis(35), RTT));
    // a zero round trip makes no bins
    let mut none = Search::default();
    none.on_ack(Span::ZERO, 10.0, &path(at(100), 1, 3));
    assert!(none.bins.is_none());
}

/// An acknowledgement is recorded in the bin that it closes; skipped bins repeat the bin before; after more than a
/// window of skipped bins everything starts again.
#[test]
fn bins_go_by_time() {
    for (ms, index, end, held) in [
        (134, 0, 135, vec![1]),
        (135, 1, 170, vec![1, 5]),
        (169, 1, 170, vec![1, 5]),
        (170, 2, 205, vec![1, 1, 5]),
        (135 + 9 * 35, 10, 135 + 10 * 35, vec![1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5]),
    ] {
        let mut search = Search::default();
        search.on_ack(RTT, 10.0, &path(at(100), 1, 3));
        search.on_ack(RTT, 10.0, &path(at(ms), 5, 9));
        let now = bins(&search);
        assert_eq!((now.index, now.end), (index, at(end)), "{ms} ms");
        assert_eq!(now.acked[..held.len()], held, "{ms} ms");
    }
    let mut late = Search::default();
    late.on_ack(RTT, 10.0, &path(at(100), 1, 3));
    late.on_ack(RTT, 10.0, &path(at(135 + 10 * 35), 5, 9));
    assert!(late.bins.is_none());
    late.on_ack(RTT * 2, 10.0, &path(at(600), 6, 9));
    assert_eq!(bins(&late).duration, Span::from_millis(70));
}

/// Bins of 35 ms with given values: `acked` and `sent` segments up to each bin.
fn filled(count: usize, acked: impl Fn(usize) -> u32, sent: impl Fn(usize) -> u32) -> Bins {
    let mut bins = Bins::new(RTT, &path(at(0), acked(0), sent(0))).unwrap();
    for i in 1..=count {
        bins.advance(1, &path(at(35 * i as u64), acked(i), sent(i)));
    }
    bins
}

/// Section 3.2: delivered(i - 10, i) against those sent a round trip earlier. 100 ms are 2 6/7 bins, so the sent
/// segments are weighted 1/7 for the window that ended 2 bins ago and 6/7 for the one a bin earlier.
#[test]
fn the_shortfall() {
    // steady: 10 per bin both sent and delivered
    let even = |i: usize| 10 * i as u32;
    assert_eq!(filled(20, even, |i| 10 * i as u32 + 28).shortfall(RTT), Some(0.0));
    // sent grows: 100 per bin up to the 13th, then 200; delivered stays at 100 per bin, 1000 per window
    let sent = |i: usize| 100 * i as u32 + 100 * (i as u32).saturating_sub(13);
    for (i, share) in [
        (15, 0.0),                                    // windows that ended with bins 13 and 12
        (16, (100.0 / 7.0) / (1000.0 + 100.0 / 7.0)), // weight 1/7 for bin 14: 1100
        (20, (500.0 / 7.0 + 400.0 * 6.0 / 7.0) / (1000.0 + 500.0 / 7.0 + 400.0 * 6.0 / 7.0)),
    ] {
        let found = filled(i, |i| 100 * i as u32, sent).shortfall(RTT).unwrap();
        assert!((found - share).abs() < 1e-12, "bin {i}: {found}, expected {share}");
    }
    // more is delivered than was sent a round trip ago (a shrinking round trip)
    assert!(filled(20, |i| 12 * i as u32, even).shortfall(RTT).unwrap() < 0.0);
    assert_eq!(filled(20, even, |_| 7).shortfall(RTT), None, "nothing was sent");
}

/// Unknown until the bins reach back a window and a round trip, and if the round trip has outgrown them.
#[test]
fn how_far_the_bins_reach_back() {
    let even = |i: usize| 10 * i as u32;
    for (count, rtt, known) in [
        (12, 100, false), // the window a round trip ago ended with bin 10
        (13, 100, true),
        (13, 104, true),
        (13, 105, false), // three bins
        (23, 489, false), // 13 bins back: ended with bin 10
        (24, 489, true),
        (40, 524, true),  // 14
        (40, 525, false), // 15: more than the bins kept
    ] {
        let found = filled(count, even, even).shortfall(Span::from_millis(rtt));
        assert_eq!(found.is_some(), known, "{count} bins, {rtt} ms");
    }
}

/// A sender that doubles its window each round trip of 100 ms; at most `max_delivered` segments are delivered per round
/// trip.
fn grown(max_delivered: u32) -> (Vec<Verdict>, f64) {
    let mut search = Search::default();
    let (mut acked, mut next, mut window, mut verdicts) = (1, 11, 10.0, Vec::new());
    for ms in (100..10_000).step_by(5) {
        let round = (ms - 100) / 100;
        let delivered = (10_u32 << round.min(20)).min(max_delivered) / 20;
        acked = (acked + delivered).min(next);
        match search.on_ack(RTT, window, &path(at(ms), acked, next)) {
            Verdict::Continue => window += f64::from(delivered),
            verdict @ (Verdict::Leave | Verdict::LeaveAt(_)) => {
                verdicts.push(verdict);
                return (verdicts, window);
            }
            verdict @ Verdict::Drain(to) => {
                verdicts.push(verdict);
                window = to;
            }
        }
        next = next.max(acked + window as u32);
    }
    (verdicts, window)
}

/// Section 3.3: the queue drains, with one segment sent per three acknowledged, to what a round trip of the path
/// delivers.
#[test]
fn it_leaves_where_the_path_is_full() {
    let (verdicts, window) = grown(1280);
    let Some((Verdict::LeaveAt(target), drained)) = verdicts.split_last() else { panic!("{verdicts:?}") };
    // 1280 per round trip; three whole bins are 105 ms
    assert!((1280.0..=1280.0 * 1.05 + 64.0).contains(target), "{target}");
    assert!(drained.len() > 10 && window > *target, "{} steps, from {window}", drained.len());
    for pair in drained.windows(2) {
        let [Verdict::Drain(before), Verdict::Drain(after)] = pair else { panic!("{pair:?}") };
        // 64 acknowledged, 21 or 22 sent
        assert!((42.0..=43.0).contains(&(before - after)), "{before} {after}");
    }
}

/// A window of at most one round trip's delivery (three bins of 100 segments) has nothing to drain; a larger one begins
/// to drain with the next acknowledgement. At least an initial window of ten segments is left.
#[test]
fn it_leaves_at_once_where_nothing_is_to_drain() {
    for (window, verdict, drains) in [(300.0, Verdict::Leave, false), (301.0, Verdict::Continue, true)] {
        let mut search = Search { bins: Some(filled(20, |i| 100 * i as u32, |i| 300 * i as u32)), drain: None };
        assert_eq!(search.on_ack(RTT, window, &path(at(735), 2100, 6300)), verdict, "{window}");
        assert_eq!(search.is_draining(), drains, "{window}");
    }
    let mut slow = Search { bins: Some(filled(20, |i| i as u32, |i| 3 * i as u32)), drain: None };
    slow.on_ack(RTT, 30.0, &path(at(735), 21, 63));
    assert_eq!(slow.on_ack(RTT, 30.0, &path(at(740), 24, 66)), Verdict::Drain(43.0)); // 42 in flight, one per three
    assert_eq!(slow.on_ack(RTT, 43.0, &path(at(745), 60, 66)), Verdict::Drain(18.0)); // 36 acknowledged
    assert_eq!(slow.on_ack(RTT, 18.0, &path(at(750), 61, 66)), Verdict::LeaveAt(10.0));
}

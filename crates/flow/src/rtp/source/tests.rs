//! Compares the algorithms of RFC 3550's appendix with simple reference computations.

use super::*;
use proptest::prelude::*;

/// A valid source whose last packet was `last`.
fn valid(last: u16) -> RtpSource {
    let mut source = RtpSource::new(last.wrapping_sub(1));
    assert_eq!(source.update(last.wrapping_sub(1)), Verdict::Probation);
    assert_eq!(source.update(last), Verdict::New);
    assert!(source.is_valid());
    source
}

#[test]
fn a1_two_packets_in_sequence_make_a_source() {
    let mut source = RtpSource::new(7);
    let verdicts = [7, 9, 12, 13].map(|seq| source.update(seq));
    assert_eq!(verdicts, [Verdict::Probation, Verdict::Probation, Verdict::Probation, Verdict::New]);
    // the sequence begins with the packet that made it valid
    assert_eq!(source.take_interval(), Loss { expected: 1, received: 1 });
}

#[test]
fn a1_numbers_go_round() {
    let mut source = valid(65_534);
    assert_eq!(source.extended_highest(), 65_534);
    for seq in [65_535, 0, 1] {
        assert_eq!(source.update(seq), Verdict::New);
    }
    assert_eq!(source.extended_highest(), 65_536 + 1);
    assert_eq!(source.update(65_535), Verdict::Copy, "late across the end");
    assert_eq!(source.extended_highest(), 65_536 + 1);
    assert_eq!(source.take_interval(), Loss { expected: 4, received: 5 });
}

#[test]
fn a1_a_jump_counts_when_the_next_packet_follows_it() {
    let mut source = valid(100);
    assert_eq!(source.update(100 + 2999), Verdict::New, "the longest gap");
    let mut source = valid(100);
    assert_eq!(source.update(100 + 3000), Verdict::Stray);
    assert_eq!(source.update(101), Verdict::New, "the stream goes on");
    assert_eq!(source.update(30_000), Verdict::Stray);
    assert_eq!(source.update(30_001), Verdict::Restarted, "it has begun anew");
    assert_eq!((source.extended_highest(), source.cumulative_lost()), (30_001, 0));
    // 100 behind is no longer late
    let mut source = valid(1000);
    assert_eq!(source.update(1000 - 99), Verdict::New);
    assert_eq!(source.update(1000 - 100), Verdict::Stray);
}

#[test]
fn a3_the_fraction_is_of_the_interval_and_the_count_of_all() {
    let mut source = valid(0);
    for seq in (1..=100).filter(|seq| seq % 4 != 0) {
        source.update(seq);
    }
    let interval = source.take_interval();
    assert_eq!(interval, Loss { expected: 100, received: 76 }); // 100 itself is the 25th lost, which is not known yet
    assert_eq!(ReportBlock::fraction_of(interval.expected, interval.received), 61); // 24 * 256 / 100 = 61.4
    for seq in 101..=150 {
        source.update(seq);
    }
    let interval = source.take_interval();
    assert_eq!(interval, Loss { expected: 51, received: 50 });
    assert_eq!(source.cumulative_lost(), 25);
    // copies make it negative, and the fraction zero
    for _ in 0..40 {
        source.update(150);
    }
    let interval = source.take_interval();
    assert_eq!(ReportBlock::fraction_of(interval.expected, interval.received), 0);
    assert_eq!(source.cumulative_lost(), -15);
}

#[test]
fn a8_the_jitter_of_a_hand_made_stream() {
    // every 20 ms, 1800 ticks; transit times 0, 10, 0, 10 ms: |D| = 900 each time
    let mut source = valid(0);
    let (mut scaled, mut seen) = (0_i64, Vec::new());
    for i in 0..200_u64 {
        let late = if i % 2 == 1 { 10_000_000 } else { 0 };
        source.arrival((i * 1800) as u32, Time(i * 20_000_000 + late));
        if i > 0 {
            scaled += 900 - ((scaled + 8) >> 4);
        }
        seen.push((i64::from(source.jitter()), scaled >> 4));
    }
    assert!(seen.iter().all(|(got, expected)| got == expected));
    assert_eq!(seen[1].0, 900 / 16);
    assert!((895..=900).contains(&seen[199].0), "it converges to |D|");
}

#[test]
fn ticks_of_90_khz_do_not_drift() {
    assert_eq!(ticks(Time::from_secs_f64(1.0)), 90_000);
    assert_eq!(ticks(Time(11_112)), 1);
    // 2^32 ticks are 47721.86 s
    assert_eq!(ticks(Time(47_722 * 1_000_000_000)), (47_722_u64 * 90_000 % (1 << 32)) as u32);
}

proptest! {
    /// With losses, duplicates and little reordering, expected and received equal a plain count.
    #[test]
    fn a3_against_a_plain_count(
        first in any::<u16>(),
        fate in proptest::collection::vec((0..10u8, 0..8u32), 10..600),
    ) {
        let mut source = valid(first);
        // packet i after the first arrives at i + its delay, sometimes twice, or never
        let mut arrivals: Vec<(u32, u32)> = Vec::new();
        for (i, (what, delay)) in fate.iter().enumerate() {
            let i = i as u32 + 1;
            match what {
                0 => {}
                1 => arrivals.extend([(i + delay, i), (i + delay + 1, i)]),
                _ => arrivals.push((i + delay, i)),
            }
        }
        arrivals.sort_unstable();
        let mut new = 1;
        for (_, i) in &arrivals {
            new += u32::from(source.update(first.wrapping_add(*i as u16)) == Verdict::New);
        }
        let highest = arrivals.iter().map(|a| a.1).max().unwrap_or(0);
        let interval = source.take_interval();
        prop_assert_eq!(interval.expected, highest + 1);
        prop_assert_eq!(interval.received, arrivals.len() as u32 + 1);
        prop_assert_eq!(source.cumulative_lost(), highest as i32 - arrivals.len() as i32);
        prop_assert_eq!(source.extended_highest(), u32::from(first) + highest);
        let mut distinct: Vec<u32> = arrivals.iter().map(|a| a.1).collect();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(new, distinct.len() as u32 + 1);
    }

    /// No sequence of numbers and timestamps breaks the counters.
    #[test]
    fn anything_may_come(packets in proptest::collection::vec((any::<u16>(), any::<u32>(), 0..u64::MAX / 2), 1..300)) {
        let mut source = RtpSource::new(packets[0].0);
        for (seq, timestamp, at) in &packets {
            source.update(*seq);
            source.arrival(*timestamp, Time(*at));
            let lost = source.cumulative_lost();
            prop_assert!((ReportBlock::CUMULATIVE_MIN..=ReportBlock::CUMULATIVE_MAX).contains(&lost));
        }
        source.take_interval();
    }
}

//! Compares the scoreboard with the text of RFC 6675 section 4, segment by segment.

use super::*;
use proptest::prelude::*;

/// Whether the receiver has the segment, which is at or above `una`.
fn reported(had: &[bool], una: u32, seq: u32) -> bool {
    had[(seq - una) as usize]
}

/// "more than (DupThresh - 1) * SMSS bytes with sequence numbers greater than 'SeqNum' have been SACKed"; three discontiguous
/// sequences are as many segments.
fn is_lost(had: &[bool], una: u32, seq: u32) -> bool {
    had[(seq - una) as usize + 1..].iter().filter(|h| **h).count() >= 3
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pipe_holes_and_losses_are_those_of_the_text(
        had in proptest::collection::vec(any::<bool>(), 1..40),
        order in proptest::collection::vec((any::<u8>(), any::<u8>()), 0..60),
        high_rxt in 0u32..45,
        moved in 0u32..10,
    ) {
        let mut had = had;
        had[0] = false; // otherwise `una` would have advanced
        let una = 7;
        let max = una + had.len() as u32;
        let mut board = Reported::new(una);
        // the blocks that a receiver may report: parts of what it has, in any order; finally all of it
        let runs: Vec<(u32, u32)> = (una..max)
            .filter(|&s| reported(&had, una, s) && !reported(&had, una, s - 1))
            .map(|s| (s, (s..max).find(|&e| !reported(&had, una, e)).unwrap_or(max)))
            .collect();
        for (run, cut) in order {
            if let Some(&(start, end)) = runs.get(usize::from(run) % runs.len().max(1)) {
                let from = start + u32::from(cut) % (end - start);
                board.add(from, end);
            }
        }
        for &(start, end) in &runs {
            board.add(start, end);
        }
        let high_rxt = una + high_rxt;
        // `una` advances to a segment that the receiver does not have
        let una_now = (una + moved..max).find(|&s| !reported(&had, una, s)).unwrap_or(max);
        board.update(una_now, max, None);
        let (una, had) = (una_now, &had[(una_now - una) as usize..]);
        let all = || (una..max).filter(|&s| !reported(had, una, s));
        for seq in all() {
            prop_assert_eq!(seq < board.lost_below(), is_lost(had, una, seq), "IsLost({})", seq);
        }
        let pipe = all().map(|s| u32::from(!is_lost(had, una, s)) + u32::from(s < high_rxt)).sum::<u32>();
        prop_assert_eq!(board.in_flight(una, max, high_rxt), pipe, "SetPipe");
        for seq in una..max {
            prop_assert_eq!(board.hole(seq), (seq..max).find(|&s| !reported(had, una, s)).unwrap_or(max));
            let covered = (seq..max).filter(|&s| reported(had, una, s)).count();
            prop_assert_eq!(board.covered(seq, max) as usize, covered);
        }
    }

    /// A receiver that requests data that it had reported has discarded it, so none of its reports count any more.
    #[test]
    fn a_receiver_that_drops_what_it_had(start in 2u32..20, size in 1u32..20, ack in 1u32..45) {
        let mut board = Reported::new(0);
        board.add(start, start + size);
        board.add(60, 70);
        board.update(ack, 100, None);
        let dropped = (start..start + size).contains(&ack);
        prop_assert_eq!(board.is_empty(), dropped);
        let left = if ack < start { size } else { 0 };
        prop_assert_eq!(board.total, if dropped { 0 } else { left + 10 });
    }
}

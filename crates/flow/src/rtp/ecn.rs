//! ECN for RTP (RFC 6679): what a receiver counts, and whether a sender may use it.

use paceline_packet::Flags;
use paceline_packet::rtcp::EcnCounts;

/// So many packets after each report try the path (section 7.2.1: two at least).
const TRIES: u32 = 2;
/// With none of more than so many come, it has failed (section 7.2.1).
const FEW: u32 = 3;
/// A verdict on a path in use takes so many packets. Ours: the RFC names none.
const ENOUGH: u32 = 20;
/// So many packets try it at most: a receiver that never reports cannot be told from a path that takes none.
const MOST_TRIED: usize = 64;
/// So many times it is tried anew (section 7.4.1 leaves the number open).
const MOST_TRIALS: u32 = 2;

/// What a receiver counts of a source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnLog {
    counts: EcnCounts,
    /// Something is to be told at once: a mark, a loss, or the first packet that could have a mark.
    news: bool,
    told: bool,
}

impl EcnLog {
    /// A packet has come, for the first time or again.
    pub(super) fn arrived(&mut self, flags: Flags, copy: bool) {
        let counts = &mut self.counts;
        let capable = flags.has(Flags::ECT) || flags.has(Flags::CE);
        self.news |= flags.has(Flags::CE) || capable && counts.ect0 == 0 && counts.ect1 == 0 && counts.ce == 0;
        if flags.has(Flags::CE) {
            counts.ce = counts.ce.wrapping_add(1);
        } else if capable && flags.has(Flags::L4S) {
            counts.ect1 = counts.ect1.wrapping_add(1);
        } else if capable {
            counts.ect0 = counts.ect0.wrapping_add(1);
        } else {
            counts.not_ect = counts.not_ect.wrapping_add(1);
        }
        counts.duplicates = counts.duplicates.wrapping_add(u16::from(copy));
    }

    /// A packet has not come.
    pub(super) fn lost(&mut self) {
        self.news = true;
    }

    /// Whether feedback is to leave at once.
    pub(super) fn has_news(&self) -> bool {
        self.news
    }

    /// Whether anything has been told.
    pub(super) fn has_told(&self) -> bool {
        self.told
    }

    /// What is to be told, where the sequence has lost so many: expected less received, copies among these.
    pub(super) fn tell(&mut self, expected_less_received: i32) -> EcnCounts {
        (self.news, self.told) = (false, true);
        let lost = (expected_less_received as u16).wrapping_add(self.counts.duplicates);
        EcnCounts { lost, ..self.counts }
    }
}

/// What a sender does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Few packets are ECN-capable: it waits to be told that they came.
    Trying,
    /// All from this number on are.
    Using(u32),
    /// None are: the path clears the field, or the receiver says nothing of it.
    Given,
}

/// Whether a sender may send ECN-capable packets.
#[derive(Clone, Debug)]
pub(super) struct EcnCheck {
    state: State,
    /// Packets that may still try the path before the next report.
    left: u32,
    /// ECN-capable packets, by number, until they are judged; while all are, those from before.
    tried: Vec<u32>,
    trials: u32,
    /// What was last told, and up to which number.
    told: Option<(EcnCounts, u32)>,
    /// Marks told that no report has heeded yet.
    marks: u32,
}

impl EcnCheck {
    pub(super) fn new() -> EcnCheck {
        EcnCheck { state: State::Trying, left: TRIES, tried: Vec::new(), trials: 1, told: None, marks: 0 }
    }

    /// Packet `number` leaves: whether it is ECN-capable.
    pub(super) fn mark(&mut self, number: u32) -> bool {
        match self.state {
            State::Using(_) => true,
            State::Given => false,
            State::Trying if self.left > 0 && self.tried.len() < MOST_TRIED => {
                self.left -= 1;
                self.tried.push(number);
                true
            }
            State::Trying => false,
        }
    }

    /// A report of ours leaves: a few packets more try the path.
    pub(super) fn reported(&mut self) {
        self.left = TRIES;
    }

    /// How many of the packets up to this number were ECN-capable.
    fn capable(&self, number: u32) -> u32 {
        let tried = self.tried.iter().filter(|tried| **tried <= number).count() as u32;
        match self.state {
            State::Using(from) if number >= from => tried + (number - from + 1),
            _ => tried,
        }
    }

    /// The receiver has reported up to `number` and says nothing of the field.
    pub(super) fn silent(&mut self, number: u32) {
        if self.told.is_none() && self.capable(number) > FEW {
            self.state = State::Given;
        }
    }

    /// The receiver has counted this up to `number`; `next` is the next packet's.
    pub(super) fn told(&mut self, counts: EcnCounts, number: u32, next: u32) {
        let (before, since) = self.told.unwrap_or_default();
        if self.told.is_some() && number <= since {
            return;
        }
        let marked = counts.ce.wrapping_sub(before.ce);
        self.marks = self.marks.saturating_add(marked.into());
        let unmarked = counts.ect0.wrapping_sub(before.ect0).wrapping_add(counts.ect1.wrapping_sub(before.ect1));
        let capable = unmarked.wrapping_add(marked.into());
        let cleared = u32::from(counts.not_ect.wrapping_sub(before.not_ect));
        let lost = i32::from(counts.lost.wrapping_sub(before.lost) as i16).max(0) as u32;
        let sent = self.capable(number) - self.told.map_or(0, |_| self.capable(since));
        match self.state {
            State::Trying => {
                if capable > 0 {
                    self.state = State::Using(next);
                } else if self.capable(number) > FEW {
                    self.state = State::Given;
                }
                self.told = Some((counts, number));
            }
            State::Using(_) if sent >= ENOUGH => {
                // all were capable: what came otherwise has been cleared (section 7.4.2)
                if 2 * cleared > sent {
                    self.state = State::Given;
                } else if 2 * lost > sent {
                    self.again();
                }
                self.told = Some((counts, number));
            }
            // too few: judged with those to come
            State::Using(_) => self.told = Some((EcnCounts { ce: counts.ce, ..before }, since)),
            State::Given => self.told = Some((counts, number)),
        }
    }

    /// Half of what was sent is lost: perhaps because it was capable (section 7.4.1).
    fn again(&mut self) {
        let again = self.trials < MOST_TRIALS;
        *self = EcnCheck { trials: self.trials + 1, told: self.told, marks: self.marks, ..EcnCheck::new() };
        if !again {
            self.state = State::Given;
        }
    }

    /// Marks told since this was last asked for.
    pub(super) fn take_marks(&mut self) -> u32 {
        std::mem::take(&mut self.marks)
    }

    /// 1 while all packets are ECN-capable, 0 while a few are, -1 when none are any more.
    pub(super) fn gauge(&self) -> f64 {
        match self.state {
            State::Using(_) => 1.0,
            State::Trying => 0.0,
            State::Given => -1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(ect0: u32, ce: u16, not_ect: u16, lost: u16) -> EcnCounts {
        EcnCounts { ect0, ce, not_ect, lost, ..EcnCounts::default() }
    }

    /// Sends packets up to `to`; how many were capable.
    fn send(check: &mut EcnCheck, from: u32, to: u32) -> u32 {
        (from..to).filter(|number| check.mark(*number)).count() as u32
    }

    #[test]
    fn section_7_2_1_two_packets_try_the_path_and_all_are_capable_once_one_has_come() {
        let mut check = EcnCheck::new();
        assert_eq!(send(&mut check, 0, 50), 2);
        check.reported();
        assert_eq!(send(&mut check, 50, 100), 2);
        check.told(counts(2, 0, 20, 0), 21, 100);
        assert_eq!((send(&mut check, 100, 150), check.gauge()), (50, 1.0));
    }

    #[test]
    fn section_7_2_1_it_fails_where_more_than_three_have_come_and_nothing_is_said() {
        let mut check = EcnCheck::new();
        send(&mut check, 0, 50);
        check.silent(49);
        assert_eq!(check.gauge(), 0.0, "two are too few");
        check.reported();
        send(&mut check, 50, 100);
        check.silent(50);
        assert_eq!(check.gauge(), 0.0, "three are");
        check.silent(99);
        assert_eq!((check.gauge(), send(&mut check, 100, 150)), (-1.0, 0));
        // or where they come cleared
        let mut check = EcnCheck::new();
        send(&mut check, 0, 50);
        check.told(counts(0, 0, 50, 0), 49, 50);
        check.reported();
        send(&mut check, 50, 100);
        check.told(counts(0, 0, 100, 0), 99, 100);
        assert_eq!(check.gauge(), -1.0);
    }

    #[test]
    fn section_7_4_2_a_path_that_begins_to_clear_the_field_ends_it() {
        let mut check = EcnCheck::new();
        send(&mut check, 0, 2);
        check.told(counts(2, 0, 0, 0), 1, 2);
        send(&mut check, 2, 300);
        check.told(counts(95, 7, 0, 0), 101, 300);
        assert_eq!((check.gauge(), check.take_marks(), check.take_marks()), (1.0, 7, 0));
        check.told(counts(100, 7, 3, 2), 110, 300);
        assert_eq!(check.gauge(), 1.0, "ten packets decide nothing");
        check.told(counts(103, 7, 90, 2), 201, 300);
        assert_eq!(check.gauge(), -1.0);
    }

    #[test]
    fn section_7_4_1_where_half_is_lost_it_is_tried_anew_once() {
        let mut check = EcnCheck::new();
        send(&mut check, 0, 2);
        check.told(counts(2, 0, 0, 0), 1, 2);
        send(&mut check, 2, 200);
        check.told(counts(42, 0, 0, 60), 101, 200);
        assert_eq!(check.gauge(), 0.0);
        assert_eq!(send(&mut check, 200, 250), 2);
        check.told(counts(140, 0, 1, 60), 201, 250);
        assert_eq!(check.gauge(), 1.0);
        send(&mut check, 250, 400);
        check.told(counts(150, 0, 50, 200), 399, 400);
        assert_eq!(check.gauge(), -1.0);
    }

    #[test]
    fn counters_go_round() {
        let mut check = EcnCheck::new();
        send(&mut check, 0, 2);
        check.told(EcnCounts { ect0: u32::MAX, ..counts(0, 65_535, 0, 65_535) }, 1, 2);
        send(&mut check, 2, 200);
        check.take_marks();
        check.told(counts(90, 4, 0, 1), 101, 200);
        assert_eq!((check.gauge(), check.take_marks()), (1.0, 5));
    }

    proptest! {
        /// Whatever a receiver says: nothing overflows, and who has given up marks nothing more.
        #[test]
        fn a_receiver_may_say_anything(
            says in prop::collection::vec((any::<(u32, u32, u16, u16, u16, u16)>(), 0..50u32, 1..100u32, any::<bool>()), 1..60),
        ) {
            let (mut check, mut next) = (EcnCheck::new(), 0);
            for ((ect0, ect1, ce, not_ect, lost, duplicates), back, sent, silent) in says {
                let marked = send(&mut check, next, next + sent);
                prop_assert!(check.gauge() >= 0.0 || marked == 0);
                next += sent;
                let number = (next - 1).saturating_sub(back);
                if silent {
                    check.silent(number);
                    check.reported();
                } else {
                    check.told(EcnCounts { ect0, ect1, ce, not_ect, lost, duplicates }, number, next);
                }
            }
        }
    }

    #[test]
    fn a_receiver_counts_what_came_and_what_was_lost() {
        let mut log = EcnLog::default();
        log.arrived(Flags::NONE, false);
        assert!(!log.has_news());
        log.arrived(Flags::ECT, false);
        assert!(log.has_news(), "the first that could be marked");
        assert_eq!(log.tell(3), counts(1, 0, 1, 3));
        log.arrived(Flags::ECT.with(Flags::L4S), false);
        assert!(!log.has_news());
        log.arrived(Flags::ECT.with(Flags::CE), true);
        assert!(log.has_news());
        // a copy hides a loss in what is expected less what was received
        let told = EcnCounts { ect1: 1, duplicates: 1, ..counts(1, 1, 1, 3) };
        assert_eq!(log.tell(2), told);
    }
}

//! ECN for RTP (RFC 6679): the receiver's counters, and the sender's check of the path.

use paceline_packet::Flags;
use paceline_packet::rtcp::EcnCounts;

/// Number of packets that test the path after each report (section 7.2.1: at least two).
const TRIES: u32 = 2;
/// If none of more than this many packets arrive with ECN, initiation has failed (section 7.2.1).
const FEW: u32 = 3;
/// Minimum number of packets for a verdict on a path in use. The RFC sets none.
const ENOUGH: u32 = 20;
/// Maximum number of test packets: a receiver that never reports looks like a path that drops them all.
const MAX_TRIED: usize = 64;
/// Maximum number of initiation attempts (section 7.4.1 leaves it open).
const MAX_TRIALS: u32 = 2;

/// A receiver's ECN counters for a source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EcnLog {
    counts: EcnCounts,
    /// Something must be reported at once: a mark, a loss, or the first ECN-capable packet.
    news: bool,
    is_reported: bool,
}

impl EcnLog {
    /// Counts a packet, or a duplicate.
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

    /// Records that a packet was lost.
    pub(super) fn lost(&mut self) {
        self.news = true;
    }

    /// Whether feedback must be sent at once.
    pub(super) fn has_news(&self) -> bool {
        self.news
    }

    /// Whether the counters were ever reported.
    pub(super) fn is_reported(&self) -> bool {
        self.is_reported
    }

    /// Returns the counters to report; `expected_less_received`: packets expected minus received, duplicates included.
    pub(super) fn report(&mut self, expected_less_received: i32) -> EcnCounts {
        (self.news, self.is_reported) = (false, true);
        let lost = (expected_less_received as u16).wrapping_add(self.counts.duplicates);
        EcnCounts { lost, ..self.counts }
    }
}

/// The state of the sender's check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Few packets are ECN-capable, until a report says that they arrived as such.
    Trying,
    /// All packets from this number on are ECN-capable.
    Using(u32),
    /// No packet is: the path clears the field, or the receiver does not report it.
    Given,
}

/// The sender's check whether it may send ECN-capable packets.
#[derive(Clone, Debug)]
pub(super) struct EcnCheck {
    state: State,
    /// Number of packets that may still test the path before the next report.
    left: u32,
    /// Numbers of ECN-capable test packets not yet evaluated; in state `Using`, those sent before it.
    tried: Vec<u32>,
    trials: u32,
    /// The last counters reported, and the number up to which they count.
    last_counts: Option<(EcnCounts, u32)>,
    /// Reported marks not yet taken.
    marks: u32,
}

impl EcnCheck {
    pub(super) fn new() -> EcnCheck {
        EcnCheck { state: State::Trying, left: TRIES, tried: Vec::new(), trials: 1, last_counts: None, marks: 0 }
    }

    /// Whether packet `number`, which is about to be sent, is ECN-capable.
    pub(super) fn mark(&mut self, number: u32) -> bool {
        match self.state {
            State::Using(_) => true,
            State::Given => false,
            State::Trying if self.left > 0 && self.tried.len() < MAX_TRIED => {
                self.left -= 1;
                self.tried.push(number);
                true
            }
            State::Trying => false,
        }
    }

    /// The sender has sent a report: a few more packets may test the path.
    pub(super) fn reported(&mut self) {
        self.left = TRIES;
    }

    /// The number of ECN-capable packets up to this number.
    fn capable(&self, number: u32) -> u32 {
        let tried = self.tried.iter().filter(|tried| **tried <= number).count() as u32;
        match self.state {
            State::Using(from) if number >= from => tried + (number - from + 1),
            _ => tried,
        }
    }

    /// The receiver has reported up to `number` without ECN counters.
    pub(super) fn silent(&mut self, number: u32) {
        if self.last_counts.is_none() && self.capable(number) > FEW {
            self.state = State::Given;
        }
    }

    /// Processes the receiver's counters up to `number`; `next` is the next packet's number.
    pub(super) fn on_counts(&mut self, counts: EcnCounts, number: u32, next: u32) {
        let (before, since) = self.last_counts.unwrap_or_default();
        if self.last_counts.is_some() && number <= since {
            return;
        }
        let marked = counts.ce.wrapping_sub(before.ce);
        self.marks = self.marks.saturating_add(marked.into());
        let unmarked = counts.ect0.wrapping_sub(before.ect0).wrapping_add(counts.ect1.wrapping_sub(before.ect1));
        let capable = unmarked.wrapping_add(marked.into());
        let cleared = u32::from(counts.not_ect.wrapping_sub(before.not_ect));
        let lost = i32::from(counts.lost.wrapping_sub(before.lost) as i16).max(0) as u32;
        let sent = self.capable(number) - self.last_counts.map_or(0, |_| self.capable(since));
        match self.state {
            State::Trying => {
                if capable > 0 {
                    self.state = State::Using(next);
                } else if self.capable(number) > FEW {
                    self.state = State::Given;
                }
                self.last_counts = Some((counts, number));
            }
            State::Using(_) if sent >= ENOUGH => {
                // all were ECN-capable, so other packets were cleared on the path (section 7.4.2)
                if 2 * cleared > sent {
                    self.state = State::Given;
                } else if 2 * lost > sent {
                    self.again();
                }
                self.last_counts = Some((counts, number));
            }
            // too few packets: evaluate them with later ones
            State::Using(_) => self.last_counts = Some((EcnCounts { ce: counts.ce, ..before }, since)),
            State::Given => self.last_counts = Some((counts, number)),
        }
    }

    /// Half of the packets are lost, perhaps because they were ECN-capable: restarts initiation (section 7.4.1).
    fn again(&mut self) {
        let again = self.trials < MAX_TRIALS;
        *self =
            EcnCheck { trials: self.trials + 1, last_counts: self.last_counts, marks: self.marks, ..EcnCheck::new() };
        if !again {
            self.state = State::Given;
        }
    }

    /// The marks reported since the last call.
    pub(super) fn take_marks(&mut self) -> u32 {
        std::mem::take(&mut self.marks)
    }

    /// 1 while all packets are ECN-capable, 0 during initiation, -1 after it has failed.
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

    /// Sends packets up to `to`; returns how many were ECN-capable.
    fn send(check: &mut EcnCheck, from: u32, to: u32) -> u32 {
        (from..to).filter(|number| check.mark(*number)).count() as u32
    }

    #[test]
    fn section_7_2_1_two_packets_try_the_path_and_all_are_capable_once_one_has_come() {
        let mut check = EcnCheck::new();
        assert_eq!(send(&mut check, 0, 50), 2);
        check.reported();
        assert_eq!(send(&mut check, 50, 100), 2);
        check.on_counts(counts(2, 0, 20, 0), 21, 100);
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
        // or if they arrive cleared
        let mut check = EcnCheck::new();
        send(&mut check, 0, 50);
        check.on_counts(counts(0, 0, 50, 0), 49, 50);
        check.reported();
        send(&mut check, 50, 100);
        check.on_counts(counts(0, 0, 100, 0), 99, 100);
        assert_eq!(check.gauge(), -1.0);
    }

    #[test]
    fn section_7_4_2_a_path_that_begins_to_clear_the_field_ends_it() {
        let mut check = EcnCheck::new();
        send(&mut check, 0, 2);
        check.on_counts(counts(2, 0, 0, 0), 1, 2);
        send(&mut check, 2, 300);
        check.on_counts(counts(95, 7, 0, 0), 101, 300);
        assert_eq!((check.gauge(), check.take_marks(), check.take_marks()), (1.0, 7, 0));
        check.on_counts(counts(100, 7, 3, 2), 110, 300);
        assert_eq!(check.gauge(), 1.0, "ten packets decide nothing");
        check.on_counts(counts(103, 7, 90, 2), 201, 300);
        assert_eq!(check.gauge(), -1.0);
    }

    #[test]
    fn section_7_4_1_where_half_is_lost_it_is_tried_anew_once() {
        let mut check = EcnCheck::new();
        send(&mut check, 0, 2);
        check.on_counts(counts(2, 0, 0, 0), 1, 2);
        send(&mut check, 2, 200);
        check.on_counts(counts(42, 0, 0, 60), 101, 200);
        assert_eq!(check.gauge(), 0.0);
        assert_eq!(send(&mut check, 200, 250), 2);
        check.on_counts(counts(140, 0, 1, 60), 201, 250);
        assert_eq!(check.gauge(), 1.0);
        send(&mut check, 250, 400);
        check.on_counts(counts(150, 0, 50, 200), 399, 400);
        assert_eq!(check.gauge(), -1.0);
    }

    #[test]
    fn counters_go_round() {
        let mut check = EcnCheck::new();
        send(&mut check, 0, 2);
        check.on_counts(EcnCounts { ect0: u32::MAX, ..counts(0, 65_535, 0, 65_535) }, 1, 2);
        send(&mut check, 2, 200);
        check.take_marks();
        check.on_counts(counts(90, 4, 0, 1), 101, 200);
        assert_eq!((check.gauge(), check.take_marks()), (1.0, 5));
    }

    proptest! {
        /// For any reports of a receiver: nothing overflows, and after a failure no packet is ECN-capable.
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
                    check.on_counts(EcnCounts { ect0, ect1, ce, not_ect, lost, duplicates }, number, next);
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
        assert_eq!(log.report(3), counts(1, 0, 1, 3));
        log.arrived(Flags::ECT.with(Flags::L4S), false);
        assert!(!log.has_news());
        log.arrived(Flags::ECT.with(Flags::CE), true);
        assert!(log.has_news());
        // a duplicate hides a loss in expected minus received
        let reported = EcnCounts { ect1: 1, duplicates: 1, ..counts(1, 1, 1, 3) };
        assert_eq!(log.report(2), reported);
    }
}

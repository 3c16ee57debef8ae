//! Whether the path carries ECN (RFC 9000 section 13.4.2 and appendix A.4).

/// So many packets try it before one is acknowledged.
const TESTING_PACKETS: u32 = 10;

/// What is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Packets are marked as capable, so many of them so far.
    Testing(u32),
    /// Enough were; the answer is waited for.
    Unknown,
    /// It does.
    Capable,
    /// It does not, or the flow does not want it.
    Failed,
}

/// ECN of one path, one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validation {
    state: State,
    /// What the other end has told of.
    ect: u32,
    ce: u32,
    /// ECN-capable packets sent.
    sent: u32,
}

impl Validation {
    /// Before the first packet; `wanted`: the flow is to use ECN.
    pub(super) fn new(wanted: bool) -> Validation {
        let state = if wanted { State::Testing(0) } else { State::Failed };
        Validation { state, ect: 0, ce: 0, sent: 0 }
    }

    /// A packet leaves: whether it is marked as capable.
    #[inline]
    pub(super) fn leaves(&mut self) -> bool {
        match &mut self.state {
            State::Failed | State::Unknown => return false,
            State::Capable => {}
            State::Testing(count) => {
                *count += 1;
                if *count >= TESTING_PACKETS {
                    self.state = State::Unknown;
                }
            }
        }
        self.sent += 1;
        true
    }

    /// An acknowledgement tells of so many packets with ECT and CE, and newly acknowledges `acked` that left with ECT. Gives how many
    /// more were marked.
    #[inline]
    pub(super) fn on_ecn_counts(&mut self, ect: u32, ce: u32, acked: u32) -> u32 {
        if self.state == State::Failed || acked == 0 && ect == self.ect && ce == self.ce {
            return 0;
        }
        if ect < self.ect || ce < self.ce {
            return 0; // an older one
        }
        let (more, marked) = (ect - self.ect, ce - self.ce);
        if more + marked < acked || ect + ce > self.sent {
            self.state = State::Failed;
            return 0;
        }
        (self.ect, self.ce) = (ect, ce);
        if acked > 0 {
            self.state = State::Capable;
        }
        marked
    }

    /// All that tried it were lost: something on the path may drop such packets.
    pub(super) fn all_lost(&mut self) {
        if matches!(self.state, State::Testing(_) | State::Unknown) {
            self.state = State::Failed;
        }
    }

    #[cfg(test)]
    pub(super) fn has_failed(&self) -> bool {
        self.state == State::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_try_it_and_the_rest_waits_for_the_answer() {
        let mut ecn = Validation::new(true);
        assert_eq!((0..12).filter(|_| ecn.leaves()).count(), 10);
        assert_eq!(ecn.on_ecn_counts(2, 0, 2), 0);
        assert!(ecn.leaves());
        assert_eq!(ecn.on_ecn_counts(3, 2, 3), 2, "marks count");
        assert!(!ecn.has_failed());
        assert_eq!(ecn.on_ecn_counts(3, 1, 0), 0, "an acknowledgement that was overtaken");
    }

    #[test]
    fn what_the_path_clears_or_makes_up_is_not_ecn() {
        let mut cleared = Validation::new(true);
        cleared.leaves();
        cleared.on_ecn_counts(0, 0, 1);
        assert!(cleared.has_failed() && !cleared.leaves());
        let mut made_up = Validation::new(true);
        made_up.leaves();
        made_up.on_ecn_counts(5, 0, 1);
        assert!(made_up.has_failed());
        let mut dropped = Validation::new(true);
        assert!((0..10).all(|_| dropped.leaves()));
        dropped.all_lost();
        assert!(dropped.has_failed());
    }
}

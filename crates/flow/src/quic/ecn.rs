//! ECN validation of the path (RFC 9000 section 13.4.2 and appendix A.4).

/// Number of ECN-capable packets sent before one is acknowledged.
const TESTING_PACKETS: u32 = 10;

/// The state of validation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Packets are sent as ECN-capable; the number sent so far.
    Testing(u32),
    /// Enough were sent; validation waits for acknowledgements.
    Unknown,
    /// The path supports ECN.
    Capable,
    /// The path does not support ECN, or the flow does not use it.
    Failed,
}

/// ECN of one path in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validation {
    state: State,
    /// The other end's last ECN counts.
    ect: u32,
    ce: u32,
    /// ECN-capable packets sent.
    sent: u32,
}

impl Validation {
    /// The state before the first packet; `wanted`: the flow uses ECN.
    pub(super) fn new(wanted: bool) -> Validation {
        let state = if wanted { State::Testing(0) } else { State::Failed };
        Validation { state, ect: 0, ce: 0, sent: 0 }
    }

    /// Decides whether the next packet is sent as ECN-capable.
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

    /// Processes the counts of an acknowledgement: `ect` and `ce` packets in total, and `acked` newly acknowledged
    /// packets that were sent with ECT. Returns the number of newly marked packets.
    #[inline]
    pub(super) fn on_ecn_counts(&mut self, ect: u32, ce: u32, acked: u32) -> u32 {
        if self.state == State::Failed || acked == 0 && ect == self.ect && ce == self.ce {
            return 0;
        }
        if ect < self.ect || ce < self.ce {
            return 0; // an older acknowledgement
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

    /// All ECN-capable packets were lost: the path may drop them.
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

//! Groups of packets sent together, and how the spacing of two groups changed on the path.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/inter_arrival_delta.cc; draft-ietf-rmcat-gcc-02 sections
//! 5.2 (pre-filtering) and 5.1 (arrival-time model).

use super::{millis, nanos};
use paceline_units::{Span, Time};

/// Packets sent within this time of a group's first packet belong to the group (kSendTimeGroupLength of
/// delay_based_bwe.cc; burst_time of the draft).
const SEND_TIME_GROUP_LENGTH: i64 = Span::from_millis(5).0 as i64;
/// A packet that arrives at most this long after the previous one, and in less time than between their sending, was
/// queued with it: kBurstDeltaThreshold.
const BURST_DELTA_THRESHOLD: i64 = Span::from_millis(5).0 as i64;
/// Such queued packets extend a group to at most this time at the receiver: kMaxBurstDuration.
const MAX_BURST_DURATION: i64 = Span::from_millis(100).0 as i64;
/// If arrivals are this much further apart than the feedback on them, the receiver's clock has jumped:
/// kArrivalTimeOffsetThreshold.
const ARRIVAL_TIME_OFFSET_THRESHOLD: i64 = Span::from_secs(3).0 as i64;
/// After this many consecutive packets whose group arrived before the previous group, reset everything:
/// kReorderedResetThreshold.
const REORDERED_RESET_THRESHOLD: u32 = 3;

/// The change from one group to the next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Deltas {
    /// From the last departure of the earlier group to that of the later, in milliseconds.
    pub sent_ms: f64,
    /// From the last arrival of the earlier group to that of the later, in milliseconds; not negative.
    pub arrived_ms: f64,
    /// The later group's size minus the earlier one's, in bytes.
    pub size: f64,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    size: f64,
    first_sent: Time,
    last_sent: Time,
    first_arrival: Time,
    last_arrival: Time,
    /// When feedback on its last packet arrived, by the sender's clock.
    last_feedback: Time,
}

impl Group {
    fn of(sent: Time, arrived: Time, feedback_at: Time, size: f64) -> Group {
        Group {
            size,
            first_sent: sent,
            last_sent: sent,
            first_arrival: arrived,
            last_arrival: arrived,
            last_feedback: feedback_at,
        }
    }

    /// Whether a packet sent at `sent` was queued with this group's last packet.
    fn waited_with(&self, sent: Time, arrived: Time) -> bool {
        let between = (nanos(arrived, self.last_arrival), nanos(sent, self.last_sent));
        between.1 == 0
            || between.0 < between.1
                && between.0 <= BURST_DELTA_THRESHOLD
                && nanos(arrived, self.first_arrival) < MAX_BURST_DURATION
    }

    fn ends_before(&self, sent: Time, arrived: Time) -> bool {
        !self.waited_with(sent, arrived) && nanos(sent, self.first_sent) > SEND_TIME_GROUP_LENGTH
    }
}

/// Sorts packets into groups.
#[derive(Clone, Debug, Default)]
pub struct InterArrival {
    before: Option<Group>,
    current: Option<Group>,
    reordered: u32,
}

impl InterArrival {
    /// Handles a packet of `size` bytes sent at `sent` that arrived at `arrived` by the receiver's clock; feedback on
    /// it arrived at `now`. If it begins a group, returns the change between the two groups before it.
    pub fn packet(&mut self, sent: Time, arrived: Time, now: Time, size: f64) -> Option<Deltas> {
        let Some(current) = &mut self.current else {
            self.current = Some(Group::of(sent, arrived, now, size));
            return None;
        };
        if sent < current.first_sent {
            return None;
        }
        if !current.ends_before(sent, arrived) {
            current.last_sent = current.last_sent.max(sent);
            current.size += size;
            current.last_arrival = arrived;
            current.last_feedback = now;
            return None;
        }
        let current = *current;
        let deltas = match self.before {
            None => None,
            Some(before) => Some(self.compare(&before, &current)?),
        };
        self.before = Some(current);
        self.current = Some(Group::of(sent, arrived, now, size));
        deltas
    }

    /// `None` if the comparison is invalid; then the packet that ended the later group is ignored.
    fn compare(&mut self, before: &Group, current: &Group) -> Option<Deltas> {
        let apart = nanos(current.last_arrival, before.last_arrival);
        if apart - nanos(current.last_feedback, before.last_feedback) >= ARRIVAL_TIME_OFFSET_THRESHOLD {
            *self = InterArrival::default();
            return None;
        }
        if apart < 0 {
            self.reordered += 1;
            if self.reordered >= REORDERED_RESET_THRESHOLD {
                *self = InterArrival::default();
            }
            return None;
        }
        self.reordered = 0;
        Some(Deltas {
            sent_ms: millis(current.last_sent, before.last_sent),
            arrived_ms: millis(current.last_arrival, before.last_arrival),
            size: current.size - before.size,
        })
    }
}

#[cfg(test)]
mod tests {
    //! The cases and numbers of libwebrtc's modules/remote_bitrate_estimator/inter_arrival_unittest.cc (the class that
    //! this one was branched from there), except those of wrapping timestamps, which do not occur here.

    use super::*;

    /// Starts a new group: slightly more than 5 ms, in microseconds.
    const NEXT: u64 = 5020;

    struct Case(InterArrival);

    impl Case {
        fn at(&mut self, sent_us: u64, arrived_ms: u64, size: f64) -> Option<(f64, f64, f64)> {
            let arrived = Time(arrived_ms * 1_000_000);
            let deltas = self.0.packet(Time(sent_us * 1000), arrived, arrived, size);
            deltas.map(|d| ((d.sent_ms * 1000.0).round(), d.arrived_ms, d.size))
        }
    }

    fn case() -> Case {
        Case(InterArrival::default())
    }

    #[test]
    fn the_third_group_tells_of_the_first_two() {
        let mut case = case();
        assert_eq!(case.at(0, 17, 1.0), None);
        assert_eq!(case.at(NEXT, 23, 2.0), None);
        assert_eq!(case.at(2 * NEXT, 29, 1.0), Some((5020.0, 6.0, 1.0)));
        assert_eq!(case.at(3 * NEXT, 35, 2.0), Some((5020.0, 6.0, -1.0)));
    }

    /// Packets within 5 ms of the group's first, in order or not, form one group; a packet sent before the first is
    /// ignored.
    #[test]
    fn a_group_accumulates() {
        let rising: Vec<u64> = (1..=10).map(|i| NEXT + 20 * i).collect();
        let falling: Vec<u64> = (1..=10).rev().map(|i| NEXT + 20 * i).collect();
        for times in [rising, falling] {
            let mut case = case();
            assert_eq!(case.at(0, 17, 1.0), None);
            assert_eq!(case.at(NEXT, 28, 2.0), None);
            let mut arrival = 28;
            for sent in times {
                arrival += 6;
                assert_eq!(case.at(sent, arrival, 1.0), None);
            }
            assert_eq!(case.at(0, 281, 100.0), None, "out of order");
            assert_eq!(case.at(2 * NEXT, 500, 100.0), Some((5220.0, 88.0 - 17.0, 11.0)));
        }
    }

    /// A packet that arrives within 5 ms of the previous one, though sent 30 ms after it, was queued with it.
    #[test]
    fn a_burst_is_one_group() {
        let mut case = case();
        assert_eq!(case.at(0, 17, 1.0), None);
        let (mut sent, mut arrival) = (NEXT, 100);
        for _ in 0..10 {
            sent += 30_000;
            arrival += 5;
            assert_eq!(case.at(sent, arrival, 1.0), None);
        }
        assert_eq!(case.at(sent + 30_000, arrival + 6, 100.0), Some((305_020.0, 133.0, 9.0)));
    }

    #[test]
    fn no_burst_lasts_for_ever() {
        let mut case = case();
        case.at(0, 17, 1.0);
        let groups = (1..=60).filter(|i| case.at(NEXT + 30_000 * i, 100 + 5 * i, 1.0).is_some()).count();
        assert_eq!(groups, 2, "300 ms of arrivals, 100 ms at most in a group");
    }

    #[test]
    fn packets_6_ms_apart_are_no_burst() {
        let mut case = case();
        assert_eq!(case.at(0, 17, 1.0), None);
        assert_eq!(case.at(NEXT, 28, 2.0), None);
        assert_eq!(case.at(NEXT + 30_000, 34, 100.0), Some((5020.0, 11.0, 1.0)));
    }

    /// Steps of 30 ms: times of sending, arrival and feedback in milliseconds.
    struct Clocks(InterArrival, [u64; 3]);

    impl Clocks {
        fn next(&mut self, jump: i64) -> Option<Deltas> {
            self.1 = self.1.map(|t| t + 30);
            self.1[1] = self.1[1].saturating_add_signed(jump);
            let [sent, arrived, feedback_at] = self.1.map(|t| Time(t * 1_000_000));
            self.0.packet(sent, arrived, feedback_at, 1000.0)
        }
    }

    const STEADY: Deltas = Deltas { sent_ms: 30.0, arrived_ms: 30.0, size: 0.0 };

    #[test]
    fn a_receiver_clock_that_jumps_ahead_begins_anew() {
        let mut clocks = Clocks(InterArrival::default(), [10_000, 20_000, 30_000]);
        assert_eq!([clocks.next(0), clocks.next(0)], [None, None]);
        assert_eq!(clocks.next(3000), Some(STEADY), "the jump is not in the two groups before");
        assert_eq!(clocks.next(0), None, "now it is");
        assert_eq!([clocks.next(0), clocks.next(0)], [None, None]);
        assert_eq!(clocks.next(0), Some(STEADY));
    }

    #[test]
    fn a_receiver_clock_that_jumps_back_begins_anew_after_three() {
        let mut clocks = Clocks(InterArrival::default(), [10_000, 20_000, 30_000]);
        assert_eq!([clocks.next(0), clocks.next(0)], [None, None]);
        assert_eq!(clocks.next(0), Some(STEADY));
        assert_eq!(clocks.next(-1000), None, "it came before the one sent earlier, so they waited together");
        for _ in 0..5 {
            assert_eq!(clocks.next(0), None, "three that tell nothing, and two to begin");
        }
        assert_eq!(clocks.next(0), Some(STEADY));
    }
}

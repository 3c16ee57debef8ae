//! Snapshots of the delivery state when each outstanding segment was sent, for a controller that needs samples of the
//! delivery rate ([`Sampler`]). Each segment counts as a full one, as in Linux.

use super::scoreboard::{Delivered, Scoreboard};
use crate::delivery::{Sampler, Snapshot};
use paceline_control::{LostSegment, RateSample};
use paceline_units::Time;

/// The connection's delivery state (C), in segments.
#[derive(Debug)]
pub(super) struct Delivery {
    /// The snapshots of outstanding segments, at the places that [`Scoreboard`] has for them. An acknowledged segment's
    /// snapshot stays until the next segment is sent.
    slots: Vec<Snapshot>,
    sampler: Sampler,
}

impl Delivery {
    pub(super) fn new() -> Delivery {
        Delivery { slots: Vec::new(), sampler: Sampler::new() }
    }

    /// Records the snapshot for the segment at `place`, sent at `time`, with `in_flight` segments then in flight.
    #[inline(always)]
    pub(super) fn sent(&mut self, place: usize, sent: &Scoreboard, time: Time, in_flight: u32) {
        let left = self.sampler.sent(time, in_flight, in_flight <= 1);
        if self.slots.len() != sent.places() {
            self.grow(sent);
        }
        self.slots[place] = left;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, sent: &Scoreboard) {
        let mut slots = vec![Snapshot::default(); sent.places()];
        for seq in sent.outstanding() {
            let to = seq as usize & (slots.len() - 1);
            slots[to] = self.at(seq).unwrap_or_default();
        }
        self.slots = slots;
    }

    /// The snapshot of the segment's last transmission.
    fn at(&self, seq: u32) -> Option<Snapshot> {
        self.slots.get(seq as usize & self.slots.len().wrapping_sub(1)).copied()
    }

    /// Updates the sampler: an acknowledgement reports the segment for the first time.
    #[inline]
    pub(super) fn delivered(&mut self, d: &Delivered, now: Time) {
        let Some(left) = self.slots.get(d.place) else { return };
        self.sampler.delivered(left, 1, (d.sent, d.seq), d.retransmitted, now);
    }

    /// Updates the sampler: the segment was found lost.
    pub(super) fn lost(&mut self, seq: u32, segment: u64) -> Option<LostSegment> {
        let left = self.at(seq)?;
        Some(self.sampler.lost(&left, seq, 1, segment))
    }

    /// The handshake is over: what it lost was no data.
    pub(super) fn established(&mut self) {
        self.sampler.forget_losses();
    }

    /// The rate sample of an acknowledgement, for segments of `segment` bytes; `None`: it delivered nothing.
    #[inline]
    pub(super) fn sample(&mut self, now: Time, segment: u64, in_flight: u32) -> Option<RateSample> {
        self.sampler.sample(now, segment, in_flight)
    }

    /// Marks the connection application-limited, with `in_flight` segments in flight.
    pub(super) fn limit(&mut self, in_flight: u32) {
        self.sampler.limit(in_flight);
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.sampler.is_app_limited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::Span;

    /// A sampler, with the scoreboard beside it.
    struct Pair(Scoreboard, Delivery);

    impl Pair {
        fn new() -> Pair {
            Pair(Scoreboard::new(0, true), Delivery::new())
        }
        fn sends(&mut self, seq: u32, time: Time, in_flight: u32) {
            let place = self.0.leaves(seq, time).unwrap();
            self.1.sent(place, &self.0, time, in_flight);
        }
        fn arrives(&mut self, seq: u32, now: Time) {
            self.0.acked(seq + 1, |d| self.1.delivered(&d, now));
        }
    }

    const fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    /// Ten segments are sent, one per millisecond; the path delivers one every 2 ms, the first after 10 ms.
    #[test]
    fn the_slower_of_sending_and_acknowledging_is_the_rate() {
        let mut pair = Pair::new();
        for i in 0..10 {
            pair.sends(i, ms(u64::from(i)), i + 1);
        }
        let mut sample = RateSample::default();
        for i in 0..10 {
            let now = ms(10 + 2 * u64::from(i));
            pair.arrives(i, now);
            sample = pair.1.sample(now, 1000, 9 - i).unwrap();
        }
        // P is segment 9, sent at 9 ms when nothing had been delivered since 0 ms: 10 segments in 28 ms
        assert_eq!((sample.delivered, sample.interval), (10_000, Span::from_millis(28)));
        assert_eq!(sample.rtt, Some(Span::from_millis(19)));
        assert_eq!((sample.total, sample.prior_delivered, sample.tx_in_flight), (10_000, 0, 10_000));
        // one sent now, delivered 10 ms later
        pair.sends(10, ms(28), 1);
        pair.arrives(10, ms(38));
        let sample = pair.1.sample(ms(38), 1000, 0).unwrap();
        assert_eq!((sample.delivered, sample.interval), (1000, Span::from_millis(10)), "nothing was in flight before");
    }

    /// The application-limited phase ends when everything sent in it, and one segment more, has been delivered.
    #[test]
    fn samples_are_the_application_s_until_the_bubble_is_gone() {
        let mut pair = Pair::new();
        pair.sends(0, ms(0), 1);
        pair.1.limit(1); // nothing more to send
        pair.sends(1, ms(1), 2);
        pair.arrives(0, ms(10));
        assert!(!pair.1.sample(ms(10), 1000, 1).unwrap().app_limited, "it had left before");
        pair.arrives(1, ms(11));
        let sample = pair.1.sample(ms(11), 1000, 0).unwrap();
        assert!(sample.app_limited);
        assert!(!pair.1.is_app_limited(), "2 delivered, the bubble ended at 1");
    }

    /// A segment whose first copy arrives right after its retransmission was sent gives no rate.
    #[test]
    fn an_interval_below_the_least_round_trip_is_not_trusted() {
        let mut pair = Pair::new();
        pair.sends(0, ms(0), 1);
        pair.sends(1, ms(0), 2);
        pair.arrives(0, ms(50));
        assert_eq!(pair.1.sample(ms(50), 1000, 1).unwrap().interval, Span::from_millis(50));
        let lost = pair.1.lost(1, 1000).unwrap();
        assert_eq!((lost.lost, lost.tx_in_flight, lost.total), (1000, 2000, 1000));
        pair.sends(1, ms(55), 1);
        pair.arrives(1, ms(60));
        let sample = pair.1.sample(ms(60), 1000, 0).unwrap();
        assert_eq!((sample.interval, sample.rtt, sample.newly_lost), (Span::ZERO, None, 1000));
        assert!(sample.rate().abs() < f64::EPSILON);
    }

    /// A segment's snapshot stays available when the ring grows, and until the next segment is sent.
    #[test]
    fn what_was_known_moves_with_the_segments() {
        let mut pair = Pair::new();
        for seq in 0..40 {
            pair.sends(seq, ms(u64::from(seq)), seq + 1);
            assert!((seq / 2..=seq).all(|s| pair.1.at(s).is_some_and(|left| left.tx_in_flight == s + 1)), "{seq}");
            if seq % 2 == 1 {
                pair.arrives(seq / 2, ms(100));
                assert_eq!(pair.1.at(seq / 2).map(|left| left.tx_in_flight), Some(seq / 2 + 1));
            }
        }
        assert_eq!(pair.1.slots.len(), 32);
    }
}

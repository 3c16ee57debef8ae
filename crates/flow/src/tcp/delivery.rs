//! How fast the path delivers: what was known when each outstanding segment left, and what its delivery says.
//!
//! Source: draft-ietf-ccwg-bbr (August 2026), "Detailed Delivery Rate Sampling Algorithm"; Linux `net/ipv4/tcp_rate.c`. Segments
//! count as full ones, as in Linux; only flows whose controller asks for samples have this.

use super::sent::{Delivered, Sent};
use paceline_control::{LostSegment, RateSample};
use paceline_units::{Span, Time};

/// What was known when a segment left (P), in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Snapshot {
    first_send_time: Time,
    delivered_time: Time,
    delivered: u64,
    lost: u64,
    tx_in_flight: u32,
    app_limited: bool,
}

/// The newest segment that an acknowledgement delivers, with what was known when it left.
#[derive(Clone, Copy, Debug)]
struct Newest {
    send_time: Time,
    seq: u32,
    /// It was sent before: its round trip is ambiguous.
    again: bool,
    left: Snapshot,
}

/// The connection's side (C), in segments.
#[derive(Debug)]
pub(super) struct Delivery {
    /// Of the outstanding segments, each in the place that [`Sent`] has for it; of one that was acknowledged, until the next leaves.
    slots: Vec<Snapshot>,
    delivered: u64,
    delivered_time: Time,
    first_send_time: Time,
    lost: u64,
    /// Samples are the application's until so many are delivered; 0: they are not.
    app_limited: u64,
    min_rtt: Span,
    /// Of the acknowledgement that is being read: the newest segment, and counts.
    newest: Option<Newest>,
    newly_acked: u64,
    newly_lost: u64,
}

impl Delivery {
    pub(super) fn new() -> Delivery {
        Delivery {
            slots: Vec::new(),
            delivered: 0,
            delivered_time: Time::ZERO,
            first_send_time: Time::ZERO,
            lost: 0,
            app_limited: 0,
            min_rtt: Span::MAX,
            newest: None,
            newly_acked: 0,
            newly_lost: 0,
        }
    }

    /// OnPacketSent: the segment at this place of `sent` leaves at `time`, for the first time or again, and `in_flight` are then in
    /// flight.
    #[inline(always)]
    pub(super) fn sent(&mut self, place: usize, sent: &Sent, time: Time, in_flight: u32) {
        if in_flight <= 1 {
            self.first_send_time = time;
            self.delivered_time = time;
        }
        if self.slots.len() != sent.places() {
            self.grow(sent);
        }
        self.slots[place] = Snapshot {
            first_send_time: self.first_send_time,
            delivered_time: self.delivered_time,
            delivered: self.delivered,
            lost: self.lost,
            tx_in_flight: in_flight,
            app_limited: self.app_limited != 0,
        };
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, sent: &Sent) {
        let mut slots = vec![Snapshot::default(); sent.places()];
        for seq in sent.outstanding() {
            let to = seq as usize & (slots.len() - 1);
            slots[to] = self.at(seq).unwrap_or_default();
        }
        self.slots = slots;
    }

    /// What was known when the segment left.
    fn at(&self, seq: u32) -> Option<Snapshot> {
        self.slots.get(seq as usize & self.slots.len().wrapping_sub(1)).copied()
    }

    /// UpdateRateSample: an acknowledgement tells of the segment for the first time.
    #[inline]
    pub(super) fn delivered(&mut self, d: &Delivered, now: Time) {
        let Some(&left) = self.slots.get(d.place) else { return };
        self.delivered += 1;
        self.newly_acked += 1;
        self.delivered_time = now;
        if self.newest.is_none_or(|newest| (d.sent, d.seq) > (newest.send_time, newest.seq)) {
            self.newest = Some(Newest { send_time: d.sent, seq: d.seq, again: d.again, left });
        }
    }

    /// The segment was found lost.
    pub(super) fn lost(&mut self, seq: u32, segment: u64) -> Option<LostSegment> {
        let slot = self.at(seq)?;
        self.lost += 1;
        self.newly_lost += 1;
        Some(LostSegment {
            seq,
            size: segment,
            total: self.delivered * segment,
            tx_in_flight: u64::from(slot.tx_in_flight) * segment,
            lost: (self.lost - slot.lost) * segment,
            app_limited: slot.app_limited,
        })
    }

    /// GenerateRateSample, of segments of `segment` bytes; `None`: the acknowledgement delivers nothing.
    #[inline]
    pub(super) fn sample(&mut self, now: Time, segment: u64, in_flight: u32) -> Option<RateSample> {
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let Newest { send_time, again, left: p, .. } = self.newest.take()?;
        self.first_send_time = self.first_send_time.max(send_time);
        let rtt = (!again).then(|| now.since(send_time));
        self.min_rtt = rtt.map_or(self.min_rtt, |rtt| self.min_rtt.min(rtt));
        let interval = send_time.since(p.first_send_time).max(now.since(p.delivered_time));
        let newly_acked = core::mem::take(&mut self.newly_acked);
        Some(RateSample {
            total: self.delivered * segment,
            newly_acked: newly_acked * segment,
            newly_lost: core::mem::take(&mut self.newly_lost) * segment,
            newly_marked: 0,
            prior_delivered: p.delivered * segment,
            delivered: (self.delivered - p.delivered) * segment,
            interval: if interval < self.min_rtt && self.min_rtt < Span::MAX { Span::ZERO } else { interval },
            rtt,
            tx_in_flight: u64::from(p.tx_in_flight) * segment,
            lost: (self.lost - p.lost) * segment,
            app_limited: p.app_limited,
            prior_in_flight: 0,
            in_flight: u64::from(in_flight) * segment,
            window_limited: false,
        })
    }

    /// MarkConnectionAppLimited, with `in_flight` in flight.
    pub(super) fn limit(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples beside the record of what was sent.
    struct Pair(Sent, Delivery);

    impl Pair {
        fn new() -> Pair {
            Pair(Sent::new(0, true), Delivery::new())
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

    /// Ten segments, one a millisecond, of which the path delivers one each 2 ms after 10 ms.
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

    /// "Application-limited" ends when all that was sent meanwhile has been delivered, and one more.
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

    /// A segment that was sent twice, and whose first copy comes right after the second left, gives no rate.
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

    /// What was known when a segment left is found where it lies, whatever the number of places, and until the next one leaves.
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

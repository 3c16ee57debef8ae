//! How fast the path delivers: what was known when each outstanding segment left, and what its delivery says.
//!
//! Source: draft-ietf-ccwg-bbr (August 2026), "Detailed Delivery Rate Sampling Algorithm"; Linux `net/ipv4/tcp_rate.c`. Segments
//! count as full ones, as in Linux; only flows whose controller asks for samples have this.

use super::ring::Ring;
use paceline_control::{LostSegment, RateSample};
use paceline_units::{Span, Time};

/// What was known when a segment left (P), in segments.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    send_time: Time,
    first_send_time: Time,
    delivered_time: Time,
    delivered: u64,
    lost: u64,
    tx_in_flight: u32,
    app_limited: bool,
    /// It was sent before: its round trip is ambiguous.
    again: bool,
}

/// The connection's side (C), in segments.
#[derive(Debug)]
pub(super) struct Delivery {
    slots: Ring<Snapshot>,
    delivered: u64,
    delivered_time: Time,
    first_send_time: Time,
    lost: u64,
    /// Samples are the application's until so many are delivered; 0: they are not.
    app_limited: u64,
    min_rtt: Span,
    /// Of the acknowledgement that is being read: the newest segment, with when it left, and counts.
    newest: Option<(Time, u32)>,
    newly_acked: u64,
    newly_lost: u64,
}

impl Delivery {
    pub(super) fn new(first: u32) -> Delivery {
        Delivery {
            slots: Ring::new(first),
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

    /// OnPacketSent: the segment leaves at `time`, for the first time or again, and `in_flight` are then in flight.
    #[inline(always)]
    pub(super) fn sent(&mut self, seq: u32, time: Time, in_flight: u32) {
        if in_flight <= 1 {
            self.first_send_time = time;
            self.delivered_time = time;
        }
        let snapshot = Snapshot {
            send_time: time,
            first_send_time: self.first_send_time,
            delivered_time: self.delivered_time,
            delivered: self.delivered,
            lost: self.lost,
            tx_in_flight: in_flight,
            app_limited: self.app_limited != 0,
            again: false,
        };
        if self.slots.len() == 0 {
            self.slots.begin(seq);
        }
        if seq == self.slots.end() {
            self.slots.push(snapshot);
        } else if let Some(i) = self.slots.place(seq) {
            self.slots[i] = Snapshot { again: true, ..snapshot };
        }
    }

    /// UpdateRateSample: an acknowledgement tells of the segment for the first time.
    #[inline]
    pub(super) fn delivered(&mut self, seq: u32, now: Time) {
        let Some(slot) = self.slots.get(seq) else { return };
        self.delivered += 1;
        self.newly_acked += 1;
        self.delivered_time = now;
        let this = (slot.send_time, seq);
        if self.newest.is_none_or(|newest| this > newest) {
            self.newest = Some(this);
        }
    }

    /// Everything below `una` is acknowledged, its sample made, and need not be known any more.
    #[inline]
    pub(super) fn forget(&mut self, una: u32) {
        self.slots.drop_below(una);
    }

    /// The segment was found lost.
    pub(super) fn lost(&mut self, seq: u32, segment: u64) -> Option<LostSegment> {
        let slot = *self.slots.get(seq)?;
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
        let (_, newest) = self.newest.take()?;
        let p = self.slots.get(newest)?; // what is acknowledged is forgotten only after this
        self.first_send_time = self.first_send_time.max(p.send_time);
        let rtt = (!p.again).then(|| now.since(p.send_time));
        self.min_rtt = rtt.map_or(self.min_rtt, |rtt| self.min_rtt.min(rtt));
        let interval = p.send_time.since(p.first_send_time).max(now.since(p.delivered_time));
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

    const fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    /// Ten segments, one a millisecond, of which the path delivers one each 2 ms after 10 ms.
    #[test]
    fn the_slower_of_sending_and_acknowledging_is_the_rate() {
        let mut delivery = Delivery::new(0);
        for i in 0..10 {
            delivery.sent(i, ms(u64::from(i)), i + 1);
        }
        let mut sample = RateSample::default();
        for i in 0..10 {
            let now = ms(10 + 2 * u64::from(i));
            delivery.delivered(i, now);
            sample = delivery.sample(now, 1000, 9 - i).unwrap();
            delivery.forget(i + 1);
        }
        // P is segment 9, sent at 9 ms when nothing had been delivered since 0 ms: 10 segments in 28 ms
        assert_eq!((sample.delivered, sample.interval), (10_000, Span::from_millis(28)));
        assert_eq!(sample.rtt, Some(Span::from_millis(19)));
        assert_eq!((sample.total, sample.prior_delivered, sample.tx_in_flight), (10_000, 0, 10_000));
        // one sent now, delivered 10 ms later
        delivery.sent(10, ms(28), 1);
        delivery.delivered(10, ms(38));
        let sample = delivery.sample(ms(38), 1000, 0).unwrap();
        assert_eq!((sample.delivered, sample.interval), (1000, Span::from_millis(10)), "nothing was in flight before");
    }

    /// "Application-limited" ends when all that was sent meanwhile has been delivered, and one more.
    #[test]
    fn samples_are_the_application_s_until_the_bubble_is_gone() {
        let mut delivery = Delivery::new(0);
        delivery.sent(0, ms(0), 1);
        delivery.limit(1); // nothing more to send
        delivery.sent(1, ms(1), 2);
        delivery.delivered(0, ms(10));
        assert!(!delivery.sample(ms(10), 1000, 1).unwrap().app_limited, "it had left before");
        delivery.delivered(1, ms(11));
        let sample = delivery.sample(ms(11), 1000, 0).unwrap();
        assert!(sample.app_limited);
        assert!(!delivery.is_app_limited(), "2 delivered, the bubble ended at 1");
    }

    /// A segment that was sent twice, and whose first copy comes right after the second left, gives no rate.
    #[test]
    fn an_interval_below_the_least_round_trip_is_not_trusted() {
        let mut delivery = Delivery::new(0);
        delivery.sent(0, ms(0), 1);
        delivery.sent(1, ms(0), 2);
        delivery.delivered(0, ms(50));
        assert_eq!(delivery.sample(ms(50), 1000, 1).unwrap().interval, Span::from_millis(50));
        let lost = delivery.lost(1, 1000).unwrap();
        assert_eq!((lost.lost, lost.tx_in_flight, lost.total), (1000, 2000, 1000));
        delivery.sent(1, ms(55), 1);
        delivery.delivered(1, ms(60));
        let sample = delivery.sample(ms(60), 1000, 0).unwrap();
        assert_eq!((sample.interval, sample.rtt, sample.newly_lost), (Span::ZERO, None, 1000));
        assert!(sample.rate().abs() < f64::EPSILON);
    }
}

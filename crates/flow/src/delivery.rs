//! Delivery rate sampling: a snapshot when each packet is sent, and a rate sample when it is delivered.
//!
//! Source: draft-ietf-ccwg-bbr (August 2026), "Detailed Delivery Rate Sampling Algorithm"; Linux `net/ipv4/tcp_rate.c`.
//! The unit depends on the protocol: TCP counts segments, each as a full one, as Linux does; QUIC counts bytes.

use paceline_control::{LostSegment, RateSample};
use paceline_units::{Span, Time};

/// The state when a packet was sent (P), in the protocol's units.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    first_send_time: Time,
    delivered_time: Time,
    delivered: u64,
    lost: u64,
    /// In flight after it was sent, itself included.
    pub(crate) tx_in_flight: u32,
    app_limited: bool,
}

/// The newest packet that an acknowledgement delivers, with its snapshot.
#[derive(Clone, Copy, Debug)]
struct Newest {
    send_time: Time,
    number: u32,
    /// Its round-trip time is ambiguous: it was retransmitted under the same number.
    again: bool,
    left: Snapshot,
}

/// The connection's state (C).
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    delivered: u64,
    delivered_time: Time,
    first_send_time: Time,
    lost: u64,
    /// Samples are application-limited until this much is delivered; 0: they are not.
    app_limited: u64,
    min_rtt: Span,
    /// For the current acknowledgement: the newest packet, and totals.
    newest: Option<Newest>,
    newly_acked: u64,
    newly_lost: u64,
}

impl Snapshot {
    /// The snapshot of a packet for which none was kept.
    pub(crate) const NONE: Snapshot = Snapshot {
        first_send_time: Time::ZERO,
        delivered_time: Time::ZERO,
        delivered: 0,
        lost: 0,
        tx_in_flight: 0,
        app_limited: false,
    };
}

impl Sampler {
    pub(crate) fn new() -> Sampler {
        Sampler {
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

    /// OnPacketSent: a packet is sent at `time`; `in_flight` includes it; `alone`: nothing else is in flight.
    #[inline(always)]
    pub(crate) fn sent(&mut self, time: Time, in_flight: u32, alone: bool) -> Snapshot {
        if alone {
            self.first_send_time = time;
            self.delivered_time = time;
        }
        Snapshot {
            first_send_time: self.first_send_time,
            delivered_time: self.delivered_time,
            delivered: self.delivered,
            lost: self.lost,
            tx_in_flight: in_flight,
            app_limited: self.app_limited != 0,
        }
    }

    /// UpdateRateSample: an acknowledgement newly delivers a packet of `size`, sent at `sent`.
    #[inline]
    pub(crate) fn delivered(
        &mut self,
        left: &Snapshot,
        size: u64,
        (sent, number): (Time, u32),
        again: bool,
        now: Time,
    ) {
        self.delivered += size;
        self.newly_acked += size;
        self.delivered_time = now;
        if self.newest.is_none_or(|newest| (sent, number) > (newest.send_time, newest.number)) {
            self.newest = Some(Newest { send_time: sent, number, again, left: *left });
        }
    }

    /// Records the loss of a packet of `size`; `unit`: bytes per unit.
    pub(crate) fn lost(&mut self, left: &Snapshot, number: u32, size: u64, unit: u64) -> LostSegment {
        self.lost += size;
        self.newly_lost += size;
        LostSegment {
            seq: number,
            size: size * unit,
            total: self.delivered * unit,
            tx_in_flight: u64::from(left.tx_in_flight) * unit,
            lost: (self.lost - left.lost) * unit,
            app_limited: left.app_limited,
        }
    }

    /// Drops the losses not yet sampled: a lost SYN was no data, so it must not end a controller's slow start.
    pub(crate) fn forget_losses(&mut self) {
        self.newly_lost = 0;
    }

    /// GenerateRateSample, with `unit` bytes per unit; `None`: the acknowledgement delivers nothing.
    #[inline]
    pub(crate) fn sample(&mut self, now: Time, unit: u64, in_flight: u32) -> Option<RateSample> {
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
            total: self.delivered * unit,
            newly_acked: newly_acked * unit,
            newly_lost: core::mem::take(&mut self.newly_lost) * unit,
            newly_marked: 0,
            prior_delivered: p.delivered * unit,
            delivered: (self.delivered - p.delivered) * unit,
            interval: if interval < self.min_rtt && self.min_rtt < Span::MAX { Span::ZERO } else { interval },
            rtt,
            tx_in_flight: u64::from(p.tx_in_flight) * unit,
            lost: (self.lost - p.lost) * unit,
            app_limited: p.app_limited,
            prior_in_flight: 0,
            in_flight: u64::from(in_flight) * unit,
            window_limited: false,
        })
    }

    /// MarkConnectionAppLimited, with `in_flight` in flight.
    pub(crate) fn limit(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
    }

    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited != 0
    }
}

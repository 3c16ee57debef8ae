//! The receiving end.

use crate::tfrc::{TfrcConfig, TfrcReceiver};
use crate::{Arrived, ReceiverStats, Segment, Transmit};
use paceline_packet::{Extra, Flags, Packet, Subflow};
use paceline_units::Time;
use std::collections::BTreeMap;

/// The receiving end of a flow of several TFRC connections: a receiver for each, told apart by what their packets say.
///
/// Nothing tells it that a connection has closed: no more comes of it, and a receiver to which nothing comes falls silent.
#[derive(Debug)]
pub struct MultfrcReceiver {
    places: BTreeMap<u16, Place>,
    /// No receiver wakes before it.
    wake: Time,
    stats: ReceiverStats,
    config: TfrcConfig,
}

/// The receivers at one place: of the connection that opened there last, and of the one before, of which packets may be
/// late.
#[derive(Debug)]
struct Place {
    opening: u16,
    receiver: TfrcReceiver,
    before: Option<(u16, TfrcReceiver)>,
}

/// Says whose reports they are, and counts them.
struct Out<'a, T> {
    to: &'a mut T,
    subflow: Subflow,
    stats: &'a mut ReceiverStats,
}

impl<T: Transmit> Transmit for Out<'_, T> {
    fn transmit(&mut self, mut segment: Segment) {
        if let Some(Extra::TfrcReport(subflow, _)) = &mut segment.extra {
            *subflow = self.subflow;
        }
        self.stats.acks += 1;
        self.to.transmit(segment);
    }
}

/// Where reports for a connection that has closed go.
struct Nowhere;

impl Transmit for Nowhere {
    fn transmit(&mut self, _segment: Segment) {}
}

impl MultfrcReceiver {
    /// A receiver that waits for the first packet.
    #[must_use]
    pub fn new(config: &TfrcConfig) -> MultfrcReceiver {
        MultfrcReceiver {
            places: BTreeMap::new(),
            wake: Time::NEVER,
            stats: ReceiverStats::default(),
            config: config.clone(),
        }
    }

    /// Counts up to now, of all connections together; `bytes` are the payloads of packets that had not come before, in any
    /// order.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// When [`MultfrcReceiver::on_timer`] should be called; it may move later without notice.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.wake
    }

    /// The loss event rate of each place's connection as it is now, by place; those that have closed keep theirs.
    pub fn loss_event_rates(&self) -> impl Iterator<Item = f64> {
        self.places.values().map(|place| place.receiver.loss_event_rate())
    }

    /// A packet has come. One without TFRC's header is none of ours; one of a connection older than the two that the place
    /// saw last is counted and goes no further.
    pub fn on_data(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) -> Arrived {
        let Some(Extra::TfrcData(subflow, _)) = extra else { return Arrived::default() };
        if packet.seq == u32::MAX {
            return Arrived::default();
        }
        self.stats.on_received(now, packet.size);
        self.stats.marks += u64::from(packet.flags.has(Flags::CE));
        let place = self.places.entry(subflow.place).or_insert_with(|| Place {
            opening: subflow.opening,
            receiver: TfrcReceiver::new(&self.config),
            before: None,
        });
        let newer = subflow.opening.wrapping_sub(place.opening) as i16;
        if newer > 0 {
            let before = core::mem::replace(&mut place.receiver, TfrcReceiver::new(&self.config));
            place.before = Some((place.opening, before));
            place.opening = subflow.opening;
        }
        let arrived = if newer >= 0 {
            let mut out = Out { to: out, subflow: *subflow, stats: &mut self.stats };
            let arrived = place.receiver.on_data(now, packet, extra, &mut out);
            self.wake = self.wake.min(place.receiver.next_wake());
            arrived
        } else {
            match &mut place.before {
                Some((opening, before)) if *opening == subflow.opening => {
                    before.on_data(now, packet, extra, &mut Nowhere)
                }
                _ => return Arrived::default(),
            }
        };
        if arrived.segments == 0 {
            self.stats.duplicates += 1;
        }
        self.stats.bytes += arrived.bytes;
        arrived
    }

    /// A report of some connection may be due; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if now < self.wake {
            return;
        }
        self.wake = Time::NEVER;
        for (&number, place) in &mut self.places {
            let subflow = Subflow { place: number, opening: place.opening };
            place.receiver.on_timer(now, &mut Out { to: out, subflow, stats: &mut self.stats });
            self.wake = self.wake.min(place.receiver.next_wake());
        }
    }
}

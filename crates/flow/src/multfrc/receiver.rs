//! The receiving end.

use crate::tfrc::{TfrcConfig, TfrcReceiver};
use crate::{Arrived, ReceiverStats, Segment, Transmit};
use paceline_packet::{Extra, Flags, Packet, Subflow};
use paceline_units::Time;
use std::collections::BTreeMap;

/// The receiving end of a flow of several TFRC connections: one receiver per connection, selected by the packet's
/// header.
///
/// It is not told when a connection closes; a receiver without packets falls silent.
#[derive(Debug)]
pub struct MultfrcReceiver {
    places: BTreeMap<u16, Place>,
    /// No receiver needs to wake before this time.
    wake: Time,
    stats: ReceiverStats,
    config: TfrcConfig,
}

/// The receivers at one place: for the connection opened there last, and for the previous one, whose packets may be
/// late.
#[derive(Debug)]
struct Place {
    opening: u16,
    receiver: TfrcReceiver,
    before: Option<(u16, TfrcReceiver)>,
}

/// Adds the connection's number to reports, and counts them.
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

/// A sink for reports for a closed connection.
struct Nowhere;

impl Transmit for Nowhere {
    fn transmit(&mut self, _segment: Segment) {}
}

impl MultfrcReceiver {
    /// Creates a receiver that waits for the first packet.
    #[must_use]
    pub fn new(config: &TfrcConfig) -> MultfrcReceiver {
        MultfrcReceiver {
            places: BTreeMap::new(),
            wake: Time::NEVER,
            stats: ReceiverStats::default(),
            config: config.clone(),
        }
    }

    /// Counters up to now of all connections together; `bytes` are the payloads of new packets, in any order.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// When to call [`MultfrcReceiver::on_timer`]; the time may move later without notice.
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.wake
    }

    /// The current loss event rate of the connection at each place, in order; closed connections keep theirs.
    pub fn loss_event_rates(&self) -> impl Iterator<Item = f64> {
        self.places.values().map(|place| place.receiver.loss_event_rate())
    }

    /// Processes a packet; ignores one without TFRC's header. A packet of a connection older than the last two of its
    /// place is only counted.
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

    /// Sends due reports of the connections; a call too early does nothing.
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

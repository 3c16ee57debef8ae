//! When packets leave a host, and where they go.

use crate::build::Folded;
use crate::endpoint::{Sink, Source};
use paceline_engine::Network;
use paceline_flow::tcp::Burst;
use paceline_flow::{Segment, Transmit};
use paceline_packet::{ExtraId, FlowId, Packet, Stamp};
use paceline_random::Sequence;
use paceline_units::{Span, Time};
use std::collections::BTreeMap;

/// When a packet that an endpoint hands over really leaves: after a random delay, in the order of its flow; and how much the
/// host's own interface holds of what has left.
///
/// Real hosts do not answer in the same nanosecond each time, and simulated flows whose packets meet a drop-tail queue
/// in lock step lose or win for that reason alone (phase effects: Floyd and Jacobson 1992; docs/decisions/host-delay.md).
#[derive(Debug)]
pub struct EmissionClock {
    draws: Sequence,
    /// Of the next packet: its share of the most that its host delays it. Drawn ahead, so that who asks how full the
    /// interface is can be told how full the next packet will find it.
    ahead: f64,
    /// When the last packet left.
    last: Time,
    /// The same of each flow that keeps an order of its own.
    lasts: BTreeMap<FlowId, Time>,
    /// When what was emitted last is at the far end of the host's own link: the latest there has been.
    arrives: Time,
    backpressure: Backpressure,
}

/// When a host's own interface holds so much that its senders wait: they are told, as by a kernel that keeps few of a
/// socket's packets below it (docs/decisions/access-links.md).
#[derive(Clone, Copy, Debug)]
pub struct Backpressure {
    /// From when a packet leaves the host to the arrival of the one before it at the far end of the host's link, if it is the
    /// last that the interface takes; and when half of what is before it has left.
    full: Span,
    half: Span,
    /// The same as `full`, if that one is the last of a burst.
    burst: Span,
}

impl Backpressure {
    /// An interface that takes everything.
    pub const NONE: Backpressure =
        Backpressure { full: Span(u64::MAX / 2), half: Span(u64::MAX / 2), burst: Span(u64::MAX / 2) };
    /// How much may lie ahead of a packet that leaves the host: what the interface sends in a millisecond, as Linux's TCP
    /// small queues have it (`sk_pacing_shift`), ...
    const DEPTH: Span = Span::from_millis(1);
    /// ... but two packets at least.
    const PACKETS: u64 = 2;

    /// For an interface that sends a full packet in `packet` and has the far end a `propagation` away, with a queue that
    /// holds no longer than `limit`.
    #[must_use]
    pub fn new(packet: Span, propagation: Span, limit: Span) -> Backpressure {
        let depth = Self::DEPTH.max(Span(packet.0.saturating_mul(Self::PACKETS))).min(limit);
        let full = propagation + depth;
        Backpressure {
            full,
            half: propagation + depth / 2,
            burst: Span(full.0.saturating_sub(packet.0.saturating_mul(u64::from(Burst::MAX_SEGMENTS - 1)))),
        }
    }
}

impl EmissionClock {
    /// Delays drawn from `draws`. Each of the flows `apart` keeps an order of its own; all others keep one.
    #[must_use]
    pub fn new(
        mut draws: Sequence,
        backpressure: Backpressure,
        apart: impl IntoIterator<Item = FlowId>,
    ) -> EmissionClock {
        EmissionClock {
            ahead: draws.unit(),
            draws,
            last: Time::ZERO,
            lasts: apart.into_iter().map(|flow| (flow, Time::ZERO)).collect(),
            arrives: Time::ZERO,
            backpressure,
        }
    }

    /// How long the next packet is delayed whose delay is uniform in [0, `limit`) nanoseconds.
    #[inline(always)]
    fn delay(&self, limit: u32) -> Span {
        // less than `limit`: so by way of u32, which takes less than one that may be any
        Span(u64::from((self.ahead * f64::from(limit)) as u32))
    }

    /// Whether senders are to wait: the next packet would find more before it than the interface is to hold.
    #[inline(always)]
    fn is_full(&self, now: Time, limit: u32) -> bool {
        // it leaves no earlier than now, and mostly nothing is full
        self.arrives.0 > now.0 + self.backpressure.full.0 && self.is_full_then(now, limit)
    }

    /// Whether a burst may be handed over without a question between its packets. Each of them is before the next by the time of
    /// one full packet at most, or else finds the interface empty.
    #[inline(always)]
    pub(crate) fn takes_burst(&self, now: Time) -> bool {
        self.arrives.0 <= now.0 + self.backpressure.burst.0
    }

    #[cold]
    #[inline(never)]
    fn is_full_then(&self, now: Time, limit: u32) -> bool {
        debug_assert!(self.lasts.is_empty(), "an interface that pushes back serves one flow");
        self.arrives.0 > self.last.max(now + self.delay(limit)).0 + self.backpressure.full.0
    }

    /// When the next packet, handed over then, leaves as half of what is before it has left.
    #[cold]
    #[inline(never)]
    fn half(&self, limit: u32) -> Time {
        Time(self.arrives.0 - self.backpressure.half.0 - self.delay(limit).0)
    }

    /// When a packet of this flow leaves whose delay is uniform in [0, `limit`) nanoseconds; not before the last one in
    /// its order.
    #[inline(always)]
    fn leaves(&mut self, now: Time, flow: FlowId, limit: u32) -> Time {
        let mut wanted = now;
        if limit > 0 {
            wanted += self.delay(limit);
            self.ahead = self.draws.unit();
        }
        if !self.lasts.is_empty() {
            return self.leaves_apart(wanted, flow);
        }
        self.last = self.last.max(wanted);
        self.last
    }

    #[cold]
    #[inline(never)]
    fn leaves_apart(&mut self, wanted: Time, flow: FlowId) -> Time {
        let last = self.lasts.get_mut(&flow).unwrap_or(&mut self.last);
        *last = wanted.max(*last);
        *last
    }

    /// When the last packet of this flow left, or of the host.
    #[inline(always)]
    fn last(&self, flow: FlowId) -> Time {
        if self.lasts.is_empty() { self.last } else { *self.lasts.get(&flow).unwrap_or(&self.last) }
    }
}

/// Where an endpoint's segments go: onto the flow's path, at the host's pace. A port of a source is `POLLED` how full the
/// host's link is, and keeps account of it.
pub struct Port<'a, const POLLED: bool> {
    pub(crate) network: &'a mut Network<Folded>,
    pub(crate) clock: &'a mut EmissionClock,
    pub(crate) now: Time,
    pub(crate) flow: FlowId,
    pub(crate) cursor: u32,
    pub(crate) delay: u32,
    /// Packets are stamped as they leave, as by ns-2's `overhead_`: the host's own delay is no part of round trips.
    pub(crate) restamps: bool,
}

impl<'a> Port<'a, true> {
    /// A source's.
    #[inline(always)]
    pub(crate) fn of(
        source: &Source,
        network: &'a mut Network<Folded>,
        clock: &'a mut EmissionClock,
        now: Time,
    ) -> Self {
        let (flow, cursor, delay, restamps) = (source.flow, source.cursor, source.delay, source.restamps);
        Port { network, clock, now, flow, cursor, delay, restamps }
    }
}

impl<'a> Port<'a, false> {
    /// A sink's.
    #[inline(always)]
    pub(crate) fn back(sink: &Sink, network: &'a mut Network<Folded>, clock: &'a mut EmissionClock, now: Time) -> Self {
        Port { network, clock, now, flow: sink.flow, cursor: sink.cursor, delay: sink.delay, restamps: false }
    }
}

impl<const POLLED: bool> Transmit for Port<'_, POLLED> {
    #[inline(always)]
    fn transmit(&mut self, segment: Segment) {
        let extra = match segment.extra {
            None => ExtraId::NONE,
            Some(extra) => self.network.extras.put(extra),
        };
        let time = self.clock.leaves(self.now, self.flow, self.delay);
        let stamp = if self.restamps { Stamp::at(time) } else { segment.stamp };
        let arrives = self.network.emit(Packet {
            time,
            flow: self.flow,
            seq: segment.seq,
            stamp,
            cursor: self.cursor,
            extra,
            size: segment.size,
            flags: segment.flags,
        });
        if POLLED {
            // where it was dropped it is earlier
            self.clock.arrives = self.clock.arrives.max(arrives);
        }
    }

    #[inline(always)]
    fn left(&self, now: Time) -> Time {
        self.clock.last(self.flow).max(now)
    }

    #[inline(always)]
    fn full_until(&self) -> Option<Time> {
        if !POLLED {
            return None;
        }
        self.clock.is_full(self.now, self.delay).then(|| self.clock.half(self.delay))
    }

    #[inline(always)]
    fn takes_burst(&self) -> bool {
        !POLLED || self.clock.takes_burst(self.now)
    }
}

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

/// When a packet that an endpoint emits leaves the host: after a random delay, in its flow's order. Also tracks how
/// full the host's own interface is.
///
/// Real hosts do not answer in the same nanosecond each time. Simulated flows whose packets meet a drop-tail queue in
/// lock step win or lose for that reason alone (phase effects: Floyd and Jacobson 1992; docs/decisions/host-delay.md).
#[derive(Debug)]
pub struct EmissionClock {
    draws: Sequence,
    /// The next packet's host delay as a share of the maximum. Drawn ahead, so that a sender can find out how full the
    /// interface will be for its next packet.
    ahead: f64,
    /// When the last packet left.
    last: Time,
    /// When the last packet left, for each flow that keeps its own order.
    lasts: BTreeMap<FlowId, Time>,
    /// Latest arrival of an emitted packet at the far end of the host's access link.
    arrives: Time,
    backpressure: Backpressure,
}

/// When a host's interface is so full that its senders wait, as in a kernel that keeps few of a socket's packets below
/// it (docs/decisions/access-links.md).
#[derive(Clone, Copy, Debug)]
pub struct Backpressure {
    /// The interface is full if the last emitted packet reaches the far end of the access link more than `full` after
    /// the next packet leaves the host; `half` is the same for half the depth.
    full: Span,
    half: Span,
    /// The same as `full` at the start of a burst, with room for all of it.
    burst: Span,
}

impl Backpressure {
    /// An interface without a limit.
    pub const NONE: Backpressure =
        Backpressure { full: Span(u64::MAX / 2), half: Span(u64::MAX / 2), burst: Span(u64::MAX / 2) };
    /// Maximum backlog of the interface: what it sends in a millisecond, as in Linux's TCP small queues
    /// (`sk_pacing_shift`), ...
    const DEPTH: Span = Span::from_millis(1);
    /// ... but at least two packets.
    const PACKETS: u64 = 2;

    /// For an interface that sends a full-sized packet in `packet`, over a link with delay `propagation` and a queue
    /// that drains in at most `limit`.
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
    /// Delays drawn from `draws`. Each flow in `apart` keeps its own order; all others share one.
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

    /// Host delay of the next packet, uniform in [0, `limit`) nanoseconds.
    #[inline(always)]
    fn delay(&self, limit: u32) -> Span {
        // The product is less than `limit`, so it fits in u32, a cheaper conversion than to u64.
        Span(u64::from((self.ahead * f64::from(limit)) as u32))
    }

    /// Whether senders must wait: the backlog ahead of the next packet would exceed the interface's depth.
    #[inline(always)]
    fn is_full(&self, now: Time, limit: u32) -> bool {
        // A packet leaves no earlier than now, and the interface is rarely full.
        self.arrives.0 > now.0 + self.backpressure.full.0 && self.is_full_then(now, limit)
    }

    /// Whether a burst may be emitted without polling between its packets. Each packet adds at most the time of one
    /// full-sized packet to the backlog, or finds the interface empty.
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

    /// When to emit the next packet so that half of the backlog remains when it leaves.
    #[cold]
    #[inline(never)]
    fn half(&self, limit: u32) -> Time {
        Time(self.arrives.0 - self.backpressure.half.0 - self.delay(limit).0)
    }

    /// When a packet of this flow leaves whose delay is uniform in [0, `limit`) nanoseconds; not before the previous
    /// one in its order.
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

    /// When the last packet left: of this flow if it keeps its own order, else of the host.
    #[inline(always)]
    fn last(&self, flow: FlowId) -> Time {
        if self.lasts.is_empty() { self.last } else { *self.lasts.get(&flow).unwrap_or(&self.last) }
    }
}

/// Where an endpoint's segments go: onto the flow's path, delayed by the host. `POLLED` ports, those of sources, track
/// how full the host's access link is.
pub struct Port<'a, const POLLED: bool> {
    pub(crate) network: &'a mut Network<Folded>,
    pub(crate) clock: &'a mut EmissionClock,
    pub(crate) now: Time,
    pub(crate) flow: FlowId,
    pub(crate) cursor: u32,
    pub(crate) delay: u32,
    /// Whether packets are stamped as they leave, as with ns-2's `overhead_`: round trips then exclude the host's own
    /// delay.
    pub(crate) restamps: bool,
}

impl<'a> Port<'a, true> {
    /// A source's port.
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
    /// A sink's port.
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
            // For a dropped packet this is an earlier time.
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

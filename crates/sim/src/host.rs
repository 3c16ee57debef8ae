//! Hosts: the elements in which flows begin and end.

use crate::coupling::Coupling;
use crate::endpoint::{Sink, Source};
use crate::recorder::HostRecorder;
use crate::timers::Timers;
use crate::variation::RateMeter;
use paceline_engine::{Element, Inbox, Network};
use paceline_flow::tcp::Burst;
use paceline_flow::{Segment, Transmit};
use paceline_packet::{ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_random::Sequence;
use paceline_units::{Span, Time};

use crate::build::Folded;
use std::collections::BTreeMap;

/// A host: its sources, its sinks, and their timers.
#[derive(Debug)]
pub struct Host {
    /// One entry an endpoint, sources first; then one for the recorder and one for the meter, if they are there.
    timers: Timers,
    /// Senders with their applications.
    pub sources: Vec<Source>,
    /// Receivers with their players.
    pub sinks: Vec<Sink>,
    clock: EmissionClock,
    /// Which of its sources share their rates, if any do.
    coupling: Option<Box<Coupling>>,
    /// Samples what was asked for.
    pub recorder: Option<Box<HostRecorder>>,
    /// Measures how much the flows vary their rates.
    pub meter: Option<Box<RateMeter>>,
}

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
            burst: Span(full.0.saturating_sub(packet.0.saturating_mul(u64::from(Burst::MOST - 1)))),
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

    /// How long the next packet is delayed whose delay is uniform in [0, `most`) nanoseconds.
    #[inline(always)]
    fn delay(&self, most: u32) -> Span {
        // less than `most`: so by way of u32, which takes less than one that may be any
        Span(u64::from((self.ahead * f64::from(most)) as u32))
    }

    /// Whether senders are to wait: the next packet would find more before it than the interface is to hold.
    #[inline(always)]
    fn is_full(&self, now: Time, most: u32) -> bool {
        // it leaves no earlier than now, and mostly nothing is full
        self.arrives.0 > now.0 + self.backpressure.full.0 && self.is_full_then(now, most)
    }

    /// Whether a burst may be handed over without a question between its packets. Each of them is before the next by the time of
    /// one full packet at most, or else finds the interface empty.
    #[inline(always)]
    fn takes_burst(&self, now: Time) -> bool {
        self.arrives.0 <= now.0 + self.backpressure.burst.0
    }

    #[cold]
    #[inline(never)]
    fn is_full_then(&self, now: Time, most: u32) -> bool {
        debug_assert!(self.lasts.is_empty(), "an interface that pushes back serves one flow");
        self.arrives.0 > self.last.max(now + self.delay(most)).0 + self.backpressure.full.0
    }

    /// When the next packet, handed over then, leaves as half of what is before it has left.
    #[cold]
    #[inline(never)]
    fn half(&self, most: u32) -> Time {
        Time(self.arrives.0 - self.backpressure.half.0 - self.delay(most).0)
    }

    /// When a packet of this flow leaves whose delay is uniform in [0, `most`) nanoseconds; not before the last one in
    /// its order.
    #[inline(always)]
    fn leaves(&mut self, now: Time, flow: FlowId, most: u32) -> Time {
        let mut wanted = now;
        if most > 0 {
            wanted += self.delay(most);
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
        *self.lasts.get(&flow).unwrap_or(&self.last)
    }
}

/// Where an endpoint's segments go: onto the flow's path, at the host's pace. A port of a source is `ASKED` how full the
/// host's link is, and keeps account of it.
pub struct Port<'a, const ASKED: bool> {
    pub(crate) network: &'a mut Network<Folded>,
    pub(crate) clock: &'a mut EmissionClock,
    pub(crate) now: Time,
    pub(crate) flow: FlowId,
    pub(crate) cursor: u32,
    pub(crate) delay: u32,
    /// Packets are stamped as they leave, as by ns-2's `overhead_`: the host's own delay is no part of round trips.
    pub(crate) restamps: bool,
}

impl<const ASKED: bool> Transmit for Port<'_, ASKED> {
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
        if ASKED {
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
        if !ASKED {
            return None;
        }
        self.clock.is_full(self.now, self.delay).then(|| self.clock.half(self.delay))
    }

    #[inline(always)]
    fn takes_burst(&self) -> bool {
        !ASKED || self.clock.takes_burst(self.now)
    }
}

impl Host {
    /// A host with these endpoints.
    #[must_use]
    pub fn new(
        sources: Vec<Source>,
        sinks: Vec<Sink>,
        clock: EmissionClock,
        coupling: Option<Box<Coupling>>,
        recorder: Option<Box<HostRecorder>>,
        meter: Option<Box<RateMeter>>,
    ) -> Host {
        let mut entries: Vec<Time> = sources.iter().map(|source| source.entry).collect();
        entries.extend(sinks.iter().map(|sink| sink.entry));
        entries.extend(recorder.iter().map(|recorder| recorder.next_sample()));
        entries.extend(meter.iter().map(|meter| meter.next_sample()));
        Host { timers: Timers::new(entries), sources, sinks, clock, coupling, recorder, meter }
    }

    /// Timers up to and including `to`, in order.
    #[cold]
    #[inline(never)]
    fn timers(&mut self, to: Time, network: &mut Network<Folded>) {
        while self.timers.first() <= to {
            let (now, slot) = (self.timers.first(), self.timers.first_slot());
            let sinks_from = self.sources.len();
            let next = if slot < sinks_from {
                let source = &mut self.sources[slot];
                let (flow, cursor, delay, restamps) = (source.flow, source.cursor, source.delay, source.restamps);
                source.on_timer(
                    now,
                    &mut Port::<true> { network, clock: &mut self.clock, now, flow, cursor, delay, restamps },
                );
                source.entry = source.next_wake();
                source.entry
            } else if slot < sinks_from + self.sinks.len() {
                let sink = &mut self.sinks[slot - sinks_from];
                let (flow, cursor, delay, restamps) = (sink.flow, sink.cursor, sink.delay, false);
                sink.on_timer(
                    now,
                    &mut Port::<false> { network, clock: &mut self.clock, now, flow, cursor, delay, restamps },
                );
                sink.entry = sink.next_wake();
                sink.entry
            } else {
                self.watchers(now, slot - sinks_from - self.sinks.len())
            };
            self.timers.set(slot, next);
            if slot < sinks_from && self.coupling.is_some() {
                self.exchange(slot, now, network);
            }
        }
    }

    /// A source's controller may have found another rate, which those that are coupled with it share.
    #[cold]
    #[inline(never)]
    fn exchange(&mut self, slot: usize, now: Time, network: &mut Network<Folded>) {
        let (sources, clock) = (&mut self.sources, &mut self.clock);
        let Some(group) = self.coupling.as_mut().and_then(|coupling| coupling.group(slot)) else { return };
        if !group.heard(slot as u64, now, |slot| sources[slot as usize].coupled(now)) {
            return;
        }
        for place in 0..group.len() {
            let Some((slot, rate)) = group.share(place) else { continue };
            let source = &mut sources[slot as usize];
            let (flow, cursor, delay, restamps) = (source.flow, source.cursor, source.delay, source.restamps);
            source.share(rate, now, &mut Port::<true> { network, clock, now, flow, cursor, delay, restamps });
            source.entry = source.next_wake();
            self.timers.set(slot as usize, source.entry);
            group.took(place, source.coupled(now));
        }
    }

    /// The `n`th of recorder and meter is due; returns when it is next.
    fn watchers(&mut self, now: Time, n: usize) -> Time {
        match (&mut self.recorder, &mut self.meter) {
            (Some(recorder), _) if n == 0 => {
                recorder.sample(now, &self.sources, &mut self.sinks);
                recorder.next_sample()
            }
            (_, Some(meter)) => {
                meter.sample(&self.sources, &self.sinks);
                meter.next_sample()
            }
            _ => Time::NEVER,
        }
    }

    #[inline(always)]
    fn arrival(&mut self, packet: &Packet, network: &mut Network<Folded>) {
        if packet.flags.has(Flags::CORRUPT) {
            return network.refuse(packet);
        }
        let endpoint = network.ways().endpoint(packet) as usize;
        if packet.flags.has(Flags::ACK) {
            let source = &mut self.sources[endpoint];
            let (now, flow, cursor) = (packet.time, source.flow, source.cursor);
            let (delay, restamps) = (source.delay, source.restamps);
            let clock = &mut self.clock;
            let wake = if packet.extra == ExtraId::NONE
                && clock.takes_burst(now)
                && let Some(wake) = source
                    .on_ack_in_order(packet, &mut Port::<true> { network, clock, now, flow, cursor, delay, restamps })
            {
                if source.wants_to_know() {
                    source.all_acked(now, &mut Port::<true> { network, clock, now, flow, cursor, delay, restamps })
                } else {
                    wake
                }
            } else {
                ack_out_of_line(source, packet, network, clock)
            };
            if wake < source.entry {
                source.entry = wake;
                self.timers.earlier(endpoint, wake);
            }
            if packet.extra != ExtraId::NONE && self.coupling.is_some() {
                self.exchange(endpoint, now, network);
            }
        } else {
            let sink = &mut self.sinks[endpoint];
            let (now, flow, cursor) = (packet.time, sink.flow, sink.cursor);
            let (delay, restamps) = (sink.delay, false);
            let clock = &mut self.clock;
            let wake = if packet.extra == ExtraId::NONE
                && let Some(wake) = sink
                    .on_data_in_order(packet, &mut Port::<false> { network, clock, now, flow, cursor, delay, restamps })
            {
                wake
            } else {
                data_out_of_line(sink, packet, network, clock)
            };
            if wake < sink.entry {
                sink.entry = wake;
                self.timers.earlier(self.sources.len() + endpoint, wake);
            }
        }
    }
}

/// What has no fast path, with its side record out of the arena. Apart, as the port has no address on the fast path.
#[inline(never)]
fn ack_out_of_line(
    source: &mut Source,
    packet: &Packet,
    network: &mut Network<Folded>,
    clock: &mut EmissionClock,
) -> Time {
    let extra = network.extras.take(packet.extra);
    let (now, flow, cursor) = (packet.time, source.flow, source.cursor);
    let (delay, restamps) = (source.delay, source.restamps);
    source.on_ack(packet, extra, &mut Port::<true> { network, clock, now, flow, cursor, delay, restamps })
}

#[inline(never)]
fn data_out_of_line(
    sink: &mut Sink,
    packet: &Packet,
    network: &mut Network<Folded>,
    clock: &mut EmissionClock,
) -> Time {
    let extra = network.extras.take(packet.extra);
    let (now, flow, cursor) = (packet.time, sink.flow, sink.cursor);
    let (delay, restamps) = (sink.delay, false);
    sink.on_data(packet, extra, &mut Port::<false> { network, clock, now, flow, cursor, delay, restamps })
}

impl Element for Host {
    type Hop = Folded;

    /// A function of its own, so that it has the registers to itself.
    #[inline(never)]
    fn run(&mut self, until: Time, inbox: &mut Inbox, network: &mut Network<Folded>) {
        let packets = inbox.take(until, network.ways());
        network.delivered(packets.len() as u64);
        for packet in packets {
            if self.timers.first() <= packet.time {
                self.timers(packet.time, network);
            }
            self.arrival(packet, network);
        }
        if self.timers.first() < until {
            self.timers(Time(until.0 - 1), network);
        }
    }

    #[inline(always)]
    fn next_wake(&self) -> Time {
        self.timers.first()
    }
}

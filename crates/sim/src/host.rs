//! Hosts: the elements in which flows begin and end.

mod bundle;
mod relay;

use crate::build::Folded;
use crate::bundling::Bundling;
use crate::coupling::Coupling;
use crate::endpoint::{Sink, Source};
use crate::host_delay::Changes;
use crate::port::{EmissionClock, Port};
use crate::quic_events::{QuicEvent, QuicEventLog};
use crate::rate_variation::RateMeter;
use crate::recorder::HostRecorder;
use crate::relaying::Relaying;
use crate::timers::Timers;
use paceline_engine::{Element, Inbox, Network};
use paceline_packet::{Extra, ExtraId, Flags, Packet};
use paceline_units::Time;

/// A host: its sources, its sinks, and their timers.
#[derive(Debug)]
pub struct Host {
    /// One entry per endpoint, sources first; then one each for the recorder, the meter and the changes of delay, as
    /// far as they exist.
    timers: Timers,
    /// Senders with their applications.
    pub sources: Vec<Source>,
    /// Receivers with their players.
    pub sinks: Vec<Sink>,
    clock: EmissionClock,
    /// Groups of sources that share their rates, if any.
    coupling: Option<Box<Coupling>>,
    /// Bundles among its flows, if any.
    bundling: Option<Box<Bundling>>,
    /// Flows that relay others, if any.
    relaying: Option<Box<Relaying>>,
    /// Log of events at QUIC endpoints, if requested.
    quic_events: Option<Box<QuicEventLog>>,
    /// Whether any of these four, which are notified of every endpoint event, exists.
    has_listeners: bool,
    /// Samples the requested series.
    pub recorder: Option<Box<HostRecorder>>,
    /// Measures the variation of the flows' rates.
    pub meter: Option<Box<RateMeter>>,
    /// Changes of its delay with the rates of its flows' paths, if any.
    changes: Option<Box<Changes>>,
}

/// The parts of a host that are notified of every endpoint event.
#[derive(Debug)]
pub struct EndpointListeners {
    /// Groups of sources that share their rates, if any.
    pub(crate) coupling: Option<Box<Coupling>>,
    /// Bundles among its flows, if any.
    pub(crate) bundling: Option<Box<Bundling>>,
    /// Flows that relay others, if any.
    pub(crate) relaying: Option<Box<Relaying>>,
    /// Log of events at QUIC endpoints, if requested.
    pub(crate) quic_events: Option<Box<QuicEventLog>>,
}

impl Host {
    /// A host with these endpoints.
    #[must_use]
    pub fn new(
        mut sources: Vec<Source>,
        mut sinks: Vec<Sink>,
        clock: EmissionClock,
        EndpointListeners { coupling, bundling, relaying, quic_events: noting }: EndpointListeners,
        recorder: Option<Box<HostRecorder>>,
        meter: Option<Box<RateMeter>>,
        changes: Option<Box<Changes>>,
    ) -> Host {
        bundling.iter().for_each(|bundling| bundling.lead(&mut sources));
        relaying.iter().for_each(|relaying| relaying.begin(&mut sinks));
        let mut entries: Vec<Time> = sources.iter().map(|source| source.entry).collect();
        entries.extend(sinks.iter().map(|sink| sink.entry));
        entries.extend(recorder.iter().map(|recorder| recorder.next_sample()));
        entries.extend(meter.iter().map(|meter| meter.next_sample()));
        entries.extend(changes.iter().map(|changes| changes.due()));
        let timers = Timers::new(entries);
        let has_listeners = coupling.is_some() || bundling.is_some() || relaying.is_some() || noting.is_some();
        Host {
            timers,
            sources,
            sinks,
            clock,
            coupling,
            bundling,
            relaying,
            quic_events: noting,
            has_listeners,
            recorder,
            meter,
            changes,
        }
    }

    /// Runs timers up to and including `to`, in order.
    #[cold]
    #[inline(never)]
    fn timers(&mut self, to: Time, network: &mut Network<Folded>) {
        while self.timers.first() <= to {
            let (now, slot) = (self.timers.first(), self.timers.first_slot());
            let sinks_from = self.sources.len();
            let next = if slot < sinks_from {
                let source = &mut self.sources[slot];
                let mut port = Port::of(source, network, &mut self.clock, now);
                source.on_timer(now, &mut port);
                source.set_entry(now)
            } else if slot < sinks_from + self.sinks.len() {
                let sink = &mut self.sinks[slot - sinks_from];
                let mut port = Port::back(sink, network, &mut self.clock, now);
                sink.on_timer(now, &mut port);
                sink.set_entry(now)
            } else {
                self.watchers(now, slot - sinks_from - self.sinks.len())
            };
            self.timers.set(slot, next);
            if self.has_listeners {
                if slot < sinks_from {
                    self.propagate(slot, now, network);
                } else {
                    self.note(slot, now);
                }
            }
        }
    }

    /// Logs an event at an endpoint.
    #[cold]
    #[inline(never)]
    fn note(&mut self, slot: usize, now: Time) {
        if let Some(noting) = &mut self.quic_events {
            noting.on_endpoint_event(slot, now, &self.sources, &self.sinks);
        }
    }

    /// Events at QUIC endpoints since the last call, if they are logged.
    pub(crate) fn take_quic_events(&mut self) -> impl Iterator<Item = QuicEvent> + '_ {
        self.quic_events.iter_mut().flat_map(|noting| noting.take())
    }

    /// Propagates an event at a source to the bundle or coupled group that it belongs to.
    #[cold]
    #[inline(never)]
    fn propagate(&mut self, slot: usize, now: Time, network: &mut Network<Folded>) {
        self.note(slot, now);
        self.settle(slot, now, network);
        let (sources, clock) = (&mut self.sources, &mut self.clock);
        let Some(group) = self.coupling.as_mut().and_then(|coupling| coupling.group(slot)) else { return };
        if !group.on_event(slot as u64, now, |slot| sources[slot as usize].coupled(now)) {
            return;
        }
        for place in 0..group.len() {
            let Some((slot, rate)) = group.share(place) else { continue };
            let source = &mut sources[slot as usize];
            let mut port = Port::of(source, network, clock, now);
            source.share(rate, now, &mut port);
            self.timers.set(slot as usize, source.set_entry(now));
            group.took(place, source.coupled(now));
        }
    }

    /// Runs the `n`th of recorder, meter and changes of delay; returns when it is next due.
    fn watchers(&mut self, now: Time, n: usize) -> Time {
        let samplers = usize::from(self.recorder.is_some()) + usize::from(self.meter.is_some());
        match (&mut self.recorder, &mut self.meter, &mut self.changes) {
            (_, _, Some(changes)) if n == samplers => {
                changes.make(now, &mut self.sources, &mut self.sinks);
                changes.due()
            }
            (Some(recorder), ..) if n == 0 => {
                recorder.sample(now, &self.sources, &mut self.sinks);
                recorder.next_sample()
            }
            (_, Some(meter), _) => {
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
        let endpoint = network.routes().endpoint(packet) as usize;
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
            debug_assert!(wake >= packet.time, "what would have left before now meets what has come since");
            if wake < source.entry {
                source.entry = wake;
                self.timers.earlier(endpoint, wake);
            }
            if self.has_listeners && packet.extra != ExtraId::NONE {
                self.propagate(endpoint, now, network);
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
            debug_assert!(wake >= packet.time, "what would have left before now meets what has come since");
            // An entry left behind by an acknowledgement that has been sent would wake the host for nothing.
            if wake < sink.entry || packet.extra != ExtraId::NONE && self.timers.is_single() {
                sink.entry = wake;
                self.timers.set(self.sources.len() + endpoint, wake);
            }
            if self.has_listeners && packet.extra != ExtraId::NONE {
                self.note(self.sources.len() + endpoint, now);
                self.carry(endpoint, now, network);
                self.send_on(endpoint, now, network);
            }
        }
    }
}

/// Handles an acknowledgement without a fast path, with its side record out of the arena. Not inlined, so that the port
/// needs no address on the fast path.
#[inline(never)]
fn ack_out_of_line(
    source: &mut Source,
    packet: &Packet,
    network: &mut Network<Folded>,
    clock: &mut EmissionClock,
) -> Time {
    if let Some(&Extra::QuicAck(range)) = network.extras.get(packet.extra)
        && source.takes_range(packet)
    {
        network.extras.release(packet.extra);
        return source.on_range(packet.time, &range, &mut Port::of(source, network, clock, packet.time));
    }
    let extra = network.extras.take(packet.extra);
    let mut port = Port::of(source, network, clock, packet.time);
    source.on_ack(packet, extra, &mut port)
}

#[inline(never)]
fn data_out_of_line(
    sink: &mut Sink,
    packet: &Packet,
    network: &mut Network<Folded>,
    clock: &mut EmissionClock,
) -> Time {
    if let Some(Extra::QuicStream(piece)) = network.extras.get(packet.extra)
        && sink.takes_piece(packet, piece)
    {
        network.extras.release(packet.extra);
        if let Some(wake) = sink.rests(packet.time) {
            return wake;
        }
        return sink.acknowledge_piece(packet.time, &mut Port::back(sink, network, clock, packet.time));
    }
    let extra = network.extras.take(packet.extra);
    let mut port = Port::back(sink, network, clock, packet.time);
    sink.on_data(packet, extra, &mut port)
}

impl Element for Host {
    type Hop = Folded;

    /// Not inlined, so that it has the registers to itself.
    #[inline(never)]
    fn run(&mut self, until: Time, inbox: &mut Inbox, network: &mut Network<Folded>) {
        let packets = inbox.take(until, network.routes());
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

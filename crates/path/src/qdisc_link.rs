//! One direction of a link whose queue decides when a packet leaves: each departure is an event.
//!
//! At one instant, departures precede arrivals. Draws after the transmitter (loss and the other impairments) are keyed
//! by the index of the departure.

use crate::backlog::{Departed, Exit};
use crate::flow_counters::{Leaving, Shares};
use crate::impair::{Counts, Impairments};
use crate::limit::Limits;
use crate::link_arq::{Recovering, Served};
use crate::meter::{Measure, Meter, Series, Snapshot, Waits};
use crate::model::LinkModel;
use crate::occupancy::Occupancy;
use crate::policer::Policer;
use crate::qdisc::{Discipline, Interface, Keys};
use crate::queue_level::Level;
use crate::rate::Server;
use crate::{DropReason, Drops, Fate, LinkReport, Totals};
use paceline_packet::Packet;
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// One direction of a link with a queue that [decides at departure](crate::Queue::decides_at_departure); other queues
/// work too. See [`LinkModel`] for its parts.
#[derive(Clone, Debug)]
pub struct QdiscLink {
    discipline: Discipline,
    /// Follows a limit that changes over time.
    limits: Option<Box<Limits>>,
    policer: Option<Box<Policer>>,
    server: Server,
    recovery: Option<Box<Recovering>>,
    impairments: Impairments,
    propagation: Span,
    keeps_order: bool,
    /// When the transmitter next dequeues a packet; `u64::MAX`: it waits for an arrival.
    wake: u64,
    arrivals: u64,
    departures: u64,
    dropped: Drops,
    departed: Departed,
    idle: u64,
    /// The time of the latest event.
    last: u64,
    level: Level,
    max_packets: u32,
    /// Set while the measured interval has just begun at this instant: departures of the same instant, which lie before
    /// its queue, may still follow.
    opened: Option<u64>,
    /// The meter has nothing to do before this instant.
    boundary: u64,
    occupancy: Option<Box<Occupancy>>,
    shares: Option<Box<Shares>>,
    meter: Box<Meter>,
}

impl QdiscLink {
    /// Builds the link of this model, measured in `window`, with draws from `stream`; `keys` defines what a flow is.
    ///
    /// # Panics
    /// If the model breaks an invariant that [`LinkModel`] or [`Discipline::new`] states.
    #[must_use]
    pub fn new(model: &LinkModel, window: Measure, keys: Keys, stream: Stream) -> QdiscLink {
        let interface = Interface { rate: model.rate.nominal(), propagation: model.propagation, keys };
        let occupancy = model.queue.limit().filter(|_| model.occupancy);
        QdiscLink {
            discipline: Discipline::new(&model.queue, interface, stream),
            limits: Limits::new(model).map(Box::new),
            policer: model.policer.as_ref().map(|policer| Box::new(Policer::new(policer))),
            server: Server::new(&model.rate),
            recovery: model
                .recovery
                .map(|recovery| Box::new(Recovering::new(&recovery, model.rate.nominal(), stream.fork(7)))),
            impairments: Impairments::new(model, stream),
            propagation: model.propagation,
            keeps_order: model.keeps_order(),
            wake: u64::MAX,
            arrivals: 0,
            departures: 0,
            dropped: Drops::default(),
            departed: Departed::default(),
            idle: 0,
            last: 0,
            level: Level::default(),
            max_packets: 0,
            opened: None,
            boundary: 0,
            occupancy: occupancy.map(|limit| Box::new(Occupancy::new(limit))),
            shares: model.per_flow.then(|| Box::new(Shares::new(window))),
            meter: Box::new(Meter::new(window)),
        }
    }

    /// The minimum delay across.
    #[must_use]
    pub fn delay_floor(&self) -> Span {
        self.propagation
    }

    /// Whether packets arrive at the far end in the order in which they leave the queue, each once.
    #[must_use]
    pub fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    /// When [`QdiscLink::advance`] must run next; [`Time::NEVER`] while the transmitter waits for packets.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        Time(self.wake)
    }

    /// Packets in the queue.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        u64::from(self.discipline.packets())
    }

    /// Enqueues a packet that reaches the queue at `packet.time`. Call [`QdiscLink::advance`] up to that time first.
    ///
    /// Calls `onward` with the fate of each packet, this one or another, and the instant at which it was decided. A
    /// packet that passes has its arrival at the far end as its time, a dropped one that instant.
    pub fn arrive(&mut self, packet: Packet, onward: &mut impl FnMut(Fate, Packet, Time)) {
        let now = packet.time.0;
        debug_assert!(now >= self.last && self.wake > now, "packets must reach a link in order of time");
        self.measure(now, now + 1);
        self.last = now;
        self.arrivals += 1;
        let (flow, marks) = (packet.flow, self.discipline.marks());
        let mut shares = self.shares.as_deref_mut();
        if let Some(shares) = &mut shares {
            shares.arrive(flow, now);
        }
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, packet.size)) {
            let reason = DropReason::Policed;
            self.dropped[reason] += 1;
            shares.iter_mut().for_each(|shares| shares.refuse(flow, now, reason));
            return onward(Fate::Drop(reason), packet, Time(now));
        }
        if let Some(shares) = &mut shares {
            shares.enter(flow, now);
        }
        if let Some(limits) = &mut self.limits {
            self.discipline.limit_to(limits.at(now));
        }
        let before = [f64::from(self.discipline.packets()), self.discipline.bytes() as f64];
        let dropped = &mut self.dropped;
        self.discipline.enqueue(packet.time, packet, |packet, reason| {
            dropped[reason] += 1;
            shares.iter_mut().for_each(|shares| shares.drop_waiting(packet.flow, now, reason));
            onward(Fate::Drop(reason), Packet { time: Time(now), ..*packet }, Time(now));
        });
        if let Some(shares) = self.shares.as_mut().filter(|_| self.discipline.marks() > marks) {
            shares.mark(flow, now);
        }
        self.rise_or_fall(now, before);
        if self.wake == u64::MAX {
            // The queue was empty: the transmitter is free, or will be.
            self.wake = self.server.ready(now.max(self.discipline.next_release().0));
            if self.wake <= now {
                self.transmit(onward);
            }
        }
        self.max_packets = self.max_packets.max(self.discipline.packets());
    }

    /// Lets every departure before `until` happen; `onward` as in [`QdiscLink::arrive`].
    #[inline]
    pub fn advance(&mut self, until: Time, onward: &mut impl FnMut(Fate, Packet, Time)) {
        while self.wake < until.0 {
            let now = self.wake;
            self.measure(now, now);
            self.transmit(onward);
        }
    }

    /// Dequeues a packet and sends it.
    fn transmit(&mut self, onward: &mut impl FnMut(Fate, Packet, Time)) {
        let now = self.wake;
        self.last = now;
        let latest = self.server.latest(now);
        if let Some(recovery) = &mut self.recovery {
            recovery.catch_up(&mut self.server, latest);
            self.idle += core::mem::take(&mut recovery.idle);
            self.wake = self.server.ready(latest.max(self.discipline.next_release().0));
            if self.wake > now {
                // A retransmission goes first.
                return;
            }
        }
        let before = [f64::from(self.discipline.packets()), self.discipline.bytes() as f64];
        let marks = self.discipline.marks();
        let (dropped, mut shares) = (&mut self.dropped, self.shares.as_deref_mut());
        let packet = self.discipline.dequeue(Time(now), |packet, reason| {
            dropped[reason] += 1;
            shares.iter_mut().for_each(|shares| shares.drop_waiting(packet.flow, now, reason));
            onward(Fate::Drop(reason), Packet { time: Time(now), ..*packet }, Time(now));
        });
        self.rise_or_fall(now, before);
        let Some(mut packet) = packet else {
            // The discipline holds the remaining packets back.
            let held = self.discipline.packets() > 0;
            self.wake = if held { self.server.ready(self.discipline.next_release().0) } else { u64::MAX };
            return;
        };
        self.meter.waited(now - packet.time.0);
        let free = self.server.free();
        let index = self.departures;
        self.departures += 1;
        let Served { start, end, lost } = match &mut self.recovery {
            Some(recovery) => recovery.serve(&mut self.server, index, latest, packet.size),
            None => {
                let (start, end) = self.server.serve(latest, packet.size);
                Served { start, end, lost: false }
            }
        };
        debug_assert_eq!(start, now, "a packet leaves when the transmitter is ready");
        self.idle += now.saturating_sub(free);
        packet.time = Time(end) + self.propagation;
        let (mut exit, mut fate) = self.impairments.meet(index, (now, now), &mut packet);
        if lost && exit == Exit::Crosses {
            packet.time = Time(now);
            (exit, fate) = (Exit::Lost, Fate::Drop(DropReason::Loss));
        }
        if let Some(shares) = &mut self.shares {
            shares.leave(now, Leaving { flow: packet.flow, size: packet.size, exit });
            if self.discipline.marks() > marks {
                shares.mark(packet.flow, now);
            }
        }
        self.departed.packets[exit as usize] += 1;
        self.departed.bytes[exit as usize] += u64::from(packet.size);
        self.wake = self.server.ready(latest.max(self.discipline.next_release().0));
        onward(if end == u64::MAX { Fate::Held } else { fate }, packet, Time(now));
    }

    /// Updates the queue level at `now`; `before` is the level until then.
    fn rise_or_fall(&mut self, now: u64, before: [f64; 2]) {
        let after = [f64::from(self.discipline.packets()), self.discipline.bytes() as f64];
        let by = [after[0] - before[0], after[1] - before[1]];
        match &mut self.occupancy {
            None => self.level.change(now, by, &mut ()),
            Some(watch) => self.level.change(now, by, &mut **watch),
        }
    }

    /// The counters of everything before `time`.
    fn snapshot(&mut self, time: u64) -> Snapshot {
        match &mut self.occupancy {
            None => self.level.integrate(time, &mut ()),
            Some(watch) => self.level.integrate(time, &mut **watch),
        }
        Snapshot {
            time,
            arrivals: self.arrivals,
            refused: self.dropped,
            marks: self.discipline.marks(),
            classes: self.discipline.classes(),
            departed: self.departed,
            integrals: self.level.integrals,
            idle: self.idle + time.saturating_sub(self.server.free()),
            max: self.max_packets,
        }
    }

    /// Runs the meter before an event at `now`. It samples only before `samples`, so that a sample counts departures of
    /// its instant as gone.
    #[inline]
    fn measure(&mut self, now: u64, samples: u64) {
        if now >= self.boundary {
            self.cross_boundaries(now, samples);
        }
    }

    #[cold]
    #[inline(never)]
    fn cross_boundaries(&mut self, now: u64, samples: u64) {
        if self.meter.from.is_none() && self.meter.window.from.0 <= now {
            self.meter.from = Some(self.snapshot(self.meter.window.from.0));
            self.occupancy.iter_mut().for_each(|occupancy| occupancy.begin());
            self.opened = Some(self.meter.window.from.0);
        }
        if self.opened.is_some_and(|from| now > from || samples > now) {
            self.max_packets = self.discipline.packets();
            self.opened = None;
        }
        let to = self.meter.window.to.0.max(self.meter.window.from.0);
        if self.meter.to.is_none() && to <= now {
            self.meter.to = Some(self.snapshot(to));
            self.occupancy.iter_mut().for_each(|occupancy| occupancy.end());
        }
        while self.meter.next_sample < samples {
            let (packets, bytes) = (self.discipline.packets(), self.discipline.bytes());
            self.meter.sample(self.meter.next_sample, packets, bytes);
        }
        self.boundary = if self.opened.is_some() { 0 } else { self.meter.next() };
    }

    /// Samples the queue every `every`, from time zero. Call it before the first packet.
    pub fn record(&mut self, every: Span) {
        self.meter.record(every);
        self.boundary = 0;
    }

    /// Waiting times of the packets sent.
    #[must_use]
    pub fn waits(&self) -> Waits {
        self.meter.waits
    }

    /// The series requested with [`QdiscLink::record`], up to the end given to [`QdiscLink::finish`].
    pub fn take_series(&mut self) -> Series {
        core::mem::take(&mut self.meter.series)
    }

    /// Closes the measurement at `end`. All departures before `end` must have happened.
    ///
    /// # Panics
    /// If a packet vanished: arrivals must equal departures, drops and waiting packets.
    pub fn finish(&mut self, end: Time) -> LinkReport {
        let end = end.0.max(self.last);
        self.measure(end, end.saturating_add(1));
        let closing = self.snapshot(end);
        let (departures, _, drops) = closing.outcome();
        let waiting = self.waiting();
        assert_eq!(self.arrivals, departures + drops.total() + waiting, "a link lost count of its packets");
        let Counts { reordered, duplicated, corrupted } = self.impairments.counts();
        let totals = Totals { arrivals: self.arrivals, departures, drops, waiting, reordered, duplicated, corrupted };
        let to = self.meter.to.unwrap_or(closing);
        let from = self.meter.from.unwrap_or(to);
        let capacity = self.server.capacity(from.time, to.time);
        let occupancy = self.occupancy.as_ref().map(|occupancy| occupancy.shares());
        let flows = self.shares.as_mut().map_or_else(Vec::new, |shares| shares.finish(end));
        LinkReport { occupancy, flows, ..to.report(&from, capacity, totals) }
    }
}

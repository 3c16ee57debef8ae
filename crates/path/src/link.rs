//! One direction of a link: queue, transmitter, losses and impairments, propagation, and a meter.

mod counters;

use crate::backlog::{Exit, Waiting};
use crate::flow_counters::{Leaving, Shares};
use crate::impair::Impairments;
use crate::limit::Limits;
use crate::link_arq::{Recovering, Served};
use crate::loss::Losses;
use crate::meter::{Measure, Meter};
use crate::model::{Limit, LinkModel, Queue};
use crate::occupancy::Occupancy;
use crate::policer::Policer;
use crate::qdisc::mark;
use crate::rate::{Constant, Server};
use crate::red::{Arrival, Red, Verdict};
use crate::{DropReason, Drops, Fate};
use paceline_packet::{Flags, Packet};
use paceline_random::Stream;
use paceline_units::{Rate, Size, Span, Time};

/// One direction of a link, evaluated without events. See [`LinkModel`] for its parts.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Link {
    /// Server and drop-tail limit in packets (`u32::MAX`: none) of a plain link; `general` replaces them.
    server: Constant,
    limit: u32,
    propagation: Span,
    /// The loss model, if loss is the only impairment and there is no `general`.
    loss: Option<Losses>,
    /// The next instant at which the meter must act.
    boundary: u64,
    arrivals: u64,
    idle: u64,
    last: u64,
    waiting: Waiting,
    refused: Drops,
    marks: u64,
    /// The parts of a link with more than a constant rate, drop-tail by packets, and loss.
    general: Option<Box<General>>,
    meter: Box<Meter>,
    keeps_order: bool,
    /// Whether the link has only a constant rate, drop-tail by packets, and propagation.
    only_sends: bool,
}

#[derive(Clone, Debug)]
struct General {
    server: Server,
    recovery: Option<Box<Recovering>>,
    discipline: Refusal,
    /// Follows a limit that changes over time.
    limits: Option<Box<Limits>>,
    policer: Option<Box<Policer>>,
    impairments: Impairments,
    shares: Option<Box<Shares>>,
}

#[derive(Clone, Debug)]
enum Refusal {
    Packets(u32),
    Bytes(u64),
    Red(Box<Red>, Stream),
}

impl Refusal {
    /// Replaces the limit.
    fn limit_to(&mut self, max: Limit) {
        match (&mut *self, max) {
            (Refusal::Red(red, _), _) => red.limit_to(max),
            (Refusal::Packets(_) | Refusal::Bytes(_), Limit::Bytes(Size(bytes))) => *self = Refusal::Bytes(bytes),
            (Refusal::Packets(_) | Refusal::Bytes(_), Limit::Packets(packets)) => *self = Refusal::Packets(packets),
        }
    }
}

impl Link {
    /// Builds the link of this model, measured in `window`, with draws from `stream`.
    ///
    /// # Panics
    /// If the model breaks an invariant that [`LinkModel`] states: a constant rate of zero, a share outside [0, 1],
    /// outages out of order. If its queue [decides at departure](Queue::decides_at_departure).
    #[must_use]
    pub fn new(model: &LinkModel, window: Measure, stream: Stream) -> Link {
        let limit = match model.queue {
            Queue::DropTail(Limit::Packets(limit)) => limit,
            _ => u32::MAX,
        };
        let discipline = match &model.queue {
            Queue::Unlimited | Queue::DropTail(Limit::Packets(_)) => Refusal::Packets(limit),
            Queue::DropTail(Limit::Bytes(limit)) => Refusal::Bytes(limit.0),
            Queue::Red(red) => {
                let red = Red::new(red, model.rate.nominal(), model.propagation);
                Refusal::Red(Box::new(red), stream.fork(6))
            }
            Queue::CoDel(_)
            | Queue::FqCoDel(_)
            | Queue::Pie(_)
            | Queue::FqPie(_)
            | Queue::DualPi2(_)
            | Queue::Cake(_) => {
                panic!("such a queue belongs to a `QdiscLink`")
            }
        };
        let occupancy = model.queue.limit().filter(|_| model.occupancy).map(Occupancy::new);
        let recovery =
            model.recovery.map(|recovery| Box::new(Recovering::new(&recovery, model.rate.nominal(), stream.fork(7))));
        let impairments = Impairments::new(model, stream);
        let (server, loss, general) = match (Server::new(&model.rate), &discipline) {
            (Server::Constant(server), Refusal::Packets(_))
                if impairments.is_only_loss()
                    && model.limit_in_time.is_none()
                    && model.limit_steps.is_empty()
                    && model.policer.is_none()
                    && occupancy.is_none()
                    && recovery.is_none()
                    && !model.per_flow =>
            {
                (server, impairments.into_loss(), None)
            }
            (server, _) => {
                // `Link::server` is unused then.
                let shares = model.per_flow.then(|| Box::new(Shares::new(window)));
                let limits = Limits::new(model).map(Box::new);
                let policer = model.policer.as_ref().map(|policer| Box::new(Policer::new(policer)));
                let general = General { server, recovery, discipline, limits, policer, impairments, shares };
                (Constant::new(Rate(1)), None, Some(Box::new(general)))
            }
        };
        let meter = Box::new(Meter::new(window));
        Link {
            only_sends: loss.is_none() && general.is_none(),
            server,
            limit,
            propagation: model.propagation,
            loss,
            boundary: meter.next(),
            arrivals: 0,
            idle: 0,
            last: 0,
            waiting: Waiting::new(occupancy),
            refused: Drops::default(),
            marks: 0,
            general,
            meter,
            keeps_order: model.keeps_order(),
        }
    }

    /// The minimum delay across: propagation. Delay variation can add zero.
    #[must_use]
    pub fn delay_floor(&self) -> Span {
        self.propagation
    }

    /// Whether packets arrive at the far end in the order in which they were admitted, each once.
    #[must_use]
    pub fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    /// Enqueues a packet that reaches the queue at `packet.time`. Calls must come in order of time.
    #[inline]
    pub fn admit(&mut self, packet: &mut Packet) -> Fate {
        let now = packet.time.0;
        if now >= self.boundary {
            self.cross_boundaries(now);
        }
        if self.general.is_some() {
            return self.admit_general(packet);
        }
        self.admit_plain(packet, Self::loss_takes)
    }

    /// [`Link::admit`] for a link that only queues and sends. `None` if it does more, or if the meter must act first:
    /// then nothing has been done.
    #[inline(always)]
    pub fn send(&mut self, packet: &mut Packet) -> Option<Fate> {
        (self.only_sends && packet.time.0 < self.boundary).then(|| self.admit_plain(packet, |_, _, _, _| Exit::Crosses))
    }

    /// Counts an arrival at `now` and returns its index.
    #[inline(always)]
    fn arrive(&mut self, now: u64) -> u64 {
        debug_assert!(now >= self.last, "packets must reach a link in order of time");
        self.last = now;
        self.arrivals += 1;
        self.arrivals - 1
    }

    #[inline(always)]
    fn admit_plain(&mut self, packet: &mut Packet, exit: impl Fn(&mut Self, u64, u64, &Packet) -> Exit) -> Fate {
        let (now, size, free) = (packet.time.0, packet.size, self.server.free());
        let index = self.arrive(now);
        let waits = free > now;
        if waits && self.waiting.is_full(now, self.limit) {
            self.refused[DropReason::Overflow] += 1;
            return Fate::Drop(DropReason::Overflow);
        }
        let exit = exit(self, index, free.max(now), packet);
        self.waiting.count(size, exit);
        if waits {
            self.waiting.enter(now, free, size, exit);
        } else {
            self.idle += now - free;
        }
        let (_, end) = self.server.serve(now, size);
        if exit != Exit::Crosses {
            return Fate::Drop(DropReason::Loss);
        }
        packet.time = Time(end) + self.propagation;
        Fate::Pass
    }

    /// Admits a batch, in order of time, with the result of [`Link::admit`] for each packet: a packet's time becomes
    /// its arrival at the far end. Dropped packets are passed to `dropped`, and their cursor becomes
    /// [`Packet::NOWHERE`]. `false` if this link has more than a constant rate and drop-tail by packets: then nothing
    /// has been done.
    #[inline(always)]
    pub fn admit_all(&mut self, packets: &mut [Packet], mut dropped: impl FnMut(&Packet, DropReason)) -> bool {
        let Some(last) = packets.last() else { return true };
        let last = last.time.0;
        if !self.only_sends {
            return false;
        }
        if last >= self.boundary {
            // The meter must act within the batch.
            for packet in packets {
                if let Fate::Drop(reason) = self.admit(packet) {
                    dropped(packet, reason);
                    packet.cursor = Packet::NOWHERE;
                }
            }
            return true;
        }
        // Local copies: kept in the struct, each packet would wait for the store and load of the one before.
        let (mut server, limit, propagation) = (self.server, self.limit, self.propagation);
        let (mut idle, mut bytes, mut refused) = (0, 0, 0);
        for packet in packets.iter_mut() {
            let (now, size, free) = (packet.time.0, packet.size, server.free());
            if free > now {
                if self.waiting.is_full(now, limit) {
                    refused += 1;
                    dropped(packet, DropReason::Overflow);
                    packet.cursor = Packet::NOWHERE;
                    continue;
                }
                self.waiting.enter(now, free, size, Exit::Crosses);
            } else {
                idle += now - free;
            }
            bytes += u64::from(size);
            let (_, end) = server.serve(now, size);
            packet.time = Time(end) + propagation;
        }
        self.server = server;
        self.arrivals += packets.len() as u64;
        self.last = last;
        self.idle += idle;
        self.refused[DropReason::Overflow] += refused;
        self.waiting.entered.packets[Exit::Crosses as usize] += packets.len() as u64 - refused;
        self.waiting.entered.bytes[Exit::Crosses as usize] += bytes;
        true
    }

    #[inline]
    fn loss_takes(&mut self, index: u64, start: u64, packet: &Packet) -> Exit {
        let lost = self.loss.as_mut().is_some_and(|loss| loss.take(index, start, packet));
        if lost { Exit::Lost } else { Exit::Crosses }
    }

    /// The rest of [`Link::admit`] for any server, discipline and impairments.
    #[inline(never)]
    fn admit_general(&mut self, packet: &mut Packet) -> Fate {
        let index = self.arrive(packet.time.0);
        let Some(general) = &mut self.general else { return Fate::Pass };
        let (now, size) = (packet.time.0, packet.size);
        if let Some(shares) = &mut general.shares {
            shares.release(now);
            shares.arrive(packet.flow, now);
        }
        if general.policer.as_mut().is_some_and(|policer| !policer.passes(now, size)) {
            self.refused[DropReason::Policed] += 1;
            general.shares.iter_mut().for_each(|shares| shares.refuse(packet.flow, now, DropReason::Policed));
            return Fate::Drop(DropReason::Policed);
        }
        if let Some(recovery) = &mut general.recovery {
            recovery.catch_up(&mut general.server, now);
            self.idle += core::mem::take(&mut recovery.idle);
        }
        let free = general.server.free();
        if let Some(limits) = &mut general.limits {
            general.discipline.limit_to(limits.at(now));
        }
        let full = match &mut general.discipline {
            Refusal::Packets(limit) => self.waiting.is_full(now, *limit),
            Refusal::Bytes(limit) => self.waiting.bytes(now) + u64::from(size) > *limit,
            Refusal::Red(red, draws) => {
                let bytes = self.waiting.bytes(now);
                let packets = u32::try_from(self.waiting.packets()).unwrap_or(u32::MAX);
                let capable = packet.flags.has(Flags::ECT);
                let idle = (packets == 0 && free <= now).then(|| now - free);
                match red.arrive(Arrival { now, size, capable, packets, bytes, idle, draw: draws.bits(index) }) {
                    Verdict::Pass => {}
                    Verdict::Mark => {
                        if mark(packet) {
                            self.marks += 1;
                            general.shares.iter_mut().for_each(|shares| shares.mark(packet.flow, now));
                        }
                    }
                    Verdict::Drop(reason) => {
                        self.refused[reason] += 1;
                        general.shares.iter_mut().for_each(|shares| shares.refuse(packet.flow, now, reason));
                        return Fate::Drop(reason);
                    }
                }
                false
            }
        };
        // A packet that finds the link idle does not wait, so no limit applies to it.
        if full && general.server.is_busy(now) {
            self.refused[DropReason::Overflow] += 1;
            general.shares.iter_mut().for_each(|shares| shares.refuse(packet.flow, now, DropReason::Overflow));
            return Fate::Drop(DropReason::Overflow);
        }
        let Served { start, end, lost } = match &mut general.recovery {
            Some(recovery) => recovery.serve(&mut general.server, index, now, size),
            None => {
                let (start, end) = general.server.serve(now, size);
                Served { start, end, lost: false }
            }
        };
        self.idle += now.saturating_sub(free);
        packet.time = Time(end) + self.propagation;
        let (mut exit, mut fate) = general.impairments.meet(index, (now, start), packet);
        if lost && exit == Exit::Crosses {
            packet.time = Time(now);
            (exit, fate) = (Exit::Lost, Fate::Drop(DropReason::Loss));
        }
        let leaving = Leaving { flow: packet.flow, size, exit };
        self.waiting.count(size, exit);
        if start > now {
            self.waiting.enter(now, start, size, exit);
            general.shares.iter_mut().for_each(|shares| shares.will_leave(now, start, leaving));
        } else {
            general.shares.iter_mut().for_each(|shares| shares.pass(now, leaving));
        }
        self.meter.will_leave(start, start - now);
        if end == u64::MAX { Fate::Held } else { fate }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Loss, On};
    use paceline_packet::{ExtraId, FlowId, Stamp};
    use paceline_units::Ratio;

    pub(crate) fn packet(time: u64, size: u16) -> Packet {
        Packet {
            time: Time(time),
            flow: FlowId(0),
            seq: 0,
            stamp: Stamp(0),
            cursor: 0,
            extra: ExtraId::NONE,
            size,
            flags: Flags::NONE,
        }
    }

    /// 1 byte/us, 1 ms propagation.
    fn model(limit: u32) -> LinkModel {
        LinkModel::new(Rate(8_000_000), Span::from_millis(1), Queue::DropTail(Limit::Packets(limit)))
    }

    fn link(model: &LinkModel, window: Measure) -> Link {
        Link::new(model, window, Stream::new(1, "link"))
    }

    #[test]
    fn the_limit_counts_what_waits() {
        let mut link = link(&model(2), Measure::ALL);
        let fates: Vec<Fate> = (0..5).map(|i| link.admit(&mut packet(i, 1000))).collect();
        assert_eq!(fates[..3], [Fate::Pass; 3]);
        assert_eq!(fates[3..], [Fate::Drop(DropReason::Overflow); 2]);
        // The first has been sent at 1 ms; at that instant there is space again.
        assert_eq!(link.admit(&mut packet(1_000_000, 1000)), Fate::Pass);
        let report = link.finish(Time(10_000_000));
        assert_eq!((report.arrivals, report.departures, report.max_packets), (6, 4, 2));
        assert_eq!(report.drops[DropReason::Overflow], 2);
        assert_eq!(report.utilisation, Ratio(0.4));
    }

    #[test]
    fn a_run_may_end_as_it_begins() {
        let mut link = link(&model(9), Measure::ALL);
        for _ in 0..3 {
            assert_eq!(link.admit(&mut packet(0, 1000)), Fate::Pass);
        }
        let report = link.finish(Time::ZERO);
        assert_eq!((report.totals.arrivals, report.totals.waiting, report.mean_packets), (3, 2, 0.0));
    }

    #[test]
    fn bytes_too() {
        let mut model = model(0);
        model.queue = Queue::DropTail(Limit::Bytes(paceline_units::Size(1500)));
        let mut link = link(&model, Measure::ALL);
        let pass = [9000, 1000, 501, 500, 1].map(|size| link.admit(&mut packet(0, size)) == Fate::Pass);
        assert_eq!(pass, [true, true, false, true, false]);
    }

    #[test]
    fn measures_only_its_interval() {
        // Two packets at 0: the second waits from 0 to 1 ms. Measured from 0.5 to 2.5 ms; another waits 2-3 ms.
        let window = Measure { from: Time(500_000), to: Time(2_500_000) };
        let mut link = link(&model(9), window);
        for at in [0, 0, 2_000_000 - 1, 2_000_000, 4_000_000] {
            let _ = link.admit(&mut packet(at, 1000));
        }
        let report = link.finish(Time(9_000_000));
        assert_eq!(report.arrivals, 2);
        assert_eq!(report.departures, 2); // the second at 1 ms, the third at 2 ms
        assert!((report.mean_packets - 0.5).abs() < 1e-6, "{}", report.mean_packets);
        assert!((report.sd_bytes - 500.0).abs() < 1e-3, "{}", report.sd_bytes);
        assert_eq!(report.utilisation, Ratio(1.0));
        assert_eq!(report.totals.departures, 5);
    }

    #[test]
    fn loss_takes_what_it_should_after_the_link() {
        let mut model = model(1);
        model.loss = Some(Loss::Uniform { rate: Ratio::ONE, on: On::Data });
        let mut link = link(&model, Measure::ALL);
        assert_eq!(link.admit(&mut packet(0, 1000)), Fate::Drop(DropReason::Loss));
        let mut ack = packet(0, 40);
        ack.flags = Flags::ACK;
        assert_eq!(link.admit(&mut ack), Fate::Pass);
        assert_eq!(ack.time, Time(1_000_000 + 40_000 + 1_000_000));
        assert_eq!(link.finish(Time(5_000_000)).drops[DropReason::Loss], 1);
    }

    #[test]
    fn tells_how_long_packets_waited() {
        let mut link = link(&model(2), Measure::ALL);
        link.record_waits();
        let mut qdisc = crate::QdiscLink::new(&model(2), Measure::ALL, crate::Keys::Flow, Stream::new(1, "link"));
        assert_eq!((link.waits().mean(), qdisc.waits().max()), (None, None));
        // 1 ms each: at 0 four enter and one is dropped; another arrives after all have left.
        for at in [0, 0, 0, 0, 9_000_000] {
            let _ = link.admit(&mut packet(at, 1000));
            qdisc.advance(Time(at), &mut |_, _, _| {});
            qdisc.arrive(packet(at, 1000), &mut |_, _, _| {});
        }
        for waits in [link.waits(), qdisc.waits()] {
            assert_eq!(waits.mean(), Some(Span(3_000_000 / 4)));
            assert_eq!(waits.max(), Some(Span(2_000_000)));
        }
    }

    #[test]
    fn records_the_queue() {
        let mut link = link(&model(9), Measure::ALL);
        link.record(Span(500_000));
        for _ in 0..3 {
            let _ = link.admit(&mut packet(100_000, 1000));
        }
        link.finish(Time(3_000_000));
        let series = link.take_series();
        assert_eq!(series.packets, [0, 2, 2, 1, 1, 0, 0]);
        assert_eq!(series.bytes[2], 2000);
        assert_eq!(series.time[6], Time(3_000_000));
        link.record(Span(500_000));
        let _ = link.admit(&mut packet(9_000_000, 1000));
        link.finish(Time(8_000_000));
        assert_eq!(link.take_series().time.last(), Some(&Time(8_000_000)));
    }
}

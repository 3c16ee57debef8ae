//! Queue disciplines by themselves: packets are enqueued at one instant and dequeued at another, when an interface can
//! send.
//!
//! A discipline knows neither link nor medium. Its user calls [`Discipline::enqueue`] for each arriving packet, and
//! [`Discipline::dequeue`] whenever it could send, even if nothing waits (from then on RED's queue is idle, and
//! FQ-CoDel's round continues). A discipline with a shaper holds packets back until [`Discipline::next_release`]. Every
//! packet is dequeued, passed to `dropped`, or still waits.

mod cake;
mod codel;
mod dualpi2;
mod fifo;
mod flow_queueing;
mod fq_codel;
mod fq_pie;
mod min_tree;
mod model;
mod pie;
#[cfg(test)]
mod tests;

pub use cake::{CakeModel, Framing, Hosts, Isolation};
pub use model::{
    ClassCounts, CoDelModel, DelayEstimate, DualPi2Model, DualPi2Variant, DualScheduler, FqCoDelModel, FqPieModel,
    NativeAqm, PieModel, StepFor,
};

use crate::DropReason;
use crate::model::{Limit, Queue};
use crate::red::{Arrival, Red, Verdict};
use cake::Cake;
use codel::{CoDel, Settings};
use dualpi2::DualPi2;
use fifo::{Fifo, Waiting};
use fq_codel::FqCoDel;
use fq_pie::FqPie;
use paceline_packet::{Flags, Packet};
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};
use pie::Pie;
use std::sync::Arc;

/// Marks a packet: sets CE. Returns whether it had no mark before: a mark from an earlier queue stays (RFC 3168,
/// section 5.3) and does not count for this queue. Linux counts it (`INET_ECN_set_ce`); a sum over a path's queues
/// would then count it more than once.
#[inline]
pub(crate) fn mark(packet: &mut Packet) -> bool {
    let fresh = !packet.flags.has(Flags::CE);
    packet.flags = packet.flags.with(Flags::CE);
    fresh
}

/// The properties of an interface that its discipline needs.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its nominal rate, for RED's automatic settings.
    pub rate: Rate,
    /// The propagation delay behind it, for the same.
    pub propagation: Span,
    /// The definition of a flow.
    pub keys: Keys,
}

/// The definition of a flow for a discipline with flow queues: the 5-tuple, with or without direction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Keys {
    /// A packet's flow and its direction (`Flags::ACK`): a sender and its receiver share a flow number.
    #[default]
    FlowAndDirection,
    /// A packet's flow alone; its number implies the direction.
    Flow,
    /// As `FlowAndDirection`, but by connection, which several flows may share: the connection number of each flow.
    Connections(Arc<[u32]>),
}

impl Keys {
    /// Whether a packet goes against the direction of its flow's data, if directions are distinguished.
    #[inline]
    fn goes_back(&self, packet: &Packet) -> bool {
        *self != Keys::Flow && packet.flags.has(Flags::ACK)
    }

    /// A key that only packets of the same flow share.
    #[inline]
    fn key(&self, packet: &Packet) -> u64 {
        let flow = match self {
            Keys::Connections(of) => of.get(packet.flow.0 as usize).copied().unwrap_or(packet.flow.0),
            Keys::FlowAndDirection | Keys::Flow => packet.flow.0,
        };
        u64::from(flow) << 1 | u64::from(self.goes_back(packet))
    }
}

/// A queue discipline with the packets that wait.
#[derive(Clone, Debug)]
pub struct Discipline {
    kind: Kind,
    marks: u64,
    /// See [`Discipline::next_release`].
    next_release: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    /// With an optional limit.
    DropTail(Fifo, Option<Limit>),
    Red(Box<RedQueue>),
    Cake(Box<Cake>),
    CoDel(Box<CoDelQueue>),
    DualPi2(Box<DualPi2>),
    FqCoDel(Box<FqCoDel>),
    FqPie(Box<FqPie>),
    Pie(Box<Pie>),
}

#[derive(Clone, Debug)]
struct RedQueue {
    red: Red,
    fifo: Fifo,
    draws: Stream,
    arrivals: u64,
    /// Since when the queue has been idle.
    idle: Option<u64>,
}

#[derive(Clone, Debug)]
struct CoDelQueue {
    settings: Settings,
    limit: Limit,
    codel: CoDel,
    fifo: Fifo,
}

impl Discipline {
    /// An empty discipline of this model, which draws from `stream`.
    ///
    /// # Panics
    /// If the model breaks an invariant: see RED; FQ-CoDel or FQ-PIE has no queues or a zero quantum; the update
    /// interval of a PIE or DualPI2 is zero; DualPI2's k is below 1.
    #[must_use]
    pub fn new(queue: &Queue, interface: Interface, stream: Stream) -> Discipline {
        let fifo = Fifo::default();
        let kind = match queue {
            Queue::Unlimited => Kind::DropTail(fifo, None),
            Queue::DropTail(limit) => Kind::DropTail(fifo, Some(*limit)),
            Queue::Red(model) => {
                let red = Red::new(model, interface.rate, interface.propagation);
                Kind::Red(Box::new(RedQueue { red, fifo, draws: stream.fork(6), arrivals: 0, idle: Some(0) }))
            }
            Queue::Cake(model) => Kind::Cake(Box::new(Cake::new(model, interface.keys, stream.fork(12)))),
            Queue::CoDel(model) => {
                let (settings, limit, codel) = (Settings::new(model), model.limit, CoDel::new());
                Kind::CoDel(Box::new(CoDelQueue { settings, limit, codel, fifo }))
            }
            Queue::DualPi2(model) => Kind::DualPi2(Box::new(DualPi2::new(model, stream.fork(10)))),
            Queue::FqCoDel(model) => Kind::FqCoDel(Box::new(FqCoDel::new(model, interface.keys, stream.fork(8)))),
            Queue::FqPie(model) => Kind::FqPie(Box::new(FqPie::new(model, interface.keys, stream.fork(11)))),
            Queue::Pie(model) => Kind::Pie(Box::new(Pie::new(model, stream.fork(9)))),
        };
        Discipline { kind, marks: 0, next_release: 0 }
    }

    /// Replaces the definition of a flow. Call it before the first packet.
    pub fn set_flow_keys(&mut self, keys: &Keys) {
        match &mut self.kind {
            Kind::Cake(queue) => queue.keys = keys.clone(),
            Kind::FqCoDel(queue) => queue.set_flow_keys(keys),
            Kind::FqPie(queue) => queue.set_flow_keys(keys),
            Kind::DropTail(..) | Kind::Red(_) | Kind::CoDel(_) | Kind::DualPi2(_) | Kind::Pie(_) => {}
        }
    }

    /// Sets the limit from the next packet on. Waiting packets stay, except that FQ-CoDel and CAKE drop the excess from
    /// their longest queues.
    pub fn limit_to(&mut self, new_limit: Limit) {
        match &mut self.kind {
            Kind::DropTail(_, limit) => *limit = Some(new_limit),
            Kind::Red(queue) => queue.red.limit_to(new_limit),
            Kind::Cake(queue) => queue.limit_to(new_limit),
            Kind::CoDel(queue) => queue.limit = new_limit,
            Kind::DualPi2(queue) => queue.limit_to(new_limit),
            Kind::FqCoDel(queue) => queue.limit_to(new_limit),
            Kind::FqPie(queue) => queue.limit_to(new_limit),
            Kind::Pie(queue) => queue.limit_to(new_limit),
        }
    }

    /// Enqueues a packet at `now`; calls must be in order of time, together with those of [`Discipline::dequeue`].
    /// Dropped packets (this one or others) are passed to `dropped`.
    #[inline]
    pub fn enqueue(&mut self, now: Time, mut packet: Packet, mut dropped: impl FnMut(&Packet, DropReason)) {
        packet.time = now;
        match &mut self.kind {
            Kind::DropTail(fifo, limit) => {
                if limit.is_some_and(|limit| !fifo.fits(limit, packet.size)) {
                    return dropped(&packet, DropReason::Overflow);
                }
                fifo.push(packet);
            }
            Kind::Red(queue) => queue.enqueue(packet, &mut self.marks, dropped),
            Kind::Cake(queue) => {
                queue.enqueue(packet, dropped);
                self.next_release = queue.next_release();
            }
            Kind::CoDel(queue) => {
                if !queue.fifo.fits(queue.limit, packet.size) {
                    return dropped(&packet, DropReason::Overflow);
                }
                queue.fifo.push(packet);
            }
            Kind::DualPi2(queue) => queue.enqueue(packet, dropped),
            Kind::FqCoDel(queue) => queue.enqueue(packet, dropped),
            Kind::FqPie(queue) => queue.enqueue(packet, &mut self.marks, dropped),
            Kind::Pie(queue) => queue.enqueue(packet, &mut self.marks, dropped),
        }
    }

    /// The packet to send at `now`; its time is still its arrival. `None` if nothing waits, or if all is held back
    /// until [`Discipline::next_release`]. Packets dropped meanwhile are passed to `dropped`.
    #[inline]
    pub fn dequeue(&mut self, now: Time, dropped: impl FnMut(&Packet, DropReason)) -> Option<Packet> {
        match &mut self.kind {
            Kind::DropTail(fifo, _) => fifo.pop(),
            Kind::Red(queue) => {
                let packet = queue.fifo.pop();
                queue.idle = if packet.is_none() { queue.idle.or(Some(now.0)) } else { None };
                packet
            }
            Kind::Cake(queue) => {
                let packet = queue.dequeue(now.0, &mut self.marks, dropped);
                self.next_release = queue.next_release();
                packet
            }
            Kind::CoDel(queue) => {
                let CoDelQueue { settings, codel, fifo, .. } = &mut **queue;
                codel.dequeue(settings, now.0, fifo, &mut self.marks, dropped)
            }
            Kind::DualPi2(queue) => queue.dequeue(now.0, &mut self.marks, dropped),
            Kind::FqCoDel(queue) => queue.dequeue(now.0, &mut self.marks, dropped),
            Kind::FqPie(queue) => queue.dequeue(now.0),
            Kind::Pie(queue) => queue.dequeue(now.0),
        }
    }

    /// The shaper, if there is one, releases nothing before this instant; an instant in the past has no meaning.
    #[inline]
    #[must_use]
    pub fn next_release(&self) -> Time {
        Time(self.next_release)
    }

    /// Packets that wait.
    #[must_use]
    pub fn packets(&self) -> u32 {
        match &self.kind {
            Kind::DropTail(fifo, _) => fifo.packets(),
            Kind::Red(queue) => queue.fifo.packets(),
            Kind::Cake(queue) => queue.packets(),
            Kind::CoDel(queue) => queue.fifo.packets(),
            Kind::DualPi2(queue) => queue.packets(),
            Kind::FqCoDel(queue) => queue.packets(),
            Kind::FqPie(queue) => queue.packets(),
            Kind::Pie(queue) => queue.fifo.packets(),
        }
    }

    /// Bytes that wait.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match &self.kind {
            Kind::DropTail(fifo, _) => fifo.bytes(),
            Kind::Red(queue) => queue.fifo.bytes(),
            Kind::Cake(queue) => queue.bytes(),
            Kind::CoDel(queue) => queue.fifo.bytes(),
            Kind::DualPi2(queue) => queue.bytes(),
            Kind::FqCoDel(queue) => queue.bytes(),
            Kind::FqPie(queue) => queue.bytes(),
            Kind::Pie(queue) => queue.fifo.bytes(),
        }
    }

    /// Packets marked so far (ECN).
    #[must_use]
    pub fn marks(&self) -> u64 {
        self.marks
    }

    /// The counts of each class of a discipline with two: L4S, Classic.
    #[must_use]
    pub fn classes(&self) -> Option<[ClassCounts; 2]> {
        match &self.kind {
            Kind::DualPi2(queue) => Some(queue.classes),
            _ => None,
        }
    }

    /// DualPI2's base probability p', as of its last update.
    #[must_use]
    pub fn base_probability(&self) -> Option<f64> {
        match &self.kind {
            Kind::DualPi2(queue) => Some(queue.probability()),
            _ => None,
        }
    }
}

impl RedQueue {
    fn enqueue(&mut self, mut packet: Packet, marks: &mut u64, mut dropped: impl FnMut(&Packet, DropReason)) {
        let (now, size, capable) = (packet.time.0, packet.size, packet.flags.has(Flags::ECT));
        let (packets, bytes) = (self.fifo.packets(), self.fifo.bytes());
        // Idle ends with this arrival: until the next `dequeue`, later packets find the link busy.
        let idle = self.idle.take().map(|since| now - since);
        let draw = self.draws.bits(self.arrivals);
        self.arrivals += 1;
        match self.red.arrive(Arrival { now, size, capable, packets, bytes, idle, draw }) {
            Verdict::Pass => {}
            Verdict::Mark => {
                *marks += u64::from(mark(&mut packet));
            }
            Verdict::Drop(reason) => {
                if let Some(idle) = idle {
                    self.idle = Some(now - idle);
                }
                return dropped(&packet, reason);
            }
        }
        self.fifo.push(packet);
    }
}

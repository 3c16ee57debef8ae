//! Queue disciplines by themselves: a packet goes in at one instant and comes out at another, when an interface asks.
//!
//! A discipline knows neither link nor medium: whatever serves it calls [`Discipline::enqueue`] for each packet that
//! comes and [`Discipline::dequeue`] whenever it could send, also when nothing waits (then RED's queue is idle from
//! there on, and FQ-CoDel's round goes on). One with a shaper holds packets back: it has none before
//! [`Discipline::opens`]. Every packet that goes in comes out, is handed to `dropped`, or still waits.

mod cake;
mod codel;
mod dualpi2;
mod fair;
mod fifo;
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

/// Marks a packet: sets CE. Whether it came without: one that came marked stays as it is (RFC 3168, section 5.3), and is no mark of
/// this queue's. Linux counts it as one (`INET_ECN_set_ce`); a sum over a path's queues would then have it more than once.
#[inline]
pub(crate) fn mark(packet: &mut Packet) -> bool {
    let fresh = !packet.flags.has(Flags::CE);
    packet.flags = packet.flags.with(Flags::CE);
    fresh
}

/// What a discipline is told of the interface that it stands before.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its nominal rate: RED's automatic settings go by it.
    pub rate: Rate,
    /// The propagation delay behind it, for the same.
    pub propagation: Span,
    /// What makes a flow.
    pub keys: Keys,
}

/// What makes a flow, to a discipline that serves flows in turn: the 5-tuple, in one way or the other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Keys {
    /// A packet's flow and its direction (`Flags::ACK`): a sender and its receiver are one flow of a run.
    #[default]
    FlowAndDirection,
    /// A packet's flow alone, in which the direction is.
    Flow,
    /// As the first, but by the connection that several flows may share: by flow, its number.
    Connections(Arc<[u32]>),
}

impl Keys {
    /// Whether a packet goes against the direction of its flow's data, as far as that is told apart.
    #[inline]
    fn goes_back(&self, packet: &Packet) -> bool {
        *self != Keys::Flow && packet.flags.has(Flags::ACK)
    }

    /// What the packets of a flow have in common, and no others.
    #[inline]
    fn key(&self, packet: &Packet) -> u64 {
        let flow = match self {
            Keys::Connections(of) => of.get(packet.flow.0 as usize).copied().unwrap_or(packet.flow.0),
            Keys::FlowAndDirection | Keys::Flow => packet.flow.0,
        };
        u64::from(flow) << 1 | u64::from(self.goes_back(packet))
    }
}

/// A queue discipline at work, with the packets that wait.
#[derive(Clone, Debug)]
pub struct Discipline {
    kind: Kind,
    marks: u64,
    /// See [`Discipline::opens`].
    opens: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Without a limit, or with one.
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
    /// Since when there has been nothing to send.
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
    /// The discipline of this model, empty, which draws from `stream`.
    ///
    /// # Panics
    /// If the model breaks an invariant: see RED; FQ-CoDel or FQ-PIE has no queues or an empty quantum; a PIE's or
    /// DualPI2's updates are no time apart; DualPI2's k is below 1.
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
        Discipline { kind, marks: 0, opens: 0 }
    }

    /// What makes a flow is this, in place of what was said first. Before the first packet.
    pub fn set_flow_keys(&mut self, keys: &Keys) {
        match &mut self.kind {
            Kind::Cake(queue) => queue.keys = keys.clone(),
            Kind::FqCoDel(queue) => queue.set_flow_keys(keys),
            Kind::FqPie(queue) => queue.set_flow_keys(keys),
            Kind::DropTail(..) | Kind::Red(_) | Kind::CoDel(_) | Kind::DualPi2(_) | Kind::Pie(_) => {}
        }
    }

    /// From the next packet on, no more than this waits. What waits already stays, but of FQ-CoDel's
    /// queues the longest loses what is too much.
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

    /// A packet comes at `now`; calls must come in order of time, among those of [`Discipline::dequeue`]. What is
    /// dropped (it, or others) is handed to `dropped`.
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
                self.opens = queue.opens();
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

    /// The packet to send at `now`, whose time is still that at which it came; `None` if nothing waits, or if what
    /// waits is held back until [`Discipline::opens`]. What is dropped on the way is handed to `dropped`.
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
                self.opens = queue.opens();
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

    /// Before this instant its shaper, if it has one, lets nothing out; one that has passed says no more.
    #[inline]
    #[must_use]
    pub fn opens(&self) -> Time {
        Time(self.opens)
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

    /// What each class of a discipline with two has had: L4S, Classic.
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
        // Until the interface asks again: what comes after the first one finds it busy.
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

//! A link's parameters, as plain data.

use crate::{
    CakeModel, CoDelModel, DualPi2Model, FlowSet, FqCoDelModel, FqPieModel, Hosts, LinkRecovery, Loss, PieModel,
    PolicerModel, RateModel, RedModel,
};
use paceline_units::{Rate, Ratio, Size, Span, Time};

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkModel {
    /// The transmission rate.
    pub rate: RateModel,
    /// Propagation delay, from the end of a transmission to the arrival at the far end; the minimum if there are
    /// `delay_steps`.
    pub propagation: Span,
    /// Changes of the propagation delay on top of `propagation`, in order of time; empty: none.
    pub delay_steps: Vec<DelayStep>,
    /// The queue discipline.
    pub queue: Queue,
    /// If set, the queue's limit is the number of bytes that the link sends within this time at its current rate;
    /// `queue` has the limit for the nominal rate. `None`: the limit in `queue` applies.
    pub limit_in_time: Option<Span>,
    /// Changes of the queue's limit, in order of time.
    pub limit_steps: Vec<(Time, QueueLimit)>,
    /// Drops packets before they reach the queue.
    pub policer: Option<PolicerModel>,
    /// Link-layer retransmission of blocks that fail on the air.
    pub recovery: Option<LinkRecovery>,
    /// Loss of packets after their transmission.
    pub loss: Option<Loss>,
    /// The flows that `loss` applies to; `None`: all flows.
    pub loss_of: Option<FlowSet>,
    /// When `loss` applies: intervals `[from, to)`, in order and disjoint; empty: always.
    pub loss_during: Vec<(Time, Time)>,
    /// Extra delay drawn per packet, without reordering.
    pub delay_variation: Option<DelayVariation>,
    /// Changes of the delay variation, in order of time (`None`: no variation); before the first, `delay_variation`
    /// applies.
    pub variation_steps: Vec<(Time, Option<DelayVariation>)>,
    /// Holds some packets back so that others overtake them.
    pub reorder: Option<Reorder>,
    /// The fraction of packets that arrive twice.
    pub duplicate: Option<Ratio>,
    /// The fraction of packets that arrive damaged (`Flags::CORRUPT`).
    pub corrupt: Option<Ratio>,
    /// Holds sent packets and delivers them together, periodically.
    pub aggregation: Option<Aggregation>,
    /// Clears the ECN field of every packet, so that it arrives as not ECN-capable (RFC 3168, section 5).
    pub bleaches_ecn: bool,
    /// Intervals with extra delay, in order and disjoint; no packet overtakes another.
    pub delay_spikes: Vec<DelaySpike>,
    /// Outages: intervals `[from, to)`, in order and disjoint. Packets that leave the queue during one are lost.
    pub outages: Vec<(Time, Time)>,
    /// Measure [`LinkReport::occupancy`](crate::LinkReport::occupancy), if the queue has a limit.
    pub occupancy: bool,
    /// Measure [`LinkReport::flows`](crate::LinkReport::flows).
    pub per_flow: bool,
}

impl LinkModel {
    /// A link of constant rate without loss or impairments.
    #[must_use]
    pub fn new(rate: Rate, propagation: Span, queue: Queue) -> LinkModel {
        LinkModel {
            rate: RateModel::Constant(rate),
            propagation,
            delay_steps: Vec::new(),
            queue,
            limit_in_time: None,
            limit_steps: Vec::new(),
            policer: None,
            recovery: None,
            loss: None,
            loss_of: None,
            loss_during: Vec::new(),
            delay_variation: None,
            variation_steps: Vec::new(),
            reorder: None,
            duplicate: None,
            corrupt: None,
            aggregation: None,
            bleaches_ecn: false,
            delay_spikes: Vec::new(),
            outages: Vec::new(),
            occupancy: false,
            per_flow: false,
        }
    }

    /// Whether packets arrive spaced no closer than the link's rate allows: none are held back and released together.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        !matches!(self.rate, RateModel::Opportunities(_))
            && self.recovery.is_none()
            && !self.delay_varies()
            && self.reorder.is_none()
            && self.duplicate.is_none()
            && self.aggregation.is_none()
            && self.delay_spikes.is_empty()
    }

    /// Whether packets arrive in the order in which they were sent, each once.
    #[must_use]
    pub fn keeps_order(&self) -> bool {
        let overtaken = self.delay_steps.iter().any(|step| step.overtakes);
        self.reorder.is_none() && self.duplicate.is_none() && !overtaken
    }

    /// Whether the delay varies over time, apart from spikes.
    #[must_use]
    pub fn delay_varies(&self) -> bool {
        !self.delay_steps.is_empty() || self.delay_variation.is_some() || !self.variation_steps.is_empty()
    }

    /// Whether a [`Pipe`](crate::Pipe) can replace this link (a pipe's queue is not measured).
    #[must_use]
    pub fn is_pipe(&self) -> bool {
        matches!(self.rate, RateModel::Constant(_))
            && matches!(self.queue, Queue::Unlimited)
            && self.policer.is_none()
            && self.recovery.is_none()
            && self.loss.is_none()
            && !self.delay_varies()
            && self.reorder.is_none()
            && self.duplicate.is_none()
            && self.corrupt.is_none()
            && self.aggregation.is_none()
            && !self.bleaches_ecn
            && self.delay_spikes.is_empty()
            && self.outages.is_empty()
            && !self.per_flow
    }
}

/// A queue discipline.
#[derive(Clone, PartialEq, Debug)]
pub enum Queue {
    /// Never drops.
    Unlimited,
    /// Drops packets that do not fit.
    DropTail(Limit),
    /// Random Early Detection: drops or marks at random before the queue is full.
    Red(RedModel),
    /// Controlled Delay: drops or marks from the head while the sojourn time is above target for too long.
    CoDel(CoDelModel),
    /// Flows served in turn, each under CoDel.
    FqCoDel(FqCoDelModel),
    /// Drops or marks at random on arrival, to keep the queueing delay at a target.
    Pie(PieModel),
    /// Flows served in turn, each under PIE.
    FqPie(FqPieModel),
    /// Two queues, for scalable and for classic senders, under one controller.
    DualPi2(DualPi2Model),
    /// A shaper; flows and hosts served in turn, each flow under CoDel and BLUE.
    Cake(CakeModel),
}

impl Queue {
    /// Whether a packet's fate is decided only when it leaves the queue: a link with such a queue is a
    /// [`QdiscLink`](crate::QdiscLink).
    #[must_use]
    pub fn decides_at_departure(&self) -> bool {
        !matches!(self, Queue::Unlimited | Queue::DropTail(_) | Queue::Red(_))
    }

    /// Whether it marks ECN-capable packets.
    #[must_use]
    pub fn marks(&self) -> bool {
        match self {
            Queue::Unlimited | Queue::DropTail(_) => false,
            Queue::Red(red) => red.ecn,
            Queue::CoDel(codel) => codel.ecn || codel.mark_above.is_some(),
            Queue::FqCoDel(fair) => fair.codel.ecn || fair.codel.mark_above.is_some(),
            Queue::Pie(pie) => pie.mark_below.is_some(),
            Queue::FqPie(fair) => fair.pie.mark_below.is_some(),
            Queue::DualPi2(_) | Queue::Cake(_) => true,
        }
    }

    /// The queue's limit, in the discipline's unit.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Queue::Unlimited => None,
            Queue::DropTail(limit) => Some(*limit),
            Queue::Red(red) => Some(red.limit_as_counted()),
            Queue::CoDel(codel) => Some(codel.limit),
            Queue::FqCoDel(fair) => Some(fair.codel.limit),
            Queue::Pie(pie) => Some(pie.limit),
            Queue::FqPie(fair) => Some(fair.pie.limit),
            Queue::DualPi2(dual) => Some(dual.limit),
            Queue::Cake(cake) => Some(cake.limit),
        }
    }

    /// Sets the flow-to-host map of a discipline that shares by host.
    pub fn set_hosts(&mut self, hosts: &Hosts) {
        if let Queue::Cake(cake) = self {
            cake.hosts = hosts.clone();
        }
    }
}

/// A queue's limit. The packet in transmission does not count, as in ns-2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(Size),
}

/// A queue's limit from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// A fixed limit.
    Fixed(Limit),
    /// The bytes that the link sends within this time at its current rate.
    InTime(Span),
}

/// A propagation delay from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayStep {
    /// When it takes effect: for packets sent at this time or later.
    pub at: Time,
    /// The delay beyond the link's minimum propagation delay.
    pub extra: Span,
    /// Whether packets sent after the step may overtake earlier ones, as on another route; otherwise they arrive no
    /// earlier.
    pub overtakes: bool,
}

/// Extra delay per packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DelayVariation {
    /// Uniform from 0 to this value.
    Uniform(Span),
    /// The bad Wi-Fi model, with approximately this mean (draft-huitema-ccwg-c4-test, "Handling of High Jitter
    /// Environments").
    BadWifi(Span),
    /// The absolute value of a normal draw, at most `bound` standard deviations (RFC 8868, section 4.5.3).
    Gaussian {
        /// The standard deviation of the normal distribution.
        deviation: Span,
        /// At least 0.
        bound: f64,
    },
}

/// Holds packets after their transmission and delivers them together, as a channel with scheduled access does, or a
/// receiver that polls. No packet overtakes another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aggregation {
    /// The time between deliveries, the first at `from`; above zero.
    pub interval: Span,
    /// Packets sent in `[from, to)` are held, until `to` at the latest.
    pub from: Time,
    /// See `from`.
    pub to: Time,
}

/// An interval with extra delay. Later packets do not overtake those in it; they arrive right behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelaySpike {
    /// It applies to packets sent in `[from, to)`.
    pub from: Time,
    /// See `from`.
    pub to: Time,
    /// The extra delay.
    pub extra: Span,
}

/// Packets held back so that others overtake them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reorder {
    /// The fraction of packets held back.
    pub rate: Ratio,
    /// Their extra delay.
    pub extra: Span,
}

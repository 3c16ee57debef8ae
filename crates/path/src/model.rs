//! What a link is, as plain data.

use crate::{
    CakeModel, CoDelModel, DualPi2Model, FlowSet, FqCoDelModel, FqPieModel, Hosts, LinkRecovery, Loss, PieModel,
    PolicerModel, RateModel, RedModel,
};
use paceline_units::{Rate, Ratio, Size, Span, Time};

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkModel {
    /// How fast it sends.
    pub rate: RateModel,
    /// From the end of a transmission to the arrival at the far end: the least, if there are `delay_steps`.
    pub propagation: Span,
    /// What propagation takes beyond that, in order of time; empty: nothing.
    pub delay_steps: Vec<DelayStep>,
    /// What holds the packets that wait for the transmitter.
    pub queue: Queue,
    /// The queue's limit is what the link would send within this time at its rate of the moment; the one in `queue` is
    /// that of the nominal rate. None: the one in `queue` stands.
    pub limit_in_time: Option<Span>,
    /// From an instant on the queue's limit is another, in order of time.
    pub limit_steps: Vec<(Time, Room)>,
    /// What is dropped before it reaches the queue.
    pub policer: Option<PolicerModel>,
    /// Blocks that fail on the air and are sent again.
    pub recovery: Option<LinkRecovery>,
    /// Packets that vanish after they have used the link.
    pub loss: Option<Loss>,
    /// The flows whose packets these are; none: all flows.
    pub loss_of: Option<FlowSet>,
    /// When packets vanish, `[from, to)` each, in order and apart; empty: always.
    pub loss_during: Vec<(Time, Time)>,
    /// Each packet takes longer by a draw; none overtakes another.
    pub delay_variation: Option<DelayVariation>,
    /// From an instant on it is another, or none, in order of time; before the first, the one above.
    pub variation_steps: Vec<(Time, Option<DelayVariation>)>,
    /// Some packets are held back, and others overtake them.
    pub reorder: Option<Reorder>,
    /// The share of packets that arrive twice.
    pub duplicate: Option<Ratio>,
    /// The share of packets that arrive damaged (`Flags::CORRUPT`).
    pub corrupt: Option<Ratio>,
    /// What has been sent is held, and handed over together, every so often.
    pub aggregation: Option<Aggregation>,
    /// Packets arrive as if they were not ECN-capable, with marks and all: their ECN field is cleared (RFC 3168, section 5).
    pub bleaches_ecn: bool,
    /// When packets take longer, in order and apart; none overtakes another.
    pub delay_spikes: Vec<DelaySpike>,
    /// When the link is down, `[from, to)` each, in order and apart: what leaves the queue then is lost.
    pub outages: Vec<(Time, Time)>,
    /// Measure [`LinkReport::occupancy`](crate::LinkReport::occupancy), of a queue with a limit.
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

    /// Whether what it sends comes out no closer together than it can send: nothing is held back and let go at once.
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

    /// Whether packets take longer at one time than at another, spikes aside.
    #[must_use]
    pub fn delay_varies(&self) -> bool {
        !self.delay_steps.is_empty() || self.delay_variation.is_some() || !self.variation_steps.is_empty()
    }

    /// Whether a [`Pipe`](crate::Pipe) does all that this link does (its queue is then not measured).
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
    /// Refuses nothing.
    Unlimited,
    /// Refuses what does not fit.
    DropTail(Limit),
    /// Random Early Detection: drops or marks at random before the queue is full.
    Red(RedModel),
    /// Controlled Delay: drops or marks from the head while packets have waited for too long.
    CoDel(CoDelModel),
    /// Flows in turn, each under CoDel.
    FqCoDel(FqCoDelModel),
    /// Drops or marks at random on arrival, so that the delay stays at a target.
    Pie(PieModel),
    /// Flows in turn, each under PIE.
    FqPie(FqPieModel),
    /// Two queues, for scalable senders and for the others, under one controller.
    DualPi2(DualPi2Model),
    /// A shaper, flows and hosts in turn, each flow under CoDel and BLUE.
    Cake(CakeModel),
}

impl Queue {
    /// Whether what becomes of a packet is only known when it leaves: a link with such a queue is a
    /// [`ManagedLink`](crate::ManagedLink).
    #[must_use]
    pub fn decides_at_departure(&self) -> bool {
        !matches!(self, Queue::Unlimited | Queue::DropTail(_) | Queue::Red(_))
    }

    /// Whether it marks packets that can be marked.
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

    /// How much may wait, as the discipline counts it.
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

    /// Tells a discipline that shares by hosts whose packets are whose.
    pub fn set_hosts(&mut self, hosts: &Hosts) {
        if let Queue::Cake(cake) = self {
            cake.hosts = hosts.clone();
        }
    }
}

/// How much may wait. The packet in transmission does not count, as in ns-2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(Size),
}

/// How much may wait from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// This.
    Fixed(Limit),
    /// What the link sends within this time at its rate of the moment.
    InTime(Span),
}

/// A propagation delay from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayStep {
    /// It concerns what has been sent from then on.
    pub at: Time,
    /// What it takes beyond the link's least propagation.
    pub extra: Span,
    /// What has been sent from then on may arrive before what was sent earlier, as over another way; otherwise it waits for it.
    pub overtakes: bool,
}

/// How much longer a packet takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DelayVariation {
    /// Uniform from 0 to this.
    Uniform(Span),
    /// That of bad Wi-Fi, of about this mean (draft-huitema-ccwg-c4-test, "Handling of High Jitter Environments").
    BadWifi(Span),
    /// The absolute value of a normal draw, at most `bound` standard deviations (RFC 8868, section 4.5.3).
    Gaussian {
        /// The standard deviation of the normal law.
        deviation: Span,
        /// From 0 on.
        bound: f64,
    },
}

/// Packets that are held after their transmission, and handed over together: those of a channel whose access is granted by the
/// clock, or of a receiver that looks every so often. None overtakes another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aggregation {
    /// From one handing over to the next, the first at `from`; more than nothing.
    pub interval: Span,
    /// What is sent in `[from, to)` is held, until `to` at the latest.
    pub from: Time,
    /// See `from`.
    pub to: Time,
}

/// A time in which packets take longer. Those after it wait for them, and arrive in their wake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelaySpike {
    /// It concerns what has been sent in `[from, to)`.
    pub from: Time,
    /// See `from`.
    pub to: Time,
    /// How much longer that takes.
    pub extra: Span,
}

/// Packets held back so that others overtake them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reorder {
    /// Their share.
    pub rate: Ratio,
    /// How much longer they take.
    pub extra: Span,
}

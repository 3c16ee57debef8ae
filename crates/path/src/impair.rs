//! What happens to a packet after the transmitter: loss, corruption, aggregation, delay variation and spikes,
//! reordering, duplication, ECN bleaching; and the outages of a link.

use crate::backlog::Exit;
use crate::delay_variation::Variations;
use crate::loss::{Chance, Losses};
use crate::model::{Aggregation, DelaySpike, DelayStep, LinkModel};
use crate::{DropReason, Fate};
use paceline_packet::{Flags, Packet};
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// A link's impairments with their state. Each kind draws from its own stream, keyed by arrival index.
#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    loss: Option<Losses>,
    /// All other impairments.
    rest: Option<Box<Rest>>,
}

#[derive(Clone, Debug)]
struct Rest {
    outages: Vec<(Time, Time)>,
    /// The first outage that is not over.
    outage: usize,
    propagation: Span,
    steps: Vec<DelayStep>,
    /// The number of delay steps in effect.
    step: usize,
    aggregation: Option<Aggregation>,
    bleaches_ecn: bool,
    spikes: Vec<DelaySpike>,
    variation: Option<Variations>,
    latest: Time,
    reorder: Option<(Chance, Span)>,
    reorder_stream: Stream,
    duplicate: Option<Chance>,
    duplicate_stream: Stream,
    corrupt: Option<Chance>,
    corrupt_stream: Stream,
    counts: Counts,
}

/// Packets affected by each impairment that does not drop, over the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub reordered: u64,
    pub duplicated: u64,
    pub corrupted: u64,
}

impl Impairments {
    /// The impairments of `model`.
    ///
    /// # Panics
    /// If a probability lies outside [0, 1], outages, delay spikes or intervals of loss are not in order and disjoint,
    /// steps are not in order, or the aggregation interval is zero.
    pub(crate) fn new(model: &LinkModel, stream: Stream) -> Impairments {
        assert!(
            model.outages.iter().all(|(from, to)| from <= to) && model.outages.windows(2).all(|w| w[0].1 <= w[1].0),
            "outages must be in order and apart"
        );
        assert!(
            model.delay_spikes.iter().all(|spike| spike.from <= spike.to)
                && model.delay_spikes.windows(2).all(|w| w[0].to <= w[1].from),
            "delay spikes must be in order and apart"
        );
        assert!(model.delay_steps.windows(2).all(|w| w[0].at < w[1].at), "steps of a delay must be in order");
        assert!(model.aggregation.is_none_or(|held| held.interval > Span::ZERO), "aggregation needs an interval");
        let nothing = !model.delay_varies()
            && model.reorder.is_none()
            && model.duplicate.is_none()
            && model.corrupt.is_none()
            && model.aggregation.is_none()
            && !model.bleaches_ecn
            && model.delay_spikes.is_empty()
            && model.outages.is_empty();
        let rest = Rest {
            outages: model.outages.clone(),
            outage: 0,
            propagation: model.propagation,
            steps: model.delay_steps.clone(),
            step: 0,
            aggregation: model.aggregation,
            bleaches_ecn: model.bleaches_ecn,
            spikes: model.delay_spikes.clone(),
            variation: Variations::new(model, stream.fork(2)),
            latest: Time::ZERO,
            reorder: model.reorder.map(|r| (Chance::new(r.rate), r.extra)),
            reorder_stream: stream.fork(3),
            duplicate: model.duplicate.map(Chance::new),
            duplicate_stream: stream.fork(4),
            corrupt: model.corrupt.map(Chance::new),
            corrupt_stream: stream.fork(5),
            counts: Counts::default(),
        };
        Impairments {
            loss: model
                .loss
                .as_ref()
                .map(|loss| Losses::new(loss, model.loss_of.clone(), stream.fork(1)).during(&model.loss_during)),
            rest: (!nothing).then(|| Box::new(rest)),
        }
    }

    /// A loss model alone, or nothing.
    pub(crate) fn of_loss(loss: Option<Losses>) -> Impairments {
        Impairments { loss, rest: None }
    }

    /// Whether there is at most a loss model.
    pub(crate) fn is_only_loss(&self) -> bool {
        self.rest.is_none()
    }

    /// The loss model.
    pub(crate) fn into_loss(self) -> Option<Losses> {
        self.loss
    }

    pub(crate) fn counts(&self) -> Counts {
        self.rest.as_ref().map_or_else(Counts::default, |rest| rest.counts)
    }

    /// Applies the impairments to the packet that arrived with index `index` at `now` and leaves the queue at `start`:
    /// how it leaves the queue, and its fate. `packet.time` is its arrival at the far end unless an impairment changes
    /// it.
    #[inline]
    pub(crate) fn meet(&mut self, index: u64, (now, start): (u64, u64), packet: &mut Packet) -> (Exit, Fate) {
        let down = self.rest.as_mut().is_some_and(|rest| rest.is_down(Time(start)));
        let lost = self.loss.as_mut().is_some_and(|loss| loss.take(index, start, packet));
        if down || lost {
            packet.time = Time(now);
        }
        match (down, lost, &mut self.rest) {
            (true, _, _) => (Exit::Outage, Fate::Drop(DropReason::Outage)),
            (false, true, _) => (Exit::Lost, Fate::Drop(DropReason::Loss)),
            (false, false, None) => (Exit::Crosses, Fate::Pass),
            (false, false, Some(rest)) => (Exit::Crosses, rest.cross(index, packet)),
        }
    }
}

impl Rest {
    /// Whether the link is down at `time`; calls must come in order of time.
    #[inline(never)]
    fn is_down(&mut self, time: Time) -> bool {
        while self.outages.get(self.outage).is_some_and(|&(_, to)| to <= time) {
            self.outage += 1;
        }
        self.outages.get(self.outage).is_some_and(|&(from, _)| from <= time)
    }

    #[inline(never)]
    fn cross(&mut self, index: u64, packet: &mut Packet) -> Fate {
        let sent = packet.time - self.propagation;
        if self.bleaches_ecn {
            packet.flags = packet.flags.without(Flags::ECT.with(Flags::CE).with(Flags::L4S));
        }
        if let Some(held) = &self.aggregation {
            packet.time = held.delivery_time(sent) + self.propagation;
        }
        if !self.steps.is_empty() {
            self.step_to(sent);
            packet.time += self.step.checked_sub(1).map_or(Span::ZERO, |last| self.steps[last].extra);
        }
        let next = self.spikes.partition_point(|spike| spike.to <= sent);
        if let Some(spike) = self.spikes.get(next).filter(|spike| spike.from <= sent) {
            packet.time += spike.extra;
        }
        if let Some(variation) = &self.variation {
            packet.time += variation.of(index, sent);
        }
        if self.variation.is_some() || !self.spikes.is_empty() || !self.steps.is_empty() {
            packet.time = packet.time.max(self.latest);
            self.latest = packet.time;
        }
        if self.corrupt.is_some_and(|chance| chance.happens(self.corrupt_stream.bits(index))) {
            packet.flags = packet.flags.with(Flags::CORRUPT);
            self.counts.corrupted += 1;
        }
        if let Some((chance, extra)) = self.reorder
            && chance.happens(self.reorder_stream.bits(index))
        {
            packet.time += extra;
            self.counts.reordered += 1;
        }
        if self.duplicate.is_some_and(|chance| chance.happens(self.duplicate_stream.bits(index))) {
            self.counts.duplicated += 1;
            return Fate::Twice(packet.time);
        }
        Fate::Pass
    }

    /// Applies the delay steps up to `sent`. After a step that overtakes, packets do not wait for earlier ones.
    fn step_to(&mut self, sent: Time) {
        let begun = self.steps.partition_point(|step| step.at <= sent);
        if self.steps.get(self.step..begun).is_some_and(|new| new.iter().any(|step| step.overtakes)) {
            self.latest = Time::ZERO;
        }
        self.step = begun;
    }
}

impl Aggregation {
    /// When a packet is delivered whose transmission ended at `sent`. If it ends at the instant of a delivery, it is
    /// included.
    fn delivery_time(&self, sent: Time) -> Time {
        if !(self.from..self.to).contains(&sent) {
            return sent;
        }
        let turns = sent.since(self.from).0.div_ceil(self.interval.0);
        let at = turns.checked_mul(self.interval.0).and_then(|after| self.from.0.checked_add(after));
        Time(at.unwrap_or(u64::MAX)).min(self.to)
    }
}

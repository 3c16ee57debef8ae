//! Paths: links with their queue disciplines, loss and impairment models, rate traces; and 802.11 cells ([`wifi`]).
//!
//! A link (one direction) is evaluated at the moment a packet reaches its queue: a work-conserving first-in-first-out
//! server is free again at max(free, now) + size/rate, so the end of a transmission needs no event. A queue that
//! decides when a packet leaves ([`Discipline`]: CoDel, FQ-CoDel, PIE) needs one event per departure: [`QdiscLink`].
//! The crate uses engine, packet, random and units; it does no I/O. Start with [`Link`] and [`LinkModel`]; the user's
//! page is docs/links.md.

pub mod access_point;
mod backlog;
mod delay_variation;
mod flow_counters;
mod impair;
mod limit;
mod link;
mod link_arq;
mod loss;
mod meter;
mod model;
mod occupancy;
mod opportunities;
mod pipe;
mod policer;
mod qdisc;
mod qdisc_link;
mod queue_level;
mod rate;
mod red;
mod schedule;
pub mod trace;
pub mod wifi;

pub use flow_counters::FlowReport;
pub use link::Link;
pub use link_arq::LinkRecovery;
pub use loss::{FlowSet, GilbertElliott, Loss, On, Periodic, Start, TwoState};
pub use meter::{LinkReport, Measure, Series, Totals, Waits};
pub use model::{Aggregation, DelaySpike, DelayStep, DelayVariation, Limit, LinkModel, Queue, QueueLimit, Reorder};
pub use opportunities::Opportunities;
pub use paceline_engine::{DropReason, Drops, Fate};
pub use pipe::Pipe;
pub use policer::PolicerModel;
pub use qdisc::{
    CakeModel, ClassCounts, CoDelModel, DelayEstimate, Discipline, DualPi2Model, DualPi2Variant, DualScheduler,
    FqCoDelModel, FqPieModel, Framing, Hosts, Interface, Isolation, Keys, NativeAqm, PieModel, StepFor,
};
pub use qdisc_link::QdiscLink;
pub use rate::{RateError, RateModel};
pub use red::{AdaptiveRed, RedMode, RedModel};
pub use schedule::Schedule;

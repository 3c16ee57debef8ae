//! What CAKE is set to.

use crate::model::Limit;
use paceline_units::{Rate, Size, Span};
use std::sync::Arc;

/// CAKE (Linux' `sch_cake`), all of it in one tin.
#[derive(Clone, PartialEq, Debug)]
pub struct CakeModel {
    /// What its shaper lets through; none: it asks for no more than the link gives.
    pub bandwidth: Option<Rate>,
    /// How much may wait in all queues together.
    pub limit: Limit,
    /// A usual round trip: COBALT's interval; a twentieth of it is the target.
    pub rtt: Span,
    /// Who shares with whom.
    pub isolation: Isolation,
    /// What the shaper and the turns count for each packet beyond its size. Linux has an interface's own header in a
    /// packet's length: 14 bytes of Ethernet, with which a full packet ends a turn of 1514.
    pub overhead: Size,
    /// They count no packet, overhead included, as shorter than this.
    pub mpu: Size,
    /// What the link below makes of that.
    pub framing: Framing,
    /// It stands behind the bottleneck: what it drops is charged to the shaper too, and no flow is signalled at a delay
    /// that the number of busy flows makes of itself.
    pub ingress: bool,
    /// The longest packet: target and interval are never less than a few of them take.
    pub mtu: Size,
    /// Whose packets are whose.
    pub hosts: Hosts,
}

impl CakeModel {
    /// `tc-cake`'s for this bandwidth, `besteffort`: 100 ms, triple isolation, on Ethernet.
    #[must_use]
    pub fn new(bandwidth: Option<Rate>) -> CakeModel {
        let (rtt, mtu) = (Span::from_millis(100), Size(1514));
        CakeModel {
            bandwidth,
            limit: Limit::Bytes(CakeModel::usual_limit(bandwidth, rtt, mtu)),
            rtt,
            isolation: Isolation::default(),
            overhead: Size(14),
            mpu: Size(0),
            framing: Framing::default(),
            ingress: false,
            mtu,
            hosts: Hosts::default(),
        }
    }

    /// What waits at most unless it is said: what the shaper lets through in four `rtt`s, 4 MiB at least, and never
    /// more than 10240 packets of `mtu`.
    #[must_use]
    pub fn usual_limit(bandwidth: Option<Rate>, rtt: Span, mtu: Size) -> Size {
        let max = mtu.0.saturating_mul(10_240);
        let shaped = |rate: Rate| (rate * Span(rtt.0.saturating_mul(4))).0.max(4 << 20);
        Size(bandwidth.map_or(max, |rate| shaped(rate).min(max)))
    }
}

/// What has a queue of its own, and who takes turns; the names are `tc-cake`'s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// All in one queue.
    FlowBlind,
    /// A queue for each host that sends.
    SrcHost,
    /// A queue for each host that receives.
    DstHost,
    /// A queue for each pair of hosts.
    Hosts,
    /// A queue for each flow, and nothing for hosts.
    Flows,
    /// A queue for each flow; hosts that send share alike, and flows within each.
    DualSrcHost,
    /// A queue for each flow; hosts that receive share alike, and flows within each.
    DualDstHost,
    /// A queue for each flow, whose turn is divided by the busy flows of whichever of its two hosts has more.
    #[default]
    Triple,
}

impl Isolation {
    /// Whether hosts that send are told apart beside flows.
    pub(super) fn shares_by_source(self) -> bool {
        matches!(self, Isolation::DualSrcHost | Isolation::Triple)
    }

    /// And hosts that receive.
    pub(super) fn shares_by_destination(self) -> bool {
        matches!(self, Isolation::DualDstHost | Isolation::Triple)
    }
}

/// How a packet lies in the cells or blocks of the link below.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    /// As it is.
    #[default]
    None,
    /// In whole ATM cells: 53 bytes for each 48 (ADSL).
    Atm,
    /// One byte more for each 64 or part of them, for PTM's 64b/65b (VDSL2).
    Ptm,
}

/// Whose packets are whose. A packet has no addresses, but its flow's number.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Hosts {
    /// Each flow has two hosts of its own.
    #[default]
    OfEachFlow,
    /// The hosts of flow 0, 1, ...: that of its sender, and that of its receiver. A flow beyond the table has two of
    /// its own.
    Of(Arc<[[u32; 2]]>),
    /// In the packet: its stamp has 16 bits of a hash of the source address over as many of the destination's.
    Stamped,
}

//! CAKE's parameters.

use crate::model::Limit;
use paceline_units::{Rate, Size, Span};
use std::sync::Arc;

/// CAKE (Linux' `sch_cake`), with a single tin.
#[derive(Clone, PartialEq, Debug)]
pub struct CakeModel {
    /// The shaper's rate; `None`: unlimited.
    pub bandwidth: Option<Rate>,
    /// The limit of all queues together.
    pub limit: Limit,
    /// The expected round-trip time: COBALT's interval; a twentieth of it is the target.
    pub rtt: Span,
    /// The units between which capacity is shared.
    pub isolation: Isolation,
    /// Bytes that the shaper and the scheduler add to each packet's size. Linux includes the interface's own header in
    /// a packet's length: 14 bytes for Ethernet, with which a full packet uses up a quantum of 1514.
    pub overhead: Size,
    /// The minimum size that they count per packet, overhead included.
    pub mpu: Size,
    /// The link layer's framing.
    pub framing: Framing,
    /// The shaper stands behind the bottleneck: drops are charged to it too, and no flow is signalled for a delay that
    /// the number of bulk flows alone explains.
    pub ingress: bool,
    /// The maximum packet size: target and interval last for at least a few such packets.
    pub mtu: Size,
    /// The hosts of each flow.
    pub hosts: Hosts,
}

impl CakeModel {
    /// `tc-cake`'s defaults for this bandwidth, `besteffort`: 100 ms, triple isolation, on Ethernet.
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

    /// The default limit: what the shaper sends in four `rtt`s, at least 4 MiB, and at most 10240 packets of `mtu`.
    #[must_use]
    pub fn usual_limit(bandwidth: Option<Rate>, rtt: Span, mtu: Size) -> Size {
        let max = mtu.0.saturating_mul(10_240);
        let shaped = |rate: Rate| (rate * Span(rtt.0.saturating_mul(4))).0.max(4 << 20);
        Size(bandwidth.map_or(max, |rate| shaped(rate).min(max)))
    }
}

/// Which units have their own queue, and which share fairly; the names are `tc-cake`'s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// One queue for all packets.
    FlowBlind,
    /// One queue per sending host.
    SrcHost,
    /// One queue per receiving host.
    DstHost,
    /// One queue per pair of hosts.
    Hosts,
    /// One queue per flow; hosts play no role.
    Flows,
    /// One queue per flow; sending hosts share equally, and flows within each host.
    DualSrcHost,
    /// One queue per flow; receiving hosts share equally, and flows within each host.
    DualDstHost,
    /// One queue per flow; its quantum is divided by the larger bulk flow count of its two hosts.
    #[default]
    Triple,
}

impl Isolation {
    /// Whether sending hosts share, in addition to flows.
    pub(super) fn shares_by_source(self) -> bool {
        matches!(self, Isolation::DualSrcHost | Isolation::Triple)
    }

    /// Whether receiving hosts share, in addition to flows.
    pub(super) fn shares_by_destination(self) -> bool {
        matches!(self, Isolation::DualDstHost | Isolation::Triple)
    }
}

/// How the link layer packs a packet into cells or blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    /// No framing.
    #[default]
    None,
    /// Whole ATM cells: 53 bytes per 48 (ADSL).
    Atm,
    /// One extra byte per 64 bytes or part of them, for PTM's 64b/65b (VDSL2).
    Ptm,
}

/// The hosts of each flow. A packet has no addresses, only its flow's number.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Hosts {
    /// Each flow has its own two hosts.
    #[default]
    OfEachFlow,
    /// The hosts of flow 0, 1, ...: its sender's and its receiver's. A flow beyond the table has its own two hosts.
    Of(Arc<[[u32; 2]]>),
    /// From the packet: its stamp has 16 bits of a hash of the source address, above 16 bits of the destination's.
    Stamped,
}

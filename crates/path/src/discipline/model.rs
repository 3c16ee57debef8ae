//! What the disciplines that decide when a packet leaves are set to.

use crate::model::Limit;
use paceline_units::{Ratio, Size, Span};

/// CoDel (RFC 8289).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoDelModel {
    /// How much may wait, whatever the delay.
    pub limit: Limit,
    /// The delay that may stand (section 4.2).
    pub target: Span,
    /// For how long it must stand before the first drop; somewhat above a usual round-trip time (section 4.3).
    pub interval: Span,
    /// While no more than this waits behind a packet, it is not dropped (section 5: MAXPACKET).
    pub mtu: Size,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
    /// Mark ECN-capable packets that have waited for longer than this, whatever else (RFC 8290 section 5.2.7).
    pub mark_above: Option<Span>,
    /// Which of them.
    pub mark_above_for: StepFor,
}

/// Which ECN-capable packets a threshold marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StepFor {
    /// All: Linux' `ce_threshold`.
    #[default]
    Ect,
    /// Those of scalable senders, ECT(1) (RFC 9331): Linux' `ce_threshold_selector 0x01/0x03`.
    Ect1,
}

impl CoDelModel {
    /// 5 ms and 100 ms, no marks.
    #[must_use]
    pub fn new(limit: Limit) -> CoDelModel {
        let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
        CoDelModel {
            limit,
            target,
            interval,
            mtu: Size(1500),
            ecn: false,
            mark_above: None,
            mark_above_for: StepFor::Ect,
        }
    }
}

/// FQ-CoDel (RFC 8290): queues by flow, served in turn, each under CoDel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FqCoDelModel {
    /// CoDel, for each queue; its limit is that of all queues together.
    pub codel: CoDelModel,
    /// How many queues there are; flows of one hash share one.
    pub queues: u32,
    /// The bytes that a queue may send in its turn.
    pub quantum: Size,
    /// The most packets that are dropped at once when all queues together are above their limit.
    pub batch: u32,
}

impl FqCoDelModel {
    /// 1024 queues, 1514 bytes, 64 packets, and marks (RFC 8290 section 5.2).
    #[must_use]
    pub fn new(limit: Limit) -> FqCoDelModel {
        let codel = CoDelModel { ecn: true, ..CoDelModel::new(limit) };
        FqCoDelModel { codel, queues: 1024, quantum: Size(1514), batch: 64 }
    }
}

/// How PIE knows the delay of its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayEstimate {
    /// From the queue's length and the rate at which packets leave it (RFC 8033 section 5.2).
    DepartureRate,
    /// The packet that left last had waited for so long (section 4.3); nothing waits: zero.
    #[default]
    Timestamps,
}

/// PIE (RFC 8033).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PieModel {
    /// How much may wait, whatever the delay (TAIL_DROP).
    pub limit: Limit,
    /// The delay to hold (QDELAY_REF).
    pub target: Span,
    /// How often the probability is renewed (T_UPDATE).
    pub update: Span,
    /// For how long after an idle time nothing is dropped (MAX_BURST).
    pub burst: Span,
    /// What the probability grows by in each update, for each second of delay above the target, before it is tuned.
    pub alpha: f64,
    /// And for each second by which the delay has grown.
    pub beta: f64,
    /// How it knows the delay.
    pub estimate: DelayEstimate,
    /// Space drops out evenly (section 5.4).
    pub derandomize: bool,
    /// Let a packet's probability be in proportion to its size (section 4.1 leaves it open).
    pub by_size: bool,
    /// The size of a mean packet. Two of them may always wait.
    pub mean_packet: Size,
    /// Mark packets of ECN-capable transports instead of dropping them, while the probability is below this
    /// (section 5.1).
    pub mark_below: Option<Ratio>,
}

impl PieModel {
    /// RFC 8033's: 15 ms, renewed every 15 ms, 150 ms of burst, 1/8 and 5/4, packets of 1500 bytes, no marks.
    #[must_use]
    pub fn new(limit: Limit) -> PieModel {
        let (target, update, burst) = (Span::from_millis(15), Span::from_millis(15), Span::from_millis(150));
        PieModel {
            limit,
            target,
            update,
            burst,
            alpha: 0.125,
            beta: 1.25,
            estimate: DelayEstimate::default(),
            derandomize: false,
            by_size: false,
            mean_packet: Size(1500),
            mark_below: None,
        }
    }
}

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

/// FQ-PIE: queues by flow, served in turn, each under PIE (Linux' `sch_fq_pie`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FqPieModel {
    /// PIE, for each queue; its limit is that of all queues together.
    pub pie: PieModel,
    /// How many queues there are; flows of one hash share one.
    pub queues: u32,
    /// The bytes that a queue may send in its turn.
    pub quantum: Size,
}

impl FqPieModel {
    /// 1024 queues, 1514 bytes, drops spaced out, no marks (Linux).
    #[must_use]
    pub fn new(limit: Limit) -> FqPieModel {
        let pie = PieModel { derandomize: true, ..PieModel::new(limit) };
        FqPieModel { pie, queues: 1024, quantum: Size(1514) }
    }
}

/// Whose DualPI2.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DualPi2Variant {
    /// That of RFC 9332, appendix A: marks and drops evenly spaced.
    #[default]
    Rfc9332,
    /// Linux' `sch_dualpi2`: marks and drops drawn.
    Linux,
}

/// How the L4S queue of DualPI2 marks by its own delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NativeAqm {
    /// What has waited for longer.
    Step(Span),
    /// Ever more from a delay on, and all beyond a range above it (RFC 9332, figure 5).
    Ramp {
        /// minTh.
        from: Span,
        /// range.
        range: Span,
    },
}

/// Which of DualPI2's queues goes first when both have packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DualScheduler {
    /// Weighted round robin in bytes, with this share for the Classic queue.
    Weighted(Ratio),
    /// The packet that has waited for longer, that of the L4S queue as if it had waited for so much more
    /// (RFC 9332, appendix B, figure 10).
    TimeShifted(Span),
}

/// DualQ Coupled PI2 (RFC 9332).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DualPi2Model {
    /// Whose.
    pub variant: DualPi2Variant,
    /// How much may wait in both queues together, whatever the delay.
    pub limit: Limit,
    /// The delay to hold in the Classic queue.
    pub target: Span,
    /// How often p' is renewed (Tupdate).
    pub update: Span,
    /// What p' grows by in each update, for each second of delay above the target (alpha, in Hz).
    pub alpha: f64,
    /// And for each second by which the delay has grown (beta, in Hz).
    pub beta: f64,
    /// k: an L4S packet is marked with k p', a Classic one with p'^2. At least 1.
    pub coupling: f64,
    /// How the L4S queue marks by its own delay.
    pub native: NativeAqm,
    /// While no more packets than this are left in the L4S queue, it does not (Th_len); of Linux: while fewer were there when
    /// the packet came.
    pub native_packets: u32,
    /// Which queue goes first.
    pub scheduler: DualScheduler,
    /// At overload drop, with p'^2, of either class; else mark all of L4S, and let the queue run full.
    pub drop_overload: bool,
    /// The longest packet: the scheduler begins with credit for it, and as much room is left (RFC 9332, figure 3); Linux leaves the
    /// coupled law out while less than two of them wait.
    pub mtu: Size,
}

impl DualPi2Model {
    /// RFC 9332's (figure 2): 15 ms, gains for round trips of up to 100 ms, k = 2, a ramp from 800 us over 400 us unless a packet is the
    /// only one or has one behind it, a sixteenth for the Classic queue.
    #[must_use]
    pub fn rfc9332(limit: Limit) -> DualPi2Model {
        let ramp = NativeAqm::Ramp { from: Span::from_micros(800), range: Span::from_micros(400) };
        DualPi2Model {
            variant: DualPi2Variant::Rfc9332,
            limit,
            target: Span::from_millis(15),
            update: Span::ZERO,
            alpha: 0.0,
            beta: 0.0,
            coupling: 2.0,
            native: ramp,
            native_packets: 1,
            scheduler: DualScheduler::Weighted(Ratio(1.0 / 16.0)),
            drop_overload: true,
            mtu: Size(1500),
        }
        .tuned(Span::from_millis(100))
    }

    /// Linux' `sch_dualpi2`: 15 ms, renewed every 16 ms, gains of 41/256 and 819/256, k = 2, a step at 1 ms, a tenth for the Classic queue.
    #[must_use]
    pub fn linux(limit: Limit) -> DualPi2Model {
        DualPi2Model {
            variant: DualPi2Variant::Linux,
            update: Span::from_millis(16),
            alpha: 41.0 / 256.0,
            beta: 819.0 / 256.0,
            native: NativeAqm::Step(Span::from_millis(1)),
            native_packets: 0,
            scheduler: DualScheduler::Weighted(Ratio(0.1)),
            ..DualPi2Model::rfc9332(limit)
        }
    }

    /// With the update interval and the gains for round trips of up to `rtt_max` (RFC 9332, figure 2, lines 12 to 14).
    #[must_use]
    pub fn tuned(self, rtt_max: Span) -> DualPi2Model {
        let update = Span(self.target.0.min(rtt_max.0 / 3)).max(Span(1));
        let rtt = rtt_max.as_secs_f64();
        DualPi2Model { update, alpha: 0.1 * update.as_secs_f64() / (rtt * rtt), beta: 0.3 / rtt, ..self }
    }
}

/// What one class of a discipline with two has had from the beginning of the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassCounts {
    /// Packets that left the queue.
    pub departures: u64,
    /// Their bytes.
    pub departed_bytes: u64,
    /// Packets marked, of those.
    pub marks: u64,
    /// Packets that the discipline dropped, for whatever reason.
    pub drops: u64,
    /// Nanoseconds that those that left had waited, in all.
    pub waited: u128,
}

impl ClassCounts {
    /// What has come since `before`.
    #[must_use]
    pub fn since(&self, before: &ClassCounts) -> ClassCounts {
        ClassCounts {
            departures: self.departures - before.departures,
            departed_bytes: self.departed_bytes - before.departed_bytes,
            marks: self.marks - before.marks,
            drops: self.drops - before.drops,
            waited: self.waited - before.waited,
        }
    }
}

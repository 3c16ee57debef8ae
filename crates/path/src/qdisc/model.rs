//! Parameters of the disciplines that decide when a packet leaves.

use crate::model::Limit;
use paceline_units::{Ratio, Size, Span};

/// CoDel (RFC 8289).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoDelModel {
    /// The queue's limit, whatever the delay.
    pub limit: Limit,
    /// The acceptable standing delay (section 4.2).
    pub target: Span,
    /// How long the delay must exceed the target before the first drop; somewhat above a typical round-trip time
    /// (section 4.3).
    pub interval: Span,
    /// A packet is not dropped if no more than this many bytes wait behind it (section 5: MAXPACKET).
    pub mtu: Size,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
    /// Mark ECN-capable packets that have waited longer than this, independently of CoDel's state (RFC 8290 section
    /// 5.2.7).
    pub mark_above: Option<Span>,
    /// Which packets `mark_above` applies to.
    pub mark_above_for: StepFor,
}

/// Which ECN-capable packets a threshold marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StepFor {
    /// All of them: Linux' `ce_threshold`.
    #[default]
    Ect,
    /// Those of scalable senders, ECT(1) (RFC 9331): Linux' `ce_threshold_selector 0x01/0x03`.
    Ect1,
}

impl CoDelModel {
    /// The RFC's 5 ms and 100 ms, without marks.
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

/// FQ-CoDel (RFC 8290): flow queues served in turn, each under CoDel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FqCoDelModel {
    /// CoDel's parameters for each queue; the limit is that of all queues together.
    pub codel: CoDelModel,
    /// The number of queues; flows with the same hash share one.
    pub queues: u32,
    /// The bytes that a queue may send in its turn.
    pub quantum: Size,
    /// The maximum number of packets dropped at once when the limit of all queues together is exceeded.
    pub batch: u32,
}

impl FqCoDelModel {
    /// RFC 8290's defaults (section 5.2): 1024 queues, 1514 bytes, 64 packets, and marks.
    #[must_use]
    pub fn new(limit: Limit) -> FqCoDelModel {
        let codel = CoDelModel { ecn: true, ..CoDelModel::new(limit) };
        FqCoDelModel { codel, queues: 1024, quantum: Size(1514), batch: 64 }
    }
}

/// How PIE estimates its queue's delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DelayEstimate {
    /// From the queue's length and the rate at which packets leave it (RFC 8033 section 5.2).
    DepartureRate,
    /// The sojourn time of the packet that left last (section 4.3); zero if nothing waits.
    #[default]
    Timestamps,
}

/// PIE (RFC 8033).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PieModel {
    /// The queue's limit, whatever the delay (TAIL_DROP).
    pub limit: Limit,
    /// The target delay (QDELAY_REF).
    pub target: Span,
    /// The update interval of the probability (T_UPDATE).
    pub update: Span,
    /// For how long after an idle time nothing is dropped (MAX_BURST).
    pub burst: Span,
    /// The increase of the probability per update and per second of delay above the target, before auto-tuning.
    pub alpha: f64,
    /// The increase per second by which the delay has grown.
    pub beta: f64,
    /// The delay estimate.
    pub estimate: DelayEstimate,
    /// Space drops evenly (section 5.4).
    pub derandomize: bool,
    /// Make a packet's probability proportional to its size (section 4.1 leaves it open).
    pub by_size: bool,
    /// The mean packet size. Two such packets may always wait.
    pub mean_packet: Size,
    /// Mark packets of ECN-capable transports instead of dropping them, while the probability is below this
    /// (section 5.1).
    pub mark_below: Option<Ratio>,
}

impl PieModel {
    /// RFC 8033's: 15 ms, updated every 15 ms, 150 ms of burst, 1/8 and 5/4, packets of 1500 bytes, no marks.
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

/// FQ-PIE: flow queues served in turn, each under PIE (Linux' `sch_fq_pie`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FqPieModel {
    /// PIE's parameters for each queue; the limit is that of all queues together.
    pub pie: PieModel,
    /// The number of queues; flows with the same hash share one.
    pub queues: u32,
    /// The bytes that a queue may send in its turn.
    pub quantum: Size,
}

impl FqPieModel {
    /// Linux' defaults: 1024 queues, 1514 bytes, drops spaced out, no marks.
    #[must_use]
    pub fn new(limit: Limit) -> FqPieModel {
        let pie = PieModel { derandomize: true, ..PieModel::new(limit) };
        FqPieModel { pie, queues: 1024, quantum: Size(1514) }
    }
}

/// Which DualPI2 implementation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DualPi2Variant {
    /// RFC 9332, appendix A: marks and drops evenly spaced.
    #[default]
    Rfc9332,
    /// Linux' `sch_dualpi2`: random marks and drops.
    Linux,
}

/// How DualPI2's L4S queue marks by its own delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NativeAqm {
    /// Marks packets that have waited longer than this.
    Step(Span),
    /// The probability rises from 0 at a delay to 1 at the end of a range above it (RFC 9332, figure 5).
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
    /// The packet that has waited longer goes first, with this time added to the wait of the L4S packet (RFC 9332,
    /// appendix B, figure 10).
    TimeShifted(Span),
}

/// DualQ Coupled PI2 (RFC 9332).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DualPi2Model {
    /// The implementation.
    pub variant: DualPi2Variant,
    /// The limit of both queues together, whatever the delay.
    pub limit: Limit,
    /// The target delay of the Classic queue.
    pub target: Span,
    /// The update interval of p' (Tupdate).
    pub update: Span,
    /// The increase of p' per update and per second of delay above the target (alpha, in Hz).
    pub alpha: f64,
    /// The increase per second by which the delay has grown (beta, in Hz).
    pub beta: f64,
    /// k: an L4S packet is marked with k p', a Classic one with p'^2. At least 1.
    pub coupling: f64,
    /// How the L4S queue marks by its own delay.
    pub native: NativeAqm,
    /// The L4S queue does not mark by delay while no more than this many packets are left in it (Th_len); in Linux, if
    /// fewer were there at the packet's arrival.
    pub native_packets: u32,
    /// Which queue goes first.
    pub scheduler: DualScheduler,
    /// At overload drop both classes with p'^2; otherwise mark all of L4S and let the queue fill up.
    pub drop_overload: bool,
    /// The maximum packet size. The scheduler starts with credit for it, and the RFC reserves space for it (RFC 9332,
    /// figure 3); Linux skips the coupled law while less than two of them wait.
    pub mtu: Size,
}

impl DualPi2Model {
    /// RFC 9332's defaults (figure 2): 15 ms, gains for round trips of up to 100 ms, k = 2, a ramp from 800 us over 400
    /// us if more than one packet is left in the queue, and a sixteenth for the Classic queue.
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

    /// Linux' `sch_dualpi2`: 15 ms, updated every 16 ms, gains of 41/256 and 819/256, k = 2, a step at 1 ms, a tenth
    /// for the Classic queue.
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

    /// Sets the update interval and the gains for round trips of up to `rtt_max` (RFC 9332, figure 2, lines 12 to 14).
    #[must_use]
    pub fn tuned(self, rtt_max: Span) -> DualPi2Model {
        let update = Span(self.target.0.min(rtt_max.0 / 3)).max(Span(1));
        let rtt = rtt_max.as_secs_f64();
        DualPi2Model { update, alpha: 0.1 * update.as_secs_f64() / (rtt * rtt), beta: 0.3 / rtt, ..self }
    }
}

/// Counts of one class of a discipline with two, from time zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassCounts {
    /// Packets that left the queue.
    pub departures: u64,
    /// Their bytes.
    pub departed_bytes: u64,
    /// Packets marked, of those.
    pub marks: u64,
    /// Packets dropped by the discipline, for any reason.
    pub drops: u64,
    /// The sum of the departed packets' waits, in nanoseconds.
    pub waited: u128,
}

impl ClassCounts {
    /// The difference from `before`.
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

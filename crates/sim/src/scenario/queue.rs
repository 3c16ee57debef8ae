//! Queue disciplines in a scenario file.

mod defaults;

use super::values::Limit;
use defaults::{
    batch, burst, dual_coupling, ethernet, fair_packets, fifteen_ms, five_ms, half, half_second, hundred_ms,
    hundred_packets, hundredth, kilobyte, mtu, nine_tenths, nothing, pie_alpha, pie_beta, quantum, ramp_range, tenth,
    tenth_share, thousand_packets, thousand_queues, time_shift, yes,
};
use paceline_path::CakeModel;
use paceline_units::{Rate, Ratio, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queue discipline and its limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-kind" = "droptail"))]
pub enum Queue {
    /// First in, first out; what finds the queue full is dropped.
    Droptail {
        /// The most that waits, in packets, in bytes, or as the time in which the link sends it (1 to 1000000000
        /// packets, 1 B to 1000 GB, 1 ns to 3600 s). A time is made bytes at the link's rate of the moment; of a
        /// trace of opportunities at the mean of the last second.
        #[serde(default = "hundred_packets")]
        limit: Limit,
    },
    /// Random early detection (Floyd and Jacobson 1993), as in ns-2.
    Red {
        /// The most that waits, in packets, in bytes, or as the time in which the link sends it (1 to 1000000000
        /// packets, 1 B to 1000 GB, 1 ns to 3600 s). A time is made bytes at the link's rate of the moment; of a
        /// trace of opportunities at the mean of the last second.
        #[serde(default = "hundred_packets")]
        limit: Limit,
        /// Average queue in packets below which nothing is dropped.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.001, max = 1e9), extend("x-default" = "from the link's rate, as in ns-2"))]
        min_threshold: Option<f64>,
        /// Average queue in packets above which all (gentle: ever more) is dropped. More than `min_threshold`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.001, max = 1e9), extend("x-default" = "3 x min_threshold"))]
        max_threshold: Option<f64>,
        /// Instead of `min_threshold`: a share of `limit`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        min_share: Option<Ratio>,
        /// Instead of `max_threshold`: a share of `limit`. More than `min_share`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        max_share: Option<Ratio>,
        /// Weight of the newest queue length in the average.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1e-9, max = 1.0), extend("x-default" = "from the link's rate, as in ns-2"))]
        weight: Option<f64>,
        /// Share dropped when the average reaches `max_threshold`.
        #[serde(default = "tenth")]
        #[schemars(range(min = 1e-9, max = 1.0))]
        max_p: f64,
        /// The share rises from max_p to 1 between max_threshold and twice that, instead of at once.
        #[serde(default = "yes")]
        gentle: bool,
        /// Spaces drops: none within half the mean distance after one.
        #[serde(default = "yes")]
        wait: bool,
        /// Whether a packet's chance to be dropped and the average queue count packets or bytes.
        #[serde(default)]
        mode: RedMode,
        /// Mean packet size, for idle time and byte mode.
        #[serde(default = "kilobyte")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mean_packet: Size,
        /// Marks ECN-capable packets instead of dropping them early (RFC 3168).
        #[serde(default)]
        ecn: bool,
        /// Marks only while the probability is below this share, and drops above it; see `ecn`.
        #[serde(default = "tenth_share")]
        mark_below: Ratio,
        /// Size of the packets that idle time counts as.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "as mean_packet", "x-min" = "1 B", "x-max" = "65535 B"))]
        idle_packet: Option<Size>,
        /// Moves max_p so that the average stays between the thresholds (Floyd, Gummadi, Shenker 2001); `{}` is enough.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none: max_p stays"))]
        adaptive: Option<AdaptiveRed>,
        /// Sets thresholds and weight from the link's rate, as ns-2 does; then none of them may be given.
        #[serde(default)]
        automatic: bool,
    },
    /// Controlled delay (RFC 8289): drops from the head while packets have waited for too long.
    Codel {
        /// The most that waits, in packets, in bytes, or as the time in which the link sends it (1 to 1000000000
        /// packets, 1 B to 1000 GB, 1 ns to 3600 s). A time is made bytes at the link's rate of the moment; of a
        /// trace of opportunities at the mean of the last second.
        #[serde(default = "thousand_packets")]
        limit: Limit,
        /// The delay that may stand in the queue.
        #[serde(default = "five_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        target: Span,
        /// For how long the delay must stand above `target` before the first drop; somewhat above a usual round-trip
        /// time.
        #[serde(default = "hundred_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        interval: Span,
        /// While no more than this waits behind a packet, it is not dropped.
        #[serde(default = "mtu")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mtu: Size,
        /// Marks ECN-capable packets instead of dropping them for their delay (RFC 3168).
        #[serde(default)]
        ecn: bool,
        /// Marks ECN-capable packets that have waited for longer than this, whatever else.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none", "x-min" = "1 us", "x-max" = "60 s"))]
        mark_above: Option<Span>,
        /// Which ECN-capable packets `mark_above` marks.
        #[serde(default)]
        mark_above_for: StepFor,
    },
    /// Flow queues under CoDel (RFC 8290): flows take turns, those with little to send go first.
    FqCodel {
        /// The most that waits, in packets, in bytes, or as the time in which the link sends it (1 to 1000000000
        /// packets, 1 B to 1000 GB, 1 ns to 3600 s). A time is made bytes at the link's rate of the moment; of a
        /// trace of opportunities at the mean of the last second.
        #[serde(default = "fair_packets")]
        limit: Limit,
        /// The delay that may stand in the queue.
        #[serde(default = "five_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        target: Span,
        /// For how long the delay must stand above `target` before the first drop; somewhat above a usual round-trip
        /// time.
        #[serde(default = "hundred_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        interval: Span,
        /// While no more than this waits behind a packet, it is not dropped.
        #[serde(default = "mtu")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mtu: Size,
        /// Marks ECN-capable packets instead of dropping them for their delay (RFC 3168).
        #[serde(default = "yes")]
        ecn: bool,
        /// Marks ECN-capable packets that have waited for longer than this, whatever else.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none", "x-min" = "1 us", "x-max" = "60 s"))]
        mark_above: Option<Span>,
        /// Which ECN-capable packets `mark_above` marks.
        #[serde(default)]
        mark_above_for: StepFor,
        /// How many queues there are; flows of one hash share one.
        #[serde(default = "thousand_queues")]
        #[schemars(range(min = 1, max = 65536))]
        queues: u32,
        /// The bytes that a queue may send in its turn.
        #[serde(default = "quantum")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "1 MB"))]
        quantum: Size,
        /// The most packets that are dropped at once, from the queue with the most bytes, when more than `limit` waits.
        #[serde(default = "batch")]
        #[schemars(range(min = 1, max = 65536))]
        batch: u32,
    },
    /// Proportional integral controller, enhanced (RFC 8033): drops on arrival, at random, to hold a delay.
    Pie {
        /// The most that waits, in packets, in bytes, or as the time in which the link sends it (1 to 1000000000
        /// packets, 1 B to 1000 GB, 1 ns to 3600 s). A time is made bytes at the link's rate of the moment; of a
        /// trace of opportunities at the mean of the last second.
        #[serde(default = "thousand_packets")]
        limit: Limit,
        /// The delay to hold.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        target: Span,
        /// How often the probability of a drop is renewed.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-min" = "100 us", "x-max" = "60 s"))]
        update: Span,
        /// For how long after an idle time nothing is dropped.
        #[serde(default = "burst")]
        #[schemars(extend("x-max" = "60 s"))]
        burst: Span,
        /// Added to the probability in an update, for each second of delay above `target`.
        #[serde(default = "pie_alpha")]
        #[schemars(range(min = 0.0, max = 1000.0))]
        alpha: f64,
        /// The same for each second by which the delay has grown since the update before.
        #[serde(default = "pie_beta")]
        #[schemars(range(min = 0.0, max = 1000.0))]
        beta: f64,
        /// How the delay is known.
        #[serde(default)]
        estimate: DelayEstimate,
        /// Spaces drops out: none until the probabilities of packets sum up to 0.85, always one at 8.5.
        #[serde(default)]
        derandomize: bool,
        /// A packet's probability is in proportion to its size.
        #[serde(default)]
        by_size: bool,
        /// Mean packet size: two of them may always wait, and `by_size` counts in it.
        #[serde(default = "mtu")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mean_packet: Size,
        /// Marks ECN-capable packets instead of dropping them (RFC 3168).
        #[serde(default)]
        ecn: bool,
        /// Marks only while the probability is below this share, and drops above it; see `ecn`.
        #[serde(default = "tenth_share")]
        mark_below: Ratio,
    },
    /// Flow queues under PIE (Linux' `sch_fq_pie`): flows take turns, those with little to send go first.
    FqPie {
        /// The most that waits, in packets, in bytes, or as the time in which the link sends it (1 to 1000000000
        /// packets, 1 B to 1000 GB, 1 ns to 3600 s). A time is made bytes at the link's rate of the moment; of a
        /// trace of opportunities at the mean of the last second.
        #[serde(default = "fair_packets")]
        limit: Limit,
        /// The delay to hold.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        target: Span,
        /// How often the probability of a drop is renewed.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-min" = "100 us", "x-max" = "60 s"))]
        update: Span,
        /// For how long after an idle time nothing is dropped.
        #[serde(default = "burst")]
        #[schemars(extend("x-max" = "60 s"))]
        burst: Span,
        /// Added to the probability in an update, for each second of delay above `target`.
        #[serde(default = "pie_alpha")]
        #[schemars(range(min = 0.0, max = 1000.0))]
        alpha: f64,
        /// The same for each second by which the delay has grown since the update before.
        #[serde(default = "pie_beta")]
        #[schemars(range(min = 0.0, max = 1000.0))]
        beta: f64,
        /// How the delay is known.
        #[serde(default)]
        estimate: DelayEstimate,
        /// Spaces drops out: none until the probabilities of packets sum up to 0.85, always one at 8.5.
        #[serde(default = "yes")]
        derandomize: bool,
        /// A packet's probability is in proportion to its size.
        #[serde(default)]
        by_size: bool,
        /// Mean packet size: two of them may always wait, and `by_size` counts in it.
        #[serde(default = "mtu")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mean_packet: Size,
        /// Marks ECN-capable packets instead of dropping them (RFC 3168).
        #[serde(default)]
        ecn: bool,
        /// Marks only while the probability is below this share, and drops above it; see `ecn`.
        #[serde(default = "tenth_share")]
        mark_below: Ratio,
        /// How many queues there are; flows of one hash share one.
        #[serde(default = "thousand_queues")]
        #[schemars(range(min = 1, max = 65536))]
        queues: u32,
        /// The bytes that a queue may send in its turn.
        #[serde(default = "quantum")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "1 MB"))]
        quantum: Size,
    },
    /// DualQ coupled PI2 (RFC 9332): a queue of low latency for scalable senders, ECT(1), beside one for the others, under one
    /// controller.
    Dualpi2 {
        /// Whose. It is also what the defaults go by.
        #[serde(default)]
        variant: DualPi2Variant,
        /// The most that waits in both queues, in packets, in bytes, or as the time in which the link sends it (1 to 1000000000
        /// packets, 1 B to 1000 GB, 1 ns to 3600 s). A time is made bytes at the link's rate of the moment; of a
        /// trace of opportunities at the mean of the last second.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "250 ms; linux: 10000 packets"))]
        limit: Option<Limit>,
        /// The delay to hold in the Classic queue.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        target: Span,
        /// The longest round trip to be stable for: `update`, `alpha` and `beta` follow from it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "100 ms; linux: none", "x-min" = "1 ms", "x-max" = "60 s"))]
        rtt_max: Option<Span>,
        /// How often the base probability p' is renewed (Tupdate).
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "the lesser of target and rtt_max / 3; linux: 16 ms", "x-min" = "100 us", "x-max" = "60 s"))]
        update: Option<Span>,
        /// Added to p' in an update, for each second of delay above `target`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1000.0), extend("x-default" = "0.1 update / rtt_max^2; linux: 41/256"))]
        alpha: Option<f64>,
        /// The same for each second by which the delay has grown since the update before.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1000.0), extend("x-default" = "0.3 / rtt_max; linux: 819/256"))]
        beta: Option<f64>,
        /// k: scalable senders are marked with k p', others marked or dropped with p'^2.
        #[serde(default = "dual_coupling")]
        #[schemars(range(min = 1.0, max = 255.0))]
        coupling: f64,
        /// How the L4S queue marks by its own delay.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "ramp; linux: step"))]
        l4s_aqm: Option<NativeAqm>,
        /// The delay above which it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "800 us of a ramp, 1 ms of a step", "x-min" = "1 us", "x-max" = "60 s"))]
        l4s_threshold: Option<Span>,
        /// Of a ramp: from the threshold on ever more is marked, over this range above it all.
        #[serde(default = "ramp_range")]
        #[schemars(extend("x-max" = "60 s"))]
        l4s_range: Span,
        /// It does not while no more packets than this are left in the L4S queue; of linux, while fewer were there when the packet came.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 1000000), extend("x-default" = "1; linux: 0"))]
        l4s_packets: Option<u32>,
        /// Which queue goes first when both have packets.
        #[serde(default)]
        scheduler: DualScheduler,
        /// Of the weighted scheduler: the Classic queue's share of the bytes while both have packets.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "1/16; linux: 10 %"))]
        classic_share: Option<Ratio>,
        /// Of the time-shifted one: so much longer must a Classic packet have waited to go first.
        #[serde(default = "time_shift")]
        #[schemars(extend("x-max" = "60 s"))]
        time_shift: Span,
        /// Drops packets of either class, with p'^2, once marks no longer suffice; else the queue runs full.
        #[serde(default = "yes")]
        drop_overload: bool,
        /// The longest packet.
        #[serde(default = "mtu")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mtu: Size,
    },
    /// Shaper, turns by flow and host, and COBALT, which is CoDel with BLUE (Linux' `sch_cake` with `besteffort`).
    Cake {
        /// What its shaper lets through, in the bytes that `overhead`, `mpu` and `framing` make of packets; a queue's turn and the delay to
        /// hold follow from it. Not in a cell.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none: as fast as the link", "x-min" = "1 kbit/s", "x-max" = "1000 Gbit/s"))]
        bandwidth: Option<Rate>,
        /// The most that waits, in packets, in bytes, or as the time in which the link sends it (1 to 1000000000
        /// packets, 1 B to 1000 GB, 1 ns to 3600 s). A time is made bytes at the link's rate of the moment; of a
        /// trace of opportunities at the mean of the last second.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "what `bandwidth` lets through in 4 x rtt, at least 4 MiB; at most 10240 x mtu"))]
        limit: Option<Limit>,
        /// A usual round-trip time: for how long the delay must be above a twentieth of it before the first drop.
        #[serde(default = "hundred_ms")]
        #[schemars(extend("x-min" = "20 us", "x-max" = "60 s"))]
        rtt: Span,
        /// Who has a queue, and who shares with whom.
        #[serde(default)]
        isolation: Isolation,
        /// Added to each packet's size by the shaper and in turns: what its IP packet is carried in. The default
        /// is Ethernet's header, which Linux has in a packet's length.
        #[serde(default = "ethernet")]
        #[schemars(extend("x-max" = "256 B"))]
        overhead: Size,
        /// They count no packet, overhead included, as less.
        #[serde(default = "nothing")]
        #[schemars(extend("x-max" = "256 B"))]
        mpu: Size,
        /// What the link below makes of that.
        #[serde(default)]
        framing: Framing,
        /// It shapes what comes behind the bottleneck: what it drops counts as sent, and a delay of up to two packets of each busy flow is
        /// left alone.
        #[serde(default)]
        ingress: bool,
        /// The longest packet: the delay to hold is never less than one and a half of them take at `bandwidth`.
        #[serde(default = "quantum")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mtu: Size,
    },
    /// Holds everything; its length is not measured.
    Unlimited {},
}

impl Queue {
    /// The most that waits.
    pub(crate) fn limit(&self) -> Option<Limit> {
        match self {
            Queue::Droptail { limit }
            | Queue::Red { limit, .. }
            | Queue::Codel { limit, .. }
            | Queue::FqCodel { limit, .. }
            | Queue::Pie { limit, .. }
            | Queue::FqPie { limit, .. } => Some(*limit),
            Queue::Dualpi2 { limit, variant, .. } => Some(limit.unwrap_or(variant.limit())),
            Queue::Cake { limit, bandwidth, rtt, mtu, .. } => {
                Some(limit.unwrap_or_else(|| Limit::Bytes(CakeModel::usual_limit(*bandwidth, *rtt, *mtu))))
            }
            Queue::Unlimited {} => None,
        }
    }
}

/// How adaptive RED moves max_p: up while the average is in the upper two fifths between the thresholds, down while it is
/// in the lower two. Defaults are ns-2's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdaptiveRed {
    /// What is added to max_p, but no more than a quarter of it.
    #[serde(default = "hundredth")]
    #[schemars(range(min = 1e-9, max = 1.0))]
    pub increase: f64,
    /// What max_p is multiplied by on the way down.
    #[serde(default = "nine_tenths")]
    #[schemars(range(min = 1e-9, max = 1.0))]
    pub decrease: f64,
    /// The least time between changes.
    #[serde(default = "half_second")]
    #[schemars(extend("x-min" = "1 ns", "x-max" = "3600 s"))]
    pub interval: Span,
    /// The most that max_p grows to.
    #[serde(default = "half")]
    pub top: Ratio,
    /// The least that max_p falls to. Less than `top`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "1 %; above 8 Mbit/s one packet of 1000 B in 0.1 s"))]
    pub bottom: Option<Ratio>,
}

/// What RED counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RedMode {
    /// Packets.
    #[default]
    Packets,
    /// Bytes.
    Bytes,
}

/// Which ECN-capable packets a threshold marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepFor {
    /// All.
    #[default]
    Ect,
    /// Those with ECT(1), of scalable senders (L4S).
    Ect1,
}

/// Whose DualPI2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DualPi2Variant {
    /// That of RFC 9332, appendix A: marks and drops evenly spaced.
    #[default]
    Rfc9332,
    /// That of Linux, `sch_dualpi2`: marks and drops drawn.
    Linux,
}

impl DualPi2Variant {
    /// How much waits, unless it is said.
    pub(crate) const fn limit(self) -> Limit {
        match self {
            DualPi2Variant::Rfc9332 => Limit::Time(Span::from_millis(250)),
            DualPi2Variant::Linux => Limit::Packets(10_000),
        }
    }
}

/// How the L4S queue of DualPI2 marks by its own delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NativeAqm {
    /// All above the threshold.
    Step,
    /// Ever more above the threshold.
    Ramp,
}

/// Which queue of DualPI2 goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DualScheduler {
    /// In turn, by weight.
    #[default]
    Weighted,
    /// The packet that has waited for longer, with a start for L4S.
    TimeShifted,
}

/// What has a queue of its own in CAKE, and who takes turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// All in one queue.
    Flowblind,
    /// A queue for each host that sends.
    Srchost,
    /// A queue for each host that receives.
    Dsthost,
    /// A queue for each pair of hosts.
    Hosts,
    /// A queue for each flow, and nothing for hosts.
    Flows,
    /// A queue for each flow; hosts that send share alike, and flows within each.
    DualSrchost,
    /// A queue for each flow; hosts that receive share alike, and flows within each.
    DualDsthost,
    /// A queue for each flow, whose turn is divided by the busy flows of whichever of its hosts has more.
    #[default]
    TripleIsolate,
}

/// What a link makes of a packet of CAKE's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Its bytes.
    #[default]
    None,
    /// Whole ATM cells, of 53 bytes for each 48.
    Atm,
    /// One byte more for each 64 or part of them (PTM).
    Ptm,
}

/// How PIE knows the delay of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DelayEstimate {
    /// The packet that left last had waited for so long.
    #[default]
    Timestamps,
    /// The bytes that wait, at the rate at which bytes have left.
    DepartureRate,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::Droptail { limit: hundred_packets() }
    }
}

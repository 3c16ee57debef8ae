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
    /// First in, first out; packets that arrive at a full queue are dropped.
    Droptail {
        /// Capacity in packets, bytes or time (1 to 1000000000 packets, 1 B to 1000 GB, 1 ns to 3600 s). A time
        /// becomes bytes at the link's current rate; for a trace of opportunities, at the last second's mean.
        #[serde(default = "hundred_packets")]
        limit: Limit,
    },
    /// Random early detection (Floyd and Jacobson 1993), as in ns-2.
    Red {
        /// Capacity in packets, bytes or time (1 to 1000000000 packets, 1 B to 1000 GB, 1 ns to 3600 s). A time
        /// becomes bytes at the link's current rate; for a trace of opportunities, at the last second's mean.
        #[serde(default = "hundred_packets")]
        limit: Limit,
        /// Average queue in packets below which nothing is dropped.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.001, max = 1e9), extend("x-default" = "from the link's rate, as in ns-2"))]
        min_threshold: Option<f64>,
        /// Average queue in packets above which every packet is dropped; with `gentle`, a rising share. More than
        /// `min_threshold`.
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
        /// The share rises from max_p to 1 between max_threshold and twice that, instead of jumping to 1.
        #[serde(default = "yes")]
        gentle: bool,
        /// Spaces drops: after one, none within half the mean distance between drops.
        #[serde(default = "yes")]
        wait: bool,
        /// Whether drop probability and average queue count packets or bytes.
        #[serde(default)]
        mode: RedMode,
        /// Mean packet size, for idle time and byte mode.
        #[serde(default = "kilobyte")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mean_packet: Size,
        /// Marks ECN-capable packets instead of dropping them early (RFC 3168).
        #[serde(default)]
        ecn: bool,
        /// Marks only while the probability is below this share, and drops above; see `ecn`.
        #[serde(default = "tenth_share")]
        mark_below: Ratio,
        /// Packet size in which idle time is counted.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "as mean_packet", "x-min" = "1 B", "x-max" = "65535 B"))]
        idle_packet: Option<Size>,
        /// Moves max_p to keep the average between the thresholds (Floyd, Gummadi, Shenker 2001); `{}` is enough.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none: max_p stays"))]
        adaptive: Option<AdaptiveRed>,
        /// Sets thresholds and weight from the link's rate, as ns-2 does; none of them may be given then.
        #[serde(default)]
        automatic: bool,
    },
    /// Controlled delay (RFC 8289): drops from the head while packets have waited too long.
    Codel {
        /// Capacity in packets, bytes or time (1 to 1000000000 packets, 1 B to 1000 GB, 1 ns to 3600 s). A time
        /// becomes bytes at the link's current rate; for a trace of opportunities, at the last second's mean.
        #[serde(default = "thousand_packets")]
        limit: Limit,
        /// Acceptable standing delay.
        #[serde(default = "five_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        target: Span,
        /// Time for which the delay must stay above `target` before the first drop; somewhat above a usual round-trip
        /// time.
        #[serde(default = "hundred_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        interval: Span,
        /// A packet is not dropped while at most this waits behind it.
        #[serde(default = "mtu")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mtu: Size,
        /// Marks ECN-capable packets instead of dropping them for their delay (RFC 3168).
        #[serde(default)]
        ecn: bool,
        /// Marks ECN-capable packets that have waited longer than this, in any case.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none", "x-min" = "1 us", "x-max" = "60 s"))]
        mark_above: Option<Span>,
        /// Which ECN-capable packets `mark_above` marks.
        #[serde(default)]
        mark_above_for: StepFor,
    },
    /// Flow queues under CoDel (RFC 8290): flows take turns, and those with little to send go first.
    FqCodel {
        /// Capacity in packets, bytes or time (1 to 1000000000 packets, 1 B to 1000 GB, 1 ns to 3600 s). A time
        /// becomes bytes at the link's current rate; for a trace of opportunities, at the last second's mean.
        #[serde(default = "fair_packets")]
        limit: Limit,
        /// Acceptable standing delay.
        #[serde(default = "five_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        target: Span,
        /// Time for which the delay must stay above `target` before the first drop; somewhat above a usual round-trip
        /// time.
        #[serde(default = "hundred_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        interval: Span,
        /// A packet is not dropped while at most this waits behind it.
        #[serde(default = "mtu")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mtu: Size,
        /// Marks ECN-capable packets instead of dropping them for their delay (RFC 3168).
        #[serde(default = "yes")]
        ecn: bool,
        /// Marks ECN-capable packets that have waited longer than this, in any case.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none", "x-min" = "1 us", "x-max" = "60 s"))]
        mark_above: Option<Span>,
        /// Which ECN-capable packets `mark_above` marks.
        #[serde(default)]
        mark_above_for: StepFor,
        /// Number of queues; flows with the same hash share one.
        #[serde(default = "thousand_queues")]
        #[schemars(range(min = 1, max = 65536))]
        queues: u32,
        /// Bytes that a queue may send in its turn.
        #[serde(default = "quantum")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "1 MB"))]
        quantum: Size,
        /// Maximum number of packets dropped at once, from the queue with the most bytes, when more than `limit`
        /// waits.
        #[serde(default = "batch")]
        #[schemars(range(min = 1, max = 65536))]
        batch: u32,
    },
    /// Proportional integral controller, enhanced (RFC 8033): drops on arrival, at random, to hold a delay.
    Pie {
        /// Capacity in packets, bytes or time (1 to 1000000000 packets, 1 B to 1000 GB, 1 ns to 3600 s). A time
        /// becomes bytes at the link's current rate; for a trace of opportunities, at the last second's mean.
        #[serde(default = "thousand_packets")]
        limit: Limit,
        /// The delay to hold.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        target: Span,
        /// Interval between updates of the drop probability.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-min" = "100 us", "x-max" = "60 s"))]
        update: Span,
        /// Time without drops after an idle period.
        #[serde(default = "burst")]
        #[schemars(extend("x-max" = "60 s"))]
        burst: Span,
        /// Increase of the probability in an update, per second of delay above `target`.
        #[serde(default = "pie_alpha")]
        #[schemars(range(min = 0.0, max = 1000.0))]
        alpha: f64,
        /// Increase of the probability in an update, per second that the delay has grown since the last one.
        #[serde(default = "pie_beta")]
        #[schemars(range(min = 0.0, max = 1000.0))]
        beta: f64,
        /// Estimate of the delay.
        #[serde(default)]
        estimate: DelayEstimate,
        /// Spaces drops: none until the packets' probabilities sum to 0.85, always one at 8.5.
        #[serde(default)]
        derandomize: bool,
        /// Makes a packet's probability proportional to its size.
        #[serde(default)]
        by_size: bool,
        /// Mean packet size: two of them may always wait, and `by_size` counts in it.
        #[serde(default = "mtu")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mean_packet: Size,
        /// Marks ECN-capable packets instead of dropping them (RFC 3168).
        #[serde(default)]
        ecn: bool,
        /// Marks only while the probability is below this share, and drops above; see `ecn`.
        #[serde(default = "tenth_share")]
        mark_below: Ratio,
    },
    /// Flow queues under PIE (Linux' `sch_fq_pie`): flows take turns, and those with little to send go first.
    FqPie {
        /// Capacity in packets, bytes or time (1 to 1000000000 packets, 1 B to 1000 GB, 1 ns to 3600 s). A time
        /// becomes bytes at the link's current rate; for a trace of opportunities, at the last second's mean.
        #[serde(default = "fair_packets")]
        limit: Limit,
        /// The delay to hold.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        target: Span,
        /// Interval between updates of the drop probability.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-min" = "100 us", "x-max" = "60 s"))]
        update: Span,
        /// Time without drops after an idle period.
        #[serde(default = "burst")]
        #[schemars(extend("x-max" = "60 s"))]
        burst: Span,
        /// Increase of the probability in an update, per second of delay above `target`.
        #[serde(default = "pie_alpha")]
        #[schemars(range(min = 0.0, max = 1000.0))]
        alpha: f64,
        /// Increase of the probability in an update, per second that the delay has grown since the last one.
        #[serde(default = "pie_beta")]
        #[schemars(range(min = 0.0, max = 1000.0))]
        beta: f64,
        /// Estimate of the delay.
        #[serde(default)]
        estimate: DelayEstimate,
        /// Spaces drops: none until the packets' probabilities sum to 0.85, always one at 8.5.
        #[serde(default = "yes")]
        derandomize: bool,
        /// Makes a packet's probability proportional to its size.
        #[serde(default)]
        by_size: bool,
        /// Mean packet size: two of them may always wait, and `by_size` counts in it.
        #[serde(default = "mtu")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mean_packet: Size,
        /// Marks ECN-capable packets instead of dropping them (RFC 3168).
        #[serde(default)]
        ecn: bool,
        /// Marks only while the probability is below this share, and drops above; see `ecn`.
        #[serde(default = "tenth_share")]
        mark_below: Ratio,
        /// Number of queues; flows with the same hash share one.
        #[serde(default = "thousand_queues")]
        #[schemars(range(min = 1, max = 65536))]
        queues: u32,
        /// Bytes that a queue may send in its turn.
        #[serde(default = "quantum")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "1 MB"))]
        quantum: Size,
    },
    /// DualQ coupled PI2 (RFC 9332): a low-latency queue for scalable senders, ECT(1), and one for the others, under
    /// one controller.
    Dualpi2 {
        /// The implementation, which also sets the defaults.
        #[serde(default)]
        variant: DualPi2Variant,
        /// Capacity of both queues in packets, bytes or time (1 to 1000000000 packets, 1 B to 1000 GB, 1 ns to 3600
        /// s). A time becomes bytes at the link's current rate; for a trace of opportunities, at the last second's
        /// mean.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "250 ms; linux: 10000 packets"))]
        limit: Option<Limit>,
        /// The delay to hold in the Classic queue.
        #[serde(default = "fifteen_ms")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
        target: Span,
        /// Longest round trip for which the law is stable; sets `update`, `alpha` and `beta`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "100 ms; linux: none", "x-min" = "1 ms", "x-max" = "60 s"))]
        rtt_max: Option<Span>,
        /// Interval between updates of the base probability p' (Tupdate).
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "the lesser of target and rtt_max / 3; linux: 16 ms", "x-min" = "100 us", "x-max" = "60 s"))]
        update: Option<Span>,
        /// Increase of p' in an update, per second of delay above `target`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1000.0), extend("x-default" = "0.1 update / rtt_max^2; linux: 41/256"))]
        alpha: Option<f64>,
        /// Increase of the probability in an update, per second that the delay has grown since the last one.
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
        /// Delay above which the L4S queue marks.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "ramp: 800 us; step: 1 ms", "x-min" = "1 us", "x-max" = "60 s"))]
        l4s_threshold: Option<Span>,
        /// With a ramp: delay above the threshold over which the marked share rises to all.
        #[serde(default = "ramp_range")]
        #[schemars(extend("x-max" = "60 s"))]
        l4s_range: Span,
        /// The L4S queue does not mark while at most this number of packets is left in it; with `linux`, while fewer
        /// were there when the packet arrived.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0, max = 1000000), extend("x-default" = "1; linux: 0"))]
        l4s_packets: Option<u32>,
        /// Which queue goes first when both have packets.
        #[serde(default)]
        scheduler: DualScheduler,
        /// With the weighted scheduler: the Classic queue's share of the bytes while both have packets.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "1/16; linux: 10 %"))]
        classic_share: Option<Ratio>,
        /// With the time-shifted scheduler: the extra time that a Classic packet must have waited to go first.
        #[serde(default = "time_shift")]
        #[schemars(extend("x-max" = "60 s"))]
        time_shift: Span,
        /// Drops packets of either class with p'^2 once marks no longer suffice; otherwise the queue fills.
        #[serde(default = "yes")]
        drop_overload: bool,
        /// The longest packet.
        #[serde(default = "mtu")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mtu: Size,
    },
    /// Shaper, turns by flow and host, and COBALT, which is CoDel with BLUE (Linux' `sch_cake` with `besteffort`).
    Cake {
        /// The shaper's rate, counted in packet sizes by `overhead`, `mpu` and `framing`. It sets a queue's turn and
        /// the delay to hold. Not in a cell.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none: as fast as the link", "x-min" = "1 kbit/s", "x-max" = "1000 Gbit/s"))]
        bandwidth: Option<Rate>,
        /// Capacity in packets, bytes or time (1 to 1000000000 packets, 1 B to 1000 GB, 1 ns to 3600 s). A time
        /// becomes bytes at the link's current rate; for a trace of opportunities, at the last second's mean.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "4 x rtt at `bandwidth`, at least 4 MiB; at most 10240 x mtu"))]
        limit: Option<Limit>,
        /// A usual round-trip time: the delay must stay above a twentieth of it for this long before the first drop.
        #[serde(default = "hundred_ms")]
        #[schemars(extend("x-min" = "20 us", "x-max" = "60 s"))]
        rtt: Span,
        /// Which packets share a queue, and how queues share the link.
        #[serde(default)]
        isolation: Isolation,
        /// Bytes added to each IP packet's size by the shaper and in turns. The default is Ethernet's header, which
        /// Linux includes in a packet's length.
        #[serde(default = "ethernet")]
        #[schemars(extend("x-max" = "256 B"))]
        overhead: Size,
        /// Smallest packet size that the shaper and turns count, overhead included.
        #[serde(default = "nothing")]
        #[schemars(extend("x-max" = "256 B"))]
        mpu: Size,
        /// Framing of the link below.
        #[serde(default)]
        framing: Framing,
        /// Shapes behind the bottleneck: drops count as sent, and a delay of up to two packets of each busy flow is
        /// tolerated.
        #[serde(default)]
        ingress: bool,
        /// The longest packet: the delay to hold is at least the time of one and a half of them at `bandwidth`.
        #[serde(default = "quantum")]
        #[schemars(extend("x-min" = "1 B", "x-max" = "65535 B"))]
        mtu: Size,
    },
    /// Holds everything; its length is not measured.
    Unlimited {},
}

impl Queue {
    /// Its limit, if any.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
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
    /// Increment of max_p, at most a quarter of it.
    #[serde(default = "hundredth")]
    #[schemars(range(min = 1e-9, max = 1.0))]
    pub increase: f64,
    /// Factor by which max_p falls.
    #[serde(default = "nine_tenths")]
    #[schemars(range(min = 1e-9, max = 1.0))]
    pub decrease: f64,
    /// Minimum time between changes.
    #[serde(default = "half_second")]
    #[schemars(extend("x-min" = "1 ns", "x-max" = "3600 s"))]
    pub interval: Span,
    /// Upper bound of max_p.
    #[serde(default = "half")]
    pub top: Ratio,
    /// Lower bound of max_p. Less than `top`.
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
    /// Those with ECT(1), from scalable senders (L4S).
    Ect1,
}

/// Whose DualPI2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DualPi2Variant {
    /// RFC 9332, appendix A: marks and drops evenly spaced.
    #[default]
    Rfc9332,
    /// Linux's `sch_dualpi2`: marks and drops drawn.
    Linux,
}

impl DualPi2Variant {
    /// The default limit.
    #[must_use]
    pub const fn limit(self) -> Limit {
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
    /// All packets above the threshold.
    Step,
    /// A rising share above the threshold.
    Ramp,
}

/// Which queue of DualPI2 goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DualScheduler {
    /// In turn, by weight.
    #[default]
    Weighted,
    /// The packet that has waited longer, with a head start for L4S.
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
    /// A queue for each flow; hosts do not count.
    Flows,
    /// A queue for each flow; sending hosts share equally, and so do the flows of each.
    DualSrchost,
    /// A queue for each flow; receiving hosts share equally, and so do the flows of each.
    DualDsthost,
    /// A queue for each flow; its turn is divided by the number of busy flows of its busier host.
    #[default]
    TripleIsolate,
}

/// What a link makes of a packet of CAKE's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Bytes count as they are.
    #[default]
    None,
    /// Whole ATM cells, 53 bytes for each 48.
    Atm,
    /// One byte more for each 64 or part of them (PTM).
    Ptm,
}

/// How PIE knows the delay of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DelayEstimate {
    /// The wait of the packet that left last.
    #[default]
    Timestamps,
    /// The waiting bytes, divided by the rate at which bytes have left.
    DepartureRate,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::Droptail { limit: hundred_packets() }
    }
}

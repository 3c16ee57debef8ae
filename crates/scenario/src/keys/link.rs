//! Links in a scenario file: rate, delay and impairments of each direction. Queues and losses have their own files.

use super::draw::Draw;
use super::file::Profile;
use super::loss::Loss;
use super::queue::Queue;
use super::values::Limit;
use paceline_units::{Rate, Ratio, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the keys of one direction of a link to a struct: a link and its `backward` table share them.
macro_rules! with_direction {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($own)*
            /// Rate of transmission. Required without `rate_schedule` and `rate_trace`.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "required; backward: as forward", "x-min" = "1 bit/s", "x-max" = "1000 Gbit/s"))]
            pub rate: Option<Rate>,
            /// Instead of `rate`: rates from given instants on, the first at 0 s.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none; backward: as forward"))]
            pub rate_schedule: Option<Vec<RateStep>>,
            /// Instead of `rate`: a trace file.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub rate_trace: Option<RateTrace>,
            /// One-way propagation delay. Some link on the way there and back needs one.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "0 s; backward: as forward", "x-max" = "60 s"))]
            pub delay: Option<Span>,
            /// Instead of `delay`: delays from given instants on, the first at 0 s. A packet takes the delay at the
            /// instant at which it has been sent.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none; backward: as forward"))]
            pub delay_schedule: Option<Vec<DelayStep>>,
            /// The queue in front of the transmitter.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "drop-tail, 100 packets; backward: as forward"))]
            pub queue: Option<Queue>,
            /// Limits of the queue from given instants on; before the first, the queue's own.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none; backward: as forward, unless `queue` is given there"))]
            pub limit_schedule: Option<Vec<LimitStep>>,
            /// Drops packets above a rate, beyond a burst, before they reach the queue (reason `policed`).
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub policer: Option<Policer>,
            /// Link-layer recovery: blocks that fail on the air are sent again, and packets arrive in order.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub recovery: Option<LinkRecovery>,
            /// Random loss, after queue and transmission: a lost packet has used the link.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub loss: Option<Loss>,
            /// Extra delay drawn for each packet; order is kept.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub delay_variation: Option<DelayVariation>,
            /// Instead of `delay_variation`: variations from given instants on; none before the first.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub delay_variation_schedule: Option<Vec<VariationStep>>,
            /// Holds back a share of the packets so that later ones overtake them.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub reorder: Option<Reorder>,
            /// Delivers a share of the packets twice.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub duplicate: Option<Share>,
            /// Damages a share of the packets; the receiving host rejects them.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub corrupt: Option<Share>,
            /// Holds sent packets and delivers them together at intervals.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub aggregation: Option<Aggregation>,
            /// Clears the ECN field of every packet after the queue: packets arrive without ECN capability and marks.
            #[serde(default, skip_serializing_if = "core::ops::Not::not")]
            pub bleach_ecn: bool,
            /// Periods in which every packet takes longer. Order is kept: later packets wait behind delayed ones.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub delay_spike: Vec<DelaySpike>,
            /// Periods in which every packet that would leave the queue is lost.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub outage: Vec<Outage>,
            /// Measures the share of time in which the queue held from k to k + 1 tenths of its limit: `occupancy_0`
            /// to `occupancy_9`.
            #[serde(default, skip_serializing_if = "core::ops::Not::not")]
            pub occupancy: bool,
            /// Counts each flow's packets at the link (arrived, dropped, delivered) and its part of the queue: table
            /// `link_flows`.
            #[serde(default, skip_serializing_if = "core::ops::Not::not")]
            pub per_flow: bool,
        }
    };
}

with_direction! {
    /// A link: its forward direction, and the differences of the backward one.
    pub struct LinkTable {
        /// The nodes that the link joins; forward is from the first to the second. Required in a graph, possible in a
        /// home, not allowed elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "required in a graph; home: the link's name, and the access point"))]
        pub between: Option<[String; 2]>,
        /// Differences in the opposite direction. Rate, delay (or their schedules) and queue are as forward unless
        /// given here. Traces, recovery, loss, impairments, outages and measurements exist only if given here.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "as forward, without loss and impairments"))]
        pub backward: Option<Box<BackwardTable>>,
    }
}

with_direction! {
    /// The opposite direction of a link.
    pub struct BackwardTable {}
}

/// A step of a rate schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Start of the step: the first at 0 s, each later than the one before.
    pub at: Span,
    /// The rate.
    #[schemars(extend("x-min" = "1 bit/s", "x-max" = "1000 Gbit/s"))]
    pub rate: Rate,
}

/// A step of a delay schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayStep {
    /// Start of the step: the first at 0 s, each later than the one before.
    pub at: Span,
    /// One-way propagation delay.
    #[schemars(extend("x-max" = "60 s"))]
    pub delay: Span,
    /// Whether packets from this instant on may overtake earlier ones, as on another path. Otherwise they wait behind
    /// them.
    #[serde(default)]
    pub overtakes: bool,
}

/// A step of a limit schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitStep {
    /// Start of the step; each later than the one before.
    pub at: Span,
    /// Capacity in packets, bytes or time (1 to 1000000000 packets, 1 B to 1000 GB, 1 ns to 3600 s).
    pub limit: Limit,
}

/// A step of a delay variation schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariationStep {
    /// Start of the step; each later than the one before.
    pub at: Span,
    /// The variation; keys as in `delay_variation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none from here on"))]
    pub variation: Option<DelayVariation>,
}

/// A trace file that says what the link can carry over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateTrace {
    /// Path of the file, relative to the scenario file.
    pub file: String,
    /// Format of the file.
    #[serde(default)]
    pub format: TraceFormat,
    /// Behaviour after the trace's end.
    #[serde(default)]
    pub end: TraceEnd,
}

/// How a trace file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// One line for each opportunity to send 1500 bytes: milliseconds since the start (mahimahi).
    #[default]
    Mahimahi,
    /// Lines of two numbers: seconds since the start, and the rate in Mbit/s from then on.
    SecondsMbit,
    /// A table whose header names columns and units: `time_s,bandwidth_kbps`.
    Csv,
    /// A list of objects with such keys (`duration_ms`, `bandwidth_kbps`), or the output of `iperf3 -J`.
    Json,
    /// The output of iperf3, one interval per line.
    Iperf3,
    /// Detected.
    Auto,
}

/// What comes after a trace's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEnd {
    /// The trace begins again.
    #[default]
    Loop,
    /// The last rate stays.
    Hold,
}

/// Recovery at the link layer, after the acknowledged mode of 3GPP TS 25.322.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRecovery {
    /// Time in which the link sends one block at its rate (its mean or first rate, if it varies): the transmission
    /// time interval.
    #[schemars(extend("x-min" = "1 us", "x-max" = "1 s"))]
    pub block_time: Span,
    /// Probability that a block fails at each attempt.
    pub block_error: Ratio,
    /// From the end of a failed block to the end of its next attempt.
    #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
    pub delay: Span,
    /// Maximum number of attempts to send a block again; then its packet is lost, reason `loss`.
    #[serde(default = "five")]
    #[schemars(range(min = 0, max = 100))]
    pub retransmissions: u32,
}

const fn five() -> u32 {
    5
}

/// A token-bucket policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate of tokens: one for each bit.
    #[schemars(extend("x-min" = "1 bit/s", "x-max" = "1000 Gbit/s"))]
    pub rate: Rate,
    /// Amount that passes at once when the bucket is full. A larger packet never passes.
    #[schemars(extend("x-min" = "1500 B", "x-max" = "1 GB"))]
    pub burst: Size,
}

/// Extra delay in order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-kind" = "uniform"))]
pub enum DelayVariation {
    /// Each packet is delayed by a time drawn uniformly from 0 to `max`.
    Uniform {
        /// The longest delay.
        #[schemars(extend("x-max" = "60 s"))]
        max: Span,
    },
    /// Wi-Fi networks that hear each other (draft-huitema-ccwg-c4-test): a Poisson number, of mean 1, of waits of 1
    /// ms, smoothed by less than a millisecond. A share of the packets also has a Poisson number, of mean 12, of
    /// waits of 7.5 ms.
    BadWifi {
        /// Approximate mean delay: (mean - 1 ms) / 90 ms of the packets have long waits; none up to 1 ms, all from 91
        /// ms on.
        #[schemars(extend("x-max" = "60 s"))]
        average: Span,
    },
    /// Each packet is delayed by the absolute value of a normal draw around 0; order is kept (RFC 8868, section 4.5).
    Gaussian {
        /// Standard deviation of the draw.
        #[serde(default = "five_milliseconds")]
        #[schemars(extend("x-max" = "10 s"))]
        deviation: Span,
        /// The longest delay, in standard deviations.
        #[serde(default = "three")]
        #[schemars(range(min = 0.0, max = 6.0))]
        bound: f64,
    },
}

const fn five_milliseconds() -> Span {
    Span::from_millis(5)
}

const fn three() -> f64 {
    3.0
}

/// Reordering.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of the packets that are held back.
    pub rate: Ratio,
    /// Time for which they are held back.
    #[schemars(extend("x-min" = "1 ns", "x-max" = "60 s"))]
    pub extra: Span,
}

/// Packets, or acknowledgements, that arrive in lumps: a channel whose access is granted by the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aggregation {
    /// Interval between deliveries.
    #[schemars(extend("x-min" = "1 us", "x-max" = "60 s"))]
    pub interval: Span,
    /// Start, and instant of the first delivery.
    #[serde(default)]
    pub from: Span,
    /// End; later than `from`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "the run's end"))]
    pub to: Option<Span>,
}

/// A period in which packets take longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelaySpike {
    /// Start of the period.
    pub from: Span,
    /// End of the period; later than `from`.
    pub to: Span,
    /// Extra delay of packets sent in it.
    #[schemars(extend("x-min" = "1 ns", "x-max" = "60 s"))]
    pub extra: Span,
}

/// A share of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Share of the packets.
    pub rate: Ratio,
}

/// A period without service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Start of the period.
    pub from: Span,
    /// End of the period; later than `from`.
    pub to: Span,
}

/// The links between hosts and routers, the same for every flow instance and in both directions; at the receivers with
/// what `receiver` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessTable {
    /// Rate of transmission. The default keeps the scenario's links the bottleneck: n is the smallest whole number
    /// from 10 on for at least 1 Gbit/s, as of today's hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "(n + 0.3) x the fastest link's highest rate", "x-min" = "1 bit/s", "x-max" = "10000 Gbit/s"))]
    pub rate: Option<Rate>,
    /// One-way propagation delay.
    #[serde(default)]
    #[schemars(extend("x-max" = "60 s"))]
    pub delay: Span,
    /// The queue in front of the transmitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "drop-tail, 1000 packets; unlimited in profiles ns2 and ns2-linux"))]
    pub queue: Option<Queue>,
    /// Whether senders wait while their host's link is full, as under a kernel: beyond the link's data of one
    /// millisecond, or two packets, data stay in the sender. `udp` does not wait; its packets go to the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "true; false in profiles ns2 and ns2-linux"))]
    pub backpressure: Option<bool>,
    /// Differences on the receivers' side, for example wireless last hops behind a wired bottleneck.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<ReceiverAccessTable>,
}

/// What is different of the links between routers and receivers. Rate, delay and queue are those of `[access]` unless
/// given here; loss is only there if given here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiverAccessTable {
    /// Rate of transmission.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "as in `[access]`", "x-min" = "1 bit/s", "x-max" = "10000 Gbit/s"))]
    pub rate: Option<Rate>,
    /// One-way propagation delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "as in `[access]`", "x-max" = "60 s"))]
    pub delay: Option<Span>,
    /// The queue in front of the transmitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "as in `[access]`"))]
    pub queue: Option<Queue>,
    /// Random loss in both directions, keys as in `[link.NAME.loss]`; with `on = "data"` only toward the receivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
}

/// What the access links of a flow's instances have instead of what `[access]` says: these at the senders.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowAccessTable {
    /// Rate of transmission, both ways.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "as in `[access]`", "x-min" = "1 bit/s", "x-max" = "1000 Gbit/s"))]
    pub rate: Option<Draw<Rate>>,
    /// Probability that a packet from the sender is lost. Less than 100 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "0 %"))]
    pub loss: Option<Draw<Ratio>>,
    /// Links at the receivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "nothing"))]
    pub receiver: Option<FlowReceiverTable>,
}

/// The same at the receivers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowReceiverTable {
    /// Rate of transmission, both ways.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "as in `[access]`", "x-min" = "1 bit/s", "x-max" = "1000 Gbit/s"))]
    pub rate: Option<Draw<Rate>>,
    /// Probability that a packet to the receiver is lost; overrides the loss of `[access.receiver]`. Less than 100 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "as in `[access.receiver]`"))]
    pub loss: Option<Draw<Ratio>>,
}

impl Default for AccessTable {
    fn default() -> AccessTable {
        AccessTable { rate: None, delay: Span::ZERO, queue: None, backpressure: None, receiver: None }
    }
}

impl AccessTable {
    /// Minimum default rate, that of today's hosts. At less, bursts that a sender emits at once (40 ms for GCC) would
    /// be spread out before the bottleneck, and fewer of their packets would be lost.
    pub const MIN_DEFAULT_RATE: Rate = Rate::from_bps(1_000_000_000);
    /// Maximum rate.
    const MAX_RATE: Rate = Rate::from_bps(10_000_000_000_000);

    /// The default rate beside links that are never faster than `fastest`: far above it, so that packets queue at the
    /// links alone. It is no whole multiple of it, because a host's packets would then be in step with the link's
    /// departures, and one flow would take every place that becomes free in a drop-tail queue (Floyd and Jacobson
    /// 1992).
    #[must_use]
    pub fn rate_beside(fastest: Rate) -> Rate {
        let multiple = Self::MIN_DEFAULT_RATE.0.div_ceil(fastest.0.max(1)).max(10);
        let tenths = u128::from(multiple) * 10 + 3;
        Rate((u128::from(fastest.0) * tenths / 10).min(u128::from(Self::MAX_RATE.0)) as u64)
    }

    /// The default queue: that of Linux interfaces (`txqueuelen`), or an unlimited one with ns-2's profiles.
    #[must_use]
    pub fn default_queue(profile: Profile) -> Queue {
        if profile.is_ns2() { Queue::Unlimited {} } else { Queue::Droptail { limit: Limit::Packets(1000) } }
    }

    /// The links at the receivers, completed except for a queue that is configured nowhere.
    #[must_use]
    pub fn at_receivers(&self) -> (AccessTable, Option<Loss>) {
        let own = self.receiver.clone().unwrap_or_default();
        let table = AccessTable {
            rate: own.rate.or(self.rate),
            delay: own.delay.unwrap_or(self.delay),
            queue: own.queue.or_else(|| self.queue.clone()),
            backpressure: self.backpressure,
            receiver: None,
        };
        (table, own.loss)
    }
}

/// The forward direction's keys, as a backward table.
pub(crate) fn forward(link: &LinkTable) -> BackwardTable {
    BackwardTable {
        rate: link.rate,
        rate_schedule: link.rate_schedule.clone(),
        rate_trace: link.rate_trace.clone(),
        delay: link.delay,
        delay_schedule: link.delay_schedule.clone(),
        queue: link.queue.clone(),
        limit_schedule: link.limit_schedule.clone(),
        policer: link.policer,
        recovery: link.recovery,
        loss: link.loss.clone(),
        delay_variation: link.delay_variation,
        delay_variation_schedule: link.delay_variation_schedule.clone(),
        reorder: link.reorder,
        duplicate: link.duplicate,
        corrupt: link.corrupt,
        aggregation: link.aggregation,
        bleach_ecn: link.bleach_ecn,
        delay_spike: link.delay_spike.clone(),
        outage: link.outage.clone(),
        occupancy: link.occupancy,
        per_flow: link.per_flow,
    }
}

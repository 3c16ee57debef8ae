//! Links in a scenario file: rate, delay, queue, loss, impairments, for each direction.

use super::values::Limit;
use paceline_units::{Rate, Ratio, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Adds the keys of one direction of a link to a struct: a link and its `backward` table have the same ones.
macro_rules! with_direction {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($own)*
            /// Rate of transmission. Required, unless `rate_schedule` or `rate_trace` is given.
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
            /// One-way propagation delay.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "0 s; backward: as forward", "x-max" = "60 s"))]
            pub delay: Option<Span>,
            /// The queue in front of the transmitter.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "drop-tail, 100 packets; backward: as forward"))]
            pub queue: Option<Queue>,
            /// Random loss, after queue and transmission: a lost packet has used the link.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub loss: Option<Loss>,
            /// Extra delay drawn for each packet, order kept.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub delay_variation: Option<DelayVariation>,
            /// Holds back a share of the packets, so that later ones overtake them.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub reorder: Option<Reorder>,
            /// Delivers a share of the packets twice.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub duplicate: Option<Share>,
            /// Damages a share of the packets; the receiving host refuses them.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(extend("x-default" = "none"))]
            pub corrupt: Option<Share>,
            /// Times in which every packet that would leave the queue is lost.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub outage: Vec<Outage>,
        }
    };
}

with_direction! {
    /// A link: its forward direction, and what differs backward.
    pub struct LinkTable {
        /// The nodes that the link joins; forward is from the first to the second. Required in a graph, not allowed
        /// elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "required in a graph"))]
        pub between: Option<[String; 2]>,
        /// What is different in the opposite direction. Rate (or schedule), delay and queue are the same unless given
        /// here; traces, loss, impairments and outages are only there if given here.
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
    /// From this instant on; the first at 0 s, each later than the one before.
    pub at: Span,
    /// The rate.
    #[schemars(extend("x-min" = "1 bit/s", "x-max" = "1000 Gbit/s"))]
    pub rate: Rate,
}

/// A trace file that says what the link can carry over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateTrace {
    /// Path of the file, relative to the scenario file.
    pub file: String,
    /// How the file is written.
    #[serde(default)]
    pub format: TraceFormat,
    /// What comes after the trace's end.
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
}

/// What comes after a trace's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceEnd {
    /// The trace begins again.
    #[default]
    Loop,
    /// The last rate goes on.
    Hold,
}

/// A queue discipline and its limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-kind" = "droptail"))]
pub enum Queue {
    /// First in, first out; what finds the queue full is dropped.
    Droptail {
        /// The most that waits, in packets or in bytes (1 to 1000000000 packets, 1 B to 1000 GB).
        #[serde(default = "hundred_packets")]
        limit: Limit,
    },
    /// Random early detection (Floyd and Jacobson 1993), as in ns-2.
    Red {
        /// The most that waits, in packets or in bytes (1 to 1000000000 packets, 1 B to 1000 GB).
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
    /// Holds everything; its length is not measured.
    Unlimited {},
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

/// Random loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-kind" = "uniform"))]
pub enum Loss {
    /// Each packet is lost with the same probability, independently.
    Uniform {
        /// Probability of loss.
        rate: Ratio,
        /// Which packets.
        #[serde(default)]
        on: LossOn,
    },
    /// Bursts counted in packets: a good and a bad state, and a chance to change it after each packet (Gilbert 1960,
    /// Elliott 1963).
    GilbertElliott {
        /// Probability of loss in the good state.
        #[serde(default = "nothing")]
        good_rate: Ratio,
        /// Probability of loss in the bad state.
        #[serde(default = "everything")]
        bad_rate: Ratio,
        /// Probability of a change from good to bad, per packet.
        to_bad: Ratio,
        /// Probability of a change from bad to good, per packet.
        to_good: Ratio,
        /// Which packets.
        #[serde(default)]
        on: LossOn,
    },
    /// Bursts counted in time: a good and a bad state, each of a fixed period, and a chance to change it at a period's end
    /// (the TFRC Veno paper's model of a wireless link).
    TwoState {
        /// Probability of loss in the good state.
        #[serde(default = "hundred_thousandth")]
        good_rate: Ratio,
        /// Probability of loss in the bad state.
        bad_rate: Ratio,
        /// Length of a period in the good state.
        #[serde(default = "eight_seconds")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "1000000 s"))]
        good_time: Span,
        /// Length of a period in the bad state.
        #[serde(default = "four_seconds")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "1000000 s"))]
        bad_time: Span,
        /// Probability that the state changes at the end of a period. More than 0.
        #[serde(default = "nineteen_of_twenty")]
        change: Ratio,
        /// How the link begins.
        #[serde(default)]
        start: LossStart,
        /// Which packets.
        #[serde(default)]
        on: LossOn,
    },
}

/// How a link with two states begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossStart {
    /// With a period of the good state: links of one model go bad together until their changes differ.
    #[default]
    Good,
    /// Somewhere within a period of either state, drawn for each link direction.
    Anywhere,
}

/// Which packets a loss model looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossOn {
    /// Data packets that cross the link in this direction.
    Data,
    /// Acknowledgements that cross the link in this direction.
    Acks,
    /// Both.
    #[default]
    All,
}

/// Extra delay in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayVariation {
    /// Each packet is delayed by a time drawn uniformly from 0 to this.
    #[schemars(extend("x-max" = "60 s"))]
    pub max: Span,
}

/// Reordering.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of the packets that are held back.
    pub rate: Ratio,
    /// For how long.
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

/// A time without service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Its beginning.
    pub from: Span,
    /// Its end; later than `from`.
    pub to: Span,
}

/// The links between hosts and routers, the same for every flow instance and in both directions; at the receivers with
/// what `receiver` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessTable {
    /// Rate of transmission.
    #[serde(default = "hundred_megabit")]
    #[schemars(extend("x-min" = "1 bit/s", "x-max" = "1000 Gbit/s"))]
    pub rate: Rate,
    /// One-way propagation delay.
    #[serde(default)]
    #[schemars(extend("x-max" = "60 s"))]
    pub delay: Span,
    /// The queue in front of the transmitter.
    #[serde(default = "unlimited")]
    pub queue: Queue,
    /// What is different on the receivers' side: wireless last hops behind a wired bottleneck, say.
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
    #[schemars(extend("x-default" = "as in `[access]`", "x-min" = "1 bit/s", "x-max" = "1000 Gbit/s"))]
    pub rate: Option<Rate>,
    /// One-way propagation delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "as in `[access]`", "x-max" = "60 s"))]
    pub delay: Option<Span>,
    /// The queue in front of the transmitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "as in `[access]`"))]
    pub queue: Option<Queue>,
    /// Random loss in both directions, keys as in `[link.NAME.loss]`; with `on = "data"` toward the receivers alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
}

impl Default for AccessTable {
    fn default() -> AccessTable {
        AccessTable { rate: hundred_megabit(), delay: Span::ZERO, queue: unlimited(), receiver: None }
    }
}

impl AccessTable {
    /// The links at the receivers, all of it given.
    #[must_use]
    pub fn at_receivers(&self) -> (AccessTable, Option<Loss>) {
        let own = self.receiver.clone().unwrap_or_default();
        let table = AccessTable {
            rate: own.rate.unwrap_or(self.rate),
            delay: own.delay.unwrap_or(self.delay),
            queue: own.queue.unwrap_or_else(|| self.queue.clone()),
            receiver: None,
        };
        (table, own.loss)
    }
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::Droptail { limit: hundred_packets() }
    }
}

const fn hundred_packets() -> Limit {
    Limit::Packets(100)
}
const fn hundred_megabit() -> Rate {
    Rate::from_bps(100_000_000)
}
const fn unlimited() -> Queue {
    Queue::Unlimited {}
}
const fn nothing() -> Ratio {
    Ratio::ZERO
}
const fn everything() -> Ratio {
    Ratio::ONE
}
const fn hundred_thousandth() -> Ratio {
    Ratio(0.00001)
}
const fn nineteen_of_twenty() -> Ratio {
    Ratio(0.95)
}
const fn eight_seconds() -> Span {
    Span::from_secs(8)
}
const fn four_seconds() -> Span {
    Span::from_secs(4)
}
const fn kilobyte() -> Size {
    Size::from_bytes(1000)
}
const fn tenth() -> f64 {
    0.1
}
const fn tenth_share() -> Ratio {
    Ratio(0.1)
}
const fn hundredth() -> f64 {
    0.01
}
const fn nine_tenths() -> f64 {
    0.9
}
const fn half() -> Ratio {
    Ratio(0.5)
}
const fn half_second() -> Span {
    Span::from_millis(500)
}
const fn yes() -> bool {
    true
}

//! Applications in a scenario file: what sends over a connection.

use super::codec::Codec;
use super::encoder::{EncoderBurst, EncoderTrace, JitterBuffer, JitterLaw, Pause};
use super::request::RequestTable;
use super::values::ClientBuffer;
use paceline_units::{Rate, Ratio, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A period in which a greedy application has less to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limited {
    /// Start: unsent data are withdrawn.
    pub from: Span,
    /// End, from which there is always data to send again; later than `from`.
    pub to: Span,
    /// Payload per second meanwhile, in whole segments at equal distances, the first at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: it pauses", "x-min" = "1 bit/s", "x-max" = "100 Gbit/s"))]
    pub rate: Option<Rate>,
}

/// What sends over a connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-kind" = "ftp"))]
pub enum App {
    /// A greedy transfer, as fast as its transport allows.
    Ftp {
        /// Bytes to send.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "endless", "x-min" = "1 B", "x-max" = "1000000 GB"))]
        size: Option<Size>,
        /// Periods in which an endless transfer over TCP or QUIC has less to send.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        limited: Vec<Limited>,
    },
    /// Web-like traffic: transfers of Pareto sizes, with exponential or Pareto gaps.
    Web {
        /// Mean gap.
        #[serde(default = "half_second")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "1000000 s"))]
        gap: Span,
        /// Shape of the gaps' Pareto distribution, more than 1; the variance is infinite up to 2.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1.0, max = 100.0), extend("x-default" = "none: gaps are exponential"))]
        gap_shape: Option<f64>,
        /// Start and end of a gap.
        #[serde(default)]
        arrivals: WebArrivals,
        /// Mean size of a transfer; needs a shape above 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "50 kB, unless median_size is given", "x-min" = "1 B", "x-max" = "1000 GB"))]
        mean_size: Option<Size>,
        /// Instead of `mean_size`: median size of a transfer.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none", "x-min" = "1 B", "x-max" = "1000 GB"))]
        median_size: Option<Size>,
        /// Shape of the Pareto distribution; the variance is infinite up to 2.
        #[serde(default = "pareto_shape")]
        #[schemars(range(min = 0.1, max = 100.0))]
        shape: f64,
        /// Larger draws are cut to this.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none", "x-min" = "1 B", "x-max" = "1000000 GB"))]
        max_size: Option<Size>,
        /// The receiver opens connections and requests each transfer; without it the sender sends unasked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        request: Option<RequestTable>,
    },
    /// Pareto on/off traffic, as in ns-2: bursts at a constant rate and silences, both of Pareto lengths. It begins
    /// with a silence.
    Pareto {
        /// Payload per second within a burst, in whole segments.
        #[serde(default = "telephone")]
        #[schemars(extend("x-min" = "1 bit/s", "x-max" = "100 Gbit/s"))]
        rate: Rate,
        /// Mean length of a burst.
        #[serde(default = "half_second")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "1000000 s"))]
        burst: Span,
        /// Mean length of a silence.
        #[serde(default = "half_second")]
        #[schemars(extend("x-max" = "1000000 s"))]
        idle: Span,
        /// Shape of both Pareto distributions, more than 1; the variance is infinite up to 2.
        #[serde(default = "on_off_shape")]
        #[schemars(range(min = 1.0, max = 100.0))]
        shape: f64,
    },
    /// Constant bit rate: whole segments at equal distances, the first at once.
    Cbr {
        /// Payload per second.
        #[serde(default = "telephone")]
        #[schemars(extend("x-min" = "1 bit/s", "x-max" = "100 Gbit/s"))]
        rate: Rate,
    },
    /// One direction of an online game: small packets at a tick. Two flows make a game: `down` to the player and `up`
    /// from the player.
    Game {
        /// Direction, which sets the defaults of `packet` and `interval`.
        #[serde(default)]
        way: GameWay,
        /// Payload of a packet.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "200 B down, 42 B up", "x-min" = "1 B", "x-max" = "65507 B"))]
        packet: Option<Size>,
        /// Interval between ticks.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "50 ms down, 60 ms up", "x-min" = "100 us", "x-max" = "1000 s"))]
        interval: Option<Span>,
        /// Each packet leaves up to this after its tick, drawn uniformly. Less than the interval.
        #[serde(default)]
        #[schemars(extend("x-max" = "1000 s"))]
        jitter: Span,
    },
    /// One direction of a voice call: a codec's packets with RTP's header (12 B), continuously or in talk spurts.
    Voice {
        /// Codec, which sets the defaults of `packet` and `interval`.
        #[serde(default)]
        codec: Codec,
        /// Codec payload of a packet, without RTP's header.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "by codec", "x-min" = "1 B", "x-max" = "60 kB"))]
        packet: Option<Size>,
        /// Interval between packets.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "by codec", "x-min" = "1 ms", "x-max" = "1000 s"))]
        interval: Option<Span>,
        /// Silence suppression: talk spurts and pauses of exponential lengths (ITU-T P.59).
        #[serde(default)]
        spurts: bool,
        /// Mean length of a talk spurt; with `spurts`.
        #[serde(default = "talk_spurt")]
        #[schemars(extend("x-min" = "1 ms", "x-max" = "1000000 s"))]
        talk: Span,
        /// Mean length of a pause; with `spurts`.
        #[serde(default = "pause")]
        #[schemars(extend("x-max" = "1000000 s"))]
        pause: Span,
        /// Number of packets after which nothing is sent; packets already sent still arrive.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1), extend("x-default" = "no end"))]
        packets: Option<u64>,
    },
    /// Variable-bit-rate video from a model: correlated gamma frame sizes (Heyman 1997) in groups that begin with a
    /// key frame. A frame leaves at once, in as many packets as it needs.
    Video {
        /// Mean payload rate.
        #[serde(default = "one_megabit")]
        #[schemars(extend("x-min" = "1 kbit/s", "x-max" = "100 Gbit/s"))]
        rate: Rate,
        /// Frames a second.
        #[serde(default = "twenty_five")]
        #[schemars(range(min = 0.1, max = 1000.0))]
        frame_rate: f64,
        /// Frames from one key frame to the next.
        #[serde(default = "twelve")]
        #[schemars(range(min = 1, max = 1_000_000))]
        group: u32,
        /// Ratio of a key frame's size to another frame's.
        #[serde(default = "four")]
        #[schemars(range(min = 1.0, max = 100.0))]
        key_size: f64,
        /// Coefficient of variation of frame sizes within their kind; 0: all of one kind are equal.
        #[serde(default = "variation")]
        #[schemars(range(min = 0.0, max = 3.0))]
        variation: f64,
        /// Correlation of this variation from one frame to the next.
        #[serde(default = "correlation")]
        #[schemars(range(min = 0.0, max = 0.9999))]
        correlation: f64,
        /// Number of frames after which nothing is captured; waiting frames still leave.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1), extend("x-default" = "no end"))]
        frames: Option<u64>,
    },
    /// Recorded video: a file of frame sizes, which begins again at its end.
    VideoTrace {
        /// Path of the file, relative to the scenario file: one line per frame, with its size in bytes last; `%` and
        /// `#` begin comments.
        file: String,
        /// Format of the file.
        #[serde(default)]
        format: FrameFormat,
        /// Frames a second, with `format = "sizes"`.
        #[serde(default = "thirty")]
        #[schemars(range(min = 0.1, max = 1000.0))]
        frame_rate: f64,
    },
    /// A live video encoder, for controllers on RTP and TFRC and for flows over QUIC: frame sizes follow the rate
    /// that the controller sets (RFC 8593 section 5). The first frame is captured within a frame's interval after the
    /// flow's start, drawn for each run, because cameras do not run in step. The receiver shows a frame when all its
    /// packets have arrived.
    Encoder {
        /// Frames a second.
        #[serde(default = "thirty")]
        #[schemars(range(min = 0.1, max = 1000.0))]
        frame_rate: f64,
        /// Lowest rate to which it can be set, including all headers.
        #[serde(default = "hundred_kilobits")]
        #[schemars(extend("x-min" = "1 kbit/s", "x-max" = "100 Gbit/s"))]
        min_rate: Rate,
        /// Highest rate to which it can be set.
        #[serde(default = "two_megabits")]
        #[schemars(extend("x-min" = "1 kbit/s", "x-max" = "100 Gbit/s"))]
        max_rate: Rate,
        /// Deviation of frame sizes from their mean, as a share of it: the scale of `jitter_law = "laplace"`, the
        /// bound of `"uniform"`.
        #[serde(default = "fifteen_percent")]
        jitter: Ratio,
        /// Distribution of frame sizes.
        #[serde(default)]
        jitter_law: JitterLaw,
        /// Deviation of intervals between frames, as a share of them (`SCALE_t`; its example is 0.15).
        #[serde(default)]
        interval_jitter: Ratio,
        /// Capture of the first frame, after the flow's start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "drawn for each run, up to a frame's interval", "x-max" = "1000 s"))]
        phase: Option<Span>,
        /// Effect of an abrupt change of the rate: a large frame, for which the next ones compensate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        burst: Option<EncoderBurst>,
        /// Minimum time between changes of the rate.
        #[serde(default = "fifth_second")]
        #[schemars(extend("x-max" = "1000 s"))]
        reaction: Span,
        /// Time from one key frame to the next; 0 s: only the first frame is one.
        #[serde(default = "ten_seconds")]
        #[schemars(extend("x-max" = "1000000 s"))]
        key_interval: Span,
        /// Ratio of a key frame's size to a mean frame's; the next seven frames compensate it.
        #[serde(default = "four")]
        #[schemars(range(min = 1.0, max = 8.0))]
        key_size: f64,
        /// Instead of drawn sizes: frames that an encoder made of one sequence at several rates (RFC 8593, section
        /// 6). A target between two rates has sizes between theirs.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        traces: Vec<EncoderTrace>,
        /// With `traces`: number of frames at the beginning that are left out in repetitions.
        #[serde(default = "twenty_frames")]
        #[schemars(range(max = 1_000_000))]
        skip_frames: u32,
        /// Periods without frames, as of a camera that is off; the first frame after one is a key frame.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pauses: Vec<Pause>,
        /// Each frame needs the previous one, key frames are made on request, and the receiver has a jitter buffer.
        /// Without it each frame is independent and shown when it is complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        jitter_buffer: Option<JitterBuffer>,
        /// Skips a frame when waiting data at the sender would take longer than this at the allowed rate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none: no frame is skipped", "x-min" = "1 ms", "x-max" = "1000 s"))]
        max_queue: Option<Span>,
    },
    /// Frames of another flow, which a relay forwards as they arrive, as MoQ's do. Both flows are over QUIC, on
    /// separate connections.
    Relay {
        /// The flow whose frames it forwards; this one begins where that one ends. That flow has the same number of
        /// instances, or a single one, whose frames all instances of this one forward.
        of: String,
    },
    /// A stored medium: the sender passes chunks to TCP, the receiver buffers and plays.
    Stream {
        /// Encoding rate of the medium.
        #[serde(default = "one_megabit")]
        #[schemars(extend("x-min" = "1 bit/s", "x-max" = "100 Gbit/s"))]
        media_rate: Rate,
        /// Playing time of the medium.
        #[serde(default = "five_minutes")]
        #[schemars(extend("x-min" = "1 ms", "x-max" = "1000000 s"))]
        length: Span,
        /// The sender passes data to TCP at this multiple of the media rate; 1 is constrained streaming.
        #[serde(default = "eight")]
        #[schemars(range(min = 0.001, max = 1e6))]
        xfactor: f64,
        /// Interval between chunks.
        #[serde(default = "tenth_second")]
        #[schemars(extend("x-min" = "1 us", "x-max" = "1000 s"))]
        heartbeat: Span,
        /// Share of the medium's length, in playing time, that is buffered before play-out starts. More than 0.
        #[serde(default = "five_percent")]
        buffer: Ratio,
        /// Reaction of the player to late data.
        #[serde(default)]
        playout: Playout,
        /// Capacity of the player; excess data are discarded. At least what `buffer` requires.
        #[serde(default = "unlimited")]
        client_buffer: ClientBuffer,
        /// The receiver opens the connection and requests the medium; without it the sender sends unasked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-default" = "none"))]
        request: Option<RequestTable>,
    },
}

/// Which way a game's packets go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GameWay {
    /// From the server to the player.
    #[default]
    Down,
    /// From the player to the server.
    Up,
}

/// What stands in a file of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FrameFormat {
    /// The last field before each frame's size is its time in seconds.
    #[default]
    Times,
    /// Only a line's last field counts, the frame's size; frames follow `frame_rate`.
    Sizes,
}

/// What a web client's gaps lie between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WebArrivals {
    /// From the last acknowledged byte to the next transfer, each on a fresh connection.
    #[default]
    Think,
    /// From the last acknowledged byte to the next transfer, on one persistent connection.
    ThinkPersistent,
    /// From one arrival to the next, even if earlier transfers are still in progress, on one persistent connection.
    Open,
}

/// What a player does when data come too late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Playout {
    /// It plays on by the clock; data after their instant are late.
    #[default]
    Clock,
    /// It stops and fills its buffer again.
    Stall,
}

impl App {
    /// Its kind, as scenarios name it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            App::Ftp { .. } => "ftp",
            App::Web { .. } => "web",
            App::Pareto { .. } => "pareto",
            App::Cbr { .. } => "cbr",
            App::Game { .. } => "game",
            App::Voice { .. } => "voice",
            App::Video { .. } => "video",
            App::VideoTrace { .. } => "video-trace",
            App::Encoder { .. } => "encoder",
            App::Relay { .. } => "relay",
            App::Stream { .. } => "stream",
        }
    }

    /// Payload and interval of a game's packets or, including RTP's header, of voice packets; `None` for other
    /// applications.
    #[must_use]
    pub fn ticks(&self) -> Option<(Size, Span)> {
        let (packet, interval, (size, span), header) = match self {
            App::Game { way: GameWay::Down, packet, interval, .. } => {
                (packet, interval, (Size::from_bytes(200), Span::from_millis(50)), 0)
            }
            App::Game { way: GameWay::Up, packet, interval, .. } => {
                (packet, interval, (Size::from_bytes(42), Span::from_millis(60)), 0)
            }
            App::Voice { codec, packet, interval, .. } => (packet, interval, codec.packets(), RTP_HEADER),
            _ => return None,
        };
        Some((Size::from_bytes(packet.unwrap_or(size).bytes() + header), interval.unwrap_or(span)))
    }

    /// Whether its packets or frames have their own sizes, independent of the segment's.
    #[must_use]
    pub fn has_own_sizes(&self) -> bool {
        matches!(self, App::Game { .. } | App::Voice { .. } | App::Video { .. } | App::VideoTrace { .. })
    }

    /// Whether it writes frames, its own or another flow's.
    #[must_use]
    pub fn has_frames(&self) -> bool {
        matches!(self, App::Encoder { .. } | App::Relay { .. }) || self.has_own_sizes()
    }
}

/// RTP's fixed header (RFC 3550 section 5.1).
pub const RTP_HEADER: u64 = 12;

impl Default for App {
    fn default() -> App {
        App::Ftp { size: None, limited: Vec::new() }
    }
}

pub(crate) const fn talk_spurt() -> Span {
    Span::from_millis(1004)
}
pub(crate) const fn pause() -> Span {
    Span::from_millis(1587)
}
const fn twenty_five() -> f64 {
    25.0
}
const fn twelve() -> u32 {
    12
}
const fn variation() -> f64 {
    0.3
}
const fn correlation() -> f64 {
    0.98
}
pub(crate) const fn thirty() -> f64 {
    30.0
}
const fn hundred_kilobits() -> Rate {
    Rate::from_bps(100_000)
}
const fn two_megabits() -> Rate {
    Rate::from_bps(2_000_000)
}
pub(crate) const fn twenty_frames() -> u32 {
    20
}
const fn fifteen_percent() -> Ratio {
    Ratio(0.15)
}
const fn fifth_second() -> Span {
    Span::from_millis(200)
}
const fn ten_seconds() -> Span {
    Span::from_secs(10)
}
const fn four() -> f64 {
    4.0
}
const fn half_second() -> Span {
    Span::from_millis(500)
}
const fn pareto_shape() -> f64 {
    1.2
}
const fn on_off_shape() -> f64 {
    1.5
}
const fn telephone() -> Rate {
    Rate::from_bps(64_000)
}
const fn one_megabit() -> Rate {
    Rate::from_bps(1_000_000)
}
const fn five_minutes() -> Span {
    Span::from_secs(300)
}
const fn eight() -> f64 {
    8.0
}
const fn tenth_second() -> Span {
    Span::from_millis(100)
}
const fn five_percent() -> Ratio {
    Ratio(0.05)
}
const fn unlimited() -> ClientBuffer {
    ClientBuffer::Unlimited
}

//! Values with their own notation: `"50 packets"`, `"off"`, `{ uniform = ["0 s", "1 s"] }`.

use paceline_path::wifi::{Meters, PowerDbm};
use paceline_units::{ParseError, Size, Span};
use std::fmt;
use std::str::FromStr;

/// Appends advice to a problem: the value that was probably meant, or an example.
fn advised(problem: String, meant: Option<String>, example: &str) -> String {
    match meant {
        Some(meant) => format!("{problem}; did you mean `{meant}`?"),
        None => format!("{problem}; write for example {example}"),
    }
}

/// The quantity that was probably meant, if only its unit is wrong.
fn meant(error: &ParseError) -> Option<String> {
    error.meant().map(str::to_owned)
}

/// `60 packets`, for a text that counts packets by another name.
fn packets_meant(text: &str) -> Option<String> {
    let unit = text.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = text.trim().strip_suffix(unit).filter(|number| !number.is_empty())?;
    let names = ["p", "packets", "packet", "pkt", "pkts", "pck", "pcks"];
    let is_one = names.iter().any(|name| name.eq_ignore_ascii_case(unit.trim()));
    is_one.then(|| format!("{number} packets"))
}

/// Limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Packets, of any size.
    Packets(u32),
    /// Bytes.
    Bytes(Size),
    /// As much as the link sends in this time.
    Time(Span),
}

/// Maximum packets of a limit.
const MAX_PACKETS: u32 = 1_000_000_000;
/// Maximum bytes of a limit: 1 TB.
const MAX_BYTES: u64 = 1_000_000_000_000;
/// Maximum time of a limit.
const LONGEST: Span = Span::from_secs(3600);

impl FromStr for Limit {
    type Err = String;
    fn from_str(text: &str) -> Result<Limit, String> {
        let trimmed = text.trim();
        let number = trimmed.strip_suffix("packets").or_else(|| trimmed.strip_suffix("packet"));
        if let Some(number) = number {
            let count: u32 = number
                .trim()
                .parse()
                .map_err(|_| format!("`{text}` is not a whole number of packets; write for example `50 packets`"))?;
            if !(1..=MAX_PACKETS).contains(&count) {
                return Err(format!("`{text}` must be from 1 to {MAX_PACKETS} packets"));
            }
            return Ok(Limit::Packets(count));
        }
        if let Ok(span) = trimmed.parse::<Span>() {
            if !(Span(1)..=LONGEST).contains(&span) {
                return Err(format!("`{text}` must be from 1 ns to {LONGEST}"));
            }
            return Ok(Limit::Time(span));
        }
        let size: Size = trimmed.parse().map_err(|error: ParseError| {
            let of_time = trimmed.parse::<Span>().err();
            let meant = packets_meant(trimmed).or_else(|| meant(&error)).or_else(|| of_time.as_ref().and_then(meant));
            advised(format!("`{text}` is not a queue limit"), meant, "`50 packets`, `50 kB` or `100 ms`")
        })?;
        if !(1..=MAX_BYTES).contains(&size.bytes()) {
            return Err(format!("`{text}` must be from 1 B to {}", Size(MAX_BYTES)));
        }
        Ok(Limit::Bytes(size))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(n) => write!(f, "{n} packets"),
            Limit::Bytes(size) => write!(f, "{size}"),
            Limit::Time(span) => write!(f, "{span}"),
        }
    }
}

/// Maximum random delay that hosts add to packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HostDelay {
    /// Up to this time, for every packet.
    Within(Span),
    /// For TCP's data, up to this multiple of a packet's time on the slowest link of its path.
    PacketTimes(f64),
}

/// Maximum host delay.
const SLOWEST_HOST: Span = Span::from_secs(1);
/// Maximum host delay in packet times.
const MAX_PACKET_TIMES: f64 = 1000.0;

impl FromStr for HostDelay {
    type Err = String;
    fn from_str(text: &str) -> Result<HostDelay, String> {
        if let Some(times) = number_of(text, "packets").or_else(|| number_of(text, "packet")) {
            if !(0.0..=MAX_PACKET_TIMES).contains(&times) {
                return Err(format!("`{text}` must be from 0 to {MAX_PACKET_TIMES} packets"));
            }
            return Ok(HostDelay::PacketTimes(times));
        }
        let span: Span = text.parse().map_err(|error: ParseError| {
            let meant = packets_meant(text).or_else(|| meant(&error));
            advised(format!("`{text}` is no delay of hosts"), meant, "`2 packets`, or a time as `100 us`")
        })?;
        if span > SLOWEST_HOST {
            return Err(format!("`{text}` must be at most {SLOWEST_HOST}"));
        }
        Ok(HostDelay::Within(span))
    }
}

impl fmt::Display for HostDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostDelay::Within(span) => write!(f, "{span}"),
            HostDelay::PacketTimes(1.0) => f.write_str("1 packet"),
            HostDelay::PacketTimes(times) => write!(f, "{times} packets"),
        }
    }
}

/// How long a TCP receiver may wait before it acknowledges a lone segment (RFC 5681, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAck {
    /// Every segment is acknowledged at once.
    Off,
    /// Every second segment is acknowledged at once, a lone one after this time.
    Within(Span),
}

impl FromStr for DelayedAck {
    type Err = String;
    fn from_str(text: &str) -> Result<DelayedAck, String> {
        if text.trim() == "off" {
            return Ok(DelayedAck::Off);
        }
        let span: Span = text.parse().map_err(|error: ParseError| {
            advised(format!("`{text}` is neither `off` nor a time"), meant(&error), "`200 ms`")
        })?;
        if !(1..=10_000_000_000).contains(&span.0) {
            return Err(format!("`{text}` must be `off`, or from 1 ns to 10 s"));
        }
        Ok(DelayedAck::Within(span))
    }
}

impl fmt::Display for DelayedAck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DelayedAck::Off => f.write_str("off"),
            DelayedAck::Within(span) => write!(f, "{span}"),
        }
    }
}

/// Capacity of a player's or socket's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientBuffer {
    /// No limit.
    Unlimited,
    /// A limit in bytes; what exceeds it is discarded.
    Limited(Size),
}

impl ClientBuffer {
    /// A buffer with this limit in bytes, or without one.
    pub(crate) fn of(bytes: Option<u64>) -> ClientBuffer {
        bytes.map_or(ClientBuffer::Unlimited, |bytes| ClientBuffer::Limited(Size::from_bytes(bytes)))
    }

    /// The limit in bytes, if any.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        match self {
            ClientBuffer::Unlimited => None,
            ClientBuffer::Limited(size) => Some(size.bytes()),
        }
    }
}

impl FromStr for ClientBuffer {
    type Err = String;
    fn from_str(text: &str) -> Result<ClientBuffer, String> {
        if text.trim() == "unlimited" {
            return Ok(ClientBuffer::Unlimited);
        }
        let size: Size = text.parse().map_err(|error: ParseError| {
            advised(format!("`{text}` is neither `unlimited` nor a size"), meant(&error), "`2 MB`")
        })?;
        if size.bytes() == 0 {
            return Err(format!("`{text}` must be `unlimited`, or at least 1 B"));
        }
        Ok(ClientBuffer::Limited(size))
    }
}

impl fmt::Display for ClientBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientBuffer::Unlimited => f.write_str("unlimited"),
            ClientBuffer::Limited(size) => write!(f, "{size}"),
        }
    }
}

/// A distance.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Distance(pub Meters);

/// Maximum distance in meters: beyond it an ACK would arrive too late.
const FARTHEST: f64 = 1000.0;

impl FromStr for Distance {
    type Err = String;
    fn from_str(text: &str) -> Result<Distance, String> {
        let meters =
            number_of(text, "m").ok_or_else(|| format!("`{text}` is not a distance; write for example `10 m`"))?;
        if !(0.0..=FARTHEST).contains(&meters) {
            return Err(format!("`{text}` must be from 0 m to {FARTHEST} m"));
        }
        Ok(Distance(Meters(meters)))
    }
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} m", self.0.0)
    }
}

/// A received power.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Power(pub PowerDbm);

impl FromStr for Power {
    type Err = String;
    fn from_str(text: &str) -> Result<Power, String> {
        let power =
            number_of(text, "dBm").ok_or_else(|| format!("`{text}` is not a power; write for example `-60 dBm`"))?;
        if !(-120.0..=30.0).contains(&power) {
            return Err(format!("`{text}` must be from -120 dBm to 30 dBm"));
        }
        Ok(Power(PowerDbm(power)))
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dBm", self.0.0)
    }
}

/// The finite number before a unit.
fn number_of(text: &str, unit: &str) -> Option<f64> {
    let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

paceline_units::as_text! {
    Distance, ["10 m"];
    Power, ["-60 dBm"];
    Limit, ["50 packets", "50 kB", "100 ms"];
    DelayedAck, ["200 ms", "off"];
    HostDelay, ["2 packets", "100 us"];
    ClientBuffer, ["2 MB", "unlimited"];
}

//! Packets in flight, and their acknowledgement.

use super::value::{Numbers, text_of};
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum packets remembered per number space: the latest. Acknowledgements of older ones are ignored.
const MAX_PACKETS: usize = 1 << 17;

/// kPacketThreshold (RFC 9002, 6.1.1): a packet is lost when one sent this many later is acknowledged.
pub const REORDERING: u64 = 3;

/// A packet, as an event describes it.
#[derive(Clone, Debug, Default)]
pub struct LoggedPacket<'v> {
    pub space: usize,
    pub number: Option<u64>,
    /// Its size within its datagram, in bytes.
    pub size: Option<u64>,
    /// `None` if frames were not logged.
    pub frames: Option<&'v [Value]>,
    /// Whether only the header gives its size, and frames are not logged, as in quinn's logs.
    pub bare: bool,
}

impl<'v> LoggedPacket<'v> {
    /// From the data of `packet_sent`, `packet_received` or `packet_lost`.
    pub fn of(data: &'v Value, numbers: &mut Numbers) -> LoggedPacket<'v> {
        let header = data.get("header").unwrap_or(data);
        let kind = text_of(header, &["packet_type", "type"]).or_else(|| text_of(data, &["packet_type", "type"]));
        let raw = data.get("raw").unwrap_or(&Value::Null);
        let size = numbers
            .whole_of(raw, &["length"])
            .or_else(|| numbers.whole_of(header, &["packet_size"]))
            .or_else(|| numbers.whole_of(data, &["packet_size"]));
        let frames = data.get("frames").and_then(Value::as_array).map(Vec::as_slice);
        let bare_size = if size.is_none() { numbers.whole_of(header, &["length"]) } else { None };
        LoggedPacket {
            space: space(kind),
            number: numbers.whole_of(header, &["packet_number"]).or_else(|| numbers.whole_of(data, &["packet_number"])),
            size: size.or(bare_size),
            frames,
            bare: bare_size.is_some() && frames.is_none(),
        }
    }
}

/// A packet type's number space: 0 for Initial, 1 for Handshake, 2 for the rest.
pub fn space(kind: Option<&str>) -> usize {
    match kind.map(str::to_ascii_lowercase).as_deref() {
        Some("initial") => 0,
        Some("handshake") => 1,
        _ => 2,
    }
}

/// A piece of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub stream: u64,
    pub offset: u64,
    pub length: u64,
}

/// The content of a packet's frames.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    pub pieces: Vec<Piece>,
    /// Bytes in DATAGRAM frames.
    pub datagrams: u64,
    /// Whether it is ack-eliciting (RFC 9002, 2).
    pub eliciting: bool,
}

impl Carried {
    pub fn of(frames: Option<&[Value]>, numbers: &mut Numbers) -> Carried {
        // Without logged frames, assume that it is ack-eliciting: most packets are.
        let Some(frames) = frames else { return Carried { eliciting: true, ..Carried::default() } };
        let mut carried = Carried::default();
        for frame in frames {
            let kind = text_of(frame, &["frame_type", "type"]).unwrap_or("").to_ascii_lowercase();
            let length = numbers.whole_of(frame, &["length"]).or_else(|| {
                let raw = frame.get("raw")?;
                numbers.whole_of(raw, &["payload_length", "length"])
            });
            match kind.as_str() {
                "ack" | "ack_ecn" | "ack_receive_timestamps" | "padding" | "connection_close" => continue,
                "stream" => carried.pieces.extend(numbers.whole_of(frame, &["stream_id", "id"]).map(|stream| Piece {
                    stream,
                    offset: numbers.whole_of(frame, &["offset"]).unwrap_or(0),
                    length: length.unwrap_or(0),
                })),
                "datagram" => carried.datagrams = carried.datagrams.saturating_add(length.unwrap_or(0)),
                _ => {}
            }
            carried.eliciting = true;
        }
        carried
    }
}

/// An ACK frame.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ack {
    /// First and last number of each range.
    pub ranges: Vec<(u64, u64)>,
    /// Its ACK Delay, in the log's unit of time.
    pub delay: f64,
    /// Packets received with ECN-CE, so far.
    pub ce: Option<u64>,
}

impl Ack {
    /// The frame, if it is an ACK.
    pub fn of(frame: &Value, numbers: &mut Numbers) -> Option<Ack> {
        let kind = text_of(frame, &["frame_type", "type"])?.to_ascii_lowercase();
        if !matches!(kind.as_str(), "ack" | "ack_ecn" | "ack_receive_timestamps") {
            return None;
        }
        let mut whole = |value: &Value| numbers.whole_in("acked_ranges", value);
        let mut range = |range: &Value| match range.as_array()?.as_slice() {
            [one] => whole(one).map(|n| (n, n)),
            [first, last] => Some((whole(first)?, whole(last)?)).map(|(a, b)| (a.min(b), a.max(b))),
            _ => None,
        };
        let ranges = frame.get("acked_ranges").and_then(Value::as_array)?;
        Some(Ack {
            ranges: ranges.iter().filter_map(&mut range).collect(),
            delay: numbers.number_of(frame, &["ack_delay"]).unwrap_or(0.0),
            ce: numbers.whole_of(frame, &["ce"]),
        })
    }
}

/// A sent packet without an acknowledgement.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Sending time in nanoseconds.
    pub at: u64,
    pub size: u64,
    pub carried: Carried,
    pub lost: bool,
}

impl Sent {
    /// Its part of the bytes in flight.
    pub fn in_flight(&self) -> u64 {
        if self.carried.eliciting && !self.lost { self.size } else { 0 }
    }
}

/// The sent packets of one number space.
#[derive(Clone, Debug, Default)]
pub struct Space {
    under_way: BTreeMap<u64, Sent>,
    pub largest_acked: Option<u64>,
    /// Whether packets have been forgotten.
    pub forgot: bool,
}

impl Space {
    /// Adds a sent packet. Returns the bytes removed from flight: those of an earlier packet with its number, or of a
    /// forgotten one.
    pub fn send(&mut self, number: u64, sent: Sent) -> u64 {
        let before = self.under_way.insert(number, sent).map_or(0, |old| old.in_flight());
        if self.under_way.len() <= MAX_PACKETS {
            return before;
        }
        self.forgot = true;
        before.saturating_add(self.under_way.pop_first().map_or(0, |(_, old)| old.in_flight()))
    }

    /// Marks a packet as lost. Returns the bytes removed from flight.
    pub fn lose(&mut self, number: u64) -> u64 {
        self.under_way.get_mut(&number).map_or(0, |sent| {
            let bytes = sent.in_flight();
            sent.lost = true;
            bytes
        })
    }

    /// Returns the packets that a range acknowledges for the first time.
    pub fn acknowledge(&mut self, first: u64, last: u64) -> Vec<(u64, Sent)> {
        self.largest_acked = self.largest_acked.max(Some(last));
        // The cost depends on the packets, not on the range.
        let numbers: Vec<u64> = self.under_way.range(first..=last).map(|(number, _)| *number).collect();
        numbers.into_iter().filter_map(|number| Some((number, self.under_way.remove(&number)?))).collect()
    }

    /// Count of ack-eliciting packets that were never acknowledged, though one sent [`REORDERING`] later was. Other
    /// packets may remain without acknowledgement.
    pub fn overtaken(&self) -> usize {
        let Some(last) = self.largest_acked.and_then(|largest| largest.checked_sub(REORDERING)) else { return 0 };
        self.under_way.range(..=last).filter(|(_, sent)| sent.carried.eliciting).count()
    }
}

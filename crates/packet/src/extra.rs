//! Side records of packets: fields that only some carry (SACK blocks, a lowered window, TFRC's reports, RTP and RTCP),
//! in one arena per run.

use crate::Stamp;
use crate::quic::{AckRange, Frame, StreamPiece};
use crate::rtcp::Compound;
use crate::rtp::RtpData;
use core::num::NonZeroU32;
use paceline_units::Span;

/// Segments `start..end` that have arrived out of order (RFC 2018).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// First segment of the block.
    pub start: u32,
    /// One past its last segment.
    pub end: u32,
}

/// A receiver's report on earlier packets when it acknowledges each packet: its last hole (Rejaie, Handley and Estrin,
/// INFOCOM 1999, section 2.1). The acknowledgement itself has the number of the acknowledged packet and the echo of its
/// stamp. `hole_start <= hole_end <= received_end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastHole {
    /// One past the highest number received.
    pub received_end: u32,
    /// All packets from here on have been received.
    pub hole_end: u32,
    /// No packet from here to `hole_end` has been received; the one before has. Zero if none before is known to have
    /// been.
    pub hole_start: u32,
}

/// Options of a TCP acknowledgement, beside its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpOptions {
    /// SACK blocks, the most recently changed first; unused ones are empty (`start == end`).
    pub sack: [Block; 3],
    /// The receiver's advertised window in segments, if it differs from the flow's default.
    pub window: Option<NonZeroU32>,
}

impl TcpOptions {
    /// No blocks, no window.
    pub const NONE: TcpOptions = TcpOptions { sack: [Block { start: 0, end: 0 }; 3], window: None };

    /// The blocks in use.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.sack.iter().copied().filter(|b| b.start != b.end)
    }
}

/// The TFRC connection that a packet belongs to, in a flow that opens several (MULTFRC).
///
/// A new connection takes the lowest free place. The count of openings distinguishes it from an earlier one at the same
/// place, so that late packets are not attributed to the new one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Subflow {
    /// Its place: 0 for the first.
    pub place: u16,
    /// The number of earlier connections at this place, modulo 2^16.
    pub opening: u16,
}

impl Subflow {
    /// The only connection of a flow with a single one.
    pub const ONLY: Subflow = Subflow { place: 0, opening: 0 };
}

/// Fields of a TFRC data packet beside its number and its sender's clock (RFC 5348 section 3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TfrcData {
    /// The sender's round-trip time; zero before the first sample.
    pub rtt: Span,
    /// Optional fields.
    pub more: TfrcMore,
}

/// Optional fields of a TFRC data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TfrcMore {
    /// None.
    Nothing,
    /// The fields of ns-2's header; they have no encoding on a real wire.
    Ns2(Ns2Data),
    /// For a flow that carries video: the part of a frame.
    Frame(FramePart),
}

impl TfrcMore {
    /// The part of a video frame, if present.
    #[must_use]
    pub const fn frame(self) -> Option<FramePart> {
        match self {
            TfrcMore::Frame(part) => Some(part),
            TfrcMore::Nothing | TfrcMore::Ns2(_) => None,
        }
    }
}

/// A packet's position in a video frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FramePart {
    /// When the frame was captured, on the clock that stamps the packet.
    pub captured: Stamp,
    /// Whether it is the frame's last packet.
    pub last: bool,
}

/// Fields that ns-2's TFRC sender sends to its receiver beside the round-trip time (`hdr_tfrc` of ns-2.35).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ns2Data {
    /// Retransmission timeout of a TCP with the same samples (`tzero`).
    pub timeout: Span,
    /// The number of reports received and nofeedback timers expired so far (`round_id`).
    pub round: u32,
    /// Whether the receiver must respond at once (`UrgentFlag`).
    pub urgent: bool,
}

/// A TFRC report (RFC 5348 section 3.2.2). The packet itself has the echo of the time stamp, and as its number one past
/// the highest received.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TfrcReport {
    /// From the arrival of the last data packet to this report (t_delay).
    pub delay: Span,
    /// The rate of received data since the last report, in bytes per second (X_recv).
    pub receive_rate: f64,
    /// The loss event rate (p), from 0 to 1.
    pub loss_event_rate: f64,
}

/// The side record of one packet.
#[derive(Clone, PartialEq, Debug)]
pub enum Extra {
    /// For an acknowledgement of one packet.
    Ack(LastHole),
    /// For a QUIC packet, in either direction: its frames.
    Quic(Box<[Frame]>),
    /// For a QUIC packet with only an acknowledgement of at most two ranges.
    QuicAck(AckRange),
    /// For a QUIC packet with only data of one stream.
    QuicStream(StreamPiece),
    /// For an RTCP packet, in either direction.
    Rtcp(Box<Compound>),
    /// For an RTP data packet.
    Rtp(RtpData),
    /// For a TCP acknowledgement.
    Tcp(TcpOptions),
    /// For a TFRC data packet.
    TfrcData(Subflow, TfrcData),
    /// For a TFRC report.
    TfrcReport(Subflow, TfrcReport),
}

const _: () = assert!(size_of::<Option<Extra>>() == 32, "a side record must stay two to a cache line");

impl Extra {
    /// TCP's options, if it belongs to a TCP packet.
    #[inline]
    #[must_use]
    pub const fn tcp(&self) -> Option<&TcpOptions> {
        match self {
            Extra::Tcp(options) => Some(options),
            _ => None,
        }
    }
}

/// Identifies a record in [`Extras`]; [`ExtraId::NONE`] means that the packet has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct ExtraId(u32);

impl ExtraId {
    /// No side record.
    pub const NONE: ExtraId = ExtraId(u32::MAX);
}

/// The arena of side records. The code that delivers or drops a packet must free its record.
#[derive(Default, Debug)]
pub struct Extras {
    records: Vec<Option<Extra>>,
    free: Vec<u32>,
}

impl Extras {
    /// Stores `extra` until [`Extras::take`].
    #[inline(always)]
    pub fn put(&mut self, extra: Extra) -> ExtraId {
        let Some(i) = self.free.pop() else { return self.add(extra) };
        let Some(place) = self.records.get_mut(i as usize) else { return self.add(extra) };
        // The slot is empty: skip its drop, which would check the variant.
        core::mem::forget(place.replace(extra));
        ExtraId(i)
    }

    /// Appends a new slot.
    #[cold]
    #[inline(never)]
    fn add(&mut self, extra: Extra) -> ExtraId {
        self.records.push(Some(extra));
        ExtraId((self.records.len() - 1) as u32)
    }

    /// Frees and returns the record; `None` for [`ExtraId::NONE`].
    #[inline]
    pub fn take(&mut self, id: ExtraId) -> Option<Extra> {
        if id == ExtraId::NONE {
            return None;
        }
        self.free.push(id.0);
        self.records[id.0 as usize].take()
    }

    /// Frees the record, which must own no heap memory: unlike [`Extras::take`] it neither moves it nor checks its
    /// variant.
    #[inline]
    pub fn release(&mut self, id: ExtraId) {
        debug_assert!(matches!(self.get(id), Some(Extra::QuicStream(_) | Extra::QuicAck(_))));
        core::mem::forget(self.records[id.0 as usize].take());
        self.free.push(id.0);
    }

    /// The record, without freeing it; `None` for [`ExtraId::NONE`].
    #[inline]
    #[must_use]
    pub fn get(&self, id: ExtraId) -> Option<&Extra> {
        self.records.get(id.0 as usize)?.as_ref()
    }

    /// Copies the record; returns the copy's id.
    pub fn duplicate(&mut self, id: ExtraId) -> ExtraId {
        if id == ExtraId::NONE {
            return id;
        }
        self.records[id.0 as usize].clone().map_or(ExtraId::NONE, |extra| self.put(extra))
    }

    /// The number of records in use: zero when no packet with a record is in flight.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.records.len() - self.free.len()
    }
}

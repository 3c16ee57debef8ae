//! Side records of packets: what only some carry (SACK blocks, a lowered window, TFRC's reports, RTP and RTCP), kept in
//! one arena a run.

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

/// What a receiver that acknowledges each packet says of those before it: its last hole (Rejaie, Handley and Estrin,
/// INFOCOM 1999, section 2.1). The number of the packet answered, and the echo of its stamp, are the acknowledgement's
/// own. `hole_start <= hole_end <= received_end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastHole {
    /// One past the highest number that has come.
    pub received_end: u32,
    /// From here on all have come.
    pub hole_end: u32,
    /// From here to `hole_end` none has come; the one before has. Zero if none before is known to have.
    pub hole_start: u32,
}

/// What a TCP acknowledgement says beside its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpOptions {
    /// SACK blocks, the most recently changed first; empty ones (`start == end`) fill up.
    pub sack: [Block; 3],
    /// The receiver's advertised window in segments, if it is not the flow's standing one.
    pub window: Option<NonZeroU32>,
}

impl TcpOptions {
    /// No block, no window.
    pub const NONE: TcpOptions = TcpOptions { sack: [Block { start: 0, end: 0 }; 3], window: None };

    /// The blocks in use.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.sack.iter().copied().filter(|b| b.start != b.end)
    }
}

/// Which of a flow's TFRC connections a packet is of, where a flow opens several (MULTFRC).
///
/// A connection that opens takes the least place that is free; one that opened there before is told apart by the count
/// of openings, so that what is late of it is not taken for the new one's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Subflow {
    /// Its place: 0 for the first.
    pub place: u16,
    /// How many connections opened at this place before, modulo 2^16.
    pub opening: u16,
}

impl Subflow {
    /// The only connection of a flow that has no more.
    pub const ONLY: Subflow = Subflow { place: 0, opening: 0 };
}

/// What a TFRC data packet says beside its number and its sender's clock (RFC 5348 section 3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TfrcData {
    /// The sender's round-trip time; zero before it has one.
    pub rtt: Span,
    /// What else.
    pub more: TfrcMore,
}

/// What a TFRC data packet says beside what each says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TfrcMore {
    /// Nothing.
    Nothing,
    /// What ns-2's header carries; it is nothing on a real wire.
    Ns2(Ns2Data),
    /// Of a flow that carries video: which part of a frame it is.
    Frame(FramePart),
}

impl TfrcMore {
    /// Which part of a video frame it is, if it says so.
    #[must_use]
    pub const fn frame(self) -> Option<FramePart> {
        match self {
            TfrcMore::Frame(part) => Some(part),
            TfrcMore::Nothing | TfrcMore::Ns2(_) => None,
        }
    }
}

/// A packet's place in a video frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FramePart {
    /// When the frame was captured, by the clock that stamps the packet.
    pub captured: Stamp,
    /// It is the frame's last packet.
    pub last: bool,
}

/// What ns-2's TFRC sender tells its receiver beside the round-trip time (`hdr_tfrc` of ns-2.35).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ns2Data {
    /// Retransmission timeout of a TCP with the same samples (`tzero`).
    pub timeout: Span,
    /// Reports received and nofeedback timers expired so far (`round_id`).
    pub round: u32,
    /// To be answered at once (`UrgentFlag`).
    pub urgent: bool,
}

/// What a TFRC report says (RFC 5348 section 3.2.2). The echo of the time stamp is the packet's own; its number is one
/// past the highest that has come.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TfrcReport {
    /// From the arrival of the last data packet to this report (t_delay).
    pub delay: Span,
    /// The rate at which data came since the last report, in bytes a second (X_recv).
    pub receive_rate: f64,
    /// The loss event rate (p), from 0 to 1.
    pub loss_event_rate: f64,
}

/// The side record of one packet.
#[derive(Clone, PartialEq, Debug)]
pub enum Extra {
    /// Of an acknowledgement of one packet.
    Ack(LastHole),
    /// Of a QUIC packet, in either direction: its frames.
    Quic(Box<[Frame]>),
    /// Of a QUIC packet that has nothing but an acknowledgement of two ranges at most.
    QuicAck(AckRange),
    /// Of a QUIC packet that has nothing but data of a stream.
    QuicStream(StreamPiece),
    /// Of an RTCP packet, in either direction.
    Rtcp(Box<Compound>),
    /// Of an RTP data packet.
    Rtp(RtpData),
    /// Of a TCP acknowledgement.
    Tcp(TcpOptions),
    /// Of a TFRC data packet.
    TfrcData(Subflow, TfrcData),
    /// Of a TFRC report.
    TfrcReport(Subflow, TfrcReport),
}

const _: () = assert!(size_of::<Option<Extra>>() == 32, "a side record must stay two to a cache line");

impl Extra {
    /// TCP's options, if it is a TCP packet's.
    #[inline]
    #[must_use]
    pub const fn tcp(&self) -> Option<&TcpOptions> {
        match self {
            Extra::Tcp(options) => Some(options),
            _ => None,
        }
    }
}

/// Names a record in [`Extras`]; [`ExtraId::NONE`] says that the packet has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct ExtraId(u32);

impl ExtraId {
    /// No side record.
    pub const NONE: ExtraId = ExtraId(u32::MAX);
}

/// The arena of side records. Whoever ends a packet (delivers or drops it) gives its record back.
#[derive(Default, Debug)]
pub struct Extras {
    records: Vec<Option<Extra>>,
    free: Vec<u32>,
}

impl Extras {
    /// Keeps `extra` until [`Extras::take`].
    #[inline(always)]
    pub fn put(&mut self, extra: Extra) -> ExtraId {
        let Some(i) = self.free.pop() else { return self.add(extra) };
        let Some(place) = self.records.get_mut(i as usize) else { return self.add(extra) };
        // The place is empty: to drop what was in it would ask once more what it is.
        core::mem::forget(place.replace(extra));
        ExtraId(i)
    }

    /// Keeps it in a place of its own.
    #[cold]
    #[inline(never)]
    fn add(&mut self, extra: Extra) -> ExtraId {
        self.records.push(Some(extra));
        ExtraId((self.records.len() - 1) as u32)
    }

    /// The record, which is freed; `None` for [`ExtraId::NONE`].
    #[inline]
    pub fn take(&mut self, id: ExtraId) -> Option<Extra> {
        if id == ExtraId::NONE {
            return None;
        }
        self.free.push(id.0);
        self.records[id.0 as usize].take()
    }

    /// Frees the record, which is known to hold nothing of the heap: [`Extras::take`] would move it, and ask what it is.
    #[inline]
    pub fn release(&mut self, id: ExtraId) {
        debug_assert!(matches!(self.get(id), Some(Extra::QuicStream(_) | Extra::QuicAck(_))));
        core::mem::forget(self.records[id.0 as usize].take());
        self.free.push(id.0);
    }

    /// The record, which stays; `None` for [`ExtraId::NONE`].
    #[inline]
    #[must_use]
    pub fn get(&self, id: ExtraId) -> Option<&Extra> {
        self.records.get(id.0 as usize)?.as_ref()
    }

    /// A copy of the record under a name of its own.
    pub fn duplicate(&mut self, id: ExtraId) -> ExtraId {
        if id == ExtraId::NONE {
            return id;
        }
        self.records[id.0 as usize].clone().map_or(ExtraId::NONE, |extra| self.put(extra))
    }

    /// How many records are in use: zero when no packet that has one is in flight.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.records.len() - self.free.len()
    }
}

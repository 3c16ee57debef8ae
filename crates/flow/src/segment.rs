//! The segments that a machine passes to its host, and the trait for it.

use paceline_packet::{Extra, Flags, Stamp};
use paceline_units::Time;

/// An outgoing segment: a packet without the fields that the host adds.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Data: the segment's number. Acknowledgement: the next segment expected.
    pub seq: u32,
    /// Data: the sender's timestamp. Acknowledgement: the echo of the data's timestamp.
    pub stamp: Stamp,
    /// Bytes on the wire.
    pub size: u16,
    /// Header bits.
    pub flags: Flags,
    /// Contents that few segments have: SACK blocks, a report.
    pub extra: Option<Extra>,
}

/// Receives segments as they are sent.
pub trait Transmit {
    /// Sends the segment now.
    fn transmit(&mut self, segment: Segment);

    /// When the last segment, passed on at `now`, leaves the host; a host may add a small delay. Round-trip times are
    /// measured from this time.
    #[inline]
    fn left(&self, now: Time) -> Time {
        now
    }

    /// Until when due segments should wait in the machine, because the host's own interface is full; `None`: it is not.
    /// A segment sent nevertheless is not lost for this.
    #[inline]
    fn full_until(&self) -> Option<Time> {
        None
    }

    /// Whether to stop asking the application for data in this call: a real-time host limits the cost of one call. A
    /// simulated host does not.
    #[inline(always)]
    fn enough(&self) -> bool {
        false
    }

    /// Whether [`Burst::MAX_SEGMENTS`](crate::tcp::Burst::MAX_SEGMENTS) segments may be sent without calling
    /// [`Transmit::full_until`] between them, because it would return `None` each time.
    #[inline]
    fn takes_burst(&self) -> bool {
        true
    }
}

impl Transmit for Vec<Segment> {
    fn transmit(&mut self, segment: Segment) {
        self.push(segment);
    }
}

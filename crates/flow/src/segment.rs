//! What a machine hands to its host, and how.

use paceline_packet::{Extra, Flags, Stamp};
use paceline_units::Time;

/// A segment on its way out: a packet but for what the host adds.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Data: the segment's number. Acknowledgement: the next segment expected.
    pub seq: u32,
    /// Data: the sender's clock. Acknowledgement: the echo of the data's.
    pub stamp: Stamp,
    /// Bytes on the wire.
    pub size: u16,
    /// Header bits.
    pub flags: Flags,
    /// What few segments carry: SACK blocks, a report.
    pub extra: Option<Extra>,
}

/// Takes segments as they are sent.
pub trait Transmit {
    /// The segment leaves now.
    fn transmit(&mut self, segment: Segment);

    /// When the last segment left or will leave, which was handed over at `now`: a host may take a little time. Round trips
    /// are measured from there.
    #[inline]
    fn left(&self, now: Time) -> Time {
        now
    }

    /// Until when what has time should wait in the machine, since the host's own interface holds as much as a host lets
    /// it hold; `None`: it takes more. What is sent all the same is not lost for that.
    #[inline]
    fn full_until(&self) -> Option<Time> {
        None
    }

    /// Whether the application is to be asked no more in this call: a host that runs in real time bounds what one call costs.
    /// A simulated host does not.
    #[inline(always)]
    fn enough(&self) -> bool {
        false
    }

    /// Whether [`Burst::MAX_SEGMENTS`](crate::tcp::Burst::MAX_SEGMENTS) segments may be handed over without asking
    /// [`Transmit::full_until`] between them: it would say `None` each time.
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

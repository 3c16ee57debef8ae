//! Segments as the network has them.

use paceline_flow::Segment;
use paceline_packet::{ExtraId, FlowId, Packet};
use paceline_units::Time;

/// The packet that carries a segment sent at `now`.
pub fn packet(now: Time, s: &Segment) -> Packet {
    Packet {
        time: now,
        flow: FlowId(0),
        seq: s.seq,
        stamp: s.stamp,
        cursor: 0,
        extra: ExtraId::NONE,
        size: s.size,
        flags: s.flags,
    }
}

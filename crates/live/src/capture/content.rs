//! What a frame has after its IPv4 header, as each transport writes it.

use paceline_packet::{Flags, Packet};

/// A packet's source and destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) from: [u8; 4],
    pub(super) to: [u8; 4],
}

/// What follows the IPv4 header: bytes, and the number of zeros after them.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) header: Vec<u8>,
    pub(super) payload: usize,
}

/// Zeros for the longest payload.
pub(super) static ZEROS: [u8; 65_536] = [0; 65_536];

/// A random-looking number for a flow: its initial sequence number, its connection id.
pub(super) const fn scramble(flow: u32, connection: u32) -> u32 {
    // the finaliser of SplitMix64
    let mut z = ((flow as u64) << 32 | connection as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as u32
}

/// Returns a wrong checksum for a damaged packet, the `right` one otherwise.
pub(super) const fn checksum(packet: &Packet, right: u16) -> u16 {
    if !packet.flags.has(Flags::CORRUPT) {
        return right;
    }
    // never zero, which in UDP means no checksum
    if right == 1 { 2 } else { right ^ 1 }
}

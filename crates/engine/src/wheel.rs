//! A level of a hierarchical timing wheel (Varghese and Lauck 1987), for packets far beyond
//! [`Fanin`](crate::fanin::Fanin)'s slots: blocks of slots, blocks of blocks, and so on.

use paceline_packet::Packet;
use paceline_units::Time;

/// Slots per block, a power of two.
pub(crate) const BLOCK: u64 = 1 << BLOCK_BITS;
pub(crate) const BLOCK_BITS: u32 = 5;
/// The slots of this block and the next: one bit each in a word.
pub(crate) const SLOTS: u64 = 2 * BLOCK;

/// A level of blocks, which consist of slots or of blocks of the level below.
#[derive(Debug)]
pub(crate) struct Level {
    /// Packets by block, indexed like slots.
    pub(crate) packets: [Vec<Packet>; SLOTS as usize],
    /// The earliest time in each block that holds packets, stored so that repeated lookups need no search.
    pub(crate) earliest: [Time; SLOTS as usize],
    /// Which blocks hold packets: bit `number % 64`.
    pub(crate) occupied: u64,
    /// The number of the first block that may hold packets, and of the first beyond them, a multiple of the next
    /// level's block.
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// A block is 2^shift nanoseconds.
    pub(crate) shift: u32,
}

impl Level {
    /// The level above units of 2^`shift` nanoseconds that end at number `below`.
    pub(crate) fn over(shift: u32, below: u64) -> Level {
        let first = below >> BLOCK_BITS;
        Level {
            packets: [const { Vec::new() }; SLOTS as usize],
            earliest: [Time::NEVER; SLOTS as usize],
            occupied: 0,
            first,
            end: end_from(first),
            shift: shift + BLOCK_BITS,
        }
    }

    /// The vector for a packet of this time, which is in block `number`.
    #[inline(always)]
    pub(crate) fn place(&mut self, number: u64, time: Time) -> &mut Vec<Packet> {
        let at = (number % SLOTS) as usize;
        let fresh = self.occupied & (1 << at) == 0;
        self.occupied |= 1 << at;
        self.earliest[at] = if fresh { time } else { self.earliest[at].min(time) };
        &mut self.packets[at]
    }

    /// The number of the first block that holds packets.
    #[inline]
    pub(crate) fn first_occupied(&self) -> Option<u64> {
        let held = self.occupied.rotate_right((self.first % SLOTS) as u32);
        (held != 0).then(|| self.first + u64::from(held.trailing_zeros()))
    }
}

/// The end of a row of slots or blocks that begins with `first`: that one's block, and the next.
pub(crate) fn end_from(first: u64) -> u64 {
    first - first % BLOCK + SLOTS
}

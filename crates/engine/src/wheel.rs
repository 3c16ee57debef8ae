//! A level of a hierarchical timing wheel (Varghese and Lauck 1987), where packets wait that lie far ahead of
//! [`Fanin`](crate::fanin::Fanin)'s slots: blocks of slots, blocks of blocks, and so on.

use paceline_packet::Packet;
use paceline_units::Time;

/// Slots of a block, a power of two.
pub(crate) const BLOCK: u64 = 1 << BLOCK_BITS;
pub(crate) const BLOCK_BITS: u32 = 5;
/// The slots of this block and the next: a bit each in a word.
pub(crate) const SLOTS: u64 = 2 * BLOCK;

/// Blocks of the level below: of slots, or of blocks.
#[derive(Debug)]
pub(crate) struct Level {
    /// Packets by block, in the order of slots.
    pub(crate) packets: [Vec<Packet>; SLOTS as usize],
    /// The earliest time in each block that holds packets, kept so that repeated looks do not search it.
    pub(crate) earliest: [Time; SLOTS as usize],
    /// Which hold packets: bit `number % 64`.
    pub(crate) occupied: u64,
    /// Number of the first block that may hold packets; and of the first beyond these, a whole number of what lies above.
    pub(crate) first: u64,
    pub(crate) end: u64,
    /// A block is 2^shift nanoseconds.
    pub(crate) shift: u32,
}

impl Level {
    /// Of what is 2^`shift` nanoseconds and ends with number `below`.
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

    /// Where a packet of this time goes, which is in the block of this number.
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

/// The end of a row of slots or blocks that begins within one: that one's block, and the next.
pub(crate) fn end_from(first: u64) -> u64 {
    first - first % BLOCK + SLOTS
}

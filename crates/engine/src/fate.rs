//! What becomes of packets at links, and how that is counted.

use core::ops::{Index, IndexMut};
use paceline_units::Time;

/// What a link did with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Fate {
    /// The packet's time now is its arrival at the far end.
    Pass,
    /// It does not get across; its time is unchanged.
    Drop(DropReason),
    /// As `Pass`, and a copy arrives at this time.
    Twice(Time),
    /// The link never sends again: the packet stays in its queue, in flight for ever.
    Held,
}

/// Why a packet did not get across.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full.
    Overflow,
    /// RED or PIE drew it (a probabilistic drop).
    Early,
    /// RED's average queue was above the maximum threshold (twice that when gentle).
    Forced,
    /// The loss model took it, after it had used the link.
    Loss,
    /// It left the queue while the link was down.
    Outage,
    /// Damaged on the way and refused by the receiving host (no link reports this one).
    Corrupt,
    /// CoDel dropped it: packets had waited in the queue for too long.
    Delay,
    /// Given up after as many attempts as the medium's rules allow (IEEE 802.11's retry limits).
    Retries,
    /// It found a policer's token bucket empty.
    Policed,
}

impl DropReason {
    /// How many reasons there are.
    pub const COUNT: usize = 9;
    /// All of them, in the order of [`DropReason::index`].
    pub const ALL: [DropReason; DropReason::COUNT] = [
        DropReason::Overflow,
        DropReason::Early,
        DropReason::Forced,
        DropReason::Loss,
        DropReason::Outage,
        DropReason::Corrupt,
        DropReason::Delay,
        DropReason::Retries,
        DropReason::Policed,
    ];

    /// Its place in [`DropReason::ALL`].
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::Overflow => "overflow",
            DropReason::Early => "early",
            DropReason::Forced => "forced",
            DropReason::Loss => "loss",
            DropReason::Outage => "outage",
            DropReason::Corrupt => "corrupt",
            DropReason::Delay => "delay",
            DropReason::Retries => "retries",
            DropReason::Policed => "policed",
        }
    }
}

/// A number of packets for each [`DropReason`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drops([u64; DropReason::COUNT]);

impl Drops {
    /// Of all reasons together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Index<DropReason> for Drops {
    type Output = u64;
    #[inline]
    fn index(&self, reason: DropReason) -> &u64 {
        &self.0[reason.index()]
    }
}

impl IndexMut<DropReason> for Drops {
    #[inline]
    fn index_mut(&mut self, reason: DropReason) -> &mut u64 {
        &mut self.0[reason.index()]
    }
}

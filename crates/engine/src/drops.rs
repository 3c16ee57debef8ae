//! Fates of packets at links, and drop counts.

use core::ops::{Index, IndexMut};
use paceline_units::Time;

/// A link's verdict on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Fate {
    /// It passes: its time is now its arrival at the far end.
    Pass,
    /// It is dropped; its time is unchanged.
    Drop(DropReason),
    /// It passes, and a copy arrives at this time.
    Twice(Time),
    /// The link never sends again: the packet stays in its queue, in flight forever.
    Held,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full.
    Overflow,
    /// A probabilistic drop of the AQM (such as RED or PIE).
    Early,
    /// RED's average queue was above the maximum threshold (twice that when gentle).
    Forced,
    /// The loss model dropped it, after it had used the link.
    Loss,
    /// It left the queue while the link was down.
    Outage,
    /// It arrived damaged, and the receiving host refused it (no link reports this one).
    Corrupt,
    /// CoDel dropped it: the queue's sojourn time was too long.
    Delay,
    /// Given up after the medium's maximum number of attempts (IEEE 802.11's retry limits).
    Retries,
    /// It found a policer's token bucket empty.
    Policed,
}

impl DropReason {
    /// The number of reasons.
    pub const COUNT: usize = 9;
    /// All reasons, in the order of [`DropReason::index`].
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

    /// Its index in [`DropReason::ALL`].
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

/// The number of packets for each [`DropReason`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drops([u64; DropReason::COUNT]);

impl Drops {
    /// The total over all reasons.
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

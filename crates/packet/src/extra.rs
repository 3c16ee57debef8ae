//! Side records of packets: what only some carry (SACK blocks, a lowered window), kept in one arena a run.

/// Segments `start..end` that have arrived out of order (RFC 2018).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// First segment of the block.
    pub start: u32,
    /// One past its last segment.
    pub end: u32,
}

/// The side record of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extra {
    /// SACK blocks, the most recently changed first; empty ones (`start == end`) fill up.
    pub sack: [Block; 3],
    /// The receiver's advertised window in segments, if it is not the flow's standing one.
    pub window: Option<u32>,
}

impl Extra {
    /// No block, no window.
    pub const NONE: Extra = Extra { sack: [Block { start: 0, end: 0 }; 3], window: None };

    /// The blocks in use.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        self.sack.iter().copied().filter(|b| b.start != b.end)
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
    records: Vec<Extra>,
    free: Vec<u32>,
}

impl Extras {
    /// Keeps `extra` until [`Extras::take`].
    pub fn put(&mut self, extra: Extra) -> ExtraId {
        match self.free.pop() {
            Some(i) => {
                self.records[i as usize] = extra;
                ExtraId(i)
            }
            None => {
                self.records.push(extra);
                ExtraId((self.records.len() - 1) as u32)
            }
        }
    }

    /// The record, which is freed; `None` for [`ExtraId::NONE`].
    #[inline]
    pub fn take(&mut self, id: ExtraId) -> Option<Extra> {
        if id == ExtraId::NONE {
            return None;
        }
        self.free.push(id.0);
        Some(self.records[id.0 as usize])
    }

    /// A copy of the record under a name of its own.
    pub fn duplicate(&mut self, id: ExtraId) -> ExtraId {
        if id == ExtraId::NONE { id } else { self.put(self.records[id.0 as usize]) }
    }

    /// How many records are in use: zero when no packet that has one is in flight.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.records.len() - self.free.len()
    }
}

//! Frames that are sent as datagrams (RFC 9221): those that wait, and those of which parts have come.

use paceline_packet::Stamp;
use paceline_units::Time;
use std::collections::BTreeMap;

/// Frames of which parts are remembered.
const KEPT: usize = 256;

/// A frame that waits to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) left: u64,
    pub(super) offset: u32,
    /// Of its frame among the connection's.
    pub(super) number: u32,
    pub(super) track: u8,
    /// Those of a lower one leave first.
    pub(super) rank: u8,
    pub(super) captured: Stamp,
    pub(super) key: bool,
    /// It is given up then.
    pub(super) deadline: Time,
}

/// A part of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) offset: u32,
    pub(super) length: u16,
    pub(super) last: bool,
}

/// What has come of frames that are not whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Assembly {
    /// Bytes that have come of each, and how many there are, once its last part has come.
    frames: BTreeMap<u32, (u64, Option<u64>)>,
}

impl Assembly {
    /// A part has come, for the first time: packets are not taken twice. Gives the size of its frame if that is whole now.
    pub(super) fn part(&mut self, number: u32, part: Part) -> Option<u64> {
        let end = u64::from(part.offset) + u64::from(part.length);
        if part.offset == 0 && part.last {
            return Some(end);
        }
        let (came, size) = self.frames.entry(number).or_default();
        *came += u64::from(part.length);
        if part.last {
            *size = Some(end);
        }
        let whole = size.filter(|size| size == came);
        if whole.is_some() {
            self.frames.remove(&number);
        } else if self.frames.len() > KEPT {
            self.frames.pop_first();
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_whole_with_all_its_parts_in_whatever_order() {
        let mut assembly = Assembly::default();
        let part = |offset, last| Part { offset, length: 100, last };
        assert_eq!(assembly.part(0, part(0, true)), Some(100));
        assert_eq!(assembly.part(1, part(200, true)), None);
        assert_eq!(assembly.part(1, part(0, false)), None);
        assert_eq!(assembly.part(2, part(0, false)), None);
        assert_eq!(assembly.part(1, part(100, false)), Some(300));
        assert_eq!(assembly.part(2, part(200, true)), None, "one is missing");
    }
}

//! The bytes of the frames on a path, in reused buffers, with a limit for their memory.

use paceline_units::Size;

/// Memory per frame beside its buffer, in bytes: its place, its event, its entry in a link's queue.
const OVERHEAD: usize = 160;
/// Buffers of these sizes are kept for reuse; a larger buffer is as large as its frame.
const CLASSES: [usize; 2] = [128, 2048];

#[derive(Debug, Default)]
struct Frame {
    bytes: Vec<u8>,
    entered: u64,
}

/// Frames by place.
#[derive(Debug)]
pub(super) struct Frames {
    places: Vec<Frame>,
    free: Vec<u32>,
    pools: [Vec<Vec<u8>>; 2],
    used: usize,
    limit: usize,
}

impl Frames {
    /// No frames yet; `limit` is the maximum memory.
    pub(super) fn new(limit: Size) -> Frames {
        let limit = usize::try_from(limit.bytes()).unwrap_or(usize::MAX);
        Frames { places: Vec::new(), free: Vec::new(), pools: Default::default(), used: 0, limit }
    }

    /// Stores a frame that entered at `entered`; `None` if there is no memory for it.
    pub(super) fn keep(&mut self, frame: &[u8], entered: u64) -> Option<u32> {
        let class = CLASSES.iter().position(|&size| frame.len() <= size);
        let cost = class.map_or(frame.len(), |class| CLASSES[class]) + OVERHEAD;
        if self.used + cost > self.limit {
            return None;
        }
        self.used += cost;
        let mut bytes = match class {
            Some(class) => self.pools[class].pop().unwrap_or_else(|| Vec::with_capacity(CLASSES[class])),
            None => Vec::with_capacity(frame.len()),
        };
        bytes.extend_from_slice(frame);
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Frame::default());
            (self.places.len() - 1) as u32
        });
        self.places[place as usize] = Frame { bytes, entered };
        Some(place)
    }

    /// Stores a copy of a frame.
    pub(super) fn copy(&mut self, place: u32) -> Option<u32> {
        let Frame { bytes, entered } = core::mem::take(&mut self.places[place as usize]);
        let copy = self.keep(&bytes, entered);
        self.places[place as usize] = Frame { bytes, entered };
        copy
    }

    /// A frame's bytes.
    pub(super) fn bytes(&mut self, place: u32) -> &mut [u8] {
        &mut self.places[place as usize].bytes
    }

    /// When a frame entered.
    pub(super) fn entered(&self, place: u32) -> u64 {
        self.places[place as usize].entered
    }

    /// Discards a frame.
    pub(super) fn release(&mut self, place: u32) {
        let mut bytes = self.hold(place);
        let class = CLASSES.iter().position(|&size| bytes.capacity() <= size);
        self.used -= class.map_or(bytes.len(), |class| CLASSES[class]) + OVERHEAD;
        if let Some(class) = class {
            bytes.clear();
            self.pools[class].push(bytes);
        }
    }

    /// Discards a frame's bytes, but keeps counting them: it stays in a queue forever.
    pub(super) fn hold(&mut self, place: u32) -> Vec<u8> {
        self.free.push(place);
        core::mem::take(&mut self.places[place as usize].bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_used_again() {
        let mut frames = Frames::new(Size::from_bytes(3 * 288));
        let [a, b, c] = [1, 2, 3].map(|i| frames.keep(&[i; 128], u64::from(i)).unwrap());
        assert_eq!(frames.keep(&[], 9), None);
        frames.release(b);
        assert_eq!(
            frames.copy(a).map(|place| (frames.bytes(place).to_vec(), frames.entered(place))),
            Some((vec![1; 128], 1))
        );
        assert_eq!(frames.copy(c), None);
        assert_eq!((frames.bytes(c)[0], frames.entered(c)), (3, 3));
        frames.hold(a);
        assert_eq!(frames.keep(&[], 9), None, "what is held for ever counts");
        frames.release(c);
        assert!(frames.keep(&[1; 128], 9).is_some());
        let mut large = Frames::new(Size::from_bytes(70_000));
        for _ in 0..5 {
            let place = large.keep(&[0; 65_535], 0).unwrap();
            large.release(place);
        }
        assert_eq!(large.used, 0);
    }
}

//! The wake-up time of each element: a dense array, indexed while few elements are due per window.
//!
//! If many elements are due in a window, a scan of the array is the cheapest way to find them. If few are, as with
//! short windows and many elements, the scan would dominate the cost. Then the array is indexed: a [`BitSet`] has the
//! elements due in this window, a [`Calendar`] those due later.

use crate::bit_set::BitSet;
use crate::calendar::Calendar;
use paceline_units::Time;

/// The cost of indexing per due element, in elements scanned.
const SCAN_COST: usize = 32;

/// Below this number of elements a scan is cheaper than the index.
const MIN_INDEXED: usize = 64;

/// Indexing begins after this many sparse windows in a row: starting it costs about as much as that many scans.
const SPARSE: u32 = 8;

/// The next wake-up time of each element.
#[derive(Debug)]
pub(crate) struct WakeQueue {
    /// In nanoseconds, by element.
    times: Vec<u64>,
    /// The end of the current window.
    until: u64,
    /// Whether `due` and `later` are in use: elements due before `until` are in `due`, except the one being visited;
    /// those due later are in the calendar.
    indexed: bool,
    due: BitSet,
    later: Calendar,
    /// The number of sparse windows in a row without the index.
    sparse: u32,
}

impl WakeQueue {
    /// A queue in which no element is due.
    pub(crate) fn new(elements: usize) -> WakeQueue {
        WakeQueue {
            times: vec![Time::NEVER.0; elements],
            until: 0,
            indexed: elements >= MIN_INDEXED,
            due: BitSet::new(elements),
            later: Calendar::new(elements),
            sparse: 0,
        }
    }

    /// Begins a window.
    #[inline(always)]
    pub(crate) fn begin_window(&mut self, from: Time, until: Time) {
        self.until = until.0;
        if self.indexed {
            let due = &mut self.due;
            self.later.take_until(from.0, until.0, &self.times, |element| due.insert(element));
        }
    }

    /// The first element from `from` on that is due in this window. The caller must visit it.
    #[inline(always)]
    pub(crate) fn first_due(&mut self, from: usize) -> Option<usize> {
        if self.indexed {
            return self.due.take_first(from);
        }
        let rest = self.times.get(from..)?;
        rest.iter().position(|&time| time < self.until).map(|ahead| from + ahead)
    }

    /// An arrival at the element is possible from `time` on.
    #[inline(always)]
    pub(crate) fn wake(&mut self, element: usize, time: Time) {
        let next = &mut self.times[element];
        if time.0 < *next {
            if self.indexed {
                return self.bring_forward(element, time.0);
            }
            *next = time.0;
        }
    }

    /// The element is due earlier than before.
    #[inline(never)]
    fn bring_forward(&mut self, element: usize, time: u64) {
        let before = std::mem::replace(&mut self.times[element], time);
        if before < self.until {
            return;
        }
        if before != Time::NEVER.0 {
            self.later.take(element);
        }
        self.enter(element, time);
    }

    /// Indexes an element that is neither in `due` nor in the calendar.
    #[inline(always)]
    fn enter(&mut self, element: usize, time: u64) {
        if time < self.until {
            self.due.insert(element);
        } else if time != Time::NEVER.0 {
            self.later.put(element, time);
        }
    }

    /// The element has been visited, and is next due at `time`.
    #[inline(always)]
    pub(crate) fn set(&mut self, element: usize, time: Time) {
        self.times[element] = time.0;
        if self.indexed {
            self.enter(element, time.0);
        }
    }

    /// Ends a window in which `busy` elements were due. If those were few, the next windows may have none: returns when
    /// the next element is due.
    #[inline]
    pub(crate) fn after_window(&mut self, busy: usize) -> Option<Time> {
        let all = self.times.len();
        if self.indexed {
            // Above the bound at which indexing begins, so that it does not start and stop with every window.
            if busy * SCAN_COST > 2 * all {
                self.end_indexing();
                return None;
            }
            return self.due.is_empty().then(|| Time(self.later.first(&self.times)));
        }
        if all < MIN_INDEXED {
            return (busy * 4 <= all).then(|| self.first());
        }
        self.sparse = if busy * SCAN_COST <= all { self.sparse + 1 } else { 0 };
        if self.sparse >= SPARSE {
            self.begin_indexing();
        }
        (self.sparse > 0).then(|| self.first())
    }

    #[cold]
    fn begin_indexing(&mut self) {
        (self.indexed, self.sparse) = (true, 0);
        self.later.clear(self.until);
        self.due.clear();
        for element in 0..self.times.len() {
            self.enter(element, self.times[element]);
        }
    }

    #[cold]
    fn end_indexing(&mut self) {
        self.indexed = false;
    }

    /// The earliest time, by a scan.
    fn first(&self) -> Time {
        let (mut first, mut rest) = (u64::MAX, &self.times[..]);
        // A scalar loop: vectorized it takes twice as long, since processors lack a vector comparison of such integers.
        while let Some(at) = rest.iter().position(|&time| time < first) {
            first = rest[at];
            rest = &rest[at + 1..];
        }
        Time(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_random::{Sequence, Stream};

    /// For any wake-ups, before and during the visits of a window: the due elements are found in order, each once. The
    /// reported next time is never after the earliest one. This holds with few due elements, with many, and
    /// alternating.
    #[test]
    fn finds_who_is_due() {
        let (mut began, mut ended, mut skipped) = (0, 0, 0);
        for seed in 0..100 {
            let mut draws = Sequence::new(Stream::new(seed, "agenda"));
            let mut below = |n: u64| (draws.unit() * n as f64) as u64;
            let n = [1, 63, 64, 200, 5000][below(5) as usize];
            let window = [1, 10, 1 << 20][below(3) as usize];
            let mut queue = WakeQueue::new(n);
            let mut plain = vec![u64::MAX; n];
            let (mut now, mut many) = (0, 0);
            for round in 0..200 {
                if round % 40 == 0 {
                    many = [1, 3, 1 + n as u64 / 4][below(3) as usize];
                }
                let ahead = |below: &mut dyn FnMut(u64) -> u64| window * [0, 1, 2, 100, 1 << 20][below(5) as usize];
                for _ in 0..below(many) {
                    // A lower bound may lie in the past: then it belongs to this window, or the next.
                    let (element, by) = (below(n as u64) as usize, ahead(&mut below));
                    let time = (now + by + below(window)).saturating_sub(below(2) * window);
                    queue.wake(element, Time(time));
                    plain[element] = plain[element].min(time);
                }
                let (until, was) = (now + window, queue.indexed);
                queue.begin_window(Time(now), Time(until));
                let (mut busy, mut from) = (0, 0);
                loop {
                    let expected = (from..n).find(|&i| plain[i] < until);
                    assert_eq!(queue.first_due(from), expected, "seed {seed}, round {round}");
                    let Some(element) = expected else { break };
                    busy += 1;
                    // It sends to others, also in this window, and has a timer or none.
                    for _ in 0..below(3) {
                        let (other, time) = (below(n as u64) as usize, now + ahead(&mut below) + below(window));
                        if other != element {
                            queue.wake(other, Time(time));
                            plain[other] = plain[other].min(time);
                        }
                    }
                    plain[element] = if below(2) == 0 { u64::MAX } else { until + ahead(&mut below) };
                    queue.set(element, Time(plain[element]));
                    from = element + 1;
                }
                now = until;
                let first = plain.iter().copied().min().unwrap_or(u64::MAX);
                if let Some(next) = queue.after_window(busy) {
                    assert_eq!(next.0, first, "seed {seed}, round {round}");
                    skipped += u64::from(next.0 > now);
                    now = now.max(next.0.min(now + window * 1000));
                }
                began += u64::from(!was && queue.indexed);
                ended += u64::from(was && !queue.indexed);
            }
        }
        assert!(began > 10 && ended > 10 && skipped > 1000, "{began} {ended} {skipped}");
    }
}

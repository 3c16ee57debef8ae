//! When each element next has something to do: a dense array, and over it, while few have, what finds them.
//!
//! Where a window has something for many elements, looking at all of them in turn is the cheapest way to find those; where
//! it has something for few, as with short windows and many elements, that look would be most of the cost. Then the
//! array is tended: it carries the least of every eight entries, of every eight of these, and so on ([`Least`]).

use crate::least::Least;
use paceline_units::Time;

/// Tending costs as much per element that is due as looking at about so many others.
const LOOKS: usize = 32;

/// Fewer elements than this are looked at in less time than it takes to tend them.
const MANY: usize = 64;

/// The next instant of each element.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// In nanoseconds, by element.
    times: Least,
    /// Whether what lies above the array is kept up to date.
    tended: bool,
}

impl Agenda {
    /// Nothing to do for so many elements.
    pub(crate) fn new(elements: usize) -> Agenda {
        Agenda { times: Least::new(vec![Time::NEVER.0; elements]), tended: true }
    }

    /// The first element from `from` on that is due before `until`.
    #[inline(always)]
    pub(crate) fn first_due(&self, from: usize, until: Time) -> Option<usize> {
        if self.tended {
            return self.times.first_below(from, until.0);
        }
        let rest = self.times.keys().get(from..)?;
        rest.iter().position(|&time| time < until.0).map(|ahead| from + ahead)
    }

    /// Something comes to the element at `time`, or later.
    #[inline(always)]
    pub(crate) fn wake(&mut self, element: usize, time: Time) {
        let next = &mut self.times.keys_mut()[element];
        if time.0 < *next {
            *next = time.0;
            if self.tended {
                self.times.note_lower(element, time.0);
            }
        }
    }

    /// The element has been visited, and is next due at `time`.
    #[inline(always)]
    pub(crate) fn set(&mut self, element: usize, time: Time) {
        if self.tended {
            self.times.set(element, time.0);
        } else {
            self.times.keys_mut()[element] = time.0;
        }
    }

    /// A window is over, in which so many were due. When the next one is, if few were: there may then be none in the
    /// next windows.
    #[inline]
    pub(crate) fn after_window(&mut self, busy: usize) -> Option<Time> {
        let all = self.times.len();
        if self.tended {
            // Not at the bound at which tending begins: it should not begin and end with every window.
            self.tended = busy * LOOKS <= 2 * all && all >= MANY;
            return Some(Time(self.times.least()));
        }
        if busy * LOOKS <= all && all >= MANY {
            self.times.tend();
            self.tended = true;
            return Some(Time(self.times.least()));
        }
        (busy * 4 <= all).then(|| Time(self.times.keys().iter().copied().min().unwrap_or(u64::MAX)))
    }
}

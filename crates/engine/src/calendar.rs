//! Elements by due time, for those not due yet: finds the next few among thousands.
//!
//! Times are classified by the first six-bit digit in which they differ from `base`, a lower bound of all times here:
//! the higher the digit, the further ahead. Each digit has a row with a list for each of its 64 values, so the first
//! list of the lowest row has the earliest times. When a list's time comes it is split: an element that is not due yet
//! moves to a lower row, at most once per row.

/// Bits per digit.
const DIGIT: u32 = 6;
const VALUES: usize = 1 << DIGIT;
/// Digits of a time.
const ROWS: usize = u64::BITS.div_ceil(DIGIT) as usize;

/// A node of a circular doubly linked list: an element, or the list's sentinel.
#[derive(Clone, Copy, Debug)]
struct Place {
    next: u32,
    before: u32,
}

/// Elements by due time. The caller stores the times and passes them in again where they are needed.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// The nodes of the elements, then those of the lists.
    places: Vec<Place>,
    elements: usize,
    base: u64,
    /// Which lists of each row hold elements, and which rows have such lists.
    lists: [u64; ROWS],
    rows: u32,
}

impl Calendar {
    /// An empty calendar for this number of elements.
    pub(crate) fn new(elements: usize) -> Calendar {
        let mut places = vec![Place { next: 0, before: 0 }; elements];
        places.extend((elements..elements + ROWS * VALUES).map(|own| Place { next: own as u32, before: own as u32 }));
        Calendar { places, elements, base: 0, lists: [0; ROWS], rows: 0 }
    }

    /// Removes all entries. Later entries must not be before `base`.
    pub(crate) fn clear(&mut self, base: u64) {
        while let Some((row, value)) = self.first_list() {
            self.detach(row, value);
        }
        self.base = base;
    }

    /// Inserts an element that is not here, due at `time`.
    #[inline]
    pub(crate) fn put(&mut self, element: usize, time: u64) {
        debug_assert!(time >= self.base, "an instant that is over");
        // Setting the lowest bit does not change the digit, and ensures that there is a highest bit.
        let row = ((time ^ self.base) | 1).ilog2() / DIGIT;
        let value = (time >> (row * DIGIT)) as usize % VALUES;
        self.lists[row as usize] |= 1 << value;
        self.rows |= 1 << row;
        let list = self.elements + row as usize * VALUES + value;
        let next = std::mem::replace(&mut self.places[list].next, element as u32);
        self.places[next as usize].before = element as u32;
        self.places[element] = Place { next, before: list as u32 };
    }

    /// Removes an element that is here.
    #[inline]
    pub(crate) fn take(&mut self, element: usize) {
        let Place { next, before } = self.places[element];
        self.places[before as usize].next = next;
        self.places[next as usize].before = before;
        if next == before {
            self.emptied(next as usize - self.elements);
        }
    }

    /// Records that this list has become empty.
    #[inline(always)]
    fn emptied(&mut self, list: usize) {
        let (row, value) = (list / VALUES, list % VALUES);
        self.lists[row] &= !(1 << value);
        if self.lists[row] == 0 {
            self.rows &= !(1 << row);
        }
    }

    /// Row and value of the earliest list.
    #[inline(always)]
    fn first_list(&self) -> Option<(usize, usize)> {
        let row = self.rows.trailing_zeros() as usize;
        let &held = self.lists.get(row)?;
        Some((row, held.trailing_zeros() as usize))
    }

    /// Empties a list and returns its first node; the nodes stay linked to each other.
    #[inline(always)]
    fn detach(&mut self, row: usize, value: usize) -> u32 {
        let list = self.elements + row * VALUES + value;
        self.emptied(row * VALUES + value);
        let own = Place { next: list as u32, before: list as u32 };
        std::mem::replace(&mut self.places[list], own).next
    }

    /// Removes everything before `until`. All times here, now and later, are at least `from`.
    #[inline]
    pub(crate) fn take_until(&mut self, from: u64, until: u64, times: &[u64], mut due: impl FnMut(usize)) {
        while let Some((row, value)) = self.first_list() {
            let shift = row as u32 * DIGIT;
            let begins = self.base & (!(VALUES as u64 - 1) << shift) | (value as u64) << shift;
            if begins >= until {
                return;
            }
            let mut place = self.detach(row, value) as usize;
            // Within this list's range: the lower rows are empty, and the digits of the other entries do not change.
            self.base = begins.max(from);
            while place < self.elements {
                let next = self.places[place].next as usize;
                let time = times[place];
                if time < until {
                    due(place)
                } else {
                    self.put(place, time)
                }
                place = next;
            }
        }
    }

    /// The earliest time; `u64::MAX` if there is none.
    #[inline]
    pub(crate) fn first(&self, times: &[u64]) -> u64 {
        let Some((row, value)) = self.first_list() else { return u64::MAX };
        let mut place = self.places[self.elements + row * VALUES + value].next as usize;
        let mut first = u64::MAX;
        while place < self.elements {
            first = first.min(times[place]);
            place = self.places[place].next as usize;
        }
        first
    }
}

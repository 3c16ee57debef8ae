//! Doubly linked lists of queues; each queue is in at most one and can leave it from any position.

/// Queues that have just become active, those served in turn, and empty ones whose drop state decays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    New,
    Old,
    Decaying,
}

/// The predecessor and successor of each queue; the entries after the queues are the lists' sentinels.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    around: Vec<[u16; 2]>,
    queues: u16,
}

impl Lists {
    pub(super) fn new(queues: u16) -> Lists {
        Lists { around: (0..queues + 3).map(|own| [own, own]).collect(), queues }
    }

    fn ends(&self, list: List) -> u16 {
        self.queues + list as u16
    }

    /// The first queue.
    pub(super) fn first(&self, list: List) -> Option<usize> {
        let [_, first] = self.around[usize::from(self.ends(list))];
        (first < self.queues).then_some(usize::from(first))
    }

    /// Removes a queue from its list, if it is in one.
    pub(super) fn remove(&mut self, number: usize) {
        let [before, after] = self.around[number];
        self.around[usize::from(before)][1] = after;
        self.around[usize::from(after)][0] = before;
        self.around[number] = [number as u16; 2];
    }

    /// Moves a queue to the end of `list`, out of its current one.
    pub(super) fn put_last(&mut self, list: List, number: usize) {
        self.remove(number);
        let ends = self.ends(list);
        let [last, _] = self.around[usize::from(ends)];
        self.around[number] = [last, ends];
        self.around[usize::from(last)][1] = number as u16;
        self.around[usize::from(ends)][0] = number as u16;
    }
}

//! Lists of queues, of which each is in one or in none: a queue leaves its list from wherever it stands.

/// Queues that have just become active, those in turn, and empty ones that still remember drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    New,
    Old,
    Decaying,
}

/// For each queue, and behind them for each list's ends, who stands before and who after.
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

    /// Who stands first.
    pub(super) fn first(&self, list: List) -> Option<usize> {
        let [_, first] = self.around[usize::from(self.ends(list))];
        (first < self.queues).then_some(usize::from(first))
    }

    /// Takes a queue out of its list, if it is in one.
    pub(super) fn remove(&mut self, number: usize) {
        let [before, after] = self.around[number];
        self.around[usize::from(before)][1] = after;
        self.around[usize::from(after)][0] = before;
        self.around[number] = [number as u16; 2];
    }

    /// Puts a queue last, out of whichever list it was in.
    pub(super) fn put_last(&mut self, list: List, number: usize) {
        self.remove(number);
        let ends = self.ends(list);
        let [last, _] = self.around[usize::from(ends)];
        self.around[number] = [last, ends];
        self.around[usize::from(last)][1] = number as u16;
        self.around[usize::from(ends)][0] = number as u16;
    }
}

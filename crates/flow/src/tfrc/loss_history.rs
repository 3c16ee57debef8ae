//! The loss event rate from the intervals between loss events (RFC 5348 sections 5.2 to 5.5).

use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// Number of closed intervals that count (n, RFC 5348 section 5.4).
const INTERVALS: usize = 8;

/// Weights of the intervals, the most recent first (RFC 5348 section 5.4).
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Which intervals the mean with the open one includes while fewer than eight have closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fewer {
    /// As many as without it (k, RFC 5348 section 5.4): the open one replaces the oldest, as with eight.
    InForTheOldest,
    /// One more (ns-2): the open one is added to all closed ones.
    BesideAll,
}

/// The weighted mean of RFC 5348 sections 5.4 and 5.5.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IntervalWeights {
    /// The lower bound of the discount (THRESHOLD): 1/4; RFC 3448 had 1/2. 1: no discounting.
    pub threshold: f64,
    /// The rule for fewer than eight closed intervals.
    pub fewer: Fewer,
}

impl IntervalWeights {
    /// DF: the discount factor of the closed intervals if the open one, of `open` packets, is longer than twice their
    /// mean. `closed`: length and previous discount of each closed interval, the most recent first.
    #[must_use]
    pub fn discount(&self, open: f64, closed: &[(f64, f64)]) -> f64 {
        let mean = mean(closed);
        if open > 2.0 * mean { (2.0 * mean / open).max(self.threshold) } else { 1.0 }
    }

    /// p for an open interval of `open` packets and the `closed` ones; 0 without a closed one.
    #[must_use]
    pub fn loss_event_rate(&self, open: f64, closed: &[(f64, f64)]) -> f64 {
        let Some((_, newer)) = closed.split_last() else { return 0.0 };
        let factor = self.discount(open, closed);
        let with_open = {
            // of eight closed intervals, the last has no weight left beside the open one anyway
            let beside = if self.fewer == Fewer::InForTheOldest { newer } else { closed };
            let (sum, weights) = total(1, beside, factor);
            (open * WEIGHTS[0] + sum) / (WEIGHTS[0] + weights)
        };
        // without the open interval, the discount factor cancels
        (1.0 / with_open.max(mean(closed))).min(1.0)
    }
}

/// The weighted sum of the intervals, with weights beginning at `from`, and the sum of the weights.
fn total(from: usize, closed: &[(f64, f64)], factor: f64) -> (f64, f64) {
    closed.iter().zip(&WEIGHTS[from..]).fold((0.0, 0.0), |(sum, weights), (&(length, discount), &weight)| {
        let weight = weight * discount * factor;
        (sum + weight * length, weights + weight)
    })
}

/// The weighted mean of the closed intervals.
fn mean(closed: &[(f64, f64)]) -> f64 {
    let (sum, weights) = total(0, closed, 1.0);
    if weights > 0.0 { sum / weights } else { 0.0 }
}

/// A loss event, and the interval that it ended.
#[derive(Clone, Debug)]
struct Event {
    /// Its first packet, lost or marked.
    first: u32,
    /// When that packet arrived or would have arrived.
    at: Time,
    /// Packets from the previous event to this one; for the first event, computed (RFC 5348 section 6.3.1).
    closed: f64,
    /// It is the first of all loss events.
    initial: bool,
    /// The discount factor of that interval.
    discount: f64,
    /// Its missing packets, as sorted ranges `start..end`.
    missing: Vec<(u32, u32)>,
    /// The event cannot disappear by late arrivals: it includes a mark, or more than `RANGES` ranges.
    lasting: bool,
}

/// Maximum number of ranges of missing packets kept for an event.
const RANGES: usize = 32;

/// A range of lost packets, or a marked packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Indication {
    /// The packets `start..end`.
    pub(super) start: u32,
    pub(super) end: u32,
    /// When the first of them arrived or would have arrived.
    pub(super) at: Time,
    /// The time between two of them, in nanoseconds (RFC 5348 section 5.2).
    pub(super) spacing: f64,
    /// It is a marked packet that arrived.
    pub(super) marked: bool,
}

/// The loss events, most recent first, as far back as they count.
#[derive(Clone, Debug)]
pub struct LossHistory {
    weights: IntervalWeights,
    events: VecDeque<Event>,
    closed: Vec<(f64, f64)>,
}

impl LossHistory {
    /// Creates a history without loss events.
    #[must_use]
    pub fn new(weights: IntervalWeights) -> LossHistory {
        LossHistory { weights, events: VecDeque::new(), closed: Vec::new() }
    }

    /// Whether there is no loss event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The first packet of the last loss event.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        self.events.front().map(|event| event.first)
    }

    /// Packets since the last loss event began (I_0); `next`: one past the highest packet seen.
    fn open(&self, next: u32) -> f64 {
        self.last().map_or(0.0, |first| f64::from(next.saturating_sub(first)))
    }

    /// p; `next`: one past the highest packet seen.
    #[must_use]
    pub fn loss_event_rate(&self, next: u32) -> f64 {
        self.weights.loss_event_rate(self.open(next), &self.closed)
    }

    /// Adds losses or a mark; packets within `rtt` of an event's first one belong to it. `made_up`: the length of the
    /// interval before the first event. Returns whether a new event began.
    pub(super) fn add(&mut self, what: Indication, rtt: Span, made_up: f64) -> bool {
        let mut grew = false;
        let mut seq = what.start;
        while seq < what.end {
            let at = what.at + Span((f64::from(seq - what.start) * what.spacing) as u64);
            if self.events.front().is_none_or(|event| at > event.at + rtt) {
                self.begin(seq, at, made_up);
                grew = true;
            }
            let Some(event) = self.events.front_mut() else { break };
            // up to the first packet more than a round-trip time after the start of the event
            let left = (event.at + rtt).since(what.at).0 as f64;
            let beyond = if what.spacing > 0.0 { (left / what.spacing) as u32 } else { u32::MAX };
            let mut end = what.start.saturating_add(beyond).saturating_add(1).clamp(seq + 1, what.end);
            // in a gap of many round-trip times, only the last intervals count
            let rest = what.end - end;
            if rest / (end - seq) > 2 * INTERVALS as u32 {
                end = what.end - (end - seq) * 2 * INTERVALS as u32;
            }
            event.add(seq, end, what.marked);
            seq = end;
        }
        grew
    }

    fn begin(&mut self, first: u32, at: Time, made_up: f64) {
        let open = self.open(first);
        let factor = self.weights.discount(open, &self.closed);
        let initial = self.events.is_empty();
        for event in &mut self.events {
            event.discount *= factor;
        }
        let closed = if initial { made_up } else { open }.max(1.0);
        let missing = Vec::new();
        self.events.push_front(Event { first, at, closed, initial, discount: 1.0, missing, lasting: false });
        self.events.truncate(INTERVALS);
        self.renew();
    }

    /// Processes the late arrival of a packet that counted as lost (RFC 5348 section 5.1). Returns whether it was
    /// missing.
    pub(super) fn fill(&mut self, seq: u32) -> bool {
        let Some(i) = self.events.iter().position(|event| event.first <= seq) else { return false };
        let event = &mut self.events[i];
        if !event.remove(seq) {
            return false;
        }
        let moved = match event.missing.first() {
            _ if event.lasting => None,
            Some(&(first, _)) if first > event.first => Some(first),
            Some(_) => None,
            None => {
                self.forget(i);
                return true;
            }
        };
        if let Some(first) = moved {
            let by = f64::from(first - event.first);
            event.first = first;
            if !event.initial {
                event.closed += by;
            }
            if i > 0 {
                let next = &mut self.events[i - 1];
                next.closed = (next.closed - by).max(1.0);
            }
            self.renew();
        }
        true
    }

    /// Removes event `i`, which has no loss left, and merges the intervals before and after it.
    fn forget(&mut self, i: usize) {
        let Some(gone) = self.events.remove(i) else { return };
        if i > 0 {
            let next = &mut self.events[i - 1];
            if gone.initial {
                (next.closed, next.initial) = (gone.closed, true);
            } else {
                next.closed += gone.closed;
            }
        }
        self.renew();
    }

    fn renew(&mut self) {
        self.closed.clear();
        self.closed.extend(self.events.iter().map(|event| (event.closed, event.discount)));
    }
}

impl Event {
    fn add(&mut self, start: u32, end: u32, marked: bool) {
        if marked || self.missing.len() == RANGES {
            self.lasting = true;
        } else {
            self.missing.push((start, end));
        }
    }

    fn remove(&mut self, seq: u32) -> bool {
        let Some(i) = self.missing.iter().position(|&(start, end)| (start..end).contains(&seq)) else {
            return false;
        };
        let (start, end) = self.missing[i];
        match (start == seq, seq + 1 == end) {
            (true, true) => {
                self.missing.remove(i);
            }
            (true, false) => self.missing[i].0 = seq + 1,
            (false, true) => self.missing[i].1 = seq,
            (false, false) => {
                self.missing[i].1 = seq;
                self.missing.insert(i + 1, (seq + 1, end));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;

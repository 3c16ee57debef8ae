//! How long a flow's hosts delay its packets.

use paceline_units::{Span, Time};
use std::sync::Arc;

/// The upper bound of a flow's random delay at one of its hosts: a time that changes with the rates on the flow's path.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// Steps, the first at time zero; shared among flows and ends with the same path. Empty means no delay.
    steps: Arc<[(Time, Span)]>,
    /// Upper bound of every step.
    max_delay: Span,
}

impl Delays {
    /// These steps, in order of time and from zero on, each limited to `max_delay`.
    #[must_use]
    pub fn new(steps: Arc<[(Time, Span)]>, max_delay: Span) -> Delays {
        Delays { steps, max_delay }
    }

    /// The initial delay.
    #[must_use]
    pub fn first(&self) -> Span {
        if self.steps.is_empty() { Span::ZERO } else { self.at(0) }
    }

    /// Whether any step delays packets.
    #[must_use]
    pub fn any(&self) -> bool {
        self.max_delay > Span::ZERO && self.steps.iter().any(|step| step.1 > Span::ZERO)
    }

    /// The first step at or after `place` whose delay differs from `now`.
    #[inline]
    #[must_use]
    pub fn change(&self, place: usize, now: Span) -> Option<usize> {
        (place..self.steps.len()).find(|&next| self.at(next) != now)
    }

    /// The delay in the step at `place`.
    #[inline]
    #[must_use]
    pub fn at(&self, place: usize) -> Span {
        self.steps[place].1.min(self.max_delay)
    }

    /// When the step at `place` begins.
    #[inline]
    #[must_use]
    pub fn begins(&self, place: usize) -> Time {
        self.steps[place].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_hides_changes() {
        let steps = [(0, 300), (10, 200), (20, 50), (30, 40), (40, 500)].map(|(at, span)| (Time(at), Span(span)));
        let delays = Delays::new(steps.into(), Span(100));
        assert_eq!(delays.first(), Span(100));
        let changes: Vec<usize> =
            std::iter::successors(delays.change(1, Span(100)), |&at| delays.change(at + 1, delays.at(at))).collect();
        assert_eq!(changes, [2, 3, 4]);
        assert!(delays.any() && !Delays::default().any() && !Delays::new(steps.into(), Span::ZERO).any());
    }
}

//! The least and the greatest round trip of a time that goes along.

use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// What came within this part of the window after a sample that is kept may be left out: then the window is longer by as much for
/// the kept one. So few are kept that a window of many thousand samples costs no more than one of some.
const FINENESS: u64 = 64;

/// Samples of which each is further out than all that came after it.
#[derive(Clone, Debug, Default)]
struct Kept(VecDeque<(Time, Span)>);

impl Kept {
    /// `beats(a, b)`: b is not needed any more when a comes after it.
    fn push(&mut self, now: Time, value: Span, window: Span, beats: impl Fn(Span, Span) -> bool) {
        while self.0.back().is_some_and(|&(_, old)| beats(value, old)) {
            self.0.pop_back();
        }
        let close = Span(window.0 / FINENESS);
        if self.0.len() < 2 || self.0.back().is_some_and(|&(at, _)| now.since(at) > close) {
            self.0.push_back((now, value));
        }
        // the last sample stays, however old it is
        while self.0.len() > 1 && self.0.front().is_some_and(|&(at, _)| now.since(at) > window) {
            self.0.pop_front();
        }
    }

    fn get(&self) -> Option<Span> {
        self.0.front().map(|&(_, value)| value)
    }
}

/// The least.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMin(Kept);

impl WindowedMin {
    pub(super) fn push(&mut self, now: Time, value: Span, window: Span) {
        self.0.push(now, value, window, |new, old| new <= old);
    }
    pub(super) fn get(&self) -> Option<Span> {
        self.0.get()
    }
}

/// The greatest.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMax(Kept);

impl WindowedMax {
    pub(super) fn push(&mut self, now: Time, value: Span, window: Span) {
        self.0.push(now, value, window, |new, old| new >= old);
    }
    pub(super) fn get(&self) -> Option<Span> {
        self.0.get()
    }
}

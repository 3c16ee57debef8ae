//! Minimum and maximum round trip over a sliding window.

use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// A sample within this fraction of the window after a kept sample may be left out, which makes the window inexact by
/// as much. This limits the samples kept, however many the window covers.
const FINENESS: u64 = 64;

/// Samples, each more extreme than all later ones.
#[derive(Clone, Debug, Default)]
struct Kept(VecDeque<(Time, Span)>);

impl Kept {
    /// `beats(a, b)`: sample b is not needed once a later sample is a.
    fn push(&mut self, now: Time, value: Span, window: Span, beats: impl Fn(Span, Span) -> bool) {
        while self.0.back().is_some_and(|&(_, old)| beats(value, old)) {
            self.0.pop_back();
        }
        let close = Span(window.0 / FINENESS);
        if self.0.len() < 2 || self.0.back().is_some_and(|&(at, _)| now.since(at) > close) {
            self.0.push_back((now, value));
        }
        // the last sample is kept, however old it is
        while self.0.len() > 1 && self.0.front().is_some_and(|&(at, _)| now.since(at) > window) {
            self.0.pop_front();
        }
    }

    fn get(&self) -> Option<Span> {
        self.0.front().map(|&(_, value)| value)
    }
}

/// The minimum.
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

/// The maximum.
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

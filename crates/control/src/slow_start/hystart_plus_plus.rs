//! HyStart++: slow start slows down when a round's delay grows, and ends unless the growth was jitter.
//!
//! Source: RFC 9406, section 4. It applies to the first slow start only (section 4.3); later ones have a threshold.

use crate::PathView;
use paceline_units::Span;

/// Section 4.3: `MIN_RTT_THRESH`, `MAX_RTT_THRESH`, `MIN_RTT_DIVISOR`, `N_RTT_SAMPLE`, `CSS_GROWTH_DIVISOR`,
/// `CSS_ROUNDS`.
const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
const DIVISOR: u64 = 8;
const SAMPLES: u32 = 8;
const GROWTH_DIVISOR: f64 = 4.0;
const ROUNDS: u32 = 5;
/// Section 4.3: L for a sender without pacing.
pub(super) const LIMIT: u32 = 8;

/// Conservative slow start: the round's minimum delay when it began, and the rounds since; the first is a partial
/// round.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Css {
    baseline: Span,
    rounds: u32,
}

/// Section 4.2's variables.
#[derive(Clone, Debug)]
pub(crate) struct HystartPlusPlus {
    /// L: an acknowledgement counts for at most this many segments.
    limit: u32,
    /// The round ends when everything below this is acknowledged (`windowEnd`).
    end: Option<u32>,
    last: Option<Span>,
    current: Option<Span>,
    samples: u32,
    css: Option<Css>,
    /// Growth that is not yet a whole segment.
    credit: f64,
}

impl HystartPlusPlus {
    pub(super) fn new(limit: u32) -> HystartPlusPlus {
        HystartPlusPlus { limit, end: None, last: None, current: None, samples: 0, css: None, credit: 0.0 }
    }

    pub(super) fn begin(&mut self) {
        *self = HystartPlusPlus::new(self.limit);
    }

    pub(super) fn growth(&self, segments: u32) -> f64 {
        let standard = f64::from(segments.min(self.limit));
        if self.css.is_some() { standard / GROWTH_DIVISOR } else { standard }
    }

    pub(super) fn whole_growth(&mut self, segments: u32) -> u32 {
        let grown = self.credit + self.growth(segments);
        self.credit = grown.fract();
        grown as u32
    }

    /// Returns whether slow start is over: conservative slow start has completed its rounds.
    pub(super) fn on_ack(&mut self, rtt: Span, path: &PathView) -> bool {
        let end = *self.end.get_or_insert(path.next);
        self.current = Some(self.current.map_or(rtt, |min| min.min(rtt)));
        self.samples += 1;
        if self.samples >= SAMPLES {
            self.compare();
        }
        path.acked >= end && self.end_round(path)
    }

    /// Enters conservative slow start if the delay has grown, or leaves it if the growth was spurious.
    fn compare(&mut self) {
        match (self.css, self.last, self.current) {
            (Some(css), _, Some(current)) if current < css.baseline => self.css = None,
            (None, Some(last), Some(current)) => {
                let threshold = Span(last.0 / DIVISOR).min(MAX_RTT_THRESH).max(MIN_RTT_THRESH);
                if current >= last + threshold {
                    self.css = Some(Css { baseline: current, rounds: 0 });
                }
            }
            _ => {}
        }
    }

    fn end_round(&mut self, path: &PathView) -> bool {
        self.end = Some(path.next);
        self.last = self.current.take();
        self.samples = 0;
        let Some(css) = &mut self.css else { return false };
        css.rounds += 1; // the partial round in which it began counts (section 4.2)
        css.rounds >= ROUNDS
    }
}

#[cfg(test)]
mod tests;

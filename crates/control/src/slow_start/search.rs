//! SEARCH: slow start ends when less is delivered than was sent one round trip earlier.
//!
//! Source: draft-chung-ccwg-search-09 (J. Chung, M. Kachooei, F. Li, M. Claypool). Time is divided into bins; each
//! records the segments sent and acknowledged up to its end. After each bin, the segments acknowledged in the last
//! [`WINDOW`] bins are compared with those sent in the [`WINDOW`] bins that ended a round trip earlier. The queue that
//! slow start has built then drains as in the authors' kernel module (`tcp_cubic_search4.0.c`): the window follows what
//! is in flight, with one segment sent per three acknowledged, down to what an unloaded round trip delivers.
//!
//! If a round trip is not a whole number of bins, the window of sent segments lies between two bins. The draft's text
//! takes the later one, which is less than a round trip ago; its authors' module and mozilla/neqo take the earlier one,
//! as here. Bins count segments in full width: the draft's scaling is for kernels with little memory.

use super::Verdict;
use crate::PathView;
use paceline_units::{Span, Time};

/// The window's length in initial round trips (7/2), and its number of bins (section 3.1).
const FACTOR: (u64, u64) = (7, 2);
const WINDOW: usize = 10;
/// Additional bins, to look back by a round trip that has grown.
const EXTRA: usize = 15;
/// The maximum share of sent segments that may be undelivered.
const THRESHOLD: f64 = 0.26;
/// While draining, one segment is sent per this many acknowledged; the window stays at least an initial one (RFC 6928).
const DRAIN: u32 = 3;
const MIN_DRAIN: u32 = 10;

const ACKED: usize = WINDOW + 1;
const SENT: usize = ACKED + EXTRA;

/// The bins, once the first round trip is known.
#[derive(Clone, Debug)]
struct Bins {
    /// A bin's duration, and the end of the current one.
    duration: Span,
    end: Time,
    /// Index of the current bin; bin `i` lies at `i` modulo the array's length.
    index: usize,
    acked: [u32; ACKED],
    sent: [u32; SENT],
    /// The first round trip.
    initial: Span,
}

/// The window to drain to, the acknowledged segments so far, and those not yet used to send one.
#[derive(Clone, Copy, Debug)]
struct Drain {
    target: u32,
    acked: u32,
    credit: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    bins: Option<Bins>,
    drain: Option<Drain>,
}

impl Search {
    pub(super) fn is_draining(&self) -> bool {
        self.drain.is_some()
    }

    pub(super) fn on_ack(&mut self, rtt: Span, window: f64, path: &PathView) -> Verdict {
        if let Some(drain) = &mut self.drain {
            return drain.on_ack(path);
        }
        let Some(bins) = &mut self.bins else {
            self.bins = Bins::new(rtt, path);
            return Verdict::Continue;
        };
        if path.now < bins.end {
            return Verdict::Continue;
        }
        let passed = (path.now.since(bins.end).0 / bins.duration.0).saturating_add(1);
        if passed > WINDOW as u64 {
            self.bins = None; // a window without acknowledgements: start again (the draft's option for missed bins)
            return Verdict::Continue;
        }
        bins.advance(passed as usize, path);
        if !bins.shortfall(rtt).is_some_and(|share| share >= THRESHOLD) {
            return Verdict::Continue;
        }
        // delivery in an unloaded round trip
        let back = bins.initial.0.div_ceil(bins.duration.0) as usize;
        let target = bins.delivered(back.min(WINDOW)).max(MIN_DRAIN);
        if f64::from(target) >= window {
            return Verdict::Leave;
        }
        self.drain = Some(Drain { target, acked: path.acked, credit: 0 });
        Verdict::Continue
    }
}

impl Drain {
    fn on_ack(&mut self, path: &PathView) -> Verdict {
        self.credit += path.acked.saturating_sub(self.acked);
        self.acked = self.acked.max(path.acked);
        let send = self.credit / DRAIN;
        self.credit %= DRAIN;
        let window = path.next.saturating_sub(path.acked).saturating_add(send);
        if window > self.target { Verdict::Drain(f64::from(window)) } else { Verdict::LeaveAt(f64::from(self.target)) }
    }
}

impl Bins {
    fn new(rtt: Span, path: &PathView) -> Option<Bins> {
        let duration = rtt * FACTOR.0 / (FACTOR.1 * WINDOW as u64);
        if duration == Span::ZERO {
            return None;
        }
        let mut bins =
            Bins { duration, end: path.now + duration, index: 0, acked: [0; ACKED], sent: [0; SENT], initial: rtt };
        bins.acked[0] = path.acked;
        bins.sent[0] = path.next;
        Some(bins)
    }

    /// `passed` bins have ended; those without an acknowledgement repeat the values of the bin before.
    fn advance(&mut self, passed: usize, path: &PathView) {
        let (acked, sent) = (self.acked[self.index % ACKED], self.sent[self.index % SENT]);
        for skipped in self.index + 1..self.index + passed {
            self.acked[skipped % ACKED] = acked;
            self.sent[skipped % SENT] = sent;
        }
        self.index += passed;
        self.end += self.duration * passed as u64;
        self.acked[self.index % ACKED] = path.acked;
        self.sent[self.index % SENT] = path.next;
    }

    /// Segments delivered in the last `bins` bins.
    fn delivered(&self, bins: usize) -> u32 {
        let before = self.index.saturating_sub(bins);
        self.acked[self.index % ACKED].saturating_sub(self.acked[before % ACKED])
    }

    /// Segments sent in the window that ended with bin `last`.
    fn sent(&self, last: usize) -> f64 {
        f64::from(self.sent[last % SENT].saturating_sub(self.sent[(last - WINDOW) % SENT]))
    }

    /// The undelivered share of what was sent a round trip ago; `None` if the bins do not reach back far enough.
    fn shortfall(&self, rtt: Span) -> Option<f64> {
        let back = usize::try_from(rtt.0 / self.duration.0).ok()?;
        let part = (rtt.0 % self.duration.0) as f64 / self.duration.0 as f64;
        let last = self.index.checked_sub(back)?;
        if last <= WINDOW || back >= EXTRA {
            return None;
        }
        let sent = self.sent(last) * (1.0 - part) + self.sent(last - 1) * part;
        let delivered = f64::from(self.delivered(WINDOW));
        (sent > 0.0).then(|| (sent - delivered) / sent)
    }
}

#[cfg(test)]
mod tests;

//! What the machine tells a controller that models its path: how fast the path delivers, and what was in flight when.
//!
//! Source: draft-ietf-ccwg-bbr (August 2026), "Delivery Rate Samples"; Linux has the same in `net/ipv4/tcp_rate.c`. TCP's
//! machine counts segments, each as a full one, as Linux does; volumes here are bytes of them.

use paceline_units::{Span, Time};

/// What an acknowledgement that delivers something tells (the draft's RS and some of its C). P is the newest of the segments
/// that it delivers.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RateSample {
    /// Delivered so far in bytes, this acknowledgement's included (C.delivered).
    pub total: u64,
    /// What this acknowledgement delivers (RS.newly_acked).
    pub newly_acked: u64,
    /// What was found lost since the sample before.
    pub newly_lost: u64,
    /// Segments that were marked, of those that the receiver has told of since the sample before.
    pub newly_marked: u32,
    /// C.delivered when P left (RS.prior_delivered).
    pub prior_delivered: u64,
    /// What was delivered since P left (RS.delivered).
    pub delivered: u64,
    /// In that time; zero where it is too short to trust, shorter than the least round-trip time ever (RS.interval).
    pub interval: Span,
    /// P's round-trip time, unless P was sent twice (RS.rtt).
    pub rtt: Option<Span>,
    /// In flight once P had left, P included (RS.tx_in_flight).
    pub tx_in_flight: u64,
    /// What was found lost since P left (RS.lost).
    pub lost: u64,
    /// The application, not the controller, limited what was sent before P (RS.is_app_limited).
    pub app_limited: bool,
    /// In flight before this acknowledgement, and now (C.inflight).
    pub prior_in_flight: u64,
    /// In flight now.
    pub in_flight: u64,
    /// The window is what limited sending lately (C.is_cwnd_limited).
    pub window_limited: bool,
}

impl RateSample {
    /// Bytes a second; zero without a sample that can be trusted (RS.delivery_rate).
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.interval == Span::ZERO { 0.0 } else { float(self.delivered) / seconds(self.interval) }
    }
}

/// The greater of two numbers, neither of which is a NaN: `f64::max` looks for one, which takes six instructions more.
#[inline(always)]
pub(crate) fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The lesser of two numbers, neither of which is a NaN.
#[inline(always)]
pub(crate) fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// A count that fits into 63 bits, as all do: by way of i64, which is one instruction.
#[inline(always)]
pub(crate) fn float(n: u64) -> f64 {
    n as i64 as f64
}

/// A span of less than 292 years in seconds, likewise.
#[inline(always)]
pub(crate) fn seconds(span: Span) -> f64 {
    span.0 as i64 as f64 / 1e9
}

/// A segment that was found lost, and what was known when it left (the draft's P).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LostSegment {
    /// Its number: neighbours of one loss follow each other.
    pub seq: u32,
    /// Its size in bytes.
    pub size: u64,
    /// C.delivered now.
    pub total: u64,
    /// In flight once it had left, itself included (P.tx_in_flight).
    pub tx_in_flight: u64,
    /// What was found lost since it left, itself included (C.lost - P.lost).
    pub lost: u64,
    /// The application limited what was sent before it (P.is_app_limited).
    pub app_limited: bool,
}

/// Explicit congestion notification, and how a receiver tells of marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ecn {
    /// Not there.
    Off,
    /// The echo is on from a mark until the sender answers it (RFC 3168): once a window of data.
    Classic,
    /// The echo says of each segment whether it was marked (RFC 8257 section 3.2).
    Dctcp,
    /// A count of the marked segments, in three bits (RFC 9768).
    Accurate,
}

impl Ecn {
    /// Whether segments are ECN-capable.
    #[must_use]
    pub const fn is_on(self) -> bool {
        !matches!(self, Ecn::Off)
    }

    /// Whether the receiver tells how many segments were marked.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Ecn::Dctcp | Ecn::Accurate)
    }
}

/// What a scheme needs of its machine beyond acknowledgements; the machine keeps nothing that nobody needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Rate samples and losses one by one; the window is its own in recoveries too.
    pub deliveries: bool,
    /// Segments leave at its rate.
    pub pacing: bool,
    /// That rate, not acknowledgements, says when they leave: the window bounds what is in flight, well above what the path holds.
    pub rate_leads: bool,
    /// Marks, and how they are told; `Off`: as the flow has it.
    pub ecn: Ecn,
    /// Segments are ECT(1), for a queue that keeps such apart (RFC 9331).
    pub l4s: bool,
}

impl Needs {
    /// Nothing.
    pub const NONE: Needs = Needs { deliveries: false, pacing: false, rate_leads: false, ecn: Ecn::Off, l4s: false };
    /// Both: a model of the path, by which the window is set.
    pub const MODEL: Needs = Needs { deliveries: true, pacing: true, ..Needs::NONE };
    /// A model of the path, by which the rate is set.
    pub const RATE_MODEL: Needs = Needs { rate_leads: true, ..Needs::MODEL };
}

/// The greatest of a series over a window, kept as three samples (K. Nichols' filter, as Linux has it in `lib/minmax.c`). Once the
/// greatest has left, one that came after it may be missed: what it gives is the greatest of a fifth of the window at least.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMax {
    best: [(u64, f64); 3],
}

impl WindowedMax {
    /// `value` at `at` of whatever clock `window` counts; gives the greatest.
    pub fn update(&mut self, at: u64, value: f64, window: u64) -> f64 {
        let new = (at, value);
        let best = &mut self.best;
        if value >= best[0].1 || at.wrapping_sub(best[2].0) > window {
            *best = [new; 3];
            return value;
        }
        if value >= best[1].1 {
            (best[1], best[2]) = (new, new);
        } else if value >= best[2].1 {
            best[2] = new;
        }
        let age = at.wrapping_sub(best[0].0);
        if age > window {
            *best = [best[1], best[2], new];
            if at.wrapping_sub(best[0].0) > window {
                *best = [best[1], best[2], new];
            }
        } else if best[1].0 == best[0].0 && age > window / 4 {
            (best[1], best[2]) = (new, new);
        } else if best[2].0 == best[1].0 && age > window / 2 {
            best[2] = new;
        }
        best[0].1
    }

    /// What is less than this changes nothing at `at`.
    pub(crate) fn ignored_below(&self, at: u64, window: u64) -> f64 {
        let [best, second, third] = self.best;
        let age = at.wrapping_sub(best.0);
        let ages = age > window || at.wrapping_sub(third.0) > window;
        let splits = (second.0 == best.0 && age > window / 4) || (third.0 == second.0 && age > window / 2);
        if ages || splits { f64::NEG_INFINITY } else { lesser(lesser(best.1, second.1), third.1) }
    }

    /// The greatest.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.best[0].1
    }

    /// Forgets all but `value`.
    pub fn reset(&mut self, at: u64, value: f64) {
        self.best = [(at, value); 3];
    }
}

/// Counts packet-timed round trips: one begins when something leaves and ends when something that left after it is
/// delivered (draft-ietf-ccwg-bbr, "Tracking Packet-Timed Round Trips").
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    end: u64,
    /// So many have ended.
    pub count: u64,
    /// This acknowledgement ended one.
    pub start: bool,
}

impl Rounds {
    /// An acknowledgement (UpdateRound).
    pub fn update(&mut self, sample: &RateSample) {
        self.start = self.ends_with(sample);
        if self.start {
            self.end = sample.total;
            self.count += 1;
        }
    }

    /// Whether this acknowledgement would end a round.
    #[inline(always)]
    pub(crate) fn ends_with(&self, sample: &RateSample) -> bool {
        sample.prior_delivered >= self.end
    }

    /// A round begins now, of which `total` is the C.delivered (StartRound).
    pub fn begin(&mut self, total: u64) {
        self.end = total;
    }
}

/// A time that has not come: the draft's stamp of 0.
pub(crate) const UNSET: Time = Time::NEVER;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Between the greatest of the newest fifth of the window and that of all of it.
        #[test]
        fn the_greatest_of_the_window(values in proptest::collection::vec(0.0_f64..1e9, 1..300)) {
            let mut filter = WindowedMax::default();
            for (at, &value) in values.iter().enumerate() {
                let got = filter.update(at as u64, value, 10);
                let of = |window: usize| values[at.saturating_sub(window)..=at].iter().copied().fold(0.0, f64::max);
                prop_assert!(got <= of(10) && got >= of(2), "{got} at {at}: {} {}", of(2), of(10));
            }
        }
    }

    #[test]
    fn a_round_ends_with_what_left_after_its_begin() {
        let mut rounds = Rounds::default();
        let ack = |prior_delivered, total| RateSample { prior_delivered, total, ..RateSample::default() };
        rounds.update(&ack(0, 1000));
        assert!(rounds.start);
        rounds.update(&ack(0, 2000));
        assert!(!rounds.start, "it had left before the first acknowledgement");
        rounds.update(&ack(1000, 3000));
        assert!(rounds.start && rounds.count == 2);
    }
}

//! Delivery rate samples, for controllers that model their path: how fast it delivers, and what was in flight.
//!
//! Source: draft-ietf-ccwg-bbr (August 2026), "Delivery Rate Samples"; Linux has the same in `net/ipv4/tcp_rate.c`.
//! TCP's machine counts each segment as a full one, as Linux does; volumes here are the bytes of full segments.

use paceline_units::{Span, Time};

/// The sample of an acknowledgement that delivers data (the draft's RS and some of its C). P is the newest segment that
/// it delivers.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RateSample {
    /// Bytes delivered so far, including by this acknowledgement (C.delivered).
    pub total: u64,
    /// Bytes delivered by this acknowledgement (RS.newly_acked).
    pub newly_acked: u64,
    /// Bytes detected as lost since the previous sample.
    pub newly_lost: u64,
    /// CE-marked segments that the receiver has reported since the previous sample.
    pub newly_marked: u32,
    /// C.delivered when P was sent (RS.prior_delivered).
    pub prior_delivered: u64,
    /// Bytes delivered since P was sent (RS.delivered).
    pub delivered: u64,
    /// The time that this took; zero if shorter than the minimum round-trip time, and so unreliable (RS.interval).
    pub interval: Span,
    /// P's round-trip time, unless P was retransmitted (RS.rtt).
    pub rtt: Option<Span>,
    /// Bytes in flight just after P was sent, P included (RS.tx_in_flight).
    pub tx_in_flight: u64,
    /// Bytes detected as lost since P was sent (RS.lost).
    pub lost: u64,
    /// Whether the application, not the controller, limited sending before P (RS.is_app_limited).
    pub app_limited: bool,
    /// Bytes in flight before this acknowledgement.
    pub prior_in_flight: u64,
    /// Bytes in flight after it (C.inflight).
    pub in_flight: u64,
    /// Whether the window has limited sending lately (C.is_cwnd_limited).
    pub window_limited: bool,
}

impl RateSample {
    /// Bytes per second; zero without a reliable sample (RS.delivery_rate).
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.interval == Span::ZERO { 0.0 } else { float(self.delivered) / seconds(self.interval) }
    }
}

/// The greater of two numbers, neither of which is NaN: `f64::max` checks for NaN, which takes six more instructions.
#[inline(always)]
pub(crate) fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The lesser of two numbers, neither of which is NaN.
#[inline(always)]
pub(crate) fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// A count below 2^63 as a float: from i64 the conversion is one instruction.
#[inline(always)]
pub(crate) fn float(n: u64) -> f64 {
    n as i64 as f64
}

/// A span of less than 292 years in seconds, also converted from i64.
#[inline(always)]
pub(crate) fn seconds(span: Span) -> f64 {
    span.0 as i64 as f64 / 1e9
}

/// A segment detected as lost, with the state when it was sent (the draft's P).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LostSegment {
    /// Its sequence number: segments of one loss have consecutive numbers.
    pub seq: u32,
    /// Its size in bytes.
    pub size: u64,
    /// C.delivered now.
    pub total: u64,
    /// Bytes in flight just after it was sent, itself included (P.tx_in_flight).
    pub tx_in_flight: u64,
    /// Bytes detected as lost since it was sent, itself included (C.lost - P.lost).
    pub lost: u64,
    /// Whether the application limited sending before it (P.is_app_limited).
    pub app_limited: bool,
}

/// Explicit Congestion Notification, and how the receiver reports marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ecn {
    /// No ECN.
    Off,
    /// ECE is set from a mark until the sender responds (RFC 3168): one signal per window of data.
    Classic,
    /// ECE says for each segment whether it was marked (RFC 8257 section 3.2).
    Dctcp,
    /// A three-bit counter of marked segments (RFC 9768).
    Accurate,
}

impl Ecn {
    /// Whether segments are ECN-capable.
    #[must_use]
    pub const fn is_on(self) -> bool {
        !matches!(self, Ecn::Off)
    }

    /// Whether the receiver reports how many segments were marked.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Ecn::Dctcp | Ecn::Accurate)
    }
}

/// What a scheme needs from its machine besides acknowledgements; the machine keeps only the state that is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Rate samples and each loss; the controller also sets the window during recovery.
    pub deliveries: bool,
    /// Segments are paced at the controller's rate.
    pub pacing: bool,
    /// That rate, not acknowledgements, clocks sending: the window only bounds what is in flight, well above the path's
    /// capacity.
    pub rate_clocked: bool,
    /// The form of ECN feedback; `Off`: the flow decides.
    pub ecn: Ecn,
    /// Segments are sent as ECT(1), for queues that separate L4S traffic (RFC 9331).
    pub l4s: bool,
}

impl Needs {
    /// No needs.
    pub const NONE: Needs = Needs { deliveries: false, pacing: false, rate_clocked: false, ecn: Ecn::Off, l4s: false };
    /// Deliveries and pacing: for a path model that sets the window.
    pub const MODEL: Needs = Needs { deliveries: true, pacing: true, ..Needs::NONE };
    /// For a path model that sets the rate.
    pub const RATE_MODEL: Needs = Needs { rate_clocked: true, ..Needs::MODEL };
}

/// The maximum of a series over a window, kept as three samples (K. Nichols' filter, Linux's `lib/minmax.c`). When the
/// maximum expires, a later sample may have been missed: the result is at least the maximum of the newest fifth of the
/// window.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMax {
    best: [(u64, f64); 3],
}

impl WindowedMax {
    /// Adds `value` at time `at`, in the unit of `window`; returns the maximum.
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

    /// A smaller value than this changes nothing at `at`.
    pub(crate) fn ignored_below(&self, at: u64, window: u64) -> f64 {
        let [best, second, third] = self.best;
        let age = at.wrapping_sub(best.0);
        let ages = age > window || at.wrapping_sub(third.0) > window;
        let splits = (second.0 == best.0 && age > window / 4) || (third.0 == second.0 && age > window / 2);
        if ages || splits { f64::NEG_INFINITY } else { lesser(lesser(best.1, second.1), third.1) }
    }

    /// The maximum.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.best[0].1
    }

    /// Forgets all samples and keeps `value`.
    pub fn reset(&mut self, at: u64, value: f64) {
        self.best = [(at, value); 3];
    }
}

/// Counts packet-timed round trips: a round ends when a packet is delivered that was sent after the round began
/// (draft-ietf-ccwg-bbr, "Tracking Packet-Timed Round Trips").
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    end: u64,
    /// Rounds ended.
    pub count: u64,
    /// Whether this acknowledgement ended a round.
    pub start: bool,
}

impl Rounds {
    /// Handles an acknowledgement (UpdateRound).
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

    /// Begins a round at `total`, which is C.delivered (StartRound).
    pub fn begin(&mut self, total: u64) {
        self.end = total;
    }
}

/// A time that is unset: the draft's stamp of 0.
pub(crate) const UNSET: Time = Time::NEVER;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The result lies between the maximum of the newest fifth of the window and that of the whole window.
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

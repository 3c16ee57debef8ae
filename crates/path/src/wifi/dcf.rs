//! Rules of access, backoff and retries.
//!
//! IEEE Std 802.11-2016, clause 10.3 (DCF): 10.3.2.3 (interframe spaces), 10.3.3 (random backoff time), 10.3.4.2 (basic
//! access), 10.3.4.3 (backoff procedure), 10.3.4.4 (recovery and retransmit limits). Two other sets of rules let you
//! compare the cell with published results: ns-2.35's (mac/mac-802_11.cc, behaviour only), and those of Bianchi,
//! "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", IEEE JSAC 18(3), 2000.

use super::timing::{ACK, Phy};
use paceline_units::{Rate, Span, Time};

/// The set of rules that stations follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// The standard's. A frame that finds the medium idle is sent at the next slot boundary, without a backoff; two
    /// such frames in one slot collide (a slot is the time it takes to detect another transmission).
    Ieee,
    /// ns-2.35's: a backoff before every frame, drawn from [0, CW - 1]; other transmissions are detected at once; after
    /// an undecodable frame EIFS and DIFS pass; a missing ACK is detected after its full duration.
    Ns2,
    /// Bianchi's: the countdown also takes one step per busy period; DIFS after every frame, including collisions; no
    /// wait for a missing ACK. The model has unlimited retries: [`Limits::NONE`].
    Bianchi,
}

/// The maximum number of attempts for a frame (clause 10.3.4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// dot11ShortRetryLimit: attempts for RTS frames, and for frames sent without RTS. `None`: no limit.
    pub short: Option<u32>,
    /// dot11LongRetryLimit: attempts for frames after RTS and CTS.
    pub long: Option<u32>,
}

impl Limits {
    /// The standard's defaults (dot11ShortRetryLimit and dot11LongRetryLimit in its MIB, Annex C): 7 and 4.
    pub const STANDARD: Limits = Limits { short: Some(7), long: Some(4) };
    /// Retries until it succeeds.
    pub const NONE: Limits = Limits { short: None, long: None };
}

impl Rules {
    /// A backoff in slots for a window, from a draw in [0, 1).
    pub(super) fn backoff(self, window: u32, draw: f64) -> u32 {
        let values = match self {
            // Random() x aSlotTime, Random() from [0, CW] (clause 10.3.3)
            Rules::Ieee | Rules::Bianchi => u64::from(window) + 1,
            // Random::random() % cw
            Rules::Ns2 => u64::from(window.max(1)),
        };
        (draw * values as f64) as u32
    }

    /// The window after a failure: doubled, up to the maximum.
    pub(super) fn wider(window: u32, cw_max: u32) -> u32 {
        (2 * window + 1).min(cw_max)
    }

    /// How much earlier than its own start another transmission must have begun for a station to detect it.
    pub(super) fn notice(self, phy: &Phy) -> Span {
        match self {
            // aSlotTime = aCCATime + aRxTxTurnaroundTime + aAirPropagationTime + aMACProcessingDelay (clause 10.3.7)
            Rules::Ieee => phy.slot,
            Rules::Ns2 | Rules::Bianchi => Span(1),
        }
    }

    /// From the end of frames that nobody could decode until the others count slots again.
    pub(super) fn after_collision(self, phy: &Phy, lowest: Rate) -> Span {
        match self {
            // EIFS = aSIFSTime + AckTxTime + DIFS (clause 10.3.7)
            Rules::Ieee => phy.sifs + phy.airtime(lowest, ACK) + phy.difs(),
            // it sets its NAV to EIFS, and DIFS follows
            Rules::Ns2 => phy.sifs + phy.airtime(lowest, ACK) + phy.difs() * 2,
            Rules::Bianchi => phy.difs(),
        }
    }

    /// From the end of a frame until its sender knows that no ACK, or CTS, has come.
    pub(super) fn timeout(self, phy: &Phy, response: Rate) -> Span {
        match self {
            // aSIFSTime + aSlotTime + aRxPHYStartDelay (clauses 10.3.2.7 and 10.3.2.9)
            Rules::Ieee => phy.sifs + phy.slot + phy.start_delay(response),
            // two propagation delays of DSSS_MaxPropagation, 2 us each, and the whole ACK
            Rules::Ns2 => phy.sifs + phy.airtime(response, ACK) + Span::from_micros(4),
            Rules::Bianchi => Span::ZERO,
        }
    }

    /// A frame's announced duration, as other stations apply it.
    pub(super) fn announced(self, duration: Span) -> Span {
        match self {
            // the standard's durations are already whole microseconds
            Rules::Ieee | Rules::Bianchi => duration,
            // Rounded to whole microseconds. Bystanders thus lag the two ends of an exchange by a fraction of a
            // microsecond: they detect what those send in the same slot, and do not count that slot.
            Rules::Ns2 => Span((duration.0 + 500) / 1000 * 1000),
        }
    }

    /// From when a sender whose frame failed counts slots again: the medium fell idle at `end`, and at `known` it knew
    /// that there is no response.
    pub(super) fn own_space(self, phy: &Phy, end: Time, known: Time) -> Time {
        match self {
            Rules::Ieee | Rules::Bianchi => known.max(end + phy.difs()),
            // by its source's own comment, it wastes the timeout interval: DIFS begins after it
            Rules::Ns2 => known.max(end) + phy.difs(),
        }
    }

    /// The same after a collision with a frame that lasted as long as its own, or longer.
    pub(super) fn outlasted_space(self, phy: &Phy, lowest: Rate, end: Time, known: Time) -> Time {
        match self {
            // It heard no preamble, so there was no frame to fail decoding: no EIFS (clause 10.3.2.3.7).
            Rules::Ieee | Rules::Bianchi => self.own_space(phy, end, known),
            // It has received the rest of the frame as one with errors.
            Rules::Ns2 => known.max(end + self.after_collision(phy, lowest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::timing::{Preamble, Slot};
    use super::*;

    #[test]
    fn windows_and_spaces() {
        let g = Phy::g(Slot::Short, Preamble::Long);
        let b = Phy::b(Preamble::Long);
        let windows: Vec<u32> =
            std::iter::successors(Some(g.cw_min), |&cw| Some(Rules::wider(cw, g.cw_max))).take(8).collect();
        assert_eq!(windows, [15, 31, 63, 127, 255, 511, 1023, 1023]);
        assert_eq!((Rules::Ieee.backoff(15, 0.9999), Rules::Ns2.backoff(15, 0.9999)), (15, 14));
        assert_eq!((Rules::Ieee.backoff(15, 0.0), Rules::Ns2.backoff(0, 0.5)), (0, 0));
        // EIFS of 802.11b: 10 + 304 + 50 us; of 802.11g at 6 Mbit/s: 10 + 50 + 28 us
        assert_eq!(Rules::Ieee.after_collision(&b, Rate::from_mbps(1.0)), Span::from_micros(364));
        assert_eq!(Rules::Ieee.after_collision(&g, Rate::from_mbps(6.0)), Span::from_micros(88));
        assert_eq!(Rules::Ieee.timeout(&g, Rate::from_mbps(24.0)), Span::from_micros(39));
        assert_eq!(Rules::Bianchi.after_collision(&b, Rate::from_mbps(1.0)), b.difs());
    }
}

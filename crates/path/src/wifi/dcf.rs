//! Rules of access, backoff and retries.
//!
//! IEEE Std 802.11-2016, clause 10.3 (DCF): 10.3.2.3 (interframe spaces), 10.3.3 (random backoff time), 10.3.4.2 (basic
//! access), 10.3.4.3 (backoff procedure), 10.3.4.4 (recovery and retransmit limits). Two other sets of rules are there to
//! hold the cell against their results: ns-2.35's (mac/mac-802_11.cc, behaviour only), and those of Bianchi,
//! "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", IEEE JSAC 18(3), 2000.

use super::timing::{ACK, Phy};
use paceline_units::{Rate, Span, Time};

/// Whose rules stations follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// The standard's. A frame that finds the medium idle is sent at the next slot border, without a backoff; two that
    /// come up in one slot collide (a slot is what it takes to notice another's transmission).
    Ieee,
    /// ns-2.35's: a backoff before every frame, drawn from [0, CW - 1]; another's transmission is noticed at once; after
    /// a frame that could not be understood EIFS and DIFS pass; a missing ACK is noticed after its full duration.
    Ns2,
    /// Bianchi's: a countdown also takes one step for each busy period; DIFS after every frame, collided ones too; no
    /// wait for a missing ACK. The model has unlimited retries: [`Limits::NONE`].
    Bianchi,
}

/// How often a frame is sent (clause 10.3.4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// dot11ShortRetryLimit: attempts for RTS frames, and for frames that go without RTS. `None`: no limit.
    pub short: Option<u32>,
    /// dot11LongRetryLimit: attempts for frames after RTS and CTS.
    pub long: Option<u32>,
}

impl Limits {
    /// The standard's defaults (dot11ShortRetryLimit and dot11LongRetryLimit in its MIB, Annex C): 7 and 4.
    pub const STANDARD: Limits = Limits { short: Some(7), long: Some(4) };
    /// Until it gets across.
    pub const NONE: Limits = Limits { short: None, long: None };
}

impl Rules {
    /// A backoff in slots for a window, by a draw from [0, 1).
    pub(super) fn backoff(self, window: u32, draw: f64) -> u32 {
        let values = match self {
            // Random() x aSlotTime, Random() from [0, CW] (clause 10.3.3)
            Rules::Ieee | Rules::Bianchi => u64::from(window) + 1,
            // Random::random() % cw
            Rules::Ns2 => u64::from(window.max(1)),
        };
        (draw * values as f64) as u32
    }

    /// The window after a failure: twice as many values, up to the most.
    pub(super) fn wider(window: u32, cw_max: u32) -> u32 {
        (2 * window + 1).min(cw_max)
    }

    /// How much earlier than its own transmission another's must have begun for a station to notice it.
    pub(super) fn notice(self, phy: &Phy) -> Span {
        match self {
            // aSlotTime = aCCATime + aRxTxTurnaroundTime + aAirPropagationTime + aMACProcessingDelay (clause 10.3.7)
            Rules::Ieee => phy.slot,
            Rules::Ns2 | Rules::Bianchi => Span(1),
        }
    }

    /// From the end of frames that nobody understood to where the others count slots again.
    pub(super) fn after_collision(self, phy: &Phy, lowest: Rate) -> Span {
        match self {
            // EIFS = aSIFSTime + AckTxTime + DIFS (clause 10.3.7)
            Rules::Ieee => phy.sifs + phy.airtime(lowest, ACK) + phy.difs(),
            // its NAV is set to EIFS, and DIFS follows
            Rules::Ns2 => phy.sifs + phy.airtime(lowest, ACK) + phy.difs() * 2,
            Rules::Bianchi => phy.difs(),
        }
    }

    /// From the end of a frame to where its sender knows that no ACK, or CTS, of this rate has come.
    pub(super) fn timeout(self, phy: &Phy, response: Rate) -> Span {
        match self {
            // aSIFSTime + aSlotTime + aRxPHYStartDelay (clauses 10.3.2.7 and 10.3.2.9)
            Rules::Ieee => phy.sifs + phy.slot + phy.start_delay(response),
            // two propagation delays of DSSS_MaxPropagation, 2 us, and the whole of it
            Rules::Ns2 => phy.sifs + phy.airtime(response, ACK) + Span::from_micros(4),
            Rules::Bianchi => Span::ZERO,
        }
    }

    /// What others make of a duration that a frame announces.
    pub(super) fn announced(self, duration: Span) -> Span {
        match self {
            // the standard's durations are whole microseconds as they are
            Rules::Ieee | Rules::Bianchi => duration,
            // To whole microseconds. So bystanders are a fraction of a microsecond behind the two ends of an exchange:
            // they notice what those send in the same slot, and the slot does not count for them.
            Rules::Ns2 => Span((duration.0 + 500) / 1000 * 1000),
        }
    }

    /// From when a sender whose frame failed counts slots again: the medium fell idle at `end`, and at `known` it knew that
    /// no answer comes.
    pub(super) fn own_space(self, phy: &Phy, end: Time, known: Time) -> Time {
        match self {
            Rules::Ieee | Rules::Bianchi => known.max(end + phy.difs()),
            // as the source itself says, it loses the interval of the timeout: DIFS begins after it
            Rules::Ns2 => known.max(end) + phy.difs(),
        }
    }

    /// The same after a collision with a frame that lasted as long as its own, or longer.
    pub(super) fn outlasted_space(self, phy: &Phy, lowest: Rate, end: Time, known: Time) -> Time {
        match self {
            // It heard no preamble, so there is no frame that it could not understand: no EIFS (clause 10.3.2.3.7).
            Rules::Ieee | Rules::Bianchi => self.own_space(phy, end, known),
            // It has received the rest as a frame with errors.
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

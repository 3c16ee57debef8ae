//! Feedback on arrivals by transport-wide numbers (draft-holmer-rmcat-transport-wide-cc-extensions-01), as plain values.

use crate::rtp::Ssrc;
use paceline_units::{Span, Time};

/// When single packets arrived, by the numbers that their header extensions have (section 3.1 of the draft). It says nothing
/// of ECN marks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportFeedback {
    /// The source of the packets, or of one of them: the numbers run on over all that go the same way.
    pub ssrc: Ssrc,
    /// The number of the first packet reported on.
    pub base: u16,
    /// What the first delta is added to.
    pub reference: ReferenceTime,
    /// One more with each such feedback sent, modulo 2^8: gaps tell of lost feedback.
    pub count: u8,
    /// That packet and those after it: when each arrived, counted from the arrival before; `None` of one that has not. Of
    /// all feedback of a compound packet there are at most [`TransportFeedback::MAX`], of each at least one.
    pub packets: Vec<Option<ArrivalDelta>>,
}

impl TransportFeedback {
    /// How many packets a feedback may cover: what its count of 16 bits holds. A compound packet may not cover more in all
    /// its feedback, since two bytes can stand for 8191 packets.
    pub const MAX: usize = 65_535;
}

/// The receiver's clock, from any zero: 24 bits, units of 64 ms, which wrap after 12.4 days.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct ReferenceTime(u32);

impl ReferenceTime {
    /// Its unit.
    pub const TICK: Span = Span::from_millis(64);
    const BITS: u32 = 24;

    /// The field's 24 bits; higher ones are left out.
    #[must_use]
    pub const fn from_bits(bits: u32) -> ReferenceTime {
        ReferenceTime(bits & ((1 << ReferenceTime::BITS) - 1))
    }

    /// The field.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The last one up to `now`, and the instant that it stands for.
    #[must_use]
    pub const fn before(now: Time) -> (ReferenceTime, Time) {
        let ticks = now.0 / ReferenceTime::TICK.0;
        (ReferenceTime::from_bits(ticks as u32), Time(ticks * ReferenceTime::TICK.0))
    }

    /// Ticks from `earlier` to this: of those that the wrapping leaves open, the nearest to zero.
    #[must_use]
    pub const fn since(self, earlier: ReferenceTime) -> i32 {
        let spare = 32 - ReferenceTime::BITS;
        (self.0.wrapping_sub(earlier.0) << spare) as i32 >> spare
    }
}

/// The time from one arrival to that of the next packet that has come, in the order of their numbers: units of 250 us, below
/// zero where they came in another order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct ArrivalDelta(pub i16);

impl ArrivalDelta {
    /// Its unit.
    pub const TICK: Span = Span::from_micros(250);

    /// The nearest to the time from `earlier` to `later`, which may lie before it; `None` if 16 bits do not hold it (8.19 s).
    #[must_use]
    pub fn nearest(earlier: Time, later: Time) -> Option<ArrivalDelta> {
        let ticks = |span: Span| (span.0 + ArrivalDelta::TICK.0 / 2) / ArrivalDelta::TICK.0;
        let signed = if later >= earlier {
            i64::try_from(ticks(later.since(earlier))).ok()?
        } else {
            -i64::try_from(ticks(earlier.since(later))).ok()?
        };
        i16::try_from(signed).ok().map(ArrivalDelta)
    }

    /// The instant so long after `earlier`; not before the clock's zero.
    #[must_use]
    pub const fn after(self, earlier: Time) -> Time {
        Time(earlier.0.saturating_add_signed(self.0 as i64 * ArrivalDelta::TICK.0 as i64))
    }

    /// Whether one byte holds it.
    #[must_use]
    pub const fn is_small(self) -> bool {
        self.0 >= 0 && self.0 <= 255
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_time_wraps() {
        let (reference, at) = ReferenceTime::before(Time(64_000_000 * 5 + 63_999_999));
        assert_eq!((reference.bits(), at), (5, Time(320_000_000)));
        let period = 64_000_000 * (1 << 24);
        assert_eq!(ReferenceTime::before(Time(period + 1)), (ReferenceTime::from_bits(0), Time(period)));
        let of = ReferenceTime::from_bits;
        assert_eq!((of(3).since(of(0xff_ffff)), of(0xff_ffff).since(of(3))), (4, -4));
        assert_eq!(of(0x7f_ffff).since(of(0)), 0x7f_ffff);
        assert_eq!(of(0x80_0000).since(of(0)), -0x80_0000);
        assert_eq!(of(0x0300_0001), of(1), "24 bits");
    }

    #[test]
    fn deltas_are_rounded_to_the_nearest_quarter_of_a_millisecond() {
        let at = |us: u64| Time(us * 1000);
        let delta = |earlier: u64, later: u64| ArrivalDelta::nearest(at(earlier), at(later)).map(|delta| delta.0);
        assert_eq!((delta(0, 124), delta(0, 125), delta(0, 374)), (Some(0), Some(1), Some(1)));
        assert_eq!((delta(124, 0), delta(125, 0)), (Some(0), Some(-1)), "away from zero either way");
        assert_eq!((delta(0, 8_191_750), delta(0, 8_191_875)), (Some(i16::MAX), None));
        assert_eq!((delta(8_192_000, 0), delta(8_192_125, 0)), (Some(i16::MIN), None));
        assert_eq!(ArrivalDelta::nearest(Time::ZERO, Time(u64::MAX / 2)), None);
        assert_eq!(ArrivalDelta(-3).after(at(1000)), at(250));
        assert_eq!(ArrivalDelta(-5).after(at(1000)), Time::ZERO);
        assert!(ArrivalDelta(255).is_small() && !ArrivalDelta(256).is_small() && !ArrivalDelta(-1).is_small());
    }
}

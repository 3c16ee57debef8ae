//! Feedback on arrivals by transport-wide sequence numbers (draft-holmer-rmcat-transport-wide-cc-extensions-01), as
//! plain values.

use crate::rtp::Ssrc;
use paceline_units::{Span, Time};

/// Arrival times of individual packets, by the sequence numbers in their header extensions (section 3.1 of the draft).
/// It has no ECN information.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransportFeedback {
    /// The source of the packets, or of one of them: all packets sent over the transport share the numbers.
    pub ssrc: Ssrc,
    /// The number of the first packet reported on.
    pub base: u16,
    /// The time that the first delta is relative to.
    pub reference: ReferenceTime,
    /// Incremented with each such feedback sent, modulo 2^8: gaps reveal lost feedback.
    pub count: u8,
    /// That packet and those after it: the arrival time relative to the previous arrival, or `None` if it has not
    /// arrived. Each feedback has at least one packet; all feedback of a compound packet together has at most
    /// [`TransportFeedback::MAX`].
    pub packets: Vec<Option<ArrivalDelta>>,
}

impl TransportFeedback {
    /// The maximum number of packets in a feedback, given by its 16-bit count. It also limits all feedback of a
    /// compound packet together, since two bytes can stand for 8191 packets.
    pub const MAX: usize = 65_535;
}

/// The receiver's clock, with any origin: 24 bits, units of 64 ms; it wraps after 12.4 days.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct ReferenceTime(u32);

impl ReferenceTime {
    /// The unit.
    pub const TICK: Span = Span::from_millis(64);
    const BITS: u32 = 24;

    /// A time from the field's 24 bits; higher bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u32) -> ReferenceTime {
        ReferenceTime(bits & ((1 << ReferenceTime::BITS) - 1))
    }

    /// The field.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The last tick at or before `now`, and its time.
    #[must_use]
    pub const fn before(now: Time) -> (ReferenceTime, Time) {
        let ticks = now.0 / ReferenceTime::TICK.0;
        (ReferenceTime::from_bits(ticks as u32), Time(ticks * ReferenceTime::TICK.0))
    }

    /// Ticks from `earlier` to this, modulo the wrap-around: the result nearest to zero.
    #[must_use]
    pub const fn since(self, earlier: ReferenceTime) -> i32 {
        let spare = 32 - ReferenceTime::BITS;
        (self.0.wrapping_sub(earlier.0) << spare) as i32 >> spare
    }
}

/// The time between the arrivals of two received packets that are adjacent by sequence number: units of 250 us,
/// negative if they arrived in reverse order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(transparent)]
pub struct ArrivalDelta(pub i16);

impl ArrivalDelta {
    /// The unit.
    pub const TICK: Span = Span::from_micros(250);

    /// The delta nearest to the time from `earlier` to `later`, which may be before it; `None` if it does not fit into
    /// 16 bits (8.19 s).
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

    /// The time this long after `earlier`; not below zero.
    #[must_use]
    pub const fn after(self, earlier: Time) -> Time {
        Time(earlier.0.saturating_add_signed(self.0 as i64 * ArrivalDelta::TICK.0 as i64))
    }

    /// Whether it fits into one byte.
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

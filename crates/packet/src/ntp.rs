//! RTCP's clocks: NTP timestamps and their middle 32 bits (RFC 3550 section 4).

use paceline_units::{Span, Time};

/// An NTP timestamp (RFC 3550 section 4): seconds since 1 January 1900 in the upper 32 bits, and the fraction in units
/// of 2^-32 s in the lower 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct Ntp(pub u64);

impl Ntp {
    /// The time at the start of a run's clock: the beginning of 1970, which agrees with the timestamps of a capture.
    /// Zero is not possible: an LSR of zero means that no sender report has arrived (RFC 3550 section 6.4.1).
    pub const START: Ntp = Ntp(2_208_988_800 << 32);

    /// The time `now` of a clock that shows [`Ntp::START`] at [`Time::ZERO`], rounded down to 2^-32 s.
    #[must_use]
    pub const fn at(now: Time) -> Ntp {
        let (seconds, nanos) = (now.0 / NANOS, now.0 % NANOS);
        Ntp(Ntp::START.0.wrapping_add((seconds << 32) + (nanos << 32) / NANOS))
    }

    /// The time on a run's clock, to the nearest nanosecond: the inverse of [`Ntp::at`]. Timestamps before the clock's
    /// start count as in the next NTP era.
    #[must_use]
    pub const fn time(self) -> Time {
        let since = self.0.wrapping_sub(Ntp::START.0);
        Time((since >> 32) * NANOS + (((since & 0xffff_ffff) * NANOS + (1 << 31)) >> 32))
    }

    /// Its middle 32 bits, as LSR and RFC 8888 carry them.
    #[must_use]
    pub const fn middle(self) -> NtpMiddle {
        NtpMiddle((self.0 >> 16) as u32)
    }
}

const NANOS: u64 = 1_000_000_000;

/// The middle 32 bits of an [`Ntp`] timestamp: units of 2^-16 s (15.3 us), modulo 2^32 (18.2 hours).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(transparent)]
pub struct NtpMiddle(pub u32);

impl NtpMiddle {
    /// As LSR: no sender report has arrived (RFC 3550 section 6.4.1).
    pub const NONE: NtpMiddle = NtpMiddle(0);

    /// The time `now` on a run's clock.
    #[must_use]
    pub const fn at(now: Time) -> NtpMiddle {
        Ntp::at(now).middle()
    }

    /// The time from `earlier` to this, if they are less than 9.1 hours apart; zero if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: NtpMiddle) -> NtpSpan {
        let ticks = self.0.wrapping_sub(earlier.0);
        NtpSpan(if (ticks as i32) < 0 { 0 } else { ticks })
    }
}

/// A duration in units of 2^-16 s, as in DLSR; at most 18.2 hours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct NtpSpan(pub u32);

impl NtpSpan {
    /// The nearest number of units; a duration beyond the field's range becomes its maximum.
    #[must_use]
    pub const fn nearest(span: Span) -> NtpSpan {
        let units = (((span.0 as u128) << 16) + NANOS as u128 / 2) / NANOS as u128;
        NtpSpan(if units > u32::MAX as u128 { u32::MAX } else { units as u32 })
    }

    /// The duration, to the nearest nanosecond.
    #[must_use]
    pub const fn span(self) -> Span {
        Span((self.0 as u64 * NANOS + (1 << 15)) >> 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_1970_and_its_middle_is_not_zero() {
        assert_eq!(Ntp::at(Time::ZERO), Ntp(0x83aa_7e80_0000_0000));
        assert_eq!(NtpMiddle::at(Time::ZERO), NtpMiddle(0x7e80_0000));
        assert_eq!(Ntp::at(Time::from_secs_f64(1.5)), Ntp(0x83aa_7e81_8000_0000));
    }

    #[test]
    fn a_nanosecond_survives() {
        for nanos in [0, 1, 2, 3, 232, 233, 999_999_999, 1_000_000_000, 12_345_678_901_234, 4_000_000_000_000_000_000] {
            assert_eq!(Ntp::at(Time(nanos)).time(), Time(nanos));
        }
    }

    #[test]
    fn spans_are_rounded_to_the_nearest_and_stop_at_the_longest() {
        assert_eq!(NtpSpan::nearest(Span::from_secs(1)), NtpSpan(65_536));
        assert_eq!(NtpSpan::nearest(Span(7_629)), NtpSpan(0));
        assert_eq!(NtpSpan::nearest(Span(7_630)), NtpSpan(1));
        assert_eq!(NtpSpan::nearest(Span::MAX), NtpSpan(u32::MAX));
        // the example of RFC 3550's Fig. 2: a delay of 5.25 s
        assert_eq!(NtpSpan(0x0005_4000).span(), Span::from_millis(5_250));
    }

    #[test]
    fn differences_are_modulo_2_to_the_32() {
        assert_eq!(NtpMiddle(3).since(NtpMiddle(u32::MAX)), NtpSpan(4));
        assert_eq!(NtpMiddle(3).since(NtpMiddle(4)), NtpSpan(0));
    }
}

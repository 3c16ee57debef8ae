//! Arithmetic between quantities, where it is meaningful.

use crate::{Offset, Rate, Size, Span, Time};
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

#[cold]
const fn never() -> Time {
    Time::NEVER
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        // a branch that is never taken is cheaper than a conditional move
        match self.0.checked_add(span.0) {
            Some(sum) => Time(sum),
            None => never(),
        }
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    /// Saturates at the start of the clock.
    #[inline]
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    /// Saturates at zero.
    #[inline]
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Span) {
        *self = *self - other;
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }
}

impl Div<u64> for Span {
    type Output = Span;
    #[inline]
    fn div(self, n: u64) -> Span {
        Span(self.0 / n)
    }
}

impl Add<Span> for Offset {
    type Output = Offset;
    #[inline]
    fn add(self, span: Span) -> Offset {
        Offset(self.0.saturating_add_unsigned(span.0))
    }
}

impl Add for Offset {
    type Output = Offset;
    #[inline]
    fn add(self, other: Offset) -> Offset {
        Offset(self.0.saturating_add(other.0))
    }
}

impl Sub for Offset {
    type Output = Offset;
    #[inline]
    fn sub(self, other: Offset) -> Offset {
        Offset(self.0.saturating_sub(other.0))
    }
}

impl Add for Size {
    type Output = Size;
    #[inline]
    fn add(self, other: Size) -> Size {
        Size(self.0 + other.0)
    }
}

impl Mul<Span> for Rate {
    type Output = Size;
    /// The bytes sent at this rate in that time, rounded down.
    fn mul(self, span: Span) -> Size {
        Size((u128::from(self.0) * u128::from(span.0) / 8_000_000_000) as u64)
    }
}

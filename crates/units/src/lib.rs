//! Quantities with their units: [`Time`], [`Span`], [`Offset`], [`Rate`], [`Size`], [`Ratio`]; and distributions of
//! times, [`Histogram`].
//!
//! No bare number crosses a public boundary of this project. This crate has the newtypes, their arithmetic, and how
//! they are written and read (`"10 Mbit/s"`, `"50 ms"`, `"50 kB"`, `"1 %"`). Uses no other crate of Paceline. Start
//! with [`parse`] for the accepted spellings.

mod histogram;
mod ops;
mod parse;
mod schema;

pub use histogram::Histogram;
pub use parse::ParseError;

/// An instant on the clock of a simulation or of a host: nanoseconds since its start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Time(pub u64);

/// A duration, never negative: nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Span(pub u64);

/// An instant or duration that may be negative, by unrelated clocks or before a clock's start: nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Offset(pub i64);

/// A data rate: bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Rate(pub u64);

/// An amount of data: bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Size(pub u64);

/// A share of a whole, from 0 to 1: a loss rate, a probability.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
#[repr(transparent)]
pub struct Ratio(pub f64);

impl Time {
    /// The start of the clock.
    pub const ZERO: Time = Time(0);
    /// Later than every instant: means "never".
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `seconds` after the start (rounded to the nanosecond; negative and NaN give zero).
    #[must_use]
    pub fn from_secs_f64(seconds: f64) -> Time {
        Time(Span::from_secs_f64(seconds).0)
    }

    /// Seconds since the start.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to this instant; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero.
    pub const ZERO: Span = Span(0);
    /// The longest representable span.
    pub const MAX: Span = Span(u64::MAX);

    /// `n` microseconds.
    #[must_use]
    pub const fn from_micros(n: u64) -> Span {
        Span(n * 1_000)
    }

    /// `n` milliseconds.
    #[must_use]
    pub const fn from_millis(n: u64) -> Span {
        Span(n * 1_000_000)
    }

    /// `n` seconds.
    #[must_use]
    pub const fn from_secs(n: u64) -> Span {
        Span(n * 1_000_000_000)
    }

    /// `seconds`, rounded to the nanosecond; negative and NaN give zero, too large values the maximum.
    #[must_use]
    pub fn from_secs_f64(seconds: f64) -> Span {
        Span((seconds * 1e9 + 0.5) as u64)
    }

    /// In seconds.
    #[inline]
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This span times `factor` (rounded to the nanosecond).
    #[inline]
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Span {
        Span((self.0 as f64 * factor + 0.5) as u64)
    }
}

impl Offset {
    /// The start of the clock, or a zero duration.
    pub const ZERO: Offset = Offset(0);

    /// From the start of the clock to this instant.
    #[inline]
    #[must_use]
    pub const fn at(time: Time) -> Offset {
        Offset(if time.0 > i64::MAX as u64 { i64::MAX } else { time.0 as i64 })
    }

    /// The instant at this offset from the start of the clock; the start if the offset is negative.
    #[inline]
    #[must_use]
    pub const fn time(self) -> Time {
        Time(if self.0 < 0 { 0 } else { self.0 as u64 })
    }

    /// In seconds.
    #[inline]
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Rate {
    /// `n` bits per second.
    #[must_use]
    pub const fn from_bps(n: u64) -> Rate {
        Rate(n)
    }

    /// `n` million bits per second.
    #[must_use]
    pub fn from_mbps(n: f64) -> Rate {
        Rate((n * 1e6 + 0.5) as u64)
    }

    /// Bits per second.
    #[must_use]
    pub const fn bps(self) -> f64 {
        self.0 as f64
    }

    /// How long it takes to send `size` at this rate, rounded down to the nanosecond.
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    #[must_use]
    pub fn time_for(self, size: Size) -> Span {
        Span((u128::from(size.0) * 8_000_000_000 / u128::from(self.0)) as u64)
    }
}

impl Size {
    /// Zero bytes.
    pub const ZERO: Size = Size(0);

    /// `n` bytes.
    #[must_use]
    pub const fn from_bytes(n: u64) -> Size {
        Size(n)
    }

    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// In bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Ratio {
    /// Zero.
    pub const ZERO: Ratio = Ratio(0.0);
    /// One: all of it.
    pub const ONE: Ratio = Ratio(1.0);
}

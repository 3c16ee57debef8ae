//! Arguments and results of the models. Each is checked when it is created, so a formula never sees a value outside its
//! domain. Domains end beyond any real path but well within the range of floating point, so that no formula overflows.

use core::fmt;
use paceline_units::Span;

/// An argument outside a model's domain.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DomainError {
    /// Which argument.
    pub argument: &'static str,
    /// The value given.
    pub value: f64,
    /// The allowed values, in words or as an interval.
    pub allowed: Allowed,
}

/// The allowed values of an argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Allowed {
    /// In words, or an interval such as `(0, 1]`.
    Fixed(&'static str),
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

/// A number formatted without long runs of zeros.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = self.0 == 0.0 || !self.0.is_finite() || (1e-6..1e15).contains(&self.0.abs());
        if plain { write!(f, "{}", self.0) } else { write!(f, "{:e}", self.0) }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::Fixed(text) => f.write_str(text),
            Allowed::AtLeast(min) => write!(f, "at least {}", Short(*min)),
            Allowed::AtMost(max) => write!(f, "at most {}", Short(*max)),
        }
    }
}

impl fmt::Display for DomainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: it must be {}", self.argument, Short(self.value), self.allowed)
    }
}

impl core::error::Error for DomainError {}

impl DomainError {
    /// The same error, with the caller's name of the argument.
    #[must_use]
    pub fn of(self, argument: &'static str) -> DomainError {
        DomainError { argument, ..self }
    }
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $argument:literal, $allowed:literal, |$value:ident| $holds:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
        pub struct $name(f64);

        impl $name {
            /// Checks the value.
            ///
            /// # Errors
            /// It is outside the domain, or NaN.
            pub const fn new($value: f64) -> Result<$name, DomainError> {
                if $holds {
                    Ok($name($value))
                } else {
                    Err(DomainError { argument: $argument, value: $value, allowed: Allowed::Fixed($allowed) })
                }
            }

            /// The number, in the unit that the type's description gives.
            #[inline]
            #[must_use]
            pub const fn get(self) -> f64 {
                self.0
            }
        }
    };
}

/// p: a loss rate or loss event rate, above 0 and at most 1; the minimum is 1e-100.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct LossRate(f64);

impl LossRate {
    const MIN: f64 = 1e-100;

    /// Checks the value.
    ///
    /// # Errors
    /// It is outside the domain, or NaN.
    pub const fn new(p: f64) -> Result<LossRate, DomainError> {
        if p >= LossRate::MIN && p <= 1.0 {
            return Ok(LossRate(p));
        }
        let tiny = p > 0.0 && p < 1.0;
        let allowed = if tiny { Allowed::AtLeast(LossRate::MIN) } else { Allowed::Fixed("in (0, 1]") };
        Err(DomainError { argument: "p", value: p, allowed })
    }

    /// From a model's result, clamped to the domain.
    #[must_use]
    pub(super) const fn of(p: f64) -> LossRate {
        LossRate(p.clamp(LossRate::MIN, 1.0))
    }

    /// The number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

quantity! {
    /// A time in seconds, above 0.
    Seconds, "time", "in [1e-15, 1e15] s", |s| s >= 1e-15 && s <= 1e15
}
quantity! {
    /// b: packets that one acknowledgement covers, at least 1.
    PerAck, "b", "in [1, 1e6]", |b| b >= 1.0 && b <= 1e6
}
quantity! {
    /// gamma: the mean factor by which a loss multiplies the window, at least 0 and below 1.
    Factor, "gamma", "in [0, 1)", |g| g >= 0.0 && g < 1.0
}
quantity! {
    /// A window in packets, at least 1; infinite for no limit.
    Window, "window", "at least 1 packet", |w| w >= 1.0
}
quantity! {
    /// The size of a packet in bytes, above 0.
    PacketSize, "segment", "in [1e-15, 1e15] B", |s| s >= 1e-15 && s <= 1e15
}
quantity! {
    /// A rate in packets per second, above 0.
    PacketsPerSecond, "rate", "in [1e-30, 1e30] packets/s", |r| r >= 1e-30 && r <= 1e30
}
quantity! {
    /// A rate in bytes per second, above 0 and finite.
    BytesPerSecond, "rate", "above 0 B/s and finite", |r| r > 0.0 && r < f64::INFINITY
}

impl PerAck {
    /// An acknowledgement for each packet.
    pub const ONE: PerAck = PerAck(1.0);
    /// Delayed acknowledgements (RFC 5681 section 4.2).
    pub const TWO: PerAck = PerAck(2.0);
}

impl Factor {
    /// Reno's.
    pub const HALF: Factor = Factor(0.5);
}

impl Window {
    /// No limit.
    pub const UNLIMITED: Window = Window(f64::INFINITY);
}

impl TryFrom<Span> for Seconds {
    type Error = DomainError;
    fn try_from(span: Span) -> Result<Seconds, DomainError> {
        Seconds::new(span.as_secs_f64())
    }
}

impl Seconds {
    /// This time multiplied by `factor`.
    #[must_use]
    pub(super) fn times(self, factor: f64) -> Seconds {
        Seconds((self.0 * factor).min(f64::MAX))
    }
}

impl PacketsPerSecond {
    /// From a model's result, clamped to the range of floating point.
    #[must_use]
    pub(super) fn of(rate: f64) -> PacketsPerSecond {
        PacketsPerSecond(rate.clamp(f64::MIN_POSITIVE, f64::MAX))
    }

    /// The same in bytes.
    #[must_use]
    pub fn of_size(self, segment: PacketSize) -> BytesPerSecond {
        BytesPerSecond::of(self.0 * segment.0)
    }
}

impl BytesPerSecond {
    /// From a model's result, clamped to the range of floating point.
    #[must_use]
    pub(super) fn of(rate: f64) -> BytesPerSecond {
        BytesPerSecond(rate.clamp(f64::MIN_POSITIVE, f64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_have_their_ends() {
        assert!(LossRate::new(1.0).is_ok() && LossRate::new(1e-100).is_ok());
        let tiny = LossRate::new(1e-200).unwrap_err().to_string();
        assert!(tiny.ends_with(": it must be at least 1e-100"), "{tiny}");
        for p in [0.0, -0.1, 1.0 + f64::EPSILON, f64::NAN, f64::INFINITY] {
            assert!(LossRate::new(p).is_err(), "{p}");
        }
        for s in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Seconds::new(s).is_err() && PacketSize::new(s).is_err() && BytesPerSecond::new(s).is_err(), "{s}");
        }
        assert!(Factor::new(0.0).is_ok() && Factor::new(1.0).is_err() && Factor::new(f64::NAN).is_err());
        assert!(Window::new(f64::INFINITY).is_ok() && Window::new(0.5).is_err() && Window::new(f64::NAN).is_err());
        assert!(PerAck::new(1.0).is_ok() && PerAck::new(0.99).is_err() && PerAck::new(f64::INFINITY).is_err());
        assert!(Seconds::try_from(Span::ZERO).is_err());
        assert_eq!(Seconds::try_from(Span::from_millis(50)).unwrap().get(), 0.05);
    }

    #[test]
    fn an_error_says_what_is_allowed() {
        assert_eq!(LossRate::new(1.5).unwrap_err().to_string(), "p = 1.5: it must be in (0, 1]");
        let error = Seconds::new(0.0).unwrap_err().of("rtt");
        assert_eq!(error.to_string(), "rtt = 0: it must be in [1e-15, 1e15] s");
    }
}

//! Reading and writing quantities: a decimal number, optional white space, a unit.
//!
//! | type  | units |
//! |-------|-------|
//! | time  | `ns` `us` (`µs`) `ms` `s` `min` `h` |
//! | rate  | `bit/s` `kbit/s` `Mbit/s` `Gbit/s` (also `bps`, `kbps`, `Mbps`, `Gbps`, `b/s` ...), `B/s` `kB/s` `MB/s` |
//! | size  | `B` `kB` `MB` `GB` (decimal), `KiB` `MiB` `GiB` |
//! | ratio | `%`, or a bare number from 0 to 1 |

use crate::{Offset, Rate, Ratio, Size, Span, Time};
use core::fmt;
use core::str::FromStr;

/// Why a text is not a quantity. The message names the text and the accepted form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}: {why}; {}", self.advice())]
pub struct ParseError {
    text: String,
    what: &'static str,
    why: String,
    example: &'static str,
    meant: Option<String>,
}

impl ParseError {
    /// The text with the unit that was probably meant, if only the unit is wrong.
    #[must_use]
    pub fn meant(&self) -> Option<&str> {
        self.meant.as_deref()
    }

    fn advice(&self) -> String {
        let example = || format!("write for example {}", self.example);
        self.meant.as_ref().map_or_else(example, |meant| format!("did you mean `{meant}`?"))
    }
}

/// Number of base units that fits into 63 bits, as a round number.
const MAX_BASE: f64 = 9.2e18;

pub(crate) struct Kind {
    what: &'static str,
    example: &'static str,
    /// A readable value slightly below the maximum.
    max_text: &'static str,
    /// (unit, its size in base units)
    pub(crate) units: &'static [(&'static str, f64)],
}

pub(crate) const SPAN: Kind = Kind {
    what: "a time",
    example: "`50 ms`",
    max_text: "9.2e9 s (292 years)",
    units: &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)],
};
pub(crate) const RATE: Kind = Kind {
    what: "a rate",
    example: "`10 Mbit/s`",
    max_text: "9.2e9 Gbit/s",
    units: &[
        ("bit/s", 1.0),
        ("kbit/s", 1e3),
        ("Mbit/s", 1e6),
        ("Gbit/s", 1e9),
        ("bps", 1.0),
        ("kbps", 1e3),
        ("Mbps", 1e6),
        ("Gbps", 1e9),
        ("b/s", 1.0),
        ("kb/s", 1e3),
        ("Mb/s", 1e6),
        ("Gb/s", 1e9),
        ("B/s", 8.0),
        ("kB/s", 8e3),
        ("MB/s", 8e6),
        ("GB/s", 8e9),
    ],
};
pub(crate) const SIZE: Kind = Kind {
    what: "a size",
    example: "`50 kB`",
    max_text: "9.2e9 GB",
    units: &[
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ],
};

/// Names that are not accepted as units, and the units that they mean.
const OTHER_NAMES: [(&str, &str); 15] = [
    ("sec", "s"),
    ("second", "s"),
    ("msec", "ms"),
    ("millisecond", "ms"),
    ("usec", "us"),
    ("microsecond", "us"),
    ("nsec", "ns"),
    ("nanosecond", "ns"),
    ("min", "min"),
    ("minute", "min"),
    ("hour", "h"),
    ("hr", "h"),
    ("byte", "B"),
    ("kilobyte", "kB"),
    ("megabyte", "MB"),
];
/// Spelled-out parts of units and their symbols; each is replaced in this order.
const IN_FULL: [(&str, &str); 12] = [
    ("per", "/"),
    ("seconds", "s"),
    ("second", "s"),
    ("secs", "s"),
    ("sec", "s"),
    ("kilo", "k"),
    ("mega", "M"),
    ("giga", "G"),
    ("bits", "bit"),
    ("bytes", "B"),
    ("byte", "B"),
    (" ", ""),
];

impl Kind {
    /// The unit that `unit` probably means: it has the wrong case, lacks `/s`, is another name, or is spelled out.
    fn meant(&self, unit: &str) -> Option<&'static str> {
        let lower = unit.to_ascii_lowercase();
        let one = lower.strip_suffix('s').unwrap_or(&lower);
        let other = OTHER_NAMES.iter().find(|(name, _)| [&lower, one].contains(name)).map(|(_, unit)| *unit);
        let short = IN_FULL.iter().fold(lower.clone(), |text, (full, short)| text.replace(full, short));
        // The letter's case distinguishes a byte from a bit, whatever the case of the rest.
        let has_bytes = short.contains('B') || ["B", "Bps", "B/s"].iter().any(|end| unit.ends_with(end));
        let like = |wanted: &str| {
            let names = || self.units.iter().map(|(name, _)| *name).filter(|name| name.eq_ignore_ascii_case(wanted));
            names().find(|name| name.contains('B') == has_bytes).or_else(|| names().next())
        };
        let per_second =
            short.strip_suffix("Bps").or_else(|| unit.strip_suffix("Bps")).map(|prefix| format!("{prefix}B/s"));
        let tried = [per_second.as_deref(), other, Some(&short), Some(unit)];
        let with_time = |wanted: &str| like(wanted).or_else(|| like(&format!("{wanted}/s")));
        tried.into_iter().flatten().find_map(with_time)
    }
}

/// Splits off the number and scales it to base units; refuses negative and infinite values and those beyond 2^63.
fn scaled(text: &str, kind: &Kind) -> Result<f64, ParseError> {
    let fail =
        |why: String| ParseError { text: text.to_owned(), what: kind.what, why, example: kind.example, meant: None };
    let trimmed = text.trim();
    let end = trimmed
        .char_indices()
        .find(|&(i, c)| {
            !(c.is_ascii_digit()
                || matches!(c, '.' | '+' | '-')
                || (matches!(c, 'e' | 'E') && trimmed[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-')))
        })
        .map_or(trimmed.len(), |(i, _)| i);
    let (number, unit) = (&trimmed[..end], trimmed[end..].trim());
    let value: f64 = number.parse().map_err(|_| fail("it does not begin with a number".into()))?;
    if unit.is_empty() {
        return Err(fail("the unit is missing".into()));
    }
    let Some(&(_, factor)) = kind.units.iter().find(|(name, _)| *name == unit) else {
        if let Some(meant) = kind.meant(unit) {
            return Err(ParseError {
                meant: Some(format!("{number} {meant}")),
                ..fail(format!("there is no unit `{unit}`"))
            });
        }
        let known: Vec<&str> = kind.units.iter().map(|(name, _)| *name).collect();
        return Err(fail(format!("unit `{unit}` is not one of {}", known.join(", "))));
    };
    let base = value * factor;
    if base < 0.0 {
        return Err(fail("it must not be negative".into()));
    }
    if base >= MAX_BASE {
        return Err(fail(format!("it must be less than {}", kind.max_text)));
    }
    Ok(base)
}

impl FromStr for Span {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Span, ParseError> {
        Ok(Span((scaled(text, &SPAN)? + 0.5) as u64))
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Rate, ParseError> {
        Ok(Rate((scaled(text, &RATE)? + 0.5) as u64))
    }
}

impl FromStr for Size {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Size, ParseError> {
        Ok(Size((scaled(text, &SIZE)? + 0.5) as u64))
    }
}

impl FromStr for Ratio {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Ratio, ParseError> {
        let fail = |why: &str| ParseError {
            text: text.to_owned(),
            what: "a share",
            why: why.to_owned(),
            example: "`1 %` or `0.01`",
            meant: None,
        };
        let trimmed = text.trim();
        let (number, factor) = match trimmed.strip_suffix('%') {
            Some(head) => (head.trim(), 0.01),
            None => (trimmed, 1.0),
        };
        let value: f64 = number.parse().map_err(|_| fail("it is neither a percentage nor a number"))?;
        Ratio::new(value * factor).ok_or_else(|| fail("it must lie between 0 and 1 (0 % and 100 %)"))
    }
}

impl Ratio {
    /// A ratio, if `value` lies in [0, 1].
    #[must_use]
    pub fn new(value: f64) -> Option<Ratio> {
        (0.0..=1.0).contains(&value).then_some(Ratio(value))
    }
}

/// Writes `value` base units in the largest unit in which it is at least 1, so that reading it gives the same value.
fn write(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    for &(name, factor) in units {
        if value >= factor && value.is_multiple_of((factor / 1000).max(1)) {
            let (whole, rest) = (value / factor, value % factor);
            if rest == 0 {
                return write!(f, "{whole} {name}");
            }
            let thousandths = rest / (factor / 1000).max(1);
            let text = format!("{whole}.{thousandths:03}");
            return write!(f, "{} {name}", text.trim_end_matches('0'));
        }
    }
    let (name, _) = units[units.len() - 1];
    write!(f, "{value} {name}")
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0 s");
        }
        write(f, self.0, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER { f.write_str("never") } else { Span(self.0).fmt(f) }
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 < 0 { "-" } else { "" })?;
        Span(self.0.unsigned_abs()).fmt(f)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)])
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)])
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

macro_rules! debug_as_display {
    ($($name:ident)*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(self, f) }
        }
    )*};
}
debug_as_display!(Time Span Offset Rate Size Ratio);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("50 ms".parse(), Ok(Span(50_000_000)));
        assert_eq!("1.5s".parse(), Ok(Span(1_500_000_000)));
        assert_eq!("1e-3 s".parse(), Ok(Span(1_000_000)));
        assert_eq!("10 Mbit/s".parse(), Ok(Rate(10_000_000)));
        assert_eq!("1 MB/s".parse(), Ok(Rate(8_000_000)));
        assert_eq!("50 kB".parse(), Ok(Size(50_000)));
        assert_eq!("1 KiB".parse(), Ok(Size(1024)));
        assert_eq!("1 %".parse(), Ok(Ratio(0.01)));
        assert_eq!("0.25".parse(), Ok(Ratio(0.25)));
    }

    #[test]
    fn refuses_and_says_why() {
        for bad in ["", "ms", "5", "-5 ms", "5 parsecs", "1e40 s", "nan s"] {
            let error = bad.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains("50 ms"), "{error}");
        }
        let of = |text: &str| text.parse::<Span>().unwrap_err().to_string();
        assert!(of("-5 ms").contains("must not be negative"), "{}", of("-5 ms"));
        assert!(of("1e40 s").contains("less than 9.2e9 s (292 years)"), "{}", of("1e40 s"));
        assert!("1e30 Gbit/s".parse::<Rate>().unwrap_err().to_string().contains("less than 9.2e9 Gbit/s"));
        assert!("150 %".parse::<Ratio>().is_err());
        assert!("NaN".parse::<Ratio>().is_err());
    }

    #[test]
    fn suggests_the_unit_that_was_meant() {
        let meant = |error: ParseError| error.meant().map(str::to_owned);
        let span = |text: &str| text.parse::<Span>().map_err(meant).unwrap_err();
        let rate = |text: &str| text.parse::<Rate>().map_err(meant).unwrap_err();
        assert_eq!(rate("10 mbit/s").as_deref(), Some("10 Mbit/s"));
        assert_eq!(rate("10mbps").as_deref(), Some("10 Mbps"));
        assert_eq!(rate("1.5 Mbit").as_deref(), Some("1.5 Mbit/s"));
        assert_eq!(span("3 Seconds").as_deref(), Some("3 s"));
        assert_eq!(span("3 parsecs"), None);
        assert_eq!(span("3"), None);
        let size = |text: &str| text.parse::<Size>().map_err(meant).unwrap_err();
        assert_eq!(size("5 kb").as_deref(), Some("5 kB"));
        for (text, meant) in [
            ("10 Mbits/s", "10 Mbit/s"),
            ("10 mbits", "10 Mbit/s"),
            ("10 Mbit/sec", "10 Mbit/s"),
            ("10 megabits per second", "10 Mbit/s"),
            ("10 MBps", "10 MB/s"),
            ("10 MB", "10 MB/s"),
            ("10 mb", "10 Mb/s"),
            ("10 kbytes/s", "10 kB/s"),
        ] {
            assert_eq!(rate(text).as_deref(), Some(meant), "{text}");
        }
        for (text, meant) in [("20 msec", "20 ms"), ("20 milliseconds", "20 ms"), ("2 mins", "2 min"), ("2 hrs", "2 h")]
        {
            assert_eq!(span(text).as_deref(), Some(meant), "{text}");
        }
        for (text, meant) in [("5 kbytes", "5 kB"), ("5 Megabytes", "5 MB"), ("5 kib", "5 KiB"), ("5 bytes", "5 B")] {
            assert_eq!(size(text).as_deref(), Some(meant), "{text}");
        }
        assert_eq!((span("3 m"), size("3 packets"), rate("3 Mbit/min")), (None, None, None));
    }

    #[test]
    fn a_display_reads_back() {
        for n in [0, 1, 999, 1_000, 1_001, 1_500_000, 50_000_000, 61_234_567_891, 123_456_789_012_345] {
            assert_eq!(Span(n).to_string().parse(), Ok(Span(n)), "{n}");
            assert_eq!(Rate(n).to_string().parse(), Ok(Rate(n)), "{n}");
            assert_eq!(Size(n).to_string().parse(), Ok(Size(n)), "{n}");
        }
    }
}
